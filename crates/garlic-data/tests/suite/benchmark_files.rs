//! HDF5 benchmarks: what is read, what is refused, what is listed.

use crate::common::{Benchmark, assert_error, file, folder};
use garlic_data::{
    DataError, Dataset, Element, Metric, Vectors, dataset_info, list_datasets, read_vectors,
    vectors_shape, write_vectors,
};
use hdf5_pure::{AttrValue, FileBuilder};

#[test]
fn every_set_is_read() {
    let folder = folder();
    for chunked in [false, true] {
        let sample = Benchmark {
            chunked,
            ..Benchmark::default()
        };
        let path = file(&folder, "toy-2-euclidean.hdf5", &sample.bytes());
        let data = Dataset::open(&path).unwrap();
        assert_eq!(data.name, "toy-2-euclidean");
        assert_eq!(data.metric, Some(Metric::Euclidean));
        assert_eq!((data.train.rows(), data.train.dim()), (4, 2));
        assert_eq!(data.train.to_f32(), &sample.train[..]);
        assert!(!(chunked && data.train.is_mapped()));
        assert_eq!(data.test.as_ref().unwrap().to_f32(), &sample.test[..]);
        let neighbors = data.neighbors.as_ref().unwrap();
        assert_eq!(neighbors.row(1), [3, 2, 1]);
        assert_eq!(data.distances.as_ref().unwrap().row(0), [0.0, 1.0, 2.0]);
        assert_eq!(data.train_labels, Some(vec![7, 8, 9, 7]));
        assert_eq!(data.test_labels, Some(vec![7, 7]));
        assert_eq!(read_vectors(&path).unwrap(), data.train);

        let queries = Dataset::open_queries(&path).unwrap();
        assert_eq!(queries.train_rows, 4);
        assert_eq!(Some(&queries.test), data.test.as_ref());
        assert_eq!(queries.neighbors, data.neighbors);
        assert_eq!(queries.distances, data.distances);
    }
}

#[test]
fn contiguous_sets_are_mapped_where_they_are_aligned() {
    let folder = folder();
    let values: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let mut mapped = 0;
    for padding in 1..=8 {
        let mut builder = FileBuilder::new();
        builder.set_attr("padding", AttrValue::String("x".repeat(padding)));
        let train = builder.create_dataset("train");
        train.with_f32_data(&values).with_shape(&[16, 4]);
        let path = file(&folder, "a.hdf5", &builder.finish().unwrap());
        let vectors = read_vectors(&path).unwrap();
        assert_eq!(vectors.to_f32(), &values[..]);
        mapped += usize::from(vectors.is_mapped());
    }
    assert!(mapped > 0, "no alignment of eight led to a mapping");
}

#[test]
fn other_element_types() {
    let folder = folder();
    let mut builder = FileBuilder::new();
    builder
        .create_dataset("train")
        .with_u8_data(&[1, 2, 3, 4, 5, 6])
        .with_shape(&[3, 2]);
    builder
        .create_dataset("test")
        .with_f64_data(&[0.5, 1.5])
        .with_shape(&[1, 2]);
    builder
        .create_dataset("neighbors")
        .with_i64_data(&[2, 0])
        .with_shape(&[1, 2]);
    let path = file(&folder, "bytes.h5", &builder.finish().unwrap());
    let data = Dataset::open(&path).unwrap();
    assert_eq!(data.train.as_u8(), Some(&[1, 2, 3, 4, 5, 6][..]));
    assert_eq!(data.train.element(), Element::U8);
    assert_eq!(*data.test.unwrap().to_f32(), [0.5, 1.5]);
    assert_eq!(data.neighbors.unwrap().data, [2, 0]);
    assert!(data.distances.is_none() && data.train_labels.is_none());
}

#[test]
fn other_formats_have_only_vectors() {
    let folder = folder();
    let path = folder.path().join("points.fvecs");
    let vectors = Vectors::from_f32(vec![1.0, 2.0], 2).unwrap();
    write_vectors(&path, &vectors).unwrap();
    let data = Dataset::open(&path).unwrap();
    assert_eq!(data.train, vectors);
    assert!(data.test.is_none() && data.neighbors.is_none());
    assert_error(
        Dataset::open_queries(&path),
        kind!(DataError::WrongKind { .. }),
        &["points.fvecs", "queries"],
    );
}

