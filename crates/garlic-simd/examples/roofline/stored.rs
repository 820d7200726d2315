//! Distances to stored vectors: in cache, and all over a large array.

use std::hint::black_box;

use garlic_simd::{
    int8_row_bytes, l2_squared, l2_squared_f16, l2_squared_int8, l2_squared_u8, l2_squared_u8_u8,
    prefetch,
};

use crate::{aligned, best, places};

const DIM: usize = 784;

/// Vectors of `wide` elements.
fn measure<T: Copy + From<u8>, Q>(
    name: &str,
    wide: usize,
    query: &[Q],
    kernel: impl Fn(&[Q], &[T]) -> f32,
) {
    let bytes = wide * size_of::<T>();
    for (place, total, ahead) in [
        ("L1", 16 << 10, 0),
        ("L2", 300 << 10, 0),
        ("64 MB, random", 64 << 20, 0),
        ("64 MB, random, +4", 64 << 20, 4),
        ("64 MB, random, +8", 64 << 20, 8),
    ] {
        let count = (total / bytes).max(1);
        let (data, from) = aligned::<T>(count * wide);
        let vector = |v: usize| &data[from + v * wide..][..wide];
        let order = places(100_000, count);
        let seconds = best(|| {
            let mut sum = 0.0;
            for (i, v) in order.iter().enumerate() {
                if ahead > 0 {
                    prefetch(vector(order[(i + ahead) % order.len()]));
                }
                sum += kernel(black_box(query), vector(*v));
            }
            black_box(sum);
        });
        println!(
            "{name:20} d {DIM}, {place:20} {:8.1} ns {:8.1} GB/s",
            seconds / order.len() as f64 * 1e9,
            (order.len() * bytes) as f64 / seconds / 1e9,
        );
    }
}

pub(crate) fn run() {
    let (query, from) = aligned::<f32>(DIM);
    let query = &query[from..][..DIM];
    measure::<f32, f32>("l2_squared", DIM, query, l2_squared);
    measure::<u16, f32>("l2_squared_f16", DIM, query, l2_squared_f16);
    measure::<u8, f32>("l2_squared_u8", DIM, query, l2_squared_u8);
    let row = int8_row_bytes(DIM);
    measure::<u8, f32>("l2_squared_int8", row, query, l2_squared_int8);
    let bytes = vec![3u8; DIM];
    measure::<u8, u8>("l2_squared_u8_u8", DIM, &bytes, |a, b| {
        l2_squared_u8_u8(a, b) as f32
    });
}
