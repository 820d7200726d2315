//! A few points far away change nothing for all the others.

use garlic_ann::{Index, Rows, Search};
use garlic_linalg::{random_stream, uniform_unit};

const DIM: usize = 24;
const POINTS: usize = 12_000;

/// A normal distribution whose coordinates matter ever less.
fn cloud(count: usize, seed: u64) -> Vec<f32> {
    let mut random = random_stream(seed, 71);
    let mut value = || (0..12).map(|_| uniform_unit(&mut random)).sum::<f64>() - 6.0;
    let scaled = |i: usize| (value() / (1.0 + (i % DIM) as f64 / 4.0)) as f32;
    (0..count * DIM).map(scaled).collect()
}

/// Mean multiply-adds of queries like most points.
fn work(index: &Index, queries: Rows<'_>) -> f64 {
    let search = Search::new(10).recall(0.9);
    let answers = index.search_batch(queries, &search).unwrap();
    let sum: u64 = answers.iter().map(|a| a.work.total_madds()).sum();
    sum as f64 / answers.len() as f64
}

#[test]
fn twenty_of_twelve_thousand_points_decide_nothing() {
    let values = cloud(POINTS, 1);
    let mut with = values.clone();
    for row in with.chunks_exact_mut(DIM).step_by(POINTS / 20) {
        row.iter_mut().for_each(|v| *v *= 1e4);
    }
    let queries = cloud(200, 2);
    let queries = Rows::new(&queries, DIM).unwrap();
    let build = |values: &[f32]| {
        let builder = Index::builder().seed(3);
        builder.build(Rows::new(values, DIM).unwrap()).unwrap()
    };
    let (plain, robust) = (build(&values), build(&with));
    let model = |index: &Index| index.tempered().unwrap().model().clone();
    for (name, before, after) in [
        ("cells", plain.cells() as f64, robust.cells() as f64),
        (
            "dimension",
            model(&plain).dim() as f64,
            model(&robust).dim() as f64,
        ),
        (
            "axes",
            model(&plain).rank() as f64,
            model(&robust).rank() as f64,
        ),
        ("work", work(&plain, queries), work(&robust, queries)),
    ] {
        let off = (after / before - 1.0).abs();
        assert!(off <= 0.2, "{name}: {before} without, {after} with");
    }
    // They are there all the same.
    for (id, row) in (0..).zip(with.chunks_exact(DIM)).step_by(POINTS / 20) {
        let answer = robust.search(row, &Search::new(1).exact(true)).unwrap();
        assert_eq!(answer.hits[0].id, id);
    }
}
