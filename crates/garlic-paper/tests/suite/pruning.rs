//! Pruned work gives what full work gives: nearest cells, covering cells and routing.

use garlic_linalg::{random_stream, uniform_unit};
use garlic_paper::config::Covariance;
use garlic_paper::gaussians::{Factors, Gaussians, assign, packed_len};
use garlic_paper::{Cancel, Config, GaussianIndex, Matrix, Rows, Search};

/// Distance of one point to one cell in f64.
fn mahalanobis(model: &Gaussians, x: &[f32], cell: usize) -> f64 {
    let (mean, factor, dim) = (model.mean(cell), model.factor(cell), model.dim());
    let entry = |i: usize, j: usize| match model.factors {
        Factors::Full(_) => f64::from(factor[i * (i + 1) / 2 + j]),
        Factors::Diagonal(_) => f64::from(factor[i]),
        Factors::Isotropic(_) => f64::from(factor[0]),
    };
    let full = matches!(model.factors, Factors::Full(_));
    let mut y = vec![0.0f64; dim];
    for i in 0..dim {
        let sum: f64 = if full {
            (0..i).map(|j| entry(i, j) * y[j]).sum()
        } else {
            0.0
        };
        y[i] = (f64::from(x[i]) - f64::from(mean[i]) - sum) / entry(i, i);
    }
    y.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn random_model(dim: usize, cells: usize, covariance: Covariance, seed: u64) -> Gaussians {
    let mut rng = random_stream(seed, 2);
    let mut draw = |scale: f64| (scale * (2.0 * uniform_unit(&mut rng) - 1.0)) as f32;
    let means = (0..cells * dim)
        .map(|i| draw(3.0) / (1.0 + (i % dim) as f32).sqrt())
        .collect();
    let values = match covariance {
        Covariance::Full => (0..cells)
            .flat_map(|_| {
                let mut l = vec![0.0; packed_len(dim)];
                for i in 0..dim {
                    for j in 0..i {
                        l[i * (i + 1) / 2 + j] = draw(0.15);
                    }
                    l[i * (i + 1) / 2 + i] = 1.0 + draw(0.6);
                }
                l
            })
            .collect(),
        Covariance::Diagonal => (0..cells * dim).map(|_| 1.0 + draw(0.6)).collect(),
        _ => (0..cells).map(|_| 1.0 + draw(0.6)).collect(),
    };
    Gaussians {
        means: Matrix::from_vec(means, dim).unwrap(),
        factors: Factors::from_values(covariance, values),
    }
}

fn random_points(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 3);
    (0..n * dim)
        .map(|i| (6.0 * uniform_unit(&mut rng) - 3.0) as f32 / (1.0 + (i % dim) as f32).sqrt())
        .collect()
}

#[test]
fn assignment_equals_brute_force() {
    for covariance in [
        Covariance::Full,
        Covariance::Diagonal,
        Covariance::Isotropic,
    ] {
        for (dim, cells, n) in [
            (1, 3, 50),
            (3, 1, 40),
            (7, 20, 300),
            (40, 33, 500),
            (97, 12, 200),
        ] {
            let model = random_model(dim, cells, covariance, dim as u64);
            let data = random_points(n, dim, 5);
            let rows = Rows::new(&data, dim).unwrap();
            // A radius that covers some points once, some twice, some not at all.
            let mut nearest: Vec<f64> = rows
                .iter()
                .map(|x| {
                    (0..cells)
                        .map(|c| mahalanobis(&model, x, c))
                        .fold(f64::INFINITY, f64::min)
                })
                .collect();
            nearest.sort_by(f64::total_cmp);
            let tau = (nearest[n * 2 / 3] * 1.02) as f32;
            let assignment = assign(rows, &model, tau, &Cancel::default()).unwrap();
            for (p, x) in rows.iter().enumerate() {
                let label = format!("{covariance:?} d {dim} K {cells} point {p}");
                let all: Vec<f64> = (0..cells).map(|c| mahalanobis(&model, x, c)).collect();
                let best = all.iter().copied().fold(f64::INFINITY, f64::min);
                // Ties within rounding may go either way; anything else is an error.
                let chosen = all[assignment.nearest[p] as usize];
                assert!(chosen <= best * (1.0 + 1e-5), "{label}: {chosen} {best}");
                assert!(
                    (f64::from(assignment.distance[p]) - chosen).abs() <= 1e-4 * chosen.max(1e-3),
                    "{label}"
                );
                for (c, distance) in all.iter().enumerate() {
                    let covered = assignment.covering(p).contains(&(c as u32));
                    let clear = (distance - f64::from(tau)).abs() > 1e-4 * distance;
                    assert!(
                        !clear || covered == (*distance <= f64::from(tau)),
                        "{label} cell {c}: {distance} {tau}"
                    );
                }
            }
            assert!(assignment.work.done > 0);
        }
    }
}

#[test]
fn pruning_saves_most_of_the_work_on_structured_data() {
    let model = random_model(128, 60, Covariance::Full, 1);
    let data = random_points(2000, 128, 6);
    let assignment = assign(
        Rows::new(&data, 128).unwrap(),
        &model,
        0.5,
        &Cancel::default(),
    )
    .unwrap();
    let share = assignment.work.done as f64 / assignment.work.full as f64;
    assert!(share < 0.9, "{share}");
}

#[test]
fn routing_visits_the_nearest_cells() {
    let dim = 48;
    let data = random_points(1500, dim, 7);
    let rows = Rows::new(&data, dim).unwrap();
    for covariance in [
        Covariance::Full,
        Covariance::Diagonal,
        Covariance::Isotropic,
    ] {
        let mut config = Config::default();
        config.init.covariance = covariance;
        config.init.initial_cells = 30;
        config.training.epochs = 4;
        config.training.batch = 500;
        config.training.warmup_epochs = 1;
        config.training.factor_rate = [1e-3, 5e-2, 5e-2];
        let builder = GaussianIndex::builder().config(config).threads(2);
        let index = builder.build(rows).unwrap();
        let model = index.model();
        let queries = random_points(60, dim, 8);
        let mut mapped = vec![0.0; dim];
        for query in queries.chunks_exact(dim) {
            index.transform().apply(query, &mut mapped);
            let mut order: Vec<(f64, usize)> = (0..index.cells())
                .map(|c| (mahalanobis(model, &mapped, c), c))
                .collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
            for probes in [1, 3, 10, 29] {
                let route = index.route(query, probes).unwrap();
                assert_eq!(route.len(), probes.min(index.cells()));
                let limit = order[probes - 1].0;
                for (rank, cell) in route.iter().enumerate() {
                    let distance = mahalanobis(model, &mapped, *cell as usize);
                    assert!(
                        distance <= limit * (1.0 + 1e-5),
                        "{covariance:?} {distance} {limit}"
                    );
                    assert!((distance - order[rank].0).abs() <= 1e-4 * distance, "order");
                }
            }
        }
        let answer = index
            .search(&queries[..dim], &Search::new(1).probes(2))
            .unwrap();
        assert!(answer.stats.routing_madds > 0);
    }
}
