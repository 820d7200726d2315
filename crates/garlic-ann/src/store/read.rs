//! Reading: header and table first, then section after section, each checked as it passes.
//!
//! Nothing is allocated on the word of the file alone: a section must lie inside the file, and an array inside
//! what is left of its section, before memory is asked for.

use std::io::{self, Read};

use super::error::{Fault, FormatError, inconsistent};
use super::layout::{ALIGNMENT, Entry, HEADER_LEN, Kind, Layout, Preamble};
use super::write::Word;

/// Bytes that are read, checked and converted at a time: they stay in the second-level cache.
const CHUNK: usize = 256 * 1024;

/// A file that is being read from its first byte to its last.
pub(super) struct Reader<R> {
    inner: R,
    layout: Layout,
    /// Bytes read so far.
    position: u64,
    next: usize,
    /// Words, so that every number type may be read from it in place.
    chunk: Vec<u64>,
}

impl<R: Read> Reader<R> {
    /// Reads header and table of a file of `file_len` bytes.
    pub(super) fn open(mut inner: R, file_len: u64) -> Result<Self, Fault> {
        let fixed = usize::try_from(file_len)
            .unwrap_or(HEADER_LEN)
            .min(HEADER_LEN);
        let mut head = vec![0; fixed];
        read_exact(&mut inner, &mut head, 0, file_len)?;
        let preamble = Preamble::parse(&head, file_len)?;
        head.resize(preamble.head_len(), 0);
        read_exact(&mut inner, &mut head[fixed..], fixed as u64, file_len)?;
        let layout = Layout::parse(preamble, &head)?;
        Ok(Self {
            inner,
            layout,
            position: head.len() as u64,
            next: 0,
            chunk: vec![0; CHUNK / 8],
        })
    }

    /// Header and table.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Reads the next section, which is `kind`, with `decode`.
    ///
    /// A wrong checksum is the error that is reported, whatever `decode` has stumbled over.
    pub(super) fn section<T>(
        &mut self,
        kind: Kind,
        decode: impl FnOnce(&mut Section<'_, R>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let entry = match self.layout.entries.get(self.next) {
            Some(entry) if entry.kind == kind => *entry,
            _ => {
                return Err(Fault::Format(FormatError::MissingSection {
                    section: kind.name(),
                }));
            }
        };
        self.next += 1;
        self.padding(entry.offset)?;
        let file_len = self.layout.file_len;
        let mut section = Section {
            reader: self,
            entry,
            file_len,
            left: entry.length,
            hasher: crc32fast::Hasher::new(),
        };
        let decoded = match decode(&mut section) {
            Err(Fault::Io(error)) => return Err(Fault::Io(error)),
            other => other,
        };
        let left = section.left;
        section.skip()?;
        let found = section.hasher.finalize();
        if found != entry.checksum {
            return Err(Fault::Format(FormatError::SectionChecksum {
                section: kind.name(),
                expected: entry.checksum,
                found,
            }));
        }
        let decoded = decoded?;
        if left > 0 {
            return Err(inconsistent(
                kind,
                format!("{left} bytes more than its content needs"),
            ));
        }
        Ok(decoded)
    }

    fn padding(&mut self, until: u64) -> Result<(), Fault> {
        let mut bytes = [0; ALIGNMENT as usize];
        let bytes = &mut bytes[..(until - self.position) as usize];
        read_exact(&mut self.inner, bytes, self.position, self.layout.file_len)?;
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            return Err(Fault::Format(FormatError::Padding {
                offset: self.position + at as u64,
            }));
        }
        self.position = until;
        Ok(())
    }
}

/// The part of a section that has not been read yet.
pub(super) struct Section<'a, R> {
    reader: &'a mut Reader<R>,
    entry: Entry,
    file_len: u64,
    left: u64,
    hasher: crc32fast::Hasher,
}

