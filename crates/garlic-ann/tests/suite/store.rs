//! Saving and opening indexes that were built, through the public interface only.

use std::fs;
use std::path::Path;

use crate::testdata::{clumps, config, rows};
use garlic_ann::store::{FORMAT_VERSION, SUPPORTED_VERSIONS, is_index_file};
use garlic_ann::{Error, FormatError, Index, Rows, Search};
use proptest::prelude::*;

/// Rows in a few clumps, with a duplicate and a constant coordinate among them.
fn data(points: usize, dim: usize) -> Vec<f32> {
    let mut values = clumps(points, dim, 5, 0.2, 1);
    values
        .iter_mut()
        .skip(1)
        .step_by(dim)
        .for_each(|v| *v = 3.0);
    values.copy_within(0..dim, (points - 1) * dim);
    values
}

fn build_with(points: usize, dim: usize, settings: &[(&str, &str)]) -> Index {
    let values = data(points, dim);
    let few = [("cells", "4"), ("seed", "7")];
    let builder = Index::builder().config(config(&[&few, settings].concat()));
    builder.threads(1).build(rows(&values, dim)).unwrap()
}

fn build(points: usize, dim: usize) -> Index {
    build_with(points, dim, &[])
}

fn source_of(error: Error) -> FormatError {
    match error {
        Error::Format { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_saved_is_opened_and_verified() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let settings: [&[(&str, &str)]; 9] = [
        &[],
        &[("store", "f16")],
        &[("store", "f16"), ("code_bits", "4")],
        &[("store", "int8")],
        &[("store", "int8"), ("metric", "cosine"), ("code_bits", "4")],
        &[("code_bits", "4"), ("bin_size", "3")],
        &[("axes", "2"), ("cells", "40")],
        &[("anisotropy", "0"), ("bin_size", "60000")],
        &[("spill", "1.5"), ("metric", "cosine")],
    ];
    for settings in settings {
        let index = build_with(400, 6, settings);
        index.save(&path).unwrap();
        let opened = Index::open(&path).unwrap();
        assert_eq!(opened, index, "{settings:?}");
        assert_eq!(opened.config(), index.config());
        let summary = Index::verify(&path).unwrap();
        assert_eq!(summary.version, FORMAT_VERSION);
        assert_eq!(summary.file_bytes, fs::metadata(&path).unwrap().len());

        let values = data(400, 6);
        let search = Search::new(5).probes(3).bins(1.0);
        for row in values.chunks_exact(6).step_by(17) {
            let answer = index.search(row, &search).unwrap();
            assert_eq!(opened.search(row, &search).unwrap(), answer);
            assert_eq!(answer.hits.len(), 5);
        }
    }
}

#[test]
fn points_that_are_all_the_same_round_trip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    for value in [0.0, 3.0, -1234.5] {
        let index = Index::builder()
            .build(Rows::new(&[value; 300], 3).unwrap())
            .unwrap();
        index.save(&path).unwrap();
        assert_eq!(Index::open(&path).unwrap(), index);
        Index::verify(&path).unwrap();
    }
}

#[test]
fn an_index_of_one_point_round_trips() {
    let point = [1.5, -2.0];
    let index = Index::builder().build(rows(&point, 2)).unwrap();
    let opened = Index::from_bytes(&index.to_bytes().unwrap()).unwrap();
    assert_eq!(opened, index);
    let answer = opened.search(&point, &Search::new(1).bins(1.0));
    assert_eq!(answer.unwrap().hits[0].distance, 0.0);
}

#[test]
fn saving_replaces_the_old_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let (first, second) = (build(300, 4), build(200, 3));
    first.save(&path).unwrap();
    second.save(&path).unwrap();
    assert_eq!(Index::open(&path).unwrap(), second);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn damage_is_named_with_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.garlic");
    let index = build(300, 4);
    let sound = index.to_bytes().unwrap();

    let mut bytes = sound.clone();
    let at = bytes.len() - 20;
    bytes[at] ^= 4;
    fs::write(&path, &bytes).unwrap();
    for error in [
        Index::load(&path).unwrap_err(),
        Index::verify(&path).unwrap_err(),
    ] {
        let message = error.to_string();
        assert!(
            message.contains("damaged.garlic") && message.contains("section IDS"),
            "{message}"
        );
        assert!(matches!(
            source_of(error),
            FormatError::SectionChecksum { section: "IDS", .. }
        ));
    }

    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    let error = source_of(Index::open(&path).unwrap_err());
    assert!(matches!(error, FormatError::Truncated { .. }), "{error:?}");

    fs::write(&path, "# a text file, longer than a header").unwrap();
    let error = source_of(Index::open(&path).unwrap_err());
    assert!(matches!(error, FormatError::NotAnIndex), "{error:?}");

    fs::write(&path, "").unwrap();
    let error = source_of(Index::open(&path).unwrap_err());
    assert!(
        matches!(error, FormatError::Truncated { found: 0, .. }),
        "{error:?}"
    );
}

#[test]
fn other_versions_are_refused_by_name() {
    let sound = build(100, 2).to_bytes().unwrap();
    for version in [0, 1, SUPPORTED_VERSIONS.end() + 1, u32::MAX] {
        let mut bytes = sound.clone();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let error = Index::from_bytes(&bytes).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(&format!("format version {version}")),
            "{message}"
        );
        assert!(message.contains("rebuild"), "{message}");
        match error {
            FormatError::VersionTooOld { .. } => assert!(version < *SUPPORTED_VERSIONS.start()),
            FormatError::VersionTooNew { .. } => assert!(version > *SUPPORTED_VERSIONS.end()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn paths_that_are_no_file_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let index = build(100, 2);
    let missing = directory.path().join("missing").join("index");
    for path in [
        missing.as_path(),
        directory.path(),
        Path::new(""),
        Path::new("/"),
        Path::new(".."),
    ] {
        for error in [
            index.save(path).unwrap_err(),
            Index::open(path).map(|_| ()).unwrap_err(),
            Index::load(path).map(|_| ()).unwrap_err(),
            Index::verify(path).map(|_| ()).unwrap_err(),
        ] {
            match error {
                Error::Io { path: named, .. } => assert_eq!(named, path),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_directory_without_permission_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let path = closed.join("index");
    let (old, new) = (build(100, 2), build(100, 3));
    old.save(&path).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    // Whoever may write everywhere cannot see this test fail.
    if fs::File::create(closed.join("probe")).is_err() {
        let error = new.save(&path).unwrap_err();
        assert!(
            matches!(&error, Error::Io { path: named, .. } if *named == path),
            "{error:?}"
        );
        assert_eq!(Index::open(&path).unwrap(), old);
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn index_files_are_told_from_others_by_how_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index");
    assert!(!is_index_file(&file) && !is_index_file(folder.path()));
    build(60, 4).save(&file).unwrap();
    assert!(is_index_file(&file));
    let sound = fs::read(&file).unwrap();
    for at in 0..8 {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        fs::write(&file, &bytes).unwrap();
        assert!(!is_index_file(&file));
        fs::write(&file, &sound[..at]).unwrap();
        assert!(!is_index_file(&file));
    }
    // Damage behind its beginning makes it no other kind of file.
    fs::write(&file, &sound[..8]).unwrap();
    assert!(is_index_file(&file));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_behind_a_signature_are_an_error(tail in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut bytes = b"GARLIC\0\x1a\x02\0\0\0\x07\0\0\0".to_vec();
        bytes.extend(((tail.len() + 24) as u64).to_le_bytes());
        bytes.extend(tail);
        prop_assert!(Index::from_bytes(&bytes).is_err());
    }
}
