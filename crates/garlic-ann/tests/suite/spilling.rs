//! Points that lie in a second cell as well: found once, by every kind of search, and in an index that stays as it is.

use crate::testdata::truth::{Recall, distance as reference, ordered, pairs};
use crate::testdata::{clumps, rows};
use garlic_ann::{Config, Error, Filter, Index, Live, Metric, RangeSearch, Rows, Search};

const N: usize = 3000;
const DIM: usize = 16;

/// Whole numbers around a few hundred centres, so that many distances are equal.
fn data(n: usize, seed: u64) -> Vec<f32> {
    let values = clumps(n, DIM, 300, 0.35, seed).into_iter();
    values.map(|v| (85.0 * v + 125.0).round()).collect()
}

fn config(spill: f64) -> Config {
    let mut config = crate::testdata::config(&[("cells", "20"), ("seed", "7")]);
    config.partition.spill = spill;
    config
}

fn build(values: &[f32], config: Config) -> Index {
    let rows = Rows::new(values, DIM).unwrap();
    Index::builder().config(config).build(rows).unwrap()
}

/// Everything by (distance, id), of the points that `counts` is true of.
fn truth(values: &[f32], query: &[f32], counts: impl Fn(u64) -> bool) -> Vec<(f32, u64)> {
    let points = (0..).zip(rows(values, DIM).iter());
    ordered(points.filter(|(id, _)| counts(*id)), query)
}

#[test]
fn exact_answers_are_those_of_brute_force_and_no_point_comes_twice() {
    let (values, asked) = (data(N, 1), data(40, 2));
    let queries = Rows::new(&asked, DIM).unwrap();
    for (spill, code_bits, halves) in [(1.1, 8, false), (1e6, 4, false), (1.2, 4, true)] {
        let values: Vec<f32> = match halves {
            true => values.iter().map(|v| v + 0.5).collect(),
            false => values.clone(),
        };
        let mut config = config(spill);
        config.storage.code_bits = code_bits;
        let index = build(&values, config);
        assert_eq!(index.len(), N);
        let mut ids = index.ids();
        ids.sort_unstable();
        assert!(ids.iter().copied().eq(0..N as u64));
        for query in queries.iter().chain([&values[..DIM]]) {
            let all = truth(&values, query, |_| true);
            for k in [1, 10, 300, N, N + 5] {
                let answer = index.search(query, &Search::new(k).exact(true)).unwrap();
                assert_eq!(pairs(&answer), all[..k.min(N)], "spill {spill}, k {k}");
                assert!(answer.exact);
            }
            for search in [
                Search::new(10),
                Search::new(100).recall(0.6),
                Search::new(10).probes(20).bins(1.0).rerank(2 * N),
            ] {
                let answer = index.search(query, &search).unwrap();
                let mut found = pairs(&answer);
                assert!(found.is_sorted_by(|a, b| a.0 < b.0 || a.0 == b.0 && a.1 < b.1));
                found.sort_unstable_by_key(|hit| hit.1);
                found.dedup_by_key(|hit| hit.1);
                assert_eq!(found.len(), answer.hits.len());
            }
            // Everything is looked at, in both cells of a point.
            let whole = Search::new(10).probes(20).bins(1.0).rerank(2 * N);
            assert_eq!(pairs(&index.search(query, &whole).unwrap()), all[..10]);
            let radius = all[70].0;
            let within = all.iter().filter(|hit| hit.0 <= radius).count();
            let answer = index.range(query, &RangeSearch::new(radius)).unwrap();
            assert_eq!(pairs(&answer), all[..within]);
        }
        for search in [Search::new(10), Search::new(5).exact(true)] {
            let one = index.search_batch(queries, &search).unwrap();
            let two = index.search_batch(queries, &search.clone().threads(2));
            assert_eq!(one, two.unwrap());
            for (query, answer) in queries.iter().zip(&one) {
                assert_eq!(index.search(query, &search).unwrap(), *answer);
            }
        }
    }
}

