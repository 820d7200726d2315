//! Saving and opening indexes that were built, through the public interface only; files under an index that is open.

use std::fs;
use std::path::Path;

use garlic_core::file::{FORMAT_VERSION, SUPPORTED_VERSIONS, is_index_file};
use garlic_paper::{Error, Filter, FormatError, GaussianIndex, RangeSearch, Rows, Search};
use proptest::prelude::*;

/// Rows in a few clumps, with a duplicate and a constant coordinate among them.
fn data(points: usize, dim: usize) -> Vec<f32> {
    let mut state = 12345_u32;
    let mut values = Vec::with_capacity(points * dim);
    for point in 0..points {
        for column in 0..dim {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 8) as f32 / (1 << 24) as f32;
            values.push(if column == 1 {
                3.0
            } else {
                (point % 5 * (column + 1)) as f32 + noise
            });
        }
    }
    values.copy_within(0..dim, (points - 1) * dim);
    values
}

fn build_with(points: usize, dim: usize, settings: &[(&str, &str)]) -> GaussianIndex {
    let few = [
        ("seed", "7"),
        ("initial_cells", "6"),
        ("epochs", "4"),
        ("batch", "100"),
    ];
    let config = crate::common::config(&[&few, settings].concat());
    crate::common::build(config, &data(points, dim), dim)
}

fn build(points: usize, dim: usize) -> GaussianIndex {
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
    let settings: [&[(&str, &str)]; 5] = [
        &[],
        &[("covariance", "diagonal")],
        &[("covariance", "isotropic"), ("normalize", "per-coordinate")],
        &[("rotate", "false"), ("normalize", "none"), ("rank", "0")],
        &[("rank", "5"), ("angular_steps", "3")],
    ];
    for settings in settings {
        let index = build_with(400, 6, settings);
        index.save(&path).unwrap();
        let opened = GaussianIndex::open(&path).unwrap();
        assert_eq!(opened, index);
        let summary = GaussianIndex::verify(&path).unwrap();
        assert_eq!(summary.version, FORMAT_VERSION);
        assert_eq!(summary.file_bytes, fs::metadata(&path).unwrap().len());

        let values = data(400, 6);
        let search = Search::new(5).probes(3).bins(1.0);
        for row in values.chunks_exact(6).step_by(17) {
            assert_eq!(
                opened.search(row, &search).unwrap(),
                index.search(row, &search).unwrap()
            );
        }
    }
}

#[test]
fn points_that_are_all_the_same_round_trip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    for value in [0.0, 3.0, -1234.5] {
        let index = crate::common::build(crate::common::short(), &[value; 300], 3);
        index.save(&path).unwrap();
        assert_eq!(GaussianIndex::open(&path).unwrap(), index);
        GaussianIndex::verify(&path).unwrap();
    }
}

#[test]
fn an_index_of_one_point_round_trips() {
    let index = crate::common::build(crate::common::short(), &[1.5, -2.0], 2);
    let opened = GaussianIndex::from_bytes(&index.to_bytes().unwrap()).unwrap();
    assert_eq!(opened, index);
    let answer = opened.search(&[1.5, -2.0], &Search::new(1).bins(1.0));
    assert_eq!(answer.unwrap().hits[0].distance, 0.0);
}

#[test]
fn saving_replaces_the_old_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let (first, second) = (build(300, 4), build(200, 3));
    first.save(&path).unwrap();
    second.save(&path).unwrap();
    assert_eq!(GaussianIndex::open(&path).unwrap(), second);
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
        GaussianIndex::load(&path).unwrap_err(),
        GaussianIndex::verify(&path).unwrap_err(),
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
    let error = source_of(GaussianIndex::open(&path).unwrap_err());
    assert!(matches!(error, FormatError::Truncated { .. }), "{error:?}");

    fs::write(&path, "# a text file, longer than a header").unwrap();
    let error = source_of(GaussianIndex::open(&path).unwrap_err());
    assert!(matches!(error, FormatError::NotAnIndex), "{error:?}");

    fs::write(&path, "").unwrap();
    let error = source_of(GaussianIndex::open(&path).unwrap_err());
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
        let error = GaussianIndex::from_bytes(&bytes).unwrap_err();
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
            GaussianIndex::open(path).map(|_| ()).unwrap_err(),
            GaussianIndex::load(path).map(|_| ()).unwrap_err(),
            GaussianIndex::verify(path).map(|_| ()).unwrap_err(),
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
        assert_eq!(GaussianIndex::open(&path).unwrap(), old);
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

