//! Recalibration: measures the recall targets again.

use garlic_core::{Cancel, Error, Result};
use garlic_linalg::{Rows, permutation};

use crate::plan::Calibration;
use crate::segment::{Index, Snapshot};
use crate::streams;
use crate::tune::{
    GraphToMeasure, Measurements, calibrate, calibrate_for, calibration_queries, check_sample,
    measure_graph,
};
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
        let cancel = Cancel::current();
        let calibration = workers.get()?.install(|| {
            let measured = calibrate(&next, &held, &cancel, &|_, _| {})?;
            next.add_graph_settings(measured, &cancel)
        })?;
        next.calibration = Arc::new(calibration.after(&self.calibration));
        *self = next;
        Ok(())
    }

    /// The calibration with the settings of the neighbour graph, if there is one.
    fn add_graph_settings(
        &self,
        (mut table, measurements): (Calibration, Measurements),
        cancel: &Cancel,
    ) -> Result<Calibration> {
        if let Some(graph) = self.segment.graph.clone() {
            let graph = GraphToMeasure {
                graph,
                missing: &[],
            };
            measure_graph(self, &mut table, graph, &measurements, true, cancel)?;
        }
        Ok(table)
    }

    /// Measures what recall targets need for queries like those of a sample, and compacts the index.
    ///
    /// A build measures this on points of the index. Queries that do not resemble them, such as questions that search
    /// answers, may miss its targets. The sample should consist of at least 100 queries as users ask them. At most as
    /// many as the parameter `calibration_queries` says are used.
    ///
    /// After later changes, checks and trainings have only points to measure with. They keep how many times fewer
    /// misses they have to allow ([`Calibration::sample_correction`](crate::Calibration::sample_correction)). Tune
    /// again to measure it again.
    ///
    /// # Errors
    /// Fails if the sample is too small, if a query is not valid, if the index is empty or its file is damaged, or if no
    /// worker threads can be started.
    pub fn tune(&mut self, queries: Rows<'_>) -> Result<()> {
        self.check_layout()?;
        let dim = self.embedding.outer_dim(self.transform.dim());
        check_sample(queries, dim, &self.embedding)?;
        if self.is_empty() {
            return Err(Error::NoVectors);
        }
        let mut next = self.clone();
        // An index with points in two cells never changes, so it is compact.
        if !next.spills() {
            next.compact()?;
        }
        let workers = next.workers.clone();
        let cancel = Cancel::current();
        let calibration = workers.get()?.install(|| {
            let measured = calibrate_for(&next, queries, &cancel, &|_, _| {})?;
            next.add_graph_settings(measured, &cancel)
        })?;
        next.calibration = Arc::new(calibration);
        *self = next;
        Ok(())
    }
}
