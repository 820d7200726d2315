//! NumPy's `.npy`: magic, version, a Python dictionary as text, then the array.

use std::path::Path;

use crate::atomic::write_atomically;
use crate::error::{DataError, Origin, Result};
use crate::format::Format;
use crate::ids::Ids;
use crate::input::{Input, to_usize};
use crate::vectors::{Element, Shape, Vectors, check_finite, count_rows};

mod header;

/// The first bytes of every file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// A two-dimensional C-order array.
struct Array {
    descr: String,
    rows: u64,
    cols: u64,
    /// Where its data begin.
    offset: u64,
}

fn open(input: &Input, supported: &'static str) -> Result<Array> {
    let origin = input.origin();
    if input.len == 0 {
        return Err(DataError::ZeroRows { origin });
    }
    let bad = |offset: u64, reason: String| DataError::BadHeader {
        origin: input.origin(),
        offset,
        reason,
    };
    let mut start = [0; 8];
    input.read_at(0, &mut start, "the magic and version")?;
    if !start.starts_with(MAGIC) {
        return Err(bad(0, "the magic \\x93NUMPY is missing".to_owned()));
    }
    let (text_at, text_len) = match start[6] {
        1 => {
            let mut len = [0; 2];
            input.read_at(8, &mut len, "the header's length")?;
            (10, u64::from(u16::from_le_bytes(len)))
        }
        2 | 3 => {
            let mut len = [0; 4];
            input.read_at(8, &mut len, "the header's length")?;
            (12, u64::from(u32::from_le_bytes(len)))
        }
        version => return Err(bad(6, format!("version {version} is not 1, 2 or 3"))),
    };
    let offset = text_at + text_len;
    if offset > input.len {
        return Err(input.truncated("the header", offset));
    }
    let mut text = vec![0; to_usize(text_len, "the header's length", &origin)?];
    input.read_at(text_at, &mut text, "the header")?;
    let header = header::parse(&text).map_err(|(at, reason)| bad(text_at + at as u64, reason))?;

    if header.descr.starts_with('>') && !header.descr.ends_with('1') {
        let dtype = header.descr;
        return Err(DataError::BigEndian { origin, dtype });
    }
    let [rows, cols] = header.shape[..] else {
        return Err(DataError::BadRank {
            origin,
            found: header.shape.len(),
            expected: 2,
            fix: "(rows, dimension)",
        });
    };
    // An array of one row or column is in both orders at once, and numpy may call it either.
    if header.fortran_order && rows > 1 && cols > 1 {
        return Err(DataError::FortranOrder { origin });
    }
    let width = match header.descr.as_str() {
        "|u1" | "<u1" | ">u1" | "=u1" => 1,
        "<f2" => 2,
        "<f4" | "<i4" | "<u4" => 4,
        "<i8" | "<u8" => 8,
        _ => {
            return Err(DataError::UnsupportedType {
                origin,
                found: header.descr,
                supported,
            });
        }
    };
    let count = rows.saturating_mul(cols);
    input.check_end(offset, count, width)?;
    if cols == 0 {
        return Err(DataError::ZeroDimension { origin });
    }
    if rows == 0 {
        return Err(DataError::ZeroRows { origin });
    }
    Ok(Array {
        descr: header.descr,
        rows,
        cols,
        offset,
    })
}

/// The shape of the vectors as they are read, where they begin, and whether they are halves in the file.
fn vectors_header(input: &Input) -> Result<(Shape, u64, bool)> {
    const SUPPORTED: &str = "float32, float16 or uint8, as in array.astype('float32')";
    let array = open(input, SUPPORTED)?;
    let origin = input.origin();
    let element = match array.descr.as_str() {
        "<f4" | "<f2" => Element::F32,
        descr if descr.ends_with("u1") => Element::U8,
        _ => {
            return Err(DataError::UnsupportedType {
                origin,
                found: array.descr,
                supported: SUPPORTED,
            });
        }
    };
    let shape = Shape {
        rows: to_usize(array.rows, "the number of rows", &origin)?,
        dim: to_usize(array.cols, "the dimension", &origin)?,
        element,
    };
    Ok((shape, array.offset, array.descr == "<f2"))
}

