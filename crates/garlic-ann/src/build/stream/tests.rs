//! A streamed build gives the bytes of the build in memory, goes on after it was stopped, and says what it needs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use garlic_core::{Cancel, Error, Metric, Result, Rows, Stage};

use super::{StreamedBuild, StreamedIndex};
use crate::build::Builder;
use crate::config::Store;
use crate::segment::Index;
use crate::testdata::{clustered, gaussian, rows};

const PLENTY: u64 = 1 << 30;

fn builder<'a>(settings: &[(&str, &str)]) -> Builder<'a> {
    let mut builder = Index::builder().seed(5).threads(2);
    for (key, value) in settings {
        builder = builder.set(key, value).unwrap();
    }
    builder
}

fn streamed<'a>(
    builder: Builder<'a>,
    folder: &Path,
    memory: u64,
    resume: bool,
) -> Result<StreamedBuild<'a>> {
    builder.streamed(folder.join("parts"), memory, "some vectors", resume)
}

/// Gives a build vectors in batches of odd sizes.
fn push(build: &mut StreamedBuild<'_>, vectors: Rows<'_>) -> Result<()> {
    let mut first = 0;
    for size in [1, 700, 3, 4096].into_iter().cycle() {
        let end = vectors.len().min(first + size);
        build.push(vectors.slice(first..end))?;
        first = end;
        if first == vectors.len() {
            break;
        }
    }
    Ok(())
}

fn bytes(built: &StreamedIndex) -> Vec<u8> {
    built.index.to_bytes().unwrap()
}

#[test]
fn bytes_are_those_of_the_build_in_memory() {
    let (count, dim) = (2500, 20);
    let floats = clustered(count, dim, 9.0, 1.0, 3);
    // Too large for half precision, but not once they are normalised.
    let large: Vec<f32> = floats.iter().map(|v| v * 1e5).collect();
    let whole: Vec<f32> = floats
        .iter()
        .map(|v| (v.abs() * 9.0).round().min(255.0))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    for (metric, store, values, stored) in [
        (Metric::Euclidean, Store::Auto, &floats, "f32"),
        (Metric::Euclidean, Store::Auto, &whole, "u8"),
        (Metric::Euclidean, Store::F16, &floats, "f16"),
        (Metric::Euclidean, Store::Int8, &floats, "int8"),
        (Metric::Cosine, Store::Auto, &floats, "f32"),
        (Metric::Cosine, Store::Int8, &floats, "int8"),
        (Metric::Cosine, Store::F16, &large, "f16"),
        (Metric::Cosine, Store::F16, &whole, "f16"),
        (Metric::InnerProduct, Store::Auto, &floats, "f32"),
    ] {
        let make = || builder(&[]).metric(metric).store(store);
        let expected = make().build(rows(values, dim)).unwrap();
        let mut build = streamed(make(), folder.path(), PLENTY, false).unwrap();
        push(&mut build, rows(values, dim)).unwrap();
        let built = build.build().unwrap();
        assert_eq!(built.index.stored_as(), stored);
        assert_eq!(
            bytes(&built),
            expected.to_bytes().unwrap(),
            "{metric} {stored}"
        );
        build.remove().unwrap();
    }
}

