//! The codes of the points in rows, and queries prepared for them.

use bytemuck::{Pod, Zeroable};
use garlic_core::buffer::Buffer;
use garlic_core::{Cancel, Result};
use garlic_linalg::Rows;
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
    /// Heads and rests of the codes, in the order of positions.
    pub(crate) heads: Buffer<Line>,
    pub(crate) rests: Buffer<Line>,
    /// The rest of a code is read if its head estimates less than the limit times this ratio.
    pub(crate) head_ratio: f32,
    /// The rotation to the axes that codes represent in 8 bits, for queries as bytes around [`ZERO_BYTE`]. Its error is
    /// small compared with that of the codes.
    int8_rotation: Int8Rotation,
}

impl PartialEq for RowCodes {
    fn eq(&self, other: &Self) -> bool {
        *self.mean == *other.mean
            && *self.rotation == *other.rotation
            && self.quantizer == other.quantizer
            && *self.heads == *other.heads
            && *self.rests == *other.rests
            && self.head_ratio == other.head_ratio
    }
}

/// Buffers to prepare queries.
#[derive(Debug, Default)]
pub(super) struct QueryBuffers {
    centred: Vec<f32>,
    small: Vec<i8>,
    bytes: Vec<u8>,
    products: Vec<i32>,
    coordinates: Vec<f32>,
    ones: Vec<f32>,
    /// The unit of the coordinates of every query, and its squared distance from the mean.
    scales: Vec<(f32, f32)>,
}

impl RowCodes {
    pub(crate) fn new(
        mean: Buffer<f32>,
        rotation: Buffer<f32>,
        quantizer: RowQuantizer,
        [heads, rests]: [Buffer<Line>; 2],
        head_ratio: f32,
    ) -> Self {
        let zero = vec![f32::from(ZERO_BYTE); mean.len()];
        let coded = quantizer.coded_dim().max(1) * mean.len();
        let int8_rotation = Int8Rotation::new(&rotation[..coded.min(rotation.len())], &zero);
        Self {
            mean,
            rotation,
            quantizer,
            heads,
            rests,
            head_ratio,
            int8_rotation,
        }
    }

    /// The same axes and steps with the codes of all points, and the bytes of these points. Runs in the current rayon
    /// pool.
    pub(super) fn encode(&self, nodes: &Nodes<'_>, cancel: &Cancel) -> Result<(Self, ByteTable)> {
        let (lines, width) = (self.lines(), ByteTable::width(self.quantizer.dim()));
        let step = self.byte_step();
        let mut bytes = vec![0u8; nodes.len() * width];
        let mut coded = vec![Line([0; 64]); nodes.len() * lines];
        bytes
            .par_chunks_mut(ROWS_PER_TASK * width)
            .zip(coded.par_chunks_mut(ROWS_PER_TASK * lines))
            .enumerate()
            .try_for_each(|(task, (bytes, coded))| -> Result<()> {
                cancel.check()?;
                let (mut vector, mut row) = (Vec::new(), vec![0.0; self.quantizer.dim()]);
                let codes = coded.chunks_exact_mut(lines);
                for (i, (bytes, code)) in bytes.chunks_exact_mut(width).zip(codes).enumerate() {
                    let at = task * ROWS_PER_TASK + i;
                    nodes.vectors.read(nodes.dim, at, &mut vector);
                    self.encode_one(&mut vector, &mut row, code);
                    ByteTable::quantize(&row, step, bytes);
                }
                Ok(())
            })?;
        Ok((self.with(&coded), ByteTable::new(width, bytes)))
    }

    /// Lines of a code.
    pub(super) fn lines(&self) -> usize {
        self.quantizer.lines().iter().sum()
    }

    /// The same axes and steps with other codes.
    pub(super) fn with(&self, codes: &[Line]) -> Self {
        let (head, rows) = (self.quantizer.lines()[0], || {
            codes.chunks_exact(self.lines())
        });
        let heads: Vec<Line> = rows().flat_map(|code| &code[..head]).copied().collect();
        let rests: Vec<Line> = rows().flat_map(|code| &code[head..]).copied().collect();
        Self {
            heads: heads.into(),
            rests: rests.into(),
            ..self.clone()
        }
    }

    /// Writes the coordinates and the code of a vector, which is centred.
    fn encode_one(&self, vector: &mut [f32], coordinates: &mut [f32], code: &mut [Line]) {
        self.rotate(vector, coordinates);
        let norm = garlic_simd::dot(vector, vector);
        self.quantizer
            .encode(coordinates, norm, bytemuck::cast_slice_mut(code));
    }

    /// The codes of vectors. Runs in the current rayon pool.
    pub(super) fn encode_rows(&self, vectors: Rows<'_>) -> Vec<Line> {
        let lines = self.lines();
        let mut coded = vec![Line([0; 64]); vectors.len() * lines];
        let chunks = coded.par_chunks_mut(lines).enumerate();
        chunks.with_min_len(8).for_each_init(
            || (Vec::new(), vec![0.0; self.quantizer.dim()]),
            |(vector, row), (i, code)| {
                vector.clear();
                vector.extend_from_slice(vectors.row(i));
                self.encode_one(vector, row, code);
            },
        );
        coded
    }

