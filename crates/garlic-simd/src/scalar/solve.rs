//! Plain triangular kernels.

use crate::{GROUP, LANES, MAX_PREFIX};

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
