//! What a search looks at, for pages that show it. Searches do not use this.

use garlic_core::metric::QueryContext;
use garlic_core::{Answer, Metric, Result, Search};
use serde::Serialize;

use super::plan::{Planned, plan};
use super::query::bin_limit;
use super::rerank::{Observer, Reranked};
use super::searcher::Scratch;
use crate::plan::Plan;
use crate::segment::{Index, Snapshot};

/// What a search looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// Where candidates came from: `bins`, `graph`, `everything` (all points were read) or `exact`.
    pub method: &'static str,
    /// The visited cells, nearest first. Only cells and bins have them.
    pub cells: Vec<TracedCell>,
    /// The candidates, in the order in which their exact distances were computed.
    pub candidates: Vec<TracedCandidate>,
    /// The answer.
    #[serde(skip)]
    pub answer: Answer,
}

/// A visited cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TracedCell {
    /// Number of the cell.
    pub cell: u32,
    /// Distance of the query from its mean, in the space of the cells.
    pub distance: f32,
    /// Number of its bins.
    pub bins: usize,
    /// The bins that the last limit of the search does not exclude, nearest first, as positions in [`Index::cell_bins`].
    pub bins_in_reach: Vec<u32>,
    /// Number of its points.
    pub points: usize,
}

/// A candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TracedCandidate {
    /// Its identifier.
    pub id: u64,
    /// Its cell.
    pub cell: u32,
    /// Its distance as estimated from its code, in the space that the index searches.
    pub estimate: f32,
    /// Its exact distance in that space.
    pub distance: f32,
    /// Whether it was among the best when it was looked at.
    pub entered: bool,
}

/// A bin of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BinShape {
    /// Its centre, in the space of the cells.
    pub centre: Vec<f32>,
    /// Number of its points when it was last encoded.
    pub points: usize,
}

/// Keeps every candidate.
#[derive(Default)]
struct Recorder(Vec<Reranked>);

impl Observer for Recorder {
    fn observe(&mut self, candidate: Reranked) {
        self.0.push(candidate);
    }
}

impl Index {
    /// [`Index::search`], with what it looked at.
    ///
    /// # Errors
    /// Those of [`Index::search`].
    pub fn trace(&self, query: &[f32], search: &Search) -> Result<Trace> {
        let Planned { plan, allowed } = plan(search, self)?;
        self.check_query(query, 0)?;
        if plan.exact || plan.all {
            let method = if plan.exact { "exact" } else { "everything" };
            let answer = self.search(query, search)?;
            return Ok(Trace {
                method,
                answer,
                ..Trace::default()
            });
        }
        let mut searcher = self.searcher();
        let Scratch { buffers, best, .. } = &mut *searcher.scratch;
        let mut embedded = Vec::new();
        let inside = self.embedding.query(query, &mut embedded);
        let snapshot = self.snapshot().with(allowed.as_deref());
        let mut recorder = Recorder::default();
        let stats = snapshot.search_observed(inside, &plan, buffers, best, &mut recorder);
        let method = match stats.bins_ordered {
            0 if stats.hops > 0 => "graph",
            0 => "everything",
            _ => "bins",
        };
        let context = QueryContext {
            query,
            embedded: inside,
            row: 0,
            wanted: plan.wanted,
            exact: false,
            complete: false,
        };
        let answer = Metric::answer(&snapshot, &context, best, stats)?;
        let candidates = recorder
            .0
            .iter()
            .filter_map(|c| snapshot.traced(c))
            .collect();
        let cells = match method {
            "bins" => snapshot.trace_cells(inside, &plan, &mut searcher.scratch),
            _ => Vec::new(),
        };
        Ok(Trace {
            method,
            cells,
            candidates,
            answer,
        })
    }

