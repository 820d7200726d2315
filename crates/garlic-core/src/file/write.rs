//! Writing: sections are measured first, then streamed behind a finished header.
//!
//! Every section is generated twice, once into a checksum and once into the file. Generating is only a walk
//! over memory, so this costs less than a second copy of the vectors would, and the sink never has to seek.

use std::io::{self, Write};

use super::layout::{ALIGNMENT, Kind, Layout, Measure};

/// Something that can write each section of an index.
pub trait Sections {
    /// The sections there are, in the order of the file.
    fn kinds(&self) -> &'static [Kind];

    /// Fails for content that could be written to a file of `file_len` bytes but not read again.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self, file_len: u64) -> io::Result<()> {
        let _ = file_len;
        Ok(())
    }

    /// Writes the bytes of one section; the same bytes whenever it is asked.
    ///
    /// # Errors
    /// Those of `out`.
    fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()>;
}

/// Lengths, checksums and places of all sections.
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

/// A sink that keeps only length and checksum.
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

/// A number, or a few in a row, as the file keeps them: little-endian, each at its own width.
pub trait Word: bytemuck::Pod + Send {
    /// The same with the bytes of every number turned round.
    fn swapped(self) -> Self;
    /// Whether a file may hold it; NaN and infinities are nowhere allowed.
    fn sound(self) -> bool {
        true
    }
}

impl Word for u8 {
    fn swapped(self) -> Self {
        self
    }
}

/// Only ever the bits of a half-precision number.
impl Word for u16 {
    fn swapped(self) -> Self {
        self.swap_bytes()
    }

    fn sound(self) -> bool {
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

    fn sound(self) -> bool {
        self.is_finite()
    }
}

impl Word for f64 {
    fn swapped(self) -> Self {
        Self::from_bits(self.to_bits().swap_bytes())
    }

    fn sound(self) -> bool {
        self.is_finite()
    }
}

/// Writes `words` little-endian; on a little-endian machine straight from where they lie.
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

/// Writes a section whose arrays each begin at a multiple of [`ALIGNMENT`], so that they may be mapped.
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
    /// A section that begins at the next byte of `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out, written: 0 }
    }

    /// Words that follow the previous ones without padding: the counts that a section begins with.
    pub fn put<T: Word>(&mut self, words: &[T]) -> io::Result<()> {
        self.written += size_of_val(words) as u64;
        put(self.out, words)
    }

    /// The next array, behind as many zeros as it takes.
    pub fn array<T: Word>(&mut self, words: &[T]) -> io::Result<()> {
        let padding = self.written.next_multiple_of(ALIGNMENT) - self.written;
        self.put(&[0_u8; ALIGNMENT as usize][..padding as usize])?;
        self.put(words)
    }
}
