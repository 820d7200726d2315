//! Calibration: measures the cheapest setting for each recall target.
//!
//! In: an index and calibration queries: points that were held out of its training, or a sample of the user's queries.
//! Out: a [`Calibration`] table. `ground_truth` finds the true neighbours of the queries. `profile` predicts the recall
//! and cost of every setting, `measure` runs a setting and counts what it finds and costs, and `tuner` goes through the
//! targets with both. If no setting meets a target for less than the cost of reading everything, searches read
//! everything. `exhaustive` reports such targets. `graph` decides whether a neighbour graph pays and measures it, with
//! the queries of `graph_queries`.

use crate::config::Config;
use crate::partition::default_cells;
use crate::plan::Calibration;
use crate::segment::{Index, Snapshot};
use crate::streams;

mod exhaustive;
mod graph;
mod graph_queries;
mod ground_truth;
mod measure;
mod profile;
mod tuner;

pub use exhaustive::{Cause, Exhaustive};
pub(crate) use graph::{GraphToMeasure, measure_graph, wants_graph};
pub(crate) use graph_queries::graph_queries;

use garlic_core::metric::Embedding;
use garlic_core::validate::check_query;
use garlic_linalg::{Matrix, Rows, permutation};

use crate::search::CostModel;
use garlic_core::{Cancel, Error, Result};
use ground_truth::ground_truth;
use measure::{Evaluator, Query, project};
use profile::profile;
use tuner::{TARGETS, Tuner};

/// Numbers of neighbours to measure, each with its share of the queries. A query for more neighbours is more
/// informative and takes longer.
const KS: [(usize, f64); 3] = [(1, 1.0), (10, 0.8), (100, 0.16)];
/// At most one in this many points is a calibration query.
const POINTS_PER_QUERY: usize = 16;
/// Least number of queries for any number of neighbours, if there are as many.
const MIN_QUERIES: usize = 100;
/// Upper limit of the codes that all profiles together scan, and limits of the number of queries for them.
const PROFILED_CODES: usize = 30_000_000;
const MIN_PROFILE_QUERIES: usize = 80;
const MAX_PROFILE_QUERIES: usize = 112;

/// Least number of neighbours in a profile.
const MIN_PROFILED_NEIGHBOURS: usize = 500;

/// Number of calibration queries for `points` points with `values` coordinates in total.
pub(crate) fn calibration_queries(points: usize, values: usize, config: &Config) -> usize {
    let asked = config.tuning.calibration_queries;
    asked
        .min(points / POINTS_PER_QUERY)
        .min(affordable_queries(points, values))
}

/// Number of queries whose true neighbours among `points` points with `values` coordinates in total can be found in a
/// small part of the time of a build.
///
/// Some hundred queries are needed, because their error is subtracted from the recall. To compare a point with as many
/// queries as there are cells takes about as long as to find its cell.
fn affordable_queries(points: usize, values: usize) -> usize {
    const MAX_MADDS: f64 = 1.5e11;
    let short = (MAX_MADDS / values.max(1) as f64) as usize;
    short.max(default_cells(points)).max(MIN_SAMPLE)
}

/// Chooses the rows of `points` vectors that are held out of the training as calibration queries, in order.
///
/// They are at most a sixteenth of the points, and fewer if brute force over them would take long.
pub(crate) fn held_out(points: usize, dim: usize, config: &Config) -> Vec<u32> {
    let count = calibration_queries(points, points * dim, config);
    let mut ids = permutation(points, config.seed, streams::CALIBRATION);
    ids.truncate(count);
    ids.sort_unstable();
    ids
}

