//! An index that changes, beside a map of vectors: whatever is done to it, exact answers are those of brute force.
//!
//! `GARLIC_OPERATIONS` sets the number of operations; a few thousand by default.

use crate::testdata::truth::{Model, nearest, pairs};
use crate::testdata::{config, ids, rows, uniform};
use garlic_ann::{Config, EXHAUSTIVE_POINTS, Filter, Index, RangeSearch, Rows, Search};
use garlic_linalg::{random_stream, uniform_unit};
use rand_chacha::ChaCha8Rng;

const DIM: usize = 6;

struct World {
    rng: ChaCha8Rng,
    model: Model,
    index: Index,
    next: u64,
    /// Where new vectors come from: it wanders, so that cells split, empty and drift.
    centre: Vec<f32>,
    bytes: bool,
    /// Exact answers that bounds gave, without a look at every vector.
    proved: usize,
    folder: tempfile::TempDir,
}

impl World {
    fn draw(&mut self, n: usize) -> usize {
        (uniform_unit(&mut self.rng) * n as f64) as usize
    }

    fn vector(&mut self) -> Vec<f32> {
        let wide = self.draw(10) == 0;
        (0..DIM)
            .map(|i| {
                let spread = if wide { 60.0 } else { 9.0 };
                let offset = (uniform_unit(&mut self.rng) - 0.5) * spread / (1.0 + i as f64);
                let value = self.centre[i] + offset as f32;
                match self.bytes {
                    // Whole numbers, and so many equal distances.
                    true => value.round().clamp(0.0, 255.0),
                    false => value,
                }
            })
            .collect()
    }