#[test]
fn mapped_and_loaded_answer_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = crate::common::small();
    index.save(&path).unwrap();
    let opened = GaussianIndex::open(&path).unwrap();
    let loaded = GaussianIndex::load(&path).unwrap();
    assert_eq!((&opened, &loaded), (&index, &index));
    assert_eq!(opened.to_bytes().unwrap(), fs::read(&path).unwrap());
    let expected = crate::common::search_and_filter(&index);
    assert_eq!(crate::common::search_and_filter(&opened), expected);
    assert_eq!(crate::common::search_and_filter(&loaded), expected);
    let memory = opened.memory();
    assert_eq!(loaded.mapped_bytes(), 0);
    assert_eq!(opened.mapped_bytes(), memory.vectors + memory.ids);
    assert_eq!(memory, loaded.memory());
}

#[test]
fn saving_never_touches_a_mapped_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let (old, new) = (crate::common::small(), build(300, 3));
    let answers = crate::common::search_all(&old);
    old.save(&path).unwrap();
    let opened = GaussianIndex::open(&path).unwrap();
    // Before anything of it was read.
    let clone = opened.clone();
    new.save(&path).unwrap();
    assert_eq!(crate::common::search_all(&opened), answers);
    assert_eq!(opened, old);
    assert_eq!(GaussianIndex::open(&path).unwrap(), new);
    // Over the file that replaced its own, then without any file.
    opened.save(&path).unwrap();
    let again = GaussianIndex::open(&path).unwrap();
    again.save(&path).unwrap();
    fs::remove_file(&path).unwrap();
    drop(opened);
    assert_eq!(crate::common::search_all(&clone), answers);
    assert_eq!(again, old);
}

/// Nobody should do that, and what is found afterwards means nothing; but every call returns.
#[test]
fn a_file_that_is_overwritten_in_place_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let sound = crate::common::small().to_bytes().unwrap();
    let mut spoiled = sound.clone();
    for word in spoiled.chunks_exact_mut(4).step_by(3) {
        word.copy_from_slice(&f32::NAN.to_le_bytes());
    }
    let noise = (0..sound.len()).map(|i| (i * 167 % 251) as u8).collect();
    for content in [
        vec![0; sound.len()],
        vec![0xff; sound.len()],
        spoiled,
        noise,
    ] {
        crate::common::put(&path, &sound);
        let opened = GaussianIndex::open(&path).unwrap();
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, &content).unwrap();
        let queries = Rows::new(&crate::common::QUERIES, crate::common::DIM).unwrap();
        let filter = Filter::predicate(|id| id % 3 != 0);
        for query in queries.iter() {
            for search in [
                Search::new(3),
                Search::new(5).exact(true),
                Search::new(5000),
            ] {
                let _ = opened.search(query, &search);
                let _ = opened.search(query, &search.filter(filter.clone()));
            }
            let _ = opened.search_grid(query, 4, &[1, 3], &[0.5, 1.0]);
            let _ = opened.range(query, &RangeSearch::new(20.0));
            let _ = opened.range(query, &RangeSearch::new(0.0));
        }
        let _ = (opened.to_bytes(), opened.memory(), opened.id_at(3));
        let _ = opened == opened.clone();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flips_anywhere_are_found(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4),
    ) {
        thread_local!(static SOUND: Vec<u8> = build(250, 5).to_bytes().unwrap());
        let mut bytes = SOUND.with(Clone::clone);
        let sound = bytes.clone();
        for (at, mask) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        prop_assume!(bytes != sound);
        prop_assert!(GaussianIndex::from_bytes(&bytes).is_err());
    }

    #[test]
    fn any_bytes_behind_a_signature_are_an_error(tail in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut bytes = b"GARLIC\0\x1a\x02\0\0\0\x07\0\0\0".to_vec();
        bytes.extend(((tail.len() + 24) as u64).to_le_bytes());
        bytes.extend(tail);
        prop_assert!(GaussianIndex::from_bytes(&bytes).is_err());
    }
}
