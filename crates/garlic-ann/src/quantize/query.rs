//! A query in the form that codes are compared with.

/// What turns a sum of products of codes into an estimate.
#[derive(Clone, Copy, Default)]
pub(crate) struct Probe {
    pub(crate) scale: f32,
    pub(crate) offset: f32,
}

/// The weights of a query at `y` in a frame, and what they are worth. `base` is its squared distance from the
/// frame's origin.
pub(crate) fn probe(y: &[f32], steps: &[f32], zero: i32, base: f32, weights: &mut [i8]) -> Probe {
    let (unit, sum) = garlic_simd::code_weights(y, steps, &mut weights[..y.len()]);
    weights[y.len()..].fill(0);
    let scale = -2.0 * unit;
    Probe {
        scale,
        offset: base - scale * (zero * sum) as f32,
    }
}
