//! Large read-only arrays: ranges of a mapped file, or separately allocated pages.
//!
//! Arrays begin at a page boundary, in huge pages if the system provides them. Loads of cache lines are faster if
//! they are aligned, and random access is faster with fewer page table entries. Arrays of a mapped file stay in place
//! and are loaded on first use.
//!
//! Clones share the memory, whatever its size.

use std::marker::PhantomData;

use bytemuck::Pod;
use bytes::Bytes;
use memmap2::MmapMut;

/// Smaller arrays use the allocator, because a page each would be wasteful.
const MIN_PAGED_BYTES: usize = 4096;

/// A read-only array.
pub struct Buffer<T> {
    /// Whole values, suitably aligned.
    bytes: Bytes,
    /// Whether the bytes lie in a mapped file.
    mapped: bool,
    values: PhantomData<T>,
}

impl<T: Pod + Send> Buffer<T> {
    /// Copies `values` into pages, unless they are few.
    pub fn new(values: Vec<T>) -> Self {
        if size_of_val(values.as_slice()) < MIN_PAGED_BYTES {
            return Self::plain(values);
        }
        match Blank::new(values.len()) {
            Some(mut blank) => {
                blank.copy_from_slice(&values);
                blank.freeze()
            }
            None => Self::plain(values),
        }
    }

    /// Collects the first `len` values directly into pages, padded with zeros.
    pub fn collect(len: usize, values: impl Iterator<Item = T>) -> Self {
        match Blank::new(len) {
            Some(mut blank) => {
                for (place, value) in blank.iter_mut().zip(values) {
                    *place = value;
                }
                blank.freeze()
            }
            // If no pages are available, fall back to the allocator.
            None => Self::plain(values.take(len).collect()),
        }
    }

    /// The `len` values at byte `offset` of a mapped file, which must not be changed while it is mapped. `None` if
    /// they are out of range or misaligned.
    pub fn mapped(file: &Bytes, offset: usize, len: usize) -> Option<Self> {
        let to = offset.checked_add(len.checked_mul(size_of::<T>())?)?;
        bytemuck::try_cast_slice::<u8, T>(file.get(offset..to)?).ok()?;
        Some(Self {
            bytes: file.slice(offset..to),
            mapped: true,
            values: PhantomData,
        })
    }

    /// The values in private memory. A copy if they lie in a mapped file.
    pub fn in_memory(&self) -> Self {
        match self.mapped {
            true => Self::collect(self.len(), self.iter().copied()),
            false => self.clone(),
        }
    }

    /// Bytes that lie in a mapped file.
    pub fn mapped_bytes(&self) -> u64 {
        if self.mapped {
            self.bytes.len() as u64
        } else {
            0
        }
    }

    fn plain(values: Vec<T>) -> Self {
        Self::own(Plain(values), usize::MAX)
    }

    /// Wraps the first `len` bytes of private memory.
    fn own(owner: impl AsRef<[u8]> + Send + 'static, len: usize) -> Self {
        let mut bytes = Bytes::from_owner(owner);
        bytes.truncate(len);
        Self {
            bytes,
            mapped: false,
            values: PhantomData,
        }
    }
}

/// Values as bytes.
struct Plain<T>(Vec<T>);

impl<T: Pod> AsRef<[u8]> for Plain<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl<T: Pod + Send> std::ops::Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // Length and alignment were checked on creation and do not change.
        bytemuck::cast_slice(&self.bytes)
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            mapped: self.mapped,
            values: PhantomData,
        }
    }
}

impl<T: Pod + Send> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self::new(values)
    }
}

impl<T: Pod + Send> Default for Buffer<T> {
    fn default() -> Self {
        Self::plain(Vec::new())
    }
}

impl<T: Pod + Send + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer of {}", self.bytes.len() / size_of::<T>())
    }
}

/// A buffer under construction, initially zero.
pub struct Blank<T> {
    storage: Filling<T>,
    len: usize,
}

