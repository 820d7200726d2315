//! The source of the bytes of an index: a stream, a mapped file, or a file that keeps its vectors.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::vector_file::{ReadBackend, read_at};

/// The source of the bytes of an index.
pub trait Source {
    /// Reads the next bytes, which begin at `position`.
    fn fetch(&mut self, bytes: &mut [u8], position: u64) -> io::Result<()>;

    /// The mapped file, if arrays may stay in it.
    fn map(&self) -> Option<&Bytes> {
        None
    }

    /// The file, if vectors stay in it and are read when they are needed.
    fn keeps_vectors(&self) -> Option<&OnDisk> {
        None
    }
}

impl<R: Read> Source for R {
    fn fetch(&mut self, bytes: &mut [u8], _: u64) -> io::Result<()> {
        self.read_exact(bytes)
    }
}

/// A mapped file.
pub struct Mapped(pub Bytes);

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mapped({} bytes)", self.0.len())
    }
}

impl Source for Mapped {
    fn fetch(&mut self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        let rest = usize::try_from(position)
            .ok()
            .and_then(|at| self.0.get(at..));
        match rest.and_then(|rest| rest.get(..bytes.len())) {
            Some(found) => {
                bytes.copy_from_slice(found);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn map(&self) -> Option<&Bytes> {
        Some(&self.0)
    }
}

/// A file whose vectors stay in it. Everything else is read.
#[derive(Debug)]
pub struct OnDisk {
    /// The file.
    pub file: Arc<File>,
    /// Its name in error messages.
    pub path: PathBuf,
    /// How vectors are read later.
    pub backend: ReadBackend,
}

impl Source for OnDisk {
    fn fetch(&mut self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        read_at(&self.file, bytes, position)
    }

    fn keeps_vectors(&self) -> Option<&OnDisk> {
        Some(self)
    }
}
