//! The points of a changed index as nodes of its neighbour graph.

use std::sync::Arc;

use crate::graph::MAX_POINTS;
use crate::segment::{DeltaCell, DeltaSegment, Index, Place};
use garlic_core::{Error, Result};

/// Lists drop removed nodes when these are this share of the points. Until then they lead to others, and searches read
/// their codes in vain.
const MAX_REMOVED_SHARE: f64 = 0.15;

impl Index {
    /// Takes removed points out of the lists of the neighbour graph, if there are many.
    pub(super) fn detach_removed(&mut self) -> Result<()> {
        let snapshot = self.snapshot();
        let live = self.len();
        let Some(graph) = snapshot.grown() else {
            return Ok(());
        };
        if graph.removed(live) as f64 <= MAX_REMOVED_SHARE * live as f64 || live == 0 {
            return Ok(());
        }
        let nodes = 0..graph.points() as u32;
        let gone: Vec<bool> = nodes
            .map(|node| snapshot.position_of_node(node).is_none())
            .collect();
        let mut graph = graph.clone();
        self.workers.get()?.install(|| graph.detach(&gone))?;
        if let Some(changes) = &mut self.delta.0 {
            Arc::make_mut(changes).graph = Some(graph);
        }
        Ok(())
    }
}

impl DeltaSegment {
    /// The first node of `count` new points in the neighbour graph.
    pub(super) fn first_of(&self, count: usize) -> Result<u32> {
        let Some(graph) = &self.graph else {
            return Ok(0);
        };
        match graph.points() + count > MAX_POINTS {
            true => Err(Error::TooManyVectors {
                rows: graph.points() + count,
                limit: MAX_POINTS,
            }),
            false => Ok(graph.points() as u32),
        }
    }

    /// Stores where the nodes of a cell are: those of its append buffer and, if it was rewritten, all others.
    pub(super) fn place(&mut self, cell: usize, state: &DeltaCell, is_rewritten: bool) {
        if self.graph.is_none() {
            return;
        }
        let appended = state.appended.as_ref();
        let appended = appended.map(|points| (&points.data.nodes, true));
        let rewritten = state.rewritten.as_ref().filter(|_| is_rewritten);
        let rewritten = rewritten.map(|points| (&points.data.points.nodes, false));
        for (nodes, appended) in appended.into_iter().chain(rewritten) {
            for (at, node) in (0..).zip(nodes) {
                let cell = cell as u32;
                self.places.set(*node, Some(Place { cell, at, appended }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Index;
    use crate::graph::NO_NEIGHBOUR;
    use crate::testdata::{ids, rows, uniform};

    const DIM: usize = 8;

    fn cloud(count: usize, centre: f32, seed: u64) -> Vec<f32> {
        let mut values = uniform(count, DIM, seed);
        values.iter_mut().step_by(DIM).for_each(|v| *v += centre);
        values
    }

    /// Every live point has a node of its own that leads back to it, and no other node leads anywhere. Returns the
    /// share of live points that lists lead to from where searches start.
    fn check(index: &Index) -> f64 {
        let snapshot = index.snapshot();
        let grown = snapshot.grown().unwrap();
        let mut live = vec![false; grown.points()];
        for position in snapshot.admitted() {
            let node = snapshot.node_at(position).unwrap();
            assert_eq!(snapshot.position_of_node(node), Some(position));
            assert!(!std::mem::replace(&mut live[node as usize], true));
        }
        for (node, live) in (0..).zip(&live) {
            assert_eq!(snapshot.position_of_node(node).is_some(), *live, "{node}");
        }
        let count = live.iter().filter(|live| **live).count();
        assert_eq!(count, index.len());
        assert_eq!(snapshot.admits_all_nodes(), count == grown.points());
        let mut seen = vec![false; grown.points()];
        let mut next: Vec<u32> = grown.starts().filter(|at| *at != NO_NEIGHBOUR).collect();
        next.iter().for_each(|at| seen[*at as usize] = true);
        while let Some(node) = next.pop() {
            let list = grown.neighbours_of(node).iter();
            for to in list.filter(|to| **to != NO_NEIGHBOUR) {
                if !std::mem::replace(&mut seen[*to as usize], true) {
                    next.push(*to);
                }
            }
        }
        let found = seen
            .iter()
            .zip(&live)
            .filter(|(seen, live)| **seen && **live);
        found.count() as f64 / count as f64
    }

    #[test]
    fn nodes_follow_their_points_through_all_changes() {
        let builder = Index::builder().set("graph", "on").unwrap();
        let builder = builder.set("calibration_queries", "40").unwrap();
        let builder = builder.set("bin_size", "8").unwrap();
        let mut index = builder.build(rows(&cloud(900, 0.0, 1), DIM)).unwrap();
        for step in 0..12u64 {
            let centre = step as f32 * 0.7;
            let from = 10_000 + 100 * step;
            let more = cloud(70, centre, 100 + step);
            index.add(rows(&more, DIM), &ids(from..from + 70)).unwrap();
            check(&index);
            let gone: Vec<u64> = index
                .ids()
                .into_iter()
                .skip(step as usize)
                .step_by(19)
                .collect();
            index.remove(&gone).unwrap();
            check(&index);
            let moved: Vec<u64> = index.ids().into_iter().step_by(31).collect();
            let more = cloud(moved.len(), -centre, 200 + step);
            index.update(rows(&more, DIM), &moved).unwrap();
            let reached = check(&index);
            assert!(reached > 0.99, "step {step}: {reached}");
            if step == 7 {
                index.compact().unwrap();
                assert!(index.snapshot().grown().is_none());
            }
        }
        assert!((0..index.cells()).any(|cell| index.snapshot().rewritten(cell).is_some()));
    }
}
