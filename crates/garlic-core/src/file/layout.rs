//! Header and section table. `docs/reference/file-format.md` describes the bytes.

use super::error::FormatError;
use super::{FORMAT_VERSION, OLDEST_VERSION};

/// First bytes of every index. The zero and the control character make text tools stop early.
pub(super) const MAGIC: [u8; 8] = *b"GARLIC\0\x1a";
/// Alignment of sections: a cache line, and enough for any SIMD load of a mapped file.
pub const ALIGNMENT: u64 = 64;
/// Size of the header before the section table.
pub const HEADER_LEN: usize = 32;
/// Bytes of one entry of the section table.
pub(super) const ENTRY_LEN: usize = 24;
/// Offset of the checksum of header and table. It counts as zero in itself.
const CHECKSUM_AT: usize = 24;
/// Offset of a reserved field, zero.
const RESERVED_AT: usize = 28;
/// Upper limit of the number of sections, so that a damaged header cannot demand memory.
const MAX_SECTIONS: u32 = 64;

/// Kind of a section, with its number in the file. Sections are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// Configuration, sizes and other small data, as JSON.
    Meta = 1,
    /// The transform.
    Space = 2,
    /// `garlic-paper`: means of the Gaussians.
    Means = 3,
    /// `garlic-paper`: Cholesky factors of the Gaussians.
    Factors = 4,
    /// `garlic-paper`: centres and axes of the cells.
    Frames = 5,
    /// `garlic-paper`: grids, occupied bins and members of the cells.
    Bins = 6,
    /// `garlic-ann`: means, axes and variances of the cells.
    Cells = 7,
    /// `garlic-ann`: quantization steps and the ranges of bins.
    Learned = 8,
    /// `garlic-ann`: codes of bin centres and points.
    Codes = 9,
    /// The vectors, in cell order.
    Vectors = 10,
    /// The identifiers of the vectors.
    Ids = 11,
    /// `garlic-ann`: neighbour lists and their codes, if the index has a graph.
    Graph = 12,
    /// Names and columns of the points, if the index has them.
    Table = 13,
}

impl Kind {
    /// All kinds, in the order of the file.
    pub const ALL: [Kind; 13] = [
        Kind::Meta,
        Kind::Space,
        Kind::Means,
        Kind::Factors,
        Kind::Frames,
        Kind::Bins,
        Kind::Cells,
        Kind::Learned,
        Kind::Codes,
        Kind::Vectors,
        Kind::Ids,
        Kind::Graph,
        Kind::Table,
    ];
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Meta => "META",
            Kind::Space => "SPACE",
            Kind::Means => "MEANS",
            Kind::Factors => "FACTORS",
            Kind::Frames => "FRAMES",
            Kind::Bins => "BINS",
            Kind::Cells => "CELLS",
            Kind::Learned => "LEARNED",
            Kind::Codes => "CODES",
            Kind::Vectors => "VECTORS",
            Kind::Ids => "IDS",
            Kind::Graph => "GRAPH",
            Kind::Table => "TABLE",
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// One entry of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind of the section.
    pub kind: Kind,
    /// CRC-32 of its bytes.
    pub checksum: u32,
    /// Its offset.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

/// Length and checksum of a section without an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The kind of the section.
    pub kind: Kind,
    /// CRC-32 of its bytes.
    pub checksum: u32,
    /// Its length.
    pub length: u64,
}

/// Header and section table of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Format version.
    pub version: u32,
    /// Length of the file.
    pub file_len: u64,
    /// The sections, in the order of the file.
    pub entries: Vec<Entry>,
}

/// The fixed part of the header.
#[derive(Clone, Copy, Debug)]
pub struct Preamble {
    /// Format version.
    pub version: u32,
    pub sections: u32,
    /// Length of the file.
    pub file_len: u64,
}

impl Preamble {
    /// Bytes of header and table.
    pub fn head_len(&self) -> usize {
        HEADER_LEN + self.sections as usize * ENTRY_LEN
    }

