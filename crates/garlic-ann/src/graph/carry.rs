//! Encodes a changed graph anew: in another order of the points, and without those that were removed.

use garlic_core::{Cancel, Result};

use super::links::refine;
use super::repair::detach;
use super::{Graph, Grown, Line, NO_NEIGHBOUR, centres};

impl Grown {
    /// The graph of the nodes `origin`, in this order. `cell_of` has the cell of each of them, below `cells`. Runs in
    /// the current rayon pool.
    pub(crate) fn carry(
        &self,
        origin: &[u32],
        cell_of: &[u32],
        cells: usize,
        cancel: &Cancel,
    ) -> Result<Graph> {
        let mut target = vec![NO_NEIGHBOUR; self.points()];
        for (to, from) in (0..).zip(origin) {
            target[*from as usize] = to;
        }
        let gone: Vec<bool> = target.iter().map(|to| *to == NO_NEIGHBOUR).collect();
        let bench = self.take_workbench();
        let (table, mut links) = (&bench.table, bench.links.clone());
        if gone.contains(&true) {
            detach(table, &mut links, &gone, cancel)?;
        }
        // Points that came one after another chose among those that were there.
        let added = self.base.points() as u32..self.points() as u32;
        let added: Vec<u32> = added.filter(|at| !gone[*at as usize]).collect();
        refine(table, &mut links, &added, cancel)?;
        let degree = self.base.degree;
        let mut neighbours = Vec::with_capacity(origin.len() * degree);
        let mut lines: Vec<Line> = Vec::new();
        for (at, from) in origin.iter().enumerate() {
            let list = links.get(*from).iter();
            neighbours.extend(list.map(|n| target[*n as usize]));
            neighbours.resize((at + 1) * degree, NO_NEIGHBOUR);
            lines.extend(self.code(*from).into_iter().flatten());
        }
        let centres = centres(table, cell_of, cells, &[], |at| origin[at as usize]);
        self.keep_workbench(bench);
        Ok(Graph {
            degree,
            neighbours: neighbours.into(),
            centres: centres.into(),
            codes: self.base.codes.with(&lines),
        })
    }
}
