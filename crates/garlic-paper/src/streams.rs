//! Numbers that keep the random streams of different tasks apart under one seed.

/// Choice of the training points.
pub(crate) const TRAIN_SAMPLE: u64 = 1 << 32;
/// Choice of the points that the initialisation looks at.
pub(crate) const INIT_SAMPLE: u64 = 2 << 32;
/// Initial means.
pub(crate) const INIT_MEANS: u64 = 3 << 32;
/// Initial factors.
pub(crate) const INIT_FACTORS: u64 = 4 << 32;
/// Order of the points in an epoch.
pub(crate) const EPOCH: u64 = 5 << 32;
/// Samples of a refinement.
pub(crate) const REFINE: u64 = 6 << 32;
/// Frames of the cells.
pub(crate) const FRAMES: u64 = 7 << 32;
/// Points that the axes of marginals are fitted to.
pub(crate) const AXES: u64 = 8 << 32;
/// Points held out to choose the model by.
pub(crate) const SELECTION: u64 = 10 << 32;
/// Rows that the principal axes are fitted to.
pub(crate) const ROTATION: u64 = 0x0707;
