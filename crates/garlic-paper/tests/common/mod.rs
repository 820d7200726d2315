//! Data and small indexes that several test programs use.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use std::fs;
use std::path::Path;

use garlic_linalg::{random_stream, uniform_unit};
use garlic_paper::config::Configuration as _;
use garlic_paper::{Config, Filter, GaussianIndex, Hit, RangeSearch, Rows, Search};

/// Dimension of [`clumps`].
pub const DIM: usize = 3;

/// Points in three clumps; whole numbers.
pub fn clumps(count: usize) -> Vec<f32> {
    let coordinate = |i: usize| (i / DIM % 3 * 80 + i * 37 % 41 + i % DIM * 7) as f32;
    (0..count * DIM).map(coordinate).collect()
}

/// Uniform points whose coordinates have five different ranges.
pub fn uniform(n: usize, dim: usize) -> Vec<f32> {
    let mut rng = random_stream(4, 4);
    (0..n * dim)
        .map(|i| uniform_unit(&mut rng) as f32 * (1 + i % 5) as f32)
        .collect()
}

/// Points near a curved sheet of few dimensions in `dim`, with noise: clustered and anisotropic, as data are.
pub fn sheet(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 3);
    let mut mix = random_stream(11, 3);
    let waves: Vec<[f32; 4]> = (0..dim)
        .map(|_| std::array::from_fn(|_| 2.0 * uniform_unit(&mut mix) as f32 - 1.0))
        .collect();
    let mut values = Vec::with_capacity(n * dim);
    for _ in 0..n {
        let t: [f32; 4] = std::array::from_fn(|_| uniform_unit(&mut rng) as f32 * 3.0);
        values.extend(waves.iter().map(|w| {
            let phase: f32 = w.iter().zip(&t).map(|(a, b)| a * b).sum();
            20.0 * phase.sin() + uniform_unit(&mut rng) as f32
        }));
    }
    values
}

/// The default configuration with some settings.
pub fn config(settings: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    for (key, value) in settings {
        config.set(key, value).unwrap();
    }
    config
}

/// A short training with refinements.
pub fn short() -> Config {
    config(&[
        ("initial_cells", "10"),
        ("epochs", "8"),
        ("batch", "200"),
        ("warmup_epochs", "1"),
        ("refine_every", "2"),
        ("refine_quiet", "1"),
        ("split_threshold", "0.05"),
    ])
}

pub fn build(config: Config, values: &[f32], dim: usize) -> GaussianIndex {
    let builder = GaussianIndex::builder().config(config).threads(1);
    builder.build(Rows::new(values, dim).unwrap()).unwrap()
}

/// An index of a few kilobytes.
pub fn small() -> GaussianIndex {
    let settings = [
        ("seed", "3"),
        ("initial_cells", "3"),
        ("epochs", "2"),
        ("batch", "10"),
        ("rank", "2"),
    ];
    build(config(&settings), &clumps(12), DIM)
}

/// Identifiers and distances by (distance, id), by brute force.
pub fn brute_force(data: &[f32], query: &[f32], k: usize) -> Vec<(f32, u64)> {
    let rows = data.chunks_exact(query.len()).zip(0..);
    let distance = |(row, id): (&[f32], u64)| (garlic_simd::l2_squared(query, row).sqrt(), id);
    let mut all: Vec<(f32, u64)> = rows.map(distance).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(k);
    all
}

/// Hits as [`brute_force`] has them.
pub fn pairs(hits: &[Hit]) -> Vec<(f32, u64)> {
    hits.iter().map(|hit| (hit.distance, hit.id)).collect()
}

/// Writes a new file: cutting and filling an old one makes some file systems wait for the disk.
pub fn put(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

/// Queries on a point of [`clumps`], between points, and far away.
pub const QUERIES: [f32; 4 * DIM] = [
    80.0, 90.0, 99.0, 40.5, 60.25, 3.0, 500.25, -300.5, 0.0, 0.0, 9.0, 15.0,
];

/// Answers to searches of all sorts, each checked for what must be true whatever the index holds.
pub fn search_all(index: &GaussianIndex) -> Vec<Vec<Hit>> {
    let searches = [
        (3, Search::new(3)),
        (2, Search::new(2).exact(true)),
        (40, Search::new(40).probes(2).bins(0.5)),
        (5, Search::new(5).probes(usize::MAX).bins(1.0)),
    ];
    let queries = Rows::new(&QUERIES, DIM).unwrap();
    let mut all = Vec::new();
    for (number, (k, search)) in searches.iter().enumerate() {
        let mut answers: Vec<Vec<Hit>> = Vec::new();
        if number == 0 {
            let batch = index.search_batch(queries, search).unwrap();
            answers.extend(batch.into_iter().map(|a| a.hits));
        }
        for query in queries.iter() {
            answers.push(index.search(query, search).unwrap().hits);
        }
        for hits in &answers {
            assert!(hits.len() <= index.len().min(*k), "{hits:?}");
            assert!(hits.iter().all(|hit| hit.distance >= 0.0), "{hits:?}");
            assert!(hits.is_sorted_by(|a, b| a.distance <= b.distance));
        }
        all.extend(answers);
    }
    all
}

/// The same with filters and ranges as well.
pub fn search_and_filter(index: &GaussianIndex) -> Vec<Vec<Hit>> {
    let mut all = search_all(index);
    let queries = Rows::new(&QUERIES, DIM).unwrap();
    let filter = Filter::predicate(|id| id % 3 != 0);
    for query in queries.iter() {
        for search in [Search::new(4), Search::new(4).exact(true)] {
            let search = search.filter(filter.clone());
            let hits = index.search(query, &search).unwrap().hits;
            assert!(hits.iter().all(|hit| hit.id % 3 != 0), "{hits:?}");
            all.push(hits);
        }
        for range in [RangeSearch::new(20.0), RangeSearch::new(20.0).recall(0.9)] {
            let hits = index.range(query, &range).unwrap().hits;
            assert!(hits.iter().all(|hit| hit.distance <= 20.0), "{hits:?}");
            all.push(hits);
        }
    }
    all
}
