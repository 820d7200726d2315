//! Visiting every cell and every bin finds exactly what brute force finds, whatever the data look like; and
//! training ends with a bounded number of cells on all of them.

use crate::common::{brute_force, config};
use garlic_linalg::{random_stream, uniform_below, uniform_unit};
use garlic_paper::config::{Covariance, Init, Normalize, SplitMethod};
use garlic_paper::{Config, GaussianIndex, Rows, Search};
use proptest::prelude::*;

/// Short training with every kind of refinement in it.
fn quick() -> Config {
    config(&[
        ("initial_cells", "6"),
        ("epochs", "12"),
        ("batch", "64"),
        ("warmup_epochs", "2"),
        ("refine_every", "3"),
        ("refine_quiet", "2"),
        ("prune_every", "4"),
        ("split_threshold", "0.1"),
        ("clone_threshold", "0.02"),
        ("max_cells", "40"),
        ("mean_rate", "[1e-3, 5e-2, 1e-2]"),
        ("factor_rate", "[1e-3, 2e-2, 1e-2]"),
        ("early_stop", "false"),
    ])
}

/// The same with a change.
fn with(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = quick();
    change(&mut config);
    config
}

fn check(data: &[f32], dim: usize, config: Config, label: &str) {
    let rows = Rows::new(data, dim).unwrap();
    let cap = config.refinement.max_cells;
    let index = GaussianIndex::builder()
        .config(config)
        .threads(2)
        .build(rows)
        .unwrap();
    assert_eq!(index.len(), rows.len(), "{label}");
    assert!(
        (1..=cap).contains(&index.cells()),
        "{label}: {} cells",
        index.cells()
    );
    let mut rng = random_stream(9, 9);
    for case in 0..12 {
        let mut query = rows.row(uniform_below(&mut rng, rows.len())).to_vec();
        if case % 2 == 1 {
            query
                .iter_mut()
                .for_each(|v| *v += 3.0 * (uniform_unit(&mut rng) as f32 - 0.5));
        }
        for k in [1, 10, rows.len() + 5] {
            let search = Search::new(k).probes(usize::MAX).bins(1.0);
            let answer = index.search(&query, &search).unwrap();
            let got: Vec<(f32, u64)> = answer.hits.iter().map(|h| (h.distance, h.id)).collect();
            assert_eq!(got, brute_force(data, &query, k), "{label} k {k}");
            assert_eq!(
                answer.stats.candidates,
                rows.len() as u64,
                "{label}: each point once"
            );
            assert_eq!(answer.stats.cells_scored, index.cells() as u64, "{label}");
        }
    }
}

fn random(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 1);
    (0..n * dim)
        .map(|_| 10.0 * uniform_unit(&mut rng) as f32)
        .collect()
}

#[test]
fn ordinary_data() {
    check(&random(500, 5, 1), 5, quick(), "uniform");
    let clusters: Vec<f32> = random(400, 8, 2)
        .chunks(8)
        .enumerate()
        .flat_map(|(i, r)| {
            r.iter()
                .map(|v| v * 0.1 + (i % 5) as f32 * 20.0)
                .collect::<Vec<_>>()
        })
        .collect();
    check(&clusters, 8, quick(), "clusters");
}

#[test]
fn every_structure_and_option() {
    let data = random(300, 6, 3);
    for covariance in [
        Covariance::Full,
        Covariance::Diagonal,
        Covariance::Isotropic,
    ] {
        for (normalize, init) in [
            (Normalize::Global, Init::Kmeans),
            (Normalize::PerCoordinate, Init::FarthestPoint),
            (Normalize::None, Init::Random),
        ] {
            let config = with(|c| {
                (c.init.covariance, c.data.normalize, c.init.init) = (covariance, normalize, init);
            });
            check(
                &data,
                6,
                config,
                &format!("{covariance:?} {normalize:?} {init:?}"),
            );
        }
    }
    let config = with(|c| {
        c.data.rotate = false;
        c.refinement.split_method = SplitMethod::TwoMeans;
        c.training.adam_reset = true;
    });
    check(&data, 6, config, "no rotation");
    for rank in [0, 1, 2, 4, 6, 9] {
        check(
            &data,
            6,
            with(|c| (c.bins.rank, c.bins.angular_steps) = (rank, 2)),
            &format!("rank {rank}"),
        );
    }
    check(
        &data,
        6,
        with(|c| c.data.train_fraction = 0.05),
        "5 % training",
    );
    check(&data, 6, with(|c| c.training.epochs = 0), "no epochs");
}

#[test]
fn degenerate_data() {
    check(&[1.0, 2.0, 3.0], 3, quick(), "a single point");
    check(&random(4, 3, 4), 3, quick(), "fewer points than cells");
    check(&random(200, 1, 5), 1, quick(), "one dimension");
    check(&vec![2.5; 300], 3, quick(), "identical points");
    check(&vec![0.0; 64], 1, quick(), "zeros in one dimension");

    let mut constant = random(200, 4, 6);
    constant
        .chunks_mut(4)
        .for_each(|r| (r[1], r[3]) = (7.0, -1.0));
    check(&constant, 4, quick(), "constant columns");
    let per_coordinate = with(|c| c.data.normalize = Normalize::PerCoordinate);
    check(
        &constant,
        4,
        per_coordinate,
        "constant columns, per coordinate",
    );

    let masses: Vec<f32> = (0..300)
        .flat_map(|i| vec![(i % 3) as f32 * 50.0; 4])
        .collect();
    check(&masses, 4, quick(), "clusters of identical points");

    let mut duplicates = random(100, 5, 7);
    duplicates.extend_from_within(..);
    duplicates.extend_from_within(..250);
    check(&duplicates, 5, quick(), "duplicates");

    let line: Vec<f32> = (0..200)
        .flat_map(|i| [i as f32, 2.0 * i as f32, -(i as f32)])
        .collect();
    check(&line, 3, quick(), "points on a line");
    let tiny: Vec<f32> = random(150, 4, 8).iter().map(|v| v * 1e-12).collect();
    check(&tiny, 4, quick(), "tiny values");
    let huge: Vec<f32> = random(150, 4, 8).iter().map(|v| v * 1e13).collect();
    check(&huge, 4, quick(), "huge values");
    let mut outlier = random(200, 3, 9);
    outlier[0] = 1e9;
    check(&outlier, 3, quick(), "an outlier");
}

/// Few unless asked for more: every case trains an index.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn small_random_sets(
        dim in 1usize..7,
        seed in any::<u64>(),
        values in prop::collection::vec(-3i8..3, 1..400),
        initial_cells in 1usize..9,
    ) {
        // Small integers: many ties and duplicates.
        let rows = (values.len() / dim).max(1);
        let data: Vec<f32> = values.iter().cycle().take(rows * dim).map(|v| f32::from(*v)).collect();
        let config = with(|c| (c.seed, c.init.initial_cells, c.training.epochs) = (seed, initial_cells, 7));
        check(&data, dim, config, "integers");
    }
}
