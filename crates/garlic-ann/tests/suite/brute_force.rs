//! Looking at everything, and proving it, finds exactly what brute force finds, whatever the data look like.

use crate::testdata::truth::{nearest_rows, pairs};
use crate::testdata::{config, uniform};
use garlic_ann::{Config, Index, RangeSearch, Rows, Search};
use garlic_linalg::{random_stream, uniform_below, uniform_unit};
use proptest::prelude::*;

/// Many small cells and bins; other shapes of codes in turn.
fn few_cells(seed: u64) -> Config {
    let turn = seed as usize;
    let mut config = config(&[
        ("cells", "4"),
        ("bin_size", "5"),
        ("axes", ["0", "3", "8"][turn % 3]),
        ("code_bits", ["8", "4"][turn % 2]),
        ("calibration_queries", "20"),
    ]);
    config.seed = seed;
    config
}

fn check(data: &[f32], dim: usize, label: &str) {
    check_config(data, dim, few_cells(data.len() as u64), label);
}

fn check_config(data: &[f32], dim: usize, config: Config, label: &str) {
    let rows = Rows::new(data, dim).unwrap();
    let builder = Index::builder().config(config).threads(2);
    let index = builder.build(rows).unwrap();
    assert_eq!(index.len(), rows.len(), "{label}");
    // Outliers have a cell of their own.
    let most = 4 + usize::from(label.contains("outlier"));
    let cells = index.cells();
    assert!((1..=most).contains(&cells), "{label}: {cells} cells");
    let mut random = random_stream(9, 9);
    for case in 0..12 {
        let mut query = rows.row(uniform_below(&mut random, rows.len())).to_vec();
        if case % 2 == 1 {
            let mut offset = || 3.0 * (uniform_unit(&mut random) as f32 - 0.5);
            query.iter_mut().for_each(|v| *v += offset());
        }
        for k in [1, 10, rows.len() + 5] {
            let expected = nearest_rows(rows, &query, k);
            let all = Search::new(k).probes(usize::MAX).bins(1.0);
            let answer = index.search(&query, &all.rerank(usize::MAX)).unwrap();
            assert_eq!(pairs(&answer), expected, "{label} k {k}");
            let seen = (answer.stats.candidates, answer.stats.codes);
            let points = rows.len() as u64;
            assert_eq!(seen, (points, points), "{label}: each point once");
            assert!(!answer.exact);
            let answer = index.search(&query, &Search::new(k).exact(true)).unwrap();
            assert_eq!(pairs(&answer), expected, "{label} k {k} exactly");
            assert!(answer.exact);
        }
    }
}

/// Values from 0 to 10.
fn random(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    uniform(n, dim, seed).iter().map(|v| 10.0 * v).collect()
}

#[test]
fn ordinary_data() {
    check(&random(500, 5, 1), 5, "uniform");
    let mut clusters = random(400, 8, 2);
    for (i, v) in clusters.iter_mut().enumerate() {
        *v = *v * 0.1 + (i / 8 % 5) as f32 * 20.0;
    }
    check(&clusters, 8, "clusters");
}

#[test]
fn every_option() {
    let data = random(300, 6, 3);
    let options: [&[(&str, &str)]; 9] = [
        &[("anisotropy", "0")],
        &[("anisotropy", "1"), ("axes", "6")],
        &[("axes", "1"), ("max_dim", "2")],
        &[("keep_variance", "0.3")],
        &[("rounds", "0")],
        &[("bin_size", "1")],
        &[("bin_size", "65536"), ("cells", "1")],
        &[("store", "f32"), ("code_bits", "4"), ("axes", "2")],
        &[("calibration_queries", "0"), ("cells", "3")],
    ];
    for settings in options {
        let few = [("cells", "4"), ("bin_size", "5"), ("seed", "5")];
        let config = config(&[&few, settings].concat());
        check_config(&data, 6, config, &format!("{settings:?}"));
    }
}

