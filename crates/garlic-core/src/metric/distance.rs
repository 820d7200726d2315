//! The metrics, and the reported distance between two vectors. Lengths and inner products are computed in double
//! precision.

use serde::{Deserialize, Serialize};

use super::double_precision::MIN_F32_DISTANCE;
use super::scale_to;
use crate::error::{Error, Result};

/// The metric of an index. The set is closed: a new metric would be a breaking change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Length of the difference.
    #[default]
    Euclidean,
    /// 1 minus the cosine of the angle. Zero vectors are rejected.
    Cosine,
    /// Negative inner product.
    InnerProduct,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 3] = [Self::Euclidean, Self::Cosine, Self::InnerProduct];

    /// The name in configurations and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Euclidean => "euclidean",
            Self::Cosine => "cosine",
            Self::InnerProduct => "inner_product",
        }
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Metric {
    type Err = Error;

    /// The metric of this name, or of the short one that other libraries have for it.
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "euclidean" | "l2" => Ok(Self::Euclidean),
            "cosine" | "cos" => Ok(Self::Cosine),
            "inner_product" | "ip" | "dot" => Ok(Self::InnerProduct),
            _ => Err(Error::Config {
                key: "metric".into(),
                message: format!(
                    "there is no metric `{name}`; the metrics are: euclidean, cosine, inner_product (also l2, cos, ip, \
                     dot)"
                ),
            }),
        }
    }
}

/// Number of parallel sums: few enough for registers, enough to hide the latency of an addition.
const LANES: usize = 8;

/// The inner product.
pub(super) fn inner_product(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0f64; LANES];
    let (a_parts, b_parts) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_parts.remainder().iter().zip(b_parts.remainder());
    let rest: f64 = rest.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
    for (x, y) in a_parts.zip(b_parts) {
        for lane in 0..LANES {
            sums[lane] += f64::from(x[lane]) * f64::from(y[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Euclidean distance, in double precision if squares lose precision in 32 bits.
fn euclidean(a: &[f32], b: &[f32]) -> f32 {
    let distance = garlic_simd::l2_squared(a, b).sqrt();
    if f64::from(distance) >= MIN_F32_DISTANCE {
        return distance;
    }
    let differences = a.iter().zip(b).map(|(x, y)| f64::from(*x) - f64::from(*y));
    differences.map(|d| d * d).sum::<f64>().sqrt() as f32
}

/// The squared length.
pub(super) fn squares(vector: &[f32]) -> f64 {
    inner_product(vector, vector)
}

/// The length.
pub(super) fn length(vector: &[f32]) -> f64 {
    squares(vector).sqrt()
}

impl Metric {
    /// The distance between a vector and a query as reported by an index with 32-bit vectors, including rounding. Use
    /// it for ground truth. The result is meaningless for a zero vector with the cosine metric.
    ///
    /// # Panics
    /// Panics if the dimensions differ.
    pub fn distance(self, vector: &[f32], query: &[f32]) -> f32 {
        let mut scaled = Vec::new();
        self.scale(vector, &mut scaled);
        self.scale(query, &mut scaled);
        let (vector, query) = scaled.split_at(vector.len());
        self.distance_scaled(vector, query)
    }

    /// Appends a vector to `out` in the form of [`Metric::distance_scaled`]: normalized for cosines, otherwise
    /// unchanged.
    pub fn scale(self, vector: &[f32], out: &mut Vec<f32>) {
        match self {
            Self::Euclidean | Self::InnerProduct => out.extend_from_slice(vector),
            Self::Cosine => {
                let from = out.len();
                out.resize(from + vector.len(), 0.0);
                scale_to(vector, 1.0, &mut out[from..]);
            }
        }
    }

    /// [`Metric::distance`] of a vector and a query in the form of [`Metric::scale`].
    ///
    /// # Panics
    /// Panics if the dimensions differ.
    pub fn distance_scaled(self, vector: &[f32], query: &[f32]) -> f32 {
        assert_eq!(vector.len(), query.len(), "dimensions differ");
        match self {
            Self::Euclidean => euclidean(query, vector),
            Self::Cosine => 0.5 * garlic_simd::l2_squared(query, vector),
            Self::InnerProduct => (0.0 - inner_product(query, vector)) as f32,
        }
    }
}