#[test]
fn filters_let_both_places_of_a_point_through_and_no_others() {
    let (values, asked) = (data(N, 1), data(20, 3));
    let index = build(&values, config(1e6));
    for step in [2, 7, 200] {
        let counts = move |id: u64| id.is_multiple_of(step);
        let allowed: Vec<u64> = (0..N as u64).filter(|id| counts(*id)).collect();
        let filters = [
            Filter::ids(allowed.clone()),
            Filter::bitmap(allowed.iter().copied().collect()),
            Filter::predicate(counts),
        ];
        for query in Rows::new(&asked, DIM).unwrap().iter() {
            let all = truth(&values, query, counts);
            // Few cells: a point is found in either, by whatever names it.
            let few = Search::new(8).probes(2).bins(1.0).rerank(2 * N);
            let [a, b, c] = [0, 1, 2].map(|i| {
                let search = few.clone().filter(filters[i].clone());
                index.search(query, &search).unwrap()
            });
            assert!(a == b && b == c, "every {step}th");
            for filter in &filters {
                let search = Search::new(8).filter(filter.clone());
                let exact = index.search(query, &search.clone().exact(true)).unwrap();
                assert_eq!(pairs(&exact), all[..8], "every {step}th");
                let near = index.search(query, &search).unwrap();
                assert!(near.hits.iter().all(|hit| counts(hit.id)));
                assert_eq!(near.hits.len(), 8);
                let range = RangeSearch::new(all[12].0).filter(filter.clone());
                let within = all.iter().filter(|hit| hit.0 <= all[12].0).count();
                let found = index.range(query, &range).unwrap();
                assert_eq!(pairs(&found), all[..within]);
            }
        }
    }
}

#[test]
fn second_cells_find_more_in_as_many_cells_and_targets_are_met() {
    // More than are read whole.
    const MANY: usize = 4500;
    let (values, asked) = (data(MANY, 1), data(300, 4));
    let (base, queries) = (rows(&values, DIM), rows(&asked, DIM));
    let two_cells = Search::new(10).probes(2).bins(1.0).rerank(2 * MANY);
    let [none, some, all] = [0.0, 1.1, 1e6].map(|spill| build(&values, config(spill)));
    let [without, few, more] =
        [&none, &some, &all].map(|index| Recall::of_rows(index, base, queries, &two_cells).mean());
    assert!(without < few && few < more, "{without}, {few}, {more}");
    for index in [&some, &all] {
        for target in [0.8, 0.95] {
            let search = Search::new(10).recall(target);
            let recall = Recall::of_rows(index, base, queries, &search);
            recall.assert_meets(target, "with second cells");
        }
    }
    // Everything twice, vectors included; hardly a point has two cells that are equally far.
    let bytes = |index: &Index| index.memory().vectors;
    let (once, hardly) = (bytes(&none), bytes(&build(&values, config(1.0))));
    assert_eq!(bytes(&all), 2 * once);
    assert!(bytes(&some) > once && bytes(&some) < bytes(&all));
    assert!(hardly < once + once / 50, "{hardly} of {once}");
}

#[test]
fn files_hold_both_places_and_threads_do_not_matter() {
    let values = data(N, 1);
    let rows = Rows::new(&values, DIM).unwrap();
    let ids: Vec<u64> = (0..N as u64)
        .map(|i| 1_000_000_007 * i % (1 << 40))
        .collect();
    let build = |threads: usize| {
        let builder = Index::builder().config(config(1.2)).ids(ids.clone());
        builder.threads(threads).build(rows).unwrap()
    };
    let index = build(1);
    assert_eq!(index.to_bytes().unwrap(), build(3).to_bytes().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spilled.garlic");
    index.save(&path).unwrap();
    Index::verify(&path).unwrap();
    for read in [Index::open(&path).unwrap(), Index::load(&path).unwrap()] {
        assert_eq!((read.len(), read == index), (N, true));
        for (row, id) in rows.iter().zip(&ids).step_by(97) {
            assert_eq!(read.get(*id).as_deref(), Some(row));
            let answer = read.search(row, &Search::new(3).exact(true)).unwrap();
            assert_eq!(answer.hits[0].distance, 0.0);
        }
    }
}

#[test]
fn cosines_and_inner_products_are_those_of_brute_force() {
    let values: Vec<f32> = data(N, 1).iter().map(|v| v - 120.0).collect();
    let asked: Vec<f32> = data(20, 6).iter().map(|v| v - 120.0).collect();
    for metric in [Metric::Cosine, Metric::InnerProduct] {
        let [plain, spilled] = [0.0, 1.3].map(|spill| {
            let config = Config {
                metric,
                ..config(spill)
            };
            build(&values, config)
        });
        for query in Rows::new(&asked, DIM).unwrap().iter() {
            let exact = Search::new(12).exact(true);
            let expected = plain.search(query, &exact).unwrap();
            let found = spilled.search(query, &exact).unwrap();
            assert_eq!(pairs(&found), pairs(&expected), "{metric:?}");
        }
    }
}

#[test]
fn changes_are_refused() {
    let values = data(500, 1);
    let mut index = build(&values, config(1.5));
    let (before, one) = (index.clone(), Rows::new(&values[..DIM], DIM).unwrap());
    let errors = [
        index.add(one, &[9999]).unwrap_err(),
        index.update(one, &[3]).unwrap_err(),
        index.remove(&[3]).unwrap_err(),
        index.recalibrate().unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::Spilled), "{error:?}");
        assert!(error.to_string().contains("without `spill`"), "{error}");
    }
    index.compact().unwrap();
    assert_eq!(index, before);
    let directory = tempfile::tempdir().unwrap();
    let live = Live::create(directory.path().join("live"), index).unwrap();
    assert!(matches!(live.remove(&[3]).unwrap_err(), Error::Spilled));
    for spill in [0.5, -1.0, f64::NAN, f64::INFINITY] {
        let error = Index::builder().config(config(spill)).build(one);
        assert!(matches!(error, Err(Error::Config { key, .. }) if key == "spill"));
    }
}

