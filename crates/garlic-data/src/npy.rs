//! NumPy's `.npy`: magic, version, a Python dictionary as text, then the array.

use std::path::Path;

use crate::atomic::write_atomically;
use crate::error::{DataError, Origin, Result};
use crate::flat::Layout;
use crate::format::Format;
use crate::identifiers::Identifiers;
use crate::ids::Ids;
use crate::input::{Input, to_usize};
use crate::vectors::{Element, Shape, Vectors, check_finite, count_rows};

mod header;
mod strings;

use header::Header;

/// The first bytes of every file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// What the elements of an array are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    U8,
    I8,
    U16,
    I16,
    F16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl Kind {
    /// The kind that a header names, without its byte order.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "b1" => Self::Bool,
            "u1" => Self::U8,
            "i1" => Self::I8,
            "u2" => Self::U16,
            "i2" => Self::I16,
            "f2" => Self::F16,
            "u4" => Self::U32,
            "i4" => Self::I32,
            "f4" => Self::F32,
            "u8" => Self::U64,
            "i8" => Self::I64,
            "f8" => Self::F64,
            _ => return None,
        })
    }

    fn width(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Appends little-endian elements as 32-bit floats, the nearest ones where they are wider.
    fn to_f32(self, bytes: &[u8], values: &mut Vec<f32>) {
        fn each<const N: usize>(
            bytes: &[u8],
            values: &mut Vec<f32>,
            convert: impl Fn([u8; N]) -> f32,
        ) {
            values.extend(bytes.as_chunks::<N>().0.iter().map(|b| convert(*b)));
        }
        match self {
            Self::Bool | Self::U8 => each(bytes, values, |[b]| f32::from(b)),
            Self::I8 => each(bytes, values, |b| f32::from(i8::from_le_bytes(b))),
            Self::U16 => each(bytes, values, |b| f32::from(u16::from_le_bytes(b))),
            Self::I16 => each(bytes, values, |b| f32::from(i16::from_le_bytes(b))),
            Self::F16 => each(bytes, values, |b| {
                garlic_simd::f16_to_f32(u16::from_le_bytes(b))
            }),
            Self::U32 => each(bytes, values, |b| u32::from_le_bytes(b) as f32),
            Self::I32 => each(bytes, values, |b| i32::from_le_bytes(b) as f32),
            Self::F32 => each(bytes, values, f32::from_le_bytes),
            Self::U64 => each(bytes, values, |b| u64::from_le_bytes(b) as f32),
            Self::I64 => each(bytes, values, |b| i64::from_le_bytes(b) as f32),
            // Values beyond float32 become infinity, which is refused by name.
            Self::F64 => each(bytes, values, |b| f64::from_le_bytes(b) as f32),
        }
    }
}

/// An array of one or two axes.
struct Array {
    descr: String,
    kind: Kind,
    /// Whether the header has one axis only; then there is one column.
    is_list: bool,
    /// Whether it is stored column after column.
    by_columns: bool,
    rows: usize,
    cols: usize,
    /// Where its data begin.
    offset: u64,
}

/// The header, and where the data begin.
fn described(input: &Input) -> Result<(Header, u64)> {
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
    Ok((header, offset))
}

fn open(input: &Input, supported: &'static str) -> Result<Array> {
    let (header, offset) = described(input)?;
    let origin = input.origin();
    let name = header.descr.trim_start_matches(['<', '>', '|', '=']);
    let Some(kind) = Kind::named(name) else {
        return Err(DataError::UnsupportedType {
            origin,
            found: header.descr,
            supported,
        });
    };
    if header.descr.starts_with('>') && kind.width() > 1 {
        let dtype = header.descr;
        return Err(DataError::BigEndian { origin, dtype });
    }
    let (rows, cols) = match header.shape[..] {
        [rows] => (rows, 1),
        [rows, cols] => (rows, cols),
        _ => return Err(wrong_rank(origin, header.shape.len())),
    };
    let count = rows.saturating_mul(cols);
    input.check_end(offset, count, kind.width() as u64)?;
    if cols == 0 {
        return Err(DataError::ZeroDimension { origin });
    }
    if rows == 0 {
        return Err(DataError::ZeroRows { origin });
    }
    Ok(Array {
        kind,
        is_list: header.shape.len() == 1,
        // An array of one row or column is in both orders at once, and numpy may call it either.
        by_columns: header.fortran_order && rows > 1 && cols > 1,
        rows: to_usize(rows, "the number of rows", &origin)?,
        cols: to_usize(cols, "the dimension", &origin)?,
        descr: header.descr,
        offset,
    })
}

fn wrong_rank(origin: Origin, found: usize) -> DataError {
    DataError::BadRank {
        origin,
        found,
        expected: 2,
        fix: "(rows, dimension)",
    }
}

