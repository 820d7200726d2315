//! Batches: many queries share rotation and projections.

use garlic_core::{SearchStats, TopK};
use garlic_linalg::Rows;

use super::disk::{WaitingQueries, WaitingQuery};
use super::query::QueryScratch;
use super::rerank::Unobserved;
use crate::plan::Plan;
use crate::segment::Snapshot;
use crate::transform;
use garlic_core::Lists;
use garlic_core::vectors::{Prepared, StoredType};
use garlic_core::{Answer, Metric};

/// Transformed queries.
struct Rotated {
    rotated: Vec<f32>,
    /// Squared distance of each query from the truncated space.
    residual_squared: Vec<f32>,
    /// The queries as bytes, if the index stores bytes and all queries consist of them.
    bytes: Vec<u8>,
}

impl Snapshot<'_> {
    /// [`Snapshot::rotate_for_estimates`] for each query.
    fn rotate_many(&self, queries: Rows<'_>) -> Rotated {
        let (count, dim, wide) = (queries.len(), queries.dim(), self.segment.cells.dim());
        let mean = &self.index.transform.mean;
        let mut rotated = vec![0.0; count * wide];
        let mut bytes = Vec::new();
        let is_bytes = matches!(
            self.index
                .segment
                .vectors
                .prepare(queries.data(), &mut bytes),
            Prepared::Bytes(_)
        );
        let int8_rotation = match self.index.segment.vectors.element() {
            StoredType::U8 => self
                .segment
                .int8_rotation(mean, self.index.build_stats.radius),
            _ => None,
        };
        let mut residual_squared = Vec::with_capacity(count);
        if let (true, Some(int8_rotation)) = (is_bytes, int8_rotation) {
            int8_rotation.rotate(&bytes, dim, &mut Vec::new(), &mut rotated);
            for (query, rotated) in queries.iter().zip(rotated.chunks_exact(wide)) {
                residual_squared.push(transform::residual_squared(
                    garlic_simd::l2_squared(query, mean),
                    rotated,
                ));
            }
        } else if int8_rotation.is_some() {
            // Some queries are bytes and some are not. Rotate each as a single query would be.
            bytes.clear();
            let mut scratch = QueryScratch::default();
            for (query, rotated) in queries.iter().zip(rotated.chunks_exact_mut(wide)) {
                residual_squared.push(self.rotate_for_estimates(query, &mut scratch));
                rotated.copy_from_slice(&scratch.query);
            }
        } else {
            let mut centred = Vec::with_capacity(count * dim);
            for query in queries.iter() {
                centred.extend(query.iter().zip(mean).map(|(x, m)| x - m));
            }
            garlic_simd::dots_many(&self.segment.rotation, &centred, dim, &mut rotated);
            let pairs = centred.chunks_exact(dim).zip(rotated.chunks_exact(wide));
            residual_squared
                .extend(pairs.map(|(c, q)| transform::residual_squared(garlic_simd::dot(c, c), q)));
        }
        Rotated {
            rotated,
            residual_squared,
            bytes,
        }
    }

    /// Answers a batch of queries into `answers`. Rotations and projections are computed for all queries together,
    /// cell by cell. The answers are those of [`Snapshot::search`].
    pub(crate) fn search_many(
        &self,
        asked: Rows<'_>,
        plan: &Plan,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        answers: &mut [Answer],
    ) {
        let embedded = self.index.embedding.queries(asked);
        let queries = embedded.rows();
        let (count, dim, wide) = (queries.len(), queries.dim(), self.segment.cells.dim());
        let rank = self.segment.cells.rank();
        let Rotated {
            rotated,
            residual_squared,
            bytes,
        } = self.rotate_many(queries);

        // Every query visits the same number of cells: `probes`, or all cells with admitted points.
        let mut probes = plan.probes.min(self.cells());
        let mut cells = Vec::with_capacity(count * probes);
        let mut scored = Vec::with_capacity(count);
        for query in rotated.chunks_exact(wide) {
            scratch.query.clear();
            scratch.query.extend_from_slice(query);
            self.choose_cells(probes, plan.coarse_routing, scratch);
            cells.extend_from_slice(&scratch.cells);
            scored.push(scratch.scored);
            probes = scratch.cells.len();
        }
        let visits = Lists::group(self.cells(), cells.iter().zip(0..).map(|(c, v)| (c.at, v)));
        let mut projected = vec![0.0; cells.len() * rank];
        let (mut inputs, mut products) = (Vec::new(), Vec::new());
        for cell in 0..self.cells() {
            let visits = visits.get(cell);
            if visits.is_empty() {
                continue;
            }
            inputs.clear();
            for visit in visits {
                let query = *visit as usize / probes;
                inputs.extend_from_slice(&rotated[query * wide..][..wide]);
            }
            products.resize(visits.len() * rank, 0.0);
            garlic_simd::dots_many(self.axes(cell), &inputs, wide, &mut products);
            for (visit, products) in visits.iter().zip(products.chunks_exact_mut(rank)) {
                self.centre(cell, products);
                projected[*visit as usize * rank..][..rank].copy_from_slice(products);
            }
        }
        let mut waiting = WaitingQueries::default();
        for (i, query) in queries.iter().enumerate() {
            let mut work = SearchStats::default();
            scratch.cells.clear();
            scratch
                .cells
                .extend_from_slice(&cells[i * probes..][..probes]);
            scratch.projected.clear();
            scratch
                .projected
                .extend_from_slice(&projected[i * probes * rank..][..probes * rank]);
            self.find_candidates(residual_squared[i], plan, scratch, &mut work);
            if self.on_disk().is_some() {
                waiting.push(WaitingQuery {
                    number: i,
                    query,
                    found: scratch.found.clone(),
                    plan: *plan,
                    work,
                    routed: Some((probes, scored[i])),
                });
                continue;
            }
            let prepared = match bytes.get(i * dim..(i + 1) * dim) {
                Some(bytes) => Prepared::Bytes(bytes),
                None => self
                    .index
                    .segment
                    .vectors
                    .prepare(query, &mut scratch.bytes),
            };
            let found = &scratch.found;
            self.rerank(&prepared, plan, found, best, &mut work, &mut Unobserved);
            self.scan_uncovered(query, best, &mut work);
            self.count_madds(probes, scored[i], &mut work);
            let hits = Metric::report(self, asked.row(i), best, plan.wanted);
            answers[i] = Answer::new(hits, work, false);
        }
        if let Some(file) = self.on_disk() {
            self.finish_waiting(file, waiting, asked, answers);
        }
    }
}