impl<R: Read> Section<'_, R> {
    /// Bytes that have not been read yet.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Fails unless exactly `needed` bytes are left; `None` stands for a number that overflowed.
    pub(super) fn expect(&self, needed: Option<u64>) -> Result<(), Fault> {
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

    /// Fails unless arrays of these counts and widths, each at a multiple of [`ALIGNMENT`], are exactly what is
    /// left.
    pub(super) fn expect_arrays(&self, arrays: &[(Option<u64>, usize)]) -> Result<(), Fault> {
        let begin = self.entry.length - self.left;
        let end = arrays.iter().try_fold(begin, |end, (count, width)| {
            let bytes = (*count)?.checked_mul(*width as u64)?;
            end.checked_next_multiple_of(ALIGNMENT)?.checked_add(bytes)
        });
        self.expect(end.map(|end| end - begin))
    }

    /// The next `count` words, which begin at a multiple of [`ALIGNMENT`].
    pub(super) fn array<T: Word>(&mut self, count: u64) -> Result<Vec<T>, Fault> {
        let read = self.entry.length - self.left;
        let padding = self.words::<u8>(read.next_multiple_of(ALIGNMENT) - read)?;
        if let Some(at) = padding.iter().position(|byte| *byte != 0) {
            return Err(Fault::Format(FormatError::Padding {
                offset: self.entry.offset + read + at as u64,
            }));
        }
        self.words(count)
    }

    /// One word.
    pub(super) fn word<T: Word>(&mut self) -> Result<T, Fault> {
        Ok(self.words(1)?[0])
    }

    /// The next `count` words.
    pub(super) fn words<T: Word>(&mut self, count: u64) -> Result<Vec<T>, Fault> {
        let kind = self.entry.kind;
        let width = size_of::<T>() as u64;
        let bytes = count.checked_mul(width).filter(|bytes| *bytes <= self.left);
        let Some(bytes) = bytes else {
            return Err(inconsistent(
                kind,
                format!(
                    "{count} values of {width} bytes do not fit into the {} bytes left",
                    self.left
                ),
            ));
        };
        let memory = || {
            Fault::Format(FormatError::Memory {
                section: kind.name(),
                bytes,
            })
        };
        let mut words = Vec::new();
        let capacity = usize::try_from(count).map_err(|_| memory())?;
        words.try_reserve_exact(capacity).map_err(|_| memory())?;
        let mut unsound = None;
        while words.len() < capacity {
            let take = (capacity - words.len()).min(CHUNK / size_of::<T>());
            let chunk: &[T] = bytemuck::cast_slice(self.next_chunk(take * size_of::<T>())?);
            let from = words.len();
            if cfg!(target_endian = "little") {
                words.extend_from_slice(chunk);
            } else {
                words.extend(chunk.iter().map(|word| word.swapped()));
            }
            // Without an early exit inside the chunk, so that it compiles to vector instructions.
            let sound = words[from..]
                .iter()
                .fold(true, |all, word| all & word.sound());
            if !sound && unsound.is_none() {
                unsound = words[from..]
                    .iter()
                    .position(|word| !word.sound())
                    .map(|at| from + at);
            }
        }
        match unsound {
            Some(at) => Err(inconsistent(
                kind,
                format!("value {at} of an array is not finite"),
            )),
            None => Ok(words),
        }
    }

    /// Reads what is left, for the checksum's sake.
    fn skip(&mut self) -> Result<(), Fault> {
        while self.left > 0 {
            self.next_chunk(usize::try_from(self.left).unwrap_or(CHUNK).min(CHUNK))?;
        }
        Ok(())
    }

    fn next_chunk(&mut self, bytes: usize) -> Result<&[u8], Fault> {
        let Reader {
            inner,
            position,
            chunk,
            ..
        } = &mut *self.reader;
        let chunk: &mut [u8] = &mut bytemuck::cast_slice_mut(chunk)[..bytes];
        read_exact(inner, chunk, *position, self.file_len)?;
        *position += bytes as u64;
        self.left -= bytes as u64;
        self.hasher.update(chunk);
        Ok(chunk)
    }
}

/// A file may shrink while it is read: that is a truncation like any other.
fn read_exact(
    inner: &mut impl Read,
    bytes: &mut [u8],
    position: u64,
    file_len: u64,
) -> Result<(), Fault> {
    inner.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::Format(FormatError::Truncated {
            found: position,
            needed: file_len,
        }),
        _ => Fault::Io(error),
    })
}
