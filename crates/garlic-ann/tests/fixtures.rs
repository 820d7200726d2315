//! Files of every released format version stay readable and give the answers they gave.
//!
//! `GARLIC_WRITE_FIXTURES=1` writes the files of the current version, and their answers, where they are missing.

mod small;

use std::fs;
use std::path::{Path, PathBuf};

use garlic_ann::Index;
use garlic_ann::store::{FORMAT_VERSION, SUPPORTED_VERSIONS};

fn fixture(version: u32, kind: &str, extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(format!("v{version}-{kind}.{extension}"))
}

/// Identifiers and distances of every answer.
type Answers = Vec<Vec<(u64, f32)>>;

fn answers(index: &Index) -> Answers {
    let pairs = |hits: Vec<garlic_ann::Hit>| hits.iter().map(|h| (h.id, h.distance)).collect();
    small::search_all(index).into_iter().map(pairs).collect()
}

fn write_missing() {
    for (kind, index) in [
        ("published", small::published()),
        ("tempered", small::tempered("u8", "4")),
        ("calibrated", small::calibrated()),
    ] {
        let path = fixture(FORMAT_VERSION, kind, "index");
        if !path.exists() {
            index.save(&path).unwrap();
        }
        let told = fixture(FORMAT_VERSION, kind, "json");
        if !told.exists() {
            let index = Index::load(&path).unwrap();
            let text = serde_json::to_string(&answers(&index)).unwrap();
            fs::write(told, text + "\n").unwrap();
        }
    }
}

#[test]
fn old_files_are_read_and_answer_as_they_did() {
    if std::env::var("GARLIC_WRITE_FIXTURES").is_ok_and(|value| value == "1") {
        write_missing();
    }
    for version in SUPPORTED_VERSIONS {
        for kind in ["published", "tempered", "calibrated"] {
            let path = fixture(version, kind, "index");
            let summary = Index::verify(&path).unwrap();
            assert_eq!((summary.version, summary.dim), (version, small::DIM));
            let text = fs::read(fixture(version, kind, "json")).unwrap();
            let expected: Answers = serde_json::from_slice(&text).unwrap();
            for index in [Index::open(&path).unwrap(), Index::load(&path).unwrap()] {
                assert_eq!(index.published().is_some(), kind == "published");
                let found = answers(&index);
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    let ids = |answer: &[(u64, f32)]| -> Vec<u64> {
                        answer.iter().map(|(id, _)| *id).collect()
                    };
                    assert_eq!(ids(found), ids(expected), "{kind} of version {version}");
                    for ((_, found), (_, expected)) in found.iter().zip(expected) {
                        assert!((found - expected).abs() <= 1e-5 * expected.abs());
                    }
                }
            }
        }
    }
}
