//! General matrix product.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// A row-major matrix on its way into a product.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a, T = f32> {
    data: &'a [T],
    /// Shape as stored.
    rows: usize,
    cols: usize,
    transposed: bool,
}

impl<'a, T> Operand<'a, T> {
    /// The `rows x cols` matrix at the beginning of `data`. Panics when `data` is shorter.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self {
            data: &data[..rows * cols],
            rows,
            cols,
            transposed: false,
        }
    }

    /// The transpose of the `rows x cols` matrix at the beginning of `data`. Panics when `data` is shorter.
    pub fn transposed(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self {
            transposed: true,
            ..Self::new(data, rows, cols)
        }
    }

    fn view(self) -> MatRef<'a, T> {
        let stored = MatRef::from_row_major_slice(self.data, self.rows, self.cols);
        match self.transposed {
            false => stored,
            true => stored.transpose(),
        }
    }
}

/// `C = beta * C + alpha * A * B` on row-major slices, on the calling thread.
///
/// With `beta == 0` the old contents of `C` are not read. Values of `c` past the shape of the product are left alone.
/// Panics when the shapes do not go together or `c` is too short.
pub fn gemm(c: &mut [f32], a: Operand<'_>, b: Operand<'_>, alpha: f32, beta: f32) {
    let (a, b) = (a.view(), b.view());
    let (m, n) = (a.nrows(), b.ncols());
    let c = &mut c[..m * n];
    let accum = scale(c, beta);
    let out = MatMut::from_row_major_slice_mut(c, m, n);
    matmul(out, accum, a, b, alpha, Par::Seq);
}

/// The same product in double precision, for the decompositions; added to `c` if `accum` says so.
pub(crate) fn gemm64(
    c: &mut [f64],
    a: Operand<'_, f64>,
    b: Operand<'_, f64>,
    alpha: f64,
    accum: bool,
) {
    let (a, b) = (a.view(), b.view());
    let (m, n) = (a.nrows(), b.ncols());
    let accum = if accum { Accum::Add } else { Accum::Replace };
    let out = MatMut::from_row_major_slice_mut(&mut c[..m * n], m, n);
    matmul(out, accum, a, b, alpha, Par::Seq);
}

/// `B Bᵀ` of a row-major `rows x cols` matrix, in double precision: products of two single-precision numbers are exact.
pub fn gram(b: &[f32], rows: usize, cols: usize) -> Vec<f64> {
    let wide: Vec<f64> = b[..rows * cols].iter().map(|v| f64::from(*v)).collect();
    let mut out = vec![0.0; rows * rows];
    let (left, right) = (
        Operand::new(&wide, rows, cols),
        Operand::transposed(&wide, rows, cols),
    );
    gemm64(&mut out, left, right, 1.0, false);
    out
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
