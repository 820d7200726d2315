//! One vector against many rows.

use crate::level;

/// Inner products of `x` with the rows of a row-major matrix: `out[i] = <row i, x>`.
///
/// The result of a row depends neither on the other rows nor on how many there are. It may differ from that of
/// [`dot`](crate::dot) in its last bits, because the sums are grouped differently.
///
/// Panics when `rows` does not have `out.len()` rows of `x.len()` values.
#[inline]
pub fn dots(rows: &[f32], x: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), out.len() * x.len(), "rows of different length");
    dispatch!(level(), dots(rows, x, out));
}

/// Squared Euclidean distances of `x` to the rows of a row-major matrix.
///
/// The result of a row depends neither on the other rows nor on how many there are. It may differ from that of
/// [`l2_squared`](crate::l2_squared) in its last bits, because the sums are grouped differently.
///
/// Panics when `rows` does not have `out.len()` rows of `x.len()` values.
#[inline]
pub fn l2_squared_rows(rows: &[f32], x: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), out.len() * x.len(), "rows of different length");
    dispatch!(level(), l2_squared_rows(rows, x, out));
}
