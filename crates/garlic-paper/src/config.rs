//! Every parameter of the method in one table.
//!
//! In: nothing, a TOML text or single `key = value` settings. Out: a checked [`Config`]. Defaults are the published
//! values; symbols in brackets are those of the paper.

use garlic_core::config::Rule;
use garlic_core::{Error, Metric, Result, parameters};
use serde::{Deserialize, Serialize};

pub use garlic_core::config::{Configuration, Parameter, Parameters};

/// How the data are scaled before training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Normalize {
    /// One mean vector is subtracted and one standard deviation divides everything: neighbours do not change.
    Global,
    /// Every coordinate has its own mean and deviation; constant coordinates become zero.
    PerCoordinate,
    /// The mean vector is subtracted and nothing is scaled.
    None,
}

/// Where the first means come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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
#[non_exhaustive]
pub enum Covariance {
    /// Lower-triangular factors.
    Full,
    /// Diagonal factors, in the original coordinates (never rotated).
    Diagonal,
    /// One scale a cell.
    Isotropic,
}

impl Covariance {
    /// Its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Diagonal => "diagonal",
            Self::Isotropic => "isotropic",
        }
    }
}

/// How a cell that holds too many points is cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SplitMethod {
    /// DBSCAN; 2-means when it does not find two clusters.
    Dbscan,
    /// 2-means only.
    TwoMeans,
}

/// Whose mean and covariance anchor a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AnchorPoints {
    /// Points within tau of the cell, and those that are nearest to it: the published set.
    Covered,
    /// Points nearest to the cell, so that every point anchors one cell.
    Nearest,
}

/// Where the shell that is looked at for cloning ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ShellEnd {
    /// At e tau.
    ETau,
    /// At (1 + e) tau.
    OnePlusETau,
}

/// What the share of bins that a query scans is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BinBudget {
    /// All bins of the cell's grid, occupied or not.
    All,
    /// The bins that hold points.
    Occupied,
}

/// Most cells of an index: random streams number them with 20 bits.
pub(crate) const MAX_CELLS: usize = 1 << 20;

/// Most bins of a cell's grid, occupied or not.
const MAX_BINS: f64 = (1 << 20) as f64;

/// Three learning rates.
const RATES: Rule<[f64; 3]> = Rule::new("takes three numbers above 0: start, peak, end", |rates| {
    rates.iter().all(|v| *v > 0.0 && v.is_finite())
});

/// A share of a moment that is kept.
const DECAY: Rule<f64> = Rule::new("must be in [0, 1)", |v| (0.0..1.0).contains(v));

parameters! {
    /// How the data are prepared.
    pub struct Data in "data" {
        /// Share of the points that training sees, in (0, 1].
        train_fraction: f64 = 1.0, Rule::SHARE;
        /// How the data are scaled: global, per-coordinate or none.
        normalize: Normalize = Normalize::Global, Rule::any();
        /// Rotate to the global principal axes first: distances do not change, the path of the training does. Ignored for
        /// diagonal covariances, which mean the original coordinates.
        rotate: bool = false, Rule::any();
    }
}

parameters! {
    /// The first cells.
    pub struct Initialization in "init" {
        /// Structure of the Cholesky factors: full, diagonal or isotropic.
        covariance: Covariance = Covariance::Full, Rule::any();
        /// Where the first means come from: kmeans-plus-plus, kmeans, farthest-point or random.
        init: Init = Init::KmeansPlusPlus, Rule::any();
        /// Number of cells to start with (K0).
        initial_cells: usize = 100, Rule::AT_LEAST_ONE;
        /// Points that the initialisation looks at.
        init_sample: usize = 20_000, Rule::AT_LEAST_ONE;
        /// Nearest other means that a cell's initial scale is taken from.
        init_neighbours: usize = 3, Rule::AT_LEAST_ONE;
        /// Smallest initial scale of a factor. The scale is log(m) with m the mean distance to the nearest other means,
        /// which is no scale when they are closer than 1.
        init_scale_floor: f64 = 0.1, Rule::POSITIVE;
    }
}

