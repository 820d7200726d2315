//! Searching among some of the points only.
//!
//! A filter names identifiers; a search needs positions. Each index translates a filter once for every snapshot; the
//! translation is kept with the filter, so that many queries share it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use roaring::RoaringTreemap;

use crate::error::{Error, Result};

/// Points that a search may find, named by their identifiers. Cheap to copy; reuse one filter for many queries.
#[derive(Clone)]
pub struct Filter(Arc<Inner>);

struct Inner {
    ids: IdSet,
    /// The latest translation, and the snapshot that it was made for.
    translated: Mutex<Option<(Box<dyn Stamp>, Translation)>>,
    /// The thread that is making one, and has the lock of `translated`.
    translating: Mutex<Option<ThreadId>>,
}

type Translation = Arc<dyn Any + Send + Sync>;

/// What tells one snapshot of an index from all others.
pub trait Stamp: Any + Send {
    /// Whether both are stamps of one snapshot.
    fn is(&self, other: &dyn Any) -> bool;
}

/// The identifiers that a filter allows.
pub enum IdSet {
    /// A compressed bitmap.
    Bitmap(RoaringTreemap),
    /// In order, each once.
    Sorted(Vec<u64>),
    /// Those that a function is true of.
    Predicate(Box<dyn Fn(u64) -> bool + Send + Sync>),
}

impl IdSet {
    /// Whether an identifier is allowed.
    pub fn contains(&self, id: u64) -> bool {
        match self {
            Self::Bitmap(ids) => ids.contains(id),
            Self::Sorted(ids) => ids.binary_search(&id).is_ok(),
            Self::Predicate(allows) => allows(id),
        }
    }
}

impl fmt::Debug for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bitmap(ids) => write!(f, "bitmap of {}", ids.len()),
            Self::Sorted(ids) => write!(f, "list of {}", ids.len()),
            Self::Predicate(_) => f.write_str("predicate"),
        }
    }
}

impl Filter {
    /// The points whose identifiers are in a bitmap.
    pub fn bitmap(ids: RoaringTreemap) -> Self {
        Self::new(IdSet::Bitmap(ids))
    }

    /// The points of these identifiers; they need no order and may come twice.
    pub fn ids(ids: impl Into<Vec<u64>>) -> Self {
        let mut ids = ids.into();
        ids.sort_unstable();
        ids.dedup();
        Self::new(IdSet::Sorted(ids))
    }

    /// The points whose identifiers the predicate is true of. It is asked once for every point of a snapshot.
    ///
    /// The predicate may search, but not with this very filter: such a search fails with
    /// [`Error::FilterInItself`](crate::Error::FilterInItself).
    pub fn predicate(allows: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self::new(IdSet::Predicate(Box::new(allows)))
    }

    fn new(ids: IdSet) -> Self {
        Self(Arc::new(Inner {
            ids,
            translated: Mutex::new(None),
            translating: Mutex::new(None),
        }))
    }

    /// The filter as an index uses it for the snapshot of `stamp`: what `translate` makes of it, or has made of it
    /// before.
    ///
    /// # Errors
    /// [`Error::FilterInItself`] when its predicate searches with it.
    pub fn translated<T: Any + Send + Sync>(
        &self,
        stamp: impl Stamp,
        translate: impl FnOnce(&IdSet) -> T,
    ) -> Result<Arc<T>> {
        let inner = &*self.0;
        let here = thread::current().id();
        // This thread would wait for itself, and then ask the predicate about each point for each point.
        if *lock(&inner.translating) == Some(here) {
            return Err(Error::FilterInItself);
        }
        let mut translated = lock(&inner.translated);
        if let Some((known, made)) = &*translated
            && known.is(&stamp)
            && let Ok(made) = Arc::clone(made).downcast::<T>()
        {
            return Ok(made);
        }
        let translating = Translating::begin(inner, here);
        let made = Arc::new(translate(&inner.ids));
        drop(translating);
        *translated = Some((Box::new(stamp), Arc::clone(&made) as Translation));
        Ok(made)
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
        write!(f, "Filter({:?})", self.0.ids)
    }
}

/// Filters are equal when they are copies of one.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
