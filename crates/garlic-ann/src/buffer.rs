//! Large arrays that a search reads: they begin at a page, in huge pages where the system gives them.
//!
//! Loads of whole cache lines are a third faster when they do not straddle two lines, and reading here and
//! there in tens of megabytes is faster when one entry of the page table covers more of them.

use bytemuck::Pod;
use memmap2::MmapMut;

/// A read-only array in pages of its own.
pub(crate) struct Buffer<T> {
    storage: Storage<T>,
    len: usize,
}

enum Storage<T> {
    Pages(MmapMut),
    /// Where the system gives no pages.
    Plain(Vec<T>),
}

impl<T: Pod> Buffer<T> {
    /// Copies `values` into pages.
    pub(crate) fn new(values: Vec<T>) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let len = values.len();
        let storage = match MmapMut::map_anon(bytes.len().max(1)) {
            Ok(mut pages) => {
                advise(&pages);
                pages[..bytes.len()].copy_from_slice(bytes);
                Storage::Pages(pages)
            }
            Err(_) => Storage::Plain(values),
        };
        Self { storage, len }
    }
}

/// Asks for huge pages; without them everything works as well.
fn advise(pages: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = pages;
}

impl<T: Pod> std::ops::Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.storage {
            Storage::Pages(pages) => bytemuck::cast_slice(&pages[..self.len * size_of::<T>()]),
            Storage::Plain(values) => values,
        }
    }
}

impl<T: Pod> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self::new(values)
    }
}

impl<T: Pod> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self::new(self.to_vec())
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer of {}", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_it_was_given_at_a_page() {
        for len in [0usize, 1, 1000, 3_000_001] {
            let values: Vec<u16> = (0..len).map(|i| i as u16).collect();
            let buffer = Buffer::new(values.clone());
            assert_eq!(*buffer, *values);
            assert_eq!(buffer.clone(), buffer);
            assert!(
                buffer.as_ptr().addr().is_multiple_of(64),
                "aligned for SIMD"
            );
        }
    }
}
