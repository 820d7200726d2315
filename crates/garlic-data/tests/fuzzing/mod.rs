//! What fuzz tests need: seeded mutations of sound files, and a meter for the memory that reading them takes.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// How many files a fuzz test tries: `GARLIC_FUZZ_ITERATIONS`, or `otherwise`.
pub fn iterations(otherwise: u64) -> u64 {
    match std::env::var("GARLIC_FUZZ_ITERATIONS") {
        Ok(text) => text
            .parse()
            .expect("GARLIC_FUZZ_ITERATIONS is not a number"),
        Err(_) => otherwise,
    }
}

/// A stream of numbers that depends on its seed only (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, zero when there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % (limit as u64).max(1)) as usize
    }

    /// A number that readers get wrong: small, near a power of two, or any.
    fn awkward(&mut self) -> u64 {
        let near = (1_u64 << self.below(64)).wrapping_add(self.below(3) as u64);
        match self.below(6) {
            0 => self.below(20) as u64,
            1 => near.wrapping_sub(1),
            2 => near.wrapping_neg(),
            3 => u64::MAX - self.below(3) as u64,
            // Infinity, not a number, and minus one as floats of 32 bits, twice.
            4 => [0x7f80_0000, 0xffc0_0000, 0xbf80_0000][self.below(3)] * 0x1_0000_0001,
            _ => self.next(),
        }
    }
}

/// Changes a file in one to six places: bits, bytes, words, pieces cut out, put in, or taken from another file.
pub fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len());
        let len = 1 + random.below(64);
        let end = (at + len).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let fill = random.awkward() as u8;
                bytes.splice(at..at, std::iter::repeat_n(fill, len));
            }
            2 => {
                let from = random.below(other.len());
                let piece = &other[from..(from + len).min(other.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 if random.below(4) == 0 => bytes.truncate(at),
            _ => scribble(random, bytes, other),
        }
    }
}

/// Changes a bit, a byte, a word or a piece, and moves nothing.
pub fn scribble(random: &mut Random, bytes: &mut [u8], other: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(5) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.awkward() as u8,
        2 => {
            let len = (1 + random.below(64)).min(bytes.len() - at);
            let from = random.below(other.len());
            let piece = &other[from..(from + len).min(other.len())];
            bytes[at..at + piece.len()].copy_from_slice(piece);
        }
        // Whole words at their own alignment, where headers have them.
        _ => {
            let word = random.awkward().to_le_bytes();
            let width = [4, 8][random.below(2)];
            let at = at / width * width;
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&word[..end - at]);
        }
    }
}

thread_local! {
    static USED: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// An allocator that knows how much memory each thread holds.
pub struct Meter;

fn count(bytes: isize) {
    let used = USED.get() + bytes;
    USED.set(used);
    MOST.set(MOST.get().max(used));
}

// SAFETY: everything is done by the system's allocator, for which the callers' promises are passed on.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

/// What `work` gives, and the most bytes it held at once more than there were before.
pub fn metered<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = USED.get();
    MOST.set(before);
    let result = work();
    (result, (MOST.get() - before).max(0) as usize)
}
