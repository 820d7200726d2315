//! Plain sums over two vectors, and the conversions that belong to them.

use crate::f16_to_f32;

/// Independent partial sums, so that rounding does not grow with the length and the compiler may vectorise.
pub(super) const PARTS: usize = 8;

#[inline]
fn reduce<T: Copy>(a: &[f32], b: &[T], term: impl Fn(f32, T) -> f32) -> f32 {
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

#[inline]
pub(super) fn square(x: f32) -> f32 {
    x * x
}

pub(crate) fn l2_squared(a: &[f32], b: &[f32]) -> f32 {
    reduce(a, b, |x, y| square(x - y))
}

pub(crate) fn l2_squared_u8(a: &[f32], b: &[u8]) -> f32 {
    reduce(a, b, |x, y| square(x - f32::from(y)))
}

pub(crate) fn l2_squared_f16(a: &[f32], b: &[u16]) -> f32 {
    reduce(a, b, |x, y| square(x - f16_to_f32(y)))
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    reduce(a, b, |x, y| x * y)
}

pub(crate) fn l2_squared_u8_u8(a: &[u8], b: &[u8]) -> u32 {
    let gaps = a.iter().zip(b).map(|(x, y)| u32::from(x.abs_diff(*y)));
    gaps.map(|gap| gap * gap).sum()
}

pub(crate) fn dots(rows: &[f32], x: &[f32], out: &mut [f32]) {
    for (i, value) in out.iter_mut().enumerate() {
        *value = dot(&rows[i * x.len()..][..x.len()], x);
    }
}

pub(crate) fn dots_bytes(rows: &[i8], xs: &[u8], n: usize, out: &mut [i32]) {
    let count = rows.len() / n;
    for (x, out) in xs.chunks_exact(n).zip(out.chunks_exact_mut(count.max(1))) {
        for (row, value) in rows.chunks_exact(n).zip(out) {
            let products = row
                .iter()
                .zip(x)
                .map(|(r, x)| i32::from(*r) * i32::from(*x));
            *value = products.sum();
        }
    }
}

pub(crate) fn dots_bytes_at(table: &[u8], n: usize, x: &[i8], rows: &[u32], out: &mut [i32]) {
    for (row, value) in rows.iter().zip(out) {
        let row = &table[*row as usize * n..][..n];
        let products = row
            .iter()
            .zip(x)
            .map(|(r, x)| i32::from(*r) * i32::from(*x));
        *value = products.sum();
    }
}

pub(crate) fn dots_many(rows: &[f32], xs: &[f32], n: usize, out: &mut [f32]) {
    let count = rows.len() / n;
    for (x, out) in xs.chunks_exact(n).zip(out.chunks_exact_mut(count.max(1))) {
        dots(rows, x, out);
    }
}

pub(crate) fn l2_squared_rows(rows: &[f32], x: &[f32], out: &mut [f32]) {
    for (i, value) in out.iter_mut().enumerate() {
        *value = l2_squared(&rows[i * x.len()..][..x.len()], x);
    }
}

pub(crate) fn widen_u8(values: &[u8], out: &mut [f32]) {
    for (to, from) in out.iter_mut().zip(values) {
        *to = f32::from(*from);
    }
}

pub(crate) fn widen_f16(values: &[u16], out: &mut [f32]) {
    for (to, from) in out.iter_mut().zip(values) {
        *to = f16_to_f32(*from);
    }
}
