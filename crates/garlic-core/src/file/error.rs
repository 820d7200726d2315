//! The faults of index files.

use std::io;

use super::{FORMAT_VERSION, OLDEST_VERSION};

/// Why bytes are not a valid index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not begin with the magic bytes.
    #[error("this is not a GARLIC index: the file does not begin with the index signature")]
    NotAnIndex,
    /// The file is too short.
    #[error(
        "the file is truncated: it has {found} bytes and needs {needed}; copy or build it again"
    )]
    Truncated {
        /// Actual length.
        found: u64,
        /// Expected length. If the header is incomplete, the minimum.
        needed: u64,
    },
    /// The file is longer than its header says.
    #[error(
        "the file has {found} bytes but its header says {expected}: something was appended to it"
    )]
    TrailingBytes {
        /// Actual length.
        found: u64,
        /// Expected length.
        expected: u64,
    },
    /// The format version is too old for this program.
    #[error(
        "format version {version}, this program reads {OLDEST_VERSION}..={FORMAT_VERSION}; \
         rebuild the index from its vectors"
    )]
    VersionTooOld {
        /// Version of the file.
        version: u32,
    },
    /// The format version is too new for this program.
    #[error(
        "format version {version}, this program reads {OLDEST_VERSION}..={FORMAT_VERSION}; \
         rebuild the index with this version or update the program"
    )]
    VersionTooNew {
        /// Version of the file.
        version: u32,
    },
    /// The checksum of header and section table is wrong.
    #[error(
        "the header is damaged: its checksum is {found:08x}, not {expected:08x}; copy or build the file again"
    )]
    HeaderChecksum {
        /// Checksum in the file.
        expected: u32,
        /// Checksum of the bytes.
        found: u32,
    },
    /// The checksum of a section is wrong.
    #[error(
        "section {section} is damaged: its checksum is {found:08x}, not {expected:08x}; \
         copy or build the file again"
    )]
    SectionChecksum {
        /// Name of the section.
        section: &'static str,
        /// Checksum in the table.
        expected: u32,
        /// Checksum of the bytes.
        found: u32,
    },
    /// The number of sections in the header is too large.
    #[error("the header announces {found} sections, more than the {limit} an index can have")]
    SectionCount {
        /// Number in the header.
        found: u32,
        /// Upper limit.
        limit: u32,
    },
    /// The section table has an unknown kind.
    #[error("the section table has an entry of unknown kind {kind}")]
    UnknownSection {
        /// Number of the kind.
        kind: u32,
    },
    /// A section is missing.
    #[error("section {section} is missing")]
    MissingSection {
        /// Name of the section.
        section: &'static str,
    },
    /// A section does not belong to this kind of index.
    #[error("section {section} does not belong to the kind of index that META describes")]
    UnexpectedSection {
        /// Name of the section.
        section: &'static str,
    },
    /// A section occurs twice.
    #[error("section {section} appears twice")]
    DuplicateSection {
        /// Name of the section.
        section: &'static str,
    },
    /// Sections are not in the order of their kinds.
    #[error("section {section} is out of order")]
    SectionOrder {
        /// Name of the first section that is out of order.
        section: &'static str,
    },
    /// The offset of a section is not aligned.
    #[error("section {section} begins at byte {offset}, which is not a multiple of 64")]
    Misaligned {
        /// Name of the section.
        section: &'static str,
        /// Its offset.
        offset: u64,
    },
    /// A section begins before the previous one (or the table) ends.
    #[error("section {section} begins at byte {offset}, inside what precedes it")]
    Overlap {
        /// Name of the section.
        section: &'static str,
        /// Its offset.
        offset: u64,
    },
    /// A section exceeds the file.
    #[error("section {section} ({length} bytes at {offset}) reaches past the end of the file")]
    OutOfFile {
        /// Name of the section.
        section: &'static str,
        /// Its offset.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// Bytes that belong to no section.
    #[error("{bytes} bytes at {offset} belong to no section")]
    Unclaimed {
        /// Their offset.
        offset: u64,
        /// Their number.
        bytes: u64,
    },
    /// Padding or a reserved field is not zero.
    #[error("byte {offset} is padding and must be zero; copy or build the file again")]
    Padding {
        /// Its offset.
        offset: u64,
    },
    /// The checksums are right, but the content is inconsistent.
    #[error("section {section} makes no sense: {message}")]
    Inconsistent {
        /// Name of the section.
        section: &'static str,
        /// The fault.
        message: String,
    },
    /// The file contains an index of another kind.
    #[error("the file holds an index of {holds}; open it with {reader}")]
    OtherIndex {
        /// Kind of index in the file.
        holds: &'static str,
        /// The program or library that reads such files.
        reader: &'static str,
    },
    /// A section does not fit into memory.
    #[error("section {section} needs {bytes} bytes of memory, more than the system gives")]
    Memory {
        /// Name of the section.
        section: &'static str,
        /// Number of bytes.
        bytes: u64,
    },
}

/// Why reading failed: an I/O error or invalid bytes.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Invalid bytes.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// A [`FormatError::Inconsistent`] of `section`.
pub fn inconsistent(section: super::Kind, message: impl Into<String>) -> Fault {
    Fault::Format(FormatError::Inconsistent {
        section: section.name(),
        message: message.into(),
    })
}
