//! The codes of the points in rows, and queries prepared for them.

use bytemuck::{Pod, Zeroable};
use garlic_core::buffer::Buffer;
use garlic_core::{Cancel, Result};
use rayon::prelude::*;

use super::Nodes;
use super::bytes::ByteTable;
use crate::quantize::{RowQuantizer, RowQuery};
use crate::transform::Int8Rotation;

/// Points that are encoded at once.
const ROWS_PER_TASK: usize = 256;

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

/// The byte that stands for zero in a query.
const ZERO_BYTE: u8 = 128;

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
    /// The rotation in 8 bits, for queries as bytes around [`ZERO_BYTE`]. Its error is small compared with that of the
    /// codes.
    int8_rotation: Int8Rotation,
}

impl PartialEq for RowCodes {
    fn eq(&self, other: &Self) -> bool {
        *self.mean == *other.mean
            && *self.rotation == *other.rotation
            && self.quantizer == other.quantizer
            && *self.lines == *other.lines
    }
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

impl RowCodes {
    pub(crate) fn new(
        mean: Buffer<f32>,
        rotation: Buffer<f32>,
        quantizer: RowQuantizer,
        lines: Buffer<Line>,
    ) -> Self {
        let zero = vec![f32::from(ZERO_BYTE); mean.len()];
        let int8_rotation = Int8Rotation::new(&rotation, &zero);
        Self {
            mean,
            rotation,
            quantizer,
            lines,
            int8_rotation,
        }
    }

    /// The same axes and steps with the codes of other points, and the bytes of these points. `origin` is the position of
    /// each of them here, or [`NO_NEIGHBOUR`](super::NO_NEIGHBOUR) if its code has to be computed. Runs in the current rayon pool.
    pub(super) fn encode(
        &self,
        nodes: &Nodes<'_>,
        origin: &[u32],
        cancel: &Cancel,
    ) -> Result<(Self, ByteTable)> {
        let (lines, dim) = (self.quantizer.lines(), self.quantizer.dim());
        let width = ByteTable::width(dim);
        let step = self.quantizer.largest() / 127.0;
        let mut bytes = vec![0u8; origin.len() * width];
        let mut coded = vec![Line([0; 64]); origin.len() * lines];
        bytes
            .par_chunks_mut(ROWS_PER_TASK * width)
            .zip(coded.par_chunks_mut(ROWS_PER_TASK * lines))
            .zip(origin.par_chunks(ROWS_PER_TASK))
            .enumerate()
            .try_for_each(|(task, ((bytes, coded), origin))| -> Result<()> {
                cancel.check()?;
                let (mut vector, mut row) = (Vec::new(), vec![0.0; dim]);
                for (i, from) in origin.iter().enumerate() {
                    let at = task * ROWS_PER_TASK + i;
                    nodes.vectors.read(nodes.dim, at, &mut vector);
                    self.rotate(&mut vector, &mut row);
                    ByteTable::quantize(&row, step, &mut bytes[i * width..][..width]);
                    let code = &mut coded[i * lines..][..lines];
                    let from = *from as usize * lines;
                    match self.lines.get(from..from + lines) {
                        Some(old) => code.copy_from_slice(old),
                        None => {
                            let norm = garlic_simd::dot(&vector, &vector);
                            let code = bytemuck::cast_slice_mut(code);
                            self.quantizer.encode(&row, norm, code);
                        }
                    }
                }
                Ok(())
            })?;
        let codes = Self {
            lines: coded.into(),
            ..self.clone()
        };
        Ok((codes, ByteTable::new(width, bytes)))
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
    fn rotate(&self, vector: &mut [f32], coordinates: &mut [f32]) {
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
        bytes.extend(small.iter().map(|v| (*v as u8) ^ ZERO_BYTE));
        coordinates.resize(self.quantizer.dim(), 0.0);
        self.int8_rotation.rotate(bytes, dim, products, coordinates);
        coordinates.iter_mut().for_each(|v| *v *= unit);
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