    /// Reads the fixed header of a file of `found` bytes: magic, version, length.
    ///
    /// `bytes` are the first [`HEADER_LEN`] bytes, or all if there are fewer.
    pub fn parse(bytes: &[u8], found: u64) -> Result<Self, FormatError> {
        let prefix = bytes.len().min(MAGIC.len());
        if bytes[..prefix] != MAGIC[..prefix] {
            return Err(FormatError::NotAnIndex);
        }
        if bytes.len() < HEADER_LEN {
            return Err(FormatError::Truncated {
                found,
                needed: HEADER_LEN as u64,
            });
        }
        // Check the version before the checksum, because other versions may store it elsewhere.
        let version = u32_at(bytes, 8);
        if version < OLDEST_VERSION {
            return Err(FormatError::VersionTooOld { version });
        }
        if version > FORMAT_VERSION {
            return Err(FormatError::VersionTooNew { version });
        }
        let sections = u32_at(bytes, 12);
        if sections > MAX_SECTIONS {
            return Err(FormatError::SectionCount {
                found: sections,
                limit: MAX_SECTIONS,
            });
        }
        let preamble = Self {
            version,
            sections,
            file_len: u64_at(bytes, 16),
        };
        let needed = preamble.file_len.max(preamble.head_len() as u64);
        if found < needed {
            return Err(FormatError::Truncated { found, needed });
        }
        if found > preamble.file_len {
            return Err(FormatError::TrailingBytes {
                found,
                expected: preamble.file_len,
            });
        }
        Ok(preamble)
    }
}

impl Layout {
    /// Assigns an offset to every section.
    pub fn place(sections: &[Measure]) -> Self {
        let mut end = (HEADER_LEN + sections.len() * ENTRY_LEN) as u64;
        let entries = sections
            .iter()
            .map(|section| {
                let offset = end.next_multiple_of(ALIGNMENT);
                end = offset + section.length;
                Entry {
                    kind: section.kind,
                    checksum: section.checksum,
                    offset,
                    length: section.length,
                }
            })
            .collect();
        Self {
            version: FORMAT_VERSION,
            file_len: end,
            entries,
        }
    }

    /// Header and table as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEADER_LEN + self.entries.len() * ENTRY_LEN);
        head.extend(MAGIC);
        head.extend(self.version.to_le_bytes());
        head.extend((self.entries.len() as u32).to_le_bytes());
        head.extend(self.file_len.to_le_bytes());
        head.extend([0; 8]);
        for entry in &self.entries {
            head.extend((entry.kind as u32).to_le_bytes());
            head.extend(entry.checksum.to_le_bytes());
            head.extend(entry.offset.to_le_bytes());
            head.extend(entry.length.to_le_bytes());
        }
        let checksum = head_checksum(&head);
        head[CHECKSUM_AT..RESERVED_AT].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// Checks header and table. `head` has `Preamble::head_len` bytes.
    pub fn parse(preamble: Preamble, head: &[u8]) -> Result<Self, FormatError> {
        let (expected, found) = (u32_at(head, CHECKSUM_AT), head_checksum(head));
        if expected != found {
            return Err(FormatError::HeaderChecksum { expected, found });
        }
        if u32_at(head, RESERVED_AT) != 0 {
            return Err(FormatError::Padding {
                offset: RESERVED_AT as u64,
            });
        }
        let mut entries: Vec<Entry> = Vec::with_capacity(preamble.sections as usize);
        let mut end = head.len() as u64;
        for bytes in head[HEADER_LEN..].chunks_exact(ENTRY_LEN) {
            let entry = parse_entry(bytes, &entries)?;
            end = check_place(&entry, end, preamble.file_len)?;
            entries.push(entry);
        }
        if end < preamble.file_len {
            return Err(FormatError::Unclaimed {
                offset: end,
                bytes: preamble.file_len - end,
            });
        }
        Ok(Self {
            version: preamble.version,
            file_len: preamble.file_len,
            entries,
        })
    }

    /// Fails unless the sections are exactly `kinds`, which depend on META.
    pub fn expect(&self, kinds: &[Kind]) -> Result<(), FormatError> {
        let found = |kind: &Kind| self.entries.iter().any(|entry| entry.kind == *kind);
        if let Some(missing) = kinds.iter().find(|kind| !found(kind)) {
            return Err(FormatError::MissingSection {
                section: missing.name(),
            });
        }
        match self.entries.iter().find(|e| !kinds.contains(&e.kind)) {
            Some(entry) => Err(FormatError::UnexpectedSection {
                section: entry.kind.name(),
            }),
            None => Ok(()),
        }
    }

