//! Growth: keeps recall targets while points are added in any order and batch size.
//!
//! Up to [`EXHAUSTIVE_POINTS`] points a search reads everything. Beyond that the index is trained, and retrained each
//! time it has doubled. Training time is proportional to the points added, so the mean cost of an insertion is bounded.
//! In between, targets are checked against brute force after each change of size by a quarter, and earlier if uncovered
//! points arrive. If a target is missed, searches do more work until the next training, up to reading everything.

use crate::config::Config;
use crate::tune;
use garlic_linalg::{Matrix, Rows};

use crate::bins::{EncodedBinsBuilder, EncodedCell};
use crate::build::Builder;
use crate::plan::EXHAUSTIVE_POINTS;
use crate::quantize::Steps;
use crate::segment::{Index, Segment, UncoveredPoints};
use garlic_core::Cancel;
use garlic_core::config::Configuration as _;
use garlic_core::metric::Embedding;
use garlic_core::vectors::StoredRows;
use garlic_core::{Error, Result};
use std::sync::Arc;

/// An index is retrained when it has grown by this factor.
pub(super) const RETRAIN_GROWTH: f64 = 2.0;
/// An index whose searches read everything is retrained when it has grown by this factor.
pub(super) const STALE_RETRAIN_GROWTH: f64 = 1.5;
/// Targets are checked if the number of points changed by this share.
const CHECKED_SHARE: f64 = 0.25;
/// Targets are checked if this share of the points is uncovered.
const UNCOVERED_SHARE: f64 = 0.05;
/// For inner products: headroom for longer vectors when an index makes room for one.
const LENGTH_RESERVE: f32 = 1.5;

/// Maintenance that a changed index needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Fit axes, cells, bins and calibration to the current points.
    Training,
    /// Check whether recall targets are still met.
    Check,
}

impl Index {
    /// Creates an index without points, for vectors of dimension `dim`. It trains itself as it grows, see
    /// [`Index::add`].
    ///
    /// # Errors
    /// Fails for an invalid configuration, and for one that stores points in two cells, because such an index is
    /// read-only.
    pub fn empty(dim: usize, config: Config) -> Result<Self> {
        config.validate()?;
        if config.partition.spill > 0.0 {
            return Err(Error::Spilled);
        }
        // A build needs a point. A unit vector is valid for every metric, and it is dropped afterwards.
        let mut point = vec![0.0; dim];
        if let Some(first) = point.first_mut() {
            *first = 1.0;
        }
        let mut quick = config.clone();
        quick.tuning.calibration_queries = 0;
        quick.partition.cells = 1;
        let builder = Index::builder().config(quick).threads(1);
        let built = builder.build(Rows::new(&point, dim)?)?;
        let mut empty = built.without_points()?;
        empty.build_stats = Default::default();
        // The first vectors determine the length limit.
        empty.embedding = empty.embedding.without_room();
        empty.config = config;
        Ok(empty)
    }

    /// The cells and the calibration without the points.
    pub(crate) fn without_points(&self) -> Result<Self> {
        self.check_mutable()?;
        let segment = &self.segment;
        let (encoded, rank) = (&segment.encoded, segment.cells.rank());
        let mut all = EncodedBinsBuilder::new(encoded.bits, encoded.width);
        for cell in 0..segment.cells.len() {
            let width = encoded.width;
            let steps = Steps {
                bins: &encoded.bin_steps[cell * width..][..width],
                points: &encoded.steps[cell * width..][..width],
            };
            let origin = &encoded.origins[cell * rank..][..rank];
            all.push(origin, steps, EncodedCell::default());
        }
        let segment = Segment::new(
            &self.transform,
            segment.cells.clone(),
            all.finish(),
            StoredRows::new(segment.vectors.element()).into(),
            Vec::new().into(),
        );
        Ok(Self::new(
            self.config.clone(),
            self.embedding,
            Arc::clone(&self.transform),
            segment,
            (*self.calibration).clone(),
            self.build_stats,
        ))
    }

    /// Number of points at which the index retrains itself, or `None` if it is read-only.
    pub fn trains_at(&self) -> Option<usize> {
        self.check_mutable().ok()?;
        let growth = match self.calibration.stale {
            true => STALE_RETRAIN_GROWTH,
            false => RETRAIN_GROWTH,
        };
        let grown = (self.build_stats.built.max(1) as f64 * growth).ceil() as usize;
        Some(grown.max(EXHAUSTIVE_POINTS + 1))
    }

    /// The maintenance that the changes so far require, or `None` if the index is read-only.
    pub(crate) fn due(&self) -> Option<Due> {
        self.check_mutable().ok()?;
        let points = self.len();
        if points <= EXHAUSTIVE_POINTS {
            return None;
        }
        let grown = points as f64 / self.build_stats.built.max(1) as f64;
        let calibration = &self.calibration;
        if grown >= RETRAIN_GROWTH || calibration.stale && grown >= STALE_RETRAIN_GROWTH {
            return Some(Due::Training);
        }
        if calibration.stale || calibration.settings.is_empty() {
            return None;
        }
        let checked = match calibration.checked {
            0 => calibration.points as f64,
            checked => checked as f64,
        };
        let is_changed = (points as f64 - checked).abs() > CHECKED_SHARE * checked;
        // A file keeps only their number, so an opened index has to be checked.
        let is_lost = self.build_stats.uncovered > self.uncovered.len() as u64;
        let is_uncovered = is_lost || self.uncovered.len() as f64 > UNCOVERED_SHARE * points as f64;
        (is_changed || is_uncovered).then_some(Due::Check)
    }

