//! Measuring again what recall targets take.

use garlic_core::{Cancel, Result};
use garlic_linalg::permutation;

use crate::segment::{Index, Snapshot};
use crate::streams;
use crate::tune::{calibrate, calibration_queries};
use std::sync::Arc;

impl Index {
    /// Lays the index out anew and measures again what recall targets take.
    ///
    /// A build measures this on points that it held out. As points are added, neighbours come closer while codes
    /// stay as coarse as they are; until this is called, a search makes up for it by aiming higher. The queries are
    /// points that have been added and to which no cell has been fitted, if there are enough of them, else any. An
    /// index of fewer than ten points is left as it is.
    ///
    /// # Errors
    /// An index built by the published method is not calibrated, one whose points lie in two cells not again; a damaged
    /// file; no worker threads.
    pub fn recalibrate(&mut self) -> Result<()> {
        self.check_changes()?;
        self.check_order()?;
        let view = Snapshot::new(self);
        let values = self.len() * self.transform.dim();
        let count = calibration_queries(self.len(), values, &self.config);
        if count == 0 {
            return Ok(());
        }
        let mut queries: Vec<u64> = (0..view.cells())
            .filter_map(|cell| view.tail(cell))
            .flat_map(|(tail, first)| (first..).zip(&tail.ids))
            .filter(|(position, _)| view.is_alive(*position))
            .map(|(_, id)| *id)
            // Points of the base that have come from other cells since took part in its training.
            .filter(|id| self.segment.lookup().position(*id).is_none())
            .collect();
        if queries.len() < count {
            queries = self.ids();
        }
        queries.sort_unstable();
        let chosen = permutation(queries.len(), self.config.seed, streams::CALIBRATION);
        let chosen = chosen.into_iter().take(count);
        let chosen: Vec<u64> = chosen.map(|i| queries[i as usize]).collect();
        let mut next = self.clone();
        next.compact()?;
        let positions = chosen
            .iter()
            .filter_map(|id| next.segment.lookup().position(*id));
        let mut held: Vec<u32> = positions.collect();
        held.sort_unstable();
        let workers = next.workers.clone();
        let calibration = workers
            .get()?
            .install(|| calibrate(&next, &held, &Cancel::default(), &|_, _| {}))?;
        next.calibration = Arc::new(calibration);
        *self = next;
        Ok(())
    }
}
