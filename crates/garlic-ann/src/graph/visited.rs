//! The set of points that a walk has seen.

/// A set of positions that is cleared in the time of its use.
#[derive(Debug, Default)]
pub(crate) struct Visited {
    words: Vec<u64>,
    /// Words that are not zero.
    touched: Vec<u32>,
}

impl Visited {
    /// Clears the set, for positions below `points`.
    pub(crate) fn start(&mut self, points: usize) {
        for word in self.touched.drain(..) {
            self.words[word as usize] = 0;
        }
        self.words.resize(points.div_ceil(64), 0);
    }

    /// Adds a position. Returns whether it is new, and false if it is out of range.
    #[inline]
    pub(crate) fn insert(&mut self, at: u32) -> bool {
        let Some(word) = self.words.get_mut(at as usize / 64) else {
            return false;
        };
        if *word == 0 {
            self.touched.push(at / 64);
        }
        let bit = 1 << (at % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_new_once_until_the_next_start() {
        let mut visited = Visited::default();
        for _ in 0..2 {
            visited.start(130);
            assert!(visited.insert(0) && visited.insert(63) && visited.insert(129));
            assert!(!visited.insert(0) && !visited.insert(129) && visited.insert(64));
            assert!(!visited.insert(100_000), "out of range");
        }
    }
}
