//! A data set of known shape: needles, pancakes and balls of different density, dimension and size.
//!
//! Real descriptors mix regions of different intrinsic dimension; here the regions are labelled, so that a
//! report can show which of them an index handles well.

use garlic_linalg::{random_stream, uniform_below, uniform_unit};
use rand::Rng;
use serde::Serialize;

use crate::error::{Error, Result};

/// Shape of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stratum {
    /// One or two long dimensions.
    Needle,
    /// Five to ten wide dimensions.
    Pancake,
    /// The same width in every dimension.
    Ball,
}

impl Stratum {
    /// All shapes, in the order of their names in tables and plots.
    pub const ALL: [Self; 3] = [Self::Needle, Self::Pancake, Self::Ball];

    /// The plural in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Needle => "needles",
            Self::Pancake => "pancakes",
            Self::Ball => "balls",
        }
    }
}

/// What to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticOptions {
    /// Number of base vectors.
    pub points: usize,
    /// Number of queries, drawn from the same mixture but never equal to a base draw.
    pub queries: usize,
    /// Dimension, at least 16.
    pub dim: usize,
    /// Seed of everything.
    pub seed: u64,
}

impl Default for SyntheticOptions {
    fn default() -> Self {
        Self {
            points: 100_000,
            queries: 1000,
            dim: 64,
            seed: 0,
        }
    }
}

/// The drawn data.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// Dimension.
    pub dim: usize,
    /// Base vectors, row-major.
    pub vectors: Vec<f32>,
    /// Queries, row-major.
    pub queries: Vec<f32>,
    /// Shape of the cluster of each base vector.
    pub strata: Vec<Stratum>,
    /// Shape of the cluster of each query.
    pub query_strata: Vec<Stratum>,
    /// Number of clusters of each shape, in the order of [`Stratum::ALL`].
    pub clusters: [usize; 3],
}

/// Clusters of each shape.
const CLUSTERS: [usize; 3] = [24, 24, 12];
/// Standard deviation of a centre's coordinates is this over the square root of the dimension: centres are
/// about 6 apart in any dimension.
const SPREAD: f64 = 4.0;
// Random streams.
const SHAPES: u64 = 1;
const BASE: u64 = 2;
const QUERIES: u64 = 3;

/// Draws the data set of `options`.
pub fn synthetic(options: &SyntheticOptions) -> Result<Synthetic> {
    let parameter = |name, value: usize, rule| Error::Parameter {
        name,
        value: value.to_string(),
        rule,
    };
    if options.dim < 16 {
        return Err(parameter(
            "dim",
            options.dim,
            "the shapes need at least 16 dimensions",
        ));
    }
    if options.points == 0 {
        return Err(parameter("points", 0, "draw at least one point"));
    }
    if options.queries == 0 {
        return Err(Error::NoQueries);
    }
    let mixture = Mixture::new(options.dim, options.seed);
    let (vectors, strata) = mixture.draw(options.points, options.seed, BASE);
    let (queries, query_strata) = mixture.draw(options.queries, options.seed, QUERIES);
    Ok(Synthetic {
        dim: options.dim,
        vectors,
        queries,
        strata,
        query_strata,
        clusters: CLUSTERS,
    })
}

struct Cluster {
    stratum: Stratum,
    centre: Vec<f64>,
    /// Orthonormal directions, each times its width.
    axes: Vec<Vec<f64>>,
    /// Width in every direction.
    thickness: f64,
}

struct Mixture {
    clusters: Vec<Cluster>,
    /// Weights summed up; the last is the total.
    cumulative: Vec<f64>,
}

impl Mixture {
    fn new(dim: usize, seed: u64) -> Self {
        let mut rng = random_stream(seed, SHAPES);
        let mut clusters = Vec::new();
        let mut cumulative = Vec::new();
        let mut total = 0.0;
        for (stratum, count) in Stratum::ALL.into_iter().zip(CLUSTERS) {
            for _ in 0..count {
                clusters.push(Cluster::new(stratum, dim, &mut rng));
                // Densities differ: the heaviest cluster has about eight times the points of the lightest.
                total += log_uniform(&mut rng, 0.35, 2.8);
                cumulative.push(total);
            }
        }
        Self {
            clusters,
            cumulative,
        }
    }

    fn draw(&self, n: usize, seed: u64, task: u64) -> (Vec<f32>, Vec<Stratum>) {
        let mut rng = random_stream(seed, task);
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        let mut values = Vec::new();
        let mut strata = Vec::with_capacity(n);
        for _ in 0..n {
            let u = uniform_unit(&mut rng) * total;
            let chosen = self
                .cumulative
                .partition_point(|&c| c <= u)
                .min(self.clusters.len() - 1);
            let cluster = &self.clusters[chosen];
            cluster.draw(&mut rng, &mut values);
            strata.push(cluster.stratum);
        }
        (values, strata)
    }
}

