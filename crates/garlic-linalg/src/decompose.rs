//! Cholesky factor and symmetric eigenvectors in double precision.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{
    LltError, LltParams, LltRegularization, cholesky_in_place, cholesky_in_place_scratch,
};
use faer::linalg::evd::{
    ComputeEigenvectors, SelfAdjointEvdParams, self_adjoint_evd, self_adjoint_evd_scratch,
};
use faer::{Auto, MatMut, MatRef, Par, Spec};
use thiserror::Error;

/// A matrix without a Cholesky factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the matrix is not positive definite (pivot {pivot} is not positive); add a small multiple of the identity"
)]
pub struct NotPositiveDefinite {
    /// First row, counted from zero, whose pivot is not positive.
    pub pivot: usize,
}

/// Eigenvalues and eigenvectors of a symmetric matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Eigen {
    /// Eigenvalues, descending.
    pub values: Vec<f64>,
    /// Row-major; row `j` is the unit eigenvector of `values[j]`, its entry of largest magnitude positive.
    pub vectors: Vec<f64>,
}

/// The lower triangular `L` with `L L^T = A` (row-major, zeros above the diagonal); only the lower triangle of
/// `a` is read.
pub fn cholesky(a: &[f64], d: usize) -> Result<Vec<f64>, NotPositiveDefinite> {
    let mut l = a[..d * d].to_vec();
    for (i, row) in l.chunks_exact_mut(d.max(1)).enumerate() {
        row[i + 1..].fill(0.0);
    }
    let params: Spec<LltParams, f64> = <LltParams as Auto<f64>>::auto().into();
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(d, Par::Seq, params));
    cholesky_in_place(
        MatMut::from_row_major_slice_mut(&mut l, d, d),
        LltRegularization::default(),
        Par::Seq,
        MemStack::new(&mut memory),
        params,
    )
    .map_err(|LltError::NonPositivePivot { index }| NotPositiveDefinite { pivot: index })?;
    // A NaN pivot compares false with every bound, so it can slip through the factorisation.
    match (0..d).find(|&i| !(l[i * d + i] > 0.0 && l[i * d + i].is_finite())) {
        Some(pivot) => Err(NotPositiveDefinite { pivot }),
        None => Ok(l),
    }
}

/// All eigenpairs of a symmetric matrix; only its lower triangle is read.
///
/// The sign of each vector is fixed (its entry of largest magnitude, the first such on ties, is positive), so
/// the result is reproducible. Non-finite input gives NaN eigenvalues and the unit vectors.
pub fn symmetric_eigen(a: &[f64], d: usize) -> Eigen {
    let a = &a[..d * d];
    let mut ascending = vec![0.0; d];
    let mut columns = vec![0.0; d * d];
    let params: Spec<SelfAdjointEvdParams, f64> =
        <SelfAdjointEvdParams as Auto<f64>>::auto().into();
    // The library's scratch size underflows for an empty matrix.
    let finite = d > 0 && a.iter().all(|v| v.is_finite());
    let solved = finite && {
        let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<f64>(
            d,
            ComputeEigenvectors::Yes,
            Par::Seq,
            params,
        ));
        self_adjoint_evd(
            MatRef::from_row_major_slice(a, d, d),
            DiagMut::from_slice_mut(&mut ascending),
            // Column-major eigenvectors in the columns: each one is contiguous.
            Some(MatMut::from_column_major_slice_mut(&mut columns, d, d)),
            Par::Seq,
            MemStack::new(&mut memory),
            params,
        )
        .is_ok()
    };
    if !solved {
        let mut vectors = vec![0.0; d * d];
        vectors.iter_mut().step_by(d + 1).for_each(|v| *v = 1.0);
        return Eigen {
            values: vec![f64::NAN; d],
            vectors,
        };
    }
    let mut vectors = Vec::with_capacity(d * d);
    for column in columns.chunks_exact(d.max(1)).rev() {
        let sign = dominant_sign(column);
        vectors.extend(column.iter().map(|v| sign * v));
    }
    ascending.reverse();
    Eigen {
        values: ascending,
        vectors,
    }
}

/// The sign of the entry of largest magnitude, the first such on ties.
pub(crate) fn dominant_sign(vector: &[f64]) -> f64 {
    let mut largest = 0.0f64;
    for &v in vector {
        if v.abs() > largest.abs() {
            largest = v;
        }
    }
    if largest < 0.0 { -1.0 } else { 1.0 }
}
