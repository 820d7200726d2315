//! Searching among some of the points only: filters as positions.

use std::any::Any;
use std::sync::{Arc, Weak};

use garlic_core::metric::{Embedding, Points};
use garlic_core::vectors::StoredType;
use garlic_core::{Filter, IdSet, Result, Stamp};

use crate::index::{GaussianIndex, Trained};

/// Positions that a filter allows.
#[derive(Debug)]
pub(super) struct Allowed(Vec<u64>);

impl Allowed {
    fn new(ids: &IdSet, index: &GaussianIndex) -> Self {
        let words = index.ids.chunks(64);
        let word = |ids_of_word: &[u64]| {
            let bits = (0..).zip(ids_of_word);
            bits.fold(0, |word, (bit, id)| {
                word | u64::from(ids.contains(*id)) << bit
            })
        };
        Self(words.map(word).collect())
    }

    /// Whether a position is allowed.
    #[inline]
    pub(super) fn contains(&self, position: u32) -> bool {
        let word = self.0.get(position as usize / 64);
        word.is_some_and(|word| word >> (position % 64) & 1 == 1)
    }
}

/// One index: a weak reference keeps the address from being used again.
struct OfIndex(Weak<Trained>);

impl Stamp for OfIndex {
    fn is_same_as(&self, other: &dyn Any) -> bool {
        let other = other.downcast_ref::<Self>();
        other.is_some_and(|other| self.0.ptr_eq(&other.0))
    }
}

impl GaussianIndex {
    /// The positions that a filter allows; none without a filter.
    pub(super) fn allowed(&self, filter: Option<&Filter>) -> Result<Option<Arc<Allowed>>> {
        let stamp = || OfIndex(Arc::downgrade(&self.trained));
        let translate = |filter: &Filter| filter.translated(stamp(), |ids| Allowed::new(ids, self));
        filter.map(translate).transpose()
    }
}

/// The points that a query may find.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) index: &'a GaussianIndex,
    pub(super) allowed: Option<&'a Allowed>,
}

impl Seen<'_> {
    /// Whether the query may find the point at a position.
    #[inline]
    pub(super) fn admits(&self, position: u32) -> bool {
        self.allowed
            .is_none_or(|allowed| allowed.contains(position))
    }
}

impl Points for Seen<'_> {
    fn embedding(&self) -> &Embedding {
        &self.index.embedding
    }

    fn len(&self) -> usize {
        self.index.len()
    }

    fn dim(&self) -> usize {
        self.index.dim()
    }

    fn element(&self) -> StoredType {
        self.index.vectors.element()
    }

    fn read_at(&self, position: u32, out: &mut Vec<f32>) {
        let dim = self.index.transform.dim();
        self.index.vectors.read(dim, position as usize, out);
    }

    fn each(&self, each: &mut dyn FnMut(u32, u64)) {
        for (position, id) in (0..).zip(&self.index.ids[..]) {
            if self.admits(position) {
                each(position, *id);
            }
        }
    }
}
