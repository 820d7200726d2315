//! Many settings of one query at once, for sweeps: cells, bins and distances are shared.

use super::params::{Answer, Search};
use super::searcher::{Scratch, Searcher};
use super::work::Work;
use crate::error::Result;
use crate::index::Published;

/// A point in a bin that some setting scans.
struct Met {
    /// Rank of its bin in the order of its cell.
    bin: u32,
    position: u32,
    squared: f32,
}

/// One visited cell: where its points begin, and what visiting it cost.
struct Visited {
    cell: u32,
    first: usize,
    work: Work,
}

impl Searcher<'_> {
    /// The answers of every combination of `probes` and `bins`, ordered by probes, then bins: each is what
    /// [`Searcher::search`] gives for it, hits and work.
    pub fn search_grid(
        &mut self,
        query: &[f32],
        k: usize,
        probes: &[usize],
        bins: &[f64],
    ) -> Result<Vec<Answer>> {
        let index = self.index;
        index.check_query(query, 0)?;
        let Some(body) = index.published() else {
            // Bins of all cells are ordered together: settings share too little to gain by it.
            let settings = probes
                .iter()
                .flat_map(|p| bins.iter().map(move |b| (*p, *b)));
            return settings
                .map(|(probes, bins)| self.search(query, &Search::new(k).probes(probes).bins(bins)))
                .collect();
        };
        for (&probes, &bins) in probes.iter().flat_map(|p| bins.iter().map(move |b| (p, b))) {
            Search::new(k).probes(probes).bins(bins).plan(index)?;
        }
        let most = probes.iter().copied().max().unwrap_or(0);
        let largest = bins.iter().copied().fold(0.0, f64::max);
        let mut buffer = Vec::new();
        let embedded = index.embedding.query(query, &mut buffer);
        let (met, visited) = self.meet(body, embedded, most, largest);

        let mut answers = vec![Answer::default(); probes.len() * bins.len()];
        let Scratch { seen, best, .. } = &mut *self.scratch;
        for (b, share) in bins.iter().enumerate() {
            seen.start(index.len());
            best.start(index.embedding.wider(k));
            let mut work = Work {
                rotation_madds: index.space.apply_madds(),
                cells_scored: index.cells() as u64,
                ..Work::default()
            };
            for (rank, visit) in visited.iter().enumerate() {
                let end = visited.get(rank + 1).map_or(met.len(), |next| next.first);
                let budget = body.cells[visit.cell as usize].bins.budget(*share as f32) as u32;
                for point in met[visit.first..end].iter().filter(|m| m.bin < budget) {
                    if seen.first(point.position) {
                        let id = index.ids[point.position as usize];
                        best.offer(point.squared, id, point.position);
                        work.candidates += 1;
                    }
                }
                work.exact_madds = work.candidates * index.space.dim() as u64;
                work += visit.work;
                for (p, probes) in probes.iter().enumerate() {
                    if (*probes).min(visited.len()) == rank + 1 {
                        answers[p * bins.len() + b] = Answer {
                            hits: index.report(query, best, k),
                            work,
                            exact: false,
                        };
                    }
                }
            }
        }
        Ok(answers)
    }

    /// All points in the nearest `largest` share of the bins of the nearest `most` cells, cell by cell.
    fn meet(
        &mut self,
        body: &Published,
        query: &[f32],
        most: usize,
        largest: f64,
    ) -> (Vec<Met>, Vec<Visited>) {
        let index = self.index;
        let mut bytes = Vec::new();
        let prepared = index.vectors.prepare(query, &mut bytes);
        let scratch = &mut *self.scratch;
        index.route_query(body, query, most, scratch, &mut Work::default());
        let mut met = Vec::new();
        let mut visited = Vec::with_capacity(scratch.cells.len());
        let mut before = 0;
        for (rank, number) in scratch.cells.iter().enumerate() {
            let spent = scratch.route.trail[rank];
            let mut work = Work {
                routing_madds: spent - before,
                ..Work::default()
            };
            before = spent;
            let first = met.len();
            let cell = &body.cells[*number as usize];
            if !cell.bins.occupied().is_empty() {
                scratch.coordinates.clear();
                cell.frame.project(
                    &scratch.query,
                    &mut scratch.centred,
                    &mut scratch.coordinates,
                );
                work.count_cell(cell);
                let order =
                    cell.bins
                        .nearest(&scratch.coordinates, largest as f32, &mut scratch.bins);
                for (bin, i) in order.iter().enumerate() {
                    for position in cell.bins.members_of(*i as usize) {
                        let at = *position as usize;
                        let squared = index.vectors.distance(&prepared, at);
                        met.push(Met {
                            bin: bin as u32,
                            position: *position,
                            squared,
                        });
                    }
                }
            }
            visited.push(Visited {
                cell: *number,
                first,
                work,
            });
        }
        (met, visited)
    }
}
