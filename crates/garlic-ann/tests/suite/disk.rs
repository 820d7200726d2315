//! An index whose vectors stay on the disk answers as one in memory does, bit for bit.

use std::fs;
use std::path::Path;

use crate::testdata::{normal, small};
use garlic_ann::{
    Answer, Error, Filter, FormatError, Index, Metric, RangeSearch, RoaringTreemap, Rows, Search,
};
use garlic_core::vector_file::ReadBackend;

const DIM: usize = 16;
/// More than an index reads completely.
const COUNT: usize = 5000;

fn backends() -> impl Iterator<Item = ReadBackend> {
    ReadBackend::ALL.into_iter().filter(|b| b.is_available())
}

/// Points around a few centres, or whole numbers of one byte.
fn points(bytes: bool) -> Vec<f32> {
    let (noise, centres) = (normal(COUNT, DIM, 5), normal(40, DIM, 6));
    let value = |at: usize| {
        let (i, j) = (at / DIM, at % DIM);
        let value = 3.0 * centres[i % 40 * DIM + j] + noise[at];
        match bytes {
            true => (128.0 + 8.0 * value).round().clamp(0.0, 255.0) as f32,
            false => value as f32,
        }
    };
    (0..COUNT * DIM).map(value).collect()
}

fn build(store: &str, metric: Metric, settings: &[(&str, &str)]) -> Index {
    let values = points(store == "u8");
    let mut builder = Index::builder().metric(metric).seed(3).threads(2);
    for (key, value) in [("store", store), ("calibration_queries", "200")]
        .iter()
        .chain(settings)
    {
        builder = builder.set(key, value).unwrap();
    }
    builder.build(Rows::new(&values, DIM).unwrap()).unwrap()
}

/// The kinds of index that differ in how a search comes to its candidates or to its distances.
fn kinds() -> Vec<(&'static str, Index)> {
    let plain = |store, metric| build(store, metric, &[("graph", "off")]);
    vec![
        ("f32", plain("f32", Metric::Euclidean)),
        ("f16, cosine", plain("f16", Metric::Cosine)),
        ("u8", plain("u8", Metric::Euclidean)),
        ("int8", plain("int8", Metric::Euclidean)),
        ("products", plain("f32", Metric::InnerProduct)),
        ("graph", build("f32", Metric::Euclidean, &[("graph", "on")])),
        (
            "two cells",
            build(
                "f32",
                Metric::Euclidean,
                &[("spill", "1.3"), ("graph", "off")],
            ),
        ),
    ]
}

/// The answers of every kind of search, with their statistics.
fn answers(index: &Index, queries: Rows<'_>) -> Vec<Answer> {
    let few: RoaringTreemap = (0..40).map(|i| i * 113).collect();
    let many: RoaringTreemap = (0..COUNT as u64).filter(|id| id % 3 > 0).collect();
    let searches = [
        Search::new(10),
        Search::new(1).recall(0.99),
        Search::new(100).recall(0.9),
        Search::new(10).recall(0.9999),
        Search::new(5).probes(3).bins(0.5).rerank(50),
        Search::new(10).exact(true),
        Search::new(COUNT + 1),
        Search::new(10).filter(Filter::bitmap(few.clone())),
        Search::new(10).filter(Filter::bitmap(many.clone())),
        Search::new(10)
            .exact(true)
            .filter(Filter::bitmap(many.clone())),
    ];
    let mut answers = Vec::new();
    for search in searches {
        for threads in [1, 2] {
            let search = search.clone().threads(threads);
            answers.extend(index.search_batch(queries, &search).unwrap());
        }
        let mut searcher = index.searcher();
        for query in queries.iter().take(5) {
            answers.push(searcher.search(query, &search).unwrap());
        }
    }
    // A radius with some points.
    let radius = answers[0].hits[9].distance;
    for range in [
        RangeSearch::new(radius),
        RangeSearch::new(radius).recall(0.95),
        RangeSearch::new(radius).filter(Filter::bitmap(many)),
    ] {
        answers.extend(
            index
                .range_batch(queries, &range.clone().threads(2))
                .unwrap(),
        );
        answers.push(index.range(queries.row(1), &range).unwrap());
    }
    answers
}

fn open(path: &Path, backend: ReadBackend) -> Index {
    Index::open_on_disk_with(path, backend).unwrap()
}

