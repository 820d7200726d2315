//! The first steps of a query: rotate it, choose cells, project it into their frames.

use garlic_simd::Estimate;

use super::query::{QueryScratch, keep_best};
use crate::segment::Snapshot;
use crate::transform::residual_squared;
use garlic_core::vectors::Prepared;

/// The cells near a query are sparse if their share of allowed points is below this multiple of the overall share.
const SPARSE_RATIO: f64 = 0.9;

/// An entry at a squared distance. NaN, which a file that was not verified may contain, becomes infinity.
fn at_distance(at: u32, squared: f32) -> Estimate {
    let estimate = if squared >= 0.0 {
        squared
    } else {
        f32::INFINITY
    };
    Estimate { at, estimate }
}

impl Snapshot<'_> {
    /// The `count` cells nearest to a query, nearest first.
    pub(crate) fn route(
        &self,
        query: &[f32],
        count: usize,
        scratch: &mut QueryScratch,
    ) -> Vec<u32> {
        self.rotate(query, scratch);
        self.best_cells(count, scratch);
        scratch.cells.iter().map(|c| c.at).collect()
    }

    /// Rotates the query into `scratch`. Returns its squared distance from the truncated space.
    pub(in crate::search) fn rotate(&self, query: &[f32], scratch: &mut QueryScratch) -> f32 {
        let mean = &self.index.transform.mean;
        scratch.projected.clear();
        scratch.centred.clear();
        scratch
            .centred
            .extend(query.iter().zip(mean).map(|(x, m)| x - m));
        scratch.query.resize(self.segment.cells.dim(), 0.0);
        garlic_simd::dots(&self.segment.rotation, &scratch.centred, &mut scratch.query);
        let whole = garlic_simd::dot(&scratch.centred, &scratch.centred);
        scratch.whole = whole;
        residual_squared(whole, &scratch.query)
    }

    /// [`Snapshot::rotate`] for estimates. A byte query is rotated with the 8-bit rotation and stays in `scratch` as
    /// bytes.
    pub(crate) fn rotate_for_estimates(&self, query: &[f32], scratch: &mut QueryScratch) -> f32 {
        let QueryScratch { bytes, sums, .. } = scratch;
        let space = &self.index.transform;
        let is_bytes = matches!(
            self.index.segment.vectors.prepare(query, bytes),
            Prepared::Bytes(_)
        );
        let int8_rotation = match is_bytes {
            true => self
                .segment
                .int8_rotation(&space.mean, self.index.build_stats.radius),
            false => None,
        };
        let Some(int8_rotation) = int8_rotation else {
            if !is_bytes {
                bytes.clear();
            }
            return self.rotate(query, scratch);
        };
        scratch.projected.clear();
        scratch.query.resize(self.segment.cells.dim(), 0.0);
        int8_rotation.rotate(bytes, query.len(), sums, &mut scratch.query);
        residual_squared(garlic_simd::l2_squared(query, &space.mean), &scratch.query)
    }

    /// Stores the `count` cells nearest to the rotated query in `scratch`, nearest first. Cells without admitted
    /// points are left out.
    pub(crate) fn nearest_cells(&self, count: usize, scratch: &mut QueryScratch) {
        let cells = self.cells();
        scratch.scored = cells;
        scratch.distances.resize(cells, 0.0);
        garlic_simd::l2_squared_rows(self.means(), &scratch.query, &mut scratch.distances);
        let numbered = scratch.distances.iter().zip(0..);
        let numbered = numbered.map(|(d, at)| at_distance(at, *d));
        scratch.cells.clear();
        if self.admits_all() {
            scratch.cells.extend(numbered);
        } else {
            scratch
                .cells
                .extend(numbered.filter(|e| self.counted_in(e.at as usize) > 0));
        }
        if count < scratch.cells.len() {
            keep_best(&mut scratch.cells, count);
        }
        scratch.cells.sort_unstable_by_key(Estimate::key);
    }

    /// [`Snapshot::nearest_cells`] with the coarse quantizer if `coarse_routing`.
    pub(super) fn choose_cells(
        &self,
        count: usize,
        coarse_routing: bool,
        scratch: &mut QueryScratch,
    ) {
        if !coarse_routing || !self.nearest_cells_coarse(count, scratch) {
            self.nearest_cells(count, scratch);
        }
    }

    /// [`Snapshot::nearest_cells`] with the coarse quantizer. Returns false if there is none or if some points are
    /// not admitted. It may miss cells of farther clusters.
    fn nearest_cells_coarse(&self, count: usize, scratch: &mut QueryScratch) -> bool {
        if !self.admits_all() {
            return false;
        }
        let Some((quantizer, enough)) = self
            .segment
            .coarse_quantizer()
            .and_then(|quantizer| Some((quantizer, quantizer.min_compared(count)?)))
        else {
            return false;
        };
        let QueryScratch {
            query,
            distances,
            cells,
            bins: order,
            ..
        } = scratch;
        distances.resize(quantizer.len(), 0.0);
        garlic_simd::l2_squared_rows(&quantizer.centres, query, distances);
        order.clear();
        let numbered = (0..).zip(distances.iter());
        order.extend(numbered.map(|(at, d)| at_distance(at, *d)));
        order.sort_unstable_by_key(Estimate::key);
        cells.clear();
        for cluster in order.iter() {
            let (numbers, means) = quantizer.get(cluster.at as usize);
            distances.resize(numbers.len(), 0.0);
            garlic_simd::l2_squared_rows(means, query, distances);
            let numbered = numbers.iter().zip(distances.iter());
            cells.extend(numbered.map(|(at, d)| at_distance(*at, *d)));
            if cells.len() >= enough {
                break;
            }
        }
        scratch.scored = quantizer.len() + cells.len();
        if count < cells.len() {
            keep_best(cells, count);
        }
        cells.sort_unstable_by_key(Estimate::key);
        true
    }

    /// Stores the `count` cells with the smallest anisotropic score in `scratch`, best first, with the coordinates of
    /// the query in their frames. Returns the number of cells that the query was projected into.
    ///
    /// The score is computed for about twice as many cells as are needed, chosen by plain distance.
    pub(in crate::search) fn best_cells(&self, count: usize, scratch: &mut QueryScratch) -> usize {
        let shortlist = 2 * count.min(self.cells()) + 8;
        self.nearest_cells(shortlist, scratch);
        let shortlist = scratch.cells.len();
        if count >= shortlist || self.segment.cells.anisotropy == 0.0 {
            scratch.cells.truncate(count);
            return scratch.cells.len();
        }
        let rank = self.segment.cells.rank();
        let mut scored = Vec::with_capacity(shortlist);
        let mut coordinates = Vec::with_capacity(shortlist * rank);
        for number in 0..shortlist {
            let cell = scratch.cells[number];
            self.project(number, 0.0, scratch);
            let score =
                (cell.estimate - self.anisotropic_discount(cell.at as usize, &scratch.y)).max(0.0);
            scored.push(Estimate {
                at: number as u32,
                estimate: score,
            });
            coordinates.extend_from_slice(&scratch.y);
        }
        keep_best(&mut scored, count);
        scored.sort_unstable_by_key(Estimate::key);
        let all = std::mem::take(&mut scratch.cells);
        for chosen in &scored {
            let number = chosen.at as usize;
            scratch.cells.push(all[number]);
            scratch
                .projected
                .extend_from_slice(&coordinates[number * rank..][..rank]);
        }
        shortlist
    }

    /// Coordinates of a query in the frames of its `count` nearest cells, nearest first.
    pub(crate) fn projections(
        &self,
        query: &[f32],
        count: usize,
        scratch: &mut QueryScratch,
    ) -> Vec<f32> {
        self.rotate_for_estimates(query, scratch);
        self.nearest_cells(count, scratch);
        let mut projected = Vec::with_capacity(scratch.cells.len() * self.segment.cells.rank());
        for number in 0..scratch.cells.len() {
            self.project(number, 0.0, scratch);
            projected.extend_from_slice(&scratch.y);
        }
        projected
    }

    /// Stores the coordinates of the query in the frame of a probed cell in `scratch`. Returns its squared distance
    /// from the mean of the cell.
    pub(in crate::search) fn project(
        &self,
        number: usize,
        residual_squared: f32,
        scratch: &mut QueryScratch,
    ) -> f32 {
        let rank = self.segment.cells.rank();
        let cell = scratch.cells[number];
        let at = cell.at as usize;
        scratch.y.resize(rank, 0.0);
        match scratch.projected.get(number * rank..(number + 1) * rank) {
            Some(y) => scratch.y.copy_from_slice(y),
            None => {
                garlic_simd::dots(self.axes(at), &scratch.query, &mut scratch.y);
                self.centre(at, &mut scratch.y);
            }
        }
        cell.estimate + residual_squared
    }

    /// Turns inner products with the axes of a cell into coordinates in its frame.
    pub(in crate::search) fn centre(&self, cell: usize, products: &mut [f32]) {
        for (y, o) in products.iter_mut().zip(self.origin(cell)) {
            *y -= o;
        }
    }

    /// Whether the share of allowed points near the query is lower than elsewhere. Then the allowed neighbours may
    /// lie in any of the cells farther away.
    pub(super) fn is_sparse(&self, scratch: &QueryScratch) -> bool {
        let bin_limit = scratch.cells.last().map_or(0.0, |cell| cell.estimate);
        let near = scratch
            .distances
            .iter()
            .enumerate()
            .filter(|(_, d)| **d <= bin_limit);
        let (allowed, points) = near.fold((0, 0), |(allowed, points), (cell, _)| {
            let more = self.counted_in(cell);
            (allowed + more, points + self.points_in(cell))
        });
        let share = self.counted() as f64 / self.index.len().max(1) as f64;
        (allowed as f64) < SPARSE_RATIO * share * points as f64
    }
}
