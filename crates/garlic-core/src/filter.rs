//! Filters: restrict a search to some of the points.
//!
//! A filter names identifiers, a search needs positions. Each index translates a filter once per snapshot. The filter
//! keeps the translation, so that many queries share it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use roaring::RoaringTreemap;

use crate::error::{Error, Result};

/// A set of identifiers that a search may return. Clones are cheap. Reuse one filter for many queries.
#[derive(Clone)]
pub struct Filter(Arc<Inner>);

struct Inner {
    ids: IdSet,
    /// The latest translation, and the snapshot that it belongs to.
    translated: Mutex<Option<(Box<dyn Stamp>, Translation)>>,
    /// The thread that is translating and holds the lock of `translated`.
    translating: Mutex<Option<ThreadId>>,
}

type Translation = Arc<dyn Any + Send + Sync>;

/// Identifies a snapshot of an index.
pub trait Stamp: Any + Send {
    /// Whether both identify the same snapshot.
    fn is_same_as(&self, other: &dyn Any) -> bool;
}

/// The identifiers that a filter allows.
pub enum IdSet {
    /// A compressed bitmap.
    Bitmap(RoaringTreemap),
    /// Sorted identifiers without duplicates.
    Sorted(Vec<u64>),
    /// The identifiers for which a function returns true.
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

    /// Allows these identifiers, in any order and with duplicates.
    pub fn ids(ids: impl Into<Vec<u64>>) -> Self {
        let mut ids = ids.into();
        ids.sort_unstable();
        ids.dedup();
        Self::new(IdSet::Sorted(ids))
    }

    /// Allows the identifiers for which the predicate returns true. It is called once for every point of a snapshot.
    ///
    /// The predicate may search, but not with this filter. Such a search fails with
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

    /// The translation of the filter for the snapshot of `stamp`, from the cache or from `translate`.
    ///
    /// # Errors
    /// [`Error::FilterInItself`] if the predicate searches with its own filter.
    pub fn translated<T: Any + Send + Sync>(
        &self,
        stamp: impl Stamp,
        translate: impl FnOnce(&IdSet) -> T,
    ) -> Result<Arc<T>> {
        let inner = &*self.0;
        let here = thread::current().id();
        // This thread would wait for itself.
        if *lock(&inner.translating) == Some(here) {
            return Err(Error::FilterInItself);
        }
        let mut translated = lock(&inner.translated);
        if let Some((known, made)) = &*translated
            && known.is_same_as(&stamp)
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

/// Names the translating thread until it is dropped, even if the predicate panics.
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

/// Filters are equal if they are clones of one filter.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
