//! Round trips, and invalid content.

use garlic_simd::{CODE_LANES, f32_to_f16};

use super::super::validate;
use super::*;
use crate::Search;

const STORES: [Store; 4] = [Store::F32, Store::F16, Store::U8, Store::Int8];

/// Writes a norm into a lane of a block.
fn set_norm(blocks: &mut [u8], bytes: usize, lane: usize, norm: f32) {
    let at = (lane / CODE_LANES + 1) * bytes - 4 * CODE_LANES + 4 * (lane % CODE_LANES);
    blocks[at..at + 4].copy_from_slice(&norm.to_le_bytes());
}

fn changed(change: impl FnOnce(&mut Index)) -> Index {
    let mut index = sample(60, 8, Store::F32, 9);
    change(&mut index);
    index
}

/// The error of an index whose content was changed before writing, so that all checksums are right. Saving it must
/// fail as well and leave no file.
fn error_of(change: impl FnOnce(&mut Index)) -> FormatError {
    let index = changed(change);
    let directory = tempfile::tempdir().unwrap();
    let error = index.save(directory.path().join("x")).unwrap_err();
    assert!(matches!(error, crate::Error::Io { .. }), "{error:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    Index::from_bytes(&index.to_bytes().unwrap()).unwrap_err()
}

/// The same for an index whose arrays have the wrong length, which only a faulty writer would write.
fn length_error_of(change: impl FnOnce(&mut Index)) -> FormatError {
    Index::from_bytes(&changed(change).to_bytes().unwrap()).unwrap_err()
}

fn verify(index: &Index) -> Result<(), FormatError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    index.save(&path).unwrap();
    // Compare bytes, because a change may leave derived arrays as they were.
    assert_eq!(
        Index::open(&path).unwrap().to_bytes().unwrap(),
        index.to_bytes().unwrap()
    );
    match Index::verify(&path) {
        Ok(_) => Ok(()),
        Err(crate::Error::Format { source, .. }) => Err(source),
        Err(other) => panic!("{other:?}"),
    }
}

fn verify_error_of(change: impl FnOnce(&mut Index)) -> FormatError {
    verify(&changed(change)).unwrap_err()
}

#[test]
fn round_trips_search_alike_and_verify() {
    for code_bits in [8, 4] {
        for store in STORES {
            for points in [1, 2, 3, 33, 200] {
                let index = sample(points, code_bits, store, points as u64);
                let bytes = index.to_bytes().unwrap();
                let opened = Index::from_bytes(&bytes).unwrap();
                assert_eq!(opened, index);
                assert_eq!(opened.to_bytes().unwrap(), bytes);
                assert_eq!(opened.stored_as(), index.stored_as());
                let error = verify(&index).err();
                assert!(error.is_none(), "{points} {code_bits} {store:?}: {error:?}");
                for search in [
                    Search::new(5).probes(2).bins(1.0),
                    Search::new(2).probes(3).bins(1.0),
                ] {
                    for query in [[50.0; 9], [3.5; 9], [140.0; 9]] {
                        let answer = opened.search(&query, &search).unwrap();
                        assert_eq!(answer, index.search(&query, &search).unwrap());
                        assert!(!answer.hits.is_empty());
                    }
                }
            }
        }
    }
}

#[test]
fn vectors_that_are_no_whole_numbers_verify_in_every_type() {
    let values = uniform(3000, 20, 4);
    for (code_bits, store, offset) in [
        (8, Store::F32, 0.0),
        (4, Store::F32, 1000.0),
        (8, Store::F16, 0.0),
        (4, Store::F16, 50.0),
        (8, Store::Int8, 0.0),
        (4, Store::Int8, 50.0),
    ] {
        let scaled = |(i, v): (usize, &f32)| (v + 0.5) * (1 + i % 20) as f32 - 7.0 + offset;
        let values: Vec<f32> = values.iter().enumerate().map(scaled).collect();
        let config = config(&[("code_bits", code_bits), ("axes", 7), ("max_dim", 10)]);
        let index = Index::builder()
            .config(config)
            .store(store)
            .threads(1)
            .build(rows(&values, 20))
            .unwrap();
        assert_eq!(index.transform.out_dim(), 16);
        verify(&index).unwrap();
    }
}

