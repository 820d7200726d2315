//! The first steps of a query: rotate it, choose cells, project it into their frames.

use garlic_simd::Estimate;

use super::query::{QueryScratch, shrink};
use crate::segment::Snapshot;
use crate::transform::beyond;
use garlic_core::vectors::Prepared;

/// Cells whose share of allowed points is below this multiple of the whole index's are sparse.
const SPARSE: f64 = 0.9;

/// A cell or a group at a squared distance; infinitely far where that is no number, as it may be in a file that nobody has
/// checked.
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

    /// Leaves the rotated query in `scratch` and returns its squared distance from the truncated space.
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
        beyond(whole, &scratch.query)
    }

    /// The same for estimates: a query of bytes, which it leaves in `scratch` as well, is rotated in whole numbers.
    pub(crate) fn rotate_roughly(&self, query: &[f32], scratch: &mut QueryScratch) -> f32 {
        let QueryScratch { bytes, sums, .. } = scratch;
        let space = &self.index.transform;
        let is_bytes = matches!(
            self.index.segment.vectors.prepare(query, bytes),
            Prepared::Bytes(_)
        );
        let coarse = match is_bytes {
            true => self
                .segment
                .coarse(&space.mean, self.index.build_stats.radius),
            false => None,
        };
        let Some(coarse) = coarse else {
            if !is_bytes {
                bytes.clear();
            }
            return self.rotate(query, scratch);
        };
        scratch.projected.clear();
        scratch.query.resize(self.segment.cells.dim(), 0.0);
        coarse.rotate(bytes, query.len(), sums, &mut scratch.query);
        beyond(garlic_simd::l2_squared(query, &space.mean), &scratch.query)
    }

    /// Leaves the `count` cells nearest to the rotated query in `scratch`, nearest first; fewer when fewer have
    /// points that count.
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
            shrink(&mut scratch.cells, count);
        }
        scratch.cells.sort_unstable_by_key(Estimate::key);
    }

    /// The same, by way of groups of cells if `grouped`.
    pub(super) fn cells_for(&self, count: usize, grouped: bool, scratch: &mut QueryScratch) {
        if !grouped || !self.near_groups(count, scratch) {
            self.nearest_cells(count, scratch);
        }
    }

    /// The same by way of groups of cells, where there are any and every point counts; tells whether that was so. Cells of
    /// groups that are farther away may be missed.
    fn near_groups(&self, count: usize, scratch: &mut QueryScratch) -> bool {
        if !self.admits_all() {
            return false;
        }
        let Some((groups, enough)) = self
            .segment
            .groups()
            .and_then(|groups| Some((groups, groups.enough(count)?)))
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
        distances.resize(groups.len(), 0.0);
        garlic_simd::l2_squared_rows(&groups.centres, query, distances);
        order.clear();
        let numbered = (0..).zip(distances.iter());
        order.extend(numbered.map(|(at, d)| at_distance(at, *d)));
        order.sort_unstable_by_key(Estimate::key);
        cells.clear();
        for group in order.iter() {
            let (numbers, means) = groups.get(group.at as usize);
            distances.resize(numbers.len(), 0.0);
            garlic_simd::l2_squared_rows(means, query, distances);
            let numbered = numbers.iter().zip(distances.iter());
            cells.extend(numbered.map(|(at, d)| at_distance(*at, *d)));
            if cells.len() >= enough {
                break;
            }
        }
        scratch.scored = groups.len() + cells.len();
        if count < cells.len() {
            shrink(cells, count);
        }
        cells.sort_unstable_by_key(Estimate::key);
        true
    }

    /// Leaves the `count` cells with the smallest tempered score in `scratch`, best first, with the coordinates
    /// in their frames; returns how many cells were projected into for that.
    ///
    /// The score decides among about twice as many cells as are wanted, the nearest by plain distance.
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
            let score = (cell.estimate - self.relief(cell.at as usize, &scratch.y)).max(0.0);
            scored.push(Estimate {
                at: number as u32,
                estimate: score,
            });
            coordinates.extend_from_slice(&scratch.y);
        }
        shrink(&mut scored, count);
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

    /// Leaves the coordinates of the query in the frame of a probed cell in `scratch`; returns its squared
    /// distance from the cell's mean.
    pub(in crate::search) fn project(
        &self,
        number: usize,
        outside: f32,
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
        cell.estimate + outside
    }

    /// Turns inner products with a cell's axes into coordinates in its frame.
    pub(in crate::search) fn centre(&self, cell: usize, products: &mut [f32]) {
        for (y, o) in products.iter_mut().zip(self.origin(cell)) {
            *y -= o;
        }
    }

    /// Whether fewer points are allowed around the query, as far as the cells in `scratch` reach, than elsewhere: the
    /// neighbours of a query outside of what is allowed lie in any of the cells beyond.
    pub(super) fn is_sparse(&self, scratch: &QueryScratch) -> bool {
        let reach = scratch.cells.last().map_or(0.0, |cell| cell.estimate);
        let near = scratch
            .distances
            .iter()
            .enumerate()
            .filter(|(_, d)| **d <= reach);
        let (allowed, points) = near.fold((0, 0), |(allowed, points), (cell, _)| {
            let more = self.counted_in(cell);
            (allowed + more, points + self.points_in(cell))
        });
        let share = self.counted() as f64 / self.index.len().max(1) as f64;
        (allowed as f64) < SPARSE * share * points as f64
    }
}