    /// The bins of a cell; none past the last cell.
    pub fn cell_bins(&self, cell: usize) -> Vec<BinShape> {
        let snapshot = self.snapshot();
        if cell >= snapshot.cells() {
            return Vec::new();
        }
        let (rank, dim) = (self.segment.cells.rank(), self.segment.cells.dim());
        let (centres, first) = snapshot.centres(cell);
        let bins = centres.chunks_exact(rank.max(1)).zip(first..);
        bins.map(|(y, bin)| {
            let mut centre = snapshot.mean(cell).to_vec();
            for (along, axis) in y.iter().zip(snapshot.axes(cell).chunks_exact(dim)) {
                let pairs = centre.iter_mut().zip(axis);
                pairs.for_each(|(c, a)| *c += along * a);
            }
            let points = snapshot.bin(bin).len;
            BinShape { centre, points }
        })
        .collect()
    }

    /// Identifiers of at most `limit` points of a cell; none past the last cell.
    pub fn cell_ids(&self, cell: usize, limit: usize) -> Vec<u64> {
        let snapshot = self.snapshot();
        if cell >= snapshot.cells() {
            return Vec::new();
        }
        let base = snapshot.base_bins(cell).flat_map(|bin| {
            let bin = snapshot.bin(bin as u32);
            bin.first..bin.first + bin.len as u32
        });
        let delta = snapshot.delta_positions(cell).into_iter().flatten();
        let all = base.chain(delta.map(|position| position as u32));
        let live = all.filter(|position| snapshot.is_live(*position));
        let points = live.filter_map(|position| snapshot.point(position));
        points.map(|point| point.id).take(limit).collect()
    }
}

