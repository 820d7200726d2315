//! Queries and their parameters: what is refused, filters, ranges, and what is reported.

use std::sync::{Arc, OnceLock};

use crate::common::{brute_force, build, config, pairs, sheet, short, uniform};
use garlic_paper::{Error, Filter, GaussianIndex, NeighborIndex, RangeSearch, Rows, Search};

#[test]
fn bad_queries_are_refused() {
    let data = uniform(100, 4);
    let index = GaussianIndex::builder()
        .config(short())
        .build(Rows::new(&data, 4).unwrap())
        .unwrap();
    let run = |q: &[f32], s: Search| index.search(q, &s);
    let q = &data[..4];
    assert!(matches!(
        run(q, Search::new(0)),
        Err(Error::SearchParameter { name: "k", .. })
    ));
    assert!(matches!(
        run(q, Search::new(1).probes(0)),
        Err(Error::SearchParameter { name: "probes", .. })
    ));
    for bins in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(matches!(
            run(q, Search::new(1).bins(bins)),
            Err(Error::SearchParameter { name: "bins", .. })
        ));
    }
    assert!(matches!(
        run(&q[..3], Search::new(1)),
        Err(Error::Dimension {
            expected: 4,
            found: 3
        })
    ));
    let bad = [1.0, f32::NAN, 0.0, 0.0];
    assert!(matches!(
        run(&bad, Search::new(1)),
        Err(Error::QueryNotFinite {
            row: 0,
            column: 1,
            ..
        })
    ));
    let batch = [1.0, 1.0, 0.0, 0.0, 1.0, 2.0, 3.0, f32::INFINITY];
    let batch = index.search_batch(Rows::new(&batch, 4).unwrap(), &Search::new(1));
    assert!(matches!(
        batch,
        Err(Error::QueryNotFinite {
            row: 1,
            column: 3,
            ..
        })
    ));
    let threads = index.search_batch(Rows::new(q, 4).unwrap(), &Search::new(1).threads(0));
    assert!(matches!(
        threads,
        Err(Error::SearchParameter {
            name: "threads",
            ..
        })
    ));
    // Far away is fine as long as distances can be told apart; beyond that it is an error.
    let far = index.search(&[9e14; 4], &Search::new(2)).unwrap();
    assert!(far.hits.len() == 2 && far.hits[1].distance.is_finite());
    let beyond = index.search(&[0.0, 3e38, 0.0, 0.0], &Search::new(2));
    assert!(matches!(
        beyond,
        Err(Error::QueryTooLarge {
            row: 0,
            column: 1,
            ..
        })
    ));
}

#[test]
fn a_recall_or_candidates_are_refused() {
    let data = sheet(300, 6, 8);
    let rows = Rows::new(&data, 6).unwrap();
    let index = build(config(&[("initial_cells", "3"), ("epochs", "1")]), &data, 6);
    assert!(!index.takes_recall());
    for search in [Search::new(1).recall(0.9), Search::new(1).rerank(5)] {
        match index.search(rows.row(0), &search) {
            Err(Error::SearchParameter { rule, .. }) => assert!(rule.contains("published")),
            other => panic!("{other:?}"),
        }
    }
    for recall in [0.0, 1.0, f64::NAN] {
        let error = index.search(rows.row(0), &Search::new(1).recall(recall));
        let error = error.unwrap_err();
        assert!(matches!(
            error,
            Error::SearchParameter { name: "recall", .. }
        ));
        assert!(error.to_string().contains("above 0"), "{error}");
    }
    let exact = index
        .search(rows.row(9), &Search::new(2).exact(true))
        .unwrap();
    assert!(exact.exact && exact.hits[0].id == 9);
}

#[test]
fn filters_leave_the_nearest_of_what_they_allow() {
    let data = uniform(500, 6);
    let rows = Rows::new(&data, 6).unwrap();
    let index = build(short(), &data, 6);
    let other = build(short(), &data[..6 * 400], 6);
    let even: Vec<u64> = (0..600).step_by(2).collect();
    let filters = [
        Filter::predicate(|id| id % 2 == 0),
        Filter::ids(even.clone()),
        Filter::bitmap(even.into_iter().collect()),
    ];
    for filter in &filters {
        // One filter for two indexes in turn: each makes its own translation.
        for (index, points) in [(&index, 500), (&other, 400), (&index, 500)] {
            for query in rows.slice(100..120).iter() {
                let mut expected = brute_force(&data[..6 * points], query, points);
                expected.retain(|(_, id)| id % 2 == 0);
                let all = Search::new(7).probes(usize::MAX).bins(1.0);
                for search in [all, Search::new(7).exact(true)] {
                    let answer = index.search(query, &search.filter(filter.clone())).unwrap();
                    assert_eq!(pairs(&answer.hits), expected[..7]);
                    assert_eq!(answer.stats.candidates, points as u64 / 2);
                }
                let few = Search::new(7).probes(1).filter(filter.clone());
                let few = index.search(query, &few).unwrap();
                assert!(few.hits.iter().all(|hit| hit.id % 2 == 0));
            }
        }
    }
    let nothing = Search::new(3).filter(Filter::ids([]));
    assert!(index.search(rows.row(0), &nothing).unwrap().hits.is_empty());
}

