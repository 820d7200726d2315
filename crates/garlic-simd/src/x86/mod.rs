//! Kernels for x86-64. Callers in `lib.rs` have checked all lengths and that the machine has the features.

pub(crate) mod avx2;
pub(crate) mod avx512;
