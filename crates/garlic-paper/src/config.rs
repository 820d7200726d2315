//! Every parameter of the method in one typed place.
//!
//! A [`Config`] starts from a [`Preset`]; a TOML file or single `key = value` settings change it. Unknown keys
//! are errors that name the nearest key.

mod edit;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::metric::Metric;

/// A named set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The fast path: tempered cells, learned bins, local codes, recall as the one knob.
    #[default]
    Default,
    /// The published method with its published parameters.
    Paper,
}

impl std::str::FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "default" => Ok(Self::Default),
            "paper" => Ok(Self::Paper),
            other => Err(Error::Config {
                key: "preset".into(),
                message: format!("there is no preset `{other}`; the presets are: default, paper"),
            }),
        }
    }
}

/// Which cells an index is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Low-rank cells refitted under the tempered score, with learned bins and codes.
    Tempered,
    /// Gaussians trained by gradient, with hyperspherical bins: the published method.
    Gaussians,
}

/// How the vectors are stored in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// As bytes where every value is a whole number from 0 to 255, else as they are.
    Auto,
    /// 32-bit floats.
    F32,
    /// Half precision: half the memory, distances of the rounded vectors.
    F16,
    /// Bytes; an error where a value is not a whole number from 0 to 255.
    U8,
}

/// How the data are scaled before training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalize {
    /// One mean vector is subtracted and one standard deviation divides everything: neighbours do not change.
    Global,
    /// Every coordinate has its own mean and deviation; constant coordinates become zero.
    PerCoordinate,
    /// The data are taken as they are.
    None,
}

/// Where the first means come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// k-means++ seeds.
    KmeansPlusPlus,
    /// k-means++ seeds refined by Lloyd steps.
    Kmeans,
    /// Farthest-point sampling.
    FarthestPoint,
    /// Rows drawn uniformly.
    Random,
}

/// Structure of the Cholesky factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// Lower-triangular factors.
    Full,
    /// Diagonal factors, in the original coordinates (never rotated).
    Diagonal,
    /// One scale per cell.
    Isotropic,
}

/// How a cell that holds too many points is cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitMethod {
    /// DBSCAN; 2-means when it does not find two clusters.
    Dbscan,
    /// 2-means only.
    TwoMeans,
}

/// Most cells of an index.
pub(crate) const MAX_CELLS: usize = 1 << 20;

