//! Wrong files: truncated, with flipped bits, or well-formed with wrong content.

use std::io::{self, Write};

use garlic_core::file::{self, Kind, Layout, Reader, Sections};

use super::super::{Encoded, kinds};
use super::*;

fn layout_of(bytes: &[u8]) -> Layout {
    let reader = Reader::open(bytes, bytes.len() as u64);
    let reader = reader.unwrap_or_else(|_| panic!("a header and a table"));
    reader.layout().clone()
}

#[test]
fn every_truncation_is_an_error() {
    for index in indexes() {
        truncate_everywhere(&index.to_bytes().unwrap());
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
    let mut bytes = sample(12, 8, Store::F32, 4).to_bytes().unwrap();
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
        flip_everywhere(index.to_bytes().unwrap());
    }
}

fn flip_everywhere(mut bytes: Vec<u8>) {
    let layout = layout_of(&bytes);
    let head = layout.to_bytes().len();
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
        let refused = spoil_everywhere(&index.to_bytes().unwrap());
        assert!(refused > 1000, "{refused}");
    }
}

/// Changes bytes inside a section and repairs the checksums, as an attacker or a faulty writer would. Returns the
/// number of rejected files. Every accepted file can be searched.
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
                        // An inconsistency may show up in the section that uses the value first.
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

/// The sections of an index, under other names or with another META.
struct Foreign {
    kinds: &'static [Kind],
    sections: Vec<Vec<u8>>,
}

impl Foreign {
    fn new(kinds: &'static [Kind], change: impl Fn(&str) -> String) -> Self {
        let index = sample(12, 8, Store::F32, 4);
        let encoded = Encoded::new(&index).unwrap();
        let section = |kind: &Kind| {
            let mut bytes = Vec::new();
            encoded.write_section(*kind, &mut bytes).unwrap();
            bytes
        };
        let own = super::super::kinds(true, false).iter();
        let mut sections: Vec<Vec<u8>> = own.map(section).collect();
        let meta = String::from_utf8(sections[0].clone()).unwrap();
        sections[0] = change(&meta).into_bytes();
        sections.resize(kinds.len(), Vec::new());
        Self { kinds, sections }
    }

    fn error(&self) -> FormatError {
        Index::from_bytes(&file::to_bytes(self).unwrap()).unwrap_err()
    }
}

impl Sections for Foreign {
    fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
        let number = self.kinds.iter().position(|k| *k == kind).unwrap();
        out.write_all(&self.sections[number])
    }
}

#[test]
fn sections_of_another_kind_of_index_are_refused_by_name() {
    const PUBLISHED: [Kind; 8] = [
        Kind::Meta,
        Kind::Space,
        Kind::Means,
        Kind::Factors,
        Kind::Frames,
        Kind::Bins,
        Kind::Vectors,
        Kind::Ids,
    ];
    let error = Foreign::new(&PUBLISHED, str::to_owned).error();
    assert!(
        matches!(error, FormatError::MissingSection { section: "CELLS" }),
        "{error:?}"
    );
    let gaussians = |meta: &str| meta.replace(r#""model":"tempered""#, r#""model":"gaussians""#);
    let error = Foreign::new(&PUBLISHED, gaussians).error();
    assert_inconsistent(&error, "META", "index of the published method");
}

#[test]
fn a_meta_that_does_not_fit_the_sections_is_refused() {
    for (from, to, words) in [
        (r#""dim":9"#, r#""dim":0"#, "12 points of dimension 0"),
        (r#""dim":9"#, r#""dim":8"#, "VECTORS"),
        (r#""points":12"#, r#""points":13"#, "13 points"),
        (
            r#""points":12"#,
            r#""points":4294967295"#,
            "more than positions",
        ),
        (r#""cells":3,"element"#, r#""cells":0,"element"#, "0 cells"),
        (r#""element":"f32""#, r#""element":"f64""#, "f64"),
        (r#""bin_size":8"#, r#""bin_size":0"#, "bin_size"),
        (r#""seed":4"#, r#""sede":4"#, "sede"),
        (r#""calibration""#, r#""calibrations""#, "calibrations"),
    ] {
        let foreign = Foreign::new(kinds(true, false), |meta| {
            assert!(meta.contains(from), "{meta}");
            meta.replacen(from, to, 1)
        });
        assert_inconsistent(&foreign.error(), "META", words);
    }
    let error = Foreign::new(kinds(true, false), |meta| {
        meta.replacen(r#""cells":3,"element"#, r#""cells":4,"element"#, 1)
    });
    assert_inconsistent(&error.error(), "CELLS", "3 cells, META says 4");
}
