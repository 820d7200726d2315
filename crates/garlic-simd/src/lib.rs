//! Numeric kernels: the only crate of the workspace with `unsafe` code for speed.
//!
//! Every kernel has a scalar version that is the oracle of its tests; the instruction set is chosen once, at
//! the first call. The environment variable `GARLIC_SIMD` (`scalar`, `avx2`, `avx512`) lowers the choice, so
//! that a whole test suite can run on one level; a level the machine does not have is ignored.
//!
//! The arithmetic of one result depends on the instruction set but never on how the caller groups its work:
//! a distance is the same number in a batch of one and in a batch of thousands. Scans of codes go further: their
//! sums are integers, so that every instruction set gives the same estimates.

/// Calls the kernel of the chosen instruction set.
macro_rules! dispatch {
    ($level:expr, $name:ident($($arg:expr),*)) => {
        match $level {
            $crate::Level::Scalar => $crate::scalar::$name($($arg),*),
            // SAFETY: `level` and `levels` only name instruction sets that this machine has.
            #[cfg(target_arch = "x86_64")]
            $crate::Level::Avx2 => unsafe { $crate::x86::avx2::$name($($arg),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::Level::Avx512 => unsafe { $crate::x86::avx512::$name($($arg),*) },
        }
    };
}

mod codes;
mod int8;
mod level;
mod marks;
mod prefetch;
mod row_codes;
mod rows;
mod scalar;
mod select;
mod stored;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use codes::{
    CODE_LANES, CodeBits, CodeQuery, Estimate, MAX_CODE_RANK, code_block_bytes, code_weights,
    scan_codes,
};
pub use int8::{INT8_BLOCK, encode_int8, int8_row_bytes, int8_steps, l2_squared_int8, widen_int8};
pub use level::{Level, level, levels};
pub use marks::Marks;
pub use prefetch::prefetch;
pub use row_codes::{ROW_CODE_LINE, RowCodeQuery, RowCodes, estimate_rows, row_code_weights};
pub use rows::{dots, dots_bytes, dots_bytes_at, dots_many, l2_squared_rows};
pub use select::keep_smallest;
pub use stored::{
    MAX_U8_LENGTH, f16_to_f32, f32_to_f16, l2_squared_f16, l2_squared_u8, l2_squared_u8_u8,
    widen_f16, widen_u8,
};

/// Points that [`solve_rows`] handles side by side.
pub const LANES: usize = 32;

/// Cells that [`prefix_norms`] handles side by side.
pub const GROUP: usize = 16;

/// Squared Euclidean distance. Panics when the lengths differ.
#[inline]
pub fn l2_squared(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of different length");
    dispatch!(level(), l2_squared(a, b))
}

/// Inner product. Panics when the lengths differ.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of different length");
    dispatch!(level(), dot(a, b))
}

/// Rows `from..to` of the solution y of `L y = r` for [`LANES`] right-hand sides at once.
///
/// `l` is a packed lower-triangular matrix (entry (i, j) at `i * (i + 1) / 2 + j`) of at least `to` rows,
/// `residual` holds rows `from..to` of the right-hand sides and `y` the solution, both as rows of [`LANES`]
/// values. Rows `..from` of `y` are read, rows `from..to` written, and the squares of what was written are
/// added to `sums`: the squared length of the solution so far, a lower bound that only grows.
///
/// Panics when a slice is too short.
#[inline]
pub fn solve_rows(
    l: &[f32],
    from: usize,
    to: usize,
    residual: &[f32],
    y: &mut [f32],
    sums: &mut [f32; LANES],
) {
    assert!(from <= to, "an empty range of rows goes upwards");
    assert!(l.len() >= to * (to + 1) / 2, "the factor has too few rows");
    assert!(
        residual.len() >= (to - from) * LANES,
        "the residual has too few rows"
    );
    assert!(y.len() >= to * LANES, "the solution has too few rows");
    dispatch!(level(), solve_rows(l, from, to, residual, y, sums));
}

/// Squared length of `W (x - mean)` for [`GROUP`] lower-triangular matrices W at once.
///
/// `w` holds the packed entries of the matrices interleaved (entry e of lane t at `e * GROUP + t`), `means`
/// the means likewise. The matrices have `x.len()` rows.
///
/// Panics when a slice is too short.
#[inline]
pub fn prefix_norms(w: &[f32], means: &[f32], x: &[f32]) -> [f32; GROUP] {
    let m = x.len();
    assert!(
        w.len() >= m * (m + 1) / 2 * GROUP,
        "the factors have too few rows"
    );
    assert!(means.len() >= m * GROUP, "the means are too short");
    assert!(m <= MAX_PREFIX, "the prefix is too long");
    dispatch!(level(), prefix_norms(w, means, x))
}

/// Longest prefix that [`prefix_norms`] takes.
pub const MAX_PREFIX: usize = 64;

#[cfg(test)]
mod tests;