    /// Does the maintenance that is due.
    pub(crate) fn maintain(&mut self) -> Result<()> {
        if let Some(due) = self.due() {
            *self = self.maintained(due, &Cancel::current())?;
        }
        self.detach_removed()
    }

    /// The index after this maintenance.
    pub(crate) fn maintained(&self, due: Due, cancel: &Cancel) -> Result<Self> {
        match due {
            Due::Training => self.retrained(self.embedding, cancel),
            Due::Check => {
                let mut next = self.clone();
                next.check_targets(cancel)?;
                Ok(next)
            }
        }
    }

    /// This index with the result of a check. `checked` is the checked version of `before`, and this index is derived
    /// from `before` as well.
    #[cfg(feature = "live")]
    pub(crate) fn with_check(&self, before: &Self, checked: &Self) -> Self {
        let mut next = self.clone();
        next.calibration = Arc::clone(&checked.calibration);
        next.mark_checked(&before.uncovered);
        next
    }

    /// Checks whether targets are still met and updates the calibration.
    pub(crate) fn check_targets(&mut self, cancel: &Cancel) -> Result<()> {
        self.check_mutable()?;
        let pool = self.workers.get()?;
        // The check runs without the uncovered list because later searches will not use it.
        self.mark_checked(&self.uncovered.clone());
        let calibration = pool.install(|| tune::check(self, cancel))?;
        self.calibration = Arc::new(calibration);
        Ok(())
    }

    /// Drops points from the uncovered list after targets were checked with them.
    fn mark_checked(&mut self, checked_points: &UncoveredPoints) {
        let dim = self.transform.dim();
        let longest =
            (self.embedding).longest_stored(checked_points.iter(dim).map(|(_, vector)| vector));
        self.build_stats.longest = self.build_stats.longest.max(longest);
        self.uncovered = self.uncovered.without(checked_points, dim);
        self.build_stats.uncovered = self.uncovered.len() as u64;
        (
            self.build_stats.unchecked,
            self.build_stats.unchecked_radius,
        ) = (0, 0.0);
    }

    /// Trains axes, cells, bins and calibration on the current points. The result is that of a build from them.
    ///
    /// An index does this by itself each time it has doubled.
    ///
    /// # Errors
    /// Fails if the index is read-only ([`Error::Spilled`]) or empty, or if no worker threads can be started.
    pub fn retrain(&mut self) -> Result<()> {
        *self = self.retrained(self.embedding, &Cancel::current())?;
        Ok(())
    }

    /// An index built from the points of this one in the order of their identifiers, with this `embedding`.
    pub(crate) fn retrained(&self, embedding: Embedding, cancel: &Cancel) -> Result<Self> {
        self.rebuilt(embedding, self.config.clone(), cancel)
    }

    fn rebuilt(&self, embedding: Embedding, config: Config, cancel: &Cancel) -> Result<Self> {
        self.check_mutable()?;
        self.check_layout()?;
        let snapshot = self.snapshot();
        let mut points: Vec<(u64, u32)> = snapshot
            .admitted()
            .filter_map(|position| Some((snapshot.point(position)?.id, position)))
            .collect();
        points.sort_unstable();
        let dim = self.transform.dim();
        let mut vectors = Matrix::zeros(points.len(), dim);
        let mut stored = Vec::new();
        for (row, (_, position)) in points.iter().enumerate() {
            if let Some(point) = snapshot.point(*position) {
                point.read(dim, &mut stored);
                vectors.row_mut(row).copy_from_slice(&stored);
            }
        }
        if embedding != self.embedding {
            vectors
                .as_mut_slice()
                .chunks_exact_mut(dim)
                .for_each(|row| embedding.embed_again(row));
        }
        let ids: Vec<u64> = points.into_iter().map(|(id, _)| id).collect();
        let builder = Builder::default()
            .config(config)
            .ids(ids)
            .cancel(cancel.clone());
        let pool = self.workers.get()?;
        let built = pool.install(|| builder.build_embedded(vectors, embedding))?;
        let mut next = Index {
            config: self.config.clone(),
            workers: self.workers.clone(),
            attachment: self.attachment.clone(),
            ..built
        };
        let calibration = (*next.calibration).clone();
        next.calibration = Arc::new(calibration.after(&self.calibration));
        next.build_stats.trainings = self.build_stats.trainings + 1;
        // Retraining does not free the identifiers of removed points.
        next.build_stats.next_id = self.next_id();
        Ok(next)
    }

    /// For inner products: the index with room for vectors of this length, or `None` if it has the room.
    pub(crate) fn lengthened(&self, longest: f32) -> Result<Option<Self>> {
        let Some(embedding) = self.embedding.lengthened(longest, LENGTH_RESERVE) else {
            return Ok(None);
        };
        if self.is_empty() {
            let mut next = self.clone();
            next.compact()?;
            next.embedding = embedding;
            return Ok(Some(next));
        }
        let mut config = self.config.clone();
        if self.len() <= EXHAUSTIVE_POINTS {
            // A search of so few points does not use the calibration.
            config.tuning.calibration_queries = 0;
        }
        let mut next = self.rebuilt(embedding, config, &Cancel::current())?;
        if self.len() <= EXHAUSTIVE_POINTS {
            // A rebuild of so few points does not count as training.
            next.build_stats.built = next.build_stats.built.min(self.build_stats.built);
            next.build_stats.trainings = self.build_stats.trainings;
        }
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests;
