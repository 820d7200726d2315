//! The container of saved indexes: one file, including the vectors.
//!
//! In: the sections of an index ([`Sections`]). Out: a file, and the index read from it ([`Decode`]). A file has a
//! header, a section table and sections with a checksum each. It is replaced atomically and never changed in place.
//! Every fault has its own [`FormatError`]. `docs/reference/file-format.md` describes the layout. Format version 2
//! and later stay readable.

pub mod atomic;
mod attachment;
mod common;
mod error;
mod layout;
mod map;
mod read;
mod section;
mod source;
mod write;

pub use attachment::{put_attachment, read_attachment};
pub use common::{
    Meta, check_axes, check_meta, matrix, product, put_transform, put_vectors, read_ids, read_meta,
    read_transform, read_vectors,
};
pub use error::{Fault, FormatError, inconsistent};
pub use layout::{ALIGNMENT, Entry, HEADER_LEN, Kind, Layout, Measure};
pub use map::map_file;
pub use read::Reader;
pub use section::Section;
pub use source::{Mapped, OnDisk, Source};
pub use write::{Aligned, Sections, Word, measure, put, write};

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use atomic::FileOps;
use bytes::Bytes;
use layout::MAGIC;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::vector_file::ReadBackend;

/// The format version that is written.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest format version that is read.
const OLDEST_VERSION: u32 = 2;
/// The format versions that are read.
pub const SUPPORTED_VERSIONS: RangeInclusive<u32> = OLDEST_VERSION..=FORMAT_VERSION;

/// Upper limit of the size of META.
pub const MAX_META: u64 = 64 << 20;

/// Whether a file begins with the magic bytes of an index. Only opening tells whether it is valid.
pub fn is_index_file(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let mut start = [0; MAGIC.len()];
    // Check before opening: opening a pipe would wait for a writer.
    let is_read = path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
    is_read && start == MAGIC
}

/// A type that can be read from the sections of a file.
pub trait Decode: Sized {
    /// Reads all sections, in the order of the file.
    ///
    /// # Errors
    /// Fails if a section is damaged or inconsistent.
    fn decode<R: Source>(reader: &mut Reader<R>) -> Result<Self, Fault>;
}

/// How a file is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Mapped: large arrays stay in the file and are not checked.
    Map,
    /// Read into memory: every byte is checked.
    Read,
    /// Vectors stay in the file and are read when they are needed. Everything else is read and checked.
    Disk(ReadBackend),
}

/// Opens a file.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read, [`Error::Format`] if it is not a valid `T`.
pub fn open<T: Decode>(path: &Path, access: Access) -> Result<(T, Layout)> {
    let read = || -> Result<_, Fault> {
        // Check before opening: opening a pipe would wait for a writer, and only a file has a length.
        if !std::fs::metadata(path)?.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "is not a file");
            return Err(Fault::Io(error));
        }
        let file = File::open(path)?;
        let file_len = file.metadata()?.len();
        // A file without a complete header is read, because an empty file cannot be mapped. Mapping requires a
        // little-endian machine.
        let maps = access == Access::Map && cfg!(target_endian = "little");
        if maps
            && file_len >= HEADER_LEN as u64
            && let Ok(map) = map::map_file(&file)
        {
            let file_len = map.len() as u64;
            return decode(Mapped(Bytes::from_owner(map)), file_len);
        }
        if let Access::Disk(backend) = access {
            return decode_on_disk(file, path, file_len, backend);
        }
        decode(file, file_len)
    };
    read().map_err(|fault| with_path(path, fault))
}

/// Reads everything but the vectors of a file.
fn decode_on_disk<T: Decode>(
    file: File,
    path: &Path,
    file_len: u64,
    backend: ReadBackend,
) -> Result<(T, Layout), Fault> {
    let source = OnDisk {
        file: Arc::new(file),
        path: path.to_owned(),
        backend,
    };
    let file = Arc::clone(&source.file);
    let decoded = decode(source, file_len)?;
    // The sections were read in order. Vectors are read here and there, and none of their neighbours is wanted.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::fs::fadvise(&*file, 0, None, rustix::fs::Advice::Random);
    drop(file);
    Ok(decoded)
}