parameters! {
    /// The objective.
    pub struct Loss in "loss" {
        /// Mahalanobis radius within which a cell covers a point (tau).
        tau: f64 = 3.0, Rule::POSITIVE;
        /// Weight of the divergence loss: points outside every cell.
        weight_divergence: f64 = 1.0, Rule::WEIGHT;
        /// Weight of the coverage loss: points between several cells.
        weight_coverage: f64 = 1.0, Rule::WEIGHT;
        /// Weight of the anchor loss: cells away from the points they hold.
        weight_anchor: f64 = 0.01, Rule::WEIGHT;
        /// Weight of the shape term inside the anchor loss (alpha).
        anchor_shape: f64 = 0.1, Rule::WEIGHT;
        /// Points that anchor a cell: covered (within tau of it, or nearest to it) or nearest.
        anchor_points: AnchorPoints = AnchorPoints::Covered, Rule::any();
    }
}

parameters! {
    /// The optimiser.
    pub struct Training in "training" {
        /// Most passes over the training points.
        epochs: usize = 250, Rule::any();
        /// Points per optimiser step.
        batch: usize = 20_000, Rule::AT_LEAST_ONE;
        /// Epochs of linear warm-up.
        warmup_epochs: usize = 35, Rule::any();
        /// Learning rate of the means: at the start, at the end of the warm-up, at the last epoch.
        mean_rate: [f64; 3] = [1e-7, 9e-3, 3e-3], RATES;
        /// Learning rate of the factors: at the start, at the end of the warm-up, at the last epoch.
        factor_rate: [f64; 3] = [1e-7, 5e-4, 9e-5], RATES;
        /// Adam: decay of the first moment.
        adam_beta1: f64 = 0.9, DECAY;
        /// Adam: decay of the second moment.
        adam_beta2: f64 = 0.999, DECAY;
        /// Adam: added to the denominator.
        adam_epsilon: f64 = 1e-8, Rule::POSITIVE;
        /// Adam: forget all moments at every refinement, not only those of new cells.
        adam_reset: bool = false, Rule::any();
        /// Smallest value on the diagonal of a factor.
        diagonal_floor: f64 = 0.01, Rule::POSITIVE;
        /// Stop when the loss has not improved for `patience` epochs since the last refinement.
        early_stop: bool = true, Rule::any();
        /// Epochs without improvement before an early stop.
        patience: usize = 30, Rule::AT_LEAST_ONE;
        /// Relative improvement of the loss that counts.
        min_improvement: f64 = 1e-3, Rule::WEIGHT;
    }
}

parameters! {
    /// Choosing the model by what retrieval costs; no part of the published method, and off unless asked for.
    pub struct Selection in "selection" {
        /// Epochs between checks of what retrieval costs; the cheapest model is kept. 0 keeps the last one.
        select_every: usize = 0, Rule::any();
        /// Points held out for these checks.
        select_queries: usize = 300, Rule::any();
        /// Share of them that has to find its nearest training point.
        select_recall: f64 = 0.9, Rule::SHARE;
    }
}

