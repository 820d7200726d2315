//! Speed of every kernel: multiply-adds and bytes a second, best of several runs, to hold against what the
//! machine can do.
//!
//! `cargo run --release -p garlic-simd --example roofline`; set `GARLIC_SIMD` to see another level.

#![allow(clippy::print_stdout)]

mod codes;
mod rows;
mod stored;

use std::hint::black_box;
use std::time::Instant;

use garlic_simd::{GROUP, LANES, dot, l2_squared, level, prefix_norms, solve_rows};

/// Seconds of the fastest of several runs.
fn best(mut run: impl FnMut()) -> f64 {
    (0..9)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn show(name: &str, seconds: f64, madds: f64, bytes: f64) {
    println!(
        "{name:34} {:8.1} Gmadd/s {:8.1} GB/s",
        madds / seconds / 1e9,
        bytes / seconds / 1e9
    );
}

/// One query against rows that fit the first cache, the second, and none.
fn distances() {
    let dim = 128;
    let query = vec![0.25f32; dim];
    for (place, rows) in [("L1", 32), ("L2", 800), ("memory", 400_000)] {
        let data = vec![0.5f32; rows * dim];
        let passes = (4_000_000 / rows).clamp(1, 20_000);
        let madds = (passes * rows * dim) as f64;
        type Kernel = fn(&[f32], &[f32]) -> f32;
        for (name, kernel) in [("l2_squared", l2_squared as Kernel), ("dot", dot as Kernel)] {
            let seconds = best(|| {
                for _ in 0..passes {
                    let rows = data.chunks_exact(dim);
                    black_box(rows.map(|row| kernel(black_box(&query), row)).sum::<f32>());
                }
            });
            show(
                &format!("{name} d {dim}, rows in {place}"),
                seconds,
                madds,
                madds * 4.0,
            );
        }
    }
}

fn solves() {
    for dim in [32usize, 128, 784] {
        let mut factor = vec![0.01f32; dim * (dim + 1) / 2];
        (0..dim).for_each(|i| factor[i * (i + 1) / 2 + i] = 1.0);
        let residual = vec![0.5f32; dim * LANES];
        let mut solution = vec![0.0f32; dim * LANES];
        let passes = (40_000_000 / (dim * dim * LANES)).max(1);
        let seconds = best(|| {
            for _ in 0..passes {
                let mut sums = [0.0; LANES];
                solve_rows(
                    &factor,
                    0,
                    dim,
                    black_box(&residual),
                    &mut solution,
                    &mut sums,
                );
                black_box(sums);
            }
        });
        let madds = (passes * LANES * (dim * (dim + 1) / 2 + dim)) as f64;
        show(
            &format!("solve_rows d {dim}"),
            seconds,
            madds,
            (passes * factor.len() * 4) as f64,
        );
    }
}

fn prefixes() {
    let (m, groups, passes) = (32usize, 24usize, 200);
    let entries = m * (m + 1) / 2 * GROUP;
    let factors = vec![0.1f32; entries * groups];
    let means = vec![0.2f32; m * GROUP * groups];
    let query = vec![0.3f32; m];
    let seconds = best(|| {
        for _ in 0..passes {
            for g in 0..groups {
                let (factors, means) = (&factors[g * entries..], &means[g * m * GROUP..]);
                black_box(prefix_norms(factors, means, black_box(&query)));
            }
        }
    });
    let madds = (passes * groups * (entries + m * GROUP)) as f64;
    show(
        "prefix_norms m 32, 384 cells",
        seconds,
        madds,
        (passes * groups * entries * 4) as f64,
    );
}

fn main() {
    println!("level {}", level().name());
    distances();
    solves();
    prefixes();
    rows::run();
    codes::run();
    stored::run();
}

/// `n` pseudo-random numbers below `below`: places to go in an order that no hardware guesses.
fn places(n: usize, below: usize) -> Vec<usize> {
    let mut state = 1u64;
    let step = |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    (0..n).map(step).collect()
}

/// Values that start at a cache line, as mapped files and large arrays do. They are written, because pages that
/// never were are all the same one and stay in the cache.
fn aligned<T: Copy + From<u8>>(n: usize) -> (Vec<T>, usize) {
    let data = vec![black_box(T::from(1)); n + 64];
    let from = data.as_ptr().align_offset(64);
    (data, from)
}
