//! Progress and timing of a build.

use std::fmt;

use serde::Serialize;

/// Stage of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stage {
    /// Checks the data and fits the transform.
    Prepare,
    /// Trains the cells.
    Train,
    /// Assigns every point to its cells.
    Assign,
    /// Fits frames, bins and codes.
    Bins,
    /// Builds the neighbour graph.
    Graph,
    /// Calibrates recall targets.
    Calibrate,
}

impl Stage {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Train => "train",
            Self::Assign => "assign",
            Self::Bins => "bins",
            Self::Graph => "graph",
            Self::Calibrate => "calibrate",
        }
    }
}

/// Progress of a build.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The current stage.
    pub stage: Stage,
    /// Completed steps of this stage.
    pub done: usize,
    /// Total steps of this stage. Training may stop earlier.
    pub total: usize,
    /// Details about the last step, such as the loss of an epoch.
    pub detail: Option<&'a dyn fmt::Display>,
}

impl<'a> Progress<'a> {
    /// Progress of `done` out of `total` steps of a stage.
    pub fn new(stage: Stage, done: usize, total: usize) -> Self {
        Self {
            stage,
            done,
            total,
            detail: None,
        }
    }

    /// Adds details about the last step.
    #[must_use]
    pub fn detail(mut self, detail: &'a dyn fmt::Display) -> Self {
        self.detail = Some(detail);
        self
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, done, total) = (self.stage.name(), self.done, self.total);
        write!(f, "Progress({name}, {done} of {total})")
    }
}

/// Time of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BuildReport {
    /// Wall-clock seconds.
    pub seconds: Seconds,
}

impl From<Seconds> for BuildReport {
    fn from(seconds: Seconds) -> Self {
        Self { seconds }
    }
}

/// Wall-clock seconds of the parts of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Seconds {
    /// Checking the data, fitting and applying the transform.
    pub prepare: f64,
    /// Training the cells.
    pub train: f64,
    /// Assigning every point to its cells.
    pub assign: f64,
    /// Fitting frames, bins and codes, and storing the vectors in cell order.
    pub bins: f64,
    /// Building the neighbour graph, and the trial that decides about it.
    pub graph: f64,
    /// Calibrating recall targets.
    pub calibrate: f64,
    /// The whole build.
    pub total: f64,
}
