//! Scans of codes: a long run of blocks in the second cache, and small bins all over a large array.

use std::hint::black_box;

use garlic_simd::{
    CODE_LANES, CodeBits, CodeQuery, Estimate, code_block_bytes, prefetch, scan_codes,
};

use crate::{aligned, best, places};

fn show(name: &str, seconds: f64, blocks: usize, bytes: usize) {
    println!(
        "{name:44} {:8.1} Mpoints/s {:8.1} GB/s {:8.1} ns a block",
        (blocks * CODE_LANES) as f64 / seconds / 1e6,
        (blocks * bytes) as f64 / seconds / 1e9,
        seconds / blocks as f64 * 1e9,
    );
}

/// Blocks of equal codes whose norms let one lane in `one_in` through.
fn blocks(bytes: usize, count: usize, one_in: usize) -> (Vec<u8>, usize) {
    let (mut data, from) = aligned::<u8>(count * bytes);
    for (b, block) in data[from..].chunks_exact_mut(bytes).take(count).enumerate() {
        for (lane, norm) in block[bytes - 32..]
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .enumerate()
        {
            // The multiplier spreads the survivors so that no branch predictor knows them.
            let drawn = ((b * CODE_LANES + lane) as u32).wrapping_mul(0x9e37_79b1) >> 8;
            let kept = (drawn as usize).is_multiple_of(one_in);
            *norm = (if kept { 1.0f32 } else { 3.0 }).to_le_bytes();
        }
    }
    (data, from)
}

pub(crate) fn run() {
    for bits in [CodeBits::Eight, CodeBits::Four] {
        for rank in [32usize, 64, 128] {
            let weights: Vec<i8> = (0..rank).map(|i| i as i8 - 20).collect();
            let query = CodeQuery {
                weights: &weights,
                scale: 1e-9,
                offset: 0.25,
            };
            let bytes = code_block_bytes(bits, rank);
            let mut out: Vec<Estimate> = Vec::new();

            let count = 300_000 / bytes;
            let (data, from) = blocks(bytes, count, 100);
            let data = &data[from..][..count * bytes];
            let passes = 100;
            let seconds = best(|| {
                for _ in 0..passes {
                    out.clear();
                    scan_codes(bits, black_box(data), &query, 2.0, 0, &mut out);
                    black_box(&mut out);
                }
            });
            let name = format!("scan_codes {bits:?} rank {rank}, 300 kB");
            show(&name, seconds, passes * count, bytes);

            // The same blocks, three to a call: what a call costs, and what survivors do to it.
            for one_in in [1_000_000, 100, 30, 10] {
                let (data, from) = blocks(bytes, count, one_in);
                let data = &data[from..][..count * bytes];
                let seconds = best(|| {
                    for _ in 0..passes {
                        out.clear();
                        for bin in data.chunks_exact(3 * bytes) {
                            scan_codes(bits, black_box(bin), &query, 2.0, 0, &mut out);
                        }
                        black_box(&mut out);
                    }
                });
                let name = format!("  bins of 3, one point in {one_in} kept");
                show(&name, seconds, passes * (count / 3) * 3, bytes);
            }

            let count = (64 << 20) / bytes / 3 * 3;
            let (data, from) = blocks(bytes, count, 100);
            let bin = |b: usize| &data[from + b * 3 * bytes..][..3 * bytes];
            let order = places(100_000, count / 3);
            for ahead in [0usize, 4, 8] {
                let seconds = best(|| {
                    out.clear();
                    for (i, b) in order.iter().enumerate() {
                        if ahead > 0 {
                            prefetch(bin(order[(i + ahead) % order.len()]));
                        }
                        scan_codes(bits, bin(*b), &query, 2.0, *b as u32 * 24, &mut out);
                    }
                    black_box(&mut out);
                });
                let name = format!("  bins of 3 in 64 MB, {ahead} ahead");
                show(&name, seconds, 3 * order.len(), bytes);
            }
        }
    }
}
