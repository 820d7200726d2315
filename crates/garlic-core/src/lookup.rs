//! The map from identifiers to positions.

/// Marks an unused identifier.
const NO_POSITION: u32 = u32::MAX;

/// Positions of identifiers.
#[derive(Debug)]
pub enum IdLookup {
    /// Position by identifier, or `NO_POSITION`. For identifiers that are nearly row numbers.
    Dense(Vec<u32>),
    /// Pairs of identifier and position, sorted by identifier.
    Sorted(Vec<(u64, u32)>),
}

impl IdLookup {
    /// Builds the map for identifiers in the order of their positions.
    pub fn new(ids: &[u64]) -> Self {
        let largest = ids.iter().copied().max().unwrap_or(0);
        if largest < 4 * ids.len() as u64 {
            let mut positions = vec![NO_POSITION; largest as usize + 1];
            // In reverse order, so that the first position of a point with two positions wins.
            for (position, id) in ids.iter().enumerate().rev() {
                // If a mapped file is being overwritten, the identifier may exceed the maximum from above.
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

    /// The position of an identifier.
    pub fn position(&self, id: u64) -> Option<u32> {
        match self {
            Self::Dense(positions) => {
                let at = usize::try_from(id).ok()?;
                positions.get(at).copied().filter(|p| *p != NO_POSITION)
            }
            Self::Sorted(pairs) => {
                let at = pairs.binary_search_by_key(&id, |pair| pair.0).ok()?;
                Some(pairs[at].1)
            }
        }
    }

    /// The largest identifier.
    pub fn largest(&self) -> Option<u64> {
        match self {
            Self::Dense(positions) => positions.len().checked_sub(1).map(|last| last as u64),
            Self::Sorted(pairs) => pairs.last().map(|pair| pair.0),
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Dense(positions) => size_of_val(positions.as_slice()) as u64,
            Self::Sorted(pairs) => size_of_val(pairs.as_slice()) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
