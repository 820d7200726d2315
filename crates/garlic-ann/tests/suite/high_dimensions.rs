//! Vectors of thousands of coordinates: built in seconds, cancelled at once, refused rather than aborted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::testdata::hidden;
use garlic_ann::{Cancel, Error, Index, Rows, Search};

/// The index, and the seconds that it took.
fn build(values: &[f32], dim: usize, threads: usize) -> (Index, f64) {
    let start = Instant::now();
    let builder = Index::builder().threads(threads);
    let index = builder.build(Rows::new(values, dim).unwrap()).unwrap();
    (index, start.elapsed().as_secs_f64())
}

#[track_caller]
fn check(index: &Index, values: &[f32], dim: usize) {
    let n = values.len() / dim;
    for row in [0, n / 2, n - 1] {
        let query = &values[row * dim..][..dim];
        for search in [Search::new(3), Search::new(3).exact(true)] {
            let answer = index.search(query, &search).unwrap();
            assert_eq!(
                (answer.hits[0].id, answer.hits[0].distance),
                (row as u64, 0.0)
            );
        }
    }
}

#[test]
fn thousands_of_coordinates_take_seconds() {
    for (n, dim) in [(100, 4096), (1500, 2048)] {
        let values = hidden(n, dim, 1);
        let (index, seconds) = build(&values, dim, 2);
        // Far more than it takes, far less than all axes of the space would.
        assert!(seconds < 12.0, "{n} vectors of {dim} took {seconds:.1} s");
        check(&index, &values, dim);
        let (again, _) = build(&values, dim, 1);
        assert!(index == again, "one thread and two give the same index");
    }
}

#[test]
fn more_coordinates_than_a_square_matrix_could_have() {
    let dim = 1 << 16;
    let values = hidden(100, dim, 2);
    let (index, _) = build(&values, dim, 2);
    check(&index, &values, dim);
}

#[test]
fn vectors_that_are_all_the_same_or_just_one() {
    let dim = 3000;
    for n in [1, 2, 40] {
        let values: Vec<f32> = (0..n * dim)
            .map(|i| (i % dim) as f32 * 0.5 + 0.25)
            .collect();
        let (index, _) = build(&values, dim, 2);
        let hits = index.search(&values[..dim], &Search::new(n)).unwrap().hits;
        assert!(hits.iter().map(|hit| hit.id).eq(0..n as u64));
    }
}

#[test]
fn a_build_is_cancelled_within_about_a_second() {
    let dim = 4096;
    let values = hidden(4000, dim, 3);
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    let raiser = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        raised.store(true, Ordering::Relaxed);
        Instant::now()
    });
    let built = Index::builder()
        .threads(2)
        .cancel(Cancel::new(flag))
        .build(Rows::new(&values, dim).unwrap());
    let waited = raiser.join().unwrap().elapsed();
    assert!(matches!(built, Err(Error::Cancelled)));
    assert!(waited < Duration::from_secs(4), "{waited:?}");
}

#[test]
fn as_many_axes_as_coordinates_may_be_asked_for() {
    let dim = 1 << 16;
    let builder = Index::builder().set("max_dim", "65536").unwrap();
    let values = hidden(3, dim, 4);
    let index = builder.build(Rows::new(&values, dim).unwrap()).unwrap();
    assert_eq!(
        index.transform().out_dim(),
        16,
        "three vectors span two axes"
    );
    check(&index, &values, dim);
}

/// Prints how long builds take: `cargo test -p garlic-ann --test suite high_dimensions:: -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes; for measurements"]
#[expect(clippy::print_stdout, reason = "figures are what it is for")]
fn seconds_of_builds() {
    let sizes = std::env::var("SIZES").unwrap_or("100x1024,100x2048,100x4096".into());
    for size in sizes.split(',') {
        let (n, dim) = size.split_once('x').unwrap();
        let (n, dim) = (n.parse().unwrap(), dim.parse().unwrap());
        let values = hidden(n, dim, 5);
        let rows = Rows::new(&values, dim).unwrap();
        let (index, report) = Index::builder().threads(2).build_reported(rows).unwrap();
        println!(
            "{size}: {} axes, {:.2?}",
            index.transform().out_dim(),
            report.seconds
        );
    }
}
