//! Files whose rows lie one after the other, read some at a time.
//!
//! A mapped file would count as memory of the process as far as it was read, so these are not mapped.

use crate::batches::{Piece, no_columns};
use crate::error::{DataError, Result};
use crate::input::Input;
use crate::vectors::Element;

/// Appends the values of little-endian bytes.
type Convert = Box<dyn Fn(&[u8], &mut Vec<f32>) + Send>;

/// Where the rows of a file lie.
pub(crate) struct Layout {
    pub(crate) offset: u64,
    pub(crate) rows: usize,
    pub(crate) dim: usize,
    /// Bytes of a value.
    pub(crate) width: usize,
    /// Whether every row begins with its dimension in 32 bits.
    pub(crate) prefixed: bool,
    pub(crate) convert: Convert,
}

impl Layout {
    /// Rows of floats or bytes.
    pub(crate) fn plain(offset: u64, rows: usize, dim: usize, element: Element) -> Self {
        Self {
            offset,
            rows,
            dim,
            width: element.width(),
            prefixed: false,
            convert: match element {
                Element::U8 => {
                    Box::new(|bytes, out| out.extend(bytes.iter().map(|b| f32::from(*b))))
                }
                Element::F32 => Box::new(|bytes, out| {
                    let values = bytes.as_chunks::<4>().0.iter();
                    out.extend(values.map(|b| f32::from_le_bytes(*b)));
                }),
            },
        }
    }

    /// Rows of half-precision floats.
    pub(crate) fn halves(offset: u64, rows: usize, dim: usize) -> Self {
        Self {
            width: 2,
            convert: Box::new(|bytes, out| {
                let values = bytes.as_chunks::<2>().0.iter();
                out.extend(values.map(|b| garlic_simd::f16_to_f32(u16::from_le_bytes(*b))));
            }),
            ..Self::plain(offset, rows, dim, Element::F32)
        }
    }
}

/// The rows of a file, some at a time.
pub(crate) struct Flat {
    input: Input,
    layout: Layout,
    batch: usize,
    done: usize,
}

impl Flat {
    /// The rows of `input`, at most `batch` at a time.
    pub(crate) fn new(input: &Input, layout: Layout, batch: usize) -> Result<Self> {
        Ok(Self {
            input: input.part(0, input.len, input.origin())?,
            layout,
            batch,
            done: 0,
        })
    }

    fn read(&self, count: usize) -> Result<Vec<f32>> {
        let Layout {
            offset,
            dim,
            width,
            prefixed,
            ..
        } = self.layout;
        let prefix = if prefixed { 4 } else { 0 };
        let stride = prefix + dim * width;
        let offset = offset + self.done as u64 * stride as u64;
        let mut bytes = vec![0; count * stride];
        self.input.read_at(offset, &mut bytes, "the data")?;
        let mut values = Vec::with_capacity(count * dim);
        if !prefixed {
            (self.layout.convert)(&bytes, &mut values);
            return Ok(values);
        }
        for (i, row) in bytes.chunks_exact(stride).enumerate() {
            let found = i32::from_le_bytes([row[0], row[1], row[2], row[3]]);
            if found as i64 != dim as i64 {
                return Err(DataError::Ragged {
                    origin: self.input.origin(),
                    row: (self.done + i) as u64,
                    offset: offset + (i * stride) as u64,
                    expected: dim as i64,
                    found: i64::from(found),
                });
            }
            (self.layout.convert)(&row[prefix..], &mut values);
        }
        Ok(values)
    }
}

impl Iterator for Flat {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        let count = self.batch.min(self.layout.rows - self.done);
        if count == 0 {
            return None;
        }
        let values = self.read(count);
        // It ends after an error.
        self.done = match values {
            Ok(_) => self.done + count,
            Err(_) => self.layout.rows,
        };
        Some(values.map(|values| Piece {
            values,
            dim: self.layout.dim,
            ids: None,
            columns: no_columns(count),
        }))
    }
}
