//! The map from identifiers to cells, for points that were added or moved since the base was encoded.

use std::sync::Arc;

/// Marks a removed identifier.
pub(crate) const REMOVED: u32 = u32::MAX;

/// Cells of the identifiers that are not at their position in the base.
///
/// The map is a stack of sorted lists, each more than twice as long as the next. A batch becomes a new list, and lists
/// that are not much longer are merged into it. Clones share all lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdMap {
    pub(crate) levels: Vec<Arc<Vec<(u64, u32)>>>,
}

impl IdMap {
    /// The cell of an identifier, or `None` if it was removed or is not in this map.
    pub(crate) fn cell(&self, id: u64) -> Option<u32> {
        for level in self.levels.iter().rev() {
            if let Ok(at) = level.binary_search_by_key(&id, |entry| entry.0) {
                return Some(level[at].1).filter(|cell| *cell != REMOVED);
            }
        }
        None
    }

    /// Records the cells of identifiers. Each identifier occurs once.
    pub(crate) fn put(&mut self, entries: Vec<(u64, u32)>) {
        self.push(entries);
    }

    /// Records the removal of identifiers.
    pub(crate) fn remove(&mut self, ids: impl Iterator<Item = u64>) {
        self.push(ids.map(|id| (id, REMOVED)).collect());
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
            // No older list contains these identifiers. The base keeps tombstones of its own.
            newest.retain(|entry| entry.1 != REMOVED);
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

/// Merges two sorted lists. The newer of two entries wins.
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
        let (mut id_map, mut map) = (IdMap::default(), HashMap::new());
        for step in 0..400 {
            let mut batch: Vec<u64> = (0..1 + draw(30)).map(|_| draw(500) as u64).collect();
            batch.sort_unstable();
            batch.dedup();
            if step % 3 == 2 {
                id_map.remove(batch.iter().copied());
                batch.iter().for_each(|id| {
                    map.remove(id);
                });
            } else {
                id_map.put(batch.iter().map(|id| (*id, step)).collect());
                map.extend(batch.iter().map(|id| (*id, step)));
            }
            for id in 0..500 {
                assert_eq!(
                    id_map.cell(id),
                    map.get(&id).copied(),
                    "step {step} id {id}"
                );
            }
            let lengths: Vec<usize> = id_map.levels.iter().map(|l| l.len()).collect();
            assert!(lengths.windows(2).all(|w| w[0] > 2 * w[1]), "{lengths:?}");
        }
    }
}