    fn some_ids(&mut self, most: usize) -> Vec<u64> {
        let count = 1 + self.draw(most);
        let mut ids: Vec<u64> = (0..count)
            .filter_map(|_| {
                let at = self.draw(self.model.len());
                self.model.keys().nth(at).copied()
            })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn step(&mut self, step: usize) {
        for i in 0..DIM {
            let offset = (uniform_unit(&mut self.rng) - 0.5) as f32 * 4.0;
            self.centre[i] = (self.centre[i] + offset).clamp(40.0, 200.0);
        }
        match self.draw(1000) {
            0..300 => {
                let count = 1 + self.draw(12);
                self.add(count);
            }
            300..303 => self.add(300),
            303..480 => {
                let mut ids = self.some_ids(12);
                ids.push(self.next + 7);
                let removed = self.index.remove(&ids).unwrap();
                assert_eq!(removed, ids.len() - 1, "step {step}");
                ids.iter().for_each(|id| {
                    self.model.remove(id);
                });
            }
            480..483 => {
                // Nearly all of one region, so that cells empty.
                let ids: Vec<u64> = self.model.keys().copied().collect();
                let axis = self.draw(DIM);
                let limit = self.centre[axis];
                let gone: Vec<u64> = ids
                    .into_iter()
                    .filter(|id| self.model[id][axis] > limit)
                    .collect();
                assert_eq!(self.index.remove(&gone).unwrap(), gone.len());
                gone.iter().for_each(|id| {
                    self.model.remove(id);
                });
            }
            483..580 => {
                let ids = self.some_ids(8);
                let rows: Vec<Vec<f32>> = ids.iter().map(|_| self.vector()).collect();
                let data = rows.concat();
                if ids.is_empty() {
                    return;
                }
                let vectors = Rows::new(&data, DIM).unwrap();
                self.index.update(vectors, &ids).unwrap();
                self.model.extend(ids.into_iter().zip(rows));
            }
            580..582 => self.index.compact().unwrap(),
            582..583 => {
                let path = self.folder.path().join("index");
                self.index.save(&path).unwrap();
                Index::verify(&path).unwrap();
                self.index = Index::open(&path).unwrap();
            }
            583..860 => self.search(step),
            860..950 => self.search_filtered(step),
            _ => self.search_range(step),
        }
        assert_eq!(self.index.len(), self.model.len(), "step {step}");
    }

    fn add(&mut self, count: usize) {
        // Room for identifiers that are far from row numbers.
        self.next += [1, 1, 1, 1_000_003][self.draw(4)];
        let ids: Vec<u64> = (self.next..self.next + count as u64).collect();
        self.next += count as u64;
        let rows: Vec<Vec<f32>> = ids.iter().map(|_| self.vector()).collect();
        let data = rows.concat();
        let vectors = Rows::new(&data, DIM).unwrap();
        self.index.add(vectors, &ids).unwrap();
        assert!(self.index.add(vectors, &ids).is_err(), "they are there");
        self.model.extend(ids.into_iter().zip(rows));
    }

    fn search(&mut self, step: usize) {
        let query = self.vector();
        let k = [1, 3, 10, 50, 100_000][self.draw(5)];
        let expected = nearest(&self.model, &query, k, |_| true);
        let answer = self
            .index
            .search(&query, &Search::new(k).exact(true))
            .unwrap();
        assert_eq!(pairs(&answer), expected, "step {step} k {k}");
        self.proved += usize::from(answer.stats.candidates < self.index.len() as u64);
        // By way of cells, bins and codes: all of them, and some.
        let every = Search::new(k).probes(usize::MAX).bins(1.0);
        let whole = self
            .index
            .search(&query, &every.rerank(usize::MAX))
            .unwrap();
        assert_eq!(pairs(&whole), expected, "step {step} k {k} by codes");
        assert_eq!(
            whole.stats.candidates,
            self.index.len() as u64,
            "step {step}"
        );
        let some = Search::new(k).probes(2).bins(0.5).rerank(20);
        let rough = self.index.search(&query, &some).unwrap();
        assert!(pairs(&rough).is_sorted_by(|a, b| a.0 < b.0 || a.0 == b.0 && a.1 < b.1));
        for hit in &rough.hits {
            let distance = garlic_simd::l2_squared(&query, &self.model[&hit.id]).sqrt();
            assert_eq!(distance, hit.distance, "step {step}");
        }
        // So few points are read whole for a target.
        if self.index.len() <= EXHAUSTIVE_POINTS {
            let target = self.index.search(&query, &Search::new(k)).unwrap();
            assert_eq!(pairs(&target), expected, "step {step} k {k} by target");
        }
        let id = self.some_ids(1);
        for id in id {
            assert_eq!(self.index.get(id).as_ref(), self.model.get(&id));
        }
        assert!(!self.index.contains(self.next + 3));
    }

    fn search_filtered(&mut self, step: usize) {
        let query = self.vector();
        let modulus = [1, 2, 10, 100, 100_000_000][self.draw(5)] as u64;
        let allows = move |id: u64| id.is_multiple_of(modulus);
        let expected = nearest(&self.model, &query, 5, allows);
        let allowed: Vec<u64> = self
            .model
            .keys()
            .copied()
            .filter(|id| allows(*id))
            .collect();
        let filter = match self.draw(3) {
            0 => Filter::predicate(allows),
            1 => Filter::ids(allowed),
            _ => Filter::bitmap(allowed.into_iter().chain([self.next + 5]).collect()),
        };
        let search = Search::new(5).filter(filter);
        let answer = self
            .index
            .search(&query, &search.clone().exact(true))
            .unwrap();
        assert_eq!(pairs(&answer), expected, "step {step} every {modulus}th");
        let every = search.clone().probes(usize::MAX).bins(1.0);
        let whole = self
            .index
            .search(&query, &every.rerank(usize::MAX))
            .unwrap();
        assert_eq!(whole.hits, answer.hits, "step {step} by codes");
        let rough = self.index.search(&query, &search).unwrap();
        assert!(rough.hits.iter().all(|h| allows(h.id)));
        assert!(rough.hits.is_sorted_by(|a, b| a.distance <= b.distance));
        if rough.exact || self.index.len() <= EXHAUSTIVE_POINTS {
            assert_eq!(rough.hits, answer.hits, "step {step}");
        }
    }

    fn search_range(&mut self, step: usize) {
        let query = self.vector();
        let radius = [0.0, 2.0, 8.0, 30.0, 1e9][self.draw(5)];
        let mut expected = nearest(&self.model, &query, usize::MAX, |_| true);
        expected.retain(|e| e.0 <= radius);
        let answer = self.index.range(&query, &RangeSearch::new(radius)).unwrap();
        assert!(answer.exact);
        assert_eq!(pairs(&answer), expected, "step {step} radius {radius}");
        let rough = self
            .index
            .range(&query, &RangeSearch::new(radius).recall(0.9))
            .unwrap();
        assert!(rough.hits.iter().all(|hit| answer.hits.contains(hit)));
    }
}

/// Returns how many exact answers bounds gave.
fn run(seed: u64, operations: usize, config: Config, bytes: bool) -> usize {
    let mut world = World {
        rng: random_stream(seed, 77),
        model: Model::new(),
        index: start(&config),
        next: 1000,
        centre: vec![120.0; DIM],
        bytes,
        proved: 0,
        folder: tempfile::tempdir().unwrap(),
    };
    for id in world.index.ids() {
        world.model.insert(id, world.index.get(id).unwrap());
    }
    for step in 0..operations {
        world.step(step);
    }
    let drift = world.index.drift();
    assert!(drift.added > 0 && drift.removed > 0 && drift.built == 600);
    world.proved
}

fn start(config: &Config) -> Index {
    let mut data = uniform(600, DIM, 5);
    for (i, value) in data.iter_mut().enumerate() {
        let cluster = (i / DIM % 5) as f32 * 20.0;
        *value = (100.0 + cluster + 12.0 * *value).round();
    }
    let builder = Index::builder().config(config.clone());
    builder.build(rows(&data, DIM)).unwrap()
}

fn operations() -> usize {
    let asked = std::env::var("GARLIC_OPERATIONS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(6000)
}

fn small(store: &str, settings: &[(&str, &str)]) -> Config {
    let few = [
        ("bin_size", "4"),
        ("calibration_queries", "40"),
        ("store", store),
    ];
    config(&[&few, settings].concat())
}

#[test]
fn floats_answer_like_brute_force() {
    run(1, operations(), small("f32", &[]), false);
}

/// Few large bins, so that bounding them costs little beside reading all vectors.
#[test]
fn bounds_answer_like_brute_force() {
    let config = small("f32", &[("axes", "2"), ("bin_size", "48")]);
    let proved = run(4, operations() / 2, config, false);
    assert!(
        proved > operations() / 50,
        "{proved} exact answers by bounds"
    );
}

#[test]
fn with_a_graph_they_answer_like_brute_force() {
    let config = small("f32", &[("graph", "on")]);
    assert!(start(&config).graph_degree().is_some());
    run(3, operations() / 2, config, false);
}

#[test]
fn bytes_answer_like_brute_force() {
    run(2, operations() / 2, small("auto", &[]), true);
}

#[test]
fn short_codes_and_given_cells_answer_like_brute_force() {
    let config = small(
        "f32",
        &[
            ("code_bits", "4"),
            ("axes", "3"),
            ("cells", "7"),
            ("max_dim", "4"),
        ],
    );
    run(3, operations() / 2, config, false);
}

/// The last point can go, and others can come again; files of an index without points are opened, too.
#[test]
fn an_index_can_be_emptied() {
    let mut index = start(&small("f32", &[]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let ids = index.ids();
    assert_eq!(index.remove(&ids).unwrap(), 600);
    assert_eq!(index.remove(&ids).unwrap(), 0);
    for round in 0..3 {
        assert!(index.is_empty() && index.ids().is_empty());
        let query = [100.0; DIM];
        let search = Search::new(3);
        assert!(index.search(&query, &search).unwrap().hits.is_empty());
        let exact = index.search(&query, &search.clone().exact(true)).unwrap();
        assert!(exact.hits.is_empty());
        assert!(
            index
                .range(&query, &RangeSearch::new(1e9))
                .unwrap()
                .hits
                .is_empty()
        );
        let filtered = search.clone().filter(Filter::ids(vec![5]));
        assert!(index.search(&query, &filtered).unwrap().hits.is_empty());
        match round {
            0 => index.compact().unwrap(),
            1 => {
                index.save(&path).unwrap();
                Index::verify(&path).unwrap();
                index = Index::open(&path).unwrap();
            }
            _ => index = Index::load(&path).unwrap(),
        }
    }
    let rows = [[3.0; DIM], [250.0; DIM], [100.0; DIM]].concat();
    let rows = Rows::new(&rows, DIM).unwrap();
    index.add(rows, &[7, 9, 8]).unwrap();
    let answer = index.search(&[101.0; DIM], &Search::new(5)).unwrap();
    let ids: Vec<u64> = answer.hits.iter().map(|h| h.id).collect();
    assert_eq!(ids, [8, 7, 9]);
}

/// A small index that is given far more points at once has about as many cells as a build would make.
#[test]
fn a_large_batch_makes_no_more_cells_than_a_build() {
    let data = uniform(20_000, DIM, 4);
    let rows = rows(&data, DIM);
    let config = small("f32", &[("calibration_queries", "20")]);
    let built = Index::builder().config(config.clone()).build(rows).unwrap();
    let first = rows.slice(0..300);
    let mut grown = Index::builder().config(config).build(first).unwrap();
    grown
        .add(rows.slice(300..20_000), &ids(300..20_000))
        .unwrap();
    let (cells, wanted) = (grown.drift().cells, built.cells());
    assert!(
        10 * cells.abs_diff(wanted) <= wanted,
        "{cells}, not about {wanted}"
    );
}