/// All parameters of building an index. Fields are documented in the order in which they act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seed of every random choice.
    pub seed: u64,
    /// Which cells the index is made of; the published method ignores the keys of the tempered cells and the
    /// other way round.
    pub model: Model,
    /// What "near" means.
    #[serde(default)]
    pub metric: Metric,

    /// Tempered: share of the variance that the rotated and truncated space keeps, in (0, 1].
    pub keep_variance: f64,
    /// Tempered: most dimensions of that space.
    pub max_dim: usize,
    /// Tempered: number of cells; 0 chooses from the number of points.
    pub cells: usize,
    /// Tempered: axes of a cell; 0 chooses from the data.
    pub axes: usize,
    /// Tempered: share of a cell's shape that the score uses (a), in [0, 1].
    pub anisotropy: f64,
    /// Tempered: rounds of assigning and refitting.
    pub rounds: usize,
    /// Tempered: most epochs of the published objective that refine the cells further, with the weights, rates and refinement
    /// of the published method below (full covariances, and sizes of cells that fit their number); 0 leaves it out.
    #[serde(default)]
    pub gradient_epochs: usize,
    /// Tempered: a point also lies in the second nearest cell when that is at most so many times as far as its own, at least
    /// 1; 0 keeps every point in one cell. Such an index is not changed any more.
    #[serde(default)]
    pub spill: f64,
    /// Tempered: points a learned bin holds on average.
    pub bin_size: usize,
    /// Tempered: bits of a coordinate in a point's code, 8 or 4; 0 chooses from the number of points.
    pub code_bits: usize,
    /// Tempered: how the vectors are stored; the published method keeps them as 32-bit floats.
    pub store: Store,
    /// Tempered: points held out as queries of the calibration.
    pub calibration_queries: usize,
    /// Tempered: recall that a search aims at unless it says otherwise, in (0, 1).
    pub recall: f64,

    /// Share of the points that training sees, in (0, 1].
    pub train_fraction: f64,
    /// How the data are scaled.
    pub normalize: Normalize,
    /// Rotate to the global principal axes first. Distances do not change, pruning gets much better.
    /// Ignored for diagonal covariances, which mean the original coordinates.
    pub rotate: bool,

    /// Structure of the Cholesky factors.
    pub covariance: Covariance,
    /// Where the first means come from.
    pub init: Init,
    /// Number of cells to start with (K0).
    pub initial_cells: usize,
    /// Points that the initialisation looks at.
    pub init_sample: usize,
    /// Nearest other means that a cell's initial scale is taken from.
    pub init_neighbours: usize,
    /// Smallest initial scale of a factor; log(m) is no scale when the nearest means are closer than 1.
    pub init_scale_floor: f64,

    /// Mahalanobis radius within which a cell covers a point.
    pub tau: f64,
    /// Weight of the divergence loss: points outside every cell.
    pub weight_divergence: f64,
    /// Weight of the coverage loss: points between several cells.
    pub weight_coverage: f64,
    /// Weight of the anchor loss: cells away from the points they hold.
    pub weight_anchor: f64,
    /// Weight of the shape term inside the anchor loss (alpha).
    pub anchor_shape: f64,

    /// Most passes over the training points.
    pub epochs: usize,
    /// Points per optimiser step.
    pub batch: usize,
    /// Epochs of linear warm-up.
    pub warmup_epochs: usize,
    /// Learning rate of the means: at the start, at the end of the warm-up, at the last epoch.
    pub mean_rate: [f64; 3],
    /// Learning rate of the factors: at the start, at the end of the warm-up, at the last epoch.
    pub factor_rate: [f64; 3],
    /// Adam: decay of the first moment.
    pub adam_beta1: f64,
    /// Adam: decay of the second moment.
    pub adam_beta2: f64,
    /// Adam: added to the denominator.
    pub adam_epsilon: f64,
    /// Adam: forget all moments at every refinement, not only those of new cells.
    pub adam_reset: bool,
    /// Smallest value on the diagonal of a factor.
    pub diagonal_floor: f64,
    /// Stop when the loss has not improved for `patience` epochs after the last refinement.
    pub early_stop: bool,
    /// Epochs without improvement before an early stop.
    pub patience: usize,
    /// Relative improvement of the loss that counts.
    pub min_improvement: f64,

    /// Epochs between checks of what retrieval costs; the cheapest model is kept. 0 keeps the last one.
    pub select_every: usize,
    /// Points held out for these checks.
    pub select_queries: usize,
    /// Share of them that has to find its nearest training point.
    pub select_recall: f64,

    /// Epochs between refinements; the first comes after the warm-up.
    pub refine_every: usize,
    /// Epochs at the end without refinement, so that the last cells settle.
    pub refine_quiet: usize,
    /// Most cells.
    pub max_cells: usize,
    /// Cut cells that hold too many points.
    pub split: bool,
    /// Share of the training points above which a cell is split (gamma).
    pub split_threshold: f64,
    /// How a cell is cut.
    pub split_method: SplitMethod,
    /// Points that a split looks at.
    pub split_sample: usize,
    /// Factor by which the children's L is scaled.
    pub split_scale: f64,
    /// A split that leaves one child more than this share is refused and remembered.
    pub split_refusal: f64,
    /// Copy cells that have many points just outside.
    pub clone: bool,
    /// Share of the training points above which a cell may be cloned.
    pub clone_threshold: f64,
    /// Points in the shell outside over points inside that makes a cell clone (beta).
    pub clone_ratio: f64,
    /// Outer radius of the shell in units of tau (e).
    pub clone_shell: f64,
    /// Share of the shell's points that is sampled for the clone's centre.
    pub clone_sample: f64,
    /// Nearest sampled points that the density at a clone's centre is taken from.
    pub clone_neighbours: usize,
    /// Remove cells that hold next to nothing.
    pub prune: bool,
    /// Epochs between prunings.
    pub prune_every: usize,
    /// Most points of a cell that is pruned.
    pub prune_size: usize,

    /// Dimensions of a cell's frame (r).
    pub rank: usize,
    /// Radial steps of a cell's bins (n_r).
    pub radial_steps: usize,
    /// Steps of every angle of a cell's bins (n_a).
    pub angular_steps: usize,

    /// Cells a query visits unless it says otherwise (k_G).
    pub probes: usize,
    /// Share of a cell's occupied bins a query scans unless it says otherwise (rho).
    pub bins: f64,
}

impl Config {
    /// The parameters of `preset`.
    pub fn preset(preset: Preset) -> Self {
        match preset {
            Preset::Default => Self {
                model: Model::Tempered,
                store: Store::Auto,
                ..Self::paper()
            },
            Preset::Paper => Self::paper(),
        }
    }

