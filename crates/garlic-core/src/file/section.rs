//! Reads the words and arrays of one section.
//!
//! Sizes in the file are checked before memory is allocated: a section must lie inside the file, and an array inside
//! the rest of its section. Arrays are read directly into their final memory. Those of a mapped file stay there,
//! unchecked.

use bytes::Bytes;

use super::error::{Fault, FormatError, inconsistent};
use super::layout::{ALIGNMENT, Entry};
use super::read::{Reader, read_exact};
use super::source::Source;
use super::write::Word;
use crate::buffer::{Blank, Buffer};

/// Number of bytes that are read and checked at a time. They fit into the second-level cache.
const CHUNK_BYTES: usize = 256 * 1024;

/// The unread part of a section.
pub struct Section<'a, R> {
    reader: &'a mut Reader<R>,
    entry: Entry,
    left: u64,
    /// Whether arrays stay in the file.
    is_mapped: bool,
    hasher: crc32fast::Hasher,
}

impl<R> std::fmt::Debug for Section<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Section")
            .field("entry", &self.entry)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'a, R: Source> Section<'a, R> {
    /// The section of a table entry. `reader` is at its first byte.
    pub fn new(reader: &'a mut Reader<R>, entry: Entry, is_mapped: bool) -> Self {
        Self {
            reader,
            entry,
            left: entry.length,
            is_mapped,
            hasher: crc32fast::Hasher::new(),
        }
    }

    /// Number of unread bytes.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Fails unless exactly `needed` bytes are left. `None` stands for an overflow.
    pub fn expect(&self, needed: Option<u64>) -> Result<(), Fault> {
        match needed {
            Some(needed) if needed == self.left => Ok(()),
            Some(needed) => Err(inconsistent(
                self.entry.kind,
                format!(
                    "its counts ask for {needed} bytes more, it has {}",
                    self.left
                ),
            )),
            None => Err(inconsistent(self.entry.kind, "its counts overflow")),
        }
    }

    /// Fails unless aligned arrays of these counts and widths are exactly what is left.
    pub fn expect_arrays(&self, arrays: &[(Option<u64>, usize)]) -> Result<(), Fault> {
        let begin = self.entry.length - self.left;
        let end = arrays.iter().try_fold(begin, |end, (count, width)| {
            let bytes = (*count)?.checked_mul(*width as u64)?;
            end.checked_next_multiple_of(ALIGNMENT)?.checked_add(bytes)
        });
        self.expect(end.map(|end| end - begin))
    }

    /// The next `count` words as an array, after alignment to [`ALIGNMENT`].
    pub fn array<T: Word>(&mut self, count: u64) -> Result<Buffer<T>, Fault> {
        self.align()?;
        self.buffer(count)
    }

    /// The next `count` words as an array.
    pub fn buffer<T: Word>(&mut self, count: u64) -> Result<Buffer<T>, Fault> {
        let len = self.fits::<T>(count)?;
        if self.is_mapped
            && let Some(map) = self.reader.inner.map()
        {
            let offset = usize::try_from(self.reader.position);
            let array = offset
                .ok()
                .and_then(|offset| Buffer::mapped(map, offset, len));
            self.pass(len * size_of::<T>());
            return array.ok_or_else(|| inconsistent(self.entry.kind, "an array is misaligned"));
        }
        let mut blank = Blank::new(len).ok_or_else(|| self.no_memory::<T>(count))?;
        self.fill(&mut blank)?;
        Ok(blank.freeze())
    }

    /// The next `count` bytes after alignment. Those of a mapped file stay there.
    pub fn block(&mut self, count: u64) -> Result<Bytes, Fault> {
        self.align()?;
        let len = self.fits::<u8>(count)?;
        if self.is_mapped
            && let Some(map) = self.reader.inner.map()
            && let Ok(from) = usize::try_from(self.reader.position)
            && let Some(end) = from.checked_add(len).filter(|end| *end <= map.len())
        {
            let block = map.slice(from..end);
            self.pass(len);
            return Ok(block);
        }
        self.words::<u8>(count).map(Bytes::from)
    }

    /// Passes over what is left, and returns its offset in the file.
    pub(super) fn leave(&mut self) -> u64 {
        let offset = self.reader.position;
        self.reader.position += self.left;
        self.left = 0;
        offset
    }

    /// Skips padding up to the next multiple of [`ALIGNMENT`].
    pub fn align(&mut self) -> Result<(), Fault> {
        let read = self.entry.length - self.left;
        let padding = read.next_multiple_of(ALIGNMENT) - read;
        if self.is_mapped {
            self.fits::<u8>(padding)?;
            self.pass(padding as usize);
            return Ok(());
        }
        let padding = self.words::<u8>(padding)?;
        match padding.iter().position(|byte| *byte != 0) {
            Some(at) => Err(Fault::Format(FormatError::Padding {
                offset: self.entry.offset + read + at as u64,
            })),
            None => Ok(()),
        }
    }

    /// One word.
    pub fn word<T: Word>(&mut self) -> Result<T, Fault> {
        Ok(self.words(1)?[0])
    }

    /// The next `count` words.
    pub fn words<T: Word>(&mut self, count: u64) -> Result<Vec<T>, Fault> {
        let len = self.fits::<T>(count)?;
        let mut words = Vec::new();
        words
            .try_reserve_exact(len)
            .map_err(|_| self.no_memory::<T>(count))?;
        words.resize(len, T::zeroed());
        self.fill(&mut words)?;
        Ok(words)
    }

    /// `count` as a size, if that many words are left.
    fn fits<T: Word>(&self, count: u64) -> Result<usize, Fault> {
        let width = size_of::<T>() as u64;
        if count
            .checked_mul(width)
            .is_none_or(|bytes| bytes > self.left)
        {
            return Err(inconsistent(
                self.entry.kind,
                format!(
                    "{count} values of {width} bytes do not fit into the {} bytes left",
                    self.left
                ),
            ));
        }
        usize::try_from(count).map_err(|_| self.no_memory::<T>(count))
    }

    fn no_memory<T>(&self, count: u64) -> Fault {
        Fault::Format(FormatError::Memory {
            section: self.entry.kind.name(),
            bytes: count.saturating_mul(size_of::<T>() as u64),
        })
    }

    /// Fills `words` chunk by chunk and checks them while they are in the cache.
    fn fill<T: Word>(&mut self, words: &mut [T]) -> Result<(), Fault> {
        let per_chunk = CHUNK_BYTES / size_of::<T>();
        let mut unsound = None;
        for (number, chunk) in words.chunks_mut(per_chunk).enumerate() {
            self.next_bytes(bytemuck::cast_slice_mut(chunk))?;
            if cfg!(target_endian = "big") {
                for word in chunk.iter_mut() {
                    *word = word.swapped();
                }
            }
            // The loop has no early exit within a chunk, so that it vectorizes.
            let sound = chunk.iter().fold(true, |all, word| all & word.is_valid());
            if !sound && unsound.is_none() {
                let at = chunk.iter().position(|word| !word.is_valid());
                unsound = at.map(|at| number * per_chunk + at);
            }
        }
        match unsound {
            Some(at) => Err(inconsistent(
                self.entry.kind,
                format!("value {at} of an array is not finite"),
            )),
            None => Ok(()),
        }
    }

    /// Reads the rest and returns the checksum of the section.
    pub fn checksum(mut self) -> Result<u32, Fault> {
        let most = usize::try_from(self.left)
            .unwrap_or(CHUNK_BYTES)
            .min(CHUNK_BYTES);
        let mut chunk = vec![0; most];
        while self.left > 0 {
            let take = usize::try_from(self.left).unwrap_or(most).min(most);
            self.next_bytes(&mut chunk[..take])?;
        }
        Ok(self.hasher.finalize())
    }

    fn next_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        let Reader {
            inner,
            position,
            layout,
            ..
        } = &mut *self.reader;
        read_exact(inner, bytes, *position, layout.file_len)?;
        if !self.is_mapped {
            self.hasher.update(bytes);
        }
        self.pass(bytes.len());
        Ok(())
    }

    /// Counts bytes as read.
    fn pass(&mut self, bytes: usize) {
        self.reader.position += bytes as u64;
        self.left -= bytes as u64;
    }
}
