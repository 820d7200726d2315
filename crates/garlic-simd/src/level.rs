//! Which instruction set is used.

use std::sync::OnceLock;

/// An instruction set the kernels are written for, from the simplest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust: the oracle.
    Scalar,
    /// 256-bit vectors: AVX2, fused multiply-add and half-precision conversion.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors: AVX-512 F, BW, DQ, VL and VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The name that `GARLIC_SIMD` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }
}

/// The levels this machine has, the simplest first.
pub fn levels() -> Vec<Level> {
    #[allow(unused_mut)]
    let mut found = vec![Level::Scalar];
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        if avx2 {
            found.push(Level::Avx2);
        }
        if avx2 && avx512 {
            found.push(Level::Avx512);
        }
    }
    found
}

/// The level in use: the best one, or the one `GARLIC_SIMD` names if the machine has it.
#[inline]
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let found = levels();
        let wanted = std::env::var("GARLIC_SIMD").unwrap_or_default();
        let named = found.iter().copied().find(|l| l.name() == wanted);
        named.unwrap_or(found[found.len() - 1])
    })
}
