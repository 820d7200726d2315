//! Unchecked arrays of a mapped file: any content can be read safely.

use std::path::Path;

use garlic_simd::CODE_LANES;

use super::*;
use crate::bins::{Bin, EncodedBins};
use crate::{Error, Search};

/// Writes an index that `save` would reject, and maps it.
fn open_changed(path: &Path, change: impl FnOnce(&mut Segment)) -> Index {
    let mut index = sample(60, 8, Store::F32, 9);
    change(segment(&mut index));
    let bytes = index.to_bytes().unwrap();
    Index::from_bytes(&bytes).unwrap_err();
    std::fs::write(path, bytes).unwrap();
    Index::open(path).unwrap()
}

fn encoded(index: &Index) -> &EncodedBins {
    &index.segment.encoded
}

/// Fails unless every accessor returns a result within the arrays for every argument.
fn ask_everything(index: &Index) {
    let (segment, encoded) = (&index.segment, encoded(index));
    let far = [usize::MAX - 1, usize::MAX, u32::MAX as usize];
    let mut centres = Vec::new();
    for cell in (0..encoded.cells() + 3).chain(far) {
        let bins = encoded.bins_of(cell);
        assert!(bins.start <= bins.end && bins.end <= encoded.bounds.len());
        let codes = encoded.bin_codes(cell);
        assert!(codes.len().is_multiple_of(encoded.bin_block_bytes()));
        assert!(segment.cell_len(cell) <= index.len());
        encoded.decode_centres(cell, segment.cells.rank(), &mut centres);
    }
    for bin in (0..encoded.bounds.len() + 3).chain(far) {
        let positions = encoded.positions(bin);
        assert!(positions.start <= positions.end && positions.end <= index.len());
        let blocks = encoded.codes(bin).len() / encoded.block_bytes();
        assert!(positions.len() <= blocks * CODE_LANES);
    }
    assert_eq!(segment.bin_cell().len(), encoded.bounds.len());
    assert!(
        segment
            .bin_cell()
            .iter()
            .all(|c| (*c as usize) < index.cells())
    );
    let mut row = Vec::new();
    let query = [1.0; 9];
    let mut bytes = Vec::new();
    let query = index.segment.vectors.prepare(&query, &mut bytes);
    for position in (0..index.len() + 3).chain(far) {
        let there = position < index.len();
        let point = index.snapshot().point(position as u32);
        assert_eq!(point.is_some(), there);
        assert_eq!(index.segment.vectors.read(9, position, &mut row), there);
        assert_eq!(
            index.segment.vectors.distance(&query, position).is_finite(),
            there
        );
        index.segment.vectors.prefetch(9, position);
        assert_eq!(row.len(), 9);
    }
}

/// The identifiers that three kinds of search find.
fn search_ids(index: &Index) -> [Vec<u64>; 3] {
    let searches = [
        Search::new(60),
        Search::new(60).probes(3).bins(1.0).rerank(100),
        Search::new(9).exact(true),
    ];
    searches.map(|search| {
        let hits = index.search(&[50.0; 9], &search).unwrap().hits;
        hits.iter().map(|hit| hit.id).collect()
    })
}

#[test]
fn cells_and_bins_out_of_order_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    type Change = fn(&mut EncodedBins);
    let changes: [Change; 7] = [
        |l| change!(l.cell_bins, |v| v[1] = u32::MAX),
        |l| change!(l.cell_bins, |v| v[2] = 0),
        |l| change!(l.bin_block_of, |v| v[1] = u32::MAX),
        |l| change!(l.bin_block_of, |v| v[0] = 1),
        |l| change!(l.bins, |v| v[1].first = u32::MAX),
        |l| change!(l.bins, |v| v[1].block = u32::MAX),
        // Every other bin claims all points.
        |l| {
            change!(l.bins, |v| {
                let last = v[v.len() - 1];
                for (i, bin) in v.iter_mut().rev().enumerate() {
                    *bin = if i % 2 == 0 {
                        last
                    } else {
                        Bin { first: 0, block: 0 }
                    };
                }
            })
        },
    ];
    for change in changes {
        let index = open_changed(&path, |segment| change(&mut segment.encoded));
        assert!(!encoded(&index).in_order());
        ask_everything(&index);
        for search in [Search::new(3), Search::new(3).exact(true)] {
            let error = index.search(&[50.0; 9], &search).unwrap_err();
            assert!(matches!(error, Error::Damaged));
        }
        let error = index.clone().remove(&[0]).unwrap_err();
        assert!(matches!(error, Error::Damaged));
    }
}

#[test]
fn padding_that_looks_like_points_is_no_hit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    // All norms are zero, so that every lane including padding looks nearest.
    let index = open_changed(&path, |segment| {
        for bins in [true, false] {
            let encoded = &mut segment.encoded;
            let bytes = match bins {
                true => encoded.bin_block_bytes(),
                false => encoded.block_bytes(),
            };
            let all = if bins {
                &mut encoded.bin_blocks
            } else {
                &mut encoded.blocks
            };
            *all = super::changed_buffer(all, |codes| {
                for block in codes.chunks_exact_mut(bytes) {
                    block[bytes - 4 * CODE_LANES..].fill(0);
                }
            });
        }
    });
    ask_everything(&index);
    let [first, all, exact] = search_ids(&index);
    for ids in [&first, &all, &exact] {
        let unique: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "no point is found twice");
    }
    assert_eq!(all.len(), 60);
}

#[test]
fn numbers_that_are_none_are_no_distance() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for store in [Store::F32, Store::F16, Store::Int8] {
        let mut index = sample(40, 8, store, 5);
        match &mut segment(&mut index).vectors {
            StoredVectors::F32(values) => change!(*values, |v| v[..9].fill(f32::NAN)),
            StoredVectors::F16(halves) => change!(*halves, |v| v[..9].fill(0xffff)),
            // Values and step of the first vector.
            StoredVectors::Int8(rows) => change!(*rows, |v| v[..11].fill(0xff)),
            StoredVectors::U8(_) | StoredVectors::File(_) => panic!("not asked for"),
        }
        std::fs::write(&path, index.to_bytes().unwrap()).unwrap();
        let opened = Index::open(&path).unwrap();
        let hits = opened.search(&[50.0; 9], &Search::new(40).exact(true));
        let hits = hits.unwrap().hits;
        assert!(hits.iter().all(|hit| !hit.distance.is_nan()));
        assert_eq!(
            hits.iter().filter(|hit| hit.distance.is_infinite()).count(),
            1
        );
        assert!(hits[39].distance.is_infinite(), "at the end");
    }
}

#[test]
fn an_index_in_order_is_asked_without_harm() {
    for mut index in indexes() {
        assert!(encoded(&index).in_order());
        if index.len() == 40 {
            ask_everything(&index);
        }
        let clone = index.clone();
        assert_eq!(
            encoded(&clone).blocks.as_ptr(),
            encoded(&index).blocks.as_ptr()
        );
        assert_eq!(clone.segment.ids.as_ptr(), index.segment.ids.as_ptr());
        change!(segment(&mut index).ids, |v| v[0] = 99);
        assert_ne!(clone, index);
    }
}
