//! Prepares a query for comparison with codes.

/// Scale and offset that turn an inner product of weights and codes into an estimate.
#[derive(Clone, Copy, Default)]
pub(crate) struct Probe {
    pub(crate) scale: f32,
    pub(crate) offset: f32,
}

/// Computes the weights of a query at `y` in a frame, and their scale. `base` is the squared distance of the query
/// from the origin of the frame.
pub(crate) fn probe(y: &[f32], steps: &[f32], zero: i32, base: f32, weights: &mut [i8]) -> Probe {
    let (unit, sum) = garlic_simd::code_weights(y, steps, &mut weights[..y.len()]);
    weights[y.len()..].fill(0);
    let scale = -2.0 * unit;
    Probe {
        scale,
        offset: base - scale * (zero * sum) as f32,
    }
}
