//! What happened during training. Holds no clock times, so that it is as reproducible as the index.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Weighted sum of the loss terms.
    pub loss: f64,
    /// Divergence loss (unweighted): how far points lie outside every cell.
    pub divergence: f64,
    /// Coverage loss (unweighted): how undecided points are between cells.
    pub coverage: f64,
    /// Anchor loss (unweighted): how far cells are from the points they hold.
    pub anchor: f64,
    /// Cells at the end of the epoch.
    pub cells: usize,
    /// Share of the points within tau of some cell.
    pub covered: f64,
    /// Share of the points within tau of, or nearest to, the largest cell.
    pub largest: f64,
    /// Share of the multiply-adds of a brute-force assignment that was done.
    pub assign_work: f64,
    /// Candidates that held-out points needed to find their nearest neighbours, where they were asked.
    #[serde(default)]
    pub candidates: Option<f64>,
    /// What the refinement after this epoch did, if there was one.
    pub refinement: Option<Refinement>,
}

/// One line, as a progress display shows it.
impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "epoch {}, loss {:.4}, {} cells, {:.1} % covered, largest {:.1} %",
            self.epoch,
            self.loss,
            self.cells,
            100.0 * self.covered,
            100.0 * self.largest,
        )
    }
}

/// What a refinement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refinement {
    /// Cells cut in two.
    pub split: usize,
    /// Cells copied.
    pub cloned: usize,
    /// Cells removed.
    pub pruned: usize,
    /// Splits that were refused because one child would have held nearly everything.
    pub refused: usize,
}

/// The whole training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Points that training saw.
    pub points: usize,
    /// Initial scales that had to be raised to the floor.
    pub floored_scales: usize,
    /// Why training ended.
    pub ended: Ended,
    /// The first epoch in which one cell held so many points that it swallows others, if there was one.
    #[serde(default)]
    pub runaway: Option<usize>,
    /// The epoch whose model was kept, where models were compared by what retrieval costs.
    #[serde(default)]
    pub selected: Option<usize>,
    /// Epoch by epoch.
    pub epochs: Vec<Epoch>,
}

/// Why training ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All epochs were done.
    #[default]
    Epochs,
    /// The loss no longer improved.
    Plateau,
    /// Retrieval no longer became cheaper.
    Candidates,
}
