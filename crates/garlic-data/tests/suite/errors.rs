//! Each way in which a file can be wrong has its own error, with the file, the place and the fix.

use crate::common::{assert_error, file, floats, folder, ints, npy};
use garlic_data::{
    DataError, Ids, Origin, Vectors, read_ids, read_vectors, vectors_shape, write_fbin,
    write_vectors,
};

#[test]
fn missing_and_unknown_files() {
    let folder = folder();
    let missing = folder.path().join("missing.npy");
    assert_error(
        read_vectors(&missing),
        kind!(DataError::Io { .. }),
        &["cannot open", "missing.npy"],
    );
    let path = file(&folder, "a.txt", b"1,2");
    assert_error(
        read_vectors(&path),
        kind!(DataError::UnknownFormat { .. }),
        &["a.txt", "'txt'", ".fvecs", ".parquet"],
    );
    let nested = folder.path().join("folder.npy");
    std::fs::create_dir(&nested).unwrap();
    assert_error(
        read_vectors(&nested),
        kind!(DataError::Selection { .. }),
        &["folder.npy", "no file in this folder"],
    );
}

#[test]
fn ids_are_not_vectors() {
    let folder = folder();
    let ivecs = file(&folder, "a.ivecs", &ints(&[1, 5]));
    assert_error(
        read_vectors(&ivecs),
        kind!(DataError::WrongKind { .. }),
        &["a.ivecs", "vectors", ".fvecs"],
    );
    let fvecs = file(&folder, "a.fvecs", &ints(&[1, 5]));
    assert_error(
        read_ids(&fvecs),
        kind!(DataError::WrongKind { .. }),
        &["a.fvecs", "ids", ".ivecs"],
    );
    let bytes = Vectors::from_f32(vec![1.0], 1).unwrap();
    assert_error(
        write_vectors(folder.path().join("a.u8bin"), &bytes),
        kind!(DataError::WrongKind { .. }),
        &["a.u8bin"],
    );
}

#[test]
fn mislabelled_files() {
    let folder = folder();
    let hdf5 = crate::common::Benchmark::default().bytes();
    let array = npy("'<f4'", false, "(1, 2)", &floats(&[1.0, 2.0]));
    let fbin = [ints(&[3, 2]), floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])].concat();
    let row = [ints(&[2]), floats(&[1.0, 2.0])].concat();
    let fvecs = [row.clone(), row.clone(), row].concat();
    let u8bin = [ints(&[3, 2]), vec![1, 2, 3, 4, 5, 6]].concat();
    let bvecs = [ints(&[3]), vec![1, 2, 3], ints(&[3]), vec![4, 5, 6]].concat();
    for (name, content, seems) in [
        ("a.npy", &hdf5, "hdf5"),
        ("a.fbin", &hdf5, "hdf5"),
        ("a.fvecs", &array, "npy"),
        ("a.hdf5", &array, "npy"),
        ("b.npy", &fbin, "fbin"),
        ("b.fvecs", &fbin, "fbin"),
        ("b.u8bin", &fbin, "fbin"),
        ("b.h5", &fvecs, "fvecs"),
        ("c.fbin", &fvecs, "fvecs"),
        ("c.bvecs", &fvecs, "fvecs"),
        ("d.fbin", &u8bin, "u8bin"),
        ("d.npy", &bvecs, "bvecs"),
        ("e.npy", &b"PK\x03\x04rest".to_vec(), "zip"),
        ("e.fvecs", &b"\x1f\x8b\x08\x00rest".to_vec(), "gzip"),
    ] {
        let path = file(&folder, name, content);
        let label = name.rsplit('.').next().unwrap().replace("h5", "hdf5");
        for result in [
            read_vectors(&path).map(|_| ()),
            vectors_shape(&path).map(|_| ()),
        ] {
            assert_error(
                result,
                kind!(DataError::Mislabelled { .. }),
                &[name, &format!("labelled {label}"), seems],
            );
        }
    }
    let path = file(&folder, "plain.hdf5", b"hello, this is text");
    assert_error(
        read_vectors(&path),
        kind!(DataError::BadHeader { .. }),
        &["plain.hdf5", "signature"],
    );
}

