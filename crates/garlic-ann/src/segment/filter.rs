//! A filter as a search uses it.
//!
//! A filter names identifiers; a search needs positions. The translation also knows how many points of each cell
//! are allowed: cells without any are not visited, and when few points are allowed in all, their distances
//! are simply computed.

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use super::Segment;
use super::delta::DeltaStamp;
use super::index::Index;
use super::snapshot::Snapshot;
use garlic_core::vectors::{StoredRows, StoredVectors};
use garlic_core::{Filter, IdSet, Result, Stamp};

/// One state of one index: weak references keep the addresses from being used again.
struct State {
    segment: Weak<Segment>,
    changes: DeltaStamp,
}

impl Stamp for State {
    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| {
            self.segment.ptr_eq(&other.segment) && self.changes.is(&other.changes)
        })
    }
}

/// The positions that a filter allows in an index as it is now.
pub(crate) fn translate(filter: &Filter, index: &Index) -> Result<Arc<Allowed>> {
    let state = State {
        segment: Arc::downgrade(&index.segment),
        changes: index.delta.stamp(),
    };
    filter.translated(state, |ids| Allowed::new(ids, index))
}

/// Positions of one snapshot that a filter allows; removed points are not among them.
#[derive(Debug)]
pub(crate) struct Allowed {
    bits: Vec<u64>,
    count: usize,
    /// Allowed points of each cell.
    cells: Vec<u32>,
    /// Copies of the allowed vectors side by side, where they are few and all of them are read; made then.
    gathered: OnceLock<Gathered>,
}

/// Points that a filter allows, side by side.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) vectors: StoredVectors,
    /// Identifier and position of each.
    pub(crate) points: Vec<(u64, u32)>,
}

/// Most bytes of vectors that are copied for a filter.
const MOST_GATHERED: usize = 64 << 20;

impl Allowed {
    fn new(ids: &IdSet, index: &Index) -> Self {
        let view = index.snapshot();
        let known = &index.segment.ids;
        let mut bits = vec![0u64; view.positions().div_ceil(64)];
        let mut set = |position: u32| bits[position as usize / 64] |= 1 << (position % 64);
        let mut look_up = |id: u64| {
            let position = index.segment.lookup().position(id);
            if let Some(position) = position.filter(|p| view.is_alive(*p)) {
                set(position);
            }
        };
        match ids {
            // Few are looked up; many, a bitmap of more than there are points, and those of points at two positions are
            // asked about each position.
            IdSet::Bitmap(ids) if ids.len() <= known.len() as u64 && !index.spills() => {
                ids.iter().for_each(&mut look_up);
            }
            IdSet::Sorted(ids) if !index.spills() => ids.iter().copied().for_each(&mut look_up),
            IdSet::Sorted(_) | IdSet::Bitmap(_) | IdSet::Predicate(_) => {
                for (position, id) in (0..).zip(&known[..]) {
                    if view.is_alive(position) && ids.contains(*id) {
                        set(position);
                    }
                }
            }
        }
        // Points outside the segment are few: each is asked about.
        for position in known.len() as u32..view.positions() as u32 {
            let point = view.point(position);
            if point.is_some_and(|p| ids.contains(p.id)) && view.is_alive(position) {
                set(position);
            }
        }
        let mut allowed = Self {
            count: bits.iter().map(|w| w.count_ones() as usize).sum(),
            bits,
            cells: Vec::new(),
            gathered: OnceLock::new(),
        };
        allowed.cells = (0..view.cells())
            .map(|cell| allowed.count_in(&view, cell))
            .collect();
        if index.spills() {
            let first = index.first_positions().into_iter();
            allowed.count = first.filter(|p| allowed.contains(*p)).count();
        }
        allowed
    }

    fn count_in(&self, view: &Snapshot<'_>, cell: usize) -> u32 {
        let bins = view.base_bins(cell);
        let encoded = &view.segment.encoded;
        let base = match bins.is_empty() {
            true => 0..0,
            false => encoded.positions(bins.start).start..encoded.positions(bins.end - 1).end,
        };
        let others = view.positions_behind(cell);
        let ranges = std::iter::once(base).chain(others);
        ranges
            .flatten()
            .filter(|p| self.contains(*p as u32))
            .count() as u32
    }

    /// The allowed points side by side, unless they are many.
    pub(crate) fn gathered(&self, view: &Snapshot<'_>) -> Option<&Gathered> {
        let index = view.index;
        let vector = index.segment.vectors.row_bytes(index.transform.dim());
        if self.count.saturating_mul(vector) > MOST_GATHERED {
            return None;
        }
        Some(self.gathered.get_or_init(|| {
            let mut rows = StoredRows::new(index.segment.vectors.element());
            let mut points = Vec::with_capacity(self.count);
            for position in self.positions() {
                if let Some(point) = view.point(position) {
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
                // Clears the lowest bit.
                word &= word.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }
}
