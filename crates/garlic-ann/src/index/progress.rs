//! Telling the caller how far a build is.

use crate::train::Epoch;

/// Part of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Normalising, rotating, placing the first cells.
    Prepare,
    /// Training the Gaussians; one step is one epoch.
    Train,
    /// Assigning every point to its cells.
    Assign,
    /// Fitting frames and bins.
    Bins,
    /// Measuring what recall targets take.
    Calibrate,
}

/// How far a build is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What is being done.
    pub stage: Stage,
    /// Steps done of this stage.
    pub done: usize,
    /// Steps of this stage; training may stop earlier.
    pub total: usize,
    /// The epoch that has just ended, while training.
    pub epoch: Option<&'a Epoch>,
}