parameters! {
    /// Splitting, cloning and pruning.
    pub struct RefinementRules in "refinement" {
        /// Epochs between refinements; the first comes after the warm-up.
        refine_every: usize = 35, Rule::AT_LEAST_ONE;
        /// Epochs at the end without refinement, in which the last cells can settle.
        refine_quiet: usize = 0, Rule::any();
        /// Most cells.
        max_cells: usize = 4096, Rule::new("must be at most 1048576", |v| *v <= MAX_CELLS);
        /// Cut cells that hold too many points.
        split: bool = true, Rule::any();
        /// Share of the training points above which a cell is split (gamma).
        split_threshold: f64 = 0.01, Rule::SHARE;
        /// How a cell is cut: dbscan (2-means when it does not find two clusters) or two-means.
        split_method: SplitMethod = SplitMethod::Dbscan, Rule::any();
        /// Points that a split looks at.
        split_sample: usize = 1000, Rule::new("must be at least 2", |v| *v >= 2);
        /// Factor by which the children's L is scaled.
        split_scale: f64 = 0.9, Rule::POSITIVE;
        /// A split that leaves one child more than this share is refused and remembered.
        split_refusal: f64 = 0.95, Rule::SHARE;
        /// Copy cells that have many points just outside.
        clone: bool = true, Rule::any();
        /// Share of the training points above which a cell may be cloned.
        clone_threshold: f64 = 8e-4, Rule::SHARE;
        /// Points in the shell outside over points inside above which a cell is cloned (beta).
        clone_ratio: f64 = 0.5, Rule::WEIGHT;
        /// Outer radius of the shell in units of tau (e).
        clone_shell: f64 = 2.2, Rule::new("must be above 1", |v| *v > 1.0 && v.is_finite());
        /// Where the shell ends: e-tau or one-plus-e-tau.
        clone_shell_end: ShellEnd = ShellEnd::ETau, Rule::any();
        /// Share of the shell's points that is sampled for the clone's centre.
        clone_sample: f64 = 0.6, Rule::SHARE;
        /// Most points that are sampled, whatever their share: finding the densest takes the square of their number.
        clone_sample_most: usize = 20_000, Rule::AT_LEAST_ONE;
        /// Nearest sampled points that the density at a clone's centre is taken from.
        clone_neighbours: usize = 3, Rule::AT_LEAST_ONE;
        /// Remove cells that hold next to nothing.
        prune: bool = true, Rule::any();
        /// Epochs between prunings.
        prune_every: usize = 60, Rule::AT_LEAST_ONE;
        /// Most points of a cell that is pruned.
        prune_size: usize = 1, Rule::any();
    }
}

parameters! {
    /// Frames and hyperspherical bins of the cells.
    pub struct BinShape in "bins" {
        /// Dimensions of a cell's frame (r).
        rank: usize = 3, Rule::new("must be at most 64", |v| *v <= 64);
        /// Radial steps of a cell's bins (n_r).
        radial_steps: usize = 6, Rule::AT_LEAST_ONE;
        /// Steps of every angle of a cell's bins (n_a).
        angular_steps: usize = 4, Rule::AT_LEAST_ONE;
    }
}

parameters! {
    /// What a query does unless it says otherwise.
    pub struct SearchDefaults in "search" {
        /// Cells a query visits unless it says otherwise (k_G).
        probes: usize = 5, Rule::AT_LEAST_ONE;
        /// Share of a cell's bins a query scans unless it says otherwise (rho), in (0, 1].
        bins: f64 = 0.3, Rule::SHARE;
        /// What that is a share of: all (bins of the grid) or occupied (bins that hold points).
        bin_budget: BinBudget = BinBudget::All, Rule::any();
    }
}

parameters! {
    /// All parameters of building an index, in the order in which they act.
    pub struct Config in "general" {
        /// Seed of every random choice.
        seed: u64 = 0, Rule::any();
        /// What near means: euclidean, cosine or inner_product.
        metric: Metric = Metric::Euclidean, Rule::any();
    }
    groups {
        /// How the data are prepared.
        data: Data;
        /// The first cells.
        init: Initialization;
        /// The objective.
        loss: Loss;
        /// The optimiser.
        training: Training;
        /// Choosing the model by what retrieval costs.
        selection: Selection;
        /// Splitting, cloning and pruning.
        refinement: RefinementRules;
        /// Frames and bins of the cells.
        bins: BinShape;
        /// What a query does unless it says otherwise.
        search: SearchDefaults;
    }
}

impl Configuration for Config {
    fn check_together(&self) -> Result<()> {
        if self.refinement.max_cells < self.init.initial_cells {
            return Err(wrong("max_cells", "must be at least `initial_cells`"));
        }
        let angles = self.bins.rank.saturating_sub(1) as i32;
        let bins = (self.bins.angular_steps as f64).powi(angles) * self.bins.radial_steps as f64;
        if bins > MAX_BINS {
            let rule = "radial_steps * angular_steps^(rank-1) must be at most 1048576 bins a cell";
            return Err(wrong("angular_steps", rule));
        }
        Ok(())
    }
}

