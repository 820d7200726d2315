//! A cell's own low-dimensional coordinates: the principal axes of its members.

use garlic_linalg::{Matrix, Rows, top_components};

/// Centre and orthonormal axes; projecting never lengthens a distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Mean of the members.
    pub centre: Vec<f32>,
    /// Axes, one a row; fewer than asked for when the members span less, none for a point mass.
    pub basis: Matrix,
}

impl Frame {
    /// The frame of at most `rank` axes that keeps most of the members' spread.
    pub(crate) fn fit(members: Rows<'_>, rank: usize, seed: u64) -> Self {
        let fitted = top_components(members, rank.min(members.dim()), seed);
        Self {
            centre: fitted.mean,
            basis: fitted.basis,
        }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.basis.rows()
    }

    /// Coordinates of a point, appended to `out`.
    pub fn project(&self, point: &[f32], centred: &mut Vec<f32>, out: &mut Vec<f32>) {
        centred.clear();
        centred.extend(point.iter().zip(&self.centre).map(|(x, c)| x - c));
        out.extend(
            self.basis
                .as_rows()
                .iter()
                .map(|axis| garlic_simd::dot(axis, centred)),
        );
    }

    /// Multiply-adds of one projection.
    pub(crate) fn project_madds(&self) -> u64 {
        ((self.rank() + 1) * self.centre.len()) as u64
    }
}
