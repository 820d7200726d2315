//! Visiting every cell and every bin finds exactly what brute force finds, whatever the data look like; and
//! training ends with a bounded number of cells on all of them.

use garlic_ann::config::{Covariance, Init, Normalize, SplitMethod, Store};
use garlic_ann::{Config, Index, Preset, Rows, Search};
use garlic_linalg::{random_stream, uniform_below, uniform_unit};
use proptest::prelude::*;

/// Short training with every kind of refinement in it.
fn quick() -> Config {
    Config {
        initial_cells: 6,
        epochs: 12,
        batch: 64,
        warmup_epochs: 2,
        refine_every: 3,
        refine_quiet: 2,
        prune_every: 4,
        split_threshold: 0.1,
        clone_threshold: 0.02,
        max_cells: 40,
        mean_rate: [1e-3, 5e-2, 1e-2],
        factor_rate: [1e-3, 2e-2, 1e-2],
        early_stop: false,
        ..Config::preset(Preset::Paper)
    }
}

fn brute_force(data: &[f32], dim: usize, query: &[f32], k: usize) -> Vec<(f32, u64)> {
    let mut all: Vec<(f32, u64)> = data
        .chunks_exact(dim)
        .enumerate()
        .map(|(id, row)| (garlic_simd::l2_squared(query, row).sqrt(), id as u64))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(k);
    all
}

/// The default preset with many small cells and bins; other shapes of codes and storage in turn.
fn tempered(seed: u64) -> Config {
    Config {
        seed,
        cells: 4,
        bin_size: 5,
        axes: [0, 3, 8][seed as usize % 3],
        code_bits: [8, 4][seed as usize % 2],
        calibration_queries: 20,
        ..Config::default()
    }
}

/// The default preset finds what brute force finds when it looks at everything, and when it is asked for proof.
fn check_tempered(data: &[f32], dim: usize, config: Config, label: &str) {
    let rows = Rows::new(data, dim).unwrap();
    let index = Index::builder()
        .config(config)
        .threads(2)
        .build(rows)
        .unwrap();
    // Outliers have a cell of their own.
    let most = 4 + usize::from(label.contains("outlier"));
    assert!(
        (1..=most).contains(&index.cells()),
        "{label}: {} cells",
        index.cells()
    );
    let mut rng = random_stream(9, 9);
    for case in 0..8 {
        let mut query = rows.row(uniform_below(&mut rng, rows.len())).to_vec();
        if case % 2 == 1 {
            query
                .iter_mut()
                .for_each(|v| *v += 3.0 * (uniform_unit(&mut rng) as f32 - 0.5));
        }
        for k in [1, 10, rows.len() + 5] {
            let expected = brute_force(data, dim, &query, k);
            let all = Search::new(k)
                .probes(usize::MAX)
                .bins(1.0)
                .rerank(usize::MAX);
            let answer = index.search(&query, &all).unwrap();
            let got: Vec<(f32, u64)> = answer.hits.iter().map(|h| (h.distance, h.id)).collect();
            assert_eq!(got, expected, "{label} k {k}");
            assert_eq!(
                answer.work.candidates,
                rows.len() as u64,
                "{label}: each point once"
            );
            assert_eq!(
                answer.work.codes,
                rows.len() as u64,
                "{label}: each code once"
            );
            assert!(!answer.exact);
            let answer = index.search(&query, &Search::new(k).exact(true)).unwrap();
            let got: Vec<(f32, u64)> = answer.hits.iter().map(|h| (h.distance, h.id)).collect();
            assert_eq!(got, expected, "{label} k {k} exactly");
            assert!(answer.exact);
        }
    }
}

fn check(data: &[f32], dim: usize, config: Config, label: &str) {
    check_tempered(data, dim, tempered(data.len() as u64), label);
    let rows = Rows::new(data, dim).unwrap();
    let cap = config.max_cells;
    let index = Index::builder()
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
            assert_eq!(got, brute_force(data, dim, &query, k), "{label} k {k}");
            assert_eq!(
                answer.work.candidates,
                rows.len() as u64,
                "{label}: each point once"
            );
            assert_eq!(answer.work.cells_scored, index.cells() as u64, "{label}");
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
            let config = Config {
                covariance,
                normalize,
                init,
                ..quick()
            };
            check(
                &data,
                6,
                config,
                &format!("{covariance:?} {normalize:?} {init:?}"),
            );
        }
    }
    let config = Config {
        rotate: false,
        split_method: SplitMethod::TwoMeans,
        adam_reset: true,
        ..quick()
    };
    check(&data, 6, config, "no rotation");
    for rank in [0, 1, 2, 4, 6, 9] {
        check(
            &data,
            6,
            Config {
                rank,
                angular_steps: 2,
                ..quick()
            },
            &format!("rank {rank}"),
        );
    }
    check(
        &data,
        6,
        Config {
            train_fraction: 0.05,
            ..quick()
        },
        "5 % training",
    );
    check(
        &data,
        6,
        Config {
            epochs: 0,
            ..quick()
        },
        "no epochs",
    );
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
    let per_coordinate = Config {
        normalize: Normalize::PerCoordinate,
        ..quick()
    };
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

/// A number of ordinary size with the eleven significant bits of half precision, the even one of two as near.
fn half(v: f32) -> f32 {
    let exponent = (v.to_bits() >> 23 & 0xff) as i32 - 127;
    let step = 2.0_f32.powi(exponent - 10);
    (v / step).round_ties_even() * step
}

/// Far from zero, so that rounding moves points by as much as their neighbours are apart: bounds that were made from
/// the vectors before rounding would lose some of them.
#[test]
fn half_precision_answers_like_brute_force_over_rounded_vectors() {
    let dim = 6;
    let data: Vec<f32> = random(3000, dim, 5)
        .chunks(dim)
        .enumerate()
        .flat_map(|(i, r)| {
            let centre = 520.0 + (i % 6) as f32 * 45.0;
            r.iter().map(|v| v * 0.2 + centre).collect::<Vec<_>>()
        })
        .collect();
    let rounded: Vec<f32> = data.iter().map(|v| half(*v)).collect();
    let rows = Rows::new(&data, dim).unwrap();
    let config = Config {
        store: Store::F16,
        axes: dim,
        bin_size: 48,
        calibration_queries: 20,
        ..Config::default()
    };
    let builder = Index::builder().config(config).threads(2);
    let built = builder.build(rows.slice(0..2000)).unwrap();
    assert_eq!(built.stored_as(), "f16");
    let mut grown = built.clone();
    let ids: Vec<u64> = (2000..3000).collect();
    grown.add(rows.slice(2000..3000), &ids).unwrap();
    for (index, count) in [(&built, 2000), (&grown, 3000)] {
        let mut proved = 0;
        for query in (0..count).step_by(10).map(|row| rows.row(row)) {
            let answer = index.search(query, &Search::new(10).exact(true)).unwrap();
            let got: Vec<(f32, u64)> = answer.hits.iter().map(|h| (h.distance, h.id)).collect();
            let expected = brute_force(&rounded[..count * dim], dim, query, 10);
            assert_eq!(got, expected);
            proved += usize::from(answer.work.candidates < count as u64 / 2);
        }
        assert!(proved > count / 20, "{proved} answers by bounds");
    }
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
        check(&data, dim, Config { seed, initial_cells, epochs: 7, ..quick() }, "integers");
    }
}