#[test]
fn every_large_array_is_aligned() {
    let mut index = sample(60, 8, Store::F16, 3);
    let bytes = index.to_bytes().unwrap();
    let segment = segment(&mut index);
    let (means, axes) = (&*segment.cells.means, &*segment.cells.axes);
    let find = |needle: &[u8]| {
        bytes
            .windows(needle.len())
            .position(|w| w == needle)
            .unwrap()
    };
    for array in [
        bytemuck::cast_slice(means),
        bytemuck::cast_slice(axes),
        bytemuck::cast_slice(&segment.encoded.steps),
        &segment.encoded.bin_blocks,
        &segment.encoded.blocks,
    ] {
        assert_eq!(find(array) % 64, 0);
    }
}

#[test]
fn cells_that_make_no_sense_are_refused() {
    let e = error_of(|index| segment(index).cells.anisotropy = 1.5);
    assert_inconsistent(&e, "CELLS", "anisotropy");
    let e = error_of(|index| change!(segment(index).cells.means, |v| v[3] = f32::NAN));
    assert_inconsistent(&e, "CELLS", "value 3 of an array is not finite");
    let e = error_of(|index| change!(segment(index).cells.means, |v| v[3] = -1e20));
    assert_inconsistent(&e, "CELLS", "value 3 of the means");
    let e = error_of(|index| change!(segment(index).cells.axes, |v| v[0] = 1.5));
    assert_inconsistent(&e, "CELLS", "value 0 of the axes");
    let e = error_of(|index| change!(segment(index).cells.variances, |v| v[1] = -0.5));
    assert_inconsistent(&e, "CELLS", "value 1 of the variances");
    let e = error_of(|index| change!(segment(index).cells.residual_variances, |v| v[2] = -0.5));
    assert_inconsistent(&e, "CELLS", "value 2 of the residual");
    let e = error_of(|index| Arc::make_mut(&mut index.transform).scale[4] = 0.5);
    assert_inconsistent(&e, "SPACE", "coordinate 4 unscaled");
    let e = error_of(|index| Arc::make_mut(&mut index.transform).rotation = None);
    assert_inconsistent(&e, "SPACE", "9 with 0 axes");
    let e = error_of(|index| {
        Arc::make_mut(&mut index.transform)
            .rotation
            .as_mut()
            .unwrap()
            .row_mut(1)[0] = 3.0
    });
    assert_inconsistent(&e, "SPACE", "value 9 of the rotation");
    let e = error_of(|index| {
        Arc::make_mut(&mut index.transform)
            .rotation
            .as_mut()
            .unwrap()
            .push_row(&[0.0; 9]);
    });
    assert_inconsistent(&e, "SPACE", "9 with 10 axes");
    let e = error_of(|index| Arc::make_mut(&mut index.calibration).settings[0].probes = 0);
    assert_inconsistent(&e, "META", "setting 0");
    let e = error_of(|index| {
        Arc::make_mut(&mut index.calibration).settings[0].bin_prune_ratio = f32::INFINITY
    });
    assert_inconsistent(&e, "META", "null");
}

