//! Metrics, and their embedding into Euclidean space.
//!
//! In: vectors and queries of the user. Out: embedded ones, and reported distances. An index is Euclidean inside.
//! For cosines, vectors and queries are normalized, and the cosine distance is half the squared distance. For inner
//! products, a vector x gets one more coordinate, sqrt(M² - |x|²) with the largest length M, so that all have length M.
//! A query gets 0 there and is scaled to length M, which minimizes rounding. The squared distance is then
//! 2 M² - (2 M / |q|) (q·x), so the nearest vectors have the largest inner products. The reported distance is computed
//! from vector and query, because the squared distance lost digits to M².

mod distance;
mod double_precision;
mod report;

use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::validate::MAX_VALUE;
pub use distance::Metric;
use distance::{inner_product, length, squares};
pub use double_precision::PreciseHits;
pub use report::{Points, QueryContext};

/// The embedding of the user's vectors into those of the index, and of distances back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Embedding {
    metric: Metric,
    /// The largest length M for inner products, otherwise 0.
    longest: f32,
}

/// Embedded rows: the given ones if they need no change, or new ones.
#[derive(Debug)]
pub enum Embedded<'a> {
    /// The given rows.
    Given(Rows<'a>),
    /// New rows.
    Made(Matrix),
}

impl Embedded<'_> {
    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        match self {
            Self::Given(rows) => *rows,
            Self::Made(matrix) => matrix.as_rows(),
        }
    }
}

impl Embedding {
    /// Fits the embedding to finite vectors. Runs in the current rayon pool.
    pub fn fit(metric: Metric, vectors: Rows<'_>) -> Self {
        let longest = match metric {
            Metric::Euclidean | Metric::Cosine => 0.0,
            Metric::InnerProduct => {
                let squared = (0..vectors.len())
                    .into_par_iter()
                    .map(|row| squares(vectors.row(row)))
                    .reduce(|| 0.0, f64::max);
                longest(squared)
            }
        };
        Self { metric, longest }
    }

    /// Restores the embedding of an index file from the metric and the stored length. `None` if they are
    /// inconsistent.
    pub fn restore(metric: Metric, longest: Option<f32>, inner_dim: u64) -> Option<Self> {
        match (metric, longest) {
            (Metric::InnerProduct, Some(longest)) if inner_dim > 1 => {
                // Upper limit for vectors with the largest values that a build accepts.
                let most = f64::from(MAX_VALUE) * (inner_dim as f64).sqrt();
                let sound = longest >= 0.0 && f64::from(longest) <= most;
                sound.then_some(Self { metric, longest })
            }
            (Metric::Euclidean | Metric::Cosine, None) => Some(Self {
                metric,
                longest: 0.0,
            }),
            _ => None,
        }
    }

