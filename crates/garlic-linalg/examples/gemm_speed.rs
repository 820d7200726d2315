//! Prints the speed of the products that dominate training, in GFLOP/s on one thread, best of several runs.
//!
//! `cargo run --release -p garlic-linalg --example gemm_speed [-- DIMENSION ...]`
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par};
use garlic_linalg::{
    Operand, Rows, gemm, lower_accumulate_outer, lower_gram, lower_of_symmetric_times_lower,
    nearest_centres, random_stream, solve_lower, solve_lower_transpose, symmetric_eigen,
    top_components, uniform_unit,
};

/// Whether an operand is stored transposed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trans {
    No,
    Yes,
}

fn operand(data: &[f32], trans: Trans, rows: usize, cols: usize) -> Operand<'_> {
    match trans {
        Trans::No => Operand::new(data, rows, cols),
        Trans::Yes => Operand::transposed(data, cols, rows),
    }
}

fn main() {
    let mut dimensions: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    if dimensions.is_empty() {
        dimensions = vec![784, 128, 96];
    }
    for d in dimensions {
        println!("dimension {d}");
        products(d);
        solves(d);
        data_sets(d);
    }
}

fn products(d: usize) {
    let cube = (d * d * d) as f64;
    let a = random(d * d, 1);
    let b = random(d * d, 2);
    let mut c = vec![0.0f32; d * d];
    for (ta, tb) in [
        (Trans::No, Trans::No),
        (Trans::No, Trans::Yes),
        (Trans::Yes, Trans::No),
    ] {
        time(
            &format!("gemm, transposed {ta:?} {tb:?}"),
            2.0 * cube,
            || {
                gemm(
                    &mut c,
                    operand(&a, ta, d, d),
                    operand(&b, tb, d, d),
                    1.0,
                    0.0,
                );
            },
        );
    }
    time("lower_gram", cube / 3.0, || {
        lower_gram(&mut c, &a, d);
    });
    time("  faer triangular, no mirror", cube / 3.0, || {
        let l = MatRef::from_row_major_slice(&a, d, d);
        triangular::matmul(
            MatMut::from_row_major_slice_mut(&mut c, d, d),
            BlockStructure::TriangularLower,
            Accum::Replace,
            l,
            BlockStructure::TriangularLower,
            l.transpose(),
            BlockStructure::TriangularUpper,
            1.0,
            Par::Seq,
        );
    });
    time("lower_of_symmetric_times_lower", 2.0 * cube / 3.0, || {
        lower_of_symmetric_times_lower(&mut c, &a, &b, d, 1.0, 0.0);
    });
    time("  with beta 0.5", 2.0 * cube / 3.0, || {
        lower_of_symmetric_times_lower(&mut c, &a, &b, d, 1.0, 0.5);
    });
    time("  faer triangular", 2.0 * cube / 3.0, || {
        triangular::matmul(
            MatMut::from_row_major_slice_mut(&mut c, d, d),
            BlockStructure::TriangularLower,
            Accum::Replace,
            MatRef::from_row_major_slice(&a, d, d),
            BlockStructure::Rectangular,
            MatRef::from_row_major_slice(&b, d, d),
            BlockStructure::TriangularLower,
            1.0,
            Par::Seq,
        );
    });
    for p in [32, 256] {
        let t = random(p * d, 3);
        let y = random(p * d, 4);
        time(
            &format!("lower_accumulate_outer, p {p}"),
            (p * d * d) as f64,
            || lower_accumulate_outer(&mut c, &t, &y, p, d, 1.0, 1.0),
        );
    }
    black_box(&c);
}

fn solves(d: usize) {
    let mut l = random(d * d, 5);
    for i in 0..d {
        l[i * d + i] = d as f32;
    }
    for p in [1, 32, 256] {
        let b = random(p * d, 6);
        let mut x = b.clone();
        time(
            &format!("solve_lower, {p} rows"),
            (p * d * d) as f64,
            || {
                x.copy_from_slice(&b);
                solve_lower(&l, d, &mut x, p);
            },
        );
        time(
            &format!("solve_lower_transpose, {p} rows"),
            (p * d * d) as f64,
            || {
                x.copy_from_slice(&b);
                solve_lower_transpose(&l, d, &mut x, p);
            },
        );
    }
}

fn data_sets(d: usize) {
    let square: Vec<f64> = random(d * d, 7).iter().map(|&v| f64::from(v)).collect();
    time("symmetric_eigen", 0.0, || {
        black_box(symmetric_eigen(&square, d));
    });
    let n = 1000;
    let mut data = random(n * d, 8);
    for row in data.chunks_exact_mut(d) {
        for (j, value) in row.iter_mut().enumerate() {
            *value /= (1.0 + j as f32).sqrt();
        }
    }
    let Ok(rows) = Rows::new(&data, d) else {
        return;
    };
    for r in [3, 32] {
        time(&format!("top_components, n {n}, r {r}"), 0.0, || {
            black_box(top_components(rows, r, 1));
        });
    }
    let centres = rows.slice(0..512);
    time(
        "nearest_centres, n 1000, k 512, rayon pool",
        (2 * n * 512 * d) as f64,
        || {
            black_box(nearest_centres(rows, centres));
        },
    );
}

fn time(name: &str, flops: f64, mut work: impl FnMut()) {
    work();
    let mut best = f64::MAX;
    let begin = Instant::now();
    for _ in 0..20 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
        if begin.elapsed().as_secs_f64() > 1.0 {
            break;
        }
    }
    let rate = flops / best * 1e-9;
    println!("  {name:44} {:9.3} ms {rate:7.1} GFLOP/s", best * 1e3);
}

fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 0);
    (0..len)
        .map(|_| uniform_unit(&mut rng) as f32 - 0.5)
        .collect()
}