#[test]
fn exact_and_range_search_find_every_point_once_in_every_metric() {
    let seeds = [1u64, 2, 3];
    for (metric, seed) in Metric::ALL.into_iter().flat_map(|m| seeds.map(|s| (m, s))) {
        let n = [40, 400, 1500][seed as usize - 1];
        let mut values: Vec<f32> = data(n, seed).iter().map(|v| v - 120.3).collect();
        if seed == 3 {
            // One vector far longer than the others costs squared distances their digits: all are then read.
            values[..DIM].iter_mut().for_each(|v| *v *= 1e6);
        }
        let spill = [1e6, 1.1, 1e6][seed as usize - 1];
        let mut config = config(spill);
        (config.metric, config.partition.cells) = (metric, 8);
        let index = build(&values, config);
        let rows = Rows::new(&values, DIM).unwrap();
        for asked in data(12, seed + 50).chunks(DIM) {
            let query: Vec<f32> = asked.iter().map(|v| v - 119.7).collect();
            let mut all: Vec<(f64, u64)> = rows
                .iter()
                .map(|row| reference(metric, row, &query))
                .zip(0..)
                .collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let near = |found: f32, wanted: f64| {
                (f64::from(found) - wanted).abs() <= 1e-5 * wanted.abs() + 1e-9
            };
            let once = |answer: &garlic_ann::Answer| {
                let mut ids: Vec<u64> = answer.hits.iter().map(|hit| hit.id).collect();
                ids.sort_unstable();
                ids.dedup();
                ids.len() == answer.hits.len()
            };
            for k in [1, 10, 60, n, n + 4] {
                let answer = index.search(&query, &Search::new(k).exact(true)).unwrap();
                assert_eq!(answer.hits.len(), k.min(n), "{metric}, seed {seed}");
                assert!(once(&answer), "{metric}, seed {seed}, k {k}");
                for (hit, (wanted, _)) in answer.hits.iter().zip(&all) {
                    let own = reference(metric, rows.row(hit.id as usize), &query);
                    assert!(
                        near(hit.distance, *wanted) && near(hit.distance, own),
                        "{metric}, seed {seed}, k {k}"
                    );
                }
            }
            for rank in [0, n / 10, n - 1] {
                // Between two distances, so that rounding does not decide.
                let next = all
                    .get(rank + 1)
                    .map_or(all[rank].0.abs() * 1.1 + all[rank].0, |a| a.0);
                let radius = (0.5 * (all[rank].0 + next)) as f32;
                if (next - all[rank].0) < 1e-4 * next.abs() {
                    continue;
                }
                let answer = index.range(&query, &RangeSearch::new(radius)).unwrap();
                assert!(
                    once(&answer) && answer.hits.len() == rank + 1,
                    "{metric}, seed {seed}, rank {rank}"
                );
            }
        }
    }
}
