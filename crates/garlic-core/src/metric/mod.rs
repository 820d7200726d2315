//! What "near" means to the user, and how it becomes Euclidean at the boundary of an index.
//!
//! Everything inside an index is Euclidean. Vectors and queries are embedded on their way in, distances are
//! turned into what the metric reports on their way out:
//!
//! - cosine: vectors and queries are scaled to unit length; the cosine distance is half the squared distance;
//! - inner product: a vector x gets one coordinate more, sqrt(M² - |x|²) with M the largest length, so that all
//!   are equally long; a query gets 0 there and the length M, which puts rounding at its least. The squared
//!   distance is then 2 M² less the inner product times 2 M / |q|: the nearest have the largest inner product.
//!   The reported distance, minus the inner product, is computed from vector and query, for the squared distance
//!   has lost digits to M².

mod close;
mod distance;
mod report;

use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::validate::LARGEST_VALUE;
pub use close::Settled;
pub use distance::Metric;
use distance::{inner_product, length, squares};
pub use report::{Asked, Points};

/// The way from the user's vectors to those of the index, and of distances back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Embedding {
    metric: Metric,
    /// Inner product: the largest length (M); else 0.
    longest: f32,
}

/// Rows as the index takes them: those that were given, or new ones.
#[derive(Debug)]
pub enum Embedded<'a> {
    /// Those that were given.
    Given(Rows<'a>),
    /// New ones.
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
    /// The embedding that `vectors` ask for; they are finite. Runs in rayon's current pool.
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

    /// The embedding of an index file, from what it keeps beside the metric; `None` if they do not belong
    /// together.
    pub fn restore(metric: Metric, longest: Option<f32>, inner_dim: u64) -> Option<Self> {
        match (metric, longest) {
            (Metric::InnerProduct, Some(longest)) if inner_dim > 1 => {
                // What vectors with the largest values that a build takes can lead to.
                let most = f64::from(LARGEST_VALUE) * (inner_dim as f64).sqrt();
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

    /// What an index file keeps beside the metric: the largest length, for inner products.
    pub fn longest(&self) -> Option<f32> {
        (self.metric == Metric::InnerProduct).then_some(self.longest)
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The dimension of the user's vectors, from that of the index's.
    pub fn outer_dim(&self, inner: usize) -> usize {
        inner - self.more()
    }

    /// The dimension of the index's vectors, from that of the user's.
    pub fn inner_dim(&self, outer: usize) -> usize {
        outer + self.more()
    }

    /// Coordinates that the embedding adds.
    fn more(&self) -> usize {
        usize::from(self.metric == Metric::InnerProduct)
    }

    /// The vectors that an index is built from, embedded; an error names the first row that cannot be. Runs in
    /// rayon's current pool.
    pub fn vectors<'a>(&self, vectors: Rows<'a>) -> Result<Embedded<'a>> {
        if self.metric == Metric::Euclidean {
            return Ok(Embedded::Given(vectors));
        }
        let refused = (0..vectors.len())
            .into_par_iter()
            .map(|row| self.check(vectors.row(row), row))
            .find_first(Result::is_err);
        if let Some(error) = refused {
            error?;
        }
        let mut made = Matrix::zeros(vectors.len(), self.inner_dim(vectors.dim()));
        let cols = made.cols();
        let rows = made.as_mut_slice().par_chunks_exact_mut(cols).enumerate();
        rows.for_each(|(row, out)| self.put(vectors.row(row), out));
        Ok(Embedded::Made(made))
    }

    /// Vectors that join an index, embedded on this thread; an error names the first row that cannot be, such as
    /// one longer than the index was made for.
    pub fn added<'a>(&self, vectors: Rows<'a>) -> Result<Embedded<'a>> {
        if self.metric == Metric::Euclidean {
            return Ok(Embedded::Given(vectors));
        }
        let mut made = Matrix::zeros(vectors.len(), self.inner_dim(vectors.dim()));
        for (row, vector) in vectors.iter().enumerate() {
            self.check(vector, row)?;
            self.put(vector, made.row_mut(row));
        }
        Ok(Embedded::Made(made))
    }

    /// For inner products, whether a stored vector is longer than `longest`.
    pub fn is_longer(&self, stored: &[f32], longest: f32) -> bool {
        self.metric == Metric::InnerProduct
            && squares(self.plain(stored)) > f64::from(longest).powi(2)
    }

    /// For inner products, the length of the longest of some stored vectors; else 0.
    pub fn longest_stored<'a>(&self, stored: impl Iterator<Item = &'a [f32]>) -> f32 {
        match self.metric {
            Metric::Euclidean | Metric::Cosine => 0.0,
            Metric::InnerProduct => {
                longest(stored.map(|v| squares(self.plain(v))).fold(0.0, f64::max))
            }
        }
    }

    /// For inner products, the length of the longest of some vectors.
    pub fn longest_of(&self, vectors: Rows<'_>) -> Option<f32> {
        let squared = || vectors.iter().map(squares).fold(0.0, f64::max);
        (self.metric == Metric::InnerProduct).then(|| longest(squared()))
    }

    /// For inner products, an embedding with room for vectors of length `longest`, and in `reserve` times that for others
    /// to come; none when this one has the room.
    pub fn lengthened(&self, longest: f32, reserve: f32) -> Option<Self> {
        let is_longer = self.metric == Metric::InnerProduct && longest > self.longest;
        is_longer.then_some(Self {
            metric: self.metric,
            // Less than the largest values would lead to, in any dimension.
            longest: (longest * reserve).min(longest.max(LARGEST_VALUE)),
        })
    }

    /// For inner products, the embedding before any vector has come: the first ones tell how much room they need.
    pub fn without_room(self) -> Self {
        Self {
            longest: 0.0,
            ..self
        }
    }

    /// Turns a stored vector of another embedding of the same metric into one of this.
    pub fn embed_again(&self, stored: &mut [f32]) {
        if self.metric == Metric::InnerProduct {
            let plain = self.plain(stored).to_vec();
            self.put(&plain, stored);
        }
    }

    /// A vector as [`Embedding::plain`] gives it, in the form in which it is stored.
    pub fn stored(&self, plain: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.inner_dim(plain.len())];
        match self.metric {
            Metric::Cosine => out.copy_from_slice(plain),
            Metric::Euclidean | Metric::InnerProduct => self.put(plain, &mut out),
        }
        out
    }

    /// Fails for a vector that has no place in the index; `row` is what the error calls it.
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

    /// Embeds a vector that has been checked.
    fn put(&self, vector: &[f32], out: &mut [f32]) {
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

    /// Fails for a query that the metric says nothing about; `row` is what the error calls it.
    pub fn check_query(&self, query: &[f32], row: usize) -> Result<()> {
        if self.metric == Metric::Cosine && query.iter().all(|v| *v == 0.0) {
            return Err(Error::ZeroQuery { row });
        }
        Ok(())
    }

    /// A query that has been checked, embedded: itself, or what is then in `buffer`.
    pub fn query<'a>(&self, query: &'a [f32], buffer: &'a mut Vec<f32>) -> &'a [f32] {
        if self.metric == Metric::Euclidean {
            return query;
        }
        buffer.clear();
        buffer.resize(self.inner_dim(query.len()), 0.0);
        self.put_query(query, buffer);
        buffer
    }

    /// Queries that have been checked, embedded on this thread.
    pub fn queries<'a>(&self, queries: Rows<'a>) -> Embedded<'a> {
        if self.metric == Metric::Euclidean {
            return Embedded::Given(queries);
        }
        let mut made = Matrix::zeros(queries.len(), self.inner_dim(queries.dim()));
        for (row, query) in queries.iter().enumerate() {
            self.put_query(query, made.row_mut(row));
        }
        Embedded::Made(made)
    }

    fn put_query(&self, query: &[f32], out: &mut [f32]) {
        let (same, _) = out.split_at_mut(query.len());
        match self.metric {
            Metric::Euclidean => same.copy_from_slice(query),
            Metric::Cosine => scale_to(query, 1.0, same),
            Metric::InnerProduct => scale_to(query, f64::from(self.longest), same),
        }
    }

    /// Turns a stored vector into what it would be as a query.
    pub fn as_query(&self, stored: &mut [f32]) {
        if self.metric == Metric::InnerProduct {
            let query = self.plain(stored).to_vec();
            stored.fill(0.0);
            self.put_query(&query, stored);
        }
    }

    /// A stored vector as the user knows it; of the cosine metric the vector of unit length.
    pub fn plain<'a>(&self, stored: &'a [f32]) -> &'a [f32] {
        &stored[..self.outer_dim(stored.len())]
    }

    /// What is reported of a stored vector at this squared distance from the embedded query.
    pub fn reported(&self, query: &[f32], squared: f32, stored: &[f32]) -> f32 {
        match self.metric {
            Metric::Euclidean => squared.sqrt(),
            Metric::Cosine => 0.5 * squared,
            Metric::InnerProduct => {
                // Not the negative: 0 has no sign here.
                (0.0 - inner_product(query, self.plain(stored))) as f32
            }
        }
    }

    /// Whether [`Embedding::reported`] looks at the stored vector.
    pub fn reads_vectors(&self) -> bool {
        self.metric == Metric::InnerProduct
    }

    /// Neighbours to look for inside so that the best `k` as they are reported are among them: squared distances
    /// order inner products up to rounding only.
    pub fn wider(&self, k: usize) -> usize {
        match self.metric {
            Metric::Euclidean | Metric::Cosine => k,
            Metric::InnerProduct => k.saturating_add((k / 4).max(8)),
        }
    }

    /// A squared distance inside that no vector exceeds whose reported distance is at most `radius`.
    ///
    /// Others may be within it as well: what is reported decides. Negative where nothing can be that near.
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
                // A sum of `dim` squares, each of a rounded difference; then the rounding of the coordinates
                // that the embedding made, relative to the squared length.
                let sum = squared.max(0.0) * (query.len() as f64 + 4.0) * 2.0 * EPSILON;
                squared + sum + 16.0 * EPSILON * longest * longest
            }
        };
        // Up, so that rounding cuts nothing off.
        (limit as f32).next_up()
    }
}

/// Largest relative error of rounding to 32 bits.
const EPSILON: f64 = 1.0 / (1 << 24) as f64;

/// The least 32-bit number whose square is not below `squared`.
fn longest(squared: f64) -> f32 {
    let mut longest = squared.sqrt() as f32;
    while f64::from(longest).powi(2) < squared {
        longest = longest.next_up();
    }
    longest
}

/// `vector` scaled to a length; zeros where it has none.
fn scale_to(vector: &[f32], wanted: f64, out: &mut [f32]) {
    let length = length(vector);
    let factor = if length > 0.0 { wanted / length } else { 0.0 };
    for (out, v) in out.iter_mut().zip(vector) {
        *out = (f64::from(*v) * factor) as f32;
    }
}

#[cfg(test)]
mod tests;
