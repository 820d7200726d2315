//! Telling the caller how far a build is, and where its time went.

use std::fmt;

use serde::Serialize;

/// Part of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stage {
    /// Checking the data, fitting the change of coordinates.
    Prepare,
    /// Training the cells.
    Train,
    /// Assigning every point to its cells.
    Assign,
    /// Fitting frames, bins and codes.
    Bins,
    /// Measuring what recall targets take.
    Calibrate,
}

impl Stage {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Train => "train",
            Self::Assign => "assign",
            Self::Bins => "bins",
            Self::Calibrate => "calibrate",
        }
    }
}

/// How far a build is.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What is being done.
    pub stage: Stage,
    /// Steps done of this stage.
    pub done: usize,
    /// Steps of this stage; training may stop earlier.
    pub total: usize,
    /// What there is to say about the last step, such as the loss of an epoch.
    pub detail: Option<&'a dyn fmt::Display>,
}

impl<'a> Progress<'a> {
    /// `done` of `total` steps of a stage.
    pub fn new(stage: Stage, done: usize, total: usize) -> Self {
        Self {
            stage,
            done,
            total,
            detail: None,
        }
    }

    /// The same with something to say about the last step.
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

/// Where the time of a build went.
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
    /// Checking the data, fitting and applying the change of coordinates.
    pub prepare: f64,
    /// Training the cells.
    pub train: f64,
    /// Assigning every point to its cells.
    pub assign: f64,
    /// Fitting frames, bins and codes, and storing the vectors in cell order.
    pub bins: f64,
    /// Measuring what recall targets take.
    pub calibrate: f64,
    /// Everything.
    pub total: f64,
}