#[test]
fn bins_that_make_no_sense_are_refused() {
    let e = error_of(|index| change!(segment(index).encoded.steps, |v| v[2] = -1.0));
    assert_inconsistent(&e, "LEARNED", "value 2 of the steps of points");
    let e = error_of(|index| change!(segment(index).encoded.bin_steps, |v| v[1] = 1e30));
    assert_inconsistent(&e, "LEARNED", "value 1 of the steps of bins");
    let e = error_of(|index| change!(segment(index).encoded.origins, |v| v[1] = -1e30));
    assert_inconsistent(&e, "LEARNED", "value 1 of the origins");
    let e = error_of(|index| change!(segment(index).encoded.cell_bins, |v| v[0] = 1));
    assert_inconsistent(&e, "LEARNED", "do not begin");
    let e = error_of(|index| {
        change!(segment(index).encoded.cell_bins, |v| v[2] = v[1]);
    });
    assert_inconsistent(&e, "LEARNED", "cell 1 has 0 bins but not 0 blocks");
    let e = error_of(|index| {
        change!(segment(index).encoded.cell_bins, |v| v[2] = v[1] - 1);
    });
    assert_inconsistent(&e, "LEARNED", "cell 1 has no bins");
    let e = error_of(|index| {
        change!(segment(index).encoded.cell_bins, |v| *v
            .last_mut()
            .unwrap() += 1)
    });
    assert_inconsistent(&e, "LEARNED", "bins");
    let e = error_of(|index| change!(segment(index).encoded.bin_block_of, |v| v[1] += 1));
    assert_inconsistent(&e, "LEARNED", "cell 0 has");
    let e = error_of(|index| change!(segment(index).encoded.bins, |v| v[1].first = 0));
    assert_inconsistent(&e, "LEARNED", "bin 0 has no points");
    let e = error_of(|index| change!(segment(index).encoded.bins, |v| v[2].block = u32::MAX));
    assert_inconsistent(&e, "LEARNED", "bin 1 has");
    let e = error_of(|index| {
        change!(segment(index).encoded.bins, |bins| {
            let last = bins.len() - 1;
            bins[last].first += 8;
            bins[last].block += 1;
        });
    });
    assert_inconsistent(&e, "LEARNED", "there are 60 points");
    let e = error_of(|index| change!(segment(index).encoded.bounds, |v| v[1].low = f32::MAX));
    assert_inconsistent(&e, "LEARNED", "bounds of bin 1");
    let e = error_of(|index| change!(segment(index).encoded.bounds, |v| v[1].radius = -1.0));
    assert_inconsistent(&e, "LEARNED", "bounds of bin 1");
}

#[test]
fn codes_that_a_scan_could_stumble_over_are_refused() {
    let e = error_of(|index| change!(segment(index).encoded.blocks, |codes| codes[5] |= 0x80));
    assert_inconsistent(&e, "CODES", "bin 0: a code in block 0");
    let e = error_of(|index| change!(segment(index).encoded.bin_blocks, |codes| codes[5] |= 0x80));
    assert_inconsistent(&e, "CODES", "cell 0: a code in block 0");
    for norm in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0] {
        let e = error_of(|index| {
            let encoded = &mut segment(index).encoded;
            let (bytes, mut codes) = (encoded.block_bytes(), encoded.blocks.to_vec());
            set_norm(&mut codes, bytes, 0, norm);
            encoded.blocks = codes.into();
        });
        assert_inconsistent(&e, "CODES", "is no norm for lane 0");
    }
    // The lanes behind the last point of a bin and the last bin of a cell.
    for norm in [f32::NAN, 0.0, 1.0, f32::MAX, f32::NEG_INFINITY] {
        let e = error_of(|index| {
            let encoded = &mut segment(index).encoded;
            let bins = 0..encoded.bounds.len();
            let bin = bins
                .into_iter()
                .find(|bin| !encoded.positions(*bin).len().is_multiple_of(CODE_LANES));
            let bin = bin.unwrap();
            let lane = encoded.bins[bin].block as usize * CODE_LANES + encoded.positions(bin).len();
            let (bytes, mut codes) = (encoded.block_bytes(), encoded.blocks.to_vec());
            set_norm(&mut codes, bytes, lane, norm);
            encoded.blocks = codes.into();
        });
        assert_inconsistent(&e, "CODES", "is no norm for lane");
        let e = error_of(|index| {
            let encoded = &mut segment(index).encoded;
            let lane = encoded.bins_of(0).len();
            assert!(!lane.is_multiple_of(CODE_LANES));
            let (bytes, mut codes) = (encoded.bin_block_bytes(), encoded.bin_blocks.to_vec());
            set_norm(&mut codes, bytes, lane, norm);
            encoded.bin_blocks = codes.into();
        });
        assert_inconsistent(&e, "CODES", "cell 0");
    }
}