/// Decodes the bytes of [`to_bytes`].
///
/// # Errors
/// Fails if the bytes are damaged or inconsistent.
pub fn from_bytes<T: Decode>(bytes: &[u8]) -> Result<T, FormatError> {
    let found = bytes.len() as u64;
    match decode(bytes, found) {
        Ok((read, _)) => Ok(read),
        Err(Fault::Format(error)) => Err(error),
        // Reading from memory fails only at its end.
        Err(Fault::Io(_)) => Err(FormatError::Truncated {
            found,
            needed: found,
        }),
    }
}

fn decode<T: Decode>(inner: impl Source, file_len: u64) -> Result<(T, Layout), Fault> {
    let mut reader = Reader::open(inner, file_len)?;
    let decoded = T::decode(&mut reader)?;
    Ok((decoded, reader.layout().clone()))
}

/// The sections of the file at `path`, from its header.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`].
pub fn sections_of(path: &Path) -> Result<Vec<Kind>> {
    open::<Table>(path, Access::Map).map(|(table, _)| table.0)
}

/// The sections of a file in memory, from its header.
///
/// # Errors
/// Fails if the header is invalid.
pub fn sections_in(bytes: &[u8]) -> Result<Vec<Kind>, FormatError> {
    from_bytes::<Table>(bytes).map(|table| table.0)
}

/// The section table alone.
struct Table(Vec<Kind>);

impl Decode for Table {
    fn decode<R: Source>(reader: &mut Reader<R>) -> Result<Self, Fault> {
        let entries = reader.layout().entries.iter();
        Ok(Self(entries.map(|entry| entry.kind).collect()))
    }
}

/// Header, table and sections in memory.
///
/// # Errors
/// Fails if a section cannot be written.
pub fn to_bytes(sections: &impl Sections) -> io::Result<Vec<u8>> {
    let layout = write::measure(sections)?;
    let mut bytes = Vec::with_capacity(layout.file_len as usize);
    write::write(sections, &layout, &mut bytes)?;
    Ok(bytes)
}

/// Writes a file and replaces an existing one atomically.
///
/// # Errors
/// [`Error::Io`] with the path if a file system operation fails, or if the content could not be read again.
pub fn save<P: FileOps>(place: &P, path: &Path, sections: &impl Sections) -> Result<()> {
    let save = || -> io::Result<()> {
        let layout = write::measure(sections)?;
        sections.check(layout.file_len)?;
        atomic::replace(place, path, |out| write::write(sections, &layout, out))
    };
    save().map_err(|error| with_path(path, Fault::Io(error)))
}

/// Adds the path to a fault.
pub fn with_path(path: &Path, fault: Fault) -> Error {
    let path = path.to_owned();
    match fault {
        Fault::Io(source) => Error::Io { path, source },
        Fault::Format(source) => Error::Format { path, source },
    }
}

/// Summary of a verified file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Format version.
    pub version: u32,
    /// Length of the file.
    pub file_bytes: u64,
    /// Dimension of the vectors.
    pub dim: usize,
    /// Number of vectors.
    pub points: usize,
    /// Number of cells.
    pub cells: usize,
    /// The sections, in the order of the file.
    pub sections: Vec<SectionSummary>,
}

/// Summary of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SectionSummary {
    /// Name of its kind.
    pub kind: &'static str,
    /// Its offset.
    pub offset: u64,
    /// Its length.
    pub length: u64,
    /// CRC-32 of its bytes.
    pub checksum: u32,
}

impl Summary {
    /// Creates the summary of a file with this layout.
    pub fn new(layout: &Layout, dim: usize, points: usize, cells: usize) -> Self {
        let section = |entry: &Entry| SectionSummary {
            kind: entry.kind.name(),
            offset: entry.offset,
            length: entry.length,
            checksum: entry.checksum,
        };
        Self {
            version: layout.version,
            file_bytes: layout.file_len,
            dim,
            points,
            cells,
            sections: layout.entries.iter().map(section).collect(),
        }
    }
}
