//! A file opened for reading, with its length known, so that every claim can be checked first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{DataError, Origin, Result};
use crate::map::map_file;
use crate::vectors::{Element, Shape, Vectors};

/// Bytes converted at a time where a file cannot be mapped.
const BLOCK: usize = 1 << 18;

/// An open file, its length and its name for messages.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) file: File,
    pub(crate) len: u64,
    pub(crate) path: PathBuf,
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
            len: metadata.len(),
            path: path.to_owned(),
        })
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin::file(&self.path)
    }

    /// Fills `buffer` from `offset`; `what` names the part for the message of a short file.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8], what: &'static str) -> Result<()> {
        let needed = offset.saturating_add(buffer.len() as u64);
        if needed > self.len {
            return Err(self.truncated(what, needed));
        }
        let failed = |cause| DataError::io("read", &self.path, cause);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
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
            && offset.is_multiple_of(width)
            && let Ok(map) = map_file(&self.file)
            && let Some(vectors) = Vectors::mapped(Arc::new(map), offset, shape)
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
        let block = (BLOCK / N).min(count);
        let mut buffer = vec![0; block * N];
        let mut done = 0;
        while done < count {
            let now = block.min(count - done);
            let bytes = &mut buffer[..now * N];
            self.read_at(offset + (done * N) as u64, bytes, "the data")?;
            bytes.as_chunks::<N>().0.iter().for_each(|b| visit(*b));
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
