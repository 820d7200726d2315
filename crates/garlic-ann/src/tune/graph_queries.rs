//! The queries that a new neighbour graph is measured with.
//!
//! The standard error of a few hundred queries is a large part of what a target of 0.99 may miss, and a search allows
//! for it. So the graph is built without some thousands of points, which are queries before they are inserted.

use super::Measurements;
use super::graph::unpruned;
use super::ground_truth::set_neighbours;
use super::measure::Query;
use crate::plan::Calibration;
use crate::segment::{Index, Snapshot};
use crate::streams;
use garlic_core::{Cancel, Result};
use garlic_linalg::permutation;
use rayon::prelude::*;

/// Points that are queries when a new graph is measured, and the share of all points that they may be: one in so many.
/// A search in a graph costs so little that many queries are affordable, and the more there are, the closer a search
/// comes to its target.
const GRAPH_QUERIES: usize = 4000;
const POINTS_PER_QUERY: usize = 32;
/// The searches that find the neighbours of these queries: the expansion ratio of the one in the graph, the recall
/// target of the one with cells and bins, and neighbours beyond the largest k.
const WIDE_RATIO: f32 = 1.3;
const WIDE_RECALL: f64 = 0.8;
const WIDE_SPARE: usize = 32;

/// Positions of the points that a new graph is measured with, in order: the queries of the calibration and more. Empty
/// if these are no points.
pub(crate) fn graph_queries(index: &Index, measurements: &Measurements) -> Vec<u32> {
    let mut chosen = measurements.held();
    if chosen.is_empty() {
        return chosen;
    }
    let points = index.segment.ids.len();
    let mut more = permutation(points, index.config.seed, streams::GRAPH_QUERIES);
    more.truncate(GRAPH_QUERIES.min(points / POINTS_PER_QUERY));
    chosen.extend(more);
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Queries for a graph, and for every k the share of the true neighbours that is not known.
pub(super) struct GraphQueries {
    pub(super) measurements: Measurements,
    pub(super) unknown: Vec<f64>,
}

impl GraphQueries {
    /// The queries of a calibration. All of their neighbours are known.
    pub(super) fn known(measurements: Measurements) -> Self {
        let unknown = vec![0.0; measurements.ks.len()];
        Self {
            measurements,
            unknown,
        }
    }

    /// Queries at the points that a graph lacks. Two searches together find their neighbours, which is much faster than
    /// brute force: a wide one in the graph, and one with cells and bins, which also finds what no edges lead to. The
    /// queries of the calibration, `known`, are among them and tell what both miss.
    pub(super) fn wide(
        index: &Index,
        table: &Calibration,
        missing: &[u32],
        known: &Measurements,
        cancel: &Cancel,
    ) -> Result<Self> {
        let ks = &known.ks;
        let most = ks.iter().max().map_or(1, |k| k + WIDE_SPARE);
        let bins = table.plan(most, WIDE_RECALL);
        let plans = [
            Some(unpruned(most, WIDE_RATIO)),
            (!bins.all).then_some(bins),
        ];
        let (snapshot, is_missing) = (Snapshot::new(index), |p: &u32| {
            missing.binary_search(p).is_ok()
        });
        let queries: Vec<Query> = missing
            .par_iter()
            .map_init(Default::default, |(scratch, best), position| {
                cancel.check()?;
                let mut query = Query::held(&snapshot, *position);
                let mut found: Vec<u32> = Vec::new();
                for plan in plans.iter().flatten() {
                    snapshot.search(&query.vector, plan, scratch, best);
                    found.extend(best.found().map(|f| f.position));
                }
                found.sort_unstable();
                found.dedup();
                found.retain(|position| !is_missing(position));
                set_neighbours(&snapshot, &mut query, &found, ks, most);
                Ok(query)
            })
            .collect::<Result<_>>()?;
        let pairs = known.queries.iter().filter_map(|query| {
            let number = missing.binary_search(&query.position?).ok()?;
            Some((query, queries.get(number)?))
        });
        let pairs: Vec<(&Query, &Query)> = pairs.collect();
        let unknown = ks.iter().enumerate().map(|(at, k)| {
            let missed = pairs
                .iter()
                .map(|(known, found)| found.missed(known, at, *k));
            missed.sum::<usize>() as f64 / (k * pairs.len().max(1)) as f64
        });
        let unknown = unknown.collect();
        let counts = known.counts.iter().map(|count| {
            let count = (count * queries.len()).div_ceil(known.queries.len().max(1));
            count.min(queries.len())
        });
        let counts = counts.collect();
        let order = permutation(queries.len(), index.config.seed, streams::CALIBRATION_ORDER);
        let mut queries = queries;
        let queries = order
            .into_iter()
            .map(|i| std::mem::take(&mut queries[i as usize]))
            .collect();
        let measurements = Measurements {
            queries,
            ks: ks.clone(),
            counts,
        };
        Ok(Self {
            measurements,
            unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::search::CostModel;
    use crate::testdata::{gaussian, rows};
    use crate::tune::calibrate;
    use crate::tune::graph::find_settings;
    use std::sync::Arc;

    #[test]
    fn wide_searches_find_the_neighbours_or_tell_what_they_miss() {
        let (dim, count) = (24, 6000);
        let mut values = gaussian(count, dim, 11);
        for (i, value) in values.iter_mut().enumerate() {
            *value /= (1 + i % dim) as f32;
        }
        let builder = Index::builder().set("graph", "off").unwrap();
        let index = builder.build(rows(&values, dim)).unwrap();
        let held: Vec<u32> = (0..250).map(|i| i * 16).collect();
        let cancel = Cancel::default();
        let (table, measurements) = calibrate(&index, &held, &cancel, &|_, _| {}).unwrap();
        // Both searches take part.
        let most = measurements.ks.iter().max().unwrap() + WIDE_SPARE;
        assert!(!table.plan(most, WIDE_RECALL).all);
        let missing = graph_queries(&index, &measurements);
        assert!(missing.is_sorted_by(|a, b| a < b));
        assert!(missing.len() > held.len() && held.iter().all(|p| missing.contains(p)));
        let cell_of = index.segment.cells_of((0..count as u32).into_par_iter());
        let nodes = index.nodes(&index.segment.vectors, &cell_of);
        let graph = GraphBuilder::new(&nodes, &missing, &cancel, &|_, _| ()).unwrap();
        let index = index.with_graph(Arc::new(graph.graph()));
        let known = measurements.without(&index, &missing);
        let found = GraphQueries::wide(&index, &table, &missing, &known, &cancel).unwrap();
        assert_eq!(found.measurements.queries.len(), missing.len());
        for (at, k) in known.ks.iter().enumerate() {
            let mut missed = 0;
            for query in &known.queries {
                let same = |other: &&Query| other.position == query.position;
                let wide = found.measurements.queries.iter().find(same).unwrap();
                assert!(wide.neighbours.iter().all(|p| !missing.contains(p)));
                missed += (query.neighbours[..*k].iter())
                    .filter(|p| !wide.neighbours[..*k].contains(p))
                    .count();
            }
            let share = missed as f64 / (k * known.queries.len()) as f64;
            assert_eq!(found.unknown[at], share, "{k}");
            assert!(share < 0.02, "{k} {share}");
        }
        // What is not known counts as missed, so the same target needs more work.
        let cost_model = CostModel::new(&index);
        let evaluator = found.measurements.evaluator(&index, 1, &cost_model);
        let costs = [0.0, 0.03].map(|unknown| {
            let settings = find_settings(&evaluator, unknown, &cancel).unwrap();
            settings.iter().find(|(s, _)| s.recall == 0.95).unwrap().1
        });
        assert!(costs[0] < costs[1], "{costs:?}");
    }

    #[test]
    fn a_neighbour_at_the_same_distance_is_not_missed() {
        let query = |neighbours: &[u32], radii: &[f32]| Query {
            neighbours: neighbours.to_vec(),
            ranking_radii: radii.to_vec(),
            ..Query::default()
        };
        let known = query(&[4, 7, 9], &[1.0, 3.0]);
        assert_eq!(query(&[4, 8, 9], &[1.0, 3.0]).missed(&known, 1, 3), 0);
        assert_eq!(query(&[4, 8, 9], &[1.0, 3.5]).missed(&known, 1, 3), 1);
        assert_eq!(query(&[4], &[1.0, 1.0]).missed(&known, 1, 3), 2);
    }
}
