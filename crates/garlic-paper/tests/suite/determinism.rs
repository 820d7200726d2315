//! The same index for any seed and number of threads, the same answers one by one, in batches and in grids.

use crate::common::{short, uniform};
use garlic_paper::{GaussianIndex, Rows, Search};

#[test]
fn same_seed_same_bytes_for_any_number_of_threads() {
    let data = uniform(1500, 20);
    let rows = Rows::new(&data, 20).unwrap();
    let bytes = |threads: usize, seed: u64| {
        GaussianIndex::builder()
            .config(short())
            .seed(seed)
            .threads(threads)
            .build(rows)
            .unwrap()
            .to_bytes()
            .unwrap()
    };
    let one = bytes(1, 7);
    assert_eq!(one, bytes(2, 7));
    assert_eq!(one, bytes(5, 7));
    assert_ne!(one, bytes(1, 8), "another seed gives another index");
}

#[test]
fn batches_and_single_queries_give_the_same_answers() {
    let data = uniform(800, 12);
    let rows = Rows::new(&data, 12).unwrap();
    let index = GaussianIndex::builder()
        .config(short())
        .build(rows)
        .unwrap();
    let search = Search::new(5).probes(3).bins(0.4);
    let one = index.search_batch(rows, &search).unwrap();
    let two = index
        .search_batch(rows, &search.clone().threads(2))
        .unwrap();
    assert_eq!(one, two);
    let mut searcher = index.searcher();
    for (query, answer) in rows.iter().zip(&one) {
        assert_eq!(&index.search(query, &search).unwrap(), answer);
        assert_eq!(&searcher.search(query, &search).unwrap(), answer);
        assert!(
            answer
                .hits
                .windows(2)
                .all(|w| (w[0].distance, w[0].id) < (w[1].distance, w[1].id))
        );
        assert!(answer.hits.len() <= 5 && answer.stats.candidates <= 800);
    }
}

#[test]
fn a_grid_of_settings_gives_what_single_searches_give() {
    let data = uniform(900, 12);
    let rows = Rows::new(&data, 12).unwrap();
    // A wide radius: many points lie in several cells.
    let mut config = short();
    config.loss.tau = 6.0;
    let index = GaussianIndex::builder().config(config).build(rows).unwrap();
    assert!(index.coverage().mean > 1.5, "{:?}", index.coverage());
    let (probes, bins) = ([4, 1, 2, 1000], [0.7, 0.1, 1.0]);
    let mut searcher = index.searcher();
    for query in rows.iter().take(40) {
        let answers = searcher.search_grid(query, 6, &probes, &bins).unwrap();
        let mut answers = answers.into_iter();
        for p in probes {
            for b in bins {
                let alone = index
                    .search(query, &Search::new(6).probes(p).bins(b))
                    .unwrap();
                assert_eq!(answers.next(), Some(alone), "probes {p} bins {b}");
            }
        }
    }
    assert!(
        searcher
            .search_grid(rows.row(0), 0, &probes, &bins)
            .is_err()
    );
    assert!(
        searcher
            .search_grid(rows.row(0), 1, &probes, &[1.1])
            .is_err()
    );
    assert!(
        searcher
            .search_grid(rows.row(0), 1, &[], &bins)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn more_probes_and_more_bins_never_look_at_fewer_points() {
    let data = uniform(2000, 10);
    let rows = Rows::new(&data, 10).unwrap();
    let index = GaussianIndex::builder()
        .config(short())
        .build(rows)
        .unwrap();
    let count = |probes: usize, bins: f64| -> u64 {
        let answers = index
            .search_batch(rows.slice(0..50), &Search::new(1).probes(probes).bins(bins))
            .unwrap();
        answers.iter().map(|a| a.stats.candidates).sum()
    };
    assert!(count(1, 0.3) < count(2, 0.3) && count(2, 0.3) < count(4, 0.3));
    assert!(count(2, 0.1) < count(2, 0.5) && count(2, 0.5) < count(2, 1.0));
}
