//! A bit set for tombstones. Clones share its chunks until one of them changes.

use std::sync::Arc;

/// Words per chunk.
pub(crate) const CHUNK_WORDS: usize = 64;

/// A set of numbers below a limit. A clone is cheap, and a change copies only the chunks that it touches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    /// Empty while the set is empty.
    pub(crate) chunks: Vec<Option<Arc<[u64; CHUNK_WORDS]>>>,
    pub(crate) limit: usize,
    pub(crate) count: usize,
}

impl Bits {
    /// The empty set of numbers below `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            chunks: Vec::new(),
            limit,
            count: 0,
        }
    }

    /// Number of elements.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether a number is in the set. False for numbers at or above the limit.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> bool {
        match self.chunks.get(number / (64 * CHUNK_WORDS)) {
            Some(Some(chunk)) => chunk[number / 64 % CHUNK_WORDS] >> (number % 64) & 1 == 1,
            _ => false,
        }
    }

    /// Inserts a number below the limit. Returns whether it is new.
    pub(crate) fn set(&mut self, number: usize) -> bool {
        debug_assert!(number < self.limit);
        if self.chunks.is_empty() {
            self.chunks = vec![None; self.limit.div_ceil(64 * CHUNK_WORDS)];
        }
        let chunk = self.chunks[number / (64 * CHUNK_WORDS)]
            .get_or_insert_with(|| Arc::new([0; CHUNK_WORDS]));
        let word = &mut Arc::make_mut(chunk)[number / 64 % CHUNK_WORDS];
        let new = *word >> (number % 64) & 1 == 0;
        *word |= 1 << (number % 64);
        self.count += usize::from(new);
        new
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let chunks = self.chunks.iter().flatten().count();
        (chunks * CHUNK_WORDS * 8 + size_of_val(&*self.chunks)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_what_it_was() {
        let mut bits = Bits::new(10_000);
        assert!(bits.set(3) && bits.set(4_096) && bits.set(9_999));
        assert!(!bits.set(3), "it was there");
        let before = bits.clone();
        bits.set(4_097);
        assert!(bits.get(4_097) && !before.get(4_097));
        assert_eq!((bits.count(), before.count()), (4, 3));
        assert!(before.get(3) && before.get(4_096) && before.get(9_999) && !before.get(4));
        assert!(!Bits::new(5).get(2) && !bits.get(1 << 40));
    }
}
