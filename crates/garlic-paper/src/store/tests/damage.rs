//! Files that are wrong: cut, flipped, or sound in form and wrong in content.

use std::io::{self, Write};

use garlic_core::file::{self, HEADER_LEN, Kind, Layout, Reader, Sections};

use super::*;
use crate::bins::Steps;
use crate::{Error, Search};

fn layout_of(bytes: &[u8]) -> Layout {
    let reader = Reader::open(bytes, bytes.len() as u64).unwrap();
    reader.layout().clone()
}

/// The error of an index whose content was changed before writing, so that all checksums are right.
fn error_of(change: impl FnOnce(&mut GaussianIndex)) -> FormatError {
    let mut index = sample(40, Covariance::Full, 9);
    change(&mut index);
    GaussianIndex::from_bytes(&index.to_bytes().unwrap()).unwrap_err()
}

/// The error of `verify` for such an index, which opens without one.
fn verify_error_of(change: impl FnOnce(&mut GaussianIndex)) -> FormatError {
    let mut index = sample(40, Covariance::Full, 9);
    change(&mut index);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    index.save(&path).unwrap();
    assert_eq!(GaussianIndex::open(&path).unwrap(), index);
    match GaussianIndex::verify(&path).unwrap_err() {
        Error::Format { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_truncation_is_an_error() {
    truncate_everywhere(&sample(12, Covariance::Full, 5).to_bytes().unwrap());
}

fn truncate_everywhere(bytes: &[u8]) {
    for len in 0..bytes.len() {
        match GaussianIndex::from_bytes(&bytes[..len]) {
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
    let mut bytes = sample(12, Covariance::Full, 4).to_bytes().unwrap();
    bytes.push(0);
    let error = GaussianIndex::from_bytes(&bytes).unwrap_err();
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
        let error = GaussianIndex::from_bytes(bytes).unwrap_err();
        assert!(matches!(error, FormatError::NotAnIndex), "{error:?}");
    }
}

#[test]
fn every_flipped_bit_is_named_after_its_place() {
    flip_everywhere(sample(12, Covariance::Full, 5).to_bytes().unwrap());
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
            let error = GaussianIndex::from_bytes(&bytes).unwrap_err();
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
    let refused = spoil_everywhere(&sample(12, Covariance::Full, 5).to_bytes().unwrap());
    assert!(refused > 1000, "{refused}");
}

/// Changes bytes inside a section and repairs the checksums, as an attacker or a faulty writer would; returns
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
                match GaussianIndex::from_bytes(&bytes) {
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

fn search_everywhere(index: &GaussianIndex) {
    for (probes, bins) in [(1, 1.0), (4, 1.0), (4, 0.6)] {
        let search = Search::new(3).probes(probes).bins(bins);
        let answer = index.search(&vec![0.1; index.dim()], &search).unwrap();
        assert!(answer.hits.len() <= 3);
    }
}

/// A sample with other text in META.
fn with_meta(change: impl FnOnce(String) -> String) -> FormatError {
    struct Changed<'a>(super::super::Encoded<'a>);
    impl Sections for Changed<'_> {
        fn kinds(&self) -> &'static [Kind] {
            self.0.kinds()
        }

        fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
            self.0.write_section(kind, out)
        }
    }
    let index = sample(12, Covariance::Full, 5);
    let mut encoded = super::super::Encoded::new(&index).unwrap();
    let text = change(String::from_utf8(encoded.meta).unwrap());
    encoded.meta = text.into_bytes();
    let bytes = file::to_bytes(&Changed(encoded)).unwrap();
    GaussianIndex::from_bytes(&bytes).unwrap_err()
}

#[test]
fn the_configuration_has_each_key_once_and_no_other() {
    let e = with_meta(|text| text.replace("\"tau\"", "\"tao\""));
    assert_inconsistent(&e, "META", "unknown key `tao`");
    let e = with_meta(|text| text.replace("\"probes\":5,", ""));
    assert_inconsistent(&e, "META", "missing key `probes`");
    let e = with_meta(|text| text.replace("\"split\":true", "\"split\":true,\"split\":true"));
    assert_inconsistent(&e, "META", "duplicate key `split`");
    let e = with_meta(|text| text.replace("\"batch\":20000", "\"batch\":-1"));
    assert_inconsistent(&e, "META", "`batch`");
    let e = with_meta(|text| text.replace("\"gaussians\"", "\"tempered\""));
    assert_inconsistent(&e, "META", "\"tempered\" is not gaussians");
    let e = with_meta(|text| text.replace("\"published\"", "\"tempered\""));
    assert_inconsistent(&e, "META", "unknown variant `tempered`");
    let e = with_meta(|text| text.replace("\"points\":12,\"cells\"", "\"points\":0,\"cells\""));
    assert_inconsistent(&e, "META", "without points");
}

#[test]
fn an_index_of_the_other_kind_is_named() {
    struct Other;
    impl Sections for Other {
        fn kinds(&self) -> &'static [Kind] {
            &[
                Kind::Meta,
                Kind::Space,
                Kind::Cells,
                Kind::Vectors,
                Kind::Ids,
            ]
        }

        fn write_section(&self, _: Kind, out: &mut dyn Write) -> io::Result<()> {
            out.write_all(b"{}")
        }
    }
    let bytes = file::to_bytes(&Other).unwrap();
    let error = GaussianIndex::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, FormatError::OtherIndex { .. }), "{error:?}");
    let expected = "the file holds an index of the default preset; open it with garlic_ann::Index";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn content_that_makes_no_index_is_refused() {
    let e = error_of(|index| change_ids(index, |v| v[3] = 1 << 63));
    assert_inconsistent(&e, "IDS", "2^63");
    let e = error_of(|index| change_vectors(index, |values| values[7] = f32::NAN));
    assert_inconsistent(&e, "VECTORS", "value 7");
    let e = error_of(|index| trained(index).model.factors.values_mut()[0] = 0.0);
    assert_inconsistent(&e, "FACTORS", "diagonal entry 0");
    let e = error_of(|index| trained(index).model.factors.values_mut()[15 + 14] = -1.0);
    assert_inconsistent(&e, "FACTORS", "cell 1 is not positive at diagonal entry 4");
    let e = error_of(|index| trained(index).model.means.as_mut_slice()[2] = f32::INFINITY);
    assert_inconsistent(&e, "MEANS", "value 2");
    let e = error_of(|index| trained(index).cells[1].frame.centre[0] = f32::NAN);
    assert_inconsistent(&e, "FRAMES", "not finite");
    let e = error_of(|index| transform(index).scale[1] = -1.0);
    assert_inconsistent(&e, "SPACE", "negative");
    let e = error_of(|index| index.config.loss.tau = -1.0);
    assert_inconsistent(&e, "META", "tau");
    let e = error_of(|index| index.config.bins.rank = 2);
    assert_inconsistent(&e, "FRAMES", "cell 3 has 3 axes");
    let e = error_of(|index| trained(index).history.epochs[0].loss = f64::INFINITY);
    assert_inconsistent(&e, "META", "null");
}

