//! All parameters of a build.

use garlic_core::config::{Configuration, Rule};
use garlic_core::{Error, Metric, Result, parameters};
use serde::{Deserialize, Serialize};

/// Element type of the stored vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Store {
    /// Bytes if every value is a whole number from 0 to 255, otherwise 32-bit floats.
    Auto,
    /// 32-bit floats.
    F32,
    /// Half precision: half the memory. Distances refer to the rounded vectors.
    F16,
    /// Bytes. Fails if a value is not a whole number from 0 to 255.
    U8,
    /// 8-bit values with a step for every 32 coordinates: a little more than a quarter of the memory. Distances refer
    /// to the rounded vectors.
    Int8,
}

/// Whether an index has a neighbour graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum UseGraph {
    /// If calibration finds that searches cost less with it.
    Auto,
    /// Whatever searches cost, if there are calibration queries.
    On,
    /// Never.
    Off,
}

/// Upper limit of the number of cells.
pub(crate) const MAX_CELLS: usize = 1 << 20;

parameters! {
    /// The truncated space of principal axes that cells live in.
    pub struct TransformOptions in "transform" {
        /// Share of the variance that the truncated space keeps.
        keep_variance: f64 = 0.9, Rule::SHARE;
        /// Upper limit of the dimension of that space.
        max_dim: usize = 256, Rule::AT_LEAST_ONE;
    }
}

parameters! {
    /// How points are partitioned into cells.
    pub struct PartitionOptions in "partition" {
        /// Number of cells. 0 chooses a quarter of the square root of the number of points.
        cells: usize = 0, Rule::new("must be at most 1048576", |v| *v <= MAX_CELLS);
        /// Number of principal axes per cell. 0 chooses from the data.
        axes: usize = 0, Rule::new("must be at most 256", |v| *v <= 256);
        /// Strength of the anisotropy in the score of a cell. 0 is the plain distance to the mean.
        anisotropy: f64 = 0.5, Rule::new("must be in [0, 1]", |v| (0.0..=1.0).contains(v));
        /// Rounds of assignment and refitting.
        rounds: usize = 8, Rule::any();
        /// A point is also stored in the second nearest cell if the distance to it is at most this multiple of the
        /// distance to the nearest. 0 stores every point in one cell. An index with points in two cells is read-only.
        spill: f64 = 0.0, Rule::new(
            "must be at least 1, or 0",
            |v| *v == 0.0 || *v >= 1.0 && v.is_finite(),
        );
    }
}

parameters! {
    /// How cells are split into bins.
    pub struct BinOptions in "bins" {
        /// Mean number of points per bin.
        bin_size: usize = 48, Rule::new(
            "must be at least 1 and at most 65536",
            |v| (1..=1 << 16).contains(v),
        );
    }
}

parameters! {
    /// The neighbour graph.
    pub struct GraphOptions in "graph" {
        /// Whether the index has a neighbour graph: auto, on or off. Auto builds it if searches then cost less.
        graph: UseGraph = UseGraph::Auto, Rule::any();
    }
}

parameters! {
    /// How codes and vectors are stored.
    pub struct StorageOptions in "storage" {
        /// Bits per coordinate in a code. 0 chooses from the number of points.
        code_bits: usize = 0, Rule::new("must be 8, 4 or 0", |v| matches!(v, 0 | 4 | 8));
        /// Type of the stored vectors: auto, f32, f16, int8 or u8. Auto uses u8 if every value is a whole number from
        /// 0 to 255, otherwise f32. Vectors are rounded with f16 and int8.
        store: Store = Store::Auto, Rule::any();
    }
}

parameters! {
    /// How recall targets are tuned.
    pub struct TuningOptions in "tuning" {
        /// Number of points held out of the training as calibration queries. 0 turns calibration off, and every recall
        /// target reads everything.
        calibration_queries: usize = 750, Rule::any();
        /// Default recall target of searches.
        recall: f64 = 0.95, Rule::new(
            "must be above 0 and below 1; for all neighbours search exactly",
            |v| *v > 0.0 && *v < 1.0,
        );
    }
}

parameters! {
    /// All parameters of a build, in groups.
    ///
    /// The trait [`Configuration`] sets parameters by name and checks them. Later versions may add parameters, so use
    /// `..Config::default()`.
    pub struct Config in "general" {
        /// Seed of all random choices. The same data, parameters and seed give the same index.
        seed: u64 = 0, Rule::any();
        /// The metric: euclidean, cosine or inner_product.
        metric: Metric = Metric::Euclidean, Rule::any();
    }
    groups {
        /// The space that cells live in.
        transform: TransformOptions;
        /// Cells.
        partition: PartitionOptions;
        /// Bins.
        bins: BinOptions;
        /// The neighbour graph.
        graph: GraphOptions;
        /// Codes and vectors.
        storage: StorageOptions;
        /// Recall targets.
        tuning: TuningOptions;
    }
}

impl Configuration for Config {
    fn check_together(&self) -> Result<()> {
        if self.partition.spill > 0.0 && self.graph.graph == UseGraph::On {
            return Err(Error::Config {
                key: "graph".into(),
                message: "a graph needs every point in one cell; use spill 0, or graph off".into(),
            });
        }
        let message = match (self.metric, self.storage.store) {
            (Metric::Cosine | Metric::InnerProduct, Store::U8) => {
                "u8 goes with the metric euclidean only: the others keep vectors that are no whole numbers; use auto, or f32"
            }
            (Metric::InnerProduct, Store::F16) => {
                "f16 does not go with the metric inner_product: the order of inner products needs more digits; use auto or f32"
            }
            // Vectors get a coordinate that makes them equally long. Rounding moves it by up to a 254th of the largest
            // length, which is more than inner products of neighbours differ by.
            (Metric::InnerProduct, Store::Int8) => {
                "int8 does not go with the metric inner_product: the order of inner products needs more digits; use auto or f32"
            }
            _ => return Ok(()),
        };
        Err(Error::Config {
            key: "store".into(),
            message: message.into(),
        })
    }
}
