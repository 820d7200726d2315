//! One vector against many rows.

use std::hint::black_box;

use garlic_simd::{dots, dots_bytes, l2_squared_rows};

use crate::{aligned, best, show};

pub(crate) fn run() {
    type Kernel = fn(&[f32], &[f32], &mut [f32]);
    let kernels = [
        ("dots", dots as Kernel),
        ("l2_squared_rows", l2_squared_rows as Kernel),
    ];
    for (count, dim) in [
        (128usize, 784usize),
        (32, 128),
        (64, 64),
        (256, 32),
        (256, 16),
        (4096, 16),
        (4096, 128),
    ] {
        let (rows, from) = aligned::<f32>(count * dim);
        let rows = &rows[from..][..count * dim];
        let (x, from) = aligned::<f32>(dim);
        let x = &x[from..][..dim];
        let mut out = vec![0.0f32; count];
        let passes = (40_000_000 / (count * dim)).max(1);
        let madds = (passes * count * dim) as f64;
        for (name, kernel) in kernels {
            let seconds = best(|| {
                for _ in 0..passes {
                    kernel(black_box(rows), black_box(x), &mut out);
                    black_box(&mut out);
                }
            });
            let name = format!("{name} {count} x {dim}");
            show(&name, seconds, madds, madds * 4.0);
        }
    }
    bytes();
}

/// Rows of whole numbers against one query, and against a batch that shares their loads.
fn bytes() {
    let (count, dim) = (96usize, 784usize);
    let rows = vec![black_box(3i8); count * dim];
    for queries in [1usize, 48] {
        let xs = vec![black_box(7u8); queries * dim];
        let mut out = vec![0i32; count * queries];
        let passes = 2000 / queries;
        let seconds = best(|| {
            for _ in 0..passes {
                dots_bytes(black_box(&rows), black_box(&xs), dim, &mut out);
                black_box(&mut out);
            }
        });
        let madds = (passes * count * dim * queries) as f64;
        let name = format!("dots_bytes {count} x {dim}, {queries} at a time");
        show(&name, seconds, madds, madds);
    }
}