#[test]
fn npy_variants() {
    let folder = folder();
    let data = floats(&[1.0, 2.0, 3.0, 4.0]);
    let read = |bytes: Vec<u8>| read_vectors(file(&folder, "a.npy", &bytes));
    assert_error(
        read(npy("'>f4'", false, "(2, 2)", &data)),
        kind!(DataError::BigEndian { .. }),
        &["a.npy", ">f4", "newbyteorder"],
    );
    for descr in ["'<V2'", "'<c8'", "'|S4'", "[('x', '<f4')]"] {
        assert_error(
            read(npy(descr, false, "(2, 2)", &data)),
            kind!(DataError::UnsupportedType { .. }),
            &["a.npy", descr.trim_matches('\''), "float32"],
        );
    }
    for (shape, axes) in [
        ("(4,)", "1 axes"),
        ("()", "0 axes"),
        ("(1, 2, 2)", "3 axes"),
    ] {
        assert_error(
            read(npy("'<f4'", false, shape, &data)),
            kind!(DataError::BadRank { .. }),
            &["a.npy", axes, "(rows, dimension)"],
        );
    }
    assert_error(
        read(npy("'<f4'", false, "(2, 3)", &data)),
        kind!(DataError::Truncated { .. }),
        &["a.npy", "download"],
    );
    assert_error(
        read(npy("'<f4'", false, "(1, 3)", &data)),
        kind!(DataError::TrailingBytes { .. }),
        &["a.npy", "4 bytes too many"],
    );
    assert_error(
        read(npy("'<f4'", false, "(2, two)", &data)),
        kind!(DataError::BadHeader { .. }),
        &["a.npy", "at byte 64"],
    );
    assert_error(
        read(b"\x93NUMPY\x09\x00\x00\x00".to_vec()),
        kind!(DataError::BadHeader { .. }),
        &["version 9"],
    );
    let floats_as_ids = file(&folder, "f.npy", &npy("'<f4'", false, "(2, 2)", &data));
    assert_error(
        read_ids(floats_as_ids),
        kind!(DataError::UnsupportedType { .. }),
        &["<f4", "int64"],
    );
    let huge = npy("'<u8'", false, "(1, 2)", &[[1; 8], [255; 8]].concat());
    assert_error(
        read_ids(file(&folder, "u.npy", &huge)),
        kind!(DataError::IdOutOfRange { .. }),
        &["row 0, column 1", "18446744073709551615"],
    );
}

#[test]
fn absurd_counts_are_refused_before_any_memory_is_taken() {
    let folder = folder();
    let most = u64::MAX;
    for shape in [
        format!("({most}, {most})"),
        format!("({most}, 1)"),
        "(4611686018427387904, 4)".into(),
        "(1099511627776, 1024)".into(),
    ] {
        let path = file(&folder, "a.npy", &npy("'<f4'", false, &shape, &[0; 16]));
        assert_error(
            read_vectors(path),
            kind!(DataError::Truncated { .. }),
            &["a.npy"],
        );
    }
    for name in ["a.fbin", "a.u8bin"] {
        let path = file(&folder, name, &[0xff; 24]);
        assert_error(
            read_vectors(path),
            kind!(DataError::Truncated { .. }),
            &[name],
        );
    }
    let ibin = file(&folder, "a.ibin", &[0xff; 24]);
    assert_error(read_ids(ibin), kind!(DataError::Truncated { .. }), &[]);
    for name in ["a.fvecs", "a.bvecs"] {
        let path = file(&folder, name, &[ints(&[i32::MAX]), vec![0; 60]].concat());
        assert_error(
            read_vectors(path),
            kind!(DataError::Truncated { .. }),
            &[name, "the first row"],
        );
    }
}

