//! The choice of the smallest estimates: the plain one, four keys at a time.

use crate::codes::Estimate;
use crate::select::{compact, count, keep_smallest_by, range};

#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn keep_smallest(list: &mut Vec<Estimate>, keep: usize) -> Estimate {
    keep_smallest_by(list, keep, range, count, compact)
}
