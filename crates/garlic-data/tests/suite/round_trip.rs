//! What is written reads back, in every format.

use crate::common::folder;
use garlic_data::{
    DataError, Element, Ids, Vectors, read_ids, read_vectors, vectors_shape, write_ids,
    write_ivecs, write_npy_i32, write_vectors,
};
use proptest::prelude::*;

fn table<T: std::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (Vec<T>, usize)> {
    (1_usize..8, 1_usize..20).prop_flat_map(move |(rows, dim)| {
        let size = rows * dim;
        (prop::collection::vec(value.clone(), size..=size), Just(dim))
    })
}

fn finite() -> impl Strategy<Value = f32> + Clone {
    any::<f32>().prop_filter("finite", |v| v.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn floats((data, dim) in table(finite())) {
        let folder = folder();
        let vectors = Vectors::from_f32(data.clone(), dim).unwrap();
        for name in ["a.npy", "a.fbin", "a.fvecs", "a.FVECS"] {
            let path = folder.path().join(name);
            write_vectors(&path, &vectors).unwrap();
            let back = read_vectors(&path).unwrap();
            prop_assert_eq!(&back, &vectors, "{}", name);
            prop_assert_eq!(back.shape(), vectors_shape(&path).unwrap());
            prop_assert_eq!(back.into_f32(), data.clone());
        }
    }

    #[test]
    fn bytes((data, dim) in table(any::<u8>())) {
        let folder = folder();
        let vectors = Vectors::from_u8(data.clone(), dim).unwrap();
        for name in ["a.npy", "a.u8bin", "a.bvecs"] {
            let path = folder.path().join(name);
            write_vectors(&path, &vectors).unwrap();
            let back = read_vectors(&path).unwrap();
            prop_assert_eq!(back.as_u8(), Some(&data[..]), "{}", name);
            prop_assert_eq!((back.dim(), back.element()), (dim, Element::U8));
            prop_assert_eq!(back.shape(), vectors_shape(&path).unwrap());
        }
        // Float formats hold bytes as floats.
        let path = folder.path().join("a.fbin");
        write_vectors(&path, &vectors).unwrap();
        prop_assert_eq!(read_vectors(&path).unwrap().into_f32(), vectors.into_f32());
    }

    #[test]
    fn ids((data, cols) in table(any::<i32>())) {
        let folder = folder();
        let ids = Ids::new(data.into_iter().map(i64::from).collect(), cols).unwrap();
        for name in ["a.npy", "a.ibin", "a.ivecs"] {
            let path = folder.path().join(name);
            write_ids(&path, &ids).unwrap();
            prop_assert_eq!(read_ids(&path).unwrap(), ids.clone(), "{}", name);
        }
        let path = folder.path().join("narrow.npy");
        write_npy_i32(&path, &ids).unwrap();
        prop_assert_eq!(read_ids(&path).unwrap(), ids);
    }

    #[test]
    fn wide_ids((data, cols) in table(any::<i64>())) {
        let folder = folder();
        let path = folder.path().join("a.npy");
        let ids = Ids::new(data, cols).unwrap();
        write_ids(&path, &ids).unwrap();
        prop_assert_eq!(read_ids(&path).unwrap(), ids);
    }
}

#[test]
fn flat_formats_are_mapped_and_interleaved_ones_read() {
    let folder = folder();
    let floats = Vectors::from_f32(vec![1.0, 2.0, 3.0, 4.0], 2).unwrap();
    let bytes = Vectors::from_u8(vec![1, 2, 3, 4], 2).unwrap();
    for (name, vectors, mapped) in [
        ("a.npy", &floats, true),
        ("a.fbin", &floats, true),
        ("a.fvecs", &floats, false),
        ("b.npy", &bytes, true),
        ("b.u8bin", &bytes, true),
        ("b.bvecs", &bytes, false),
    ] {
        let path = folder.path().join(name);
        write_vectors(&path, vectors).unwrap();
        assert_eq!(read_vectors(&path).unwrap().is_mapped(), mapped, "{name}");
    }
}

#[test]
fn misaligned_arrays_are_read_instead_of_mapped() {
    let folder = folder();
    for padding in ["", " ", "  ", "   "] {
        let shape = format!("(1, 3{padding})");
        let bytes = crate::common::npy(
            "'<f4'",
            false,
            &shape,
            &crate::common::floats(&[1.0, 2.0, 3.0]),
        );
        let path = crate::common::file(&folder, "a.npy", &bytes);
        assert_eq!(read_vectors(&path).unwrap().into_f32(), [1.0, 2.0, 3.0]);
    }
}

#[test]
fn replacing_a_mapped_file_leaves_the_mapping_alone() {
    let folder = folder();
    let path = folder.path().join("a.fbin");
    write_vectors(&path, &Vectors::from_f32(vec![1.0; 4096], 2).unwrap()).unwrap();
    let old = read_vectors(&path).unwrap();
    write_vectors(&path, &Vectors::from_f32(vec![2.0; 8], 4).unwrap()).unwrap();
    assert!(old.is_mapped());
    assert!(old.to_f32().iter().all(|v| *v == 1.0));
    assert_eq!(read_vectors(&path).unwrap().dim(), 4);
}

#[test]
fn rows_heads_and_clones() {
    let folder = folder();
    let path = folder.path().join("a.u8bin");
    let owned = Vectors::from_u8(vec![1, 2, 3, 4, 5, 6], 2).unwrap();
    write_vectors(&path, &owned).unwrap();
    for vectors in [owned, read_vectors(&path).unwrap()] {
        let mut row = [0.0; 2];
        vectors.row_f32(1, &mut row);
        assert_eq!(row, [3.0, 4.0]);
        let head = vectors.head(2).unwrap();
        assert_eq!((head.rows(), head.to_f32().len()), (2, 4));
        assert_eq!(head.into_f32(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(vectors.head(99).unwrap().rows(), 3);
        assert!(matches!(vectors.head(0), Err(DataError::ZeroRows { .. })));
    }
    let floats = Vectors::from_f32(vec![1.0, 2.0, 3.0], 1).unwrap();
    assert_eq!(floats.head(1).unwrap().into_f32(), [1.0]);
    assert_eq!(floats.as_u8(), None);
}

#[test]
fn ids_with_distances_behind_them() {
    let folder = folder();
    let mut bytes = crate::common::ints(&[2, 2, 10, 11, 12, 13]);
    bytes.extend(crate::common::floats(&[0.5, 0.6, 0.7, 0.8]));
    let path = crate::common::file(&folder, "truth.ibin", &bytes);
    assert_eq!(read_ids(&path).unwrap().data, [10, 11, 12, 13]);
}

#[test]
fn wide_ids_do_not_fit_narrow_formats() {
    let folder = folder();
    let ids = Ids::new(vec![1, 1 << 40], 2).unwrap();
    let path = folder.path().join("a.ivecs");
    crate::common::assert_error(
        write_ivecs(&path, &ids),
        kind!(DataError::TooLarge { .. }),
        &["a.ivecs", "1099511627776", ".npy"],
    );
    assert!(!path.exists());
}