    /// The length that an index file stores for inner products.
    pub fn longest(&self) -> Option<f32> {
        (self.metric == Metric::InnerProduct).then_some(self.longest)
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Dimension of the user's vectors, given that of the embedded ones.
    pub fn outer_dim(&self, inner: usize) -> usize {
        inner - self.extra_dims()
    }

    /// Dimension of the embedded vectors, given that of the user's.
    pub fn inner_dim(&self, outer: usize) -> usize {
        outer + self.extra_dims()
    }

    /// Number of coordinates that the embedding adds.
    fn extra_dims(&self) -> usize {
        usize::from(self.metric == Metric::InnerProduct)
    }

    /// Embeds the vectors of a build. An error names the first invalid row. Runs in the current rayon pool.
    pub fn vectors<'a>(&self, vectors: Rows<'a>) -> Result<Embedded<'a>> {
        if self.metric == Metric::Euclidean {
            return Ok(Embedded::Given(vectors));
        }
        self.check_all(vectors)?;
        let mut made = Matrix::zeros(vectors.len(), self.inner_dim(vectors.dim()));
        let cols = made.cols();
        let rows = made.as_mut_slice().par_chunks_exact_mut(cols).enumerate();
        rows.for_each(|(row, out)| self.embed_into(vectors.row(row), out));
        Ok(Embedded::Made(made))
    }

    /// [`Embedding::vectors`] of vectors that nobody else needs. It embeds them where they are, except for inner
    /// products, which add a coordinate.
    pub fn own_vectors(&self, mut vectors: Matrix) -> Result<Embedded<'static>> {
        match self.metric {
            Metric::Euclidean => Ok(Embedded::Made(vectors)),
            Metric::Cosine => {
                self.check_all(vectors.as_rows())?;
                let cols = vectors.cols();
                let rows = vectors.as_mut_slice().par_chunks_exact_mut(cols);
                rows.for_each_init(Vec::new, |given, row| {
                    given.clear();
                    given.extend_from_slice(row);
                    self.embed_into(given, row);
                });
                Ok(Embedded::Made(vectors))
            }
            Metric::InnerProduct => match self.vectors(vectors.as_rows())? {
                Embedded::Made(made) => Ok(Embedded::Made(made)),
                Embedded::Given(_) => Ok(Embedded::Made(vectors)),
            },
        }
    }

    /// Fails for the first vector that the metric cannot take.
    fn check_all(&self, vectors: Rows<'_>) -> Result<()> {
        let refused = (0..vectors.len())
            .into_par_iter()
            .map(|row| self.check(vectors.row(row), row))
            .find_first(Result::is_err);
        refused.unwrap_or(Ok(()))
    }

    /// Embeds vectors that are added to an index, on the calling thread. An error names the first invalid row, such
    /// as one that exceeds the length limit.
    pub fn added<'a>(&self, vectors: Rows<'a>) -> Result<Embedded<'a>> {
        if self.metric == Metric::Euclidean {
            return Ok(Embedded::Given(vectors));
        }
        let mut made = Matrix::zeros(vectors.len(), self.inner_dim(vectors.dim()));
        for (row, vector) in vectors.iter().enumerate() {
            self.check(vector, row)?;
            self.embed_into(vector, made.row_mut(row));
        }
        Ok(Embedded::Made(made))
    }

    /// Embeds vectors to compare them with stored ones, on the calling thread. Unlike [`Embedding::added`] it takes
    /// vectors beyond the length limit. An error names the first invalid row.
    pub fn compared<'a>(&self, vectors: Rows<'a>) -> Result<Embedded<'a>> {
        if self.metric == Metric::Euclidean {
            return Ok(Embedded::Given(vectors));
        }
        let mut made = Matrix::zeros(vectors.len(), self.inner_dim(vectors.dim()));
        for (row, vector) in vectors.iter().enumerate() {
            match self.check(vector, row) {
                Ok(()) | Err(Error::TooLong { .. }) => self.embed_into(vector, made.row_mut(row)),
                Err(error) => return Err(error),
            }
        }
        Ok(Embedded::Made(made))
    }

    /// For inner products: whether a stored vector is longer than `longest`.
    pub fn is_longer(&self, stored: &[f32], longest: f32) -> bool {
        self.metric == Metric::InnerProduct
            && squares(self.plain(stored)) > f64::from(longest).powi(2)
    }

    /// For inner products: the length of the longest stored vector, otherwise 0.
    pub fn longest_stored<'a>(&self, stored: impl Iterator<Item = &'a [f32]>) -> f32 {
        match self.metric {
            Metric::Euclidean | Metric::Cosine => 0.0,
            Metric::InnerProduct => {
                longest(stored.map(|v| squares(self.plain(v))).fold(0.0, f64::max))
            }
        }
    }

    /// For inner products: the length of the longest vector.
    pub fn longest_of(&self, vectors: Rows<'_>) -> Option<f32> {
        let squared = || vectors.iter().map(squares).fold(0.0, f64::max);
        (self.metric == Metric::InnerProduct).then(|| longest(squared()))
    }

    /// For inner products: an embedding for vectors up to the length `longest`, with headroom by the factor
    /// `reserve`. `None` if this one suffices.
    pub fn lengthened(&self, longest: f32, reserve: f32) -> Option<Self> {
        let is_longer = self.metric == Metric::InnerProduct && longest > self.longest;
        is_longer.then_some(Self {
            metric: self.metric,
            // The largest values would give a larger limit in any dimension.
            longest: (longest * reserve).min(longest.max(MAX_VALUE)),
        })
    }

    /// For inner products: the embedding without a length limit, which the first vectors set.
    pub fn without_room(self) -> Self {
        Self {
            longest: 0.0,
            ..self
        }
    }

    /// Converts a stored vector from another embedding of the same metric to this one.
    pub fn embed_again(&self, stored: &mut [f32]) {
        if self.metric == Metric::InnerProduct {
            let plain = self.plain(stored).to_vec();
            self.embed_into(&plain, stored);
        }
    }

    /// Converts a vector of [`Embedding::plain`] to its stored form.
    pub fn stored(&self, plain: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.inner_dim(plain.len())];
        match self.metric {
            Metric::Cosine => out.copy_from_slice(plain),
            Metric::Euclidean | Metric::InnerProduct => self.embed_into(plain, &mut out),
        }
        out
    }

    /// Fails for a vector that cannot be embedded. Errors name it by `row`.
    fn check(&self, vector: &[f32], row: usize) -> Result<()> {
        match self.metric {
            Metric::Cosine if vector.iter().all(|v| *v == 0.0) => Err(Error::ZeroVector { row }),
            Metric::InnerProduct if squares(vector) > f64::from(self.longest).powi(2) => {
                Err(Error::TooLong {
                    row,
                    length: length(vector),
                    longest: self.longest,
                })
            }
            _ => Ok(()),
        }
    }

    /// Embeds a checked vector.
    fn embed_into(&self, vector: &[f32], out: &mut [f32]) {
        let (same, more) = out.split_at_mut(vector.len());
        match self.metric {
            Metric::Euclidean => same.copy_from_slice(vector),
            Metric::Cosine => scale_to(vector, 1.0, same),
            Metric::InnerProduct => {
                same.copy_from_slice(vector);
                let rest = f64::from(self.longest).powi(2) - squares(vector);
                more[0] = rest.max(0.0).sqrt() as f32;
            }
        }
    }

    /// Fails for a query that the metric does not support. Errors name it by `row`.
    pub fn check_query(&self, query: &[f32], row: usize) -> Result<()> {
        if self.metric == Metric::Cosine && query.iter().all(|v| *v == 0.0) {
            return Err(Error::ZeroQuery { row });
        }
        Ok(())
    }

    /// Embeds a checked query: returns it unchanged, or embedded in `buffer`.
    pub fn query<'a>(&self, query: &'a [f32], buffer: &'a mut Vec<f32>) -> &'a [f32] {
        if self.metric == Metric::Euclidean {
            return query;
        }
        buffer.clear();
        buffer.resize(self.inner_dim(query.len()), 0.0);
        self.embed_query_into(query, buffer);
        buffer
    }

    /// Embeds checked queries on the calling thread.
    pub fn queries<'a>(&self, queries: Rows<'a>) -> Embedded<'a> {
        if self.metric == Metric::Euclidean {
            return Embedded::Given(queries);
        }
        let mut made = Matrix::zeros(queries.len(), self.inner_dim(queries.dim()));
        for (row, query) in queries.iter().enumerate() {
            self.embed_query_into(query, made.row_mut(row));
        }
        Embedded::Made(made)
    }

    fn embed_query_into(&self, query: &[f32], out: &mut [f32]) {
        let (same, _) = out.split_at_mut(query.len());
        match self.metric {
            Metric::Euclidean => same.copy_from_slice(query),
            Metric::Cosine => scale_to(query, 1.0, same),
            Metric::InnerProduct => scale_to(query, f64::from(self.longest), same),
        }
    }

    /// Converts a stored vector to its form as a query.
    pub fn as_query(&self, stored: &mut [f32]) {
        if self.metric == Metric::InnerProduct {
            let query = self.plain(stored).to_vec();
            stored.fill(0.0);
            self.embed_query_into(&query, stored);
        }
    }

    /// The user's vector of a stored one. For the cosine metric it is normalized.
    pub fn plain<'a>(&self, stored: &'a [f32]) -> &'a [f32] {
        &stored[..self.outer_dim(stored.len())]
    }

    /// The reported distance of a stored vector, given its squared distance from the embedded query.
    pub fn reported(&self, query: &[f32], squared: f32, stored: &[f32]) -> f32 {
        match self.metric {
            Metric::Euclidean => squared.sqrt(),
            Metric::Cosine => 0.5 * squared,
            Metric::InnerProduct => {
                // A subtraction, because negation would turn 0 into -0.
                (0.0 - inner_product(query, self.plain(stored))) as f32
            }
        }
    }

    /// Whether [`Embedding::reported`] reads the stored vector.
    pub fn reads_vectors(&self) -> bool {
        self.metric == Metric::InnerProduct
    }

    /// Number of embedded neighbours that contain the best `k` by reported distance. Squared distances order inner
    /// products only up to rounding.
    pub fn widened_k(&self, k: usize) -> usize {
        match self.metric {
            Metric::Euclidean | Metric::Cosine => k,
            Metric::InnerProduct => k.saturating_add((k / 4).max(8)),
        }
    }

    /// Upper limit of the squared embedded distance of vectors whose reported distance is at most `radius`.
    ///
    /// Other vectors may be within it as well, so the reported distance decides. It is negative if no vector can be
    /// that near.
    pub fn limit(&self, query: &[f32], radius: f32) -> f32 {
        let radius = f64::from(radius);
        let limit = match self.metric {
            Metric::Euclidean | Metric::Cosine if radius < 0.0 => -1.0,
            Metric::Euclidean => radius * radius * (1.0 + 4.0 * EPSILON),
            Metric::Cosine => 2.0 * radius,
            Metric::InnerProduct => {
                let (asked, longest) = (length(query), f64::from(self.longest));
                if asked == 0.0 || longest == 0.0 {
                    // All inner products are 0.
                    return if radius < 0.0 { -1.0 } else { f32::INFINITY };
                }
                let squared = 2.0 * longest * (longest + (radius + EPSILON * radius.abs()) / asked);
                // Rounding of a sum of `dim` squares, then rounding of the embedded coordinates relative to the
                // squared length.
                let sum = squared.max(0.0) * (query.len() as f64 + 4.0) * 2.0 * EPSILON;
                squared + sum + 16.0 * EPSILON * longest * longest
            }
        };
        // Round up, so that no vector is lost.
        (limit as f32).next_up()
    }
}

/// Relative rounding error of 32-bit floats.
const EPSILON: f64 = 1.0 / (1 << 24) as f64;

/// The smallest 32-bit number whose square is at least `squared`.
fn longest(squared: f64) -> f32 {
    let mut longest = squared.sqrt() as f32;
    while f64::from(longest).powi(2) < squared {
        longest = longest.next_up();
    }
    longest
}

/// Scales `vector` to a length. A zero vector stays zero.
fn scale_to(vector: &[f32], wanted: f64, out: &mut [f32]) {
    let length = length(vector);
    let factor = if length > 0.0 { wanted / length } else { 0.0 };
    for (out, v) in out.iter_mut().zip(vector) {
        *out = (f64::from(*v) * factor) as f32;
    }
}

#[cfg(test)]
mod tests;