#[test]
fn sections_that_do_not_fit_together_are_refused() {
    let e = error_of(|index| change_vectors(index, |values| values.truncate(5)));
    assert_inconsistent(&e, "META", "VECTORS");
    let e = error_of(|index| change_ids(index, |v| v.truncate(39)));
    assert_inconsistent(&e, "META", "39 points");
    let e = error_of(|index| trained(index).cells.truncate(3));
    assert_inconsistent(&e, "MEANS", "ask for 60 bytes");
    let e = error_of(|index| {
        trained(index).model.factors.values_mut().pop();
    });
    assert_inconsistent(&e, "FACTORS", "bytes");
    let e = error_of(|index| transform(index).scale.extend([0.0; 16]));
    assert_inconsistent(&e, "SPACE", "ask for 276 bytes more, it has 340");
    let e = error_of(|index| transform(index).scale.push(1.0));
    assert!(matches!(e, FormatError::Padding { .. }), "{e:?}");
    let e = error_of(|index| trained(index).cells[2].bins = trained(index).cells[1].bins.clone());
    assert_inconsistent(&e, "BINS", "a grid of 1 coordinates in a frame of 2 axes");
    let e = error_of(|index| {
        trained(index).cells[2].bins = trained(&mut sample(60, Covariance::Full, 9)).cells[2]
            .bins
            .clone()
    });
    assert_inconsistent(&e, "BINS", "is not below 40");
    let e = error_of(|index| {
        trained(index).cells[2].bins = trained(&mut sample(30, Covariance::Full, 9)).cells[2]
            .bins
            .clone()
    });
    assert_inconsistent(&e, "BINS", "position 31 is in no cell");
}

#[test]
fn grids_cannot_ask_for_any_amount_of_memory() {
    let huge = Steps {
        lo: 0.0,
        hi: 1.0,
        count: 1 << 20,
    };
    let mut index = sample(40, Covariance::Full, 9);
    let grid = Grid::from_steps(&[huge]).unwrap();
    let empty = Bins::build(grid, &[], &[]).unwrap();
    let sample = trained(&mut index);
    for _ in 0..5 {
        let mut cell = sample.cells[1].clone();
        cell.bins = empty.clone();
        sample.cells.push(cell);
        sample.model.means.push_row(&[0.0; 5]);
        sample.model.factors.values_mut().extend([1.0; 15]);
    }
    let error = GaussianIndex::from_bytes(&index.to_bytes().unwrap()).unwrap_err();
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
    let e = verify_error_of(|index| change_ids(index, |v| v[3] = v[17]));
    assert_inconsistent(&e, "IDS", "given twice");
    let e = verify_error_of(|index| trained(index).cells[2].frame.basis.row_mut(1)[2] = 0.5);
    assert_inconsistent(&e, "FRAMES", "cell 2: axes 1 and 1");
    let e =
        verify_error_of(|index| transform(index).rotation.as_mut().unwrap().row_mut(4)[0] = 1.0);
    assert_inconsistent(&e, "SPACE", "axes");
    let e = verify_error_of(|index| change_vectors(index, |values| values[5 * 4] += 50.0));
    assert_inconsistent(&e, "BINS", "position 4 does not lie");
    let e = verify_error_of(|index| {
        let parts = trained(index).cells[1].bins.parts();
        let (grid, occupied) = (parts.grid.clone(), parts.occupied.to_vec());
        let mut members = parts.members.to_vec();
        let mut offsets = parts.offsets.to_vec();
        // The first bin's first member once more at the end of the last bin.
        members.push(members[0]);
        let last = offsets.len() - 2;
        members[offsets[last] as usize..].sort_unstable();
        *offsets.last_mut().unwrap() += 1;
        trained(index).cells[1].bins = Bins::from_parts(grid, occupied, offsets, members).unwrap();
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
