//! Files that are wrong: cut, flipped, or sound in form and wrong in content.

use super::super::layout::{HEADER_LEN, Layout, Preamble};
use super::*;

fn layout_of(bytes: &[u8]) -> Layout {
    let preamble = Preamble::parse(&bytes[..HEADER_LEN], bytes.len() as u64).unwrap();
    Layout::parse(preamble, &bytes[..preamble.head_len()]).unwrap()
}

/// The error of an index whose content was changed before writing, so that all checksums are right.
fn error_of(change: impl FnOnce(&mut Index)) -> FormatError {
    let mut index = sample(40, Covariance::Full, 9);
    change(&mut index);
    Index::from_bytes(&index.to_bytes()).unwrap_err()
}

/// The error of `verify` for such an index, which opens without one.
fn verify_error_of(change: impl FnOnce(&mut Index)) -> FormatError {
    let mut index = sample(40, Covariance::Full, 9);
    change(&mut index);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    index.save(&path).unwrap();
    assert_eq!(Index::open(&path).unwrap(), index);
    match Index::verify(&path).unwrap_err() {
        crate::Error::Format { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = sample(12, Covariance::Full, 4).to_bytes();
    for len in 0..bytes.len() {
        match Index::from_bytes(&bytes[..len]) {
            Err(FormatError::Truncated { found, needed }) => {
                assert_eq!(found, len as u64);
                assert!(needed > found && needed <= bytes.len() as u64);
            }
            other => panic!("{len} bytes: {other:?}"),
        }
    }
}

#[test]
fn appended_bytes_are_an_error() {
    let mut bytes = sample(12, Covariance::Full, 4).to_bytes();
    bytes.push(0);
    let error = Index::from_bytes(&bytes).unwrap_err();
    assert!(
        matches!(error, FormatError::TrailingBytes { .. }),
        "{error:?}"
    );
}

#[test]
fn other_files_are_not_an_index() {
    for bytes in [
        &b"GARLIC?"[..],
        b"\x89HDF\r\n\x1a\n and much more of it, past the header",
        b"{}",
    ] {
        let error = Index::from_bytes(bytes).unwrap_err();
        assert!(matches!(error, FormatError::NotAnIndex), "{error:?}");
    }
}

#[test]
fn every_flipped_bit_is_named_after_its_place() {
    let mut bytes = sample(12, Covariance::Full, 5).to_bytes();
    let layout = layout_of(&bytes);
    let head = HEADER_LEN + layout.entries.len() * 24;
    for at in 0..bytes.len() {
        let section = layout
            .entries
            .iter()
            .find(|entry| (entry.offset..entry.offset + entry.length).contains(&(at as u64)));
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            let error = Index::from_bytes(&bytes).unwrap_err();
            bytes[at] ^= 1 << bit;
            match (&error, section) {
                (FormatError::SectionChecksum { section, .. }, Some(entry)) => {
                    assert_eq!(*section, entry.kind.name());
                }
                (FormatError::Padding { offset }, None) => assert_eq!(*offset, at as u64),
                (FormatError::NotAnIndex, None) => assert!(at < 8),
                (FormatError::VersionTooOld { .. } | FormatError::VersionTooNew { .. }, None) => {
                    assert!((8..12).contains(&at));
                }
                (FormatError::Truncated { .. } | FormatError::SectionCount { .. }, None)
                | (FormatError::TrailingBytes { .. }, None) => assert!((12..24).contains(&at)),
                (FormatError::HeaderChecksum { .. }, None) => assert!(at >= 12 && at < head),
                other => panic!("byte {at}, bit {bit}: {other:?}"),
            }
        }
    }
}

#[test]
fn garbage_with_right_checksums_never_panics() {
    // Flips bytes inside a section and repairs the checksums, as an attacker or a faulty writer would.
    let original = sample(12, Covariance::Full, 6).to_bytes();
    let layout = layout_of(&original);
    let search = crate::Search::new(3).probes(4).bins(1.0);
    let mut refused = 0;
    for entry in &layout.entries {
        for step in 0..entry.length.min(600) {
            let at = (entry.offset + step) as usize;
            for value in [0, 0x7f, 0xff, original[at] ^ 1, original[at] ^ 0x80] {
                let mut bytes = original.clone();
                bytes[at] = value;
                let mut layout = layout.clone();
                let range = entry.offset as usize..(entry.offset + entry.length) as usize;
                let number = layout
                    .entries
                    .iter()
                    .position(|e| e.kind == entry.kind)
                    .unwrap();
                layout.entries[number].checksum = crc32fast::hash(&bytes[range]);
                let head = layout.to_bytes();
                bytes[..head.len()].copy_from_slice(&head);
                match Index::from_bytes(&bytes) {
                    Ok(index) => {
                        // Whatever is accepted can be searched.
                        let answer = index.search(&[0.1; 5], &search).unwrap();
                        assert!(answer.hits.len() <= 3);
                    }
                    Err(FormatError::Inconsistent { section, .. }) => {
                        assert!(
                            section == entry.kind.name()
                                || entry.kind.name() == "META"
                                || section == "BINS"
                        );
                        refused += 1;
                    }
                    Err(other) => panic!("{}, byte {at}: {other:?}", entry.kind.name()),
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn content_that_makes_no_index_is_refused() {
    let e = error_of(|index| index.ids[3] = 1 << 63);
    assert_inconsistent(&e, "IDS", "2^63");
    let e = error_of(|index| index.vectors[7] = f32::NAN);
    assert_inconsistent(&e, "VECTORS", "value 7");
    let e = error_of(|index| index.model.factors.values_mut()[0] = 0.0);
    assert_inconsistent(&e, "FACTORS", "diagonal entry 0");
    let e = error_of(|index| index.model.factors.values_mut()[15 + 14] = -1.0);
    assert_inconsistent(&e, "FACTORS", "cell 1 is not positive at diagonal entry 4");
    let e = error_of(|index| index.model.means.as_mut_slice()[2] = f32::INFINITY);
    assert_inconsistent(&e, "MEANS", "value 2");
    let e = error_of(|index| index.cells[1].frame.centre[0] = f32::NAN);
    assert_inconsistent(&e, "FRAMES", "not finite");
    let e = error_of(|index| index.space.scale[1] = -1.0);
    assert_inconsistent(&e, "SPACE", "negative");
    let e = error_of(|index| index.config.tau = -1.0);
    assert_inconsistent(&e, "META", "tau");
    let e = error_of(|index| index.config.rank = 2);
    assert_inconsistent(&e, "FRAMES", "cell 3 has 3 axes");
    let e = error_of(|index| index.history.epochs[0].loss = f64::INFINITY);
    assert_inconsistent(&e, "META", "null");
}

#[test]
fn sections_that_do_not_fit_together_are_refused() {
    let e = error_of(|index| index.vectors.truncate(5));
    assert_inconsistent(&e, "META", "VECTORS");
    let e = error_of(|index| index.ids.truncate(39));
    assert_inconsistent(&e, "META", "39 points");
    let e = error_of(|index| index.cells.truncate(3));
    assert_inconsistent(&e, "MEANS", "ask for 60 bytes");
    let e = error_of(|index| {
        index.model.factors.values_mut().pop();
    });
    assert_inconsistent(&e, "FACTORS", "bytes");
    let e = error_of(|index| index.space.scale.push(0.0));
    assert_inconsistent(&e, "SPACE", "ask for 140 bytes more, it has 144");
    let e = error_of(|index| index.cells[2].bins = index.cells[1].bins.clone());
    assert_inconsistent(&e, "BINS", "a grid of 1 coordinates in a frame of 2 axes");
    let e = error_of(|index| {
        index.cells[2].bins = sample(60, Covariance::Full, 9).cells[2].bins.clone()
    });
    assert_inconsistent(&e, "BINS", "is not below 40");
    let e = error_of(|index| {
        index.cells[2].bins = sample(30, Covariance::Full, 9).cells[2].bins.clone()
    });
    assert_inconsistent(&e, "BINS", "position 31 is in no cell");
}

#[test]
fn grids_cannot_ask_for_any_amount_of_memory() {
    let huge = crate::cell::sphere::Steps {
        lo: 0.0,
        hi: 1.0,
        count: 1 << 20,
    };
    let mut index = sample(40, Covariance::Full, 9);
    let grid = Grid::from_steps(&[huge]).unwrap();
    let empty = Bins::build(grid, &[], &[]).unwrap();
    for _ in 0..5 {
        let mut cell = index.cells[1].clone();
        cell.bins = empty.clone();
        index.cells.push(cell);
        index.model.means.push_row(&[0.0; 5]);
        index.model.factors.values_mut().extend([1.0; 15]);
    }
    let error = Index::from_bytes(&index.to_bytes()).unwrap_err();
    assert_inconsistent(&error, "BINS", "too large");
    let directory = tempfile::tempdir().unwrap();
    let error = index
        .save(directory.path().join("x"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("radial_steps"), "{error}");
}

#[test]
fn verify_finds_what_opening_leaves_out() {
    let e = verify_error_of(|index| index.ids[3] = index.ids[17]);
    assert_inconsistent(&e, "IDS", "given twice");
    let e = verify_error_of(|index| index.cells[2].frame.basis.row_mut(1)[2] = 0.5);
    assert_inconsistent(&e, "FRAMES", "cell 2: axes 1 and 1");
    let e = verify_error_of(|index| index.space.rotation.as_mut().unwrap().row_mut(4)[0] = 1.0);
    assert_inconsistent(&e, "SPACE", "axes");
    let e = verify_error_of(|index| index.vectors[5 * 4] += 50.0);
    assert_inconsistent(&e, "BINS", "position 4 does not lie");
    let e = verify_error_of(|index| {
        let parts = index.cells[1].bins.parts();
        let (grid, occupied) = (parts.grid.clone(), parts.occupied.to_vec());
        let mut members = parts.members.to_vec();
        let mut offsets = parts.offsets.to_vec();
        // The first bin's first member once more at the end of the last bin.
        members.push(members[0]);
        let last = offsets.len() - 2;
        members[offsets[last] as usize..].sort_unstable();
        *offsets.last_mut().unwrap() += 1;
        index.cells[1].bins = Bins::from_parts(grid, occupied, offsets, members).unwrap();
    });
    assert!(
        matches!(
            &e,
            FormatError::Inconsistent {
                section: "BINS",
                ..
            }
        ),
        "{e:?}"
    );
}