impl Cluster {
    fn new(stratum: Stratum, dim: usize, rng: &mut impl Rng) -> Self {
        let spread = SPREAD / (dim as f64).sqrt();
        let centre = (0..dim).map(|_| spread * normal(rng)).collect();
        let (rank, widths, thickness) = match stratum {
            Stratum::Needle => (
                1 + uniform_below(rng, 2),
                (2.0, 6.0),
                log_uniform(rng, 0.01, 0.03),
            ),
            Stratum::Pancake => (
                5 + uniform_below(rng, 6),
                (0.6, 2.0),
                log_uniform(rng, 0.02, 0.06),
            ),
            Stratum::Ball => (0, (1.0, 1.0), log_uniform(rng, 0.08, 0.4)),
        };
        let mut axes = orthonormal(rank, dim, rng);
        for axis in &mut axes {
            let width = log_uniform(rng, widths.0, widths.1);
            axis.iter_mut().for_each(|v| *v *= width);
        }
        Self {
            stratum,
            centre,
            axes,
            thickness,
        }
    }

    fn draw(&self, rng: &mut impl Rng, out: &mut Vec<f32>) {
        let mut point = self.centre.clone();
        for axis in &self.axes {
            // Needles are filled evenly along their length, pancakes thin out towards the rim.
            let t = match self.stratum {
                Stratum::Needle => 2.0 * uniform_unit(rng) - 1.0,
                _ => normal(rng),
            };
            point.iter_mut().zip(axis).for_each(|(p, a)| *p += t * a);
        }
        out.extend(
            point
                .into_iter()
                .map(|p| (p + self.thickness * normal(rng)) as f32),
        );
    }
}

/// `rank` random orthonormal vectors by Gram-Schmidt.
fn orthonormal(rank: usize, dim: usize, rng: &mut impl Rng) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(rank);
    while basis.len() < rank.min(dim) {
        let mut v: Vec<f64> = (0..dim).map(|_| normal(rng)).collect();
        for b in &basis {
            let along: f64 = v.iter().zip(b).map(|(x, y)| x * y).sum();
            v.iter_mut().zip(b).for_each(|(x, y)| *x -= along * y);
        }
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 1e-6 {
            v.iter_mut().for_each(|x| *x /= norm);
            basis.push(v);
        }
    }
    basis
}

/// A standard normal number (Box-Muller).
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform_unit(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform_unit(rng)).cos()
}

/// Uniform in the logarithm.
fn log_uniform(rng: &mut impl Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(uniform_unit(rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: SyntheticOptions = SyntheticOptions {
        points: 600,
        queries: 50,
        dim: 32,
        seed: 7,
    };

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let a = synthetic(&SMALL).unwrap();
        assert_eq!(a, synthetic(&SMALL).unwrap());
        assert_ne!(
            a.vectors,
            synthetic(&SyntheticOptions { seed: 8, ..SMALL })
                .unwrap()
                .vectors
        );
        // More points continue the same draw.
        let more = synthetic(&SyntheticOptions {
            points: 700,
            ..SMALL
        })
        .unwrap();
        assert_eq!(more.vectors[..a.vectors.len()], a.vectors);
        assert_eq!(more.queries, a.queries);
    }

    #[test]
    fn shapes_are_what_they_say() {
        let s = synthetic(&SyntheticOptions {
            points: 4000,
            ..SMALL
        })
        .unwrap();
        assert_eq!((s.vectors.len(), s.queries.len()), (4000 * 32, 50 * 32));
        assert!(s.vectors.iter().all(|v| v.is_finite()));
        for stratum in Stratum::ALL {
            let share = s.strata.iter().filter(|&&t| t == stratum).count() as f64 / 4000.0;
            assert!(share > 0.08, "{stratum:?} {share}");
        }
        let queries: Vec<&[f32]> = s.queries.chunks(32).collect();
        assert!(s.vectors.chunks(32).all(|v| !queries.contains(&v)));
    }

    #[test]
    fn bases_are_orthonormal() {
        let basis = orthonormal(10, 20, &mut random_stream(1, 1));
        for (i, a) in basis.iter().enumerate() {
            for (j, b) in basis.iter().enumerate() {
                let dot: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn impossible_requests_are_errors() {
        for options in [
            SyntheticOptions { dim: 3, ..SMALL },
            SyntheticOptions { points: 0, ..SMALL },
            SyntheticOptions {
                queries: 0,
                ..SMALL
            },
        ] {
            assert!(synthetic(&options).is_err());
        }
    }
}
