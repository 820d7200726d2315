//! The nodes of a graph, as a search reads them.

use garlic_simd::RowCodes;

use super::{Graph, Grown, Line};
use crate::quantize::RowQuery;

/// The nodes that a walk reads.
pub(super) trait Nodes {
    fn points(&self) -> usize;
    /// Nodes that a search starts from, besides those of the base.
    fn entries(&self) -> &[u32];
    fn list(&self, at: u32) -> &[u32];
    fn prefetch_head(&self, at: u32);
    fn prefetch_rest(&self, at: u32);
    /// Estimates the squared distances of nodes below [`Nodes::points`] by their heads.
    fn estimate_heads(&self, query: &RowQuery, nodes: &[u32], out: &mut [f32]);
    /// What the rests of these nodes add.
    fn estimate_rests(&self, query: &RowQuery, nodes: &[u32], out: &mut [f32]);
}

/// The nodes of a graph without added points.
pub(super) struct Flat<'a> {
    graph: &'a Graph,
    points: usize,
    heads: RowCodes<'a>,
    rests: Option<RowCodes<'a>>,
}

impl<'a> Flat<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        Self {
            graph,
            points: graph.points(),
            heads: graph.codes.heads(),
            rests: graph.codes.rests(),
        }
    }
}

impl Nodes for Flat<'_> {
    #[inline]
    fn points(&self) -> usize {
        self.points
    }

    #[inline]
    fn entries(&self) -> &[u32] {
        &[]
    }

    #[inline]
    fn list(&self, at: u32) -> &[u32] {
        self.graph.neighbours_of(at)
    }

    #[inline]
    fn prefetch_head(&self, at: u32) {
        self.heads.prefetch(at);
    }

    #[inline]
    fn prefetch_rest(&self, at: u32) {
        if let Some(rests) = self.rests {
            rests.prefetch(at);
        }
    }

    #[inline]
    fn estimate_heads(&self, query: &RowQuery, nodes: &[u32], out: &mut [f32]) {
        query.estimate_heads(self.heads, nodes, out);
    }

    #[inline]
    fn estimate_rests(&self, query: &RowQuery, nodes: &[u32], out: &mut [f32]) {
        match self.rests {
            Some(rests) => query.estimate_rests(rests, nodes, out),
            None => out.fill(0.0),
        }
    }
}

impl Nodes for Grown {
    #[inline]
    fn points(&self) -> usize {
        Grown::points(self)
    }

    #[inline]
    fn entries(&self) -> &[u32] {
        Grown::entries(self)
    }

    #[inline]
    fn list(&self, at: u32) -> &[u32] {
        self.neighbours_of(at)
    }

    #[inline]
    fn prefetch_head(&self, at: u32) {
        garlic_simd::prefetch(self.code(at)[0]);
    }

    #[inline]
    fn prefetch_rest(&self, at: u32) {
        garlic_simd::prefetch(self.code(at)[1]);
    }

    fn estimate_heads(&self, query: &RowQuery, nodes: &[u32], out: &mut [f32]) {
        let base = self.base.points();
        if nodes.iter().all(|at| (*at as usize) < base) {
            return query.estimate_heads(self.base.codes.heads(), nodes, out);
        }
        for (at, out) in nodes.iter().zip(out.chunks_exact_mut(1)) {
            query.estimate_heads(one(self.code(*at)[0]), &[0], out);
        }
    }

    fn estimate_rests(&self, query: &RowQuery, nodes: &[u32], out: &mut [f32]) {
        if self.base.codes.rests().is_none() {
            return out.fill(0.0);
        }
        for (at, out) in nodes.iter().zip(out.chunks_exact_mut(1)) {
            query.estimate_rests(one(self.code(*at)[1]), &[0], out);
        }
    }
}

/// A part of one code.
fn one(part: &[Line]) -> RowCodes<'_> {
    RowCodes::new(bytemuck::cast_slice(part), part.len())
}