#[test]
fn a_predicate_that_searches_with_its_own_filter_is_told() {
    let data = uniform(100, 4);
    let index = Arc::new(build(short(), &data, 4));
    let own: Arc<OnceLock<Filter>> = Arc::default();
    let (inside, mine) = (Arc::clone(&index), Arc::clone(&own));
    let filter = Filter::predicate(move |id| {
        let filter = mine.get().unwrap().clone();
        let searched = inside.search(&[1.0; 4], &Search::new(1).filter(filter.clone()));
        assert!(matches!(searched, Err(Error::FilterInItself)));
        let ranged = inside.range(&[1.0; 4], &RangeSearch::new(5.0).filter(filter));
        assert!(matches!(ranged, Err(Error::FilterInItself)));
        id < 10
    });
    own.set(filter.clone()).unwrap();
    let search = Search::new(100).exact(true).filter(filter);
    assert_eq!(index.search(&[1.0; 4], &search).unwrap().hits.len(), 10);
}

#[test]
fn ranges_are_all_points_within_the_radius() {
    let data = uniform(500, 6);
    let rows = Rows::new(&data, 6).unwrap();
    let index = build(short(), &data, 6);
    let queries = rows.slice(0..30);
    for radius in [-1.0, 0.0, 0.7, 2.5, 1e6] {
        let range = RangeSearch::new(radius);
        let answers = index.range_batch(queries, &range).unwrap();
        let threads = index
            .range_batch(queries, &range.clone().threads(3))
            .unwrap();
        assert_eq!(answers, threads);
        for (query, answer) in queries.iter().zip(&answers) {
            let mut expected = brute_force(&data, query, 500);
            expected.retain(|(distance, _)| *distance <= radius);
            assert_eq!(pairs(&answer.hits), expected, "{radius}");
            assert!(answer.exact);
            assert_eq!(index.range(query, &range).unwrap(), *answer);
            let likely = index.range(query, &range.clone().recall(0.5)).unwrap();
            assert_eq!(likely.hits, answer.hits, "a recall changes nothing");
            let odd = Filter::predicate(|id| id % 2 == 1);
            let odd = index.range(query, &range.clone().filter(odd)).unwrap();
            expected.retain(|(_, id)| id % 2 == 1);
            assert_eq!(pairs(&odd.hits), expected);
        }
    }
    let wrong = index.range(rows.row(0), &RangeSearch::new(f32::NAN));
    assert!(matches!(
        wrong,
        Err(Error::SearchParameter { name: "radius", .. })
    ));
}

#[test]
fn an_index_tells_what_it_is() {
    let data = uniform(300, 6);
    let index = build(short(), &data, 6);
    let any: &dyn NeighborIndex = &index;
    assert_eq!((any.len(), any.dim(), any.cells()), (300, 6, index.cells()));
    assert_eq!((any.preset(), any.stored_as()), ("paper", "f32"));
    assert!(!any.is_empty());
    let sizes = any.cell_sizes();
    assert_eq!(sizes.len(), index.cells());
    let mean = sizes.iter().sum::<usize>() as f64 / 300.0;
    assert!((mean - index.coverage().mean).abs() < 1e-9);
    let (keys, values): (Vec<_>, Vec<_>) = any.parameters().into_iter().unzip();
    assert_eq!(keys[..4], ["seed", "metric", "train_fraction", "normalize"]);
    assert_eq!(values[1], "euclidean");
    let details = any.details();
    assert_eq!(details[0].0, "coverage");
    assert_eq!(details[0].1["mean"], index.coverage().mean);
    assert_eq!((details[1].0, details[1].1.as_u64()), ("epochs", Some(8)));
    let memory = any.memory();
    assert_eq!((memory.vectors, memory.ids), (300 * 6 * 4, 300 * 8));
    assert_eq!(any.mapped_bytes(), 0);
    let query = &data[..6];
    let grid = any
        .searcher()
        .search_grid(query, 3, &[1, 2], &[0.5])
        .unwrap();
    let single = Search::new(3).probes(2).bins(0.5);
    assert_eq!(grid[1], any.search(query, &single).unwrap());
    assert_eq!(any.route(query, 2).unwrap(), index.route(query, 2).unwrap());
    assert!(any.route(query, 0).unwrap().is_empty());
    assert_eq!(any.to_bytes().unwrap(), index.to_bytes().unwrap());
}
