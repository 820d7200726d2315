//! The interleaved formats: each row after its own `i32` dimension (`.fvecs`, `.bvecs`, `.ivecs`).
//!
//! Such a file has no count of rows, so one that was cut between two rows cannot be told from a
//! shorter one.

use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::atomic::write_atomically;
use crate::error::{DataError, Origin, Result};
use crate::flat::Layout;
use crate::format::Format;
use crate::ids::Ids;
use crate::input::{Input, to_usize};
use crate::vectors::{Element, Shape, Vectors, check_finite, count_rows};

const PREFIX: u64 = 4;

/// The first row's dimension, and how many rows of that size the file could hold.
fn first(input: &Input, width: u64) -> Result<(u64, u64)> {
    let origin = input.origin();
    if input.len == 0 {
        return Err(DataError::ZeroRows { origin });
    }
    let mut prefix = [0; PREFIX as usize];
    input.read_at(0, &mut prefix, "the first row's dimension")?;
    let dim = match i32::from_le_bytes(prefix) {
        0 => return Err(DataError::ZeroDimension { origin }),
        dim => u64::try_from(dim).map_err(|_| DataError::BadHeader {
            origin,
            offset: 0,
            reason: format!("the first row has dimension {dim}"),
        })?,
    };
    let stride = PREFIX + dim * width;
    if stride > input.len {
        return Err(input.truncated("the first row", stride));
    }
    Ok((dim, input.len / stride))
}

pub(crate) fn shape(input: &Input, element: Element) -> Result<Shape> {
    let width = element.width() as u64;
    let (dim, rows) = first(input, width)?;
    let stride = PREFIX + dim * width;
    if !input.len.is_multiple_of(stride) {
        return Err(input.truncated("the last row", (rows + 1) * stride));
    }
    let origin = input.origin();
    // The whole file would have to be read to be sure; two rows reveal most wrong widths.
    for row in [1, rows - 1].into_iter().filter(|row| *row < rows) {
        let offset = row * stride;
        let mut prefix = [0; PREFIX as usize];
        input.read_at(offset, &mut prefix, "a row's dimension")?;
        let found = i64::from(i32::from_le_bytes(prefix));
        if found != dim as i64 {
            return Err(DataError::Ragged {
                origin,
                row,
                offset,
                expected: dim as i64,
                found,
            });
        }
    }
    Ok(Shape {
        rows: to_usize(rows, "the number of rows", &origin)?,
        dim: to_usize(dim, "the dimension", &origin)?,
        element,
    })
}

/// Where the rows lie.
pub(crate) fn layout(input: &Input, element: Element) -> Result<Layout> {
    let Shape { rows, dim, element } = shape(input, element)?;
    Ok(Layout {
        prefixed: true,
        ..Layout::plain(0, rows, dim, element)
    })
}

/// Reads every row, checks its dimension, and passes its bytes on; returns the dimension.
fn walk<T>(
    input: &Input,
    width: u64,
    mut convert: impl FnMut(&[u8], &mut Vec<T>),
) -> Result<(Vec<T>, usize)> {
    let failed = |cause| DataError::io("read", &input.path, cause);
    let origin = input.origin();
    let (dim, most_rows) = first(input, width)?;
    let stride = PREFIX + dim * width;
    let bytes = to_usize(dim * width, "a row's size", &origin)?;
    let capacity = to_usize(dim * most_rows, "the number of values", &origin)?;

    let mut data = Vec::with_capacity(capacity);
    let mut row_bytes = vec![0; bytes];
    let mut file = &input.file;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut prefix = [0; PREFIX as usize];
    let mut offset = 0;
    let mut row = 0;
    while offset < input.len {
        if input.len - offset < PREFIX {
            return Err(input.truncated("a row's dimension", offset + PREFIX));
        }
        reader.read_exact(&mut prefix).map_err(failed)?;
        let found = i64::from(i32::from_le_bytes(prefix));
        if found != dim as i64 {
            return Err(DataError::Ragged {
                origin,
                row,
                offset,
                expected: dim as i64,
                found,
            });
        }
        if input.len - offset < stride {
            return Err(input.truncated("the last row", offset + stride));
        }
        reader.read_exact(&mut row_bytes).map_err(failed)?;
        convert(&row_bytes, &mut data);
        offset += stride;
        row += 1;
    }
    Ok((data, bytes / width as usize))
}

pub(crate) fn read(input: &Input, element: Element) -> Result<Vectors> {
    let origin = input.origin();
    match element {
        Element::U8 => {
            let (data, dim) = walk(input, 1, |row, data| data.extend_from_slice(row))?;
            Vectors::owned_u8(data, dim, &origin)
        }
        Element::F32 => {
            let (data, dim) = walk(input, 4, |row, data: &mut Vec<f32>| {
                data.extend(row.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)));
            })?;
            Vectors::owned_f32(data, dim, &origin)
        }
    }
}

pub(crate) fn read_ids(input: &Input) -> Result<Ids> {
    let (data, cols) = walk(input, 4, |row, data: &mut Vec<i64>| {
        let ids = row.as_chunks().0.iter();
        data.extend(ids.map(|b| i64::from(i32::from_le_bytes(*b))));
    })?;
    Ids::with_origin(data, cols, &input.origin())
}

/// Writes floats as `.fvecs`, `dim` to a row.
pub fn write_fvecs(path: impl AsRef<Path>, data: &[f32], dim: usize) -> Result<()> {
    let origin = Origin::file(path.as_ref());
    let prefix = prefix_of(data.len(), dim, &origin)?;
    check_finite(data, dim, &origin)?;
    write_rows(path.as_ref(), data, dim, prefix, Format::write_f32)
}

/// Writes bytes as `.bvecs`, `dim` to a row.
pub fn write_bvecs(path: impl AsRef<Path>, data: &[u8], dim: usize) -> Result<()> {
    let prefix = prefix_of(data.len(), dim, &Origin::file(path.as_ref()))?;
    write_rows(path.as_ref(), data, dim, prefix, |w, row| w.write_all(row))
}

/// Writes ids as `.ivecs`; they must fit into 32 bits.
pub fn write_ivecs(path: impl AsRef<Path>, ids: &Ids) -> Result<()> {
    let origin = Origin::file(path.as_ref());
    let prefix = prefix_of(ids.data.len(), ids.cols, &origin)?;
    let data = ids.to_i32(&origin)?;
    write_rows(path.as_ref(), &data, ids.cols, prefix, |w, row| {
        row.iter().try_for_each(|id| w.write_all(&id.to_le_bytes()))
    })
}

fn prefix_of(len: usize, dim: usize, origin: &Origin) -> Result<[u8; PREFIX as usize]> {
    count_rows(len, dim, origin)?;
    let dim = i32::try_from(dim).map_err(|_| DataError::TooLarge {
        origin: origin.clone(),
        what: "the dimension",
        value: dim as u64,
        limit: i32::MAX as u64,
        fix: "write .npy instead",
    })?;
    Ok(dim.to_le_bytes())
}

fn write_rows<T>(
    path: &Path,
    data: &[T],
    dim: usize,
    prefix: [u8; PREFIX as usize],
    write: impl Fn(&mut dyn Write, &[T]) -> std::io::Result<()>,
) -> Result<()> {
    write_atomically(path, |w| {
        data.chunks_exact(dim).try_for_each(|row| {
            w.write_all(&prefix)?;
            write(w, row)
        })
    })
}
