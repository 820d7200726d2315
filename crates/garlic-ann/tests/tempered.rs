//! What the default preset promises: recall as asked, the same answers one by one and in batches, clear errors.

use garlic_ann::config::Store;
use garlic_ann::{Config, Error, Index, Preset, Rows, Search};
use garlic_linalg::{random_stream, uniform_unit};

/// Points near a curved sheet of few dimensions in `dim`, with noise: clustered and anisotropic, as data are.
fn sheet(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 3);
    let mut mix = random_stream(11, 3);
    let waves: Vec<[f32; 4]> = (0..dim)
        .map(|_| std::array::from_fn(|_| 2.0 * uniform_unit(&mut mix) as f32 - 1.0))
        .collect();
    (0..n)
        .flat_map(|_| {
            let t: [f32; 4] = std::array::from_fn(|_| uniform_unit(&mut rng) as f32 * 3.0);
            waves
                .iter()
                .map(|w| {
                    let phase: f32 = w.iter().zip(&t).map(|(a, b)| a * b).sum();
                    20.0 * phase.sin() + uniform_unit(&mut rng) as f32
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn recall(index: &Index, data: Rows<'_>, queries: Rows<'_>, search: &Search, k: usize) -> f64 {
    let mut found = 0;
    for query in queries.iter() {
        let mut truth: Vec<f32> = data
            .iter()
            .map(|row| garlic_simd::l2_squared(query, row).sqrt())
            .collect();
        truth.select_nth_unstable_by(k - 1, f32::total_cmp);
        let radius = truth[k - 1] * (1.0 + 1e-6);
        let hits = index.search(query, search).unwrap().hits;
        assert_eq!(hits.len(), k);
        found += hits.iter().filter(|h| h.distance <= radius).count();
    }
    found as f64 / (queries.len() * k) as f64
}

#[test]
fn recall_is_what_was_asked_for_on_new_queries() {
    let (n, dim) = (6000, 24);
    let data = sheet(n + 400, dim, 1);
    let rows = Rows::new(&data, dim).unwrap();
    let (base, queries) = (rows.slice(0..n), rows.slice(n..n + 400));
    let index = Index::builder().seed(3).build(base).unwrap();
    let mut last = 0.0;
    for k in [1, 10] {
        for target in [0.8, 0.95, 0.99] {
            let got = recall(&index, base, queries, &Search::new(k).recall(target), k);
            assert!(got >= target - 0.03, "k {k}: asked for {target}, got {got}");
        }
        // Without a word the index aims at .95.
        last = recall(&index, base, queries, &Search::new(k), k);
    }
    assert!(last >= 0.92, "{last}");
    let cheap = index
        .search_batch(queries, &Search::new(10).recall(0.8))
        .unwrap();
    let dear = index
        .search_batch(queries, &Search::new(10).recall(0.99))
        .unwrap();
    let work = |answers: &[garlic_ann::Answer]| -> f64 {
        answers
            .iter()
            .map(|a| a.work.distance_equivalents(dim))
            .sum()
    };
    assert!(work(&cheap) < work(&dear), "more recall takes more work");
    assert!(
        work(&dear) < 0.8 * (n * 400) as f64,
        "and less than brute force"
    );
}

#[test]
fn batches_and_single_queries_give_the_same_answers() {
    let data = sheet(3000, 20, 2);
    let rows = Rows::new(&data, 20).unwrap();
    for code_bits in [8, 4] {
        let config = Config {
            code_bits,
            cells: 20,
            ..Config::default()
        };
        let index = Index::builder().config(config).build(rows).unwrap();
        for search in [
            Search::new(5),
            Search::new(3).probes(4).bins(0.1).rerank(20),
            Search::new(2).exact(true),
        ] {
            let queries = rows.slice(0..333);
            let one = index.search_batch(queries, &search).unwrap();
            let three = index
                .search_batch(queries, &search.clone().threads(3))
                .unwrap();
            assert_eq!(one, three);
            for (query, answer) in queries.iter().zip(&one) {
                assert_eq!(index.search(query, &search).unwrap(), *answer);
            }
        }
    }
}

/// Queries of bytes are rotated in whole numbers, alone, among others of their kind, and among floats; and a copy that
/// stores floats, with the same buffers, goes on without.
#[test]
fn queries_of_bytes_are_the_same_alone_and_in_batches() {
    let dim = 20;
    let mut data = sheet(3000, dim, 9);
    let low = data.iter().copied().fold(f32::INFINITY, f32::min);
    let high = data.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for v in &mut data {
        *v = ((*v - low) / (high - low) * 255.0).round();
    }
    let rows = Rows::new(&data, dim).unwrap();
    let mut index = Index::builder().seed(3).build(rows).unwrap();
    assert_eq!(index.stored_as(), "u8");
    let mut mixed = data[..333 * dim].to_vec();
    mixed.iter_mut().step_by(3 * dim).for_each(|v| *v += 0.25);
    let mixed = Rows::new(&mixed, dim).unwrap();
    let exact = Search::new(5).exact(true);
    for round in 0..2 {
        for queries in [rows.slice(0..333), mixed] {
            let batch = index.search_batch(queries, &Search::new(5)).unwrap();
            let truth = index.search_batch(queries, &exact).unwrap();
            let mut found = 0;
            for ((query, answer), truth) in queries.iter().zip(&batch).zip(&truth) {
                assert_eq!(index.search(query, &Search::new(5)).unwrap(), *answer);
                found += answer
                    .hits
                    .iter()
                    .filter(|h| truth.hits.contains(h))
                    .count();
            }
            assert!(found >= 333 * 5 * 9 / 10, "{found} in round {round}");
        }
        index.add(mixed.slice(0..1), &[10_000 + round]).unwrap();
        assert_eq!(index.stored_as(), "f32");
    }
}

/// Tight clusters far from each other: neighbours are closer together than codes can tell, and estimates say little. The
/// calibration finds that out, and a search does what was measured.
#[test]
fn clusters_finer_than_codes_keep_their_recall() {
    const DIM: usize = 12;
    let mut rng = random_stream(5, 8);
    let mut draw = |most: f64| (uniform_unit(&mut rng) * most) as f32;
    let centres: Vec<f32> = (0..40 * DIM).map(|_| draw(247.0).round()).collect();
    let mut points = |n: usize, unit: f32| -> Vec<f32> {
        let at = |i: usize| centres[i / DIM % 40 * DIM + i % DIM];
        let near = |v: f32| (v / unit).round() * unit;
        (0..n * DIM).map(|i| at(i) + near(draw(8.0))).collect()
    };
    // Bytes, and floats.
    for unit in [1.0, 0.01] {
        let (data, asked) = (points(4000, unit), points(300, unit));
        let rows = Rows::new(&data, DIM).unwrap();
        let index = Index::builder().seed(3).build(rows).unwrap();
        for target in [0.8, 0.93, 0.95, 0.99] {
            let mut found = 0;
            for query in Rows::new(&asked, DIM).unwrap().iter() {
                let answer = index.search(query, &Search::new(10).recall(target));
                let truth = index.search(query, &Search::new(10).exact(true)).unwrap();
                let near = |hit: &&garlic_ann::Hit| hit.distance <= truth.hits[9].distance;
                found += answer.unwrap().hits.iter().filter(near).count();
            }
            let recall = found as f64 / 3000.0;
            assert!(
                recall >= target - 0.03,
                "unit {unit}: {recall} for {target}"
            );
        }
    }
}

#[test]
fn same_seed_same_bytes_for_any_number_of_threads() {
    let data = sheet(3000, 20, 4);
    let rows = Rows::new(&data, 20).unwrap();
    let bytes = |threads: usize, seed: u64| {
        let builder = Index::builder().seed(seed).threads(threads);
        builder.build(rows).unwrap().to_bytes()
    };
    let one = bytes(1, 7);
    assert!(one == bytes(2, 7) && one == bytes(5, 7));
    assert!(one != bytes(1, 8), "another seed gives another index");
}

/// Cells that were found elsewhere, with any numbers, stay what they are.
#[test]
fn given_cells_are_taken_as_they_are() {
    let data = sheet(3000, 20, 4);
    let rows = Rows::new(&data, 20).unwrap();
    let cell = |i: usize| [7u32, 4_000_000_000, 12, 900][i * 4 / 3000];
    let given: Vec<u32> = (0..3000).map(cell).collect();
    let built = |threads: usize| {
        let builder = Index::builder().seed(2).threads(threads);
        builder.partition(given.clone()).build(rows).unwrap()
    };
    let index = built(1);
    assert_eq!(index.cells(), 4);
    assert!(index.to_bytes() == built(3).to_bytes());
    // Points are held out of the fit and join the nearest cell; all others are where they were put.
    let body = index.tempered().unwrap();
    let mut together = std::collections::HashMap::<(usize, u32), usize>::new();
    for bin in (0..body.bins()).filter_map(|bin| body.bin(bin)) {
        for position in bin.positions {
            let row = index.id_at(position).unwrap() as usize;
            *together.entry((bin.cell, cell(row))).or_default() += 1;
        }
    }
    let mut sizes: Vec<usize> = together.values().copied().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let held = body.calibration().queries;
    assert!(sizes[..4].iter().sum::<usize>() >= 3000 - held, "{sizes:?}");
    let exact = Search::new(5).exact(true);
    let plain = Index::builder().seed(2).build(rows).unwrap();
    for query in rows.slice(0..50).iter() {
        let found = index.search(query, &exact).unwrap().hits;
        assert_eq!(found, plain.search(query, &exact).unwrap().hits);
    }

    let refused = |builder: garlic_ann::Builder<'_>, part: &str| {
        let error = builder.build(rows).unwrap_err().to_string();
        assert!(
            error.contains("partition") && error.contains(part),
            "{error}"
        );
    };
    refused(Index::builder().partition(vec![1; 7]), "7 points");
}

/// The published method's bins in cells that were found elsewhere: every point is in its own, and nowhere else.
#[test]
fn given_cells_can_have_hyperspherical_bins() {
    let data = sheet(2000, 10, 6);
    let rows = Rows::new(&data, 10).unwrap();
    let mut order: Vec<usize> = (0..2000).collect();
    order.sort_by(|a, b| rows.row(*a)[0].total_cmp(&rows.row(*b)[0]));
    let mut given = vec![0; 2000];
    for (place, row) in order.into_iter().enumerate() {
        given[row] = 3 * (place / 400) as u32;
    }
    for covariance in ["full", "diagonal", "isotropic"] {
        let built = |threads: usize| {
            let builder = Index::builder().preset(Preset::Paper).seed(2);
            let builder = builder.set("covariance", covariance).unwrap();
            let builder = builder.partition(given.clone()).threads(threads);
            builder.build(rows).unwrap()
        };
        let index = built(1);
        assert_eq!(index.cells(), 5, "{covariance}");
        assert!(index.to_bytes() == built(3).to_bytes(), "{covariance}");
        let plain = Index::builder().build(rows).unwrap();
        let everything = Search::new(10).probes(5).bins(1.0);
        let exact = Search::new(10).exact(true);
        for query in rows.slice(0..40).iter() {
            let answer = index.search(query, &everything).unwrap();
            assert_eq!(answer.work.candidates, 2000, "each point once");
            assert_eq!(answer.hits, plain.search(query, &exact).unwrap().hits);
        }
        // A query is in the cell it comes from, mostly: its nearest neighbours are found there.
        let near = Search::new(1).probes(1).bins(1.0);
        let own = (0..2000).step_by(20).filter(|i| {
            let answer = index.search(rows.row(*i), &near).unwrap();
            answer.hits.first().is_some_and(|hit| hit.distance == 0.0)
        });
        assert!(own.count() > 40, "{covariance}");
    }
}

#[test]
fn explicit_parameters_are_done_in_full() {
    let data = sheet(2000, 12, 5);
    let rows = Rows::new(&data, 12).unwrap();
    let config = Config {
        cells: 10,
        bin_size: 10,
        ..Config::default()
    };
    let index = Index::builder().config(config).build(rows).unwrap();
    let query = rows.row(17);
    let answer = index
        .search(query, &Search::new(4).probes(3).bins(1.0).rerank(50))
        .unwrap();
    assert!(
        (3..=10).contains(&answer.work.cells_projected),
        "a shortlist is scored"
    );
    assert_eq!(answer.work.candidates, 50);
    let cells = index.route(query, 3).unwrap();
    let tempered = index.tempered().unwrap();
    let points: usize = cells.iter().map(|c| tempered.cell_len(*c as usize)).sum();
    assert_eq!(
        answer.work.codes, points as u64,
        "every point of the visited cells"
    );
    assert_eq!(answer.hits[0].id, 17);
    let fewer = index
        .search(query, &Search::new(4).probes(3).bins(0.2).rerank(50))
        .unwrap();
    assert!(fewer.work.codes < answer.work.codes);
}

#[test]
fn vectors_are_stored_as_asked() {
    let whole: Vec<f32> = sheet(800, 9, 6)
        .iter()
        .map(|v| (v.abs() * 4.0).round().min(255.0))
        .collect();
    let rows = Rows::new(&whole, 9).unwrap();
    let build = |store, rows: Rows<'_>| {
        let config = Config {
            store,
            ..Config::default()
        };
        Index::builder().config(config).build(rows)
    };
    let auto = build(Store::Auto, rows).unwrap();
    assert_eq!(auto.stored_as(), "u8", "whole numbers are kept as bytes");
    let floats = build(Store::F32, rows).unwrap();
    assert_eq!(floats.stored_as(), "f32");
    let mut shifted = rows.row(5).to_vec();
    shifted[0] += 0.25;
    for query in [rows.row(5), &shifted] {
        let search = Search::new(7).exact(true);
        let a = auto.search(query, &search).unwrap();
        let b = floats.search(query, &search).unwrap();
        assert_eq!(a.hits, b.hits, "bytes give the same distances");
    }
    let half = build(Store::F16, rows).unwrap();
    assert_eq!(half.stored_as(), "f16");
    assert!(half.memory().vectors == 2 * auto.memory().vectors);

    let odd = sheet(300, 9, 7);
    let rows = Rows::new(&odd, 9).unwrap();
    assert_eq!(build(Store::Auto, rows).unwrap().stored_as(), "f32");
    match build(Store::U8, rows) {
        Err(Error::Config { key, message }) => {
            assert_eq!(key, "store");
            assert!(message.contains("vector 0"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_parameters_are_refused() {
    let data = sheet(300, 6, 8);
    let rows = Rows::new(&data, 6).unwrap();
    let index = Index::builder().build(rows).unwrap();
    let name = |search: Search| match index.search(rows.row(0), &search) {
        Err(Error::SearchParameter { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(Search::new(1).recall(0.0)), "recall");
    assert_eq!(name(Search::new(1).recall(1.0)), "recall");
    assert_eq!(name(Search::new(1).recall(f64::NAN)), "recall");
    assert_eq!(name(Search::new(1).rerank(0)), "rerank");
    assert_eq!(name(Search::new(1).bins(1.5)), "bins");
    assert_eq!(name(Search::new(0)), "k");

    let config = Config {
        initial_cells: 3,
        epochs: 1,
        ..Config::preset(Preset::Paper)
    };
    let index = Index::builder().config(config).build(rows).unwrap();
    for search in [Search::new(1).recall(0.9), Search::new(1).rerank(5)] {
        match index.search(rows.row(0), &search) {
            Err(Error::SearchParameter { rule, .. }) => assert!(rule.contains("published")),
            other => panic!("{other:?}"),
        }
    }
    let exact = index
        .search(rows.row(9), &Search::new(2).exact(true))
        .unwrap();
    assert!(exact.exact && exact.hits[0].id == 9);
}

#[test]
fn an_index_without_calibration_still_searches() {
    let data = sheet(1500, 10, 9);
    let rows = Rows::new(&data, 10).unwrap();
    let config = Config {
        calibration_queries: 0,
        ..Config::default()
    };
    let index = Index::builder().config(config).build(rows).unwrap();
    assert!(index.tempered().unwrap().calibration().settings.is_empty());
    let answer = index.search(rows.row(3), &Search::new(5)).unwrap();
    assert_eq!(answer.hits[0].id, 3);
    assert_eq!(answer.hits.len(), 5);
}
