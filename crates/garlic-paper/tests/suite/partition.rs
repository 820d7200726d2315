//! Cells that were found elsewhere.

use crate::common::{brute_force, pairs, sheet};
use garlic_paper::{Error, GaussianIndex, Rows, Search};

/// Every point is in its own cell, and nowhere else.
#[test]
fn given_cells_are_taken_as_they_are() {
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
            let builder = GaussianIndex::builder().seed(2);
            let builder = builder.set("covariance", covariance).unwrap();
            let builder = builder.partition(given.clone()).threads(threads);
            builder.build(rows).unwrap()
        };
        let index = built(1);
        assert!(index.history().epochs.is_empty() && index.history().points == 0);
        assert_eq!(index.cells(), 5, "{covariance}");
        assert!(index == built(3), "{covariance}");
        let everything = Search::new(10).probes(5).bins(1.0);
        for query in rows.slice(0..40).iter() {
            let answer = index.search(query, &everything).unwrap();
            assert_eq!(answer.stats.candidates, 2000, "each point once");
            assert_eq!(pairs(&answer.hits), brute_force(&data, query, 10));
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
fn a_cell_is_named_for_every_point() {
    let data = sheet(20, 3, 1);
    let rows = Rows::new(&data, 3).unwrap();
    let error = GaussianIndex::builder().partition(vec![1; 7]).build(rows);
    match error {
        Err(Error::Config { key, message }) => {
            assert_eq!(key, "partition");
            assert!(message.contains("7 points"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let index = GaussianIndex::builder().partition(vec![1; 20]).build(rows);
    assert_eq!(index.unwrap().cells(), 1);
}
