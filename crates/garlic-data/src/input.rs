//! A file opened for reading, with its length known, so that every claim can be checked first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tempfile::TempPath;

use crate::error::{DataError, Origin, Result};
use crate::map::map_file;
use crate::vectors::{Element, Shape, Vectors};

/// Bytes converted at a time where a file cannot be mapped.
const BLOCK: usize = 1 << 18;

/// An open file or a part of one, its length and its name for messages.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) file: File,
    /// Where the part begins.
    start: u64,
    pub(crate) len: u64,
    pub(crate) path: PathBuf,
    origin: Origin,
    /// Deletes a file that was made for this.
    _spooled: Option<TempPath>,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |cause| DataError::io("open", path, cause);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let cause = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            return Err(failed(cause));
        }
        Ok(Self {
            file,
            start: 0,
            len: metadata.len(),
            path: path.to_owned(),
            origin: Origin::file(path),
            _spooled: None,
        })
    }

    /// What `stream` gives, in a temporary file: readers need the length and go back and forth.
    pub(crate) fn spool(stream: &mut dyn Read, origin: Origin) -> Result<Self> {
        let folder = std::env::temp_dir();
        let failed = |cause| DataError::io("write a temporary file into", &folder, cause);
        let (mut file, path) = tempfile::NamedTempFile::new_in(&folder)
            .map_err(failed)?
            .into_parts();
        let mut buffer = vec![0; BLOCK];
        let mut len = 0;
        loop {
            let read = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => {
                    let name = origin.to_string();
                    return Err(DataError::io("read", Path::new(&name), cause));
                }
            };
            file.write_all(&buffer[..read]).map_err(failed)?;
            len += read as u64;
        }
        Ok(Self {
            file,
            start: 0,
            len,
            path: path.to_path_buf(),
            origin,
            _spooled: Some(path),
        })
    }

    /// The part of `len` bytes from `start`, which the caller has checked to lie inside the file.
    pub(crate) fn part(&self, start: u64, len: u64, origin: Origin) -> Result<Self> {
        let failed = |cause| DataError::io("open", &self.path, cause);
        Ok(Self {
            file: self.file.try_clone().map_err(failed)?,
            start: self.start + start,
            len,
            path: self.path.clone(),
            origin,
            _spooled: None,
        })
    }

    /// The same file once more, with a place of its own to read from. It begins at its first byte.
    pub(crate) fn reopened(&self) -> Result<File> {
        File::open(&self.path).map_err(|cause| DataError::io("open", &self.path, cause))
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin.clone()
    }

    /// All bytes: mapped, or read where that cannot be.
    pub(crate) fn bytes(&self) -> Result<Bytes> {
        let len = to_usize(self.len, "the length", &self.origin)?;
        let start = to_usize(self.start, "the place", &self.origin)?;
        if let Ok(map) = map_file(&self.file)
            && start.checked_add(len).is_some_and(|end| end <= map.len())
        {
            return Ok(Bytes::from_owner(map).slice(start..start + len));
        }
        let mut bytes = vec![0; len];
        self.read_at(0, &mut bytes, "the data")?;
        Ok(bytes.into())
    }

    /// Fills `buffer` from `offset`; `what` names the part for the message of a short file.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8], what: &'static str) -> Result<()> {
        let needed = offset.saturating_add(buffer.len() as u64);
        if needed > self.len {
            return Err(self.truncated(what, needed));
        }
        let failed = |cause| DataError::io("read", &self.path, cause);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.start + offset))
            .map_err(failed)?;
        file.read_exact(buffer).map_err(failed)
    }

    pub(crate) fn truncated(&self, what: &'static str, needed: u64) -> DataError {
        DataError::Truncated {
            origin: self.origin(),
            what,
            needed,
            len: self.len,
        }
    }

    /// Checks that `count` elements of `width` bytes from `offset` end where the file ends.
    pub(crate) fn check_end(&self, offset: u64, count: u64, width: u64) -> Result<()> {
        let end = count
            .checked_mul(width)
            .and_then(|bytes| bytes.checked_add(offset))
            .unwrap_or(u64::MAX);
        if end > self.len {
            return Err(self.truncated("the data its header announces", end));
        }
        if end < self.len {
            return Err(DataError::TrailingBytes {
                origin: self.origin(),
                expected: end,
                len: self.len,
            });
        }
        Ok(())
    }

    /// The vectors of `shape` at `offset`, which the caller has checked to lie inside the file:
    /// mapped where the machine can use the bytes as they are, read otherwise.
    pub(crate) fn vectors(&self, offset: u64, shape: Shape, origin: &Origin) -> Result<Vectors> {
        let width = shape.element.width() as u64;
        let native = cfg!(target_endian = "little") || width == 1;
        if native
            && let Ok(map) = map_file(&self.file)
            && let Some(vectors) = Vectors::mapped(Arc::new(map), self.start + offset, shape)
        {
            vectors.check_finite(origin)?;
            return Ok(vectors);
        }
        let count = shape.rows * shape.dim;
        match shape.element {
            Element::U8 => {
                let mut data = vec![0; count];
                self.read_at(offset, &mut data, "the data")?;
                Vectors::owned_u8(data, shape.dim, origin)
            }
            Element::F32 => {
                let mut data = Vec::with_capacity(count);
                self.for_each::<4>(offset, count, |b| data.push(f32::from_le_bytes(b)))?;
                Vectors::owned_f32(data, shape.dim, origin)
            }
        }
    }

    /// The vectors of half-precision floats at `offset`, which the caller has checked to lie inside the file, as 32-bit
    /// floats. It converts block by block, so that there is one copy of all vectors, not two.
    pub(crate) fn half_vectors(
        &self,
        offset: u64,
        shape: Shape,
        origin: &Origin,
    ) -> Result<Vectors> {
        let count = shape.rows * shape.dim;
        let mut data = Vec::with_capacity(count);
        self.for_each::<2>(offset, count, |bytes| {
            data.push(garlic_simd::f16_to_f32(u16::from_le_bytes(bytes)));
        })?;
        Vectors::owned_f32(data, shape.dim, origin)
    }

    /// Calls `visit` with the bytes of each of `count` elements of `N` bytes from `offset`.
    pub(crate) fn for_each<const N: usize>(
        &self,
        offset: u64,
        count: usize,
        mut visit: impl FnMut([u8; N]),
    ) -> Result<()> {
        self.for_each_block(offset, count * N, |block| {
            block.as_chunks::<N>().0.iter().for_each(|b| visit(*b));
        })
    }

    /// Calls `visit` with `len` bytes from `offset`, in blocks of a power of two of at least 8.
    pub(crate) fn for_each_block(
        &self,
        offset: u64,
        len: usize,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<()> {
        let mut buffer = vec![0; BLOCK.min(len)];
        let mut done = 0;
        while done < len {
            let now = BLOCK.min(len - done);
            let bytes = &mut buffer[..now];
            self.read_at(offset + done as u64, bytes, "the data")?;
            visit(bytes);
            done += now;
        }
        Ok(())
    }
}

/// A count from a header as a size of memory.
pub(crate) fn to_usize(value: u64, what: &'static str, origin: &Origin) -> Result<usize> {
    usize::try_from(value).map_err(|_| DataError::TooLarge {
        origin: origin.clone(),
        what,
        value,
        limit: usize::MAX as u64,
        fix: "use a 64-bit machine",
    })
}