#[test]
fn every_search_answers_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    for (kind, index) in kinds() {
        index.save(&path).unwrap();
        let values = points(kind == "u8");
        // More than share rotations, and some that are no points.
        let mut queries = values[..70 * DIM].to_vec();
        if kind != "u8" {
            queries[..7 * DIM].iter_mut().for_each(|v| *v += 0.25);
        }
        let queries = Rows::new(&queries, DIM).unwrap();
        let loaded = Index::load(&path).unwrap();
        let expected = answers(&loaded, queries);
        for backend in backends() {
            let opened = open(&path, backend);
            assert_eq!(opened.disk_reads(), Some(backend.name()));
            let found = answers(&opened, queries);
            for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found, expected, "{kind}, {backend:?}, answer {number}");
            }
            assert_eq!(found.len(), expected.len());
            let ids = [0, 17, COUNT as u64 - 1, COUNT as u64];
            assert_eq!(ids.map(|id| opened.get(id)), ids.map(|id| loaded.get(id)));
            assert_eq!(opened.to_bytes().unwrap(), fs::read(&path).unwrap());
            assert_eq!((opened.memory().vectors, opened.mapped_bytes()), (0, 0));
        }
    }
}

#[test]
fn small_indexes_of_all_kinds_answer_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    for (kind, index) in small::indexes() {
        index.save(&path).unwrap();
        let expected = small::search_all(&Index::load(&path).unwrap());
        for backend in backends() {
            assert_eq!(small::search_all(&open(&path, backend)), expected, "{kind}");
        }
    }
}

#[test]
fn threads_share_an_index_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = build("f32", Metric::Euclidean, &[("graph", "off")]);
    index.save(&path).unwrap();
    let values = points(false);
    let queries = Rows::new(&values[..200 * DIM], DIM).unwrap();
    let search = Search::new(10).threads(1);
    let expected = index.search_batch(queries, &search).unwrap();
    for backend in backends() {
        let opened = open(&path, backend);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let found = opened.clone().search_batch(queries, &search).unwrap();
                    assert!(found == expected);
                });
            }
        });
    }
}

#[test]
fn a_file_that_is_replaced_is_still_searched_and_one_that_is_cut_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = build("f32", Metric::Euclidean, &[("graph", "off")]);
    let values = points(false);
    let queries = Rows::new(&values[..20 * DIM], DIM).unwrap();
    let expected = index.search_batch(queries, &Search::new(10)).unwrap();
    for backend in backends() {
        index.save(&path).unwrap();
        let opened = open(&path, backend);
        small::plain("u8", "8").save(&path).unwrap();
        let found = opened.search_batch(queries, &Search::new(10)).unwrap();
        assert!(found == expected, "the old file is still open");

        index.save(&path).unwrap();
        let opened = open(&path, backend);
        let whole = fs::read(&path).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(whole.len() as u64 / 4).unwrap();
        let range = RangeSearch::new(1.0);
        let allowed: RoaringTreemap = (0..COUNT as u64).collect();
        let results = [
            opened.search_batch(queries, &Search::new(10)).map(|_| ()),
            opened.search(queries.row(0), &Search::new(10)).map(|_| ()),
            opened
                .search(queries.row(0), &Search::new(10).exact(true))
                .map(|_| ()),
            opened
                .search(
                    queries.row(0),
                    &Search::new(10).filter(Filter::bitmap(allowed)),
                )
                .map(|_| ()),
            opened.range(queries.row(0), &range).map(|_| ()),
            opened.range_batch(queries, &range).map(|_| ()),
            opened.to_bytes().map(|_| ()),
        ];
        for (number, result) in results.into_iter().enumerate() {
            let error = result.expect_err(&format!("result {number}"));
            assert!(matches!(error, Error::Io { .. }), "{number}: {error}");
            assert!(error.to_string().contains("index"), "{error}");
        }
        let error = Index::open_on_disk(&path).unwrap_err();
        let is_short = |e: &Error| {
            matches!(
                e,
                Error::Format {
                    source: FormatError::Truncated { .. },
                    ..
                }
            )
        };
        assert!(is_short(&error), "{error}");
        // Once the vectors are there again, it goes on.
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, &whole))
            .unwrap();
        let found = opened.search_batch(queries, &Search::new(10)).unwrap();
        assert!(found == expected);
    }
}

#[test]
fn an_index_on_the_disk_is_read_only_and_its_other_parts_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = build("f32", Metric::Euclidean, &[("graph", "off")]);
    index.save(&path).unwrap();
    let mut opened = Index::open_on_disk(&path).unwrap();
    let one = Rows::new(&[0.5; DIM], DIM).unwrap();
    assert!(matches!(opened.add(one, &[90_000]), Err(Error::OnDisk)));
    assert!(matches!(opened.remove(&[3]), Err(Error::OnDisk)));
    assert!(matches!(opened.update(one, &[3]), Err(Error::OnDisk)));
    assert!(matches!(opened.upsert(one, &[3]), Err(Error::OnDisk)));
    assert!(matches!(opened.recalibrate(), Err(Error::OnDisk)));
    opened.compact().unwrap();
    assert_eq!(opened.to_bytes().unwrap(), fs::read(&path).unwrap());

    let summary = Index::verify(&path).unwrap();
    let codes = summary.sections.iter().find(|s| s.kind == "CODES").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[codes.offset as usize + codes.length as usize / 2] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = Index::open_on_disk(&path).unwrap_err();
    assert!(error.to_string().contains("CODES"), "{error}");
}
