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
    for index in indexes() {
        truncate_everywhere(&index.to_bytes());
    }
}

fn truncate_everywhere(bytes: &[u8]) {
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
    for index in indexes() {
        flip_everywhere(index.to_bytes());
    }
}

fn flip_everywhere(mut bytes: Vec<u8>) {
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
    for index in indexes() {
        let refused = spoil_everywhere(&index.to_bytes());
        assert!(refused > 1000, "{refused}");
    }
}

/// DeltaSegment bytes inside a section and repairs the checksums, as an attacker or a faulty writer would; returns
/// how many of these files were refused. Whatever is accepted can be searched.
fn spoil_everywhere(original: &[u8]) -> usize {
    let layout = layout_of(original);
    let mut refused = 0;
    for (number, entry) in layout.entries.iter().enumerate() {
        for step in 0..entry.length.min(1200) {
            let at = (entry.offset + step) as usize;
            for value in [0, 0x7f, 0xff, original[at] ^ 1, original[at] ^ 0x80] {
                let mut bytes = original.to_vec();
                bytes[at] = value;
                repair(&mut bytes, &layout, number);
                match Index::from_bytes(&bytes) {
                    Ok(index) => search_everywhere(&index),
                    Err(FormatError::Inconsistent { section, .. }) => {
                        let found = layout.entries.iter().position(|e| e.kind.name() == section);
                        // What does not fit may show up where it is used first.
                        assert!(found >= Some(number) || entry.kind.name() == "META");
                        refused += 1;
                    }
                    Err(FormatError::Padding { offset }) => {
                        assert_eq!(offset, at as u64);
                        refused += 1;
                    }
                    Err(other) => panic!("{}, byte {at}: {other:?}", entry.kind.name()),
                }
            }
        }
    }
    refused
}

/// Gives section `number` and the header their right checksums.
fn repair(bytes: &mut [u8], layout: &Layout, number: usize) {
    let mut layout = layout.clone();
    let entry = &mut layout.entries[number];
    let range = entry.offset as usize..(entry.offset + entry.length) as usize;
    entry.checksum = crc32fast::hash(&bytes[range]);
    let head = layout.to_bytes();
    bytes[..head.len()].copy_from_slice(&head);
}

fn search_everywhere(index: &Index) {
    for (probes, bins) in [(1, 1.0), (4, 1.0), (4, 0.6)] {
        let search = crate::Search::new(3).probes(probes).bins(bins);
        let answer = index.search(&vec![0.1; index.dim()], &search).unwrap();
        assert!(answer.hits.len() <= 3);
    }
}

#[test]
fn sections_of_another_body_are_refused_by_name() {
    let [published, tempered, ..] = indexes();
    let (mut one, other) = (published.to_bytes(), tempered.to_bytes());
    let (layout, meta) = (layout_of(&one), layout_of(&other).entries[0]);
    let [at, from] = [layout.entries[0].offset as usize, meta.offset as usize];
    // The META of the other segment fits into the space of this one's, which has the history.
    let space = layout.entries[0].length as usize;
    let mut text = other[from..from + meta.length as usize].to_vec();
    assert!(text.len() <= space);
    text.resize(space, b' ');
    one[at..at + space].copy_from_slice(&text);
    repair(&mut one, &layout, 0);
    let error = Index::from_bytes(&one).unwrap_err();
    assert!(
        matches!(error, FormatError::MissingSection { section: "CELLS" }),
        "{error:?}"
    );
}

#[test]
fn content_that_makes_no_index_is_refused() {
    let e = error_of(|index| change!(index.segment.ids, |v| v[3] = 1 << 63));
    assert_inconsistent(&e, "IDS", "2^63");
    let e = error_of(|index| change_vectors(index, |values| values[7] = f32::NAN));
    assert_inconsistent(&e, "VECTORS", "value 7");
    let e = error_of(|index| segment(index).model.factors.values_mut()[0] = 0.0);
    assert_inconsistent(&e, "FACTORS", "diagonal entry 0");
    let e = error_of(|index| segment(index).model.factors.values_mut()[15 + 14] = -1.0);
    assert_inconsistent(&e, "FACTORS", "cell 1 is not positive at diagonal entry 4");
    let e = error_of(|index| segment(index).model.means.as_mut_slice()[2] = f32::INFINITY);
    assert_inconsistent(&e, "MEANS", "value 2");
    let e = error_of(|index| segment(index).cells[1].frame.centre[0] = f32::NAN);
    assert_inconsistent(&e, "FRAMES", "not finite");
    let e = error_of(|index| Arc::make_mut(&mut index.transform).scale[1] = -1.0);
    assert_inconsistent(&e, "SPACE", "negative");
    let e = error_of(|index| index.config.tau = -1.0);
    assert_inconsistent(&e, "META", "tau");
    let e = error_of(|index| index.config.rank = 2);
    assert_inconsistent(&e, "FRAMES", "cell 3 has 3 axes");
    let e = error_of(|index| segment(index).history.epochs[0].loss = f64::INFINITY);
    assert_inconsistent(&e, "META", "null");
}

