//! Every way in which a file can fail to be an index.

use std::io;

use super::{FORMAT_VERSION, OLDEST_VERSION};

/// What is wrong with the bytes of an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not begin with the magic bytes.
    #[error("this is not a GARLIC index: the file does not begin with the index signature")]
    NotAnIndex,
    /// The file ends too early.
    #[error(
        "the file is truncated: it has {found} bytes and needs {needed}; copy or build it again"
    )]
    Truncated {
        /// Bytes that are there.
        found: u64,
        /// Bytes that there should be; the least there can be where the header is incomplete.
        needed: u64,
    },
    /// The file goes on after the end that its header gives.
    #[error(
        "the file has {found} bytes but its header says {expected}: something was appended to it"
    )]
    TrailingBytes {
        /// Bytes that are there.
        found: u64,
        /// Bytes that there should be.
        expected: u64,
    },
    /// The format is older than this program reads.
    #[error(
        "format version {version}, this program reads {OLDEST_VERSION}..={FORMAT_VERSION}; \
         rebuild the index from its vectors"
    )]
    VersionTooOld {
        /// Version of the file.
        version: u32,
    },
    /// The format is newer than this program reads.
    #[error(
        "format version {version}, this program reads {OLDEST_VERSION}..={FORMAT_VERSION}; \
         rebuild the index with this version or update the program"
    )]
    VersionTooNew {
        /// Version of the file.
        version: u32,
    },
    /// Header or section table do not have the checksum that is stored with them.
    #[error(
        "the header is damaged: its checksum is {found:08x}, not {expected:08x}; copy or build the file again"
    )]
    HeaderChecksum {
        /// Checksum in the file.
        expected: u32,
        /// Checksum of the bytes.
        found: u32,
    },
    /// A section does not have the checksum that the table gives.
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
    /// The header gives a number of sections that no index has.
    #[error("the header announces {found} sections, more than the {limit} an index can have")]
    SectionCount {
        /// Number in the header.
        found: u32,
        /// Most sections there can be.
        limit: u32,
    },
    /// The table names a kind of section that this version does not have.
    #[error("the section table has an entry of unknown kind {kind}")]
    UnknownSection {
        /// Number of the kind.
        kind: u32,
    },
    /// A section is not there.
    #[error("section {section} is missing")]
    MissingSection {
        /// Name of the section.
        section: &'static str,
    },
    /// A section is there that an index of this kind does not have.
    #[error("section {section} does not belong to the kind of index that META describes")]
    UnexpectedSection {
        /// Name of the section.
        section: &'static str,
    },
    /// A section is there twice.
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
    /// A section does not begin at a multiple of the alignment.
    #[error("section {section} begins at byte {offset}, which is not a multiple of 64")]
    Misaligned {
        /// Name of the section.
        section: &'static str,
        /// Where it begins.
        offset: u64,
    },
    /// A section begins before the previous one (or the table) ends.
    #[error("section {section} begins at byte {offset}, inside what precedes it")]
    Overlap {
        /// Name of the section.
        section: &'static str,
        /// Where it begins.
        offset: u64,
    },
    /// A section ends after the file.
    #[error("section {section} ({length} bytes at {offset}) reaches past the end of the file")]
    OutOfFile {
        /// Name of the section.
        section: &'static str,
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: u64,
    },
    /// Bytes that belong to no section.
    #[error("{bytes} bytes at {offset} belong to no section")]
    Unclaimed {
        /// Where they begin.
        offset: u64,
        /// How many there are.
        bytes: u64,
    },
    /// Padding or a reserved field is not zero.
    #[error("byte {offset} is padding and must be zero; copy or build the file again")]
    Padding {
        /// Where the byte is.
        offset: u64,
    },
    /// Checksums agree, but the content makes no index.
    #[error("section {section} makes no sense: {message}")]
    Inconsistent {
        /// Name of the section.
        section: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The file holds an index of another kind.
    #[error("the file holds an index of {holds}; open it with {reader}")]
    OtherIndex {
        /// Kind of index in the file.
        holds: &'static str,
        /// What reads such files.
        reader: &'static str,
    },
    /// The system does not give the memory that a section needs.
    #[error("section {section} needs {bytes} bytes of memory, more than the system gives")]
    Memory {
        /// Name of the section.
        section: &'static str,
        /// Bytes that were asked for.
        bytes: u64,
    },
}

/// Why reading stopped: the device failed, or the bytes are wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The device failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are wrong.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// An [`FormatError::Inconsistent`] of `section`.
pub fn inconsistent(section: super::Kind, message: impl Into<String>) -> Fault {
    Fault::Format(FormatError::Inconsistent {
        section: section.name(),
        message: message.into(),
    })
}
