//! A few points far away change nothing for all the others.

use crate::testdata::normal;
use garlic_ann::{Index, Rows, Search};

const DIM: usize = 24;
const POINTS: usize = 12_000;

/// A normal distribution whose coordinates matter ever less.
fn cloud(count: usize, seed: u64) -> Vec<f32> {
    let values = normal(count, DIM, seed).into_iter().enumerate();
    let scaled = |(i, v): (usize, f64)| (v / (1.0 + (i % DIM) as f64 / 4.0)) as f32;
    values.map(scaled).collect()
}

/// Mean multiply-adds of queries like most points.
fn work(index: &Index, queries: Rows<'_>) -> f64 {
    let search = Search::new(10).recall(0.9);
    let answers = index.search_batch(queries, &search).unwrap();
    let sum: u64 = answers.iter().map(|a| a.stats.total_madds()).sum();
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
    let shape = |index: &Index| {
        let axes = index.cell_shape(0).unwrap().variances.len();
        (index.transform().out_dim(), axes)
    };
    assert_eq!(shape(&plain), shape(&robust));
    // They have a cell of their own.
    let [before, after] = [&plain, &robust].map(Index::cells);
    assert!(before.abs_diff(after) <= 1, "{before} cells, then {after}");
    let [before, after] = [&plain, &robust].map(|index| work(index, queries));
    let off = (after / before - 1.0).abs();
    assert!(off <= 0.1, "work: {before} without, {after} with");
    // They are there all the same.
    for (id, row) in (0..).zip(with.chunks_exact(DIM)).step_by(POINTS / 20) {
        let answer = robust.search(row, &Search::new(1).exact(true)).unwrap();
        assert_eq!(answer.hits[0].id, id);
    }
}
