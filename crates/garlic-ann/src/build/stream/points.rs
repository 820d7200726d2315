//! The transformed vectors in a file, in the order of their rows, each with its squared distance from the truncated
//! space.

use garlic_core::{Cancel, Result};
use garlic_linalg::{Matrix, Rows};

use super::folder::{Folder, Input, Output};
use crate::transform::{BLOCK_MULTIPLE, Points};

const POINTS: &str = "points";
const RESIDUALS: &str = "residuals";
/// Bytes that are read or written at a time.
pub(super) const BLOCK_BYTES: usize = 8 << 20;

/// Number of rows of `dim` coordinates of a block: a multiple of `multiple`.
pub(super) fn block_rows(dim: usize, multiple: usize) -> usize {
    (BLOCK_BYTES / (4 * dim) / multiple).max(1) * multiple
}

/// Writes points.
pub(super) struct PointWriter {
    points: Output,
    residuals: Output,
}

impl PointWriter {
    pub(super) fn new(folder: &Folder) -> Result<Self> {
        Ok(Self {
            points: folder.create(POINTS, 1 << 20)?,
            residuals: folder.create(RESIDUALS, 1 << 16)?,
        })
    }

    pub(super) fn push(&mut self, points: &[f32], residuals: &[f32]) -> Result<()> {
        self.points.put(points)?;
        self.residuals.put(residuals)
    }

    pub(super) fn finish(self) -> Result<()> {
        self.points.finish()?;
        self.residuals.finish()
    }
}

/// Reads points.
pub(super) struct PointFile<'a> {
    points: Input,
    residuals: Input,
    rows: usize,
    dim: usize,
    cancel: &'a Cancel,
}

impl<'a> PointFile<'a> {
    pub(super) fn open(
        folder: &Folder,
        rows: usize,
        dim: usize,
        cancel: &'a Cancel,
    ) -> Result<Self> {
        Ok(Self {
            points: folder.open(POINTS)?,
            residuals: folder.open(RESIDUALS)?,
            rows,
            dim,
            cancel,
        })
    }

    /// `count` points from `first` on.
    pub(super) fn read(&self, first: usize, count: usize) -> Result<Vec<f32>> {
        let mut values = vec![0.0; count * self.dim];
        self.points
            .read(&mut values, first as u64 * self.dim as u64 * 4)?;
        Ok(values)
    }

    /// Their squared distances from the truncated space.
    pub(super) fn residuals(&self, first: usize, count: usize) -> Result<Vec<f32>> {
        let mut values = vec![0.0; count];
        self.residuals.read(&mut values, first as u64 * 4)?;
        Ok(values)
    }

    pub(super) fn discard(folder: &Folder) {
        folder.discard(POINTS);
        folder.discard(RESIDUALS);
    }
}

impl Points for PointFile<'_> {
    fn len(&self) -> usize {
        self.rows
    }

    fn gather(&self, rows: &[u32]) -> Result<Matrix> {
        let mut values = vec![0.0; rows.len() * self.dim];
        for (row, values) in rows.iter().zip(values.chunks_exact_mut(self.dim)) {
            let offset = u64::from(*row) * self.dim as u64 * 4;
            self.points.read(values, offset)?;
        }
        Ok(Matrix::from_vec(values, self.dim)?)
    }

    fn for_each_block(&self, each: &mut dyn FnMut(usize, Rows<'_>) -> Result<()>) -> Result<()> {
        let most = block_rows(self.dim, BLOCK_MULTIPLE);
        for first in (0..self.rows).step_by(most) {
            self.cancel.check()?;
            let count = most.min(self.rows - first);
            let values = self.read(first, count)?;
            each(first, Rows::new(&values, self.dim)?)?;
        }
        Ok(())
    }
}