    fn paper() -> Self {
        Self {
            seed: 0,
            model: Model::Gaussians,
            metric: Metric::Euclidean,
            keep_variance: 0.9,
            max_dim: 256,
            cells: 0,
            axes: 0,
            anisotropy: 0.5,
            rounds: 8,
            gradient_epochs: 0,
            spill: 0.0,
            bin_size: 48,
            code_bits: 0,
            store: Store::F32,
            calibration_queries: 1000,
            recall: 0.95,
            train_fraction: 1.0,
            normalize: Normalize::Global,
            rotate: true,
            covariance: Covariance::Full,
            init: Init::KmeansPlusPlus,
            initial_cells: 100,
            init_sample: 20_000,
            init_neighbours: 3,
            init_scale_floor: 0.1,
            tau: 3.0,
            weight_divergence: 1.0,
            weight_coverage: 1.0,
            weight_anchor: 0.01,
            anchor_shape: 0.1,
            epochs: 250,
            batch: 20_000,
            warmup_epochs: 35,
            mean_rate: [1e-7, 9e-3, 3e-3],
            factor_rate: [1e-7, 5e-4, 9e-5],
            adam_beta1: 0.9,
            adam_beta2: 0.999,
            adam_epsilon: 1e-8,
            adam_reset: false,
            diagonal_floor: 0.01,
            early_stop: true,
            patience: 30,
            min_improvement: 1e-3,
            select_every: 0,
            select_queries: 300,
            select_recall: 0.9,
            refine_every: 35,
            refine_quiet: 20,
            max_cells: 4096,
            split: true,
            split_threshold: 0.01,
            split_method: SplitMethod::Dbscan,
            split_sample: 1000,
            split_scale: 0.9,
            split_refusal: 0.95,
            clone: true,
            clone_threshold: 8e-4,
            clone_ratio: 0.5,
            clone_shell: 2.2,
            clone_sample: 0.6,
            clone_neighbours: 3,
            prune: true,
            prune_every: 60,
            prune_size: 1,
            rank: 3,
            radial_steps: 6,
            angular_steps: 4,
            probes: 5,
            bins: 0.3,
        }
    }

    /// Whether the data are rotated: asked for, and allowed by the covariance structure.
    pub fn rotates(&self) -> bool {
        self.rotate && self.covariance != Covariance::Diagonal
    }

    /// Fails where matrices of the published method for vectors of this dimension are more than memory can hold.
    pub(crate) fn check_fits(&self, dim: usize) -> Result<()> {
        const GIB: f64 = (1u64 << 30) as f64;
        /// More than any training with square factors has a use for.
        const MOST_GIB: f64 = 64.0;
        let square = (dim as f64) * (dim as f64);
        // The covariance, its eigenvectors twice, and what is kept of them; then the factors, with two moments and
        // the gradient of each value.
        let rotation = if self.rotates() { 28.0 * square } else { 0.0 };
        let factors = match self.covariance {
            Covariance::Full => 16.0 * 0.5 * square * self.initial_cells as f64,
            Covariance::Diagonal | Covariance::Isotropic => 0.0,
        };
        let needed = rotation + factors;
        // Most systems say at once what they could never give.
        let refused = || Vec::<u8>::new().try_reserve_exact(needed as usize).is_err();
        if needed <= MOST_GIB * GIB && (needed < GIB || !refused()) {
            return Ok(());
        }
        let way_out = match self.covariance {
            Covariance::Full => {
                "use preset default, reduce the dimension of the data, or set covariance = diagonal"
            }
            Covariance::Diagonal | Covariance::Isotropic => "set rotate = false",
        };
        Err(Error::Config {
            key: "covariance".into(),
            message: format!(
                "vectors of dimension {dim} would take {:.1} GiB of square matrices; {way_out}",
                needed / GIB
            ),
        })
    }

