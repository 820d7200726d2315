//! Searching among some of the points only.
//!
//! A filter names identifiers; a search needs positions. The translation is made once for a filter and a snapshot of
//! an index and kept with the filter, so that many queries share it. It also knows how many points of each cell
//! are allowed: cells without any are not visited, and when few points are allowed in all, their distances
//! are simply computed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, ThreadId};

use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::index::stored::{Stored, StoredRows};
use crate::index::{Index, Lookup, OverlayStamp, View};

/// Points that a search may find, named by their identifiers. Cheap to copy; reuse one filter for many queries.
#[derive(Clone)]
pub struct Filter(Arc<Inner>);

struct Inner {
    ids: Ids,
    /// The latest translation, and what it was made for.
    translated: Mutex<Option<(Stamp, Arc<Allowed>)>>,
    /// The thread that is making one, and has the lock of `translated`.
    translating: Mutex<Option<ThreadId>>,
}

enum Ids {
    Bitmap(RoaringTreemap),
    /// In order, each once.
    Sorted(Vec<u64>),
    Predicate(Box<dyn Fn(u64) -> bool + Send + Sync>),
}

/// One state of one index: weak references keep the addresses from being used again.
struct Stamp {
    base: Weak<OnceLock<Lookup>>,
    changes: OverlayStamp,
}

