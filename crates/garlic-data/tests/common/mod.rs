//! Small files for the tests.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

pub mod written;

use std::fs;
use std::path::PathBuf;

use garlic_data::DataError;
use hdf5_pure::{AttrValue, FileBuilder};
use tempfile::TempDir;

/// A folder that goes away with the test.
pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes bytes to a file of a folder.
pub fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// A `.npy` file with any header text.
pub fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend(data);
    bytes
}

/// Floats as they lie in files.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// 32-bit integers as they lie in files.
pub fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A benchmark of 4 vectors, 2 queries and 3 neighbours each, in 2 dimensions, with every set.
pub struct Benchmark {
    pub train: Vec<f32>,
    pub test: Vec<f32>,
    pub test_dim: u64,
    pub neighbors: Vec<i32>,
    pub neighbor_cols: u64,
    pub distances: Vec<f32>,
    pub distance_cols: u64,
    pub train_labels: Vec<u8>,
    pub metric: Option<&'static str>,
    pub chunked: bool,
}

impl Default for Benchmark {
    fn default() -> Self {
        Self {
            train: vec![0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 5.0, 5.0],
            test: vec![0.0, 0.0, 5.0, 5.0],
            test_dim: 2,
            neighbors: vec![0, 1, 2, 3, 2, 1],
            neighbor_cols: 3,
            distances: vec![0.0, 1.0, 2.0, 0.0, 5.830_952, 6.403_124],
            distance_cols: 3,
            train_labels: vec![7, 8, 9, 7],
            metric: Some("euclidean"),
            chunked: false,
        }
    }
}

impl Benchmark {
    pub fn bytes(&self) -> Vec<u8> {
        let mut builder = FileBuilder::new();
        let rows = |len: usize, cols: u64| len as u64 / cols;
        let train = builder.create_dataset("train");
        train
            .with_f32_data(&self.train)
            .with_shape(&[rows(self.train.len(), 2), 2]);
        if self.chunked {
            train.with_chunks(&[3, 2]).with_deflate(4);
        }
        let shape = [rows(self.test.len(), self.test_dim), self.test_dim];
        builder
            .create_dataset("test")
            .with_f32_data(&self.test)
            .with_shape(&shape);
        let cols = self.neighbor_cols;
        builder
            .create_dataset("neighbors")
            .with_i32_data(&self.neighbors)
            .with_shape(&[rows(self.neighbors.len(), cols), cols]);
        let cols = self.distance_cols;
        builder
            .create_dataset("distances")
            .with_f32_data(&self.distances)
            .with_shape(&[rows(self.distances.len(), cols), cols]);
        builder
            .create_dataset("train_labels")
            .with_u8_data(&self.train_labels);
        builder.create_dataset("test_labels").with_u8_data(&[7, 7]);
        if let Some(metric) = self.metric {
            builder.set_attr("distance", AttrValue::String(metric.into()));
        }
        builder.finish().unwrap()
    }
}

/// Checks that an error is of the right kind and that its message has all these parts.
#[track_caller]
pub fn assert_error<T: std::fmt::Debug>(
    result: Result<T, DataError>,
    kind: fn(&DataError) -> bool,
    parts: &[&str],
) {
    let error = result.expect_err("this should have been refused");
    assert!(kind(&error), "wrong kind of error: {error:?}");
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

/// A pattern as a function.
#[macro_export]
macro_rules! kind {
    ($pattern:pat) => {
        |error: &garlic_data::DataError| matches!(error, $pattern)
    };
}