fn wrong(key: &str, message: impl Into<String>) -> Error {
    Error::Config {
        key: key.into(),
        message: message.into(),
    }
}

impl Config {
    /// Whether the data are rotated: asked for, and allowed by the covariance structure.
    pub fn rotates(&self) -> bool {
        self.data.rotate && self.init.covariance != Covariance::Diagonal
    }

    /// Fails where matrices for vectors of this dimension are more than memory can hold.
    pub(crate) fn check_fits(&self, dim: usize) -> Result<()> {
        const GIB: f64 = (1u64 << 30) as f64;
        /// More than any training with square factors has a use for.
        const MOST_GIB: f64 = 64.0;
        let square = (dim as f64) * (dim as f64);
        // The covariance, its eigenvectors twice, and what is kept of them; then the factors, with two moments and
        // the gradient of each value.
        let rotation = if self.rotates() { 28.0 * square } else { 0.0 };
        let factors = match self.init.covariance {
            Covariance::Full => 16.0 * 0.5 * square * self.init.initial_cells as f64,
            Covariance::Diagonal | Covariance::Isotropic => 0.0,
        };
        let needed = rotation + factors;
        // Most systems say at once what they could never give.
        let refused = || Vec::<u8>::new().try_reserve_exact(needed as usize).is_err();
        if needed <= MOST_GIB * GIB && (needed < GIB || !refused()) {
            return Ok(());
        }
        let way_out = match self.init.covariance {
            Covariance::Full => {
                "use preset default, reduce the dimension of the data, or set covariance = diagonal"
            }
            Covariance::Diagonal | Covariance::Isotropic => "set rotate = false",
        };
        let message = format!(
            "vectors of dimension {dim} would take {:.1} GiB of square matrices; {way_out}",
            needed / GIB
        );
        Err(wrong("covariance", message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed_and_every_key_is_told() {
        let config = Config::default();
        config.validate().unwrap();
        let table = config.table();
        assert_eq!(table.len(), 59);
        assert!(table.iter().all(|row| row.about.len() > 10));
        let groups: Vec<&str> = table.iter().map(|row| row.group).collect();
        assert!(groups.starts_with(&["general", "general", "data"]));
        assert_eq!(groups.last(), Some(&"search"));
    }

    #[test]
    fn values_out_of_range_are_errors_that_name_their_key() {
        for (key, value) in [
            ("train_fraction", "0"),
            ("tau", "-1"),
            ("batch", "0"),
            ("mean_rate", "[1, 0, 1]"),
            ("adam_beta2", "1"),
            ("max_cells", "99"),
            ("max_cells", "2_000_000"),
            ("split_sample", "1"),
            ("clone_shell", "1"),
            ("rank", "65"),
            ("angular_steps", "1000"),
            ("probes", "0"),
            ("bins", "1.5"),
        ] {
            let mut config = Config::default();
            config.set(key, value).unwrap();
            match config.validate() {
                Err(Error::Config { key: named, .. }) => assert_eq!(named, key),
                other => panic!("{key} = {value}: {other:?}"),
            }
        }
    }

    #[test]
    fn names_are_those_of_files() {
        let mut config = Config::default();
        config.set("init", "farthest-point").unwrap();
        config.set("split_method", "two-means").unwrap();
        config
            .set("covariance", Covariance::Isotropic.name())
            .unwrap();
        config.set("normalize", "per-coordinate").unwrap();
        assert_eq!(config.init.init, Init::FarthestPoint);
        assert_eq!(config.refinement.split_method, SplitMethod::TwoMeans);
        assert_eq!(config.init.covariance, Covariance::Isotropic);
        assert_eq!(config.data.normalize, Normalize::PerCoordinate);
        let error = config.set("intial-cells", "5").unwrap_err().to_string();
        assert!(error.ends_with("did you mean `initial_cells`?"), "{error}");
        // Keys of the other index are none of this one.
        assert!(config.set("bin_size", "30").is_err());
    }
}
