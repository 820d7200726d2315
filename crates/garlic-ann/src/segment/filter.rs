//! Filters: identifiers in, positions out.
//!
//! A filter names identifiers, a search needs positions. The translation also counts the allowed points of each cell. A
//! search skips cells without allowed points. If few points are allowed, it computes all their distances.

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use super::Segment;
use super::delta::DeltaStamp;
use super::index::Index;
use super::snapshot::Snapshot;
use garlic_core::vectors::{StoredRows, StoredVectors};
use garlic_core::{Filter, IdSet, Result, Stamp};

/// One state of one index. Weak references keep the addresses from being reused.
struct State {
    segment: Weak<Segment>,
    changes: DeltaStamp,
}

impl Stamp for State {
    fn is_same_as(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| {
            self.segment.ptr_eq(&other.segment) && self.changes.is_same_as(&other.changes)
        })
    }
}

/// The positions that a filter allows in the current state of an index.
pub(crate) fn translate(filter: &Filter, index: &Index) -> Result<Arc<Allowed>> {
    let state = State {
        segment: Arc::downgrade(&index.segment),
        changes: index.delta.stamp(),
    };
    filter.translated(state, |ids| Allowed::new(ids, index))
}

/// Positions of one snapshot that a filter allows. Removed points are excluded.
#[derive(Debug)]
pub(crate) struct Allowed {
    bits: Vec<u64>,
    count: usize,
    /// Allowed points of each cell.
    cells: Vec<u32>,
    /// Contiguous copies of the allowed vectors, made when a search first reads all of them.
    gathered: OnceLock<Gathered>,
}

/// Contiguous copies of the points that a filter allows.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) vectors: StoredVectors,
    /// Identifier and position of each point.
    pub(crate) points: Vec<(u64, u32)>,
}

/// Upper limit of the bytes of vectors that are copied for a filter.
const MAX_GATHERED_BYTES: usize = 64 << 20;

impl Allowed {
    fn new(ids: &IdSet, index: &Index) -> Self {
        let snapshot = index.snapshot();
        let known = &index.segment.ids;
        let mut bits = vec![0u64; snapshot.positions().div_ceil(64)];
        let mut set = |position: u32| bits[position as usize / 64] |= 1 << (position % 64);
        let mut look_up = |id: u64| {
            let position = index.segment.lookup().position(id);
            if let Some(position) = position.filter(|p| snapshot.is_live(*p)) {
                set(position);
            }
        };
        match ids {
            // Look up each identifier of a short list. Otherwise test every position: a bitmap may have more entries
            // than there are points, and a spilled point has two positions.
            IdSet::Bitmap(ids) if ids.len() <= known.len() as u64 && !index.spills() => {
                ids.iter().for_each(&mut look_up);
            }
            IdSet::Sorted(ids) if !index.spills() => ids.iter().copied().for_each(&mut look_up),
            IdSet::Sorted(_) | IdSet::Bitmap(_) | IdSet::Predicate(_) => {
                for (position, id) in (0..).zip(&known[..]) {
                    if snapshot.is_live(position) && ids.contains(*id) {
                        set(position);
                    }
                }
            }
        }
        // There are few points outside the segment, so test each of them.
        for position in known.len() as u32..snapshot.positions() as u32 {
            let point = snapshot.point(position);
            if point.is_some_and(|p| ids.contains(p.id)) && snapshot.is_live(position) {
                set(position);
            }
        }
        let mut allowed = Self {
            count: bits.iter().map(|w| w.count_ones() as usize).sum(),
            bits,
            cells: Vec::new(),
            gathered: OnceLock::new(),
        };
        allowed.cells = (0..snapshot.cells())
            .map(|cell| allowed.count_in(&snapshot, cell))
            .collect();
        if index.spills() {
            let first = index.first_positions().into_iter();
            allowed.count = first.filter(|p| allowed.contains(*p)).count();
        }
        allowed
    }

    fn count_in(&self, snapshot: &Snapshot<'_>, cell: usize) -> u32 {
        let bins = snapshot.base_bins(cell);
        let encoded = &snapshot.segment.encoded;
        let base = match bins.is_empty() {
            true => 0..0,
            false => encoded.positions(bins.start).start..encoded.positions(bins.end - 1).end,
        };
        let others = snapshot.delta_positions(cell);
        let ranges = std::iter::once(base).chain(others);
        ranges
            .flatten()
            .filter(|p| self.contains(*p as u32))
            .count() as u32
    }

    /// Contiguous copies of the allowed points, or `None` if there are too many.
    pub(crate) fn gathered(&self, snapshot: &Snapshot<'_>) -> Option<&Gathered> {
        let index = snapshot.index;
        let vector = index.segment.vectors.row_bytes(index.transform.dim());
        // Vectors that stay on the disk are read again each time: a failure must not be kept.
        let is_on_disk = matches!(index.segment.vectors, StoredVectors::File(_));
        if is_on_disk || self.count.saturating_mul(vector) > MAX_GATHERED_BYTES {
            return None;
        }
        Some(self.gathered.get_or_init(|| {
            let mut rows = StoredRows::new(index.segment.vectors.element());
            let mut points = Vec::with_capacity(self.count);
            for position in self.positions() {
                if let Some(point) = snapshot.point(position) {
                    point.push_to(&mut rows, index.transform.dim());
                    points.push((point.id, position));
                }
            }
            Gathered {
                vectors: rows.into(),
                points,
            }
        }))
    }

    /// Number of allowed points.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Allowed points of a cell.
    pub(crate) fn count_of(&self, cell: usize) -> usize {
        self.cells.get(cell).map_or(0, |count| *count as usize)
    }

    /// Whether a position is allowed.
    #[inline]
    pub(crate) fn contains(&self, position: u32) -> bool {
        let word = self.bits.get(position as usize / 64);
        word.is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// The allowed positions, in order.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.bits).flat_map(|(at, word)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }
}