#[test]
fn values_that_are_not_finite() {
    let folder = folder();
    for (bad, word) in [
        (f32::NAN, "NaN"),
        (f32::INFINITY, "inf"),
        (f32::NEG_INFINITY, "-inf"),
    ] {
        let values = [1.0, 2.0, 3.0, bad];
        let data = floats(&values);
        let row = |i: usize| [ints(&[2]), floats(&values[2 * i..2 * i + 2])].concat();
        for (name, bytes) in [
            ("a.npy", npy("'<f4'", false, "(2, 2)", &data)),
            ("a.fbin", [ints(&[2, 2]), data.clone()].concat()),
            ("a.fvecs", [row(0), row(1)].concat()),
        ] {
            assert_error(
                read_vectors(file(&folder, name, &bytes)),
                kind!(DataError::NotFinite { .. }),
                &[name, "row 1, column 1", word],
            );
        }
        assert_error(
            Vectors::from_f32(values.to_vec(), 2),
            kind!(DataError::NotFinite { .. }),
            &["memory", "row 1, column 1", word],
        );
        let path = folder.path().join("never.fbin");
        assert!(write_fbin(&path, &values, 2).is_err() && !path.exists());
    }
    // Far into the data, beyond the blocks of the scan.
    let mut values = vec![0.0; 30_000];
    values[29_998] = f32::NAN;
    assert_error(
        Vectors::from_f32(values, 3),
        kind!(DataError::NotFinite { .. }),
        &["row 9999, column 1"],
    );
}

#[test]
fn ragged_rows() {
    let folder = folder();
    let bytes = [
        ints(&[2]),
        floats(&[1.0, 2.0]),
        ints(&[3]),
        floats(&[1.0; 3]),
    ]
    .concat();
    assert_error(
        read_vectors(file(&folder, "a.fvecs", &bytes)),
        kind!(DataError::Ragged { .. }),
        &["a.fvecs", "row 1", "byte 12", "dimension 3", "have 2"],
    );
    let bytes = [ints(&[2]), vec![1, 2], ints(&[-1]), vec![1, 2, 3]].concat();
    assert_error(
        read_vectors(file(&folder, "a.bvecs", &bytes)),
        kind!(DataError::Ragged { .. }),
        &["a.bvecs", "row 1", "byte 6", "dimension -1"],
    );
    assert_error(
        read_ids(file(&folder, "a.ivecs", &ints(&[1, 9, 2, 8, 7]))),
        kind!(DataError::Ragged { .. }),
        &["a.ivecs", "row 1", "byte 8"],
    );
    assert_error(
        read_vectors(file(&folder, "b.fvecs", &ints(&[-5, 1, 2]))),
        kind!(DataError::BadHeader { .. }),
        &["b.fvecs", "-5"],
    );
}

#[test]
fn nothing_in_it() {
    let folder = folder();
    for name in ["a.npy", "a.fbin", "a.u8bin", "a.fvecs", "a.bvecs"] {
        assert_error(
            read_vectors(file(&folder, name, b"")),
            kind!(DataError::ZeroRows { .. }),
            &[name, "no rows"],
        );
    }
    for (name, bytes) in [
        ("b.npy", npy("'<f4'", false, "(0, 2)", b"")),
        ("b.fbin", ints(&[0, 2])),
    ] {
        assert_error(
            read_vectors(file(&folder, name, &bytes)),
            kind!(DataError::ZeroRows { .. }),
            &[name],
        );
    }
    for (name, bytes) in [
        ("c.npy", npy("'<f4'", false, "(2, 0)", b"")),
        ("c.fbin", ints(&[2, 0])),
        ("c.fvecs", ints(&[0, 0])),
    ] {
        assert_error(
            read_vectors(file(&folder, name, &bytes)),
            kind!(DataError::ZeroDimension { .. }),
            &[name],
        );
    }
    assert_error(
        Vectors::from_u8(vec![1], 0),
        kind!(DataError::ZeroDimension { .. }),
        &["memory"],
    );
    assert_error(
        Vectors::from_f32(vec![], 2),
        kind!(DataError::ZeroRows { .. }),
        &["memory"],
    );
    assert_error(
        Vectors::from_f32(vec![1.0; 5], 2),
        kind!(DataError::BadLength { .. }),
        &["5 values", "dimension 2"],
    );
    assert_error(
        Ids::new(vec![1, 2, 3], 2),
        kind!(DataError::BadLength { .. }),
        &["3 values"],
    );
}

#[test]
fn ids_out_of_range() {
    let ids = Ids::new(vec![0, 4, 5, -1], 2).unwrap();
    let origin = Origin::file("truth.ivecs");
    assert_error(
        ids.check_below(5, &origin),
        kind!(DataError::IdOutOfRange { .. }),
        &["truth.ivecs", "row 1, column 0", "neighbour 5", "0 to 4"],
    );
    assert_error(
        ids.check_below(6, &origin),
        kind!(DataError::IdOutOfRange { .. }),
        &["row 1, column 1", "neighbour -1"],
    );
}