impl<T> std::fmt::Debug for Blank<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blank")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

enum Filling<T> {
    Pages(MmapMut),
    Plain(Vec<T>),
}

impl<T: Pod + Send> Blank<T> {
    /// Allocates `len` zeros, or returns `None` if there is no memory.
    pub fn new(len: usize) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<T>())?;
        if bytes >= MIN_PAGED_BYTES
            && let Ok(pages) = MmapMut::map_anon(bytes)
        {
            advise(&pages);
            let storage = Filling::Pages(pages);
            return Some(Self { storage, len });
        }
        let mut values = Vec::new();
        values.try_reserve_exact(len).ok()?;
        values.resize(len, T::zeroed());
        let storage = Filling::Plain(values);
        Some(Self { storage, len })
    }

    /// Turns it into a read-only buffer.
    pub fn freeze(self) -> Buffer<T> {
        match self.storage {
            Filling::Pages(pages) => Buffer::own(pages, self.len * size_of::<T>()),
            Filling::Plain(values) => Buffer::plain(values),
        }
    }
}

impl<T: Pod + Send> std::ops::Deref for Blank<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.storage {
            Filling::Pages(pages) => bytemuck::cast_slice(&pages[..self.len * size_of::<T>()]),
            Filling::Plain(values) => values,
        }
    }
}

impl<T: Pod + Send> std::ops::DerefMut for Blank<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            Filling::Pages(pages) => {
                bytemuck::cast_slice_mut(&mut pages[..self.len * size_of::<T>()])
            }
            Filling::Plain(values) => values,
        }
    }
}

/// Requests huge pages. Failure is harmless.
fn advise(pages: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = pages;
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn holds_what_it_was_given_at_a_page() {
        for len in [0usize, 1, 1000, 3_000_001] {
            let values: Vec<u16> = (0..len).map(|i| i as u16).collect();
            let buffer = Buffer::new(values.clone());
            assert_eq!(*buffer, *values);
            assert_eq!(
                Buffer::collect(len, values.iter().copied().chain([7])),
                buffer
            );
            let clone = buffer.clone();
            assert_eq!(clone.as_ptr(), buffer.as_ptr(), "a clone shares the memory");
            assert!(
                2 * len < MIN_PAGED_BYTES || buffer.as_ptr().addr().is_multiple_of(64),
                "aligned for SIMD"
            );
        }
    }

    #[test]
    fn ranges_of_a_file_are_checked_for_place_and_alignment() {
        let mut file = tempfile::tempfile().unwrap();
        let words: Vec<u32> = (0..3000).collect();
        file.write_all(bytemuck::cast_slice(&words)).unwrap();
        let map = Bytes::from_owner(crate::file::map_file(&file).unwrap());
        let buffer = Buffer::<u32>::mapped(&map, 400, 50).unwrap();
        assert_eq!(*buffer, words[100..150]);
        assert_eq!(buffer.mapped_bytes(), 200);
        assert_eq!(buffer, Buffer::new(words[100..150].to_vec()));
        assert!(
            Buffer::<u32>::mapped(&map, 12_000, 0)
                .unwrap()
                .clone()
                .is_empty()
        );
        for (offset, len) in [
            (401, 50),
            (12_000, 1),
            (11_996, 2),
            (0, 3001),
            (4, usize::MAX / 2),
            (usize::MAX, 1),
            (usize::MAX - 3, 1),
        ] {
            assert!(Buffer::<u32>::mapped(&map, offset, len).is_none());
        }
    }

    #[test]
    fn more_than_there_is_of_anything_is_refused() {
        assert!(Blank::<u64>::new(usize::MAX).is_none());
        assert!(Blank::<u64>::new(usize::MAX / 8).is_none());
        let mut blank = Blank::<u64>::new(1000).unwrap();
        assert!(blank.iter().all(|v| *v == 0));
        blank[999] = 5;
        assert_eq!(blank.freeze()[999], 5);
    }
}
