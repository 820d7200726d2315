//! Recalibration: measures the recall targets again.

use garlic_core::{Cancel, Result};
use garlic_linalg::permutation;

use crate::plan::Calibration;
use crate::segment::{Index, Snapshot};
use crate::streams;
use crate::tune::{calibrate, calibration_queries, measure_graph};
use std::sync::Arc;

impl Index {
    /// Compacts the index and measures again what recall targets need.
    ///
    /// A build measures this on held-out points. As points are added, neighbours come closer together but codes keep
    /// their resolution. Until the next calibration, searches compensate by aiming higher. The queries are added points
    /// that no cell was fitted to, if there are enough of them, otherwise arbitrary points. An index of fewer than ten
    /// points does not change.
    ///
    /// # Errors
    /// Fails if points are stored in two cells, if the file is damaged or if no worker threads can be started.
    pub fn recalibrate(&mut self) -> Result<()> {
        self.check_mutable()?;
        self.check_layout()?;
        let snapshot = Snapshot::new(self);
        let values = self.len() * self.transform.dim();
        let count = calibration_queries(self.len(), values, &self.config);
        if count == 0 {
            return Ok(());
        }
        let mut queries: Vec<u64> = (0..snapshot.cells())
            .filter_map(|cell| snapshot.appended(cell))
            .flat_map(|(appended, first)| (first..).zip(&appended.ids))
            .filter(|(position, _)| snapshot.is_live(*position))
            .map(|(_, id)| *id)
            // Points that moved here from other cells of the base took part in its training.
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
        let cancel = Cancel::default();
        let calibration = workers.get()?.install(|| -> Result<Calibration> {
            let (mut table, measurements) = calibrate(&next, &held, &cancel, &|_, _| {})?;
            if let Some(graph) = next.segment.graph.clone() {
                measure_graph(&next, &mut table, graph, &measurements, true, &cancel)?;
            }
            Ok(table)
        })?;
        next.calibration = Arc::new(calibration);
        *self = next;
        Ok(())
    }
}
