//! Where the bytes of an index come from: a stream of them, or a mapped file.

use std::io::{self, Read};

use bytes::Bytes;

/// Where the bytes of an index come from.
pub trait Source {
    /// The next bytes, which begin at `position`.
    fn fetch(&mut self, bytes: &mut [u8], position: u64) -> io::Result<()>;

    /// The file, if arrays may stay in it.
    fn map(&self) -> Option<&Bytes> {
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
