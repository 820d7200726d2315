//! Sets of numbers as bits.

/// A set of numbers below an end. Searches mark what they have seen.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// One bit a number. The bit of the end is always set.
    words: Vec<u64>,
    end: u32,
}

impl Marks {
    /// Makes room for the numbers below `end`, and unmarks all of them if the end is another than before.
    pub fn resize(&mut self, end: u32) {
        if end != self.end || self.words.is_empty() {
            self.words.clear();
            self.words.resize(end as usize / 64 + 1, 0);
            self.words[end as usize / 64] = 1 << (end % 64);
            self.end = end;
        }
    }

    /// Marks `numbers` and appends those that were not marked to `new`, in order. Numbers from the end on are left out.
    ///
    /// Whether a number is new cannot be predicted, so there is no branch.
    #[inline]
    pub fn mark_new(&mut self, numbers: &[u32], new: &mut Vec<u32>) {
        // Without words there is no bit of the end.
        if self.words.is_empty() {
            return;
        }
        new.reserve(numbers.len());
        let mut len = new.len();
        for number in numbers {
            let at = (*number).min(self.end);
            let bit = at % 64;
            // SAFETY: `at` is at most the end, which has a bit. `new` has room for all numbers, and at most as many were
            // written before this one.
            unsafe {
                let word = self.words.get_unchecked_mut(at as usize / 64);
                let is_new = !(*word >> bit) & 1;
                *word |= 1 << bit;
                new.as_mut_ptr().add(len).write(*number);
                len += is_new as usize;
            }
        }
        // SAFETY: all elements up to here were written.
        unsafe { new.set_len(len) };
    }

    /// Unmarks numbers, and some numbers near them: all that share a word.
    #[inline]
    pub fn clear_near(&mut self, numbers: &[u32]) {
        for number in numbers {
            let word = self.words.get_mut(*number as usize / 64);
            word.into_iter().for_each(|word| *word = 0);
        }
        let end = self.words.get_mut(self.end as usize / 64);
        end.into_iter()
            .for_each(|word| *word |= 1 << (self.end % 64));
    }
}
