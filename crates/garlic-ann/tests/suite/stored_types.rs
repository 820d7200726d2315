//! Vectors are stored as 32-bit floats, halves, bytes or 8-bit values, and answers are those of the stored vectors.

use crate::testdata::truth::{nearest_rows, pairs};
use crate::testdata::{clumps, config, ids, rows, sheet, to_bytes, uniform};
use garlic_ann::{Error, Index, Rows, Search, Store};

fn build(store: Store, rows: Rows<'_>) -> garlic_ann::Result<Index> {
    Index::builder().store(store).build(rows)
}

#[test]
fn vectors_are_stored_as_asked() {
    let whole = to_bytes(sheet(800, 9, 6));
    let base = rows(&whole, 9);
    let auto = build(Store::Auto, base).unwrap();
    assert_eq!(auto.stored_as(), "u8", "whole numbers are kept as bytes");
    let floats = build(Store::F32, base).unwrap();
    assert_eq!(floats.stored_as(), "f32");
    let mut shifted = base.row(5).to_vec();
    shifted[0] += 0.25;
    for query in [base.row(5), &shifted] {
        let search = Search::new(7).exact(true);
        let a = auto.search(query, &search).unwrap();
        let b = floats.search(query, &search).unwrap();
        assert_eq!(a.hits, b.hits, "bytes give the same distances");
    }
    let half = build(Store::F16, base).unwrap();
    assert_eq!(half.stored_as(), "f16");
    let eight = build(Store::Int8, base).unwrap();
    assert_eq!(eight.stored_as(), "int8");
    let bytes = [&auto, &half, &floats, &eight].map(|index| index.memory().vectors);
    assert_eq!(bytes, [9, 18, 36, 9 + 2].map(|row| row * 800));

    let odd = sheet(300, 9, 7);
    let base = rows(&odd, 9);
    assert_eq!(build(Store::Auto, base).unwrap().stored_as(), "f32");
    match build(Store::U8, base) {
        Err(Error::Config { key, message }) => {
            assert_eq!(key, "store");
            assert!(message.contains("vector 0"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

/// A number of ordinary size with the eleven significant bits of half precision, the even one of two as near.
fn half(v: f32) -> f32 {
    let exponent = (v.to_bits() >> 23 & 0xff) as i32 - 127;
    let step = 2.0_f32.powi(exponent - 10);
    (v / step).round_ties_even() * step
}

/// Far from zero, so that rounding moves points by as much as their neighbours are apart: bounds that were made from
/// the vectors before rounding would lose some of them.
#[test]
fn half_precision_answers_like_brute_force_over_rounded_vectors() {
    let dim = 6;
    let mut data = uniform(3000, dim, 5);
    for (i, v) in data.iter_mut().enumerate() {
        *v = 2.0 * *v + 520.0 + (i / dim % 6) as f32 * 45.0;
    }
    let rounded: Vec<f32> = data.iter().map(|v| half(*v)).collect();
    let (base, rounded) = (rows(&data, dim), rows(&rounded, dim));
    let config = config(&[
        ("store", "f16"),
        ("axes", "6"),
        ("calibration_queries", "20"),
    ]);
    let builder = Index::builder().config(config).threads(2);
    let built = builder.build(base.slice(0..2000)).unwrap();
    assert_eq!(built.stored_as(), "f16");
    let mut grown = built.clone();
    let new = ids(2000..3000);
    grown.add(base.slice(2000..3000), &new).unwrap();
    for (index, count) in [(&built, 2000), (&grown, 3000)] {
        let mut proved = 0;
        for query in (0..count).step_by(10).map(|row| base.row(row)) {
            let answer = index.search(query, &Search::new(10).exact(true)).unwrap();
            let expected = nearest_rows(rounded.slice(0..count), query, 10);
            assert_eq!(pairs(&answer), expected);
            proved += usize::from(answer.stats.candidates < count as u64 / 2);
        }
        assert!(proved >= count / 10 * 9 / 10, "{proved} answers by bounds");
    }
}

/// Working on the vectors where they are gives the same index, and the same errors.
#[test]
fn vectors_that_are_given_away_make_the_same_index() {
    let dim = 34;
    let values = clumps(500, dim, 5, 0.2, 8);
    for (metric, store) in [
        ("euclidean", "auto"),
        ("euclidean", "f16"),
        ("euclidean", "int8"),
        ("cosine", "f32"),
        ("cosine", "f16"),
        ("cosine", "int8"),
        ("inner_product", "f32"),
    ] {
        let config = config(&[("metric", metric), ("store", store)]);
        let builder = Index::builder().config(config).threads(2);
        let index = builder.build(rows(&values, dim)).unwrap();
        let (owned, _) = builder.build_owned(values.clone(), dim).unwrap();
        assert!(
            owned.to_bytes().unwrap() == index.to_bytes().unwrap(),
            "{metric} {store}"
        );
    }
    let build = |values: Vec<f32>| {
        let config = config(&[("metric", "cosine")]);
        Index::builder().config(config).build_owned(values, 2)
    };
    let zero = build(vec![1.0, 2.0, 0.0, 0.0]);
    assert!(matches!(zero, Err(Error::ZeroVector { row: 1 })));
    let nan = build(vec![1.0, 2.0, 0.0, f32::NAN]);
    assert!(matches!(nan, Err(Error::NotFinite { row: 1, .. })));
    assert!(matches!(build(vec![1.0; 3]), Err(Error::Shape(_))));
    assert!(matches!(build(Vec::new()), Err(Error::NoVectors)));
}

/// Whole numbers are stored as bytes by default, until a vector comes that is none.
#[test]
fn bytes_become_floats_when_they_must() {
    const DIM: usize = 6;
    let data = to_bytes(clumps(600, DIM, 5, 0.1, 5));
    let base = rows(&data, DIM);
    let mut index = build(Store::Auto, base).unwrap();
    assert_eq!(index.stored_as(), "u8");
    let query = &data[..DIM];
    let exact = Search::new(9).exact(true);
    let mut expected = pairs(&index.search(query, &exact).unwrap());
    index.remove(&[expected[1].1]).unwrap();
    let row: Vec<f32> = query.iter().map(|v| v + 0.25).collect();
    index.add(rows(&row, DIM), &[7777]).unwrap();
    assert_eq!((index.stored_as(), index.len()), ("f32", 600));
    expected[1] = (garlic_simd::l2_squared(query, &row).sqrt(), 7777);
    expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    assert_eq!(
        pairs(&index.search(query, &exact).unwrap())[..8],
        expected[..8]
    );

    let mut told = build(Store::U8, base).unwrap();
    let error = told.add(rows(&row, DIM), &[7777]).unwrap_err();
    assert!(matches!(error, Error::NotStorable { .. }));
}
