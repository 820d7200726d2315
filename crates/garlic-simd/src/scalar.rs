//! Plain versions of all kernels: what the others are tested against.

use crate::{GROUP, LANES, MAX_PREFIX};

/// Independent partial sums, so that rounding does not grow with the length and the compiler may vectorise.
const PARTS: usize = 8;

#[inline]
fn reduce(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0f32; PARTS];
    let (head_a, tail_a) = a.as_chunks::<PARTS>();
    let (head_b, tail_b) = b.as_chunks::<PARTS>();
    for (x, y) in head_a.iter().zip(head_b) {
        for p in 0..PARTS {
            sums[p] += term(x[p], y[p]);
        }
    }
    for (p, (x, y)) in tail_a.iter().zip(tail_b).enumerate() {
        sums[p] += term(*x, *y);
    }
    sums.iter().sum()
}

pub(crate) fn l2_squared(a: &[f32], b: &[f32]) -> f32 {
    reduce(a, b, |x, y| (x - y) * (x - y))
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    reduce(a, b, |x, y| x * y)
}

pub(crate) fn solve_rows(
    l: &[f32],
    from: usize,
    to: usize,
    residual: &[f32],
    y: &mut [f32],
    sums: &mut [f32; LANES],
) {
    for i in from..to {
        let row = &l[i * (i + 1) / 2..][..=i];
        let (known, rest) = y.split_at_mut(i * LANES);
        let mut value = [0.0f32; LANES];
        value.copy_from_slice(&residual[(i - from) * LANES..][..LANES]);
        for (factor, earlier) in row.iter().zip(known.chunks_exact(LANES)) {
            for t in 0..LANES {
                value[t] -= factor * earlier[t];
            }
        }
        let inverse = 1.0 / row[i];
        for t in 0..LANES {
            let v = value[t] * inverse;
            rest[t] = v;
            sums[t] += v * v;
        }
    }
}

pub(crate) fn prefix_norms(w: &[f32], means: &[f32], x: &[f32]) -> [f32; GROUP] {
    let mut centred = [[0.0f32; GROUP]; MAX_PREFIX];
    let mut sums = [0.0f32; GROUP];
    let mut entries = w.chunks_exact(GROUP);
    for (i, (value, mean)) in x.iter().zip(means.chunks_exact(GROUP)).enumerate() {
        for t in 0..GROUP {
            centred[i][t] = value - mean[t];
        }
        let mut y = [0.0f32; GROUP];
        for (earlier, entry) in centred[..=i].iter().zip(entries.by_ref()) {
            for t in 0..GROUP {
                y[t] += entry[t] * earlier[t];
            }
        }
        for t in 0..GROUP {
            sums[t] += y[t] * y[t];
        }
    }
    sums
}
