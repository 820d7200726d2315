//! Many settings of one query at once, for sweeps: cells, bins and distances are shared.

use garlic_core::{Answer, Metric, Result, Search, SearchStats};

use super::allowed::Seen;
use super::{Scratch, Searcher, count_cell};
use crate::index::GaussianIndex;

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
    stats: SearchStats,
}

impl GaussianIndex {
    /// The answers of every combination of `probes` and `bins`, ordered by probes, then bins: each is what
    /// [`GaussianIndex::search`] gives for it, hits and stats.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn search_grid(
        &self,
        query: &[f32],
        k: usize,
        probes: &[usize],
        bins: &[f64],
    ) -> Result<Vec<Answer>> {
        self.searcher().search_grid(query, k, probes, bins)
    }
}

impl Searcher<'_> {
    /// [`GaussianIndex::search_grid`] with the buffers of this searcher.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn search_grid(
        &mut self,
        query: &[f32],
        k: usize,
        probes: &[usize],
        bins: &[f64],
    ) -> Result<Vec<Answer>> {
        let index = self.index;
        index.check_query(query, 0)?;
        for (&probes, &bins) in probes.iter().flat_map(|p| bins.iter().map(move |b| (p, b))) {
            Search::new(k).probes(probes).bins(bins).check()?;
        }
        let most = probes.iter().copied().max().unwrap_or(0);
        let largest = bins.iter().copied().fold(0.0, f64::max);
        let mut buffer = Vec::new();
        let embedded = index.embedding.query(query, &mut buffer);
        let (met, visited) = self.meet(embedded, most, largest);

        let points = Seen {
            index,
            allowed: None,
        };
        let mut answers = vec![Answer::default(); probes.len() * bins.len()];
        let Scratch { seen, best, .. } = &mut *self.scratch;
        for (b, share) in bins.iter().enumerate() {
            seen.start(index.len());
            best.start(index.embedding.widened_k(k));
            let mut stats = SearchStats::default();
            stats.rotation_madds = index.transform.apply_madds();
            stats.cells_scored = index.cells() as u64;
            for (rank, visit) in visited.iter().enumerate() {
                let end = visited.get(rank + 1).map_or(met.len(), |next| next.first);
                let budget = index.bins_within(index.cell(visit.cell as usize), *share) as u32;
                for point in met[visit.first..end].iter().filter(|m| m.bin < budget) {
                    if seen.insert(point.position) {
                        let id = index.ids[point.position as usize];
                        best.offer(point.squared, id, point.position);
                        stats.candidates += 1;
                    }
                }
                stats.exact_madds = stats.candidates * index.transform.dim() as u64;
                stats += visit.stats;
                for (p, probes) in probes.iter().enumerate() {
                    if (*probes).min(visited.len()) == rank + 1 {
                        let hits = Metric::report(&points, query, best, k);
                        answers[p * bins.len() + b] = Answer::new(hits, stats, false);
                    }
                }
            }
        }
        Ok(answers)
    }

    /// All points in the nearest `largest` share of the bins of the nearest `most` cells, cell by cell.
    fn meet(&mut self, query: &[f32], most: usize, largest: f64) -> (Vec<Met>, Vec<Visited>) {
        let index = self.index;
        let mut bytes = Vec::new();
        let prepared = index.vectors.prepare(query, &mut bytes);
        let scratch = &mut *self.scratch;
        index.route_embedded(query, most, scratch, &mut SearchStats::default());
        let mut met = Vec::new();
        let mut visited = Vec::with_capacity(scratch.route.cells.len());
        let mut before = 0;
        for (rank, number) in scratch.route.cells.iter().enumerate() {
            let spent = scratch.route.trail[rank];
            let mut stats = SearchStats::default();
            stats.routing_madds = spent - before;
            before = spent;
            let first = met.len();
            let cell = index.cell(*number as usize);
            if !cell.bins.occupied().is_empty() {
                scratch.coordinates.clear();
                cell.frame.project(
                    &scratch.query,
                    &mut scratch.centred,
                    &mut scratch.coordinates,
                );
                count_cell(cell, &mut stats);
                let count = index.bins_within(cell, largest);
                let order = cell
                    .bins
                    .nearest(&scratch.coordinates, count, &mut scratch.bins);
                for (bin, i) in order.iter().enumerate() {
                    met.extend(
                        cell.bins
                            .members_of(*i as usize)
                            .iter()
                            .map(|position| Met {
                                bin: bin as u32,
                                position: *position,
                                squared: index.vectors.distance(&prepared, *position as usize),
                            }),
                    );
                }
            }
            visited.push(Visited {
                cell: *number,
                first,
                stats,
            });
        }
        (met, visited)
    }
}