#[test]
fn the_largest_numbers_that_are_accepted_can_be_searched() {
    for code_bits in [8, 4] {
        let mut index = sample(60, code_bits, Store::F32, 9);
        let limit = validate::coordinate_limit(9);
        let segment = segment(&mut index);
        let signed = |count: usize, limit: f32| -> Vec<f32> {
            let sign = |i: usize| if i.is_multiple_of(2) { limit } else { -limit };
            (0..count).map(sign).collect()
        };
        segment.cells.means = signed(segment.cells.means.len(), limit).into();
        segment.cells.axes = signed(segment.cells.axes.len(), 1.0).into();
        segment.encoded.origins = signed(segment.encoded.origins.len(), limit).into();
        let steps = vec![limit * validate::MAX_STEP_SHARE; segment.encoded.steps.len()];
        segment.encoded.steps = steps.clone().into();
        segment.encoded.bin_steps = steps.into();
        let index = Index::from_bytes(&index.to_bytes().unwrap()).unwrap();
        for query in [[0.0; 9], [1.0; 9], [-1e15; 9]] {
            let search = Search::new(60).probes(3).bins(1.0).rerank(100);
            let answer = index.search(&query, &search).unwrap();
            let ids: std::collections::BTreeSet<u64> = answer.hits.iter().map(|h| h.id).collect();
            assert_eq!(ids.len(), 60, "every point once");
        }
    }
}

#[test]
fn arrays_of_the_wrong_length_are_refused() {
    let e = length_error_of(|index| {
        change!(segment(index).cells.residual_variances, |v| v.truncate(2));
    });
    assert_inconsistent(&e, "CELLS", "bytes");
    let e = length_error_of(|index| change!(segment(index).cells.axes, |v| v.truncate(20)));
    assert_inconsistent(&e, "CELLS", "bytes");
    let e = length_error_of(|index| segment(index).cells.rank = 4);
    assert_inconsistent(&e, "CELLS", "bytes");
    let e = length_error_of(|index| segment(index).cells.dim = usize::MAX);
    assert_inconsistent(&e, "CELLS", "overflow");
    let e = length_error_of(|index| segment(index).encoded.width = 16);
    assert_inconsistent(&e, "LEARNED", "bytes");
    let e = length_error_of(|index| segment(index).encoded.width = 1 << 40);
    assert_inconsistent(&e, "LEARNED", "bytes");
    let e = length_error_of(|index| segment(index).encoded.width = usize::MAX);
    assert_inconsistent(&e, "LEARNED", "overflow");
    let e = length_error_of(|index| change!(segment(index).encoded.blocks, |v| v.truncate(64)));
    assert_inconsistent(&e, "CODES", "bytes");
    let e = length_error_of(|index| change!(segment(index).ids, |v| v.truncate(59)));
    assert_inconsistent(&e, "META", "VECTORS");
}