impl Snapshot<'_> {
    fn traced(&self, candidate: &Reranked) -> Option<TracedCandidate> {
        let at = candidate.at as usize;
        let cell = match at < self.index.segment.ids.len() {
            true => self.segment.cell_of(at),
            false => (0..self.cells()).find(|cell| {
                let ranges = self.delta_positions(*cell);
                ranges.iter().any(|range| range.contains(&at))
            })?,
        };
        Some(TracedCandidate {
            id: self.point(candidate.at)?.id,
            cell: cell as u32,
            estimate: candidate.estimate.max(0.0).sqrt(),
            distance: candidate.squared.sqrt(),
            entered: candidate.new,
        })
    }

    /// The cells that the search of these buffers visited. Their bins are scored once more.
    fn trace_cells(&self, query: &[f32], plan: &Plan, scratch: &mut Scratch) -> Vec<TracedCell> {
        let buffers = &mut scratch.buffers;
        let worst = buffers.found.iter().map(|found| found.estimate);
        let limit = bin_limit(worst.fold(0.0, f32::max), plan.bin_prune_ratio);
        let cells = std::mem::take(&mut buffers.cells);
        let residual_squared = self.rotate_for_estimates(query, buffers);
        buffers.cells = cells;
        self.reset_scan(buffers);
        let mut traced = Vec::with_capacity(buffers.cells.len());
        for number in 0..buffers.cells.len() {
            let visited = buffers.cells[number];
            let cell = visited.at as usize;
            let before = buffers.bins.len();
            self.score_bins(number, residual_squared, f32::INFINITY, buffers);
            let scored = buffers.bins.get(before..).unwrap_or_default();
            let mut reached: Vec<_> = scored.iter().filter(|bin| bin.estimate <= limit).collect();
            reached.sort_by(|a, b| a.estimate.total_cmp(&b.estimate));
            let (_, first) = self.centres(cell);
            traced.push(TracedCell {
                cell: visited.at,
                distance: visited.estimate.max(0.0).sqrt(),
                bins: self.bins_in(cell),
                bins_in_reach: reached.iter().map(|bin| bin.at - first).collect(),
                points: self.points_in(cell),
            });
        }
        traced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{rows, uniform};

    const DIM: usize = 12;

    fn index() -> (Index, Vec<f32>) {
        let data = uniform(6000, DIM, 5);
        let built = Index::builder()
            .seed(1)
            .threads(1)
            .set("graph", "off")
            .unwrap();
        (built.build(rows(&data, DIM)).unwrap(), data)
    }

    /// Distances of bins in reach grow, up to what estimates leave out.
    fn nearest_first(index: &Index, query: &[f32], cell: usize, reached: &[usize]) {
        let mut inside = vec![0.0; index.transform().out_dim()];
        index.transform().apply(query, &mut inside);
        let bins = index.cell_bins(cell);
        let away = |bin: &usize| -> f32 {
            let pairs = bins[*bin].centre.iter().zip(&inside);
            pairs.map(|(a, b)| (a - b).powi(2)).sum()
        };
        if let [first, .., last] = reached {
            assert!(
                away(first) <= 1.2 * away(last),
                "{} {}",
                away(first),
                away(last)
            );
        }
    }

    #[test]
    fn a_trace_has_the_answer_of_the_search_and_what_led_to_it() {
        let (mut index, data) = index();
        let ids: Vec<u64> = (6000..6100).collect();
        let more = uniform(100, DIM, 6);
        for round in 0..2 {
            for query in data
                .chunks_exact(DIM)
                .take(20)
                .chain(more.chunks_exact(DIM))
            {
                let search = Search::new(5).recall(0.9);
                let trace = index.trace(query, &search).unwrap();
                assert_eq!(trace.answer, index.search(query, &search).unwrap());
                assert_eq!(trace.method, "bins");
                let counted = trace.cells.iter().map(|cell| cell.bins).sum::<usize>();
                assert_eq!(counted as u64, trace.answer.stats.bins_ordered);
                for cell in &trace.cells {
                    let reached = cell.bins_in_reach.iter().map(|bin| *bin as usize);
                    assert!(reached.clone().all(|bin| bin < cell.bins));
                    nearest_first(
                        &index,
                        query,
                        cell.cell as usize,
                        &reached.collect::<Vec<_>>(),
                    );
                }
                assert!(
                    trace
                        .cells
                        .iter()
                        .any(|cell| !cell.bins_in_reach.is_empty())
                );
                assert_eq!(trace.candidates.len() as u64, trace.answer.stats.candidates);
                for hit in &trace.answer.hits {
                    let found = trace.candidates.iter().find(|c| c.id == hit.id).unwrap();
                    assert!((found.distance - hit.distance).abs() <= 1e-5 && found.entered);
                    assert!(
                        index
                            .cell_ids(found.cell as usize, usize::MAX)
                            .contains(&hit.id)
                    );
                }
            }
            if round == 0 {
                index.add(rows(&more, DIM), &ids).unwrap();
                index.remove(&[3, 4, 5]).unwrap();
            }
        }
    }

    #[test]
    fn cells_are_made_of_their_bins_and_points() {
        let (index, _) = index();
        let mut all = Vec::new();
        for cell in 0..index.cells() {
            let ids = index.cell_ids(cell, usize::MAX);
            let bins = index.cell_bins(cell);
            assert_eq!(bins.iter().map(|bin| bin.points).sum::<usize>(), ids.len());
            assert!(
                bins.iter()
                    .all(|bin| bin.centre.len() == index.transform().out_dim())
            );
            all.extend(ids);
        }
        all.sort_unstable();
        assert_eq!(all, (0..6000).collect::<Vec<u64>>());
        assert!(index.cell_bins(index.cells()).is_empty());
        assert!(index.cell_ids(index.cells(), 1).is_empty());
    }

    #[test]
    fn exact_searches_and_small_indexes_say_that_they_read_otherwise() {
        let (index, data) = index();
        let exact = index
            .trace(&data[..DIM], &Search::new(3).exact(true))
            .unwrap();
        assert_eq!((exact.method, exact.answer.hits[0].id), ("exact", 0));
        let small = Index::builder()
            .threads(1)
            .build(rows(&data[..100 * DIM], DIM))
            .unwrap();
        assert_eq!(
            small.trace(&data[..DIM], &Search::new(3)).unwrap().method,
            "everything"
        );
    }
}
