//! Numbers that keep the random streams of different tasks apart under one seed.

/// Choice of the training points.
pub(crate) const TRAIN_SAMPLE: u64 = 1 << 32;
/// Initial means.
pub(crate) const INIT_MEANS: u64 = 3 << 32;
/// Bins of the cells.
pub(crate) const BINS: u64 = 8 << 32;
/// Sample of the frames' rank.
pub(crate) const FRAMES: u64 = 7 << 32;
/// Points held out for the calibration.
pub(crate) const CALIBRATION: u64 = 9 << 32;
/// Cells and bins of a live index.
pub(crate) const LIVE: u64 = 11 << 32;
/// Order in which the calibration asks them.
pub(crate) const CALIBRATION_ORDER: u64 = 12 << 32;
/// Seeds of the groups of cells.
pub(crate) const GROUPS: u64 = 13 << 32;
