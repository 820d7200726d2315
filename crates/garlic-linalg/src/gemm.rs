//! General matrix product.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// Whether an operand enters a product as stored or transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trans {
    /// As stored.
    No,
    /// Transposed.
    Yes,
}

/// `C = beta * C + alpha * op(A) * op(B)` on row-major slices, on the calling thread.
///
/// `C` is `m x n`, `op(A)` is `m x k` and `op(B)` is `k x n`: with `Trans::Yes` the slice holds the transpose
/// (`A` is stored `k x m`, `B` is stored `n x k`). With `beta == 0` the old contents of `C` are not read.
/// Panics when a slice is shorter than its shape; values past the shape are left alone.
#[expect(clippy::too_many_arguments, reason = "the shape every BLAS user knows")]
pub fn gemm(
    c: &mut [f32],
    a: &[f32],
    ta: Trans,
    b: &[f32],
    tb: Trans,
    m: usize,
    n: usize,
    k: usize,
    alpha: f32,
    beta: f32,
) {
    let c = &mut c[..m * n];
    let accum = scale(c, beta);
    matmul(
        MatMut::from_row_major_slice_mut(c, m, n),
        accum,
        operand(a, ta, m, k),
        operand(b, tb, k, n),
        alpha,
        Par::Seq,
    );
}

/// The same product in double precision, for the decompositions.
#[expect(clippy::too_many_arguments, reason = "the same shape as `gemm`")]
pub(crate) fn gemm64(
    c: &mut [f64],
    a: &[f64],
    ta: Trans,
    b: &[f64],
    tb: Trans,
    m: usize,
    n: usize,
    k: usize,
    alpha: f64,
    accum: bool,
) {
    let accum = if accum { Accum::Add } else { Accum::Replace };
    matmul(
        MatMut::from_row_major_slice_mut(&mut c[..m * n], m, n),
        accum,
        operand(a, ta, m, k),
        operand(b, tb, k, n),
        alpha,
        Par::Seq,
    );
}

/// Applies `beta` to the destination and says how the product joins it.
pub(crate) fn scale(c: &mut [f32], beta: f32) -> Accum {
    if beta == 0.0 {
        return Accum::Replace;
    }
    if beta != 1.0 {
        for value in c {
            *value *= beta;
        }
    }
    Accum::Add
}

/// `op(A)` with `rows x cols` as its shape after the transposition.
fn operand<T>(data: &[T], trans: Trans, rows: usize, cols: usize) -> MatRef<'_, T> {
    let data = &data[..rows * cols];
    match trans {
        Trans::No => MatRef::from_row_major_slice(data, rows, cols),
        Trans::Yes => MatRef::from_row_major_slice(data, cols, rows).transpose(),
    }
}
