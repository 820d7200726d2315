//! Files of vectors that are made block by block, so that they need not fit into memory.

use std::io;
use std::ops::Range;
use std::path::Path;

use parquet::arrow::ArrowWriter;

use crate::atomic::write_atomically;
use crate::error::{DataError, Origin, Result};
use crate::format::Format;
use crate::vectors::{Element, Shape};
use crate::{bin, npy, table};

/// Bytes of a block.
const BLOCK_BYTES: usize = 8 << 20;

/// Writes vectors of `shape` that `fill` makes: it is given the numbers of some rows and room for their values. The
/// format is that of the extension: `.npy`, `.fbin`, `.u8bin` or `.parquet`.
///
/// Bytes are made of whole numbers from 0 to 255. The file is there as a whole or not at all.
///
/// # Errors
/// Fails for another extension, for an element that the format does not hold, if `fill` fails, and if the disk is full.
pub fn write_vectors_with<F>(path: impl AsRef<Path>, shape: Shape, mut fill: F) -> Result<()>
where
    F: FnMut(Range<usize>, &mut [f32]) -> io::Result<()>,
{
    let path = path.as_ref();
    let origin = Origin::file(path);
    let format = Format::from_path(path)?;
    let Shape { rows, dim, element } = shape;
    let header = match (format, element) {
        (Format::Npy, element) => npy::header_of(rows, dim, element),
        (Format::Fbin, Element::F32) | (Format::U8bin, Element::U8) => {
            bin::header_of(rows * dim, dim, &origin)?.to_vec()
        }
        (Format::Parquet, _) => Vec::new(),
        _ => {
            let problem = format!(
                "vectors of {} are not written as .{format}: name a file .npy, .parquet, .fbin (f32) or .u8bin (u8)",
                element.name()
            );
            return Err(DataError::selection(origin, problem));
        }
    };
    let block = (BLOCK_BYTES / (4 * dim.max(1))).max(1);
    let mut values = Vec::new();
    let mut next = |first: usize| -> io::Result<Vec<f32>> {
        let range = first..rows.min(first + block);
        values.clear();
        values.resize(range.len() * dim, 0.0);
        fill(range, &mut values)?;
        Ok(std::mem::take(&mut values))
    };
    write_atomically(path, |out| {
        if format == Format::Parquet {
            let schema = table::batch(&[], dim, None, None, 0..0).map_err(io::Error::other)?;
            let mut writer =
                ArrowWriter::try_new(out, schema.schema(), Some(table::properties(dim)))
                    .map_err(io::Error::other)?;
            for first in (0..rows).step_by(block) {
                let values = next(first)?;
                let part = table::batch(&values, dim, None, None, 0..values.len() / dim);
                let part = part.map_err(io::Error::other)?;
                writer.write(&part).map_err(io::Error::other)?;
            }
            return writer.close().map(|_| ()).map_err(io::Error::other);
        }
        out.write_all(&header)?;
        for first in (0..rows).step_by(block) {
            let values = next(first)?;
            match element {
                Element::F32 => Format::write_f32(out, &values)?,
                Element::U8 => {
                    let bytes: Vec<u8> = values.iter().map(|v| *v as u8).collect();
                    out.write_all(&bytes)?;
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{ReadOptions, Reader};

    #[test]
    fn what_is_written_block_by_block_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (rows, dim) = (700, 9);
        let value = |at: usize| (at * 31 % 251) as f32;
        for (name, element) in [
            ("a.npy", Element::F32),
            ("b.npy", Element::U8),
            ("c.fbin", Element::F32),
            ("d.u8bin", Element::U8),
            ("e.parquet", Element::F32),
        ] {
            let path = folder.path().join(name);
            let shape = Shape { rows, dim, element };
            write_vectors_with(&path, shape, |range, out| {
                let first = range.start * dim;
                out.iter_mut()
                    .enumerate()
                    .for_each(|(i, v)| *v = value(first + i));
                Ok(())
            })
            .unwrap();
            let reader = Reader::open(&path, &ReadOptions::default()).unwrap();
            assert_eq!(reader.shape().unwrap(), shape, "{name}");
            let read = reader.read().unwrap().vectors.to_f32().into_owned();
            assert!(
                read.len() == rows * dim && read.iter().enumerate().all(|(i, v)| *v == value(i))
            );
        }
        let shape = |element| Shape { rows, dim, element };
        let refused = |name: &str, element| {
            let path = folder.path().join(name);
            write_vectors_with(&path, shape(element), |_, _| Ok(())).is_err() && !path.exists()
        };
        assert!(refused("f.fbin", Element::U8) && refused("f.u8bin", Element::F32));
        assert!(refused("f.hdf5", Element::F32) && refused("f.txt", Element::F32));
        let path = folder.path().join("g.npy");
        let full = |_: Range<usize>, _: &mut [f32]| Err(io::Error::other("stopped"));
        assert!(write_vectors_with(&path, shape(Element::F32), full).is_err() && !path.exists());
    }
}
