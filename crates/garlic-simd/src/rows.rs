//! One vector against many rows.

use crate::level;
use crate::row_codes::within;

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

/// [`dots`] for several vectors of `n` values: result i of vector j at `out[j * rows + i]`, the same number that
/// [`dots`] gives.
///
/// Panics when `n` is zero, when `rows` or `xs` is no whole number of rows, or when `out` has not one value for
/// each row and vector.
#[inline]
pub fn dots_many(rows: &[f32], xs: &[f32], n: usize, out: &mut [f32]) {
    assert!(n > 0, "rows without values");
    let (count, vectors) = (rows.len() / n, xs.len() / n);
    assert_eq!(rows.len(), count * n, "rows of different length");
    assert_eq!(xs.len(), vectors * n, "vectors of different length");
    assert_eq!(
        out.len(),
        count * vectors,
        "a result for each row and vector"
    );
    dispatch!(level(), dots_many(rows, xs, n, out));
}

/// Inner products of vectors of `n` bytes with rows of small whole numbers: that of row i with vector j at
/// `out[j * rows + i]`, exact.
///
/// Panics when `n` is zero or above [`MAX_U8_LENGTH`](crate::MAX_U8_LENGTH), when `rows` or `xs` is no whole number of
/// rows, or when `out` has not one value for each row and vector.
#[inline]
pub fn dots_bytes(rows: &[i8], xs: &[u8], n: usize, out: &mut [i32]) {
    assert!(n > 0, "rows without values");
    assert!(
        n <= crate::MAX_U8_LENGTH,
        "vectors too long for 32-bit sums"
    );
    let (count, vectors) = (rows.len() / n, xs.len() / n);
    assert_eq!(rows.len(), count * n, "rows of different length");
    assert_eq!(xs.len(), vectors * n, "vectors of different length");
    assert_eq!(
        out.len(),
        count * vectors,
        "a result for each row and vector"
    );
    dispatch!(level(), dots_bytes(rows, xs, n, out));
}

/// Inner products of a vector of `n` small whole numbers with chosen rows of a table of rows of `n` bytes: `out[i]` is
/// that of row `rows[i]`, exact.
///
/// Panics when `n` is zero or above [`MAX_U8_LENGTH`](crate::MAX_U8_LENGTH), when `x` has not `n` values, when `table`
/// is no whole number of rows, when a row is out of range, or when `out` has not one value for each row.
#[inline]
pub fn dots_bytes_at(table: &[u8], n: usize, x: &[i8], rows: &[u32], out: &mut [i32]) {
    assert!(n > 0, "rows without values");
    assert!(
        n <= crate::MAX_U8_LENGTH,
        "vectors too long for 32-bit sums"
    );
    assert_eq!(x.len(), n, "vectors of different length");
    let count = table.len() / n;
    assert_eq!(table.len(), count * n, "rows of different length");
    assert_eq!(rows.len(), out.len(), "a result for each row");
    assert!(within(rows, count), "a row is out of range");
    dispatch!(level(), dots_bytes_at(table, n, x, rows, out));
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