    /// The bytes of points with these codes, to the precision of the codes. Runs in the current rayon pool.
    ///
    /// They depend on the codes alone, so a graph changes in the same way before and after it is saved.
    pub(super) fn bytes_of(&self, codes: &[Line]) -> Vec<u8> {
        let (lines, dim) = (self.lines(), self.quantizer.dim());
        let (width, step) = (ByteTable::width(dim), self.byte_step());
        let mut bytes = vec![0u8; codes.len() / lines * width];
        bytes
            .par_chunks_mut(width)
            .zip(codes.par_chunks(lines))
            .with_min_len(ROWS_PER_TASK)
            .for_each_init(
                || vec![0.0; dim],
                |row, (bytes, code)| {
                    self.quantizer.decode(bytemuck::cast_slice(code), row);
                    ByteTable::quantize(row, step, bytes);
                },
            );
        bytes
    }

    /// The common step of coordinates as bytes.
    fn byte_step(&self) -> f32 {
        self.quantizer.largest() / 127.0
    }

    /// The heads of all points.
    #[inline]
    pub(super) fn heads(&self) -> garlic_simd::RowCodes<'_> {
        garlic_simd::RowCodes::new(bytemuck::cast_slice(&self.heads), self.quantizer.lines()[0])
    }

    /// The rests of all points, if codes have any.
    #[inline]
    pub(super) fn rests(&self) -> Option<garlic_simd::RowCodes<'_>> {
        let lines = self.quantizer.lines()[1];
        let bytes = || bytemuck::cast_slice(&self.rests);
        (lines > 0).then(|| garlic_simd::RowCodes::new(bytes(), lines))
    }

    /// Multiply-adds that prepare a query.
    pub(crate) fn rotation_madds(&self) -> u64 {
        self.int8_rotation.bytes() as u64
    }

    /// Subtracts the mean from a vector and computes its coordinates.
    fn rotate(&self, vector: &mut [f32], coordinates: &mut [f32]) {
        for (v, m) in vector.iter_mut().zip(&*self.mean) {
            *v -= m;
        }
        garlic_simd::dots(&self.rotation, vector, coordinates);
    }

    /// Computes the coordinates of consecutive queries.
    pub(super) fn rotate_queries(&self, queries: &[f32], buffers: &mut QueryBuffers) {
        let QueryBuffers {
            centred,
            small,
            ones,
            bytes,
            products,
            coordinates,
            scales,
        } = buffers;
        let (dim, axes) = (self.mean.len(), self.coded_axes());
        small.resize(dim, 0);
        ones.resize(dim, 1.0);
        bytes.clear();
        scales.clear();
        for query in queries.chunks_exact(dim) {
            centred.clear();
            centred.extend(query.iter().zip(&*self.mean).map(|(x, m)| x - m));
            let (unit, _) = garlic_simd::code_weights(centred, ones, small);
            bytes.extend(small.iter().map(|v| (*v as u8) ^ ZERO_BYTE));
            scales.push((unit, garlic_simd::dot(centred, centred)));
        }
        coordinates.resize(scales.len() * axes, 0.0);
        self.int8_rotation.rotate(bytes, dim, products, coordinates);
    }

    /// Prepares one of the queries whose coordinates were computed.
    pub(super) fn prepare(&self, number: usize, buffers: &mut QueryBuffers, query: &mut RowQuery) {
        let axes = self.coded_axes();
        let coordinates = &mut buffers.coordinates[number * axes..][..axes];
        let (unit, squared) = buffers.scales[number];
        coordinates.iter_mut().for_each(|v| *v *= unit);
        self.quantizer.prepare(coordinates, squared, query);
    }

    fn coded_axes(&self) -> usize {
        self.quantizer.coded_dim().max(1)
    }

    /// Squared distance of a position from the mean.
    pub(crate) fn norm(&self, position: u32) -> Option<f32> {
        let [head, rest] = self.quantizer.lines();
        let term = |part: &[Line], lines: usize| -> Option<f32> {
            let last = part.get((position as usize + 1) * lines - 1)?;
            last.0.last_chunk().copied().map(f32::from_le_bytes)
        };
        let more = if rest > 0 {
            term(&self.rests, rest)?
        } else {
            0.0
        };
        Some(term(&self.heads, head)? + more)
    }

    /// Squared length of what the rest of a code represents.
    pub(super) fn rest_squared(&self, position: u32) -> f32 {
        let lines = self.quantizer.lines()[1];
        let rest = &self.rests[position as usize * lines..][..lines];
        self.quantizer.rest_squared(bytemuck::cast_slice(rest))
    }

    /// Includes this share of the rests in the heads. Runs in the current rayon pool.
    pub(super) fn set_rest_share(&mut self, share: f32) {
        let [head, rest] = self.quantizer.lines();
        if rest == 0 {
            return;
        }
        let quantizer = self.quantizer.clone().with_rest_share(share);
        let (mut heads, mut rests) = (self.heads.to_vec(), self.rests.to_vec());
        let rows = heads.par_chunks_mut(head).zip(rests.par_chunks_mut(rest));
        rows.enumerate().for_each(|(at, (head, rest))| {
            let norm = self.norm(at as u32).unwrap_or_default();
            let [head, rest] = [head, rest].map(bytemuck::cast_slice_mut);
            quantizer.set_norm(norm, head, rest);
        });
        (self.heads, self.rests, self.quantizer) = (heads.into(), rests.into(), quantizer);
    }
}
