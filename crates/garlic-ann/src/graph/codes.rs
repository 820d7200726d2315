//! The codes of the points in rows, and queries prepared for them.

use bytemuck::{Pod, Zeroable};
use garlic_core::buffer::Buffer;

use crate::quantize::{RowQuantizer, RowQuery};

/// A cache line of a code.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

// SAFETY: bytes without padding. All zero bits are valid.
#[allow(unsafe_code)]
unsafe impl Zeroable for Line {}
// SAFETY: `repr(C)`, `Copy`, 64 bytes and so without padding. All bit patterns are valid.
#[allow(unsafe_code)]
unsafe impl Pod for Line {}

/// The rotation that codes refer to, and the codes of all points.
#[derive(Clone, Debug)]
pub(crate) struct RowCodes {
    /// Mean of the data.
    pub(crate) mean: Buffer<f32>,
    /// Principal axes, one per row.
    pub(crate) rotation: Buffer<f32>,
    pub(crate) quantizer: RowQuantizer,
    /// The codes, in the order of positions.
    pub(crate) lines: Buffer<Line>,
    small: SmallRotation,
}

impl PartialEq for RowCodes {
    fn eq(&self, other: &Self) -> bool {
        *self.mean == *other.mean
            && *self.rotation == *other.rotation
            && self.quantizer == other.quantizer
            && *self.lines == *other.lines
    }
}

/// The rotation in 8 bits. Its error is small compared with that of the codes.
#[derive(Clone, Debug)]
struct SmallRotation {
    rows: Buffer<i8>,
    /// Step of each row, and the sum of its values.
    steps: Vec<f32>,
    sums: Vec<i32>,
}

/// Buffers to prepare a query.
#[derive(Debug, Default)]
pub(super) struct QueryBuffers {
    centred: Vec<f32>,
    small: Vec<i8>,
    bytes: Vec<u8>,
    products: Vec<i32>,
    coordinates: Vec<f32>,
    ones: Vec<f32>,
}

impl SmallRotation {
    fn new(rotation: &[f32], dim: usize) -> Self {
        let (mut rows, mut steps, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        for row in rotation.chunks_exact(dim.max(1)) {
            let most = row.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            let unit = if most > 0.0 { 127.0 / most } else { 0.0 };
            let small = row.iter().map(|v| (v * unit).round() as i8);
            let from = rows.len();
            rows.extend(small);
            steps.push(most / 127.0);
            sums.push(rows[from..].iter().map(|v| i32::from(*v)).sum());
        }
        Self {
            rows: rows.into(),
            steps,
            sums,
        }
    }
}

impl RowCodes {
    pub(crate) fn new(
        mean: Buffer<f32>,
        rotation: Buffer<f32>,
        quantizer: RowQuantizer,
        lines: Buffer<Line>,
    ) -> Self {
        let small = SmallRotation::new(&rotation, mean.len());
        Self {
            mean,
            rotation,
            quantizer,
            lines,
            small,
        }
    }

    /// Bytes of all codes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines)
    }

    /// Multiply-adds that prepare a query.
    pub(crate) fn rotation_madds(&self) -> u64 {
        self.rotation.len() as u64
    }

    /// Subtracts the mean from a vector and computes its coordinates.
    pub(crate) fn rotate(&self, vector: &mut [f32], coordinates: &mut [f32]) {
        for (v, m) in vector.iter_mut().zip(&*self.mean) {
            *v -= m;
        }
        garlic_simd::dots(&self.rotation, vector, coordinates);
    }

    /// Prepares a query.
    pub(super) fn prepare(&self, query: &[f32], buffers: &mut QueryBuffers, row: &mut RowQuery) {
        let QueryBuffers {
            centred,
            small,
            bytes,
            products,
            coordinates,
            ones,
        } = buffers;
        let dim = self.mean.len();
        centred.clear();
        centred.extend(query.iter().zip(&*self.mean).map(|(x, m)| x - m));
        small.resize(dim, 0);
        ones.resize(dim, 1.0);
        let (unit, _) = garlic_simd::code_weights(centred, ones, small);
        bytes.clear();
        bytes.extend(small.iter().map(|v| (*v as u8) ^ 128));
        products.clear();
        products.resize(self.small.steps.len(), 0);
        garlic_simd::dots_bytes(&self.small.rows, bytes, dim, products);
        coordinates.clear();
        let scales = self.small.steps.iter().zip(&self.small.sums);
        let all = products.iter().zip(scales);
        coordinates.extend(all.map(|(p, (step, sum))| (p - 128 * sum) as f32 * step * unit));
        let squared = garlic_simd::dot(centred, centred);
        self.quantizer.prepare(coordinates, squared, row);
    }

    /// Squared distance of a position from the mean.
    pub(crate) fn norm(&self, position: u32) -> Option<f32> {
        let end = (position as usize + 1) * self.quantizer.bytes();
        let norm = self.bytes().get(end.checked_sub(4)?..end)?;
        Some(f32::from_le_bytes(norm.try_into().ok()?))
    }

    /// Prefetches the code of a position.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        garlic_simd::prefetch_row(self.bytes(), self.quantizer.lines(), position);
    }
}