#[test]
fn sections_that_do_not_fit_together_are_refused() {
    let e = error_of(|index| change_vectors(index, |values| values.truncate(5)));
    assert_inconsistent(&e, "META", "VECTORS");
    let e = error_of(|index| change!(index.segment.ids, |v| v.truncate(39)));
    assert_inconsistent(&e, "META", "39 points");
    let e = error_of(|index| segment(index).cells.truncate(3));
    assert_inconsistent(&e, "MEANS", "ask for 60 bytes");
    let e = error_of(|index| {
        segment(index).model.factors.values_mut().pop();
    });
    assert_inconsistent(&e, "FACTORS", "bytes");
    let e = error_of(|index| Arc::make_mut(&mut index.transform).scale.extend([0.0; 16]));
    assert_inconsistent(&e, "SPACE", "ask for 276 bytes more, it has 340");
    let e = error_of(|index| Arc::make_mut(&mut index.transform).scale.push(1.0));
    assert!(matches!(e, FormatError::Padding { .. }), "{e:?}");
    let e = error_of(|index| index.config.model = crate::config::Model::AnisotropicCells);
    assert_inconsistent(&e, "META", "another segment");
    let e = error_of(|index| segment(index).cells[2].bins = segment(index).cells[1].bins.clone());
    assert_inconsistent(&e, "BINS", "a grid of 1 coordinates in a frame of 2 axes");
    let e = error_of(|index| {
        segment(index).cells[2].bins = segment(&mut sample(60, Covariance::Full, 9)).cells[2]
            .bins
            .clone()
    });
    assert_inconsistent(&e, "BINS", "is not below 40");
    let e = error_of(|index| {
        segment(index).cells[2].bins = segment(&mut sample(30, Covariance::Full, 9)).cells[2]
            .bins
            .clone()
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
    let sample = segment(&mut index);
    for _ in 0..5 {
        let mut cell = sample.cells[1].clone();
        cell.bins = empty.clone();
        sample.cells.push(cell);
        sample.model.means.push_row(&[0.0; 5]);
        sample.model.factors.values_mut().extend([1.0; 15]);
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
    let e = verify_error_of(|index| change!(index.segment.ids, |v| v[3] = v[17]));
    assert_inconsistent(&e, "IDS", "given twice");
    let e = verify_error_of(|index| segment(index).cells[2].frame.basis.row_mut(1)[2] = 0.5);
    assert_inconsistent(&e, "FRAMES", "cell 2: axes 1 and 1");
    let e = verify_error_of(|index| {
        Arc::make_mut(&mut index.transform)
            .rotation
            .as_mut()
            .unwrap()
            .row_mut(4)[0] = 1.0
    });
    assert_inconsistent(&e, "SPACE", "axes");
    let e = verify_error_of(|index| change_vectors(index, |values| values[5 * 4] += 50.0));
    assert_inconsistent(&e, "BINS", "position 4 does not lie");
    let e = verify_error_of(|index| {
        let parts = segment(index).cells[1].bins.parts();
        let (grid, occupied) = (parts.grid.clone(), parts.occupied.to_vec());
        let mut members = parts.members.to_vec();
        let mut offsets = parts.offsets.to_vec();
        // The first bin's first member once more at the end of the last bin.
        members.push(members[0]);
        let last = offsets.len() - 2;
        members[offsets[last] as usize..].sort_unstable();
        *offsets.last_mut().unwrap() += 1;
        segment(index).cells[1].bins = Bins::from_parts(grid, occupied, offsets, members).unwrap();
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
