//! The transform from vectors to the space of the cells.
//!
//! Each index fits its own. Exact distances are always computed between the vectors themselves.

use garlic_linalg::{Matrix, Operand, Rows, gemm};
use rayon::prelude::*;

use crate::cancel::Cancel;
use crate::error::Result;

/// Number of rows per task. Tasks of rows with more than a thousand coordinates have fewer.
const ROWS_PER_TASK: usize = 512;

/// An affine transform: subtracts the mean, scales, rotates.
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    /// The subtracted mean.
    pub mean: Vec<f32>,
    /// The scale factor of each coordinate.
    pub scale: Vec<f32>,
    /// Principal axes, one per row. `None` without rotation.
    pub rotation: Option<Matrix>,
}

impl Transform {
    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Dimension of the transformed space. It is smaller than [`Transform::dim`] if the space is truncated.
    pub fn out_dim(&self) -> usize {
        self.rotation.as_ref().map_or(self.dim(), Matrix::rows)
    }

    /// Transforms one vector. Panics if its length is not [`Transform::dim`], or that of `out` not
    /// [`Transform::out_dim`].
    pub fn apply(&self, row: &[f32], out: &mut [f32]) {
        match &self.rotation {
            None => self.normalise(row, out),
            Some(rotation) => {
                let mut centred = vec![0.0; row.len()];
                self.normalise(row, &mut centred);
                for (axis, value) in rotation.as_rows().iter().zip(out) {
                    *value = garlic_simd::dot(axis, &centred);
                }
            }
        }
    }

    /// Multiply-adds of [`Transform::apply`].
    pub fn apply_madds(&self) -> u64 {
        let dim = self.dim() as u64;
        dim + self.rotation.as_ref().map_or(0, |r| dim * r.rows() as u64)
    }

    /// Number of rows that [`Transform::apply_all`] transforms at a time. Rounding may depend on it: rows that are
    /// transformed in several calls give the same values if each call but the last has a multiple of it.
    pub fn rows_per_task(&self) -> usize {
        (ROWS_PER_TASK * 1024 / self.dim().max(1)).clamp(32, ROWS_PER_TASK)
    }

    /// Transforms all rows in the current rayon pool.
    ///
    /// # Errors
    /// Fails if cancelled.
    pub fn apply_all(&self, rows: Rows<'_>, cancel: &Cancel) -> Result<Matrix> {
        let (dim, wide) = (self.dim(), self.out_dim());
        let chunk = self.rows_per_task();
        let mut out = Matrix::zeros(rows.len(), wide);
        out.as_mut_slice()
            .par_chunks_mut(chunk * wide)
            .zip(rows.data().par_chunks(chunk * dim))
            .try_for_each(|(out, rows)| -> Result<()> {
                cancel.check()?;
                let Some(rotation) = &self.rotation else {
                    self.normalise(rows, out);
                    return Ok(());
                };
                let mut centred = vec![0.0; rows.len()];
                self.normalise(rows, &mut centred);
                let count = rows.len() / dim;
                let axes = rotation.as_slice();
                gemm(
                    out,
                    Operand::new(&centred, count, dim),
                    Operand::transposed(axes, wide, dim),
                    1.0,
                    0.0,
                );
                Ok(())
            })?;
        Ok(out)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let rotation = self.rotation.as_ref().map_or(&[][..], Matrix::as_slice);
        (size_of_val(rotation) + size_of_val(&*self.mean) + size_of_val(&*self.scale)) as u64
    }

    fn normalise(&self, rows: &[f32], out: &mut [f32]) {
        let dim = self.dim();
        for (row, out) in rows.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            for (((o, x), m), s) in out.iter_mut().zip(row).zip(&self.mean).zip(&self.scale) {
                *o = (x - m) * s;
            }
        }
    }
}
