//! 512-bit kernels (AVX-512 F, BW, DQ, VL and VNNI).

mod bytes;
mod codes;
mod int8;
mod reduce;
mod row_codes;
mod rows;
mod select;
mod solve;
mod stored;

pub(crate) use bytes::{dots_bytes, dots_bytes_at};
pub(crate) use codes::{code_weights, scan_codes};
pub(crate) use int8::{l2_squared_int8, widen_int8};
pub(crate) use reduce::{dot, l2_squared, l2_squared_f16, l2_squared_u8};
pub(crate) use row_codes::{estimate_rows, row_code_weights};
pub(crate) use rows::{dots, dots_many, l2_squared_rows};
pub(crate) use select::keep_smallest;
pub(crate) use solve::{prefix_norms, solve_rows};
pub(crate) use stored::{l2_squared_u8_u8, widen_f16, widen_u8};
