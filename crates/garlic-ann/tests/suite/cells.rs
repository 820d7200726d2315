//! Cells and bins: how many of them a search visits, and cells that were found elsewhere.

use std::collections::HashMap;

use crate::testdata::{config, rows, sheet};
use garlic_ann::{Index, NeighborIndex as _, Search};

#[test]
fn explicit_parameters_are_done_in_full() {
    let values = sheet(2000, 12, 5);
    let rows = rows(&values, 12);
    let config = config(&[("cells", "10"), ("bin_size", "10")]);
    let index = Index::builder().config(config).build(rows).unwrap();
    let sizes = index.cell_sizes();
    for row in (0..2000).step_by(97) {
        let query = rows.row(row);
        let search = Search::new(4).probes(3).bins(1.0).rerank(50);
        let answer = index.search(query, &search).unwrap();
        assert!(
            (3..=10).contains(&answer.stats.cells_projected),
            "a shortlist is scored"
        );
        assert_eq!(answer.stats.candidates, 50);
        let cells = index.route(query, 3).unwrap();
        let points: usize = cells.iter().map(|c| sizes[*c as usize]).sum();
        assert_eq!(
            answer.stats.codes, points as u64,
            "every point of the visited cells"
        );
        assert_eq!((answer.hits[0].id, answer.hits.len()), (row as u64, 4));
        let fewer = index.search(query, &search.bins(0.2)).unwrap();
        assert!(fewer.stats.codes < answer.stats.codes);
    }
}

#[test]
fn more_cells_and_more_bins_look_at_more_points() {
    let values = sheet(2000, 10, 7);
    let rows = rows(&values, 10);
    let config = config(&[("cells", "20"), ("bin_size", "8")]);
    let index = Index::builder().config(config).build(rows).unwrap();
    let codes = |probes: usize, bins: f64| -> u64 {
        let search = Search::new(1).probes(probes).bins(bins);
        let answers = index.search_batch(rows.slice(0..50), &search).unwrap();
        answers.iter().map(|a| a.stats.codes).sum()
    };
    assert!(
        [(1, 0.3), (2, 0.3), (4, 0.3), (20, 0.3)]
            .is_sorted_by(|a, b| codes(a.0, a.1) < codes(b.0, b.1))
    );
    assert!([(2, 0.1), (2, 0.5), (2, 1.0)].is_sorted_by(|a, b| codes(a.0, a.1) < codes(b.0, b.1)));
    assert_eq!(codes(20, 1.0), 50 * 2000);
}

/// Cells that were found elsewhere, with any numbers, stay what they are.
#[test]
fn given_cells_are_taken_as_they_are() {
    let values = sheet(3000, 20, 4);
    let rows = rows(&values, 20);
    let cell = |i: usize| [7u32, 4_000_000_000, 12, 900][i * 4 / 3000];
    let given: Vec<u32> = (0..3000).map(cell).collect();
    let built = |threads: usize| {
        let builder = Index::builder().seed(2).threads(threads);
        builder.partition(given.clone()).build(rows).unwrap()
    };
    let index = built(1);
    assert_eq!(index.cells(), 4);
    assert!(index.to_bytes().unwrap() == built(3).to_bytes().unwrap());
    // Points are held out of the fit and join the nearest cell; all others are where they were put.
    let mut together = HashMap::<(usize, u32), usize>::new();
    let mut position = 0;
    for (number, size) in index.cell_sizes().into_iter().enumerate() {
        for _ in 0..size {
            let row = index.id_at(position).unwrap() as usize;
            *together.entry((number, cell(row))).or_default() += 1;
            position += 1;
        }
    }
    assert_eq!(position, 3000);
    let mut sizes: Vec<usize> = together.values().copied().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let held = index.calibration().queries;
    assert!(
        held <= 300 && sizes[..4].iter().sum::<usize>() >= 3000 - held,
        "{sizes:?}"
    );
    let exact = Search::new(5).exact(true);
    let plain = Index::builder().seed(2).build(rows).unwrap();
    for query in rows.slice(0..50).iter() {
        let found = index.search(query, &exact).unwrap().hits;
        assert_eq!(found, plain.search(query, &exact).unwrap().hits);
    }
}
