//! A tour in a minute: draw a data set of known shape, index it, compare it with plain methods.

mod trained;

use std::time::Instant;

use garlic_ann::{Index, Stage};
use garlic_linalg::{Matrix, Rows};
use garlic_paper::GaussianIndex;
use serde::Serialize;

pub use trained::{CellView, Ellipse, Epoch, TrainedCells};

use crate::baseline::{BruteForce, KMEANS, KMEANS_FINE, KmeansIndex, KmeansOptions};
use crate::error::Result;
use crate::evaluate::{Options, Row, evaluate};
use crate::sweep::{Grid, mark_fronts, recall_at_budget, sweep};
use crate::synthetic::{Stratum, Synthetic, SyntheticOptions, synthetic};
use crate::target::{GARLIC_DEFAULT, GARLIC_PAPER, IndexTarget, Params, TARGETS, Target};
use crate::truth::Truth;

/// What the demo does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemoOptions {
    /// Base vectors.
    pub points: usize,
    /// Dimension, at least 16.
    pub dim: usize,
    /// Queries.
    pub queries: usize,
    /// Seed of data and index.
    pub seed: u64,
    /// Threads for building and measuring.
    pub threads: usize,
    /// Cells to start with.
    pub initial_cells: usize,
    /// Training epochs.
    pub epochs: usize,
    /// Share of the points that training sees.
    pub train_fraction: f64,
    /// Further parameters of the published index, by name; they come last.
    pub settings: Vec<(String, String)>,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            points: 100_000,
            dim: 64,
            queries: 1000,
            // Seed 0 was looked at while the demo's settings were chosen: the usual run shows another draw.
            seed: 7,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            initial_cells: 100,
            epochs: 70,
            train_fraction: 0.25,
            settings: Vec::new(),
        }
    }
}

/// Part of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DemoStage {
    /// Drawing the data set.
    Draw,
    /// True neighbours by brute force.
    Truth,
    /// Training the cells; one step is one epoch.
    Train,
    /// Assigning points, fitting frames and bins.
    Index,
    /// Building the index of the default preset.
    Default,
    /// Building the k-means cells.
    Kmeans,
    /// Measuring; one step is one setting.
    Measure,
}

/// How far the demo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoProgress {
    /// What is being done.
    pub stage: DemoStage,
    /// Steps done of this stage.
    pub done: usize,
    /// Steps of this stage; training may stop earlier.
    pub total: usize,
}

/// Recall@1 of the methods at the same cost; null where a method has no setting that cheap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// Candidates or distance equivalents.
    pub cost: f64,
    /// Recall@1 of the default preset.
    pub garlic_default: Option<f64>,
    /// Recall@1 of the published method.
    pub garlic_paper: Option<f64>,
    /// Recall@1 of k-means with as many cells as the published method.
    pub kmeans: Option<f64>,
    /// Recall@1 of k-means with four times as many cells.
    pub kmeans_fine: Option<f64>,
}

/// The comparison at equal candidates for the queries of one shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShapeRecall {
    /// The shape.
    pub stratum: Stratum,
    /// Number of queries drawn from it.
    pub queries: usize,
    /// Recall@1 at candidates spent on these queries.
    pub budgets: Vec<Budget>,
}

/// Seconds that each part took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DemoSeconds {
    /// Drawing the data and finding the true neighbours.
    pub data: f64,
    /// Building the published index.
    pub build: f64,
    /// Building the index of the default preset.
    pub build_default: f64,
    /// Building both sets of k-means cells.
    pub kmeans: f64,
    /// Measuring.
    pub measure: f64,
    /// Everything.
    pub total: f64,
}

/// What the demo found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemoResult {
    /// Every setting measured, of all methods.
    pub rows: Vec<Row>,
    /// Comparison at equal candidates.
    pub by_candidates: Vec<Budget>,
    /// Comparison at equal distance equivalents.
    pub by_work: Vec<Budget>,
    /// Comparison at equal candidates, shape by shape.
    pub by_shape: Vec<ShapeRecall>,
    /// Cells of the published index.
    pub cells: usize,
    /// Cells of the default preset.
    pub default_cells: usize,
    /// Share of the points within tau of a cell of the published index.
    pub covered: f64,
    /// Times.
    pub seconds: DemoSeconds,
    /// Clusters of the data, in the order of [`Stratum::ALL`].
    pub clusters: [usize; 3],
    /// Instruction set of the kernels that were measured.
    pub kernels: String,
    /// What training made of the published index, for the report; too long for a summary.
    #[serde(skip)]
    pub trained: TrainedCells,
    /// The index of the default preset, to look at.
    #[serde(skip)]
    pub index: Option<Index>,
    /// The shape of the cluster of each of its points.
    #[serde(skip)]
    pub shapes: Vec<Stratum>,
}