#[test]
fn degenerate_data() {
    check(&[1.0, 2.0, 3.0], 3, "a single point");
    check(&random(4, 3, 4), 3, "fewer points than cells");
    check(&random(200, 1, 5), 1, "one dimension");
    check(&vec![2.5; 300], 3, "identical points");
    check(&vec![0.0; 64], 1, "zeros in one dimension");

    let mut constant = random(200, 4, 6);
    constant
        .chunks_mut(4)
        .for_each(|r| (r[1], r[3]) = (7.0, -1.0));
    check(&constant, 4, "constant columns");

    let masses: Vec<f32> = (0..300)
        .flat_map(|i| vec![(i % 3) as f32 * 50.0; 4])
        .collect();
    check(&masses, 4, "clusters of identical points");

    let mut duplicates = random(100, 5, 7);
    duplicates.extend_from_within(..);
    duplicates.extend_from_within(..250);
    check(&duplicates, 5, "duplicates");

    let line: Vec<f32> = (0..200)
        .flat_map(|i| [i as f32, 2.0 * i as f32, -(i as f32)])
        .collect();
    check(&line, 3, "points on a line");
    let tiny: Vec<f32> = random(150, 4, 8).iter().map(|v| v * 1e-12).collect();
    check(&tiny, 4, "tiny values");
    let huge: Vec<f32> = random(150, 4, 8).iter().map(|v| v * 1e13).collect();
    check(&huge, 4, "huge values");
    let mut outlier = random(200, 3, 9);
    outlier[0] = 1e9;
    check(&outlier, 3, "an outlier");
}

/// A radius that is the distance of a neighbour, bit for bit, has that neighbour within; the next smaller one has not.
#[test]
fn radii_that_are_distances() {
    let (n, dim) = (3000, 12);
    for (reach, spread) in [(1.0, 1.0), (100.0, 1.0), (1e5, 1.0), (1e-12, 1e-12)] {
        let mut data = random(n, dim, 11);
        for (i, v) in data.iter_mut().enumerate() {
            *v = reach * (i / dim % 7 * (1 + i % dim)) as f32 + spread * *v;
        }
        let rows = Rows::new(&data, dim).unwrap();
        let label = format!("reach {reach:e}, spread {spread:e}");
        let settings = [("cells", "7"), ("axes", "8"), ("calibration_queries", "20")];
        let builder = Index::builder().config(config(&settings)).threads(2);
        let index = builder.build(rows).unwrap();
        let mut codes = 0;
        for case in 0..20 {
            let mut query = rows.row(case * 149).to_vec();
            query[case % dim] += spread * (case % 4) as f32;
            let all = nearest_rows(rows, &query, n);
            for k in [0, 1, 7, 60] {
                let radius = all[k].0;
                let exact = Search::new(k + 1).exact(true);
                let answer = index.search(&query, &exact).unwrap();
                assert_eq!(pairs(&answer), all[..k + 1], "{label}, k {k}");
                for radius in [radius, radius.next_down()] {
                    let within = all.iter().take_while(|hit| hit.0 <= radius);
                    let within: Vec<(f32, u64)> = within.copied().collect();
                    let answer = index.range(&query, &RangeSearch::new(radius)).unwrap();
                    assert_eq!(pairs(&answer), within, "{label}, radius {radius}");
                    codes += answer.stats.codes;
                }
            }
        }
        assert!(codes > 0, "{label}: by bounds, not by reading everything");
    }
}

/// Few unless asked for more: every case builds an index.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn small_random_sets(
        dim in 1usize..7,
        seed in any::<u64>(),
        values in prop::collection::vec(-3i8..3, 1..400),
    ) {
        // Small integers: many ties and duplicates.
        let rows = (values.len() / dim).max(1);
        let data: Vec<f32> = values.iter().cycle().take(rows * dim).map(|v| f32::from(*v)).collect();
        check_config(&data, dim, few_cells(seed), "integers");
    }
}
