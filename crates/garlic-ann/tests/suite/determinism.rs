//! The same data, options and seed give the same bytes, and a query the same answer, however many threads work and in
//! whatever company it is asked.

use crate::testdata::truth::Recall;
use crate::testdata::{config, rows, sheet, to_bytes};
use garlic_ann::{Answer, Config, Index, NeighborSearcher as _, RangeSearch, Rows, Search};

const DIM: usize = 20;

fn build(rows: Rows<'_>, config: &Config, threads: usize) -> Index {
    let builder = Index::builder().config(config.clone()).threads(threads);
    builder.build(rows).unwrap()
}

#[test]
fn same_seed_same_bytes_for_any_number_of_threads() {
    let values = sheet(3000, DIM, 4);
    for (points, settings) in [
        (3000, &[][..]),
        (1200, &[("code_bits", "4"), ("store", "f16")]),
        (1200, &[("store", "int8")]),
        (1200, &[("metric", "cosine"), ("cells", "9")]),
        (1200, &[("metric", "inner_product")]),
        (1200, &[("spill", "1.3")]),
    ] {
        let rows = rows(&values, DIM).slice(0..points);
        let bytes = |threads: usize, seed: u64| {
            let config = Config {
                seed,
                ..config(settings)
            };
            build(rows, &config, threads).to_bytes().unwrap()
        };
        let one = bytes(1, 7);
        assert!(one == bytes(2, 7) && one == bytes(5, 7), "{settings:?}");
        assert!(one != bytes(1, 8), "the seed changes nothing: {settings:?}");
    }
}

/// Fails unless an answer has the nearest `k` points it found, in order, without having read all points.
#[track_caller]
fn assert_sound(answer: &Answer, search: &Search, points: usize) {
    assert_eq!(answer.hits.len(), search.k());
    let in_order = |w: &[garlic_ann::Hit]| (w[0].distance, w[0].id) < (w[1].distance, w[1].id);
    assert!(answer.hits.windows(2).all(in_order), "{:?}", answer.hits);
    let most = search.wanted_rerank().unwrap_or(points / 2) as u64;
    assert!(answer.stats.candidates <= most, "{:?}", answer.stats);
}

#[test]
fn batches_and_single_queries_give_the_same_answers() {
    let points = 4500;
    let values = sheet(points, DIM, 2);
    let rows = rows(&values, DIM);
    let queries = rows.slice(0..333);
    for code_bits in ["8", "4"] {
        let few = [("cells", "20"), ("calibration_queries", "200")];
        let settings = [&few[..], &[("code_bits", code_bits)]].concat();
        let index = build(rows, &config(&settings), 2);
        assert!(!index.reads_everything(5, 0.95), "targets are interpolated");
        let mut searcher = index.searcher();
        for search in [
            Search::new(5),
            Search::new(3).probes(4).bins(0.1).rerank(20),
            Search::new(2).exact(true),
        ] {
            let one = index.search_batch(queries, &search).unwrap();
            for threads in [2, 3] {
                let search = search.clone().threads(threads);
                assert_eq!(index.search_batch(queries, &search).unwrap(), one);
            }
            for (query, answer) in queries.iter().zip(&one) {
                assert_eq!(index.search(query, &search).unwrap(), *answer);
                assert_eq!(searcher.search(query, &search).unwrap(), *answer);
                assert_sound(answer, &search, points);
            }
        }
        for range in [RangeSearch::new(9.0), RangeSearch::new(9.0).recall(0.9)] {
            let one = index.range_batch(queries, &range).unwrap();
            let three = index.range_batch(queries, &range.clone().threads(3));
            assert_eq!(three.unwrap(), one);
            for (query, answer) in queries.iter().zip(&one) {
                assert_eq!(index.range(query, &range).unwrap(), *answer);
            }
            assert!(one.iter().any(|answer| answer.hits.len() > 1));
        }
    }
}

/// Queries of bytes are rotated in whole numbers, alone, among others of their kind, and among floats; and a copy that
/// stores floats, with the same buffers, goes on without.
#[test]
fn queries_of_bytes_are_the_same_alone_and_in_batches() {
    let data = to_bytes(sheet(4500, DIM, 9));
    let rows = rows(&data, DIM);
    let mut index = build(rows, &config(&[("calibration_queries", "200")]), 2);
    assert_eq!(index.stored_as(), "u8");
    let mut mixed = data[..333 * DIM].to_vec();
    mixed.iter_mut().step_by(3 * DIM).for_each(|v| *v += 0.25);
    let mixed = Rows::new(&mixed, DIM).unwrap();
    let search = Search::new(5).recall(0.95);
    assert!(!index.reads_everything(5, 0.95));
    for round in 0..2 {
        for queries in [rows.slice(0..333), mixed] {
            let batch = index.search_batch(queries, &search).unwrap();
            for (query, answer) in queries.iter().zip(&batch) {
                assert_eq!(index.search(query, &search).unwrap(), *answer);
            }
            let recall = Recall::of_rows(&index, rows, queries, &search);
            recall.assert_meets(0.95, &format!("round {round}"));
        }
        index.add(mixed.slice(0..1), &[10_000 + round]).unwrap();
        assert_eq!(index.stored_as(), "f32");
    }
}

#[test]
fn a_grid_of_settings_gives_what_single_searches_give() {
    let values = sheet(900, DIM, 6);
    let rows = rows(&values, DIM);
    let index = build(rows, &config(&[("cells", "12"), ("bin_size", "8")]), 2);
    let (probes, bins) = ([4, 1, 2, 1000], [0.7, 0.1, 1.0]);
    for query in rows.iter().take(40) {
        let grid = index
            .searcher()
            .search_grid(query, 6, &probes, &bins)
            .unwrap();
        let settings = probes.iter().flat_map(|p| bins.map(|b| (*p, b)));
        let alone = settings.map(|(p, b)| {
            let search = Search::new(6).probes(p).bins(b);
            index.search(query, &search).unwrap()
        });
        assert!(grid.into_iter().eq(alone));
    }
    let query = rows.row(0);
    assert!(
        index
            .searcher()
            .search_grid(query, 0, &probes, &bins)
            .is_err()
    );
    assert!(
        index
            .searcher()
            .search_grid(query, 1, &probes, &[1.1])
            .is_err()
    );
    assert!(
        index
            .searcher()
            .search_grid(query, 1, &[], &bins)
            .unwrap()
            .is_empty()
    );
}