impl Stamp {
    fn of(index: &Index) -> Self {
        Self {
            base: Arc::downgrade(&index.lookup),
            changes: index.overlay.stamp(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        self.base.ptr_eq(&other.base) && self.changes.is(&other.changes)
    }
}

impl Filter {
    /// The points whose identifiers are in a bitmap.
    pub fn bitmap(ids: RoaringTreemap) -> Self {
        Self::new(Ids::Bitmap(ids))
    }

    /// The points of these identifiers; they need no order and may come twice.
    pub fn ids(ids: impl Into<Vec<u64>>) -> Self {
        let mut ids = ids.into();
        ids.sort_unstable();
        ids.dedup();
        Self::new(Ids::Sorted(ids))
    }

    /// The points whose identifiers the predicate is true of. It is asked once for every point of a snapshot.
    ///
    /// The predicate may search, but not with this very filter: such a search fails with
    /// [`Error::FilterInItself`](crate::Error::FilterInItself).
    pub fn predicate(allows: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self::new(Ids::Predicate(Box::new(allows)))
    }

    fn new(ids: Ids) -> Self {
        Self(Arc::new(Inner {
            ids,
            translated: Mutex::new(None),
            translating: Mutex::new(None),
        }))
    }

    /// The positions that it allows in an index as it is now.
    ///
    /// # Errors
    /// When its predicate asks for them.
    pub(crate) fn translate(&self, index: &Index) -> Result<Arc<Allowed>> {
        let inner = &*self.0;
        let here = thread::current().id();
        // This thread would wait for itself, and then ask the predicate about each point for each point.
        if *lock(&inner.translating) == Some(here) {
            return Err(Error::FilterInItself);
        }
        let stamp = Stamp::of(index);
        let mut translated = lock(&inner.translated);
        match &*translated {
            Some((known, allowed)) if known.is(&stamp) => Ok(Arc::clone(allowed)),
            _ => {
                let translating = Translating::begin(inner, here);
                let allowed = Arc::new(Allowed::new(&inner.ids, index));
                drop(translating);
                *translated = Some((stamp, Arc::clone(&allowed)));
                Ok(allowed)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names the thread that makes a translation, until it is dropped; also when the predicate panics.
struct Translating<'a>(&'a Inner);

impl<'a> Translating<'a> {
    fn begin(inner: &'a Inner, thread: ThreadId) -> Self {
        *lock(&inner.translating) = Some(thread);
        Self(inner)
    }
}

impl Drop for Translating<'_> {
    fn drop(&mut self) {
        *lock(&self.0.translating) = None;
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.ids {
            Ids::Bitmap(ids) => write!(f, "Filter(bitmap of {})", ids.len()),
            Ids::Sorted(ids) => write!(f, "Filter(list of {})", ids.len()),
            Ids::Predicate(_) => f.write_str("Filter(predicate)"),
        }
    }
}

/// Filters are equal when they are copies of one.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Positions of one snapshot that a filter allows; removed points are not among them.
#[derive(Debug)]
pub(crate) struct Allowed {
    bits: Vec<u64>,
    count: usize,
    /// Allowed points of each cell; of tempered cells only.
    cells: Vec<u32>,
    /// Copies of the allowed vectors side by side, where they are few and all of them are read; made then.
    gathered: OnceLock<Gathered>,
}

/// Points that a filter allows, side by side.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) vectors: Stored,
    /// Identifier and position of each.
    pub(crate) points: Vec<(u64, u32)>,
}

/// Most bytes of vectors that are copied for a filter.
const MOST_GATHERED: usize = 64 << 20;

impl Allowed {
    fn new(ids: &Ids, index: &Index) -> Self {
        let view = index.view();
        let positions = view.map_or(index.ids.len(), |view| view.positions());
        let mut bits = vec![0u64; positions.div_ceil(64)];
        let mut set = |position: u32| bits[position as usize / 64] |= 1 << (position % 64);
        let alive = |position: u32| view.is_none_or(|view| view.is_alive(position));
        let mut look_up = |id: u64| {
            if let Some(position) = index.lookup().position(id).filter(|p| alive(*p)) {
                set(position);
            }
        };
        let contains: &dyn Fn(u64) -> bool = match ids {
            Ids::Bitmap(ids) => &|id| ids.contains(id),
            Ids::Sorted(ids) => &|id| ids.binary_search(&id).is_ok(),
            Ids::Predicate(allows) => allows,
        };
        match ids {
            // Few are looked up; many, a bitmap of more than there are points, and those of points at two positions are
            // asked about each position.
            Ids::Bitmap(ids) if ids.len() <= index.ids.len() as u64 && !index.spills() => {
                ids.iter().for_each(&mut look_up);
            }
            Ids::Sorted(ids) if !index.spills() => ids.iter().copied().for_each(&mut look_up),
            Ids::Sorted(_) | Ids::Bitmap(_) | Ids::Predicate(_) => {
                for (position, id) in (0..).zip(&index.ids[..]) {
                    if alive(position) && contains(*id) {
                        set(position);
                    }
                }
            }
        }
        // Points outside the base are few: each is asked about.
        if let Some(view) = view {
            for position in index.ids.len() as u32..positions as u32 {
                if view.point(position).is_some_and(|p| contains(p.id)) && alive(position) {
                    set(position);
                }
            }
        }
        let mut allowed = Self {
            count: bits.iter().map(|w| w.count_ones() as usize).sum(),
            bits,
            cells: Vec::new(),
            gathered: OnceLock::new(),
        };
        if let Some(view) = view {
            allowed.cells = (0..view.cells())
                .map(|cell| allowed.count_in(&view, cell))
                .collect();
        }
        if index.spills() {
            let first = index.first_positions().into_iter();
            allowed.count = first.filter(|p| allowed.contains(*p)).count();
        }
        allowed
    }

    fn count_in(&self, view: &View<'_>, cell: usize) -> u32 {
        let bins = view.base_bins(cell);
        let learned = &view.body.learned;
        let base = match bins.is_empty() {
            true => 0..0,
            false => learned.positions(bins.start).start..learned.positions(bins.end - 1).end,
        };
        let others = view.positions_behind(cell);
        let ranges = std::iter::once(base).chain(others);
        ranges
            .flatten()
            .filter(|p| self.contains(*p as u32))
            .count() as u32
    }

    /// The allowed points side by side, unless they are many.
    pub(crate) fn gathered(&self, view: &View<'_>) -> Option<&Gathered> {
        let index = view.index;
        let vector = index.vectors.row_bytes(index.space.dim());
        if self.count.saturating_mul(vector) > MOST_GATHERED {
            return None;
        }
        Some(self.gathered.get_or_init(|| {
            let mut rows = StoredRows::new(index.vectors.element());
            let mut points = Vec::with_capacity(self.count);
            for position in self.positions() {
                if let Some(point) = view.point(position) {
                    point.push_to(&mut rows, index.space.dim());
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
