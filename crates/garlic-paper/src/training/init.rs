//! The first cells: where their means lie and how wide they are.

use garlic_linalg::{
    Matrix, Rows, farthest_points, kmeans_plus_plus, lloyd, permutation, random_rows,
    random_stream, uniform_unit,
};
use rayon::prelude::*;

use crate::config::{Config, Covariance, Init};
use crate::gaussians::{Factors, Gaussians};
use crate::streams;

/// Lloyd steps of the refined start.
const LLOYD_STEPS: usize = 20;

/// Places `initial_cells` cells (fewer when there are fewer distinct points). Also returns how many scales had to be
/// raised to the floor.
pub(super) fn place(points: Rows<'_>, config: &Config) -> (Gaussians, usize) {
    let init = &config.init;
    let mut ids = permutation(points.len(), config.seed, streams::INIT_SAMPLE);
    ids.truncate(init.init_sample.max(init.initial_cells));
    ids.sort_unstable();
    let sample = Matrix::gather(points, &ids);
    let rows = sample.as_rows();
    let seed = config.seed ^ streams::INIT_MEANS;
    let cells = init.initial_cells;
    let means = match init.init {
        Init::KmeansPlusPlus => kmeans_plus_plus(rows, cells, seed),
        Init::Kmeans => lloyd(rows, kmeans_plus_plus(rows, cells, seed), LLOYD_STEPS).centres,
        Init::FarthestPoint => farthest_points(rows, cells, seed),
        Init::Random => random_rows(rows, cells, seed),
    };

    let mut floored = 0;
    let mut scale = |spacing: f64| {
        let scale = spacing.ln();
        if scale >= init.init_scale_floor {
            return scale as f32;
        }
        floored += 1;
        init.init_scale_floor as f32
    };
    let spacings = spacings(rows, &means, init.init_neighbours).into_iter();
    let scales: Vec<f32> = spacings.map(&mut scale).collect();
    let factors = factors(&scales, points.dim(), config);
    (Gaussians { means, factors }, floored)
}

/// Mean distance of every mean to its nearest others; for a single one, that of the points to it.
fn spacings(rows: Rows<'_>, means: &Matrix, neighbours: usize) -> Vec<f64> {
    let centres = means.as_rows();
    if centres.len() == 1 {
        let total: f64 = rows
            .iter()
            .map(|r| f64::from(garlic_simd::l2_squared(r, centres.row(0))).sqrt())
            .sum();
        return vec![total / rows.len() as f64];
    }
    (0..centres.len())
        .into_par_iter()
        .map(|i| {
            let mut others: Vec<f32> = (0..centres.len())
                .filter(|j| *j != i)
                .map(|j| garlic_simd::l2_squared(centres.row(i), centres.row(j)))
                .collect();
            others.sort_unstable_by(f32::total_cmp);
            others.truncate(neighbours);
            others.iter().map(|d| f64::from(*d).sqrt()).sum::<f64>() / others.len() as f64
        })
        .collect()
}

/// Factors close to a multiple of the identity; the entries below the diagonal break its symmetry.
fn factors(scales: &[f32], dim: usize, config: &Config) -> Factors {
    match config.init.covariance {
        Covariance::Isotropic => Factors::Isotropic(scales.to_vec()),
        Covariance::Diagonal => Factors::Diagonal(
            scales
                .iter()
                .flat_map(|s| std::iter::repeat_n(*s, dim))
                .collect(),
        ),
        Covariance::Full => {
            let stride = Factors::stride(Covariance::Full, dim);
            let mut values = vec![0.0; stride * scales.len()];
            values
                .par_chunks_mut(stride)
                .zip(scales)
                .enumerate()
                .for_each(|(cell, (factor, scale))| {
                    let mut rng = random_stream(config.seed ^ streams::INIT_FACTORS, cell as u64);
                    let mut entries = factor.iter_mut();
                    for i in 0..dim {
                        for entry in entries.by_ref().take(i) {
                            let u = 0.01 * uniform_unit(&mut rng);
                            *entry = (2.0 / (1.0 + (-u).exp()) - 1.0) as f32;
                        }
                        if let Some(diagonal) = entries.next() {
                            *diagonal = *scale;
                        }
                    }
                });
            Factors::Full(values)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Vec<f32> {
        (0..400)
            .flat_map(|i| [(i % 20) as f32 * 5.0, (i / 20) as f32 * 5.0])
            .collect()
    }

    #[test]
    fn every_start_gives_the_cells_asked_for() {
        let data = grid();
        let rows = Rows::new(&data, 2).unwrap();
        for init in [
            Init::KmeansPlusPlus,
            Init::Kmeans,
            Init::FarthestPoint,
            Init::Random,
        ] {
            let mut config = Config::default();
            (config.init.init, config.init.initial_cells) = (init, 12);
            let (model, floored) = place(rows, &config);
            assert_eq!(model.len(), 12, "{init:?}");
            assert_eq!(floored, 0);
            for cell in 0..12 {
                let [a, below, b] = *model.factor(cell) else {
                    panic!("three values")
                };
                assert_eq!(a, b);
                assert!(
                    a >= 5f32.ln() && (0.0..0.005).contains(&below),
                    "{init:?} {a} {below}"
                );
            }
        }
    }

    #[test]
    fn close_means_get_the_floor_and_are_counted() {
        let data: Vec<f32> = grid().iter().map(|v| v * 0.01).collect();
        let mut config = Config::default();
        config.init.initial_cells = 5;
        config.init.covariance = Covariance::Diagonal;
        let (model, floored) = place(Rows::new(&data, 2).unwrap(), &config);
        assert_eq!(floored, 5);
        assert!(model.factors.values().iter().all(|v| *v == 0.1));
    }

    #[test]
    fn duplicates_give_one_cell() {
        let data = vec![2.0; 30];
        let (model, floored) = place(Rows::new(&data, 3).unwrap(), &Config::default());
        assert_eq!((model.len(), floored), (1, 1));
    }
}
