//! How near the nearest cell of a point is, and how many cells hold it.

use garlic_ann::model::{Tempered, assign};
use garlic_ann::{Cancel, Matrix};
use garlic_linalg::{Rows, Trans, gemm};
use rayon::prelude::*;

use super::shapes::Shapes;
use crate::error::Result;

/// Points that one task handles.
const CHUNK: usize = 64;
/// Most multiply-adds, counted as if nothing were pruned; fewer points are taken when this would be passed.
const MOST_WORK: f64 = 8e11;
/// Points that are taken whatever they cost.
const LEAST_POINTS: usize = 500;

/// Cells around some points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cover {
    /// Mahalanobis distance to the nearest cell.
    pub(super) nearest: Vec<f32>,
    /// Number of cells within the radius.
    pub(super) count: Vec<usize>,
    /// Number of cells within the tau of the configuration.
    pub(super) within_tau: Vec<usize>,
}

/// How many of `points` can be covered in a bounded time.
pub(super) fn affordable(shapes: &Shapes<'_>, points: usize) -> usize {
    let dim = shapes.dim() as f64;
    let one = match shapes {
        Shapes::Published(model) => model.stride() as f64 + dim,
        Shapes::Tempered { model, .. } => (model.rank() as f64 + 2.0) * dim,
    };
    let most = MOST_WORK / (one * shapes.len().max(1) as f64);
    points.min((most as usize).max(LEAST_POINTS))
}

/// Nearest and covering cells of every point; `points` are in the space of the model. Runs in rayon's current pool.
pub(super) fn cover(points: Rows<'_>, shapes: &Shapes<'_>, radius: f64, tau: f64) -> Result<Cover> {
    match shapes {
        Shapes::Published(model) => {
            // The larger radius decides which cells are followed to their end.
            let found = assign(points, model, radius as f32, &Cancel::default())?;
            let count: Vec<usize> = (0..points.len()).map(|p| found.covering(p).len()).collect();
            Ok(Cover {
                within_tau: count.clone(),
                nearest: found.distance,
                count,
            })
        }
        Shapes::Tempered { model, .. } => Ok(cover_tempered(points, model, shapes, radius, tau)),
    }
}

fn cover_tempered(
    points: Rows<'_>,
    model: &Tempered,
    shapes: &Shapes<'_>,
    radius: f64,
    tau: f64,
) -> Cover {
    let dim = model.dim();
    let cells: Vec<Prepared<'_>> = (0..model.len())
        .map(|cell| Prepared::of(model, shapes, cell))
        .collect();
    let limits = [(radius * radius) as f32, (tau * tau) as f32];
    let parts: Vec<Cover> = points
        .data()
        .par_chunks(CHUNK * dim)
        .map(|rows| {
            let count = rows.len() / dim;
            let mut part = Cover {
                nearest: vec![f32::INFINITY; count],
                count: vec![0; count],
                within_tau: vec![0; count],
            };
            let mut scratch = Matrix::zeros(count, dim);
            for cell in &cells {
                cell.distances(rows, dim, &mut scratch, |p, squared| {
                    // A distance that is no number is one to a cell out of reach.
                    part.nearest[p] = part.nearest[p].min(squared.sqrt());
                    part.count[p] += usize::from(squared <= limits[0]);
                    part.within_tau[p] += usize::from(squared <= limits[1]);
                });
            }
            part
        })
        .collect();
    let mut all = Cover::default();
    for part in parts {
        all.nearest.extend(part.nearest);
        all.count.extend(part.count);
        all.within_tau.extend(part.within_tau);
    }
    all
}

/// A tempered cell, ready for many points.
struct Prepared<'a> {
    mean: &'a [f32],
    axes: Vec<f32>,
    /// What the square along each axis counts beyond its part of the whole square.
    weights: Vec<f32>,
    /// One over the residual variance.
    residual: f32,
}

impl<'a> Prepared<'a> {
    fn of(model: &'a Tempered, shapes: &Shapes<'_>, cell: usize) -> Self {
        let low = shapes.low_rank(cell);
        Self {
            mean: model.mean(cell),
            axes: low.axes.concat(),
            weights: low.variances.iter().map(|v| (1.0 / v) as f32).collect(),
            residual: (1.0 / low.residual) as f32,
        }
    }

