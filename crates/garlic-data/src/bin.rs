//! The flat binary formats: `u32` rows, `u32` columns, then the rows (`.fbin`, `.u8bin`, `.ibin`).

use std::path::Path;

use crate::atomic::write_atomically;
use crate::error::{DataError, Origin, Result};
use crate::flat::Layout;
use crate::format::Format;
use crate::ids::Ids;
use crate::input::{Input, to_usize};
use crate::vectors::{Element, Shape, Vectors, check_finite, count_rows};

const HEADER: u64 = 8;

/// Rows and columns as the header says, not yet compared with the file's length.
pub(crate) fn header(input: &Input) -> Result<(u64, u64)> {
    if input.len == 0 {
        let origin = input.origin();
        return Err(DataError::ZeroRows { origin });
    }
    let mut bytes = [0; HEADER as usize];
    input.read_at(0, &mut bytes, "the header")?;
    let [a, b, c, d, e, f, g, h] = bytes;
    let rows = u32::from_le_bytes([a, b, c, d]);
    let cols = u32::from_le_bytes([e, f, g, h]);
    Ok((u64::from(rows), u64::from(cols)))
}

fn checked_header(input: &Input, width: u64) -> Result<(usize, usize)> {
    let (rows, cols) = header(input)?;
    input.check_end(HEADER, rows * cols, width)?;
    nonzero(input, rows, cols)
}

fn nonzero(input: &Input, rows: u64, cols: u64) -> Result<(usize, usize)> {
    let origin = input.origin();
    if cols == 0 {
        return Err(DataError::ZeroDimension { origin });
    }
    if rows == 0 {
        return Err(DataError::ZeroRows { origin });
    }
    Ok((
        to_usize(rows, "the number of rows", &origin)?,
        to_usize(cols, "the dimension", &origin)?,
    ))
}

pub(crate) fn shape(input: &Input, element: Element) -> Result<Shape> {
    let (rows, dim) = checked_header(input, element.width() as u64)?;
    Ok(Shape { rows, dim, element })
}

/// Where the rows lie.
pub(crate) fn layout(input: &Input, element: Element) -> Result<Layout> {
    let Shape { rows, dim, element } = shape(input, element)?;
    Ok(Layout::plain(HEADER, rows, dim, element))
}

pub(crate) fn read(input: &Input, element: Element) -> Result<Vectors> {
    let shape = shape(input, element)?;
    input.vectors(HEADER, shape, &input.origin())
}

/// Ids; a file may go on with as many distances, as the ground truth of large benchmarks does.
pub(crate) fn read_ids(input: &Input) -> Result<Ids> {
    let (rows, cols) = header(input)?;
    let with_distances = u128::from(rows) * u128::from(cols) * 8 + u128::from(HEADER);
    let (rows, cols) = if u128::from(input.len) == with_distances {
        nonzero(input, rows, cols)?
    } else {
        checked_header(input, 4)?
    };
    let mut data = Vec::with_capacity(rows * cols);
    input.for_each(HEADER, rows * cols, |bytes| {
        data.push(i64::from(i32::from_le_bytes(bytes)));
    })?;
    Ids::with_origin(data, cols, &input.origin())
}

/// Writes floats as `.fbin`, `dim` to a row.
pub fn write_fbin(path: impl AsRef<Path>, data: &[f32], dim: usize) -> Result<()> {
    let origin = Origin::file(path.as_ref());
    let header = header_of(data.len(), dim, &origin)?;
    check_finite(data, dim, &origin)?;
    write_atomically(path, |w| {
        w.write_all(&header)?;
        Format::write_f32(w, data)
    })
}

/// Writes bytes as `.u8bin`, `dim` to a row.
pub fn write_u8bin(path: impl AsRef<Path>, data: &[u8], dim: usize) -> Result<()> {
    let header = header_of(data.len(), dim, &Origin::file(path.as_ref()))?;
    write_atomically(path, |w| {
        w.write_all(&header)?;
        w.write_all(data)
    })
}

/// Writes ids as `.ibin`; they must fit into 32 bits.
pub fn write_ibin(path: impl AsRef<Path>, ids: &Ids) -> Result<()> {
    let origin = Origin::file(path.as_ref());
    let header = header_of(ids.data.len(), ids.cols, &origin)?;
    let data = ids.to_i32(&origin)?;
    write_atomically(path, |w| {
        w.write_all(&header)?;
        data.iter()
            .try_for_each(|id| w.write_all(&id.to_le_bytes()))
    })
}

pub(crate) fn header_of(len: usize, dim: usize, origin: &Origin) -> Result<[u8; HEADER as usize]> {
    let rows = count_rows(len, dim, origin)?;
    let narrow = |value: usize, what| {
        u32::try_from(value).map_err(|_| DataError::TooLarge {
            origin: origin.clone(),
            what,
            value: value as u64,
            limit: u64::from(u32::MAX),
            fix: "write .npy instead",
        })
    };
    let [a, b, c, d] = narrow(rows, "the number of rows")?.to_le_bytes();
    let [e, f, g, h] = narrow(dim, "the dimension")?.to_le_bytes();
    Ok([a, b, c, d, e, f, g, h])
}
