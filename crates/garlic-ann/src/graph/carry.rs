//! Carries a graph over to a new numbering of the points, without removed points and with added ones.

use garlic_core::{Cancel, Result};

use super::links::{Lost, insert, refine, repair};
use super::{Graph, NO_NEIGHBOUR, Nodes, centres};

/// The graph is built anew if less than this share of its points are old.
const MIN_CARRIED: f64 = 0.5;

impl Graph {
    /// The graph of `nodes`. `origin` is the position of each of them in this graph, or [`NO_NEIGHBOUR`] if it is new.
    pub(crate) fn carry(
        &self,
        nodes: &Nodes<'_>,
        origin: &[u32],
        cancel: &Cancel,
    ) -> Result<Graph> {
        let is_old = |at: &u32| *at != NO_NEIGHBOUR;
        let carried = origin.iter().filter(|at| is_old(at)).count();
        if (carried as f64) < MIN_CARRIED * origin.len() as f64 || carried == 0 {
            return Graph::build(nodes, cancel, &|_, _| ());
        }
        let mut target = vec![NO_NEIGHBOUR; self.points()];
        for (to, from) in (0..).zip(origin) {
            if let Some(place) = target.get_mut(*from as usize) {
                *place = to;
            }
        }
        let (codes, table) = self.codes.encode(nodes, origin, cancel)?;
        let (lists, lost) = self.renumbered(origin, &target);
        let links = repair(&table, &lists, &lost, self.degree, cancel)?;
        let (mut order, new): (Vec<u32>, Vec<u32>) =
            (0..origin.len() as u32).partition(|at| is_old(&origin[*at as usize]));
        // The order of cells would insert neighbours in one round, where they do not see each other.
        let shuffled = garlic_linalg::permutation(new.len(), nodes.seed, crate::streams::GRAPH);
        order.extend(shuffled.into_iter().map(|i| new[i as usize]));
        let links = insert(
            &table,
            links,
            &order,
            carried,
            nodes.cell_of,
            cancel,
            &|_| (),
        )?;
        // New points, and old points that lost neighbours, choose again.
        let mut changed = new;
        changed.extend(lost.iter().map(|(at, _)| *at));
        changed.sort_unstable();
        let links = refine(&table, links, &changed, cancel)?;
        Ok(Graph {
            degree: self.degree,
            neighbours: links.neighbours.into(),
            centres: centres(&table, nodes).into(),
            codes,
        })
    }

    /// The lists of all points in the new numbering, and for every point that lost neighbours the neighbours of these.
    fn renumbered(&self, origin: &[u32], target: &[u32]) -> (Vec<Vec<u32>>, Vec<Lost>) {
        let renumber = |at: &u32| target.get(*at as usize).copied();
        let renumber = |at: &u32| renumber(at).filter(|at| *at != NO_NEIGHBOUR);
        let mut lost = Vec::new();
        let lists = (0..).zip(origin).map(|(at, from)| {
            let old = self.neighbours_of(*from);
            let kept: Vec<u32> = old.iter().filter_map(renumber).collect();
            let exists = |n: &&u32| (**n as usize) < target.len();
            let gone = old.iter().filter(|n| renumber(n).is_none()).filter(exists);
            let behind: Vec<u32> = gone
                .flat_map(|n| self.neighbours_of(*n))
                .filter_map(renumber)
                .collect();
            if !behind.is_empty() {
                lost.push((at, behind));
            }
            kept
        });
        let lists = lists.collect();
        (lists, lost)
    }
}
