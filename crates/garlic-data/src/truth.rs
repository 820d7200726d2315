//! Exact nearest neighbours, by looking at everything.
//!
//! Distances are computed in single precision first. Its error has a proven bound, so every vector
//! that could be among the nearest stays a candidate, and the few candidates are put in order in
//! double precision: the answer does not depend on how the kernel sums.

mod measure;

use rayon::prelude::*;

use self::measure::{Asked, Measure};
use crate::dataset::Metric;
use crate::error::{DataError, Origin, Result};
use crate::ids::Ids;
use crate::vectors::{check_finite, count_rows};

/// Queries that share one pass over the vectors.
const QUERIES: usize = 32;
/// Coordinates of the vectors that stay in the cache while those queries look at them.
const COORDINATES: usize = 32 * 1024;

/// The nearest vectors of each query.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// `k` ids for each query, nearest first, equal distances by lower id.
    pub ids: Vec<i64>,
    /// The distances to them: Euclidean, cosine (one less the cosine) or minus the inner product.
    pub distances: Vec<f32>,
    /// Neighbours of each query: as many as asked for, or all vectors where there are fewer.
    pub k: usize,
}

impl Truth {
    /// Number of queries.
    pub fn rows(&self) -> usize {
        self.ids.len() / self.k
    }

    /// The ids as a table that can be written to a file.
    pub fn into_ids(self) -> Ids {
        Ids {
            rows: self.rows(),
            cols: self.k,
            data: self.ids,
        }
    }
}

/// The exact `k` nearest vectors of each query by Euclidean distance, ordered by (distance, id).
///
/// [`ground_truth_by`] is the same for every metric.
pub fn ground_truth(train: &[f32], dim: usize, queries: &[f32], k: usize) -> Result<Truth> {
    ground_truth_by(Metric::Euclidean, train, dim, queries, k)
}

/// The exact `k` nearest vectors of each query by a metric, ordered by (distance, id).
///
/// `train` and `queries` are row-major with `dim` coordinates to a row. Runs in rayon's current
/// pool; the result does not depend on its size.
pub fn ground_truth_by(
    metric: Metric,
    train: &[f32],
    dim: usize,
    queries: &[f32],
    k: usize,
) -> Result<Truth> {
    let (vectors, searches) = (Origin::memory().set("train"), Origin::memory().set("test"));
    let rows = count_rows(train.len(), dim, &vectors)?;
    count_rows(queries.len(), dim, &searches)?;
    check_finite(train, dim, &vectors)?;
    check_finite(queries, dim, &searches)?;
    if k == 0 {
        let origin = Origin::memory();
        return Err(DataError::ZeroNeighbors { origin });
    }
    let k = k.min(rows);
    let measure = Measure::new(metric, train, dim)?;
    measure.check(queries)?;
    let blocks: Vec<Vec<(f64, usize)>> = queries
        .par_chunks(QUERIES * dim)
        .map(|block| Ok(nearest_of_block(&measure, dim, &measure.ask(block)?, k)))
        .collect::<Result<_>>()?;
    let found = || blocks.iter().flatten();
    Ok(Truth {
        ids: found().map(|(_, id)| *id as i64).collect(),
        distances: found().map(|(d, _)| measure.distance(*d) as f32).collect(),
        k,
    })
}

