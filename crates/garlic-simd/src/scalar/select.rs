//! The plain choice of the smallest estimates.

use crate::codes::Estimate;
use crate::select::{compact, count, keep_smallest_by, range};

pub(crate) fn keep_smallest(list: &mut Vec<Estimate>, keep: usize) -> Estimate {
    keep_smallest_by(list, keep, range, count, compact)
}