/// More points than a sample of the training, outliers in shells of their own, identifiers, and several groups.
#[test]
fn groups_samples_and_outliers_do_not_change_the_bytes() {
    let (count, dim) = (30_000, 12);
    let mut values = gaussian(count, dim, 3);
    for row in values.chunks_exact_mut(dim).step_by(400) {
        row.iter_mut().for_each(|v| *v *= 1e3);
    }
    let ids: Vec<u64> = (0..count as u64).map(|row| 7 * row + 1).rev().collect();
    let settings = [
        ("graph", "off"),
        ("calibration_queries", "150"),
        ("cells", "30"),
    ];
    let expected = builder(&settings).ids(ids.clone()).threads(1);
    let expected = expected.build(rows(&values, dim)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut build = streamed(builder(&settings), folder.path(), PLENTY, false).unwrap();
    build.memory = build.needed_memory(count, dim) + 16 * count as u64;
    build.set_ids(ids);
    push(&mut build, rows(&values, dim)).unwrap();
    let built = build.build().unwrap();
    let groups = &build.journal.grouped.as_ref().unwrap().groups;
    assert!(groups.len() > 1, "{groups:?}");
    assert_eq!(bytes(&built), expected.to_bytes().unwrap());
}

/// A build whose graph fits has it, and one whose graph does not fit says so.
#[test]
fn a_graph_is_built_if_it_fits() {
    let (count, dim) = (9000, 24);
    let values = gaussian(count, dim, 3);
    let settings = [("graph", "on"), ("calibration_queries", "120")];
    let expected = builder(&settings).build(rows(&values, dim)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut build = streamed(builder(&settings), folder.path(), PLENTY, false).unwrap();
    push(&mut build, rows(&values, dim)).unwrap();
    let built = build.build().unwrap();
    assert!(built.index.graph_degree().is_some() && built.graph_left_out.is_none());
    assert_eq!(bytes(&built), expected.to_bytes().unwrap());

    // What the caller keeps counts, too.
    let least = build.needed_memory(count, dim);
    build.reserve(PLENTY - least);
    assert_eq!(build.needed_memory(count, dim), PLENTY);
    let error = build.check_memory(count, dim).unwrap_err().to_string();
    assert!(error.contains("neighbour graph of 9000 vectors"), "{error}");
    build.reserve(PLENTY);
    let error = build.check_memory(count, dim).unwrap_err().to_string();
    assert!(error.contains("too little for 9000 vectors"), "{error}");
    build.reserve(0);

    build.memory = least;
    let error = build.check_memory(count, dim).unwrap_err().to_string();
    assert!(error.contains("neighbour graph of 9000 vectors"), "{error}");
    // As if calibration had wanted it.
    let rows = build.journal.rows.clone().unwrap();
    let built = build.finish(&rows).unwrap();
    assert!(built.index.graph_degree().is_none());
    assert!(built.graph_left_out.unwrap() > least);
}

#[test]
fn a_stopped_build_goes_on_from_its_last_part() {
    let (count, dim) = (6000, 12);
    let values = gaussian(count, dim, 3);
    let settings = [
        ("calibration_queries", "100"),
        ("graph", "off"),
        ("cells", "24"),
    ];
    let expected = builder(&settings).build(rows(&values, dim)).unwrap();
    for (stage, encoded) in [(Stage::Train, 0), (Stage::Bins, 0), (Stage::Calibrate, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let stopped = builder(&settings)
            .cancel(Cancel::new(flag.clone()))
            .progress(|p| {
                if p.stage == stage && p.done * 2 >= p.total {
                    flag.store(true, Ordering::Relaxed);
                }
            });
        let mut build = streamed(stopped, folder.path(), PLENTY, false).unwrap();
        push(&mut build, rows(&values, dim)).unwrap();
        assert!(matches!(build.build(), Err(Error::Cancelled)), "{stage:?}");
        drop(build);

        let error = streamed(builder(&settings), folder.path(), PLENTY, false).unwrap_err();
        assert!(error.to_string().contains("was stopped"), "{error}");
        let other = builder(&settings).seed(6);
        let error = streamed(other, folder.path(), PLENTY, true).unwrap_err();
        assert!(error.to_string().contains("another build"), "{error}");

        let mut build = streamed(builder(&settings), folder.path(), PLENTY, true).unwrap();
        assert_eq!(build.finished_rows(), Some(count));
        assert_eq!(build.journal.grouped.is_some(), stage != Stage::Train);
        assert_eq!(build.journal.encoded.len(), encoded);
        assert!(
            build.push(rows(&values, dim)).is_err(),
            "it has all vectors"
        );
        if let Some(grouped) = build.journal.grouped.clone()
            && encoded == 0
        {
            // As if the build that was stopped had made it with more memory.
            let group = &mut build.journal.grouped.as_mut().unwrap().largest_group;
            *group = 10_000_000;
            let error = build.build().unwrap_err().to_string();
            assert!(error.contains("had more memory"), "{error}");
            build.journal.grouped = Some(grouped);
        }
        let built = build.build().unwrap();
        assert_eq!(bytes(&built), expected.to_bytes().unwrap(), "{stage:?}");
        let place = build.folder.path().to_owned();
        build.remove().unwrap();
        assert!(!place.exists());
    }
}

#[test]
fn a_folder_belongs_to_one_build_and_nobody_else() {
    let place = tempfile::tempdir().unwrap();
    let open = |resume| streamed(builder(&[]), place.path(), PLENTY, resume);
    let first = open(false).unwrap();
    for resume in [false, true] {
        let error = open(resume).unwrap_err();
        assert!(matches!(error, Error::Directory { .. }), "{error}");
        assert!(error.to_string().contains("another build is using"));
    }
    drop(first);
    open(false).unwrap().remove().unwrap();

    let parts = place.path().join("parts");
    std::fs::create_dir(&parts).unwrap();
    let theirs = parts.join("points");
    std::fs::write(&theirs, "theirs").unwrap();
    for resume in [false, true] {
        let error = open(resume).unwrap_err();
        assert!(error.to_string().contains("other files"), "{error}");
    }
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    assert_eq!(std::fs::read_dir(&parts).unwrap().count(), 1);
    std::fs::remove_file(&theirs).unwrap();
    open(false).unwrap().remove().unwrap();
    assert!(!parts.exists());
}

#[test]
fn what_cannot_be_built_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = |builder: Builder<'static>| streamed(builder, folder.path(), 1 << 20, false);
    let values = gaussian(100, 8, 3);
    let mut build = open(builder(&[])).unwrap();
    assert!(matches!(build.build(), Err(Error::NoVectors)));
    build.push(rows(&values, 8)).unwrap();
    let wrong = build.push(rows(&values, 4)).unwrap_err();
    assert!(matches!(
        wrong,
        Error::Dimension {
            expected: 8,
            found: 4
        }
    ));
    let mut bad = values.clone();
    bad[8 * 3 + 2] = f32::NAN;
    let wrong = build.push(rows(&bad, 8)).unwrap_err();
    assert!(
        matches!(
            wrong,
            Error::NotFinite {
                row: 103,
                column: 2,
                ..
            }
        ),
        "{wrong}"
    );
    let error = build.build().unwrap_err().to_string();
    assert!(
        error.contains("1 MiB are too little for 100 vectors"),
        "{error}"
    );

    let folder = tempfile::tempdir().unwrap();
    let open = |builder: Builder<'static>| streamed(builder, folder.path(), 1 << 20, false);
    let mut cosine = open(builder(&[]).metric(Metric::Cosine)).unwrap();
    let wrong = cosine.push(rows(&[1.0, 2.0, 0.0, 0.0], 2)).unwrap_err();
    assert!(matches!(wrong, Error::ZeroVector { row: 1 }));
    let error = open(builder(&[("spill", "1.5")])).unwrap_err();
    assert!(error.to_string().contains("spill"), "{error}");
}
