//! Seeded randomness: one seed for the whole run, one stream for each task.
//!
//! The conversions to integers and floats are written out here because those of general-purpose crates may
//! change between versions, and with them the bytes of every index built from the same seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The random stream of one task: different tasks under one seed never share values.
pub fn random_stream(seed: u64, task: u64) -> ChaCha8Rng {
    let mut state = seed;
    let mut key = [0u8; 32];
    for word in key.chunks_exact_mut(8) {
        word.copy_from_slice(&split_mix(&mut state).to_le_bytes());
    }
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(task);
    rng
}

/// A uniform integer in `0..n`; zero when `n` is zero.
pub fn uniform_below(rng: &mut impl Rng, n: usize) -> usize {
    // The bias of one multiplication is below n / 2^64.
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// A uniform number in [0, 1) with 53 random bits.
pub fn uniform_unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A uniformly random order of `0..n` (Fisher-Yates).
pub fn permutation(n: usize, seed: u64, task: u64) -> Vec<u32> {
    partial_permutation(n, n, seed, task)
}

/// The first `k` entries of a random order of `0..n`, without shuffling the rest.
pub(crate) fn partial_permutation(n: usize, k: usize, seed: u64, task: u64) -> Vec<u32> {
    let mut rng = random_stream(seed, task);
    let mut order: Vec<u32> = (0..n as u32).collect();
    let k = k.min(n);
    for i in 0..k {
        let j = i + uniform_below(&mut rng, n - i);
        order.swap(i, j);
    }
    order.truncate(k);
    order
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
