//! Transformed points that training reads: in memory, or in a file of a build that is larger than memory.

use garlic_core::Result;
use garlic_linalg::{Matrix, Rows};

/// Blocks of [`Points::for_each_block`] have a multiple of so many points, except the last. Products of matrices are
/// computed for as many points at a time, so that their rounding does not depend on the blocks.
pub(crate) const BLOCK_MULTIPLE: usize = 256;

/// Transformed points in the order of their rows.
pub(crate) trait Points {
    /// Number of points.
    fn len(&self) -> usize;

    /// The points at some rows.
    fn gather(&self, rows: &[u32]) -> Result<Matrix>;

    /// Calls `each` with consecutive points and the row of the first, in order.
    fn for_each_block(&self, each: &mut dyn FnMut(usize, Rows<'_>) -> Result<()>) -> Result<()>;
}

impl Points for Rows<'_> {
    fn len(&self) -> usize {
        Rows::len(self)
    }

    fn gather(&self, rows: &[u32]) -> Result<Matrix> {
        Ok(Matrix::gather(*self, rows))
    }

    fn for_each_block(&self, each: &mut dyn FnMut(usize, Rows<'_>) -> Result<()>) -> Result<()> {
        each(0, *self)
    }
}
