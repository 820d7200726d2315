//! Readers on files that were changed at random: an error or other values, never a panic, and never more memory
//! than the file's size justifies. `GARLIC_FUZZ_ITERATIONS` sets how many files are tried.

use std::path::Path;

use crate::common::written::{arrow, npz, parquet, rows, stream, table};
use crate::common::{Benchmark, floats, folder, ints, npy};
use crate::fuzzing::{Meter, Random, iterations, metered, mutate};
use garlic_data::{Dataset, dataset_info, read_ids, read_vectors, vectors_shape};
use zip::CompressionMethod;

#[global_allocator]
static METER: Meter = Meter;

/// Memory that reading may take besides what the file's size justifies: buffers of a fixed size.
const FIXED: usize = 1 << 20;
/// Bytes for each byte of a file; compressed sets may grow by a factor of 1032, and are copied and converted.
const PLAIN: usize = 64;
const COMPRESSED: usize = 8 * 1032;

fn read_all(path: &Path) {
    if let Ok(vectors) = read_vectors(path) {
        assert_eq!(vectors.shape(), vectors_shape(path).unwrap());
        let values = vectors.to_f32();
        assert_eq!(values.len(), vectors.rows() * vectors.dim());
        assert!(values.iter().all(|v| v.is_finite()));
    }
    if let Ok(ids) = read_ids(path) {
        assert_eq!(ids.data.len(), ids.rows * ids.cols);
    }
    if let Ok(data) = Dataset::open(path) {
        assert!(data.train.rows() > 0);
    }
    let _ = Dataset::open_queries(path);
    let _ = dataset_info(path);
}

#[test]
fn changed_files_are_refused_or_read() {
    let values = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let row = |fields: Vec<u8>| [ints(&[2]), fields].concat().repeat(3);
    let benchmark = |chunked| {
        let benchmark = Benchmark::default();
        Benchmark {
            chunked,
            ..benchmark
        }
        .bytes()
    };
    let archive = |method| npz(method, &[("x.npy", npy("'<f4'", false, "(2, 3)", &values))]);
    let table = table(&[("v", rows())]);
    let sound = [
        ("a.npy", npy("'<f4'", false, "(2, 3)", &values)),
        ("b.npy", npy("'|u1'", false, "(2, 3)", &[1, 2, 3, 4, 5, 6])),
        ("c.npy", npy("'<i8'", false, "(3, 1)", &values)),
        ("a.fbin", [ints(&[2, 3]), values.clone()].concat()),
        ("a.u8bin", [ints(&[2, 3]), vec![1, 2, 3, 4, 5, 6]].concat()),
        ("a.ibin", ints(&[2, 3, 1, 2, 3, 4, 5, 6])),
        ("a.fvecs", row(floats(&[1.0, 2.0]))),
        ("a.bvecs", row(vec![1, 2])),
        ("a.ivecs", row(ints(&[1, 2]))),
        ("a.hdf5", benchmark(false)),
        ("b.hdf5", benchmark(true)),
        ("d.npy", npy("'<f8'", true, "(3, 1)", &values)),
        ("a.csv", b"id,x,y\n1,2.5,3\n4,5,6e1\n7,-8,9\n".to_vec()),
        ("a.npz", archive(CompressionMethod::Stored)),
        ("b.npz", archive(CompressionMethod::Deflated)),
        ("a.parquet", parquet(&table)),
        ("a.arrow", arrow(&table)),
        ("a.arrows", stream(&table)),
    ];
    let folder = folder();
    let mut random = Random(4);
    for iteration in 0..iterations(6000) {
        let (name, bytes) = &sound[random.below(sound.len())];
        let mut bytes = bytes.clone();
        let other = &sound[random.below(sound.len())].1;
        mutate(&mut random, &mut bytes, other);
        let path = folder.path().join(name);
        // Cutting and filling an old file makes some file systems wait for the disk.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, &bytes).unwrap();
        let read = || std::panic::catch_unwind(|| read_all(&path));
        let (read, most) = metered(read);
        assert!(read.is_ok(), "file {iteration}, {name}: {bytes:?}");
        let factor = match name.rsplit('.').next() {
            Some("hdf5" | "npz") => COMPRESSED,
            // Their readers take what a page or a message announces.
            Some("parquet" | "arrow" | "arrows") => continue,
            _ => PLAIN,
        };
        assert!(
            most <= FIXED + factor * bytes.len(),
            "file {iteration}, {name}: {most} bytes of memory for {} bytes",
            bytes.len()
        );
    }
}
