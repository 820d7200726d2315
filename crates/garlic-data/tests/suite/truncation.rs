//! Files cut at any byte, or with any byte changed: an error or other values, never a panic.

use crate::common::{Benchmark, file, floats, folder, ints, npy};
use garlic_data::{Dataset, read_ids, read_vectors, vectors_shape};
use proptest::prelude::*;

#[test]
fn every_length_of_flat_files_is_refused() {
    let folder = folder();
    let values = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for (name, whole) in [
        ("a.npy", npy("'<f4'", false, "(2, 3)", &values)),
        ("b.npy", npy("'|u1'", false, "(2, 3)", &[1, 2, 3, 4, 5, 6])),
        ("a.fbin", [ints(&[2, 3]), values.clone()].concat()),
        ("a.u8bin", [ints(&[2, 3]), vec![1, 2, 3, 4, 5, 6]].concat()),
    ] {
        assert!(read_vectors(file(&folder, name, &whole)).is_ok());
        for len in 0..whole.len() {
            let path = file(&folder, name, &whole[..len]);
            assert!(read_vectors(&path).is_err(), "{name} of {len} bytes");
            assert!(vectors_shape(&path).is_err(), "{name} of {len} bytes");
        }
        let longer = [whole, vec![0]].concat();
        assert!(read_vectors(file(&folder, name, &longer)).is_err());
    }
    let whole = ints(&[2, 3, 1, 2, 3, 4, 5, 6]);
    for len in 0..whole.len() {
        assert!(read_ids(file(&folder, "a.ibin", &whole[..len])).is_err());
    }
}

#[test]
fn every_length_of_interleaved_files_is_refused_or_whole_rows() {
    let folder = folder();
    let f = [ints(&[2]), floats(&[1.0, 2.0])].concat().repeat(3);
    let b = [ints(&[2]), vec![1, 2]].concat().repeat(3);
    for (name, whole, stride) in [("a.fvecs", &f, 12), ("a.bvecs", &b, 6)] {
        for len in 0..=whole.len() {
            let path = file(&folder, name, &whole[..len]);
            match (read_vectors(&path), vectors_shape(&path)) {
                (Ok(vectors), Ok(shape)) => {
                    assert!(len > 0 && len % stride == 0, "{name} of {len} bytes");
                    assert_eq!((vectors.rows(), shape.rows), (len / stride, len / stride));
                }
                (Err(_), Err(_)) => assert!(len == 0 || len % stride != 0, "{name}, {len}"),
                differing => panic!("{name} of {len} bytes: {differing:?}"),
            }
        }
    }
    for len in 0..=f.len() {
        let read = read_ids(file(&folder, "a.ivecs", &f[..len]));
        assert_eq!(read.is_ok(), len > 0 && len % 12 == 0);
    }
}

#[test]
fn every_length_of_a_benchmark_is_refused() {
    let folder = folder();
    for chunked in [false, true] {
        let whole = Benchmark {
            chunked,
            ..Benchmark::default()
        }
        .bytes();
        assert!(Dataset::open(file(&folder, "a.hdf5", &whole)).is_ok());
        for len in 0..whole.len() {
            let path = file(&folder, "a.hdf5", &whole[..len]);
            assert!(Dataset::open(&path).is_err(), "{len} of {}", whole.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn changed_bytes_of_a_benchmark_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        chunked in any::<bool>(),
    ) {
        let folder = folder();
        let mut bytes = Benchmark { chunked, ..Benchmark::default() }.bytes();
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        let _ = Dataset::open(file(&folder, "a.hdf5", &bytes));
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), small in any::<bool>()) {
        let folder = folder();
        // Small numbers make headers that nearly fit.
        let bytes: Vec<u8> = bytes.into_iter().map(|b| if small { b % 3 } else { b }).collect();
        for name in ["a.npy", "a.fbin", "a.u8bin", "a.fvecs", "a.bvecs", "a.hdf5"] {
            let path = file(&folder, name, &bytes);
            let read = read_vectors(&path);
            if let Ok(vectors) = read {
                prop_assert!(vectors.rows() * vectors.dim() <= bytes.len());
                prop_assert_eq!(vectors.shape(), vectors_shape(&path).unwrap());
            }
        }
        for name in ["a.ivecs", "a.ibin"] {
            let _ = read_ids(file(&folder, name, &bytes));
        }
    }
}
