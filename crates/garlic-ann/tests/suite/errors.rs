//! What is wrong with data, queries or parameters is an error that names it, never a panic.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::testdata::{config, rows, uniform};
use garlic_ann::{Error, Index, RangeSearch, Rows, Search};

const DIM: usize = 4;

fn index() -> (Index, Vec<f32>) {
    let values = uniform(100, DIM, 4);
    let index = Index::builder().build(rows(&values, DIM)).unwrap();
    (index, values)
}

#[test]
fn bad_vectors_are_refused() {
    let build = |data: &[f32], dim: usize| Index::builder().build(Rows::new(data, dim)?);
    assert!(matches!(build(&[], 3), Err(Error::NoVectors)));
    assert!(matches!(build(&[1.0; 7], 3), Err(Error::Shape(_))));
    assert!(matches!(build(&[1.0; 7], 0), Err(Error::Shape(_))));
    let mut values = vec![1.0; 12];
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        values[7] = value;
        let error = build(&values, 3).unwrap_err();
        assert!(
            matches!(
                error,
                Error::NotFinite {
                    row: 2,
                    column: 1,
                    ..
                }
            ),
            "{error}"
        );
    }
    values[7] = 1e30;
    let error = build(&values, 3).unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLarge {
                row: 2,
                column: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn bad_search_parameters_are_refused_by_name() {
    let (index, values) = index();
    let query = &values[..DIM];
    let plain = || Search::new(1);
    for (search, wrong) in [
        (Search::new(0), "k"),
        (plain().probes(0), "probes"),
        (plain().rerank(0), "rerank"),
        (plain().bins(0.0), "bins"),
        (plain().bins(-1.0), "bins"),
        (plain().bins(1.5), "bins"),
        (plain().bins(f64::NAN), "bins"),
        (plain().recall(0.0), "recall"),
        (plain().recall(1.0), "recall"),
        (plain().recall(-0.5), "recall"),
        (plain().recall(f64::NAN), "recall"),
        (plain().threads(0), "threads"),
    ] {
        for result in [
            index.search(query, &search).map(|_| ()),
            index.searcher().search(query, &search).map(|_| ()),
            index.search_batch(rows(query, DIM), &search).map(|_| ()),
        ] {
            match result {
                Err(Error::SearchParameter { name, .. }) => assert_eq!(name, wrong),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
    for (range, wrong) in [
        (RangeSearch::new(f32::NAN), "radius"),
        (RangeSearch::new(1.0).recall(1.0), "recall"),
        (RangeSearch::new(1.0).recall(f64::NAN), "recall"),
        (RangeSearch::new(1.0).threads(0), "threads"),
    ] {
        for result in [
            index.range(query, &range).map(|_| ()),
            index.range_batch(rows(query, DIM), &range).map(|_| ()),
        ] {
            match result {
                Err(Error::SearchParameter { name, .. }) => assert_eq!(name, wrong),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}

#[test]
fn bad_queries_are_refused() {
    let (index, values) = index();
    let run = |query: &[f32]| index.search(query, &Search::new(2));
    assert!(matches!(
        run(&values[..3]),
        Err(Error::Dimension {
            expected: 4,
            found: 3
        })
    ));
    assert!(matches!(
        run(&[1.0, f32::NAN, 0.0, 0.0]),
        Err(Error::QueryNotFinite {
            row: 0,
            column: 1,
            ..
        })
    ));
    let batch = [1.0, 1.0, 0.0, 0.0, 1.0, 2.0, 3.0, f32::INFINITY];
    let batch = index.search_batch(rows(&batch, DIM), &Search::new(1));
    assert!(matches!(
        batch,
        Err(Error::QueryNotFinite {
            row: 1,
            column: 3,
            ..
        })
    ));
    // Far away is fine as long as distances can be told apart; beyond that it is an error.
    let far = run(&[9e14; 4]).unwrap();
    assert!(far.hits.len() == 2 && far.hits[1].distance.is_finite());
    assert!(matches!(
        run(&[0.0, 3e38, 0.0, 0.0]),
        Err(Error::QueryTooLarge {
            row: 0,
            column: 1,
            ..
        })
    ));
}

#[test]
fn bad_parameters_are_refused_before_any_work() {
    let values = uniform(100, DIM, 4);
    let rows = rows(&values, DIM);
    let called = AtomicUsize::new(0);
    let count = |_: &garlic_ann::Progress<'_>| {
        called.fetch_add(1, Ordering::Relaxed);
    };
    let mut wrong = config(&[]);
    wrong.partition.anisotropy = 1.5;
    let result = Index::builder().config(wrong).progress(count).build(rows);
    assert!(matches!(result, Err(Error::Config { key, .. }) if key == "anisotropy"));
    let result = Index::builder().threads(0).progress(count).build(rows);
    assert!(matches!(result, Err(Error::Config { key, .. }) if key == "threads"));
    let result = Index::builder().partition(vec![1; 7]).progress(count);
    let message = result.build(rows).unwrap_err().to_string();
    assert!(
        message.contains("partition") && message.contains("7 points"),
        "{message}"
    );
    assert_eq!(called.load(Ordering::Relaxed), 0);
    match Index::builder().set("celsl", "3") {
        Err(error @ Error::UnknownKey { .. }) => {
            assert!(error.to_string().contains("`cells`"), "{error}");
        }
        other => panic!("{:?}", other.err()),
    }
}