/// The `k` nearest of each query of a block, one query after the other.
fn nearest_of_block(
    measure: &Measure<'_>,
    dim: usize,
    block: &[Asked<'_>],
    k: usize,
) -> Vec<(f64, usize)> {
    let mut candidates: Vec<Candidates> = block
        .iter()
        .map(|asked| Candidates::new(k, measure.bound(asked)))
        .collect();
    let rows = (COORDINATES / dim).max(1);
    for (b, part) in measure.rows().chunks(rows * dim).enumerate() {
        for (asked, candidates) in block.iter().zip(&mut candidates) {
            for (i, row) in part.chunks_exact(dim).enumerate() {
                candidates.offer(measure.rough(asked, row), b * rows + i);
            }
        }
    }
    let settled = block.iter().zip(candidates);
    settled
        .flat_map(|(asked, candidates)| candidates.settle(measure, asked))
        .collect()
}

/// The vectors that may be among the `k` nearest.
struct Candidates {
    k: usize,
    /// Factor and term by which single precision may misjudge the k-th distance.
    factor: f64,
    term: f64,
    /// Squared distances above this are out.
    bound: f32,
    /// When this many have gathered, the bound is drawn tighter.
    limit: usize,
    found: Vec<(f32, usize)>,
}

impl Candidates {
    fn new(k: usize, (factor, term): (f64, f64)) -> Self {
        Self {
            k,
            factor,
            term,
            bound: f32::INFINITY,
            limit: 2 * k + 64,
            found: Vec::new(),
        }
    }

    fn offer(&mut self, squared: f32, id: usize) {
        if squared <= self.bound {
            self.found.push((squared, id));
            if self.found.len() >= self.limit {
                self.tighten();
            }
        }
    }

    fn tighten(&mut self) {
        if self.found.len() < self.k {
            return;
        }
        let (_, kth, _) = self
            .found
            .select_nth_unstable_by(self.k - 1, |a, b| a.0.total_cmp(&b.0));
        let bound = f64::from(kth.0) * self.factor + self.term;
        // The next float up: rounding must not cut off what the bound allows. A product of
        // zero and infinity cannot say anything, so it excludes nothing.
        self.bound = match bound.is_nan() {
            true => f32::INFINITY,
            false => (bound as f32).next_up(),
        };
        self.found.retain(|(squared, _)| *squared <= self.bound);
        // Many equal distances may all have to stay; doubling keeps the work linear.
        self.limit = self.limit.max(2 * self.found.len());
    }

    fn settle(
        mut self,
        measure: &Measure<'_>,
        asked: &Asked<'_>,
    ) -> impl Iterator<Item = (f64, usize)> + use<> {
        self.tighten();
        let exact = |(_, id): &(f32, usize)| (measure.exact(asked, *id), *id);
        let mut settled: Vec<(f64, usize)> = self.found.iter().map(exact).collect();
        settled.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        settled.truncate(self.k);
        settled.into_iter()
    }
}

/// How given neighbours compare with the exact ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthCheck {
    /// Neighbours compared.
    pub compared: usize,
    /// How many of them are as near as the exact neighbour of the same rank.
    pub agree: usize,
    /// The first that is not, as (query, rank).
    pub first_disagreement: Option<(usize, usize)>,
}

/// Compares given neighbours with the exact ones by Euclidean distance; [`check_truth_by`] does it by any metric.
pub fn check_truth(
    train: &[f32],
    dim: usize,
    queries: &[f32],
    neighbors: &Ids,
) -> Result<TruthCheck> {
    check_truth_by(Metric::Euclidean, train, dim, queries, neighbors)
}

/// Compares given neighbours with the exact ones, by distance: where several vectors are equally
/// near, any of them will do, but none may be given twice.
pub fn check_truth_by(
    metric: Metric,
    train: &[f32],
    dim: usize,
    queries: &[f32],
    neighbors: &Ids,
) -> Result<TruthCheck> {
    /// Files hold neighbours that were ordered in single precision.
    const TOLERANCE: f64 = 1e-6;
    let origin = Origin::memory().set("neighbors");
    let truth = ground_truth_by(metric, train, dim, queries, neighbors.cols)?;
    if neighbors.rows != truth.rows() {
        return Err(DataError::CountMismatch {
            origin,
            what: "rows",
            expected: truth.rows(),
            found: neighbors.rows,
            fix: "there must be one row of neighbours for each query",
        });
    }
    neighbors.check_below(train.len() / dim, &origin)?;
    let mut check = TruthCheck {
        compared: neighbors.rows * truth.k,
        agree: 0,
        first_disagreement: None,
    };
    let measure = Measure::new(metric, train, dim)?;
    for (query, asked) in measure.ask(queries)?.iter().enumerate() {
        let given = &neighbors.row(query)[..truth.k];
        for (rank, id) in given.iter().enumerate() {
            let distance = measure.distance(measure.exact(asked, *id as usize));
            let exact = f64::from(truth.distances[query * truth.k + rank]);
            let near = (distance - exact).abs() <= TOLERANCE * measure.scale(asked, exact);
            if near && !given[..rank].contains(id) {
                check.agree += 1;
            } else if check.first_disagreement.is_none() {
                check.first_disagreement = Some((query, rank));
            }
        }
    }
    Ok(check)
}
