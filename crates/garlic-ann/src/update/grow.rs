//! An index that keeps its recall targets while it grows: from nothing, in any order and in batches of any size.
//!
//! Up to [`EXHAUSTIVE_POINTS`](super::delta::EXHAUSTIVE_POINTS) points every target is met by reading all of them. Then
//! the index is trained, and trained anew each time it has doubled: both take time in proportion to the points that came,
//! so adding stays cheap on average. In between, what the targets take is checked against brute force, after every quarter
//! more points and sooner when points come that the cells were not fitted to; where a target is missed, searches do more,
//! in the end everything, until the next training.

use crate::config::Config;
use crate::tune;
use garlic_linalg::{Matrix, Rows};

use crate::bins::{Assembly, EncodedCell};
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

/// An index that has grown by this factor is trained anew.
pub(super) const GROWTH: f64 = 2.0;
/// One whose searches read everything, because nothing less meets a target any more, sooner.
pub(super) const STALE_GROWTH: f64 = 1.5;
/// Targets are checked when the number of points has changed by this share,
const CHECKED_SHARE: f64 = 0.25;
/// or when this share of the points have come from places that no cell was fitted to.
const STRANGE_SHARE: f64 = 0.05;
/// Inner products: an index that takes a longer vector takes others up to this many times as long from then on.
const LENGTH_RESERVE: f32 = 1.5;

/// What an index that has changed is due for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Axes, cells, bins and calibration from the points that there are now.
    Training,
    /// A look at whether recall targets are still met.
    Check,
}

impl Index {
    /// An index without points, for vectors of dimension `dim`. It trains itself as it grows: see [`Index::add`].
    ///
    /// # Errors
    /// A configuration that is not valid, or one whose index does not change: points in two cells.
    pub fn empty(dim: usize, config: Config) -> Result<Self> {
        config.validate()?;
        if config.partition.spill > 0.0 {
            return Err(Error::Spilled);
        }
        // One point on an axis, which every metric takes, gives an index all its parts; then it leaves.
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
        // The first vectors say how long they are.
        empty.embedding = empty.embedding.without_room();
        empty.config = config;
        Ok(empty)
    }

    /// The cells, bins and calibration of an index without its points.
    pub(crate) fn without_points(&self) -> Result<Self> {
        self.check_changes()?;
        let segment = &self.segment;
        let (encoded, rank) = (&segment.encoded, segment.cells.rank());
        let mut all = Assembly::new(encoded.bits, encoded.width);
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

    /// The number of points from which on the index trains itself anew; none for an index that does not change.
    pub fn trains_at(&self) -> Option<usize> {
        self.check_changes().ok()?;
        let growth = match self.calibration.stale {
            true => STALE_GROWTH,
            false => GROWTH,
        };
        let grown = (self.build_stats.built.max(1) as f64 * growth).ceil() as usize;
        Some(grown.max(EXHAUSTIVE_POINTS + 1))
    }

    /// What the changes so far make necessary; nothing for an index that does not change.
    pub(crate) fn due(&self) -> Option<Due> {
        self.check_changes().ok()?;
        let points = self.len();
        if points <= EXHAUSTIVE_POINTS {
            return None;
        }
        let grown = points as f64 / self.build_stats.built.max(1) as f64;
        let calibration = &self.calibration;
        if grown >= GROWTH || calibration.stale && grown >= STALE_GROWTH {
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
        // A file keeps their number only: what it was opened from has to be checked.
        let is_lost = self.build_stats.uncovered > self.uncovered.len() as u64;
        let is_strange = is_lost || self.uncovered.len() as f64 > STRANGE_SHARE * points as f64;
        (is_changed || is_strange).then_some(Due::Check)
    }

    /// Does what is due.
    pub(crate) fn maintain(&mut self) -> Result<()> {
        if let Some(due) = self.due() {
            *self = self.maintained(due, &Cancel::default())?;
        }
        Ok(())
    }

    /// The index after what was due.
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

    /// This index with what was found out about targets when `checked` became of `before`, from which this one has come, too.
    #[cfg(feature = "live")]
    pub(crate) fn with_check(&self, before: &Self, checked: &Self) -> Self {
        let mut next = self.clone();
        next.calibration = Arc::clone(&checked.calibration);
        next.forget(&before.uncovered);
        next
    }

    /// Looks whether targets are still met, and notes what is to be done about it.
    pub(crate) fn check_targets(&mut self, cancel: &Cancel) -> Result<()> {
        self.check_changes()?;
        let pool = self.workers.get()?;
        // Without them: that is how it will be from now on.
        self.forget(&self.uncovered.clone());
        let calibration = pool.install(|| tune::check(self, cancel))?;
        self.calibration = Arc::new(calibration);
        Ok(())
    }

    /// Targets have been checked with these points, which are strangers no longer.
    fn forget(&mut self, known: &UncoveredPoints) {
        let dim = self.transform.dim();
        let longest = (self.embedding).longest_stored(known.iter(dim).map(|(_, vector)| vector));
        self.build_stats.longest = self.build_stats.longest.max(longest);
        self.uncovered = self.uncovered.but(known, dim);
        self.build_stats.uncovered = self.uncovered.len() as u64;
        (
            self.build_stats.unchecked,
            self.build_stats.unchecked_radius,
        ) = (0, 0.0);
    }

    /// Trains axes, cells, bins and calibration anew, from the points that there are: what a build from them would give.
    ///
    /// An index does this by itself each time it has doubled.
    ///
    /// # Errors
    /// An index that does not change ([`Error::Spilled`]) or has no points; no worker threads.
    pub fn retrain(&mut self) -> Result<()> {
        *self = self.retrained(self.embedding, &Cancel::default())?;
        Ok(())
    }

    /// An index built from the points of this one, in the order of their identifiers, under an `embedding` of its metric.
    pub(crate) fn retrained(&self, embedding: Embedding, cancel: &Cancel) -> Result<Self> {
        self.rebuilt(embedding, self.config.clone(), cancel)
    }

    fn rebuilt(&self, embedding: Embedding, config: Config, cancel: &Cancel) -> Result<Self> {
        self.check_changes()?;
        self.check_order()?;
        let view = self.snapshot();
        let mut points: Vec<(u64, u32)> = view
            .admitted()
            .filter_map(|position| Some((view.point(position)?.id, position)))
            .collect();
        points.sort_unstable();
        let dim = self.transform.dim();
        let mut vectors = Matrix::zeros(points.len(), dim);
        let mut stored = Vec::new();
        for (row, (_, position)) in points.iter().enumerate() {
            if let Some(point) = view.point(*position) {
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
        let built = pool.install(|| builder.build_embedded(vectors.as_rows(), embedding))?;
        let mut next = Index {
            config: self.config.clone(),
            workers: self.workers.clone(),
            ..built
        };
        next.build_stats.trainings = self.build_stats.trainings + 1;
        // An identifier that was removed is not given again because cells were trained.
        next.build_stats.next_id = self.next_id();
        Ok(next)
    }

    /// For inner products: the index with room for vectors of this length; none when it has the room.
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
            // Nobody would ask it.
            config.tuning.calibration_queries = 0;
        }
        let mut next = self.rebuilt(embedding, config, &Cancel::default())?;
        if self.len() <= EXHAUSTIVE_POINTS {
            // So few points are no training.
            next.build_stats.built = next.build_stats.built.min(self.build_stats.built);
            next.build_stats.trainings = self.build_stats.trainings;
        }
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests;
