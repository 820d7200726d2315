//! Where identifiers are: in the base, and among the points that have been added or moved since.

use std::sync::Arc;

/// Stands for an identifier that has been removed.
pub(crate) const GONE: u32 = u32::MAX;

/// Cells of identifiers that are not, or no longer, where the base has them.
///
/// Sorted lists, each at least twice as long as the next one: a batch is one new list, merged with those before
/// it while they are not much longer. A copy shares all lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdMap {
    pub(crate) levels: Vec<Arc<Vec<(u64, u32)>>>,
}

impl IdMap {
    /// The cell of an identifier; none when it has been removed or was never heard of here.
    pub(crate) fn cell(&self, id: u64) -> Option<u32> {
        for level in self.levels.iter().rev() {
            if let Ok(at) = level.binary_search_by_key(&id, |entry| entry.0) {
                return Some(level[at].1).filter(|cell| *cell != GONE);
            }
        }
        None
    }

    /// Notes cells of identifiers, each of which must be named once.
    pub(crate) fn put(&mut self, entries: Vec<(u64, u32)>) {
        self.push(entries);
    }

    /// Notes that identifiers are gone.
    pub(crate) fn remove(&mut self, ids: impl Iterator<Item = u64>) {
        self.push(ids.map(|id| (id, GONE)).collect());
    }

    fn push(&mut self, mut newest: Vec<(u64, u32)>) {
        if newest.is_empty() {
            return;
        }
        newest.sort_unstable_by_key(|entry| entry.0);
        while let Some(older) = self.levels.pop_if(|older| older.len() <= 2 * newest.len()) {
            newest = merge(&older, &newest);
        }
        if self.levels.is_empty() {
            // Nothing older is left to be hidden; the base knows its own dead.
            newest.retain(|entry| entry.1 != GONE);
        }
        if !newest.is_empty() {
            self.levels.push(Arc::new(newest));
        }
    }

    /// Bytes that the lists take.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |level: &Arc<Vec<(u64, u32)>>| size_of_val(level.as_slice()) as u64;
        self.levels.iter().map(bytes).sum()
    }
}

/// Both sorted lists in one; of two entries for one identifier the newer one stays.
pub(crate) fn merge(older: &[(u64, u32)], newer: &[(u64, u32)]) -> Vec<(u64, u32)> {
    let mut all = Vec::with_capacity(older.len() + newer.len());
    let mut older = older.iter().copied().peekable();
    for entry in newer {
        while let Some(before) = older.next_if(|o| o.0 < entry.0) {
            all.push(before);
        }
        older.next_if(|o| o.0 == entry.0);
        all.push(*entry);
    }
    all.extend(older);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use garlic_linalg::{random_stream, uniform_unit};

    use super::*;

    #[test]
    fn ids_are_found_like_in_a_map() {
        let mut rng = random_stream(3, 1);
        let mut draw = |n: usize| (uniform_unit(&mut rng) * n as f64) as usize;
        let (mut homes, mut map) = (IdMap::default(), HashMap::new());
        for step in 0..400 {
            let mut batch: Vec<u64> = (0..1 + draw(30)).map(|_| draw(500) as u64).collect();
            batch.sort_unstable();
            batch.dedup();
            if step % 3 == 2 {
                homes.remove(batch.iter().copied());
                batch.iter().for_each(|id| {
                    map.remove(id);
                });
            } else {
                homes.put(batch.iter().map(|id| (*id, step)).collect());
                map.extend(batch.iter().map(|id| (*id, step)));
            }
            for id in 0..500 {
                assert_eq!(homes.cell(id), map.get(&id).copied(), "step {step} id {id}");
            }
            let lengths: Vec<usize> = homes.levels.iter().map(|l| l.len()).collect();
            assert!(lengths.windows(2).all(|w| w[0] > 2 * w[1]), "{lengths:?}");
        }
    }
}
