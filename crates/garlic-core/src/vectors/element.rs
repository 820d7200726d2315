//! The element types of stored vectors.

use std::borrow::Cow;

use garlic_linalg::Rows;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Element type of stored vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredType {
    /// 32-bit floats.
    F32,
    /// Half precision.
    F16,
    /// Whole numbers from 0 to 255.
    U8,
    /// 8-bit values with a step for every 32 coordinates.
    ///
    /// One step for the whole index, or one for each vector, loses more neighbours: some models give every vector a
    /// few coordinates that are much larger than the others, and these decide the step of all. A step for each
    /// coordinate of the index avoids that, but has to be fitted to the data again as they change, and every fit would
    /// round the vectors once more. A block of 32 needs to know only itself, and it keeps its values when it is encoded
    /// again. It costs a sixteenth of the space.
    Int8,
}

impl StoredType {
    /// Bytes of a vector of `dim` coordinates.
    pub fn row_bytes(self, dim: usize) -> usize {
        match self {
            Self::F32 => 4 * dim,
            Self::F16 => 2 * dim,
            Self::U8 => dim,
            Self::Int8 => garlic_simd::int8_row_bytes(dim),
        }
    }

    /// Bytes of `points` vectors of `dim` coordinates, which a file claims to have. `None` on overflow.
    pub fn section_bytes(self, points: u64, dim: u64) -> Option<u64> {
        let dim = usize::try_from(dim).ok()?;
        // No row has more than four bytes per coordinate and two for a step.
        dim.checked_mul(4)?.checked_add(2)?;
        points.checked_mul(self.row_bytes(dim) as u64)
    }

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::U8 => "u8",
            Self::Int8 => "int8",
        }
    }

    /// The values after a round trip through this type. A second round trip changes nothing.
    pub fn round<'a>(self, vectors: Rows<'a>) -> Cow<'a, [f32]> {
        let mut values = Cow::Borrowed(vectors.data());
        if self.rounds() {
            self.round_in_place(values.to_mut(), vectors.dim());
        }
        values
    }

    /// Whether values change when they are stored.
    pub fn rounds(self) -> bool {
        match self {
            Self::F32 | Self::U8 => false,
            Self::F16 | Self::Int8 => true,
        }
    }

    /// Replaces vectors of `dim` coordinates by their values after a round trip through this type. Runs in the current
    /// rayon pool.
    pub fn round_in_place(self, values: &mut [f32], dim: usize) {
        let rows = values.par_chunks_exact_mut(dim);
        match self {
            Self::F32 | Self::U8 => {}
            Self::F16 => rows.for_each_init(Vec::new, |halves, row| {
                halves.clear();
                halves.extend(row.iter().map(|v| garlic_simd::f32_to_f16(*v)));
                garlic_simd::widen_f16(halves, row);
            }),
            Self::Int8 => {
                let bytes = || vec![0; garlic_simd::int8_row_bytes(dim)];
                rows.for_each_init(bytes, |bytes, row| {
                    garlic_simd::encode_int8(row, bytes);
                    garlic_simd::widen_int8(bytes, row);
                });
            }
        }
    }
}

/// Converts values to bytes and returns whether all of them are whole numbers from 0 to 255. Otherwise the bytes are
/// meaningless. Every query runs this, so the loop has no branches and vectorizes.
pub(super) fn to_bytes(values: &[f32], bytes: &mut Vec<u8>) -> bool {
    // Adding this to a small number leaves the nearest whole number in the lowest bits.
    const SHIFT: f32 = (1 << 23) as f32;
    bytes.clear();
    bytes.resize(values.len(), 0);
    let mut all = true;
    for (byte, v) in bytes.iter_mut().zip(values) {
        let shifted = v + SHIFT;
        *byte = shifted.to_bits() as u8;
        all &= (shifted - SHIFT == *v) & (*v >= 0.0) & (*v <= 255.0);
    }
    all
}

/// Whether a value is a whole number from 0 to 255.
pub fn is_byte(v: f32) -> bool {
    // The cast saturates, so only bytes survive the round trip. `fract` would be a library call.
    f32::from(v as u8) == v
}
