//! What the experiments share: the data set named on the command line, its points in the order of an axis, and the
//! neighbours of an answer that are right.
#![allow(dead_code, unreachable_pub)] // each experiment uses its own part

use anyhow::{Context as _, Result, ensure};
use garlic_ann::{Answer, Metric, Rows};
use garlic_data::{Dataset, Distances};
use garlic_linalg::{Matrix, top_components};

/// Most rows that the first principal axis is fitted to.
const SAMPLE: usize = 20_000;

/// A data set in memory.
pub struct Set {
    /// Dimension of the vectors.
    pub dim: usize,
    /// The metric of the file, Euclidean if it names none.
    pub metric: Metric,
    base: Vec<f32>,
    queries: Vec<f32>,
    truth: Option<Distances>,
}

impl Set {
    /// Reads the HDF5 file that is the first argument, with no more than `queries` of its test queries.
    pub fn from_arguments(queries: usize) -> Result<Self> {
        let path = std::env::args().nth(1).context("which HDF5 file?")?;
        let data = Dataset::open(&path)?;
        let test = data.test.context("the file has no queries")?;
        Ok(Self {
            dim: data.train.dim(),
            metric: match data.metric {
                Some(garlic_data::Metric::Cosine) => Metric::Cosine,
                Some(garlic_data::Metric::InnerProduct) => Metric::InnerProduct,
                _ => Metric::Euclidean,
            },
            base: data.train.to_f32().into_owned(),
            queries: test.head(queries)?.to_f32().into_owned(),
            truth: data.distances,
        })
    }

    /// The points.
    pub fn base(&self) -> Result<Rows<'_>> {
        Ok(Rows::new(&self.base, self.dim)?)
    }

    /// The queries.
    pub fn queries(&self) -> Result<Rows<'_>> {
        Ok(Rows::new(&self.queries, self.dim)?)
    }

    /// The distance of each query's k-th neighbour, as the file has it.
    pub fn radii(&self, k: usize) -> Result<Vec<f32>> {
        let truth = self.truth.as_ref().context("the file has no truth")?;
        ensure!(truth.cols >= k, "the truth has fewer than {k} neighbours");
        let count = self.queries.len() / self.dim;
        Ok((0..count).map(|query| truth.row(query)[k - 1]).collect())
    }
}

/// Sorts the rows named in `order` by their first principal component, smallest first.
pub fn sort_along_first_axis(rows: Rows<'_>, order: &mut [u32]) {
    let step = order.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<u32> = order.iter().copied().step_by(step).collect();
    let found = top_components(Matrix::gather(rows, &sample).as_rows(), 1, 0);
    let axis = found.basis.row(0);
    let along = |row: &u32| garlic_simd::dot(rows.row(*row as usize), axis);
    let mut keyed: Vec<(f32, u32)> = order.iter().map(|row| (along(row), *row)).collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, (_, row)) in order.iter_mut().zip(keyed) {
        *place = row;
    }
}

/// How many hits lie within the distance of the true k-th neighbour.
pub fn right(answer: &Answer, radius: f32) -> usize {
    let near = |hit: &&garlic_ann::Hit| hit.distance <= radius * (1.0 + 1e-6);
    answer.hits.iter().filter(near).count()
}
