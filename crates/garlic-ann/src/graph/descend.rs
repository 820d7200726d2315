//! The first part of a search in the graph: the way from a start to the neighbourhood of the query.
//!
//! Far from the query it matters little which candidate is expanded next, and few of the points that are seen on the
//! way are candidates in the end. So the way is found by heads alone, without a sorted pool.

use garlic_simd::Estimate;

use super::Graph;
use super::expand::{
    Admission, BLOCK, Block, EXPANDED, Expanded, Expansion, Limits, MIN_STOP_RANK,
};
use super::nodes::Nodes;

/// Candidates whose lists are requested before a walk.
const FIRST_LISTS: usize = 3;

impl Graph {
    /// Expands the nearest point by heads until none of its neighbours is nearer. The points from number `first` on in
    /// `scratch.seen` are the start.
    pub(super) fn descend(
        &self,
        nodes: &impl Nodes,
        first: usize,
        scratch: &mut Expansion,
        work: &mut Expanded,
    ) {
        let Expansion {
            prepared,
            seen,
            marks,
            estimates,
            path,
            ..
        } = scratch;
        path.clear();
        estimates.clear();
        estimates.resize(first, f32::INFINITY);
        let (mut nearest, mut smallest) = (None, f32::INFINITY);
        loop {
            let read = estimates.len();
            estimates.resize(seen.len(), 0.0);
            work.codes += (seen.len() - read) as u64;
            let blocks = seen[read..].chunks(BLOCK);
            for (block, estimates) in blocks.zip(estimates[read..].chunks_mut(BLOCK)) {
                nodes.estimate_heads(&prepared.query, block, estimates);
                let before = smallest;
                for (at, estimate) in block.iter().zip(estimates) {
                    if *estimate < smallest {
                        (nearest, smallest) = (Some(*at), *estimate);
                    }
                }
                if let Some(at) = nearest.filter(|_| smallest < before) {
                    garlic_simd::prefetch(nodes.list(at));
                }
            }
            let Some(at) = nearest.take() else { break };
            path.push(at);
            let list = nodes.list(at);
            work.hops += 1;
            work.edges += list.len() as u64;
            let new = seen.len();
            marks.mark_new(list, seen);
            for at in &seen[new..] {
                nodes.prefetch_head(*at);
            }
        }
    }

    /// Makes the pool of a walk: the points that a descent has seen and that may be within the limit of the walk.
    pub(super) fn select<A: Admission>(
        &self,
        nodes: &impl Nodes,
        limits: &Limits,
        admission: &A,
        first: usize,
        scratch: &mut Expansion,
        work: &mut Expanded,
    ) {
        let k = limits.k.max(MIN_STOP_RANK);
        let Expansion {
            prepared,
            seen,
            estimates,
            pool,
            nearest,
            path,
            ..
        } = scratch;
        let points = seen.iter().zip(&*estimates).skip(first);
        pool.clear();
        pool.extend(points.map(|(at, estimate)| Estimate {
            at: *at,
            estimate: *estimate,
        }));
        nearest.clear();
        nearest.extend(
            pool.iter()
                .filter(|e| A::ALL || admission.admits(e.at))
                .map(|e| e.estimate),
        );
        if nearest.len() > k {
            let (_, kth, _) = nearest.select_nth_unstable_by(k - 1, f32::total_cmp);
            let limit = kth.max(0.0) * limits.ratio * self.codes.head_ratio;
            pool.retain(|e| e.estimate <= limit);
        }
        for e in &*pool {
            nodes.prefetch_rest(e.at);
        }
        work.rests += pool.len() as u64;
        for part in pool.chunks_mut(BLOCK) {
            let mut block = Block {
                len: part.len(),
                ..Block::default()
            };
            block.items[..part.len()].copy_from_slice(part);
            Self::read_rests(nodes, &prepared.query, &mut block);
            part.copy_from_slice(&block.items[..part.len()]);
        }
        pool.sort_unstable_by(|a, b| a.estimate.total_cmp(&b.estimate).then(a.at.cmp(&b.at)));
        let most = limits.candidates.max(k);
        work.overflowed |= pool.len() > most;
        pool.truncate(most);
        nearest.clear();
        if !A::ALL {
            let admitted = pool.iter().filter(|e| admission.admits(e.at));
            nearest.extend(admitted.take(k).map(|e| e.estimate));
        }
        for e in &mut *pool {
            if path.contains(&e.at) {
                e.at |= EXPANDED;
            }
        }
        let next = pool.iter().filter(|e| e.at & EXPANDED == 0);
        for e in next.take(FIRST_LISTS) {
            garlic_simd::prefetch(nodes.list(e.at));
        }
    }
}
