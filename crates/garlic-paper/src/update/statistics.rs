//! Statistics of points that are added to and taken from each other: count, mean and scatter.
//!
//! The scatter is the sum of the products of deviations from the mean, so that the covariance is the scatter over the count.
//! It has the structure of the cells: a packed lower triangle, a diagonal, or the trace alone.

use garlic_linalg::{Rows, covariance};

use crate::config::Covariance;
use crate::gaussians::{Factors, packed_len};

/// Count, mean and scatter of some points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statistics {
    structure: Covariance,
    pub(super) count: f64,
    pub(super) mean: Vec<f64>,
    pub(super) scatter: Vec<f64>,
}

impl Statistics {
    /// Those of `points`.
    pub(super) fn of(points: Rows<'_>, structure: Covariance) -> Self {
        let dim = points.dim();
        let mut all = Self::around(vec![0.0; dim], points.len() as f64, structure);
        if points.is_empty() {
            return all;
        }
        if structure == Covariance::Full {
            let (mean, covariance) = covariance(points);
            all.mean = mean;
            for i in 0..dim {
                let row = covariance[i * dim..=i * dim + i].iter();
                let packed = &mut all.scatter[packed_len(i)..];
                packed
                    .iter_mut()
                    .zip(row)
                    .for_each(|(s, c)| *s = c * all.count);
            }
            return all;
        }
        for row in points.iter() {
            let sums = all.mean.iter_mut().zip(row);
            sums.for_each(|(sum, x)| *sum += f64::from(*x));
        }
        all.mean.iter_mut().for_each(|sum| *sum /= all.count);
        let mut deviation = vec![0.0; dim];
        for row in points.iter() {
            for ((d, x), m) in deviation.iter_mut().zip(row).zip(&all.mean) {
                *d = f64::from(*x) - m;
            }
            all.add_products(&deviation, 1.0);
        }
        all
    }

    /// `count` points at one place, which have no scatter.
    pub(super) fn around(mean: Vec<f64>, count: f64, structure: Covariance) -> Self {
        let scatter = vec![0.0; Factors::stride(structure, mean.len())];
        Self {
            structure,
            count,
            mean,
            scatter,
        }
    }

    /// The statistics of these and the `other` points together.
    pub(super) fn merge(&mut self, other: &Self) {
        let count = self.count + other.count;
        if other.count == 0.0 {
            return;
        }
        let apart = self.apart(other);
        let weight = self.count * other.count / count;
        let moved = self.mean.iter_mut().zip(&apart);
        moved.for_each(|(m, a)| *m += a * other.count / count);
        let scatter = self.scatter.iter_mut().zip(&other.scatter);
        scatter.for_each(|(s, o)| *s += o);
        self.add_products(&apart, weight);
        self.count = count;
    }

    /// The statistics of these points without the `other` ones, which must be among them: the inverse of merging.
    pub(super) fn unmerge(&mut self, other: &Self) {
        let rest = self.count - other.count;
        if other.count == 0.0 {
            return;
        }
        if rest <= 0.0 {
            *self = Self::around(std::mem::take(&mut self.mean), 0.0, self.structure);
            return;
        }
        let apart = self.apart(other);
        let moved = self.mean.iter_mut().zip(&apart);
        moved.for_each(|(m, a)| *m -= a * other.count / rest);
        let scatter = self.scatter.iter_mut().zip(&other.scatter);
        scatter.for_each(|(s, o)| *s -= o);
        // The means of the others and of the rest are `count / rest` times as far apart.
        self.add_products(&apart, -other.count * self.count / rest);
        self.count = rest;
    }

    /// Sum of the squared deviations of all coordinates.
    pub(super) fn trace(&self) -> f64 {
        match self.structure {
            Covariance::Full => {
                let diagonal = (0..self.mean.len()).map(|i| self.scatter[packed_len(i) + i]);
                diagonal.sum()
            }
            Covariance::Diagonal | Covariance::Isotropic => self.scatter.iter().sum(),
        }
    }

