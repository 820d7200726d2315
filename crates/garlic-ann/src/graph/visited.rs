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

    /// Appends the new ones of `list` to `out` and adds them. Positions from `points` on are left out.
    ///
    /// Whether a position is new cannot be predicted, so there is no branch.
    #[inline]
    pub(crate) fn insert_all(&mut self, list: &[u32], points: usize, out: &mut Vec<u32>) {
        let mut len = out.len();
        out.resize(len + list.len(), 0);
        for at in list {
            if *at as usize >= points {
                continue;
            }
            let word = &mut self.words[*at as usize / 64];
            let new = !(*word >> (*at % 64)) & 1;
            *word |= 1 << (*at % 64);
            out[len] = *at;
            len += new as usize;
        }
        out.truncate(len);
    }

    /// Removes positions that are in the set.
    pub(crate) fn remove_all(&mut self, list: &[u32]) {
        for at in list {
            if let Some(word) = self.words.get_mut(*at as usize / 64) {
                *word = 0;
            }
        }
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

    #[test]
    fn lists_are_inserted_without_those_that_are_there() {
        let mut visited = Visited::default();
        visited.start(130);
        let mut new = vec![7];
        visited.insert_all(&[3, 64, 3, 128, 500], 130, &mut new);
        visited.insert_all(&[64, 65, u32::MAX], 130, &mut new);
        assert_eq!(new, [7, 3, 64, 128, 65]);
        visited.remove_all(&new);
        assert!([3, 64, 65, 128].into_iter().all(|at| visited.insert(at)));
    }
}
