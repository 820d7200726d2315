//! Random numbers of the distributions that the kinds are made of.

use garlic_linalg::{random_stream, uniform_below, uniform_unit};
use rand::Rng;

/// Random numbers for the rows.
pub(super) const ROWS: u64 = 1;
/// Random numbers for what all rows share: centres, directions, scales.
pub(super) const SHAPE: u64 = 2;

/// A seeded stream of random numbers.
pub(super) struct Stream(Box<dyn Rng>);

impl Stream {
    pub(super) fn new(seed: u64, task: u64) -> Self {
        Self(Box::new(random_stream(seed, task)))
    }

    /// Uniform in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        uniform_unit(&mut self.0)
    }

    /// Uniform in [low, high).
    pub(super) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in the logarithm.
    pub(super) fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// A whole number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        uniform_below(&mut self.0, n)
    }

    /// Standard normal (Box-Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Standard normal numbers.
    pub(super) fn normals(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.normal()).collect()
    }

    /// Student's t with `freedom` degrees of freedom (Bailey's polar method, one of the pair).
    pub(super) fn student(&mut self, freedom: f64) -> f64 {
        loop {
            let (u, v) = (self.uniform(-1.0, 1.0), self.uniform(-1.0, 1.0));
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                let scale = freedom * (square.powf(-2.0 / freedom) - 1.0) / square;
                return u * scale.sqrt();
            }
        }
    }

    /// An index drawn with the weights whose running sums these are.
    pub(super) fn weighted(&mut self, cumulative: &[f64]) -> usize {
        let total = cumulative.last().copied().unwrap_or(0.0);
        let u = self.unit() * total;
        let chosen = cumulative.partition_point(|&sum| sum <= u);
        chosen.min(cumulative.len().saturating_sub(1))
    }
}

/// `n` rows, each written by `fill`.
pub(super) fn rows(
    n: usize,
    dim: usize,
    seed: u64,
    mut fill: impl FnMut(&mut Stream, &mut [f32]),
) -> (Vec<f32>, usize) {
    let mut stream = Stream::new(seed, ROWS);
    let mut values = vec![0.0; n * dim];
    for row in values.chunks_exact_mut(dim) {
        fill(&mut stream, row);
    }
    (values, dim)
}

/// `n` rows of independent values.
pub(super) fn values(
    n: usize,
    dim: usize,
    seed: u64,
    mut value: impl FnMut(&mut Stream) -> f64,
) -> (Vec<f32>, usize) {
    rows(n, dim, seed, |stream, row| {
        row.iter_mut().for_each(|v| *v = value(stream) as f32);
    })
}

/// Scales a row to unit length; zeros stay.
pub(super) fn normalise(row: &mut [f32]) {
    let length = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
    if length > 0.0 {
        let factor = 1.0 / length.sqrt();
        row.iter_mut()
            .for_each(|v| *v = (f64::from(*v) * factor) as f32);
    }
}