/// Calibrates an index. The points at the positions `held` took no part in the training.
pub(crate) fn calibrate(
    index: &Index,
    held: &[u32],
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(Calibration, Measurements)> {
    let snapshot = Snapshot::new(index);
    let queries = held
        .iter()
        .map(|position| Query::held(&snapshot, *position));
    calibrate_with(index, queries.collect(), cancel, step)
}

/// Least number of queries of a sample.
pub(crate) const MIN_SAMPLE: usize = 100;
/// Targets at which two calibrations are compared, and the number of neighbours, as an index into [`KS`], for that of
/// stored points and that of a sample.
const COMPARED_TARGETS: [f64; 3] = [0.9, 0.95, 0.99];
const COMPARED_KS: usize = 1;
/// A correction that makes searches read everything, if no other is enough.
const READ_EVERYTHING: f64 = 1e6;

/// Fails unless queries can serve as a sample for vectors of the dimension `dim`, which is the user's.
pub(crate) fn check_sample(queries: Rows<'_>, dim: usize, embedding: &Embedding) -> Result<()> {
    for (row, query) in queries.iter().enumerate() {
        check_query(query, dim, embedding, row)?;
    }
    match queries.len() {
        MIN_SAMPLE.. => Ok(()),
        count => Err(Error::Config {
            key: "queries".into(),
            message: format!(
                "a sample of {count} is too small to measure recall targets with; give at least {MIN_SAMPLE}"
            ),
        }),
    }
}

/// Calibrates an index for queries like those of a checked sample. Runs in the current rayon pool.
pub(crate) fn calibrate_for(
    index: &Index,
    sample: Rows<'_>,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(Calibration, Measurements)> {
    // A sample is used even if the configuration holds out no points.
    let most = Config::default().tuning.calibration_queries;
    let most = most.max(index.config.tuning.calibration_queries);
    let values = index.len() * index.transform.dim();
    let order = permutation(sample.len(), index.config.seed, streams::CALIBRATION);
    let mut chosen: Vec<u32> = order;
    chosen.truncate(affordable_queries(index.len(), values).min(most));
    chosen.sort_unstable();
    let chosen = Matrix::gather(sample, &chosen);
    let embedded = index.embedding.queries(chosen.as_rows());
    let queries = embedded.rows().iter().map(Query::given).collect();
    let (mut table, measurements) = calibrate_with(index, queries, cancel, step)?;
    table.sample_correction = sample_correction(index, &measurements.queries, cancel)?;
    Ok((table, measurements))
}

/// How many times fewer misses a calibration by stored points has to allow, so that it meets the targets for these
/// queries. If no factor is enough, searches read everything after a training, until the index is tuned again.
fn sample_correction(index: &Index, queries: &[Query], cancel: &Cancel) -> Result<f64> {
    let at = COMPARED_KS;
    let (k, _) = KS[at];
    if index.len() <= 2 * k {
        return Ok(1.0);
    }
    let (table, _) = calibrate_with(index, stored_queries(index), cancel, &|_, _| {})?;
    let evaluator = Evaluator {
        index,
        queries: &queries[..queries.len().min(CHECK_QUERIES)],
        at,
        k,
        cost_model: &CostModel::new(index),
    };
    for correction in CORRECTIONS {
        let mut is_met = true;
        for target in COMPARED_TARGETS {
            let plan = table.plan(k, 1.0 - (1.0 - target) / correction);
            is_met &= plan.all || {
                let measured = evaluator.run(&plan, cancel)?;
                measured.mean + measured.error >= target
            };
            if !is_met {
                break;
            }
        }
        if is_met {
            return Ok(correction);
        }
    }
    Ok(READ_EVERYTHING)
}

/// Some stored points as queries.
fn stored_queries(index: &Index) -> Vec<Query> {
    let snapshot = Snapshot::new(index);
    let points: Vec<u32> = match index.spills() {
        true => index.first_positions(),
        false => snapshot.admitted().collect(),
    };
    let seed = index.config.seed ^ points.len() as u64;
    let order = permutation(points.len(), seed, streams::CALIBRATION);
    let chosen = order.into_iter().take(CHECK_QUERIES);
    chosen
        .map(|i| Query::held(&snapshot, points[i as usize]))
        .collect()
}

/// The queries of a calibration, with the numbers of neighbours and of queries that are measured for each.
#[derive(Default)]
pub(crate) struct Measurements {
    queries: Vec<Query>,
    ks: Vec<usize>,
    counts: Vec<usize>,
}

impl Measurements {
    /// Whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Runs plans for the number of neighbours at `at` in [`KS`].
    fn evaluator<'a>(
        &'a self,
        index: &'a Index,
        at: usize,
        cost_model: &'a CostModel,
    ) -> Evaluator<'a> {
        Evaluator {
            index,
            queries: &self.queries[..self.counts[at]],
            at,
            k: self.ks[at],
            cost_model,
        }
    }

    /// The same for an index that lacks some points, which are given in order.
    fn without(&self, index: &Index, missing: &[u32]) -> Self {
        let snapshot = Snapshot::new(index);
        let queries = &self.queries;
        Self {
            queries: ground_truth::leave_out(&snapshot, queries, &self.ks, missing),
            ks: self.ks.clone(),
            counts: self.counts.clone(),
        }
    }

    /// Positions of the queries that are points of the index, in order.
    pub(crate) fn held(&self) -> Vec<u32> {
        let mut held: Vec<u32> = self.queries.iter().filter_map(|q| q.position).collect();
        held.sort_unstable();
        held
    }
}