    /// Checks every value; the first one out of range is the error.
    pub fn validate(&self) -> Result<()> {
        fn check(ok: bool, key: &str, message: &str) -> Result<()> {
            if ok {
                return Ok(());
            }
            Err(Error::Config {
                key: key.into(),
                message: message.into(),
            })
        }
        let share = |v: f64| v > 0.0 && v <= 1.0;
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let weight = |v: f64| v >= 0.0 && v.is_finite();
        let rates = |r: &[f64; 3]| r.iter().all(|v| positive(*v));
        check(
            share(self.keep_variance),
            "keep_variance",
            "must be in (0, 1]",
        )?;
        check(self.max_dim > 0, "max_dim", "must be at least 1")?;
        check(
            self.cells <= MAX_CELLS,
            "cells",
            "must be at most 1048576; 0 chooses",
        )?;
        check(self.axes <= 256, "axes", "must be at most 256; 0 chooses")?;
        check(
            (0.0..=1.0).contains(&self.anisotropy),
            "anisotropy",
            "must be in [0, 1]",
        )?;
        check(
            self.spill == 0.0 || self.spill >= 1.0 && self.spill.is_finite(),
            "spill",
            "must be at least 1: how many times as far as its own a point's second cell may be; 0 for none",
        )?;
        check(
            (1..=1 << 16).contains(&self.bin_size),
            "bin_size",
            "must be at least 1 and at most 65536",
        )?;
        check(
            self.metric == Metric::Euclidean || self.store != Store::U8,
            "store",
            "u8 goes with the metric euclidean only: the others keep vectors that are no whole numbers; use auto, or f32",
        )?;
        check(
            self.metric != Metric::InnerProduct || self.store != Store::F16,
            "store",
            "f16 does not go with the metric inner_product: the order of inner products needs more digits; use auto or f32",
        )?;
        check(
            matches!(self.code_bits, 0 | 4 | 8),
            "code_bits",
            "must be 8 or 4; 0 chooses",
        )?;
        check(
            self.recall > 0.0 && self.recall < 1.0,
            "recall",
            "must be above 0 and below 1; for all neighbours search exactly",
        )?;
        check(
            share(self.train_fraction),
            "train_fraction",
            "must be in (0, 1]",
        )?;
        check(
            self.initial_cells > 0,
            "initial_cells",
            "must be at least 1",
        )?;
        check(self.init_sample > 0, "init_sample", "must be at least 1")?;
        check(
            self.init_neighbours > 0,
            "init_neighbours",
            "must be at least 1",
        )?;
        check(
            positive(self.init_scale_floor),
            "init_scale_floor",
            "must be above 0",
        )?;
        check(positive(self.tau), "tau", "must be above 0")?;
        check(
            weight(self.weight_divergence),
            "weight_divergence",
            "must be 0 or above",
        )?;
        check(
            weight(self.weight_coverage),
            "weight_coverage",
            "must be 0 or above",
        )?;
        check(
            weight(self.weight_anchor),
            "weight_anchor",
            "must be 0 or above",
        )?;
        check(
            weight(self.anchor_shape),
            "anchor_shape",
            "must be 0 or above",
        )?;
        check(self.batch > 0, "batch", "must be at least 1")?;
        check(
            rates(&self.mean_rate),
            "mean_rate",
            "takes three numbers above 0: start, peak, end",
        )?;
        check(
            rates(&self.factor_rate),
            "factor_rate",
            "takes three numbers above 0: start, peak, end",
        )?;
        check(
            (0.0..1.0).contains(&self.adam_beta1),
            "adam_beta1",
            "must be in [0, 1)",
        )?;
        check(
            (0.0..1.0).contains(&self.adam_beta2),
            "adam_beta2",
            "must be in [0, 1)",
        )?;
        check(
            positive(self.adam_epsilon),
            "adam_epsilon",
            "must be above 0",
        )?;
        check(
            positive(self.diagonal_floor),
            "diagonal_floor",
            "must be above 0",
        )?;
        check(self.patience > 0, "patience", "must be at least 1")?;
        check(
            weight(self.min_improvement),
            "min_improvement",
            "must be 0 or above",
        )?;
        check(
            share(self.select_recall),
            "select_recall",
            "must be in (0, 1]",
        )?;
        check(self.refine_every > 0, "refine_every", "must be at least 1")?;
        check(
            self.max_cells >= self.initial_cells,
            "max_cells",
            "must be at least `initial_cells`",
        )?;
        check(
            self.max_cells <= 1 << 20,
            "max_cells",
            "must be at most 1048576",
        )?;
        check(
            share(self.split_threshold),
            "split_threshold",
            "must be in (0, 1]",
        )?;
        check(self.split_sample >= 2, "split_sample", "must be at least 2")?;
        check(positive(self.split_scale), "split_scale", "must be above 0")?;
        check(
            share(self.split_refusal),
            "split_refusal",
            "must be in (0, 1]",
        )?;
        check(
            share(self.clone_threshold),
            "clone_threshold",
            "must be in (0, 1]",
        )?;
        check(
            weight(self.clone_ratio),
            "clone_ratio",
            "must be 0 or above",
        )?;
        check(
            self.clone_shell > 1.0 && self.clone_shell.is_finite(),
            "clone_shell",
            "must be above 1",
        )?;
        check(
            share(self.clone_sample),
            "clone_sample",
            "must be in (0, 1]",
        )?;
        check(
            self.clone_neighbours > 0,
            "clone_neighbours",
            "must be at least 1",
        )?;
        check(self.prune_every > 0, "prune_every", "must be at least 1")?;
        check(self.rank <= 64, "rank", "must be at most 64")?;
        check(self.radial_steps > 0, "radial_steps", "must be at least 1")?;
        check(
            self.angular_steps > 0,
            "angular_steps",
            "must be at least 1",
        )?;
        let grid = (self.angular_steps as f64).powi(self.rank.saturating_sub(1) as i32)
            * self.radial_steps as f64;
        check(
            grid <= f64::from(1 << 20),
            "angular_steps",
            "radial_steps * angular_steps^(rank-1) must be at most 1048576 bins a cell",
        )?;
        check(self.probes > 0, "probes", "must be at least 1")?;
        check(share(self.bins), "bins", "must be in (0, 1]")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::preset(Preset::default())
    }
}
