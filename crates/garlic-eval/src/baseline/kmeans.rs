//! k-means cells with an exact scan (IVF-Flat): the partition everybody knows.

use garlic_ann::{Answer, Metric, SearchStats};
use garlic_linalg::{Matrix, Rows, kmeans_plus_plus, lloyd, nearest_centres, permutation};

use super::{Best, measure, scaled, to_ordered};
use crate::error::{Error, Result};
use crate::target::{Params, Target, Worker};

/// Name of k-means cells in tables, plots and JSON.
pub const KMEANS: &str = "k-means cells";

/// Name of k-means with four times the cells of the index it is compared with.
pub const KMEANS_FINE: &str = "k-means, 4x cells";

/// How to build k-means cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmeansOptions {
    /// Number of cells; at most one a point.
    pub cells: usize,
    /// Lloyd steps.
    pub iterations: usize,
    /// Points that k-means sees.
    pub sample: usize,
    /// Seed of the sample and of the first centres.
    pub seed: u64,
    /// What "near" means to a search. Cells are Euclidean (of unit vectors for cosines); the ones to visit are
    /// those whose centres the metric finds nearest.
    pub metric: Metric,
}

impl KmeansOptions {
    /// `cells` cells, ten Lloyd steps over at most 256 points a cell (but at least 20,000).
    pub fn new(cells: usize, seed: u64) -> Self {
        Self {
            cells,
            iterations: 10,
            sample: (256 * cells).max(20_000),
            seed,
            metric: Metric::Euclidean,
        }
    }
}

/// An index of k-means cells; every point belongs to its nearest centre.
#[derive(Clone, Debug)]
pub struct KmeansIndex {
    method: &'static str,
    metric: Metric,
    centres: Matrix,
    /// Where each cell starts in `vectors` and `ids`, and the end of the last.
    starts: Vec<usize>,
    vectors: Matrix,
    ids: Vec<u32>,
}

impl KmeansIndex {
    /// Clusters `base` on rayon's current pool.
    pub fn build(base: Rows<'_>, options: &KmeansOptions) -> Result<Self> {
        let parameter = |name, value: usize, rule| Error::Parameter {
            name,
            value: value.to_string(),
            rule,
        };
        if base.is_empty() {
            return Err(garlic_ann::Error::NoVectors.into());
        }
        if u32::try_from(base.len()).is_err() {
            return Err(parameter(
                "points",
                base.len(),
                "the baseline holds at most 4294967295 points",
            ));
        }
        if options.cells == 0 {
            return Err(parameter("cells", 0, "ask for at least one cell"));
        }
        let unit;
        let base = match options.metric {
            Metric::Euclidean | Metric::InnerProduct => base,
            Metric::Cosine => {
                unit = scaled(options.metric, base)?;
                unit.as_rows()
            }
        };
        let cells = options.cells.min(base.len());
        let sample = options.sample.clamp(cells, base.len());
        let gathered;
        let seen = if sample < base.len() {
            let mut chosen = permutation(base.len(), options.seed, SAMPLE_TASK);
            chosen.truncate(sample);
            chosen.sort_unstable();
            gathered = Matrix::gather(base, &chosen);
            gathered.as_rows()
        } else {
            base
        };
        let centres = lloyd(
            seen,
            kmeans_plus_plus(seen, cells, options.seed),
            options.iterations,
        )
        .centres;
        Ok(Self {
            metric: options.metric,
            ..Self::from_centres(base, centres)
        })
    }

    fn from_centres(base: Rows<'_>, centres: Matrix) -> Self {
        let (labels, _) = nearest_centres(base, centres.as_rows());
        let mut ids: Vec<u32> = (0..base.len() as u32).collect();
        ids.sort_by_key(|&i| labels[i as usize]);
        let mut starts = vec![0; centres.rows() + 1];
        for &label in &labels {
            starts[label as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        Self {
            method: KMEANS,
            metric: Metric::Euclidean,
            vectors: Matrix::gather(base, &ids),
            centres,
            starts,
            ids,
        }
    }

    /// The same cells under another name, to tell several apart in tables and plots.
    pub fn named(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    /// Points in each cell.
    pub fn sizes(&self) -> Vec<usize> {
        self.starts.windows(2).map(|w| w[1] - w[0]).collect()
    }

    fn search(&self, query: &[f32], params: &Params, worker: &mut Buffers) -> Answer {
        let Buffers { order, scaled } = worker;
        scaled.clear();
        self.metric.scale(query, scaled);
        let (cells, dim) = (self.centres.rows(), self.centres.cols());
        let probes = params.probes.unwrap_or(cells).clamp(1, cells);
        order.clear();
        order.extend((0..cells).map(|c| {
            let measured = measure(self.metric, self.centres.row(c), scaled);
            (to_ordered(measured), c as u32)
        }));
        if probes < cells {
            order.select_nth_unstable(probes);
            order.truncate(probes);
        }
        order.sort_unstable();
        let mut best = Best::new(self.metric, params.k);
        let mut candidates = 0;
        for &(_, cell) in order.iter() {
            let range = self.starts[cell as usize]..self.starts[cell as usize + 1];
            candidates += range.len() as u64;
            for position in range {
                best.push(
                    measure(self.metric, self.vectors.row(position), scaled),
                    u64::from(self.ids[position]),
                );
            }
        }
        let mut stats = SearchStats::default();
        stats.cells_scored = cells as u64;
        stats.routing_madds = (cells * dim) as u64;
        stats.candidates = candidates;
        stats.exact_madds = candidates * dim as u64;
        Answer::new(best.take(), stats, probes == cells)
    }
}

/// Number of the random stream that draws the sample.
const SAMPLE_TASK: u64 = 0x6b6d;

struct KmeansWorker<'a> {
    index: &'a KmeansIndex,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    /// Cells with what was measured to their centres.
    order: Vec<(u32, u32)>,
    scaled: Vec<f32>,
}

impl Worker for KmeansWorker<'_> {
    fn search(&mut self, query: &[f32], params: &Params) -> Result<Answer> {
        Ok(self.index.search(query, params, &mut self.buffers))
    }
}

impl Target for KmeansIndex {
    fn method(&self) -> &'static str {
        self.method
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn dim(&self) -> usize {
        self.centres.cols()
    }

    fn metric(&self) -> Metric {
        self.metric
    }

    fn cells(&self) -> usize {
        self.centres.rows()
    }

    fn has_bins(&self) -> bool {
        false
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(KmeansWorker {
            index: self,
            buffers: Buffers::default(),
        })
    }

    fn search_batch(&self, _: Rows<'_>, _: &Params, _: usize) -> Option<Result<Vec<Answer>>> {
        None
    }
}
