//! Kernels for x86-64. The public functions have checked all lengths and that the machine has the features.

mod codes;

pub(crate) mod avx2;
pub(crate) mod avx512;
