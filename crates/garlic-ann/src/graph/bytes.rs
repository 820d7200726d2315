//! All points as small whole numbers, the distances that a graph is built with.
//!
//! Sums of products of bytes are exact, so a graph does not depend on the instruction set.

use garlic_simd::dots_bytes_at;

/// Rows are padded to whole cache lines.
const LINE: usize = 64;
/// The byte that stands for zero.
const ZERO: i32 = 128;

/// A table of points. Coordinates have one common step.
pub(super) struct ByteTable {
    width: usize,
    bytes: Vec<u8>,
    norms: Vec<i32>,
    sums: Vec<i32>,
}

/// One point of a table, prepared for distances to others.
#[derive(Default)]
pub(super) struct Centre {
    row: Vec<i8>,
    norm: i32,
    sum: i32,
}

impl ByteTable {
    /// Bytes of a row with `dim` coordinates.
    pub(super) fn width(dim: usize) -> usize {
        dim.next_multiple_of(LINE)
    }

    /// Writes the row of a point.
    pub(super) fn quantize(coordinates: &[f32], step: f32, row: &mut [u8]) {
        let unit = if step > 0.0 { 1.0 / step } else { 0.0 };
        row.fill(ZERO as u8);
        for (byte, value) in row.iter_mut().zip(coordinates) {
            *byte = ((value * unit).round().clamp(-127.0, 127.0) as i32 + ZERO) as u8;
        }
    }

    /// The table of quantized rows of `width` bytes.
    pub(super) fn new(width: usize, bytes: Vec<u8>) -> Self {
        let mut table = Self {
            width,
            bytes,
            norms: Vec::new(),
            sums: Vec::new(),
        };
        table.measure();
        table
    }

    /// Appends quantized rows.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.measure();
    }

    /// Computes the norms and sums of the rows that have none yet.
    fn measure(&mut self) {
        fn values(row: &[u8]) -> impl Iterator<Item = i32> {
            row.iter().map(|b| i32::from(*b) - ZERO)
        }
        for row in self.bytes[self.len() * self.width..].chunks_exact(self.width) {
            self.norms.push(values(row).map(|v| v * v).sum());
            self.sums.push(values(row).sum());
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + 8 * self.len()
    }

    /// Number of points.
    pub(super) fn len(&self) -> usize {
        self.norms.len()
    }

    /// Prefetches a row.
    #[inline]
    pub(super) fn prefetch(&self, at: u32) {
        let start = at as usize * self.width;
        garlic_simd::prefetch(&self.bytes[start..start + self.width]);
    }

    /// Prepares a point.
    pub(super) fn centre(&self, at: u32, centre: &mut Centre) {
        let at = at as usize;
        let row = &self.bytes[at * self.width..][..self.width];
        centre.row.clear();
        centre
            .row
            .extend(row.iter().map(|b| (b ^ ZERO as u8) as i8));
        (centre.norm, centre.sum) = (self.norms[at], self.sums[at]);
    }

    /// Prepares the mean of some points, rounded.
    pub(super) fn mean(&self, points: &[u32], centre: &mut Centre) {
        let mut sums = vec![0i64; self.width];
        for at in points {
            let row = &self.bytes[*at as usize * self.width..][..self.width];
            for (sum, byte) in sums.iter_mut().zip(row) {
                *sum += i64::from(*byte) - i64::from(ZERO);
            }
        }
        let count = points.len().max(1) as i64;
        centre.row.clear();
        centre
            .row
            .extend(sums.iter().map(|sum| (sum / count) as i8));
        let values = || centre.row.iter().map(|v| i32::from(*v));
        centre.norm = values().map(|v| v * v).sum();
        centre.sum = values().sum();
    }

    /// Squared distances of `others` from a prepared point.
    pub(super) fn distances(&self, centre: &Centre, others: &[u32], out: &mut Vec<i32>) {
        out.clear();
        out.resize(others.len(), 0);
        dots_bytes_at(&self.bytes, self.width, &centre.row, others, out);
        for (distance, other) in out.iter_mut().zip(others) {
            let product = *distance - ZERO * centre.sum;
            *distance = centre.norm + self.norms[*other as usize] - 2 * product;
        }
    }
}

#[cfg(test)]
impl ByteTable {
    /// A table of rows of floats whose largest value is 127.
    pub(super) fn of(rows: garlic_linalg::Rows<'_>) -> Self {
        let width = Self::width(rows.dim());
        let mut bytes = vec![0; rows.len() * width];
        for (row, bytes) in rows.iter().zip(bytes.chunks_exact_mut(width)) {
            Self::quantize(row, 1.0, bytes);
        }
        Self::new(width, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{rows, uniform};

    #[test]
    fn distances_are_those_of_the_rounded_points() {
        let dim = 70;
        let values: Vec<f32> = uniform(60, dim, 3)
            .into_iter()
            .map(|v| (v * 300.0).round().clamp(-127.0, 127.0))
            .collect();
        let table = ByteTable::of(rows(&values, dim));
        let all: Vec<u32> = (0..60).collect();
        let (mut centre, mut out) = (Centre::default(), Vec::new());
        for (i, row) in values.chunks(dim).enumerate() {
            table.centre(i as u32, &mut centre);
            table.distances(&centre, &all, &mut out);
            let exact = values
                .chunks(dim)
                .map(|other| garlic_simd::l2_squared(row, other));
            assert!(out.iter().zip(exact).all(|(d, e)| *d as f32 == e));
        }
    }
}