    /// From the mean of these points to that of the others.
    fn apart(&self, other: &Self) -> Vec<f64> {
        let means = other.mean.iter().zip(&self.mean);
        means.map(|(o, m)| o - m).collect()
    }

    /// Adds `weight` times the products of the coordinates of `deviation` to the scatter.
    fn add_products(&mut self, deviation: &[f64], weight: f64) {
        match self.structure {
            Covariance::Full => {
                for (i, d) in deviation.iter().enumerate() {
                    let row = &mut self.scatter[packed_len(i)..packed_len(i + 1)];
                    let products = row.iter_mut().zip(deviation);
                    products.for_each(|(s, e)| *s += weight * d * e);
                }
            }
            Covariance::Diagonal => {
                let squares = self.scatter.iter_mut().zip(deviation);
                squares.for_each(|(s, d)| *s += weight * d * d);
            }
            Covariance::Isotropic => {
                self.scatter[0] += weight * deviation.iter().map(|d| d * d).sum::<f64>();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRUCTURES: [Covariance; 3] = [
        Covariance::Full,
        Covariance::Diagonal,
        Covariance::Isotropic,
    ];

    fn of(values: &[f32], structure: Covariance) -> Statistics {
        Statistics::of(Rows::new(values, 2).unwrap(), structure)
    }

    /// Two points, (0, 0) and (2, 4); two more, (4, 0) and (6, 8); all four.
    const FIRST: [f32; 4] = [0.0, 0.0, 2.0, 4.0];
    const SECOND: [f32; 4] = [4.0, 0.0, 6.0, 8.0];
    const ALL: [f32; 8] = [0.0, 0.0, 2.0, 4.0, 4.0, 0.0, 6.0, 8.0];

    #[test]
    fn merged_and_unmerged_statistics_are_those_computed_by_hand() {
        // Deviations of the first from (1, 2): (-1, -2), (1, 2). Of the second from (5, 4): (-1, -4), (1, 4).
        // Of all from (3, 3): (-3, -3), (-1, 1), (1, -3), (3, 5).
        for (structure, first, second, all) in [
            (
                Covariance::Full,
                vec![2.0, 4.0, 8.0],
                vec![2.0, 8.0, 32.0],
                vec![20.0, 20.0, 44.0],
            ),
            (
                Covariance::Diagonal,
                vec![2.0, 8.0],
                vec![2.0, 32.0],
                vec![20.0, 44.0],
            ),
            (Covariance::Isotropic, vec![10.0], vec![34.0], vec![64.0]),
        ] {
            let (one, two) = (of(&FIRST, structure), of(&SECOND, structure));
            assert_eq!((&one.mean[..], &one.scatter), (&[1.0, 2.0][..], &first));
            assert_eq!((&two.mean[..], &two.scatter), (&[5.0, 4.0][..], &second));
            let mut both = one.clone();
            both.merge(&two);
            assert_eq!((both.count, &both.mean[..]), (4.0, &[3.0, 3.0][..]));
            assert_eq!(both.scatter, all);
            assert_eq!(both.trace(), 64.0);
            assert_eq!(both, of(&ALL, structure));
            both.unmerge(&two);
            assert_eq!(both, one);
        }
    }

    #[test]
    fn nothing_changes_nothing_and_everything_leaves_nothing() {
        for structure in STRUCTURES {
            let mut points = of(&FIRST, structure);
            points.merge(&of(&[], structure));
            points.unmerge(&of(&[], structure));
            assert_eq!(points, of(&FIRST, structure));
            points.unmerge(&of(&FIRST, structure));
            assert_eq!((points.count, points.trace()), (0.0, 0.0));
            points.merge(&of(&SECOND, structure));
            assert_eq!(points, of(&SECOND, structure));
        }
    }
}
