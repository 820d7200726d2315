//! Searches find the share of the true neighbours that they are asked for.

use crate::testdata::truth::Recall;
use crate::testdata::{clumps, config, rows, sheet};
use garlic_ann::{Answer, Index, Search};

#[test]
fn recall_is_what_was_asked_for_on_new_queries() {
    let (n, dim) = (6000, 24);
    let data = sheet(n + 400, dim, 1);
    let rows = rows(&data, dim);
    let (base, queries) = (rows.slice(0..n), rows.slice(n..n + 400));
    let index = Index::builder().seed(3).build(base).unwrap();
    for k in [1, 10] {
        for target in [0.8, 0.95, 0.99] {
            assert!(!index.reads_everything(k, target), "k {k} {target}");
            let search = Search::new(k).recall(target);
            let recall = Recall::of_rows(&index, base, queries, &search);
            recall.assert_meets(target, &format!("k {k}"));
        }
        // Without a word the index aims at .95.
        let [said, unsaid] = [Search::new(k).recall(0.95), Search::new(k)]
            .map(|search| index.search_batch(queries, &search).unwrap());
        assert_eq!(said, unsaid);
    }
    let work = |target: f64| -> f64 {
        let search = Search::new(10).recall(target);
        let answers = index.search_batch(queries, &search).unwrap();
        let cost = |answer: &Answer| answer.stats.distance_equivalents(dim);
        answers.iter().map(cost).sum::<f64>() / queries.len() as f64
    };
    let [cheap, middle, dear] = [0.8, 0.95, 0.99].map(work);
    assert!(cheap < middle && middle < dear, "more recall costs more");
    assert!(dear < 0.5 * n as f64, "{dear} of brute force's {n}");
}

#[test]
fn the_recall_of_the_configuration_is_what_a_search_aims_at() {
    let values = sheet(5000, 12, 2);
    let rows = rows(&values, 12);
    let settings = [("recall", "0.7"), ("calibration_queries", "200")];
    let builder = Index::builder().config(config(&settings));
    let index = builder.build(rows).unwrap();
    let queries = rows.slice(0..100);
    let [unsaid, said, more] = [
        Search::new(10),
        Search::new(10).recall(0.7),
        Search::new(10).recall(0.95),
    ]
    .map(|search| index.search_batch(queries, &search).unwrap());
    assert_eq!(unsaid, said);
    assert_ne!(unsaid, more);
}

/// Tight clusters far from each other: neighbours are closer together than codes can tell, and estimates say little. The
/// calibration finds that out, and a search does what was measured.
#[test]
fn clusters_finer_than_codes_keep_their_recall() {
    const DIM: usize = 12;
    const POINTS: usize = 5000;
    for unit in [1.0, 0.01] {
        // Bytes, and floats.
        let near = |v: f32| (124.0 * (v + 1.03) / unit).round() * unit;
        let points = |n, seed| -> Vec<f32> {
            let values = clumps(n, DIM, 40, 0.032, seed);
            values.into_iter().map(near).collect()
        };
        let (data, asked) = (points(POINTS, 5), points(300, 6));
        let (base, queries) = (rows(&data, DIM), rows(&asked, DIM));
        let index = Index::builder().seed(3).build(base).unwrap();
        assert_eq!(index.stored_as(), if unit == 1.0 { "u8" } else { "f32" });
        for target in [0.8, 0.93, 0.95, 0.99] {
            let search = Search::new(10).recall(target);
            let recall = Recall::of_rows(&index, base, queries, &search);
            recall.assert_meets(target, &format!("unit {unit}"));
        }
    }
}

#[test]
fn an_index_without_calibration_reads_everything() {
    let values = sheet(5000, 10, 9);
    let base = rows(&values, 10);
    let builder = Index::builder().config(config(&[("calibration_queries", "0")]));
    let index = builder.build(base).unwrap();
    assert!(index.calibration().settings.is_empty());
    assert!(index.reads_everything(5, 0.6));
    for row in [3, 4999] {
        let answer = index.search(base.row(row), &Search::new(5)).unwrap();
        let exact = index.search(base.row(row), &Search::new(5).exact(true));
        assert_eq!(answer.hits, exact.unwrap().hits);
        assert_eq!(answer.stats.candidates, 5000);
    }
}
