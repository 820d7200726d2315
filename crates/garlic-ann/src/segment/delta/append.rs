//! The append buffer: points added to a cell since it was encoded.
//!
//! Each point is stored with the bin whose centre is nearest, as in a build. A search that scans the bin scans the
//! appended points, too.

use std::sync::Arc;

use garlic_linalg::{Matrix, nearest_centres};
use garlic_simd::{CODE_LANES, code_block_bytes};

use super::encoded_points::{EncodedPoints, PointsToEncode};
use super::rewritten::CodeShape;
use super::tombstones::Bits;
use crate::bins::{Bin, Bounds};
use crate::quantize::{Steps, copy_lane, encode_lane, lane_block};
use garlic_core::Result;
use garlic_core::vectors::StoredRows;

/// Points appended to a cell, in the order of its bins. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct AppendBuffer {
    pub(crate) data: Arc<EncodedPoints>,
    /// Removed points.
    pub(crate) tombstones: Bits,
}

impl AppendBuffer {
    /// Merges the live points of `before` with `joining`, given the quantized bin centres.
    pub(crate) fn new(
        before: Option<&AppendBuffer>,
        joining: PointsToEncode<'_>,
        centres: &[f32],
        steps: Steps<'_>,
        shape: CodeShape,
    ) -> Result<Self> {
        let (projected, dim) = (joining.projected, joining.dim);
        let centres = Matrix::from_vec(centres.to_vec(), shape.rank)?;
        let (labels, _) = nearest_centres(projected.y.as_rows(), centres.as_rows());
        let mut order: Vec<u32> = (0..labels.len() as u32).collect();
        order.sort_by_key(|i| labels[*i as usize]);
        let mut new = order.iter().copied().peekable();
        let bytes = code_block_bytes(shape.bits, shape.width);
        let mut bins = Vec::with_capacity(centres.rows() + 1);
        let mut bounds = vec![Bounds::default(); centres.rows()];
        let (mut blocks, mut ids, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut vectors = StoredRows::new(joining.vectors.element());
        for (bin, all) in bounds.iter_mut().enumerate() {
            let first = ids.len();
            bins.push(Bin {
                first: first as u32,
                block: (blocks.len() / bytes) as u32,
            });
            if let Some(AppendBuffer { data, tombstones }) = before {
                let points = data.points(bin);
                let codes = data.codes(bin);
                for at in points.clone().filter(|at| !tombstones.get(*at)) {
                    copy_lane(
                        codes,
                        at - points.start,
                        bytes,
                        ids.len() - first,
                        &mut blocks,
                    );
                    vectors.push(&data.vectors, dim, at);
                    ids.push(data.ids[at]);
                    nodes.push(data.nodes[at]);
                }
                *all = data.bounds[bin];
            }
            let mut here = Vec::new();
            while let Some(i) = new.next_if(|i| labels[*i as usize] as usize == bin) {
                let at = i as usize;
                let lane = ids.len() - first;
                let block = lane_block(bytes, lane, &mut blocks);
                let (y, norm) = (projected.y.row(at), projected.norms[at]);
                encode_lane(shape.bits, steps.points, y, norm, block, lane % CODE_LANES);
                vectors.push(joining.vectors, dim, at);
                ids.push(joining.ids[at]);
                nodes.push(joining.nodes[at]);
                here.push(i);
            }
            if !here.is_empty() {
                let found = projected.bounds(centres.row(bin), steps, shape.bits, &here);
                *all = match here.len() == ids.len() - first {
                    true => found,
                    false => all.union(&found),
                };
            }
        }
        bins.push(Bin {
            first: ids.len() as u32,
            block: (blocks.len() / bytes) as u32,
        });
        let data = EncodedPoints {
            bins,
            blocks: blocks.into(),
            bounds,
            vectors: vectors.into(),
            ids,
            nodes,
            block_bytes: bytes,
        };
        Ok(Self {
            tombstones: Bits::new(data.len()),
            data: Arc::new(data),
        })
    }

    /// Number of points, including removed ones.
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }
}