/// Candidates at which the methods are compared.
const CANDIDATES: [f64; 6] = [50.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0];
/// Distance equivalents at which the methods are compared.
const WORK: [f64; 6] = [500.0, 1000.0, 2000.0, 3000.0, 5000.0, 10_000.0];
/// Candidates of the comparison by shape.
const SHAPE_CANDIDATES: [f64; 3] = [500.0, 1000.0, 2000.0];
const K: usize = 10;

/// Hears of a stage, the steps done of it and all of its steps.
type Tell<'a> = dyn Fn(DemoStage, usize, usize) + Send + Sync + 'a;

/// Runs the demo; `progress` hears of every step.
pub fn run(
    options: &DemoOptions,
    progress: &(dyn Fn(&DemoProgress) + Send + Sync),
) -> Result<DemoResult> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.max(1))
        .build()
        .map_err(|e| garlic_ann::Error::Threads {
            threads: options.threads,
            message: e.to_string(),
        })?;
    let tell = |stage, done, total| progress(&DemoProgress { stage, done, total });
    let start = Instant::now();
    let mut last = start;
    let mut lap = || {
        let before = std::mem::replace(&mut last, Instant::now());
        (last - before).as_secs_f64()
    };
    let mut seconds = DemoSeconds::default();

    let data = step(&tell, DemoStage::Draw, || {
        synthetic(&SyntheticOptions {
            points: options.points,
            queries: options.queries,
            dim: options.dim,
            seed: options.seed,
        })
    })?;
    let base = Rows::new(&data.vectors, data.dim)?;
    let queries = Rows::new(&data.queries, data.dim)?;
    let truth = step(&tell, DemoStage::Truth, || {
        pool.install(|| Truth::compute(base, queries, K))
    })?;
    seconds.data = lap();
    let index = build(options, base, &tell)?;
    seconds.build = lap();
    let default = step(&tell, DemoStage::Default, || {
        let builder = Index::builder().seed(options.seed);
        Ok(builder.threads(options.threads.max(1)).build(base)?)
    })?;
    seconds.build_default = lap();
    let rivals = step(&tell, DemoStage::Kmeans, || {
        pool.install(|| cluster(options, base, index.cells()))
    })?;
    seconds.kmeans = lap();
    let bench = Bench {
        data: &data,
        queries,
        truth: &truth,
        how: Options {
            threads: options.threads.max(1),
            ..Options::default()
        },
        tell: &tell,
    };
    let [own, new] = [IndexTarget(&index), IndexTarget(&default)];
    let rows = bench.measure(&own, &new, &rivals, base)?;
    let targets: [&dyn Target; 4] = [&own, &new, &rivals[0], &rivals[1]];
    let by_shape = bench.measure_shapes(&targets, &rows)?;
    seconds.measure = lap();
    seconds.total = start.elapsed().as_secs_f64();

    let shapes: Vec<usize> = data.strata.iter().map(|s| *s as usize).collect();
    Ok(DemoResult {
        by_candidates: compare(&rows, &CANDIDATES, |r| r.candidates),
        by_work: compare(&rows, &WORK, |r| r.distance_equivalents),
        rows,
        by_shape,
        cells: index.cells(),
        default_cells: default.cells(),
        covered: index.coverage().share,
        seconds,
        clusters: data.clusters,
        kernels: garlic_simd::level().name().into(),
        trained: TrainedCells::of(&index, base, &shapes),
        shapes: data.strata,
        index: Some(default),
    })
}

/// A stage of one step.
fn step<T>(tell: &Tell<'_>, stage: DemoStage, work: impl FnOnce() -> Result<T>) -> Result<T> {
    tell(stage, 0, 1);
    let result = work()?;
    tell(stage, 1, 1);
    Ok(result)
}

/// The rivals: as many k-means cells as the published index has, and four times as many.
fn cluster(options: &DemoOptions, base: Rows<'_>, cells: usize) -> Result<[KmeansIndex; 2]> {
    let of = |cells: usize| {
        // More steps than usual: the rival should be at its best.
        let well = KmeansOptions {
            iterations: 20,
            sample: 50_000,
            ..KmeansOptions::new(cells, options.seed)
        };
        KmeansIndex::build(base, &well)
    };
    Ok([of(cells)?, of(4 * cells)?.named(KMEANS_FINE)])
}

fn build(options: &DemoOptions, base: Rows<'_>, tell: &Tell<'_>) -> Result<GaussianIndex> {
    let mut builder = GaussianIndex::builder()
        .seed(options.seed)
        .threads(options.threads.max(1))
        .train_fraction(options.train_fraction)
        .set(
            "initial_cells",
            &options.initial_cells.min(options.points).to_string(),
        )?
        .set("epochs", &options.epochs.to_string())?
        // Half the published share: a set this small should not end with cells of a thousand points each.
        .set("split_threshold", "0.005")?
        // The published rates are meant for thousands of steps; the demo takes a few hundred.
        .set("batch", "5000")?
        .set("factor_rate", "[1e-6, 2e-2, 2e-3]")?
        .progress(move |p| match p.stage {
            Stage::Train => tell(DemoStage::Train, p.done, p.total),
            Stage::Prepare => tell(DemoStage::Train, 0, options.epochs),
            _ => tell(DemoStage::Index, p.done, p.total),
        });
    for (key, value) in &options.settings {
        builder = builder.set(key, value)?;
    }
    Ok(builder.build(base)?)
}

