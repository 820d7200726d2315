//! The file format: one file an index, vectors included.
//!
//! `docs/reference/file-format.md` draws the layout. A file is replaced all at once, never changed in place. [`Index::open`] maps
//! it, [`Index::load`] reads and checks every byte, [`Index::verify`] checks what a search does not rely on as well;
//! whatever is wrong with a file has its own [`FormatError`].
//!
//! Files of format version 2 and later stay readable.

pub(crate) mod atomic;
mod bins;
mod decode;
mod encode;
mod error;
mod layout;
mod map;
mod published;
mod read;
mod section;
mod sound;
mod source;
mod tempered;
mod verify;
mod write;

#[cfg(test)]
mod tests;

pub use error::FormatError;
#[cfg(test)]
pub(crate) use map::map_file;
pub use verify::{SectionSummary, Summary};

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::path::Path;

use atomic::{Disk, Place};
use bytes::Bytes;
use encode::Source;
use error::Fault;
use layout::{HEADER_LEN, Kind, Layout, MAGIC};
use source::Mapped;

use crate::error::{Error, Result};
use crate::index::Index;

/// The format version that is written.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest format version that is read.
const OLDEST_VERSION: u32 = 2;
/// The format versions that are read.
pub const SUPPORTED_VERSIONS: RangeInclusive<u32> = OLDEST_VERSION..=FORMAT_VERSION;

/// Most bytes of the section META: configuration, training history and calibration are small.
const MAX_META: u64 = 64 << 20;

/// Whether there is a file that begins as index files of every version do; whether it is sound, opening it tells.
pub fn is_index_file(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let mut start = [0; MAGIC.len()];
    // Asked before opening: a pipe would wait for a writer.
    let is_read = path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
    is_read && start == MAGIC
}

impl Index {
    /// Writes the index to `path`, replacing what is there all at once.
    ///
    /// A temporary file is written beside it, synced and renamed, so that nobody ever sees half an index. On an
    /// error the old file stays as it was and nothing is left behind. A symbolic link at `path` is replaced, not
    /// followed.
    ///
    /// # Errors
    /// [`Error::Io`] with the path when a step of the file system fails.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save_to(&Disk, self, path.as_ref())
    }

    /// Opens an index where it lies: the file is mapped, and its parts are read when a search needs them.
    ///
    /// The work does not depend on the number of points. Header, section table, configuration, calibration and
    /// change of coordinates are read and checked, and so is that every array has the length it must have; of an
    /// index built by the published method also the cells. What the large arrays hold is not looked at:
    /// a damaged file gives wrong answers, or none, but a search never panics, reads outside of the file or asks for
    /// memory without bounds. [`Index::verify`] tells whether a file is sound.
    ///
    /// Replace index files by rename, never in place: `mv new.garlic index.garlic`, not `cp`. [`Index::save`] does so, and
    /// replacing or deleting the file is harmless: an open index keeps what it was opened on. If somebody overwrites the
    /// file while the index or a clone of it exists, answers mean nothing or are [`Error::Damaged`], but no call
    /// panics. If somebody shortens it, as `cp` onto the old name does first, reading behind the new end ends the program
    /// (SIGBUS), which nothing can prevent. Use [`Index::load`] where nobody can promise that.
    ///
    /// Where files cannot be mapped this is [`Index::load`].
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is no index.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        Ok(open_file(path.as_ref(), Way::Map)?.0)
    }

    /// Reads an index into memory and checks all of it: header, checksums, and that the content makes sense.
    ///
    /// Takes time and memory in proportion to the file, and gives the fastest searches from the first one on.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is no sound index.
    pub fn load(path: impl AsRef<Path>) -> Result<Index> {
        Ok(open_file(path.as_ref(), Way::Read)?.0)
    }

    /// Does all that [`Index::load`] does, and checks what a search does not rely on: that identifiers are
    /// unique, that axes are orthonormal, and that points lie in the bins that list them and have the codes they
    /// should have.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is no sound index.
    pub fn verify(path: impl AsRef<Path>) -> Result<Summary> {
        let path = path.as_ref();
        let (index, layout) = open_file(path, Way::Read)?;
        verify::check(&index).map_err(|fault| with_path(path, fault))?;
        Ok(Summary::new(&index, &layout))
    }

    /// The bytes that [`Index::save`] writes. Equal indexes give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let flat = self.flattened();
        let encode = || -> io::Result<Vec<u8>> {
            let source = Source::new(flat.as_ref().unwrap_or(self))?;
            let layout = write::measure(&source)?;
            let mut bytes = Vec::with_capacity(layout.file_len as usize);
            write::write(&source, &layout, &mut bytes)?;
            Ok(bytes)
        };
        // Plain structs always become JSON, and a vector takes every byte.
        encode().expect("writing to memory does not fail")
    }

    /// The index that [`Index::to_bytes`] gave the bytes of, checked as [`Index::load`] does.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Index, FormatError> {
        let found = bytes.len() as u64;
        match decode::read_index(bytes, found) {
            Ok((index, _)) => Ok(index),
            Err(Fault::Format(error)) => Err(error),
            // Memory fails in one way only: by ending.
            Err(Fault::Io(_)) => Err(FormatError::Truncated {
                found,
                needed: found,
            }),
        }
    }
}

pub(crate) fn save_to<P: Place>(place: &P, index: &Index, path: &Path) -> Result<()> {
    let flat = index.flattened();
    let save = || -> io::Result<()> {
        let source = Source::new(flat.as_ref().unwrap_or(index))?;
        let layout = write::measure(&source)?;
        source.check(layout.file_len)?;
        atomic::replace(place, path, |out| write::write(&source, &layout, out))
    };
    save().map_err(|error| with_path(path, Fault::Io(error)))
}

/// How a file becomes an index.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Map,
    Read,
}

fn open_file(path: &Path, way: Way) -> Result<(Index, Layout)> {
    let read = || -> Result<_, Fault> {
        // Asked before opening: a pipe would wait for a writer, and only a file knows its length.
        if !std::fs::metadata(path)?.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "is not a file");
            return Err(Fault::Io(error));
        }
        let file = File::open(path)?;
        let file_len = file.metadata()?.len();
        // A file without even a header is not worth a mapping, and an empty one has none. Numbers lie in the file
        // as little-endian machines have them.
        let maps = way == Way::Map && cfg!(target_endian = "little");
        if maps
            && file_len >= HEADER_LEN as u64
            && let Ok(map) = map::map_file(&file)
        {
            let file_len = map.len() as u64;
            return decode::read_index(Mapped(Bytes::from_owner(map)), file_len);
        }
        decode::read_index(file, file_len)
    };
    read().map_err(|fault| with_path(path, fault))
}

fn with_path(path: &Path, fault: Fault) -> Error {
    let path = path.to_owned();
    match fault {
        Fault::Io(source) => Error::Io { path, source },
        Fault::Format(source) => Error::Format { path, source },
    }
}