    /// Length of a section, if there is one.
    pub fn length(&self, kind: Kind) -> Option<u64> {
        let entry = self.entries.iter().find(|entry| entry.kind == kind);
        entry.map(|entry| entry.length)
    }
}

fn parse_entry(bytes: &[u8], before: &[Entry]) -> Result<Entry, FormatError> {
    let number = u32_at(bytes, 0);
    let kind = Kind::from_number(number).ok_or(FormatError::UnknownSection { kind: number })?;
    let section = kind.name();
    if before.iter().any(|entry| entry.kind == kind) {
        return Err(FormatError::DuplicateSection { section });
    }
    if before.last().is_some_and(|entry| entry.kind > kind) {
        return Err(FormatError::SectionOrder { section });
    }
    Ok(Entry {
        kind,
        checksum: u32_at(bytes, 4),
        offset: u64_at(bytes, 8),
        length: u64_at(bytes, 16),
    })
}

/// Checks that a section follows `end` after padding only, and returns its own end.
fn check_place(entry: &Entry, end: u64, file_len: u64) -> Result<u64, FormatError> {
    let Entry {
        kind,
        offset,
        length,
        ..
    } = *entry;
    let section = kind.name();
    let after = match offset.checked_add(length) {
        Some(after) if after <= file_len => after,
        _ => {
            return Err(FormatError::OutOfFile {
                section,
                offset,
                length,
            });
        }
    };
    if offset < end {
        return Err(FormatError::Overlap { section, offset });
    }
    if !offset.is_multiple_of(ALIGNMENT) {
        return Err(FormatError::Misaligned { section, offset });
    }
    if offset - end >= ALIGNMENT {
        return Err(FormatError::Unclaimed {
            offset: end,
            bytes: offset - end,
        });
    }
    Ok(after)
}

