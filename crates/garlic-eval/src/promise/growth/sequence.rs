//! The points of a life in their order, and the queries beside them.

use std::ops::Range;

use garlic_ann::Metric;
use garlic_linalg::{Rows, permutation};

use super::{Life, Order};
use crate::error::Result;

/// Queries of a measurement; fewer while there are fewer points.
const QUERIES: usize = 300;
/// How far the mean moves in all, in median deviations of the values.
const DRIFT: f64 = 10.0;
// Random streams.
const SHUFFLE: u64 = 11;
const HELD_OUT: u64 = 12;

/// Points in the order in which they arrive; queries come from the same places of the sequence.
pub(super) struct Sequence {
    pub(super) dim: usize,
    points: Vec<f32>,
    /// The i-th was drawn beside the i-th point and is never added.
    held_out: Vec<f32>,
}

impl Sequence {
    pub(super) fn new(life: &Life) -> Self {
        let rows = 2 * life.points;
        let (values, dim) = (life.kind.draw)(rows, life.seed);
        let mut order = permutation(rows, life.seed, SHUFFLE);
        if life.order == Order::Sorted {
            let first = |row: &u32| values[*row as usize * dim];
            order.sort_by(|a, b| first(a).total_cmp(&first(b)));
        }
        let drift = match life.order {
            Order::Drifting => DRIFT * deviation(&values),
            Order::Shuffled | Order::Sorted => 0.0,
        };
        let mut halves = [Vec::new(), Vec::new()];
        for (place, row) in order.into_iter().enumerate() {
            let moved = (drift * place as f64 / rows as f64) as f32;
            let vector = &values[row as usize * dim..][..dim];
            halves[place % 2].extend(vector.iter().map(|v| v + moved));
        }
        let [points, held_out] = halves;
        Self {
            dim,
            points,
            held_out,
        }
    }

    /// Whether an index of the life's metric takes the points: the cosine metric refuses vectors of zeros.
    pub(super) fn is_defined(&self, metric: Metric) -> bool {
        let mut rows = self.points.chunks(self.dim);
        let mut queries = self.held_out.chunks(self.dim);
        let is_zero = |row: &[f32]| row.iter().all(|v| *v == 0.0);
        metric != Metric::Cosine || !(rows.any(is_zero) || queries.any(is_zero))
    }

    pub(super) fn rows(&self, range: Range<usize>) -> Result<Rows<'_>> {
        let values = &self.points[range.start * self.dim..range.end * self.dim];
        Ok(Rows::new(values, self.dim)?)
    }

    /// Queries from the places of the first `added` points.
    pub(super) fn queries(&self, added: usize, seed: u64) -> Vec<f32> {
        let mut places = permutation(added, seed, HELD_OUT + ((added as u64) << 8));
        places.truncate(QUERIES);
        let row = |place: u32| &self.held_out[place as usize * self.dim..][..self.dim];
        places.into_iter().flat_map(row).copied().collect()
    }
}

/// The median distance of a value from the median: a scale that outliers do not move.
fn deviation(values: &[f32]) -> f64 {
    let median = |mut values: Vec<f32>| {
        let half = values.len() / 2;
        *values.select_nth_unstable_by(half, f32::total_cmp).1
    };
    let centre = median(values.to_vec());
    f64::from(median(values.iter().map(|v| (v - centre).abs()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    fn life(order: Order) -> Life {
        Life {
            kind: hostile::kind("gaussian-8").unwrap(),
            metric: Metric::Euclidean,
            order,
            chunk: 10,
            points: 400,
            removes: false,
            seed: 3,
        }
    }

    fn means(values: &[f32]) -> [f64; 2] {
        let mean = |half: &[f32]| half.iter().map(|v| f64::from(*v)).sum::<f64>();
        let (first, last) = values.split_at(values.len() / 2);
        [mean(first), mean(last)].map(|sum| 2.0 * sum / values.len() as f64)
    }

    #[test]
    fn points_arrive_in_their_order() {
        let sorted = Sequence::new(&life(Order::Sorted));
        let firsts: Vec<f32> = sorted.points.iter().step_by(8).copied().collect();
        assert!(firsts.is_sorted());
        let [first, last] = means(&Sequence::new(&life(Order::Shuffled)).points);
        assert!((last - first).abs() < 0.3, "{first} {last}");
        let [first, last] = means(&Sequence::new(&life(Order::Drifting)).points);
        assert!(last - first > 2.0, "{first} {last}");
    }

    #[test]
    fn queries_come_from_the_places_of_the_points_so_far() {
        for order in Order::ALL {
            let sequence = Sequence::new(&life(order));
            assert_eq!(sequence.points.len(), sequence.held_out.len());
            let queries = sequence.queries(50, 3);
            assert_eq!(queries.len(), 50 * 8);
            let places = sequence.held_out[..50 * 8].chunks(8);
            assert!(
                places
                    .clone()
                    .all(|row| queries.chunks(8).any(|q| q == row))
            );
            assert!(
                sequence
                    .points
                    .chunks(8)
                    .all(|row| queries.chunks(8).all(|q| q != row))
            );
            assert_eq!(sequence.queries(400, 3).len(), QUERIES * 8);
        }
    }
}