impl Array {
    fn shape(&self) -> Shape {
        Shape {
            rows: self.rows,
            dim: self.cols,
            element: match self.kind {
                Kind::U8 => Element::U8,
                _ => Element::F32,
            },
        }
    }

    /// The elements as 32-bit floats, converted block by block, so that there is one copy of all of them, not two.
    fn floats(&self, input: &Input) -> Result<Vec<f32>> {
        let (rows, cols) = (self.rows, self.cols);
        let mut values = Vec::with_capacity(rows * cols);
        let stored = |values: &mut Vec<f32>, first: usize, count: usize| {
            let offset = self.offset + (first * self.kind.width()) as u64;
            input.for_each_block(offset, count * self.kind.width(), |bytes| {
                self.kind.to_f32(bytes, values);
            })
        };
        if !self.by_columns {
            stored(&mut values, 0, rows * cols)?;
            return Ok(values);
        }
        values.resize(rows * cols, 0.0);
        let mut column = Vec::with_capacity(rows);
        for c in 0..cols {
            column.clear();
            stored(&mut column, c * rows, rows)?;
            let places = values[c..].iter_mut().step_by(cols);
            places.zip(&column).for_each(|(place, v)| *place = *v);
        }
        Ok(values)
    }
}

const NUMBERS: &str = "numbers of 8 to 64 bits, as in array.astype('float32')";

/// The array of vectors of a file.
fn vectors(input: &Input) -> Result<Array> {
    let array = open(input, NUMBERS)?;
    match array.is_list {
        true => Err(wrong_rank(input.origin(), 1)),
        false => Ok(array),
    }
}

pub(crate) fn shape(input: &Input) -> Result<Shape> {
    Ok(vectors(input)?.shape())
}

/// Where the rows lie, unless they are stored column after column.
pub(crate) fn layout(input: &Input) -> Result<Option<Layout>> {
    let array = vectors(input)?;
    if array.by_columns {
        return Ok(None);
    }
    let kind = array.kind;
    Ok(Some(Layout {
        width: kind.width(),
        convert: Box::new(move |bytes, values| kind.to_f32(bytes, values)),
        ..Layout::plain(array.offset, array.rows, array.cols, Element::F32)
    }))
}

pub(crate) fn read(input: &Input) -> Result<Vectors> {
    let array = vectors(input)?;
    let origin = input.origin();
    match array.kind {
        Kind::F32 | Kind::U8 if !array.by_columns => {
            input.vectors(array.offset, array.shape(), &origin)
        }
        _ => Vectors::owned_f32(array.floats(input)?, array.cols, &origin),
    }
}

/// Ids, row after row; an array of one axis is one column.
pub(crate) fn read_ids(input: &Input) -> Result<Ids> {
    const SUPPORTED: &str = "int32 or int64, as in array.astype('int64')";
    let array = open(input, SUPPORTED)?;
    let origin = input.origin();
    if array.by_columns {
        return Err(DataError::UnsupportedType {
            origin,
            found: format!("{} in Fortran order", array.descr),
            supported: "a table in C order, as numpy.ascontiguousarray(array) makes it",
        });
    }
    let (count, cols) = (array.rows * array.cols, array.cols);
    let mut data = Vec::with_capacity(count);
    let mut too_large = None;
    match array.kind {
        Kind::U8 => input.for_each(array.offset, count, |[b]| data.push(i64::from(b)))?,
        Kind::I32 => input.for_each(array.offset, count, |b| {
            data.push(i64::from(i32::from_le_bytes(b)));
        })?,
        Kind::U32 => input.for_each(array.offset, count, |b| {
            data.push(i64::from(u32::from_le_bytes(b)));
        })?,
        Kind::I64 => input.for_each(array.offset, count, |b| data.push(i64::from_le_bytes(b)))?,
        Kind::U64 => input.for_each(array.offset, count, |b| {
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

/// Ids, or text, as identifiers of vectors.
pub(crate) fn read_identifiers(input: &Input) -> Result<Identifiers> {
    if let Some(strings) = strings::read(input)? {
        return Ok(Identifiers::Strings(strings));
    }
    let ids = read_ids(input)?;
    let numbers: Result<Vec<u64>> = (0..)
        .zip(ids.data)
        .map(|(row, id)| {
            u64::try_from(id).map_err(|_| DataError::BadRow {
                origin: input.origin(),
                place: format!("row {row}"),
                problem: format!("the identifier is {id}: identifiers are whole numbers from 0 on"),
            })
        })
        .collect();
    Ok(Identifiers::Numbers(numbers?))
}

/// The bytes before an array.
pub(crate) fn header_of(rows: usize, dim: usize, element: Element) -> Vec<u8> {
    let descr = match element {
        Element::F32 => "<f4",
        Element::U8 => "|u1",
    };
    header::write(descr, rows, dim)
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