    /// Squared Mahalanobis distances of the rows.
    fn distances(
        &self,
        rows: &[f32],
        dim: usize,
        centred: &mut Matrix,
        mut found: impl FnMut(usize, f32),
    ) {
        let (count, rank) = (rows.len() / dim, self.weights.len());
        let centred = centred.as_mut_slice();
        for (out, row) in centred.chunks_exact_mut(dim).zip(rows.chunks_exact(dim)) {
            out.iter_mut()
                .zip(row)
                .zip(self.mean)
                .for_each(|((o, x), m)| *o = x - m);
        }
        let mut along = vec![0.0; count * rank];
        if rank > 0 {
            let (no, yes) = (Trans::No, Trans::Yes);
            gemm(
                &mut along, centred, no, &self.axes, yes, count, rank, dim, 1.0, 0.0,
            );
        }
        for (p, row) in centred.chunks_exact(dim).enumerate() {
            let (mut kept, mut squared) = (0.0, 0.0);
            for (y, w) in along[p * rank..(p + 1) * rank].iter().zip(&self.weights) {
                kept += y * y;
                squared += y * y * w;
            }
            let rest = (garlic_simd::dot(row, row) - kept).max(0.0);
            found(p, squared + rest * self.residual);
        }
    }
}

#[cfg(test)]
mod tests {
    use garlic_ann::config::Covariance;
    use garlic_linalg::{random_stream, uniform_unit};

    use super::super::shapes::tests::{gaussians, tempered_index};
    use super::*;

    /// The same by a plain loop over points and cells, in double precision.
    fn naive(points: Rows<'_>, shapes: &Shapes<'_>, radius: f64) -> Vec<(f64, usize)> {
        let one = |point: &[f32], cell: usize| {
            let pairs = point.iter().zip(shapes.mean(cell));
            let v: Vec<f64> = pairs.map(|(x, m)| f64::from(*x) - f64::from(*m)).collect();
            shapes
                .whiten(cell, &v)
                .iter()
                .map(|y| y * y)
                .sum::<f64>()
                .sqrt()
        };
        let all = |point| (0..shapes.len()).map(move |cell| one(point, cell));
        let nearest = |point| all(point).fold(f64::INFINITY, f64::min);
        points
            .iter()
            .map(|point| (nearest(point), all(point).filter(|d| *d <= radius).count()))
            .collect()
    }

    fn compare(points: Rows<'_>, shapes: &Shapes<'_>, radius: f64) {
        let found = cover(points, shapes, radius, radius).unwrap();
        let expected = naive(points, shapes, radius);
        for (p, (nearest, count)) in expected.into_iter().enumerate() {
            assert!(
                (f64::from(found.nearest[p]) / nearest - 1.0).abs() < 1e-3,
                "{nearest}"
            );
            assert_eq!((found.count[p], found.within_tau[p]), (count, count));
        }
        assert!(found.count.iter().any(|c| *c > 0) && found.count.contains(&0));
    }

    #[test]
    fn gaussians_agree_with_a_naive_loop() {
        let (dim, cells) = (4, 5);
        let mut rng = random_stream(1, 1);
        let mut next = || uniform_unit(&mut rng) as f32 * 4.0 - 2.0;
        let means = (0..cells * dim).map(|_| next()).collect();
        let mut factors: Vec<f32> = (0..cells * 10).map(|_| next() * 0.2).collect();
        for factor in factors.chunks_exact_mut(10) {
            [0, 2, 5, 9].iter().for_each(|i| factor[*i] = 0.5);
        }
        let model = gaussians(Covariance::Full, dim, means, factors);
        let points: Vec<f32> = (0..200 * dim).map(|_| next()).collect();
        compare(
            Rows::new(&points, dim).unwrap(),
            &Shapes::Published(&model),
            3.0,
        );
    }

    #[test]
    fn tempered_cells_agree_with_a_naive_loop() {
        let index = tempered_index();
        let shapes = Shapes::of(&index, 1.0).unwrap();
        let sample = super::super::sample::Sample::of(&index, 150, 3).unwrap();
        compare(sample.placed.as_rows(), &shapes, 3.0);
    }

    #[test]
    fn large_models_are_asked_for_fewer_points() {
        let model = gaussians(Covariance::Isotropic, 2, vec![0.0; 2], vec![1.0]);
        assert_eq!(affordable(&Shapes::Published(&model), 20_000), 20_000);
        // 2000 cells of half a million values each.
        let wide = gaussians(Covariance::Full, 1000, vec![0.0; 2_000_000], Vec::new());
        let few = affordable(&Shapes::Published(&wide), 20_000);
        assert!((500..1000).contains(&few), "{few}");
    }
}