#[test]
fn halves_that_are_not_finite_are_refused() {
    let mut index = sample(30, 8, Store::F16, 3);
    let StoredVectors::F16(halves) = &index.segment.vectors else {
        panic!("not f16");
    };
    let mut halves = halves.to_vec();
    halves[11] = f32_to_f16(1e6);
    segment(&mut index).vectors = StoredVectors::F16(halves.into());
    let error = Index::from_bytes(&index.to_bytes().unwrap()).unwrap_err();
    assert_inconsistent(&error, "VECTORS", "value 11");
    let directory = tempfile::tempdir().unwrap();
    let error = index
        .save(directory.path().join("x"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("too large for f16"), "{error}");
}

#[test]
fn steps_that_are_not_finite_are_refused() {
    let mut index = sample(30, 8, Store::Int8, 3);
    let StoredVectors::Int8(rows) = &index.segment.vectors else {
        panic!("not int8");
    };
    let wide = garlic_simd::int8_row_bytes(DIM);
    let mut rows = rows.to_vec();
    // The step of the vector at position 11, which lies behind its values, becomes infinite.
    rows[11 * wide + DIM..12 * wide].copy_from_slice(&0x7f80_u16.to_le_bytes());
    segment(&mut index).vectors = StoredVectors::Int8(rows.into());
    let error = Index::from_bytes(&index.to_bytes().unwrap()).unwrap_err();
    assert_inconsistent(&error, "VECTORS", "position 11");
    let directory = tempfile::tempdir().unwrap();
    let error = index.save(directory.path().join("x")).unwrap_err();
    assert!(error.to_string().contains("too large for int8"), "{error}");
}

#[test]
fn verify_finds_an_8_bit_value_that_was_changed() {
    let mut index = sample(60, 8, Store::Int8, 9);
    assert!(verify(&index).is_ok());
    let StoredVectors::Int8(rows) = &mut segment(&mut index).vectors else {
        panic!("not int8");
    };
    change!(*rows, |v| v[4] = (v[4] as i8).wrapping_add(60) as u8);
    assert_inconsistent(&verify(&index).unwrap_err(), "CODES", "position 0");
}

#[test]
fn verify_finds_what_opening_leaves_out() {
    let e = verify_error_of(|index| change!(segment(index).ids, |v| v[3] = v[17]));
    assert_inconsistent(&e, "IDS", "given twice");
    let e = verify_error_of(|index| {
        Arc::make_mut(&mut index.transform)
            .rotation
            .as_mut()
            .unwrap()
            .row_mut(4)[0] += 0.25
    });
    assert_inconsistent(&e, "SPACE", "axes");
    let e = verify_error_of(|index| {
        change!(segment(index).cells.axes, |v| v[1] =
            if v[1] > 0.0 { -0.3 } else { 0.3 })
    });
    assert_inconsistent(&e, "CELLS", "cell 0: axes");
    // Zero rows belong at the end.
    let e = verify_error_of(|index| change!(segment(index).cells.axes, |v| v[9..18].fill(0.0)));
    assert_inconsistent(&e, "CELLS", "axes 1 and 1");
    let e = verify_error_of(|index| change!(segment(index).encoded.origins, |v| v[0] += 5.0));
    assert_inconsistent(&e, "LEARNED", "axis 0 has the origin");
    let e = verify_error_of(|index| change_vectors(index, |values| values[9 * 4] += 50.0));
    assert_inconsistent(&e, "CODES", "position 4: its norm");
    let e =
        verify_error_of(|index| change!(segment(index).encoded.blocks, |codes| codes[4] ^= 0x10));
    assert_inconsistent(&e, "CODES", "along axis 0 is not coded");
    let e = verify_error_of(|index| change!(segment(index).encoded.steps, |v| v[0] *= 3.0));
    assert_inconsistent(&e, "CODES", "is not coded");
    let e = verify_error_of(|index| {
        let encoded = &mut segment(index).encoded;
        let (bytes, mut codes) = (encoded.bin_block_bytes(), encoded.bin_blocks.to_vec());
        set_norm(&mut codes, bytes, 0, 1e6);
        encoded.bin_blocks = codes.into();
    });
    assert_inconsistent(&e, "CODES", "centre of its bin");
    let e = verify_error_of(|index| change!(segment(index).encoded.bounds, |v| v[2].radius = 0.0));
    assert_inconsistent(&e, "LEARNED", "from the centre");
    let e = verify_error_of(|index| {
        change!(segment(index).encoded.bounds, |v| {
            let high = v[1].high;
            (v[1].low, v[1].high) = (high * 2.0 + 9.0, high * 3.0 + 9.0);
        });
    });
    assert_inconsistent(&e, "LEARNED", "from the frame");
}

#[test]
fn verify_knows_points_in_two_cells_from_wrong_identifiers() {
    let values: Vec<f32> = (0..60 * 5).map(|i| (i * 7919 % 251) as f32).collect();
    let builder = Index::builder()
        .set("spill", "1e9")
        .and_then(|b| b.set("cells", "4"))
        .unwrap();
    let index = builder.build(rows(&values, 5)).unwrap();
    assert_eq!((index.len(), index.segment.ids.len()), (60, 120));
    verify(&index).unwrap();
    let error_of = |change: &dyn Fn(&mut Index)| {
        let mut index = index.clone();
        change(&mut index);
        verify(&index).unwrap_err()
    };
    let twice = error_of(&|index| index.config.partition.spill = 0.0);
    assert_inconsistent(&twice, "IDS", "given twice");
    let other = index
        .segment
        .ids
        .iter()
        .position(|id| *id != index.segment.ids[0])
        .unwrap();
    // The other position of its old identifier has no counterpart then.
    let more = error_of(&|index| change!(segment(index).ids, |v| v[0] = v[other]));
    assert_inconsistent(&more, "IDS", "given 3 times");
    let swapped = error_of(&|index| change!(segment(index).ids, |v| v.swap(0, other)));
    assert_inconsistent(&swapped, "IDS", "has two vectors");
    let fewer = error_of(&|index| index.build_stats.built = 59);
    assert_inconsistent(&fewer, "IDS", "60 identifiers of 59 points");
}