/// What every measurement needs.
struct Bench<'a> {
    data: &'a Synthetic,
    queries: Rows<'a>,
    truth: &'a Truth,
    how: Options,
    tell: &'a Tell<'a>,
}

impl Bench<'_> {
    fn evaluate(&self, target: &dyn Target, params: &Params) -> Result<Row> {
        evaluate(target, self.queries, self.truth, params, &self.how)
    }

    /// Every setting of every method, the fronts marked.
    fn measure(
        &self,
        index: &IndexTarget<'_>,
        default: &IndexTarget<'_>,
        rivals: &[KmeansIndex; 2],
        base: Rows<'_>,
    ) -> Result<Vec<Row>> {
        let own = Grid {
            probes: vec![1, 2, 3, 4, 5, 6, 8],
            bins: vec![0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0],
            rerank: vec![],
        };
        let plain = Grid {
            probes: vec![1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32],
            bins: vec![],
            rerank: vec![],
        };
        let of_rivals: usize = rivals.iter().map(|r| plain.settings(r, K).len()).sum();
        let total = own.settings(index, K).len() + TARGETS.len() + of_rivals + 1;
        let tell = |done: usize| (self.tell)(DemoStage::Measure, done, total);
        let sweep_from = |before: usize, target: &dyn Target, grid: &Grid| {
            let (queries, truth) = (self.queries, self.truth);
            let mut heard = |done, _| tell(before + done);
            sweep(target, queries, truth, K, grid, &self.how, &mut heard)
        };

        let mut rows = sweep_from(0, index, &own)?;
        let mut aimed = Vec::with_capacity(TARGETS.len());
        for target in TARGETS {
            aimed.push(self.evaluate(default, &Params::new(K).recall(target))?);
            tell(rows.len() + aimed.len());
        }
        mark_fronts(&mut aimed);
        rows.extend(aimed);
        for rival in rivals {
            rows.extend(sweep_from(rows.len(), rival, &plain)?);
        }
        let mut row = self.evaluate(&BruteForce::new(base), &Params::new(K))?;
        mark_fronts(std::slice::from_mut(&mut row));
        rows.push(row);
        tell(total);
        Ok(rows)
    }

    /// The settings on the fronts measured again on the queries of each shape: a setting costs more on some
    /// shapes than on others, so every shape has a front of its own.
    fn measure_shapes(&self, targets: &[&dyn Target], rows: &[Row]) -> Result<Vec<ShapeRecall>> {
        let mut by_shape = Vec::new();
        for stratum in Stratum::ALL {
            let of_shape = |i: &u32| self.data.query_strata[*i as usize] == stratum;
            let chosen: Vec<u32> = (0..self.queries.len() as u32).filter(of_shape).collect();
            if chosen.is_empty() {
                continue;
            }
            let queries = Matrix::gather(self.queries, &chosen);
            let truth = self.truth.select(&chosen);
            let part = Bench {
                queries: queries.as_rows(),
                truth: &truth,
                ..*self
            };
            let mut measured = Vec::new();
            for target in targets {
                let own = |r: &&Row| r.method == target.method() && r.front;
                for row in rows.iter().filter(own) {
                    measured.push(part.evaluate(*target, &row.params)?);
                }
            }
            by_shape.push(ShapeRecall {
                stratum,
                queries: chosen.len(),
                budgets: compare(&measured, &SHAPE_CANDIDATES, |r| r.candidates),
            });
        }
        Ok(by_shape)
    }
}

fn compare(rows: &[Row], budgets: &[f64], cost: fn(&Row) -> f64) -> Vec<Budget> {
    let points = |method: &str| -> Vec<(f64, f64)> {
        rows.iter()
            .filter(|r| r.method == method)
            .map(|r| (cost(r), r.recall_at_1))
            .collect()
    };
    let [default, paper, kmeans, fine] =
        [GARLIC_DEFAULT, GARLIC_PAPER, KMEANS, KMEANS_FINE].map(points);
    budgets
        .iter()
        .map(|&cost| Budget {
            cost,
            garlic_default: recall_at_budget(&default, cost),
            garlic_paper: recall_at_budget(&paper, cost),
            kmeans: recall_at_budget(&kmeans, cost),
            kmeans_fine: recall_at_budget(&fine, cost),
        })
        .collect()
}
