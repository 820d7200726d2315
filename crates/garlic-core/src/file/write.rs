//! Writes a file: sections are measured first, then streamed after the finished header.
//!
//! Every section is generated twice, once for the checksum and once for the file. Generating only walks over memory,
//! so it is cheaper than a second copy of the vectors, and the sink never has to seek.

use std::io::{self, Write};

use super::layout::{ALIGNMENT, Kind, Layout, Measure};

/// A type that can write the sections of an index.
pub trait Sections {
    /// The sections, in the order of the file.
    fn kinds(&self) -> &'static [Kind];

    /// Fails for content that could be written to a file of `file_len` bytes but not read again.
    ///
    /// # Errors
    /// The fault.
    fn check(&self, file_len: u64) -> io::Result<()> {
        let _ = file_len;
        Ok(())
    }

    /// Writes the bytes of one section. Repeated calls write the same bytes.
    ///
    /// # Errors
    /// Those of `out`.
    fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()>;
}

/// Lengths, checksums and offsets of all sections.
pub fn measure(sections: &impl Sections) -> io::Result<Layout> {
    let kinds = sections.kinds();
    let mut measures = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let mut tally = Tally::default();
        sections.write_section(*kind, &mut tally)?;
        measures.push(Measure {
            kind: *kind,
            checksum: tally.hasher.finalize(),
            length: tally.length,
        });
    }
    Ok(Layout::place(&measures))
}

/// Writes header, table and sections.
pub fn write(sections: &impl Sections, layout: &Layout, out: &mut impl Write) -> io::Result<()> {
    let head = layout.to_bytes();
    out.write_all(&head)?;
    let mut end = head.len() as u64;
    for entry in &layout.entries {
        let padding = (entry.offset - end) as usize;
        out.write_all(&[0; ALIGNMENT as usize][..padding])?;
        sections.write_section(entry.kind, out)?;
        end = entry.offset + entry.length;
    }
    Ok(())
}

/// A sink that keeps only the length and the checksum.
#[derive(Default)]
struct Tally {
    hasher: crc32fast::Hasher,
    length: u64,
}

impl Write for Tally {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A number, or a few in a row, as stored in a file: little-endian.
pub trait Word: bytemuck::Pod + Send {
    /// Swaps the bytes of every number.
    fn swapped(self) -> Self;
    /// Whether a file may contain the value. NaN and infinity are never allowed.
    fn is_valid(self) -> bool {
        true
    }
}

impl Word for u8 {
    fn swapped(self) -> Self {
        self
    }
}

/// The bits of a half-precision number.
impl Word for u16 {
    fn swapped(self) -> Self {
        self.swap_bytes()
    }

    fn is_valid(self) -> bool {
        const EXPONENT: u16 = 0x7c00;
        self & EXPONENT != EXPONENT
    }
}

impl Word for u32 {
    fn swapped(self) -> Self {
        self.swap_bytes()
    }
}

impl Word for u64 {
    fn swapped(self) -> Self {
        self.swap_bytes()
    }
}

impl Word for f32 {
    fn swapped(self) -> Self {
        Self::from_bits(self.to_bits().swap_bytes())
    }

    fn is_valid(self) -> bool {
        self.is_finite()
    }
}

impl Word for f64 {
    fn swapped(self) -> Self {
        Self::from_bits(self.to_bits().swap_bytes())
    }

    fn is_valid(self) -> bool {
        self.is_finite()
    }
}

/// Writes `words` little-endian, without a copy on a little-endian machine.
pub fn put<T: Word>(out: &mut dyn Write, words: &[T]) -> io::Result<()> {
    if cfg!(target_endian = "little") {
        return out.write_all(bytemuck::cast_slice(words));
    }
    for chunk in words.chunks(4096) {
        let swapped: Vec<T> = chunk.iter().map(|word| word.swapped()).collect();
        out.write_all(bytemuck::cast_slice(&swapped))?;
    }
    Ok(())
}

/// Writes a section whose arrays are aligned to [`ALIGNMENT`], so that they can be mapped.
pub struct Aligned<'a> {
    out: &'a mut dyn Write,
    written: u64,
}

impl std::fmt::Debug for Aligned<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aligned")
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl<'a> Aligned<'a> {
    /// Starts a section at the next byte of `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out, written: 0 }
    }

    /// Writes words without padding, such as the counts at the start of a section.
    pub fn put<T: Word>(&mut self, words: &[T]) -> io::Result<()> {
        self.written += size_of_val(words) as u64;
        put(self.out, words)
    }

    /// Pads with zeros, then writes an array.
    pub fn array<T: Word>(&mut self, words: &[T]) -> io::Result<()> {
        let padding = self.written.next_multiple_of(ALIGNMENT) - self.written;
        self.put(&[0_u8; ALIGNMENT as usize][..padding as usize])?;
        self.put(words)
    }
}
