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

/// Positions of the base's identifiers; made when first asked for.
#[derive(Debug)]
pub(crate) enum IdLookup {
    /// Position by identifier, [`GONE`] where there is none: for identifiers that are nearly row numbers.
    Dense(Vec<u32>),
    /// Sorted by identifier.
    Sorted(Vec<(u64, u32)>),
}

impl IdLookup {
    pub(crate) fn new(ids: &[u64]) -> Self {
        let largest = ids.iter().copied().max().unwrap_or(0);
        if largest < 4 * ids.len() as u64 {
            let mut positions = vec![GONE; largest as usize + 1];
            // The first, of a point that lies in two cells.
            for (position, id) in ids.iter().enumerate().rev() {
                // In a file that is being overwritten it may no longer be one of those seen above.
                if let Some(place) = positions.get_mut(*id as usize) {
                    *place = position as u32;
                }
            }
            return Self::Dense(positions);
        }
        let mut pairs: Vec<(u64, u32)> = ids.iter().copied().zip(0..).collect();
        pairs.sort_unstable();
        pairs.dedup_by_key(|pair| pair.0);
        Self::Sorted(pairs)
    }

    /// The position of an identifier in the base.
    pub(crate) fn position(&self, id: u64) -> Option<u32> {
        match self {
            Self::Dense(positions) => {
                let at = usize::try_from(id).ok()?;
                positions.get(at).copied().filter(|p| *p != GONE)
            }
            Self::Sorted(pairs) => {
                let at = pairs.binary_search_by_key(&id, |pair| pair.0).ok()?;
                Some(pairs[at].1)
            }
        }
    }

    /// The largest identifier.
    pub(crate) fn largest(&self) -> Option<u64> {
        match self {
            Self::Dense(positions) => positions.len().checked_sub(1).map(|last| last as u64),
            Self::Sorted(pairs) => pairs.last().map(|pair| pair.0),
        }
    }

    /// Bytes that the table takes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Dense(positions) => size_of_val(positions.as_slice()) as u64,
            Self::Sorted(pairs) => size_of_val(pairs.as_slice()) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use garlic_linalg::{random_stream, uniform_unit};

    use super::*;

    #[test]
    fn homes_answer_like_a_map() {
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

    #[test]
    fn both_tables_find_every_identifier() {
        for factor in [1u64, 3, 1000, u64::MAX >> 20] {
            let ids: Vec<u64> = (0..100).map(|i| (i * 37 % 100) * factor).collect();
            let lookup = IdLookup::new(&ids);
            assert_eq!(matches!(lookup, IdLookup::Dense(_)), factor < 5);
            for (position, id) in (0..).zip(&ids) {
                assert_eq!(lookup.position(*id), Some(position));
            }
            assert_eq!(lookup.position(99 * factor + 1), None);
            assert_eq!(lookup.position(u64::MAX), None);
            assert_eq!(lookup.largest(), Some(99 * factor));
        }
    }
}
