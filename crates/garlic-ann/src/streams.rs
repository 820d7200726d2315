//! Numbers that separate the random streams of different tasks under one seed.

/// Sample of the training points.
pub(crate) const TRAIN_SAMPLE: u64 = 1 << 32;
/// Initial means.
pub(crate) const INIT_MEANS: u64 = 3 << 32;
/// Bins of the cells.
pub(crate) const BINS: u64 = 8 << 32;
/// Fit of the axes.
pub(crate) const FRAMES: u64 = 7 << 32;
/// Points held out for calibration.
pub(crate) const CALIBRATION: u64 = 9 << 32;
/// Cells and bins of rewritten cells.
pub(crate) const REWRITTEN_CELLS: u64 = 11 << 32;
/// Order of the calibration queries.
pub(crate) const CALIBRATION_ORDER: u64 = 12 << 32;
/// Initial centres of the coarse quantizer.
pub(crate) const COARSE_QUANTIZER: u64 = 13 << 32;
/// Order in which points are inserted into the neighbour graph.
pub(crate) const GRAPH: u64 = 14 << 32;
/// Sample that the codes of the neighbour graph are fitted to.
pub(crate) const GRAPH_SAMPLE: u64 = 15 << 32;
/// Points that are queries when a new neighbour graph is measured.
pub(crate) const GRAPH_QUERIES: u64 = 16 << 32;
