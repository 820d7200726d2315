//! Assigns vectors to cells, as an insertion does.

use std::borrow::Cow;

use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use crate::partition::{Cells, SCORED_CELLS};
use crate::segment::{Index, Snapshot};
use crate::transform::residuals_squared;
use garlic_core::validate::{check_count, check_finite};
use garlic_core::{Cancel, Error, Result};

/// Vectors that are assigned together. Products of matrices of another shape round differently, so that the last group
/// is padded to this size.
const GROUP: usize = 256;

/// Vectors with their cells.
pub(super) struct Assigned {
    /// The transformed vectors.
    pub(super) points: Matrix,
    /// Squared distance of each vector from the truncated space.
    pub(super) residual_squared: Vec<f32>,
    pub(super) cells: Vec<u32>,
    /// Squared distance of each vector from the mean of its cell.
    pub(super) radii: Vec<f32>,
}

impl Index {
    /// The cell that each vector would join, and its squared distance from the mean of that cell. The index may be
    /// empty, as after [`Builder::train`](crate::Builder::train).
    ///
    /// The answer for a vector does not depend on the other vectors, so that a data set can be assigned in parts. For
    /// inner products, vectors longer than those the index was trained on join the cell of their direction.
    ///
    /// # Errors
    /// Fails for vectors of another dimension or with values that cannot be indexed, and for a damaged file.
    pub fn assign(&self, vectors: Rows<'_>) -> Result<(Vec<u32>, Vec<f32>)> {
        self.check_layout()?;
        if vectors.dim() != self.dim() {
            return Err(Error::VectorDimension {
                expected: self.dim(),
                found: vectors.dim(),
            });
        }
        if vectors.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        check_count(vectors)?;
        let embedded = self.embedding.compared(vectors)?;
        // An index that may switch to 32-bit floats stores any vector as it is.
        let rounded = match self.may_widen() {
            true => Cow::Borrowed(embedded.rows().data()),
            false => self.segment.vectors.element().round(embedded.rows()),
        };
        let dim = embedded.rows().dim();
        let snapshot = self.snapshot();
        let assigned: Vec<Assigned> = self.workers.get()?.install(|| {
            check_finite(vectors)?;
            let groups = rounded.par_chunks(GROUP * dim);
            let assign = |group: &[f32]| {
                let mut padded = vec![0.0; GROUP * dim];
                padded[..group.len()].copy_from_slice(group);
                self.assign_rounded(&snapshot, Rows::new(&padded, dim)?)
            };
            groups.map(assign).collect::<Result<_>>()
        })?;
        let count = vectors.len();
        let cells = assigned.iter().flat_map(|group| &group.cells);
        let radii = assigned.iter().flat_map(|group| &group.radii);
        Ok((
            cells.take(count).copied().collect(),
            radii.take(count).copied().collect(),
        ))
    }

    /// Assigns vectors in their stored form. Runs in the current rayon pool.
    pub(super) fn assign_rounded(
        &self,
        snapshot: &Snapshot<'_>,
        vectors: Rows<'_>,
    ) -> Result<Assigned> {
        let points = self.transform.apply_all(vectors, &Cancel::current())?;
        let residual_squared = residuals_squared(vectors, &self.transform, points.as_rows());
        let cells = Cells {
            anisotropy: self.segment.cells.anisotropy,
            rank: self.segment.cells.rank(),
            means: snapshot.means(),
            shape: |cell: usize| {
                let frame = snapshot.frame(cell);
                (
                    frame.shape.axes,
                    frame.shape.variances,
                    frame.shape.residual_variance,
                )
            },
        };
        let cells = cells.assign(points.as_rows(), SCORED_CELLS, &Cancel::current())?;
        let radii = (0..vectors.len())
            .map(|row| {
                let mean = snapshot.mean(cells[row] as usize);
                garlic_simd::l2_squared(points.row(row), mean) + residual_squared[row]
            })
            .collect();
        Ok(Assigned {
            points,
            residual_squared,
            cells,
            radii,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{clustered, ids};
    use garlic_core::Metric;

    /// An index without points, trained on the first half of some clusters.
    fn trained(metric: Metric) -> (Index, Matrix) {
        let all = Matrix::from_vec(clustered(2000, 8, 4.0, 1.0, 1), 8).unwrap();
        let half: Vec<u32> = (0..1000).collect();
        let sample = Matrix::gather(all.as_rows(), &half);
        let builder = Index::builder().metric(metric).cells(6).threads(1);
        (builder.train(sample.as_rows()).unwrap(), all)
    }

    #[test]
    fn vectors_are_assigned_to_the_cells_that_they_join_when_added() {
        for metric in [Metric::Euclidean, Metric::Cosine] {
            let (model, all) = trained(metric);
            let (cells, radii) = model.assign(all.as_rows()).unwrap();
            let mut sizes = vec![0; model.cells()];
            cells.iter().for_each(|cell| sizes[*cell as usize] += 1);
            let few: Vec<u32> = (0..40).collect();
            let some = Matrix::gather(all.as_rows(), &few);
            let mut index = model.clone();
            index.add_only(some.as_rows(), &ids(0..40)).unwrap();
            let joined = index.snapshot();
            for cell in 0..model.cells() {
                let expected = cells[..40].iter().filter(|c| **c as usize == cell).count();
                assert_eq!(joined.points_in(cell), expected);
            }
            assert!(sizes.iter().all(|size| *size > 0));
            assert!(radii.iter().all(|r| r.is_finite() && *r >= 0.0));
        }
    }

    #[test]
    fn a_vector_is_assigned_alike_alone_and_among_others() {
        for metric in [Metric::Euclidean, Metric::Cosine, Metric::InnerProduct] {
            let (model, mut all) = trained(metric);
            // Longer than anything in the sample.
            all.row_mut(1999).iter_mut().for_each(|v| *v *= 50.0);
            let together = model.assign(all.as_rows()).unwrap();
            for row in (0..2000).step_by(61).chain([255, 1999]) {
                let alone = Matrix::gather(all.as_rows(), &[row as u32]);
                let (cells, radii) = model.assign(alone.as_rows()).unwrap();
                assert_eq!((cells[0], radii[0]), (together.0[row], together.1[row]));
            }
        }
    }

    #[test]
    fn vectors_that_cannot_be_indexed_are_errors() {
        let (model, _) = trained(Metric::Euclidean);
        let wrong = Rows::new(&[1.0; 9], 9).unwrap();
        assert!(matches!(
            model.assign(wrong),
            Err(Error::VectorDimension {
                expected: 8,
                found: 9
            })
        ));
        let mut values = [1.0; 16];
        values[12] = f32::NAN;
        let message = model.assign(Rows::new(&values, 8).unwrap()).unwrap_err();
        assert!(message.to_string().contains('1'), "{message}");
        assert!(
            model
                .assign(Rows::new(&[], 8).unwrap())
                .unwrap()
                .0
                .is_empty()
        );
    }
}