/// Calibrates an index with queries whose neighbours are not known yet. Also returns the queries with their neighbours,
/// in another order. Runs in the current rayon pool.
fn calibrate_with(
    index: &Index,
    mut queries: Vec<Query>,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(Calibration, Measurements)> {
    let (ks, shares): (Vec<usize>, Vec<f64>) =
        KS.into_iter().filter(|(k, _)| 2 * k < index.len()).unzip();
    let mut table = Calibration {
        queries: queries.len(),
        points: index.len(),
        ..Calibration::default()
    };
    if queries.is_empty() {
        return Ok((table, Measurements::default()));
    }
    // Held-out points are ordered by cell, and larger `k` use only the first queries. Shuffle them.
    let order = permutation(queries.len(), index.config.seed, streams::CALIBRATION_ORDER);
    let queries = order
        .into_iter()
        .map(|i| std::mem::take(&mut queries[i as usize]))
        .collect();
    let mut queries = ground_truth(&Snapshot::new(index), queries, &ks, cancel)?;
    project(index, &mut queries);
    table.coarse_routing = index.segment.coarse_quantizer().is_some();
    let cost_model = CostModel::new(index);
    let counts: Vec<usize> = shares
        .iter()
        .map(|share| query_count(queries.len(), *share))
        .collect();
    let profiled = PROFILED_CODES / index.len().max(1);
    let profiled = profiled.clamp(MIN_PROFILE_QUERIES, MAX_PROFILE_QUERIES);
    let profiled: Vec<usize> = counts.iter().map(|count| profiled.min(*count)).collect();
    let profiles = profile(index, &queries, &ks, &profiled, &cost_model);
    for at in 0..ks.len() {
        let evaluator = Evaluator {
            index,
            queries: &queries[..counts[at]],
            at,
            k: ks[at],
            cost_model: &cost_model,
        };
        // A profile of few neighbours cannot tell good settings from lucky ones. Those for more neighbours differ
        // little.
        let resolved = |other: &usize| ks[*other] * profiled[*other] >= MIN_PROFILED_NEIGHBOURS;
        let profile = &profiles[(at..ks.len()).find(resolved).unwrap_or(at)];
        let step = |done| step(at * TARGETS.len() + done, ks.len() * TARGETS.len());
        let tuner = Tuner::new(&evaluator, profile, table.coarse_routing);
        table.settings.extend(tuner.find_settings(&step, cancel)?);
    }
    let measurements = Measurements {
        queries,
        ks,
        counts,
    };
    Ok((table, measurements))
}

/// Number of queries for a number of neighbours with this share.
fn query_count(all: usize, share: f64) -> usize {
    let count = (all as f64 * share).ceil() as usize;
    count.max(MIN_QUERIES).min(all)
}

/// Number of queries of a check, and the numbers of neighbours and targets that it covers.
const CHECK_QUERIES: usize = 300;
const CHECKED_TARGETS: [(usize, f64); 5] =
    [(10, 0.9), (10, 0.95), (10, 0.99), (1, 0.95), (100, 0.95)];
/// Corrections to try, starting with the current one.
const CORRECTIONS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];

/// Checks the targets of a changed index, with some of its points as queries. Returns the calibration with the
/// smallest correction that meets them, but not less than the current one. If none does, the result is marked stale.
/// Runs in the current rayon pool.
///
/// Searches with the neighbour graph are so cheap that their settings are measured anew. They need no correction then.
pub(super) fn check(index: &Index, cancel: &Cancel) -> Result<Calibration> {
    let snapshot = Snapshot::new(index);
    let points = snapshot.admitted().count();
    let ks = KS.map(|(k, _)| k);
    let queries = ground_truth(&snapshot, stored_queries(index), &ks, cancel)?;
    // Fewer queries suffice for many neighbours.
    let counts = KS.map(|(_, share)| (queries.len() as f64 * share).ceil() as usize);
    let measurements = Measurements {
        queries,
        ks: ks.to_vec(),
        counts: counts.to_vec(),
    };
    let cost_model = CostModel::new(index);
    let mut next = Calibration {
        checked: points,
        ..(*index.calibration).clone()
    };
    if snapshot.graph().is_some() {
        graph::measure_again(index, &mut next, &measurements, cancel)?;
    }
    let present = next.correction;
    for correction in CORRECTIONS.into_iter().filter(|c| *c >= present) {
        next.correction = correction;
        let mut is_met = true;
        for (k, target) in CHECKED_TARGETS {
            let at = KS.iter().position(|(other, _)| *other == k).unwrap_or(0);
            let evaluator = measurements.evaluator(index, at, &cost_model);
            let plan = next.plan_for(k, target, points, snapshot.graph().is_some());
            is_met = plan.all || {
                let measured = evaluator.run(&plan, cancel)?;
                measured.mean + measured.error >= target
            };
            if !is_met {
                break;
            }
        }
        if is_met {
            return Ok(next);
        }
    }
    next.stale = true;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_data_have_enough_queries() {
        let queries = |points, dim| calibration_queries(points, points * dim, &Config::default());
        assert_eq!(queries(8_000, 384), 500);
        assert_eq!(queries(1_000_000, 128), 750);
        assert_eq!(queries(1_000_000, 384), 390);
        // As many as cells.
        assert_eq!(queries(4_000_000, 384), 500);
        assert_eq!(queries(10_000_000, 128), 750);
        assert_eq!(queries(1_000_000_000, 128), 750);
    }
}