pub(crate) fn shape(input: &Input) -> Result<Shape> {
    Ok(vectors_header(input)?.0)
}

pub(crate) fn read(input: &Input) -> Result<Vectors> {
    let (shape, offset, is_half) = vectors_header(input)?;
    match is_half {
        true => input.half_vectors(offset, shape, &input.origin()),
        false => input.vectors(offset, shape, &input.origin()),
    }
}

pub(crate) fn read_ids(input: &Input) -> Result<Ids> {
    const SUPPORTED: &str = "int32 or int64, as in array.astype('int64')";
    let array = open(input, SUPPORTED)?;
    let origin = input.origin();
    let count = to_usize(array.rows * array.cols, "the number of ids", &origin)?;
    let cols = to_usize(array.cols, "the number of columns", &origin)?;
    let mut data = Vec::with_capacity(count);
    let mut too_large = None;
    match array.descr.as_str() {
        "<i4" => input.for_each(array.offset, count, |b| {
            data.push(i64::from(i32::from_le_bytes(b)));
        })?,
        "<u4" => input.for_each(array.offset, count, |b| {
            data.push(i64::from(u32::from_le_bytes(b)));
        })?,
        "<i8" => input.for_each(array.offset, count, |b| data.push(i64::from_le_bytes(b)))?,
        "<u8" => input.for_each(array.offset, count, |b| {
            let id = u64::from_le_bytes(b);
            if id > i64::MAX as u64 && too_large.is_none() {
                too_large = Some((data.len(), id));
            }
            data.push(id as i64);
        })?,
        _ => {
            return Err(DataError::UnsupportedType {
                origin,
                found: array.descr,
                supported: SUPPORTED,
            });
        }
    }
    if let Some((at, id)) = too_large {
        return Err(DataError::IdOutOfRange {
            origin,
            row: at / cols,
            column: at % cols,
            id: i128::from(id),
            rows: i64::MAX as u64,
        });
    }
    Ids::with_origin(data, cols, &origin)
}

/// Writes floats as a `float32` array, `dim` to a row.
pub fn write_npy_f32(path: impl AsRef<Path>, data: &[f32], dim: usize) -> Result<()> {
    let origin = Origin::file(path.as_ref());
    let rows = count_rows(data.len(), dim, &origin)?;
    check_finite(data, dim, &origin)?;
    write_atomically(path, |w| {
        w.write_all(&header::write("<f4", rows, dim))?;
        Format::write_f32(w, data)
    })
}

/// Writes bytes as a `uint8` array, `dim` to a row.
pub fn write_npy_u8(path: impl AsRef<Path>, data: &[u8], dim: usize) -> Result<()> {
    let rows = count_rows(data.len(), dim, &Origin::file(path.as_ref()))?;
    write_atomically(path, |w| {
        w.write_all(&header::write("|u1", rows, dim))?;
        w.write_all(data)
    })
}

/// Writes ids as an `int64` array.
pub fn write_npy_i64(path: impl AsRef<Path>, ids: &Ids) -> Result<()> {
    let rows = count_rows(ids.data.len(), ids.cols, &Origin::file(path.as_ref()))?;
    write_atomically(path, |w| {
        w.write_all(&header::write("<i8", rows, ids.cols))?;
        let mut ids = ids.data.iter();
        ids.try_for_each(|id| w.write_all(&id.to_le_bytes()))
    })
}

/// Writes ids as an `int32` array; they must fit into 32 bits.
pub fn write_npy_i32(path: impl AsRef<Path>, ids: &Ids) -> Result<()> {
    let origin = Origin::file(path.as_ref());
    let rows = count_rows(ids.data.len(), ids.cols, &origin)?;
    let data = ids.to_i32(&origin)?;
    write_atomically(path, |w| {
        w.write_all(&header::write("<i4", rows, ids.cols))?;
        data.iter()
            .try_for_each(|id| w.write_all(&id.to_le_bytes()))
    })
}
