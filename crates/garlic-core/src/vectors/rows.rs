//! Stored vectors that are gathered one after the other.

use super::{StoredType, StoredVectors, row};

/// A builder of [`StoredVectors`].
#[derive(Debug)]
pub enum StoredRows {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// Half precision.
    F16(Vec<u16>),
    /// Whole numbers from 0 to 255.
    U8(Vec<u8>),
    /// Rows of [`garlic_simd::encode_int8`].
    Int8(Vec<u8>),
}

impl StoredRows {
    /// Creates a builder without vectors.
    pub fn new(element: StoredType) -> Self {
        match element {
            StoredType::F32 => Self::F32(Vec::new()),
            StoredType::F16 => Self::F16(Vec::new()),
            StoredType::U8 => Self::U8(Vec::new()),
            StoredType::Int8 => Self::Int8(Vec::new()),
        }
    }

    /// Appends the vector at `position` of `source`, which has the same type.
    pub fn push(&mut self, source: &StoredVectors, dim: usize, position: usize) {
        fn extend<T: Copy>(rows: &mut Vec<T>, data: &[T], dim: usize, position: usize) {
            rows.extend_from_slice(row(data, dim, position).unwrap_or_default());
        }
        match (self, source) {
            (Self::F32(rows), StoredVectors::F32(data)) => extend(rows, data, dim, position),
            (Self::F16(rows), StoredVectors::F16(data)) => extend(rows, data, dim, position),
            (Self::U8(rows), StoredVectors::U8(data)) => extend(rows, data, dim, position),
            (Self::Int8(rows), StoredVectors::Int8(data)) => {
                extend(rows, data, garlic_simd::int8_row_bytes(dim), position);
            }
            (rows, StoredVectors::File(file)) => {
                if let Some(one) = file.fetch(position, 1) {
                    rows.push(&one, dim, 0);
                }
            }
            _ => unreachable!("an index has vectors of one type"),
        }
    }
}

impl StoredRows {
    /// Appends the vector of these little-endian bytes.
    pub(crate) fn push_bytes(&mut self, row: &[u8]) {
        match self {
            Self::F32(rows) => {
                rows.extend(row.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)))
            }
            Self::F16(rows) => {
                rows.extend(row.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)))
            }
            Self::U8(rows) | Self::Int8(rows) => rows.extend_from_slice(row),
        }
    }
}

impl From<StoredRows> for StoredVectors {
    fn from(rows: StoredRows) -> Self {
        match rows {
            StoredRows::F32(rows) => Self::F32(rows.into()),
            StoredRows::F16(rows) => Self::F16(rows.into()),
            StoredRows::U8(rows) => Self::U8(rows.into()),
            StoredRows::Int8(rows) => Self::Int8(rows.into()),
        }
    }
}
