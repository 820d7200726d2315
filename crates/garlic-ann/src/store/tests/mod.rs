//! Tests on small indexes.

/// Changes an array of an index.
macro_rules! change {
    ($buffer:expr, $change:expr) => {
        $buffer = super::changed_buffer(&$buffer, $change)
    };
}

mod content;
mod damage;
mod faults;
mod mapped;

use std::sync::Arc;

use garlic_core::buffer::Buffer;
use garlic_core::vectors::StoredVectors;

use super::FormatError;
use crate::config::Store;
use crate::plan::{Calibration, Setting};
use crate::segment::{Index, Segment};
use crate::testdata::{config, rows, uniform};

/// Dimension of the samples.
const DIM: usize = 9;

/// An index of `points` vectors in three cells of five axes. The vectors are whole numbers, so that every type can
/// store them.
fn sample(points: usize, code_bits: usize, store: Store, seed: u64) -> Index {
    let mut values = uniform(points, DIM, seed);
    for (i, value) in values.iter_mut().enumerate() {
        let clump = (i / DIM % 3 * 70) as f32;
        *value = (clump + (*value + 0.5) * 100.0 / (1 + i % DIM) as f32).floor();
    }
    let config = config(&[
        ("cells", 3),
        ("axes", 5),
        ("bin_size", 8),
        ("code_bits", code_bits),
        ("seed", seed as usize),
    ]);
    let builder = Index::builder().config(config).store(store).threads(1);
    let mut index = builder.build(rows(&values, DIM)).unwrap();
    index.calibration = Arc::new(Calibration {
        queries: 100,
        settings: vec![Setting {
            k: 10,
            recall: 0.1 + 0.2,
            measured: 0.4,
            probes: 2,
            bins: 1.0 / 3.0,
            rerank: 40,
            bin_prune_ratio: 1.1,
            rerank_prune_ratio: 0.9,
            expand_ratio: 0.0,
            everything: false,
        }],
        ..Calibration::default()
    });
    index
}

/// Small indexes of every type of vectors and codes.
fn indexes() -> [Index; 4] {
    [
        sample(40, 8, Store::F32, 5),
        sample(30, 4, Store::F16, 6),
        sample(30, 8, Store::U8, 7),
        sample(30, 8, Store::Int8, 8),
    ]
}

fn changed_buffer<T: bytemuck::Pod + Send>(
    buffer: &Buffer<T>,
    change: impl FnOnce(&mut Vec<T>),
) -> Buffer<T> {
    let mut values = buffer.to_vec();
    change(&mut values);
    values.into()
}

/// The arrays of a sample, for changes.
fn segment(index: &mut Index) -> &mut Segment {
    Arc::make_mut(&mut index.segment)
}

/// Changes the stored vectors of a sample.
fn change_vectors(index: &mut Index, change: impl FnOnce(&mut Vec<f32>)) {
    let StoredVectors::F32(values) = &mut segment(index).vectors else {
        panic!("not f32");
    };
    *values = changed_buffer(values, change);
}

/// Fails unless the error is an inconsistency of `section` that says `words`.
#[track_caller]
fn assert_inconsistent(error: &FormatError, expected: &str, words: &str) {
    match error {
        FormatError::Inconsistent { section, message } => {
            assert_eq!(*section, expected, "{message}");
            assert!(
                message.contains(words),
                "`{message}` does not say `{words}`"
            );
        }
        other => panic!("{other:?} is no inconsistency"),
    }
}

#[test]
fn arrays_longer_than_a_chunk_round_trip() {
    let index = sample(15_001, 8, Store::F32, 2);
    let bytes = index.to_bytes().unwrap();
    assert!(Index::from_bytes(&bytes).unwrap() == index);
}

#[test]
fn files_round_trip_and_are_the_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.garlic");
    let index = sample(50, 8, Store::F32, 3);
    index.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), index.to_bytes().unwrap());
    assert_eq!(Index::open(&path).unwrap(), index);
    assert_eq!(Index::load(&path).unwrap(), index);
}

#[test]
fn every_section_is_aligned_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.garlic");
    let index = sample(50, 8, Store::F32, 3);
    index.save(&path).unwrap();
    let summary = Index::verify(&path).unwrap();
    assert_eq!(summary.version, 2);
    assert_eq!(summary.file_bytes, index.to_bytes().unwrap().len() as u64);
    assert_eq!((summary.dim, summary.points, summary.cells), (DIM, 50, 3));
    let names = summary.sections.iter().map(|section| section.kind);
    assert!(names.eq([
        "META", "SPACE", "CELLS", "LEARNED", "CODES", "VECTORS", "IDS"
    ]));
    for section in &summary.sections {
        assert_eq!(section.offset % 64, 0);
    }
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["sections"][5]["length"], 50 * DIM * 4);
    assert_eq!(json["sections"][6]["length"], 50 * 8);
}

#[test]
fn a_number_that_json_has_not_is_refused_when_saving() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nan.garlic");
    let mut index = sample(5, 8, Store::F32, 3);
    Arc::make_mut(&mut index.calibration).correction = f64::NAN;
    let error = index.save(&path).unwrap_err().to_string();
    assert!(
        error.contains("not finite") && error.contains("nan.garlic"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