#[test]
fn parts_that_do_not_fit_together() {
    let folder = folder();
    let check = |sample: Benchmark, kind: fn(&DataError) -> bool, parts: &[&str]| {
        let path = file(&folder, "bad.hdf5", &sample.bytes());
        assert_error(Dataset::open(&path), kind, parts);
        assert_error(Dataset::open_queries(&path), kind, parts);
    };
    let good = Benchmark::default;
    check(
        Benchmark {
            test: vec![1.0; 6],
            test_dim: 3,
            ..good()
        },
        kind!(DataError::DimensionMismatch { .. }),
        &["bad.hdf5", "'test'", "dimension 3", "have 2"],
    );
    check(
        Benchmark {
            neighbors: vec![0; 9],
            ..good()
        },
        kind!(DataError::CountMismatch { .. }),
        &["'neighbors'", "3 rows", "expected 2"],
    );
    check(
        Benchmark {
            neighbors: vec![0, 1, 2, 3, 4, 1],
            ..good()
        },
        kind!(DataError::IdOutOfRange { .. }),
        &["'neighbors'", "row 1, column 1", "neighbour 4", "0 to 3"],
    );
    check(
        Benchmark {
            neighbors: vec![0, -1, 2, 3, 2, 1],
            ..good()
        },
        kind!(DataError::IdOutOfRange { .. }),
        &["row 0, column 1", "neighbour -1"],
    );
    check(
        Benchmark {
            distances: vec![0.0; 4],
            distance_cols: 2,
            ..good()
        },
        kind!(DataError::CountMismatch { .. }),
        &["'distances'", "2 columns", "expected 3"],
    );
    check(
        Benchmark {
            test: vec![0.0, 1.0, f32::NAN, 1.0],
            ..good()
        },
        kind!(DataError::NotFinite { .. }),
        &["'test'", "row 1, column 0", "NaN"],
    );
    check(
        Benchmark {
            metric: Some("jaccard"),
            ..good()
        },
        kind!(DataError::UnsupportedMetric { .. }),
        &["bad.hdf5", "'jaccard'", "'euclidean'"],
    );
    let labels = Benchmark {
        train_labels: vec![1, 2],
        ..good()
    };
    assert_error(
        Dataset::open(file(&folder, "bad.hdf5", &labels.bytes())),
        kind!(DataError::CountMismatch { .. }),
        &["'train_labels'", "2 labels", "expected 4"],
    );
    let infinite = Benchmark {
        train: vec![0.0, f32::INFINITY, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ..good()
    };
    assert_error(
        Dataset::open(file(&folder, "bad.hdf5", &infinite.bytes())),
        kind!(DataError::NotFinite { .. }),
        &["'train'", "row 0, column 1", "inf"],
    );
}

#[test]
fn sets_that_cannot_serve() {
    let folder = folder();
    let mut builder = FileBuilder::new();
    builder.create_dataset("points").with_f32_data(&[1.0]);
    let path = file(&folder, "a.hdf5", &builder.finish().unwrap());
    assert_error(
        Dataset::open(&path),
        kind!(DataError::MissingSet { .. }),
        &["a.hdf5", "'train'", "points"],
    );
    let mut builder = FileBuilder::new();
    builder.create_dataset("train").with_f32_data(&[1.0, 2.0]);
    let path = file(&folder, "b.hdf5", &builder.finish().unwrap());
    assert_error(
        vectors_shape(&path),
        kind!(DataError::BadRank { .. }),
        &["'train'", "1 axes"],
    );
    let mut builder = FileBuilder::new();
    let train = builder.create_dataset("train");
    train.with_i32_data(&[1, 2]).with_shape(&[1, 2]);
    let path = file(&folder, "c.hdf5", &builder.finish().unwrap());
    assert_error(
        read_vectors(&path),
        kind!(DataError::UnsupportedType { .. }),
        &["'train'", "i32", "float32"],
    );
    let plain = Benchmark {
        metric: None,
        ..Benchmark::default()
    };
    let path = file(&folder, "d.hdf5", &plain.bytes());
    assert_eq!(Dataset::open(&path).unwrap().metric, None);
    assert_eq!(dataset_info(&path).unwrap().metric, None);
    for (name, metric) in [
        ("angular", Metric::Cosine),
        ("Cosine", Metric::Cosine),
        ("ip", Metric::InnerProduct),
        ("inner-product", Metric::InnerProduct),
        ("L2", Metric::Euclidean),
    ] {
        let named = Benchmark {
            metric: Some(name),
            ..Benchmark::default()
        };
        let path = file(&folder, "e.hdf5", &named.bytes());
        assert_eq!(Dataset::open(&path).unwrap().metric, Some(metric));
        let queries = Dataset::open_queries(&path).unwrap();
        assert_eq!(queries.metric, Some(metric));
        assert_eq!(dataset_info(&path).unwrap().metric, Some(metric));
    }
}

#[test]
fn listing_reads_headers_and_keeps_bad_files() {
    let folder = folder();
    let good = Benchmark::default();
    let whole = good.bytes();
    file(&folder, "b.hdf5", &whole);
    let hamming = Benchmark {
        metric: Some("hamming"),
        ..Benchmark::default()
    };
    file(&folder, "c.hdf5", &hamming.bytes());
    file(&folder, "d.npy", b"\x93NUMPY\x01\x00");
    file(&folder, "notes.txt", b"not a data set");
    file(&folder, "truth.ivecs", &crate::common::ints(&[1, 0]));
    std::fs::create_dir(folder.path().join("folder.hdf5")).unwrap();
    let vectors = Vectors::from_u8(vec![1, 2, 3, 4, 5, 6], 3).unwrap();
    write_vectors(folder.path().join("a.bvecs"), &vectors).unwrap();

    let listed = list_datasets(folder.path()).unwrap();
    let names: Vec<&str> = listed.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    let a = listed[0].info.as_ref().unwrap();
    assert_eq!((a.rows, a.dim, a.queries, a.bytes), (2, 3, 0, 14));
    assert_eq!(
        (a.element, a.has_truth, a.has_labels),
        (Element::U8, false, false)
    );
    let b = listed[1].info.as_ref().unwrap();
    assert_eq!((b.rows, b.dim, b.queries), (4, 2, 2));
    assert_eq!(b.metric, Some(Metric::Euclidean));
    assert_eq!(
        (b.element, b.has_truth, b.has_labels),
        (Element::F32, true, true)
    );
    assert_eq!(b.bytes, whole.len() as u64);
    assert_eq!(*b, dataset_info(&listed[1].path).unwrap());
    assert!(matches!(
        listed[2].info,
        Err(DataError::UnsupportedMetric { .. })
    ));
    assert!(matches!(listed[3].info, Err(DataError::Truncated { .. })));

    let missing = folder.path().join("missing");
    assert_error(
        list_datasets(&missing),
        kind!(DataError::Io { .. }),
        &["cannot list", "missing"],
    );
}
