//! Reads a file: header and table first, then the sections in order, each with its checksum.

use std::io;

use super::error::{Fault, FormatError, inconsistent};
use super::layout::{ALIGNMENT, HEADER_LEN, Kind, Layout, Preamble};
use super::section::Section;
use super::source::Source;

/// A file that is read from start to end.
pub struct Reader<R> {
    pub(super) inner: R,
    pub(super) layout: Layout,
    /// Number of bytes read so far.
    pub(super) position: u64,
    next: usize,
}

impl<R> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("layout", &self.layout)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<R: Source> Reader<R> {
    /// Reads header and table of a file of `file_len` bytes.
    pub fn open(mut inner: R, file_len: u64) -> Result<Self, Fault> {
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
        })
    }

    /// Header and table.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether large arrays stay in the file, unchecked.
    pub fn is_mapped(&self) -> bool {
        self.inner.map().is_some()
    }

    /// Reads the next section, which is `kind`, with `decode`.
    ///
    /// If the checksum is wrong, that error is reported, whatever `decode` returned.
    pub fn section<T>(
        &mut self,
        kind: Kind,
        decode: impl FnOnce(&mut Section<'_, R>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.enter(kind, false, decode)
    }

    /// [`Reader::section`] for a section whose arrays stay in a mapped file. Then neither they nor the checksum are
    /// checked.
    pub fn large_section<T>(
        &mut self,
        kind: Kind,
        decode: impl FnOnce(&mut Section<'_, R>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.enter(kind, self.is_mapped(), decode)
    }

    /// [`Reader::section`] for a section that `decode` leaves in the file, unchecked.
    pub(super) fn unread_section<T>(
        &mut self,
        kind: Kind,
        decode: impl FnOnce(&mut Section<'_, R>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.enter(kind, true, decode)
    }

    fn enter<T>(
        &mut self,
        kind: Kind,
        is_mapped: bool,
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
        let mut section = Section::new(self, entry, is_mapped);
        let decoded = match decode(&mut section) {
            Err(Fault::Io(error)) => return Err(Fault::Io(error)),
            other => other,
        };
        let left = section.left();
        if !is_mapped {
            let found = section.checksum()?;
            if found != entry.checksum {
                return Err(Fault::Format(FormatError::SectionChecksum {
                    section: kind.name(),
                    expected: entry.checksum,
                    found,
                }));
            }
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

/// A file may shrink while it is read. This is reported as truncation.
pub(super) fn read_exact(
    inner: &mut impl Source,
    bytes: &mut [u8],
    position: u64,
    file_len: u64,
) -> Result<(), Fault> {
    inner
        .fetch(bytes, position)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::Format(FormatError::Truncated {
                found: position,
                needed: file_len,
            }),
            _ => Fault::Io(error),
        })
}