/// Checksum of header and table, with the bytes of the checksum as zero.
fn head_checksum(head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..CHECKSUM_AT]);
    hasher.update(&[0; 4]);
    hasher.update(&head[RESERVED_AT..]);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTIONS: &[Kind] = &[
        Kind::Meta,
        Kind::Space,
        Kind::Means,
        Kind::Factors,
        Kind::Frames,
        Kind::Bins,
        Kind::Vectors,
        Kind::Ids,
    ];
    const OTHER_SECTIONS: &[Kind] = &[
        Kind::Meta,
        Kind::Space,
        Kind::Cells,
        Kind::Learned,
        Kind::Codes,
        Kind::Vectors,
        Kind::Ids,
    ];

    fn measures_of(kinds: &[Kind]) -> Vec<Measure> {
        let measure = |(kind, number): (&Kind, u64)| Measure {
            kind: *kind,
            checksum: *kind as u32 * 77,
            length: number * 10,
        };
        kinds.iter().zip(1..).map(measure).collect()
    }

    fn measures() -> Vec<Measure> {
        measures_of(SECTIONS)
    }

    fn parse(layout: &Layout) -> Result<Layout, FormatError> {
        let head = layout.to_bytes();
        let preamble = Preamble::parse(&head[..HEADER_LEN], layout.file_len)?;
        let layout = Layout::parse(preamble, &head)?;
        layout.expect(SECTIONS)?;
        Ok(layout)
    }

    #[test]
    fn a_placed_layout_reads_back() {
        let layout = Layout::place(&measures());
        assert_eq!(layout.entries[0].offset, 256);
        assert_eq!(layout.file_len, layout.entries[7].offset + 80);
        assert_eq!(parse(&layout).unwrap(), layout);
        assert_eq!(layout.length(Kind::Frames), Some(50));
        assert_eq!(layout.length(Kind::Codes), None);
    }

    #[test]
    fn the_sections_of_another_body_are_refused() {
        for (there, other, missing) in [
            (OTHER_SECTIONS, SECTIONS, "MEANS"),
            (SECTIONS, OTHER_SECTIONS, "CELLS"),
        ] {
            assert!(there.is_sorted() && there.iter().all(|kind| Kind::ALL.contains(kind)));
            let layout = Layout::place(&measures_of(there));
            layout.expect(there).unwrap();
            let error = layout.expect(other).unwrap_err();
            assert!(
                matches!(error, FormatError::MissingSection { section } if section == missing),
                "{error:?}"
            );
            let all = Layout::place(&measures_of(&Kind::ALL));
            let error = all.expect(there).unwrap_err();
            assert!(
                matches!(error, FormatError::UnexpectedSection { section } if section == missing),
                "{error:?}"
            );
        }
    }

    #[test]
    fn every_wrong_table_has_its_own_error() {
        type Change = fn(&mut Layout);
        type Expected = fn(&FormatError) -> bool;
        let cases: [(Change, Expected); 11] = [
            (
                |l| l.version = 1,
                |e| matches!(e, FormatError::VersionTooOld { version: 1 }),
            ),
            (
                |l| l.version = 7,
                |e| matches!(e, FormatError::VersionTooNew { version: 7 }),
            ),
            (
                |l| l.entries = vec![l.entries[0]; 65],
                |e| matches!(e, FormatError::SectionCount { found: 65, .. }),
            ),
            (
                |l| {
                    l.entries.truncate(7);
                    l.file_len = l.entries[6].offset + l.entries[6].length;
                },
                |e| matches!(e, FormatError::MissingSection { section: "IDS" }),
            ),
            (
                |l| l.entries[3].kind = Kind::Means,
                |e| matches!(e, FormatError::DuplicateSection { section: "MEANS" }),
            ),
            (
                |l| {
                    l.entries[3].kind = Kind::Frames;
                    l.entries[4].kind = Kind::Factors;
                },
                |e| matches!(e, FormatError::SectionOrder { section: "FACTORS" }),
            ),
            (
                |l| l.entries[2].offset += 8,
                |e| {
                    matches!(
                        e,
                        FormatError::Misaligned {
                            section: "MEANS",
                            ..
                        }
                    )
                },
            ),
            (
                |l| l.entries[7].offset = l.entries[6].offset,
                |e| matches!(e, FormatError::Overlap { section: "IDS", .. }),
            ),
            (
                |l| l.entries[6].length = u64::MAX,
                |e| {
                    matches!(
                        e,
                        FormatError::OutOfFile {
                            section: "VECTORS",
                            ..
                        }
                    )
                },
            ),
            (
                |l| {
                    l.entries[7].offset += 64;
                    l.file_len += 64;
                },
                |e| matches!(e, FormatError::Unclaimed { bytes: 122, .. }),
            ),
            (
                |l| l.file_len += 9,
                |e| matches!(e, FormatError::Unclaimed { bytes: 9, .. }),
            ),
        ];
        for (i, (change, expected)) in cases.into_iter().enumerate() {
            let mut layout = Layout::place(&measures());
            change(&mut layout);
            let error = parse(&layout).unwrap_err();
            assert!(expected(&error), "case {i}: {error:?}");
        }
    }

    #[test]
    fn unknown_kinds_and_reserved_bytes_are_refused() {
        let layout = Layout::place(&measures());
        for (at, value) in [(HEADER_LEN, 99), (RESERVED_AT, 1)] {
            let mut head = layout.to_bytes();
            head[at] = value;
            let checksum = head_checksum(&head);
            head[CHECKSUM_AT..RESERVED_AT].copy_from_slice(&checksum.to_le_bytes());
            let preamble = Preamble::parse(&head[..HEADER_LEN], layout.file_len).unwrap();
            let error = Layout::parse(preamble, &head).unwrap_err();
            assert!(
                matches!(
                    error,
                    FormatError::UnknownSection { kind: 99 } | FormatError::Padding { offset: 28 }
                ),
                "{error:?}"
            );
        }
    }

    #[test]
    fn versions_are_refused_by_name() {
        let mut layout = Layout::place(&measures());
        layout.version = 7;
        let message = parse(&layout).unwrap_err().to_string();
        assert!(
            message.contains("format version 7, this program reads 2..=2"),
            "{message}"
        );
    }
}
