//! Readers and writers of vector files, and exact ground truth.
//!
//! The rule of this crate: **nothing a file says is believed before it was checked against the
//! file itself**. Counts in headers are compared with the file's length before memory is taken for
//! them, every value is finite, every neighbour id points at a row that exists, and each way in
//! which a file can be wrong has an error of its own that names the file, the place and the fix.
//! What comes out of a reader needs no second look.
//!
//! | extension | holds | read by |
//! |---|---|---|
//! | `.npy` | numbers of 8 to 64 bits; `int32`, `int64` ids | `float32` and `uint8` in C order mapped, else converted |
//! | `.npz` | arrays with names | like `.npy`; unpacked into a temporary file if compressed |
//! | `.csv`, `.tsv` | a vector a line, with or without a header | read |
//! | `.parquet`, `.arrow`, `.feather` | a column of lists, one of identifiers, others | in batches |
//! | `.fbin`, `.u8bin`, `.ibin` | two `u32` (rows, dimension), then the rows | mapped |
//! | `.fvecs`, `.bvecs`, `.ivecs` | each row after its own `i32` dimension | read |
//! | `.hdf5`, `.h5` | ANN-Benchmarks: `train`, `test`, `neighbors`, `distances`, labels | mapped where contiguous |
//!
//! [`read_vectors`] reads a file or the files of a folder. A [`Reader`] reads streams, columns, identifiers and batches.
//!
//! A mapped file must not be changed in place while its [`Vectors`] are alive; the writers here
//! never do that, they replace files whole (see [`atomic`]).
//!
//! ```
//! # fn main() -> Result<(), garlic_data::DataError> {
//! use garlic_data::{Vectors, ground_truth, read_vectors, write_vectors};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("points.fbin");
//! write_vectors(&path, &Vectors::from_f32(vec![0.0, 0.0, 3.0, 4.0], 2)?)?;
//!
//! let points = read_vectors(&path)?;
//! let truth = ground_truth(&points.to_f32(), points.dim(), &[0.0, 1.0], 2)?;
//! assert_eq!(truth.ids, [0, 1]);
//! assert_eq!(truth.distances[0], 1.0);
//! # Ok(())
//! # }
//! ```

pub mod atomic;
mod batches;
mod bin;
mod dataset;
mod datasets;
mod error;
mod flat;
mod format;
mod hdf5;
mod identifiers;
mod ids;
mod input;
mod map;
mod npy;
mod npz;
mod reader;
mod stream_write;
mod table;
mod text;
mod truth;
mod vecs;
mod vectors;

pub use arrow_array::RecordBatch;
pub use batches::{Batch, Batches};
pub use bin::{write_fbin, write_ibin, write_u8bin};
pub use dataset::{Dataset, Distances, Metric, Queries};
pub use datasets::{DatasetEntry, DatasetInfo, data_dir, dataset_info, list_datasets};
pub use error::{DataError, Origin, Result};
pub use format::{Format, read_ids, read_vectors, vectors_shape, write_ids, write_vectors};
pub use identifiers::Identifiers;
pub use ids::Ids;
pub use npy::{write_npy_f32, write_npy_i32, write_npy_i64, write_npy_u8};
pub use reader::{Columns, ReadOptions, Reader, Table};
pub use stream_write::write_vectors_with;
pub use table::write_parquet;
pub use truth::{Truth, TruthCheck, check_truth, check_truth_by, ground_truth, ground_truth_by};
pub use vecs::{write_bvecs, write_fvecs, write_ivecs};
pub use vectors::{Element, Shape, Vectors};
