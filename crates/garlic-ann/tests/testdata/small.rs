//! Indexes of a few kilobytes, of every kind, and searches of all sorts on them.

use std::fs;
use std::path::Path;

use garlic_ann::{Error, Filter, Hit, Index, RangeSearch, Rows, Search};

use super::config;

/// Dimension of the vectors.
pub(crate) const DIM: usize = 3;

/// Points in three clumps; whole numbers, so that every type can store them.
pub(crate) fn points(count: usize) -> Vec<f32> {
    let coordinate = |i: usize| (i / DIM % 3 * 80 + i * 37 % 41 + i % DIM * 7) as f32;
    (0..count * DIM).map(coordinate).collect()
}

fn build(count: usize, settings: &[(&str, &str)]) -> Index {
    let values = points(count);
    let builder = Index::builder().config(config(settings)).seed(3).threads(1);
    builder.build(Rows::new(&values, DIM).unwrap()).unwrap()
}

/// An index without calibration.
pub(crate) fn plain(store: &str, code_bits: &str) -> Index {
    let settings = [
        ("cells", "3"),
        ("bin_size", "3"),
        ("axes", "2"),
        ("calibration_queries", "0"),
        ("store", store),
        ("code_bits", code_bits),
    ];
    build(30, &settings)
}

/// A larger index that has measured what recall targets take.
pub(crate) fn calibrated() -> Index {
    let settings = [
        ("cells", "3"),
        ("bin_size", "6"),
        ("axes", "2"),
        ("store", "f16"),
    ];
    build(60, &settings)
}

/// All kinds, with their names.
pub(crate) fn indexes() -> Vec<(&'static str, Index)> {
    vec![
        ("f32, 8 bits", plain("f32", "8")),
        ("f16, 4 bits", plain("f16", "4")),
        ("u8, 8 bits", plain("u8", "8")),
        ("int8, 8 bits", plain("int8", "8")),
        ("calibrated", calibrated()),
    ]
}

/// Writes a new file: cutting and filling an old one makes some file systems wait for the disk.
pub(crate) fn put(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

/// Queries on a point, between points, and far away.
pub(crate) const QUERIES: [f32; 4 * DIM] = [
    80.0, 90.0, 99.0, 40.5, 60.25, 3.0, 500.25, -300.5, 0.0, 0.0, 9.0, 15.0,
];

/// Answers to searches of all sorts, each checked for what must be true whatever the index holds.
pub(crate) fn search_all(index: &Index) -> Vec<Vec<Hit>> {
    let searches = [
        Search::new(3),
        Search::new(2).exact(true),
        Search::new(40).probes(2).bins(0.5),
        Search::new(5).probes(usize::MAX).bins(1.0),
        Search::new(4).recall(0.99),
        Search::new(4).probes(3).rerank(usize::MAX),
    ];
    let queries = Rows::new(&QUERIES, DIM).unwrap();
    let mut all = Vec::new();
    for (number, search) in searches.iter().enumerate() {
        let k = search.k();
        let mut answers: Vec<Vec<Hit>> = Vec::new();
        if number == 0 {
            let batch = sound(index.search_batch(queries, search));
            answers.extend(batch.into_iter().map(|a| a.hits));
        }
        for query in queries.iter() {
            answers.push(sound(index.search(query, search)).hits);
        }
        for hits in &answers {
            assert!(hits.len() <= k.min(index.len()), "{hits:?}");
            assert!(hits.iter().all(|hit| hit.distance >= 0.0), "{hits:?}");
            assert!(hits.is_sorted_by(|a, b| a.distance <= b.distance));
        }
        all.extend(answers);
    }
    all
}

/// The same with filters and ranges as well, and a copy that is changed.
pub(crate) fn search_and_change(index: &Index) -> Vec<Vec<Hit>> {
    let mut all = search_all(index);
    let queries = Rows::new(&QUERIES, DIM).unwrap();
    for query in queries.iter() {
        let filter = Filter::predicate(|id| id % 3 != 0);
        let searches = [Search::new(4), Search::new(4).exact(true)];
        for search in searches {
            let hits = sound(index.search(query, &search.filter(filter.clone()))).hits;
            assert!(hits.iter().all(|hit| hit.id % 3 != 0), "{hits:?}");
            all.push(hits);
        }
        for range in [RangeSearch::new(20.0), RangeSearch::new(20.0).recall(0.9)] {
            let hits = sound(index.range(query, &range)).hits;
            assert!(hits.iter().all(|hit| hit.distance <= 20.0), "{hits:?}");
            all.push(hits);
        }
    }
    change(index);
    all
}

/// Changes a copy of an index: whatever the index holds, that works or is an error.
fn change(index: &Index) {
    let mut copy = index.clone();
    let rows = [7.0, 8.0, 9.0, 200.0, 1.0, 0.0];
    let rows = Rows::new(&rows, DIM).unwrap();
    let before = copy.len();
    if copy.add(rows, &[1 << 40, 1 << 41]).is_ok() {
        assert_eq!(copy.len(), before + 2);
    }
    let _ = copy.remove(&(0..200).collect::<Vec<u64>>());
    let _ = copy.search(&[7.0, 8.0, 9.0], &Search::new(3).exact(true));
    let _ = copy.compact();
    let _ = copy.search(&[7.0, 8.0, 9.0], &Search::new(3));
}

/// An answer, which damage may leave out but nothing else.
fn sound<T: Default>(answer: garlic_ann::Result<T>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(Error::Damaged) => T::default(),
        Err(other) => panic!("{other}"),
    }
}
