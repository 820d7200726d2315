//! A rotation in 8 bits.

use garlic_core::buffer::Buffer;

/// A rotation quantized to 8 bits, for vectors of bytes. It reads a quarter of the memory and uses integer products.
///
/// It perturbs the rotated query, and with it all estimates. Exact distances and bounds never use it.
#[derive(Clone, Debug)]
pub(crate) struct Int8Rotation {
    rows: Buffer<i8>,
    /// Quantization step of each row.
    steps: Vec<f32>,
    /// The rotated mean.
    origin: Vec<f32>,
}

impl Int8Rotation {
    /// Quantizes a rotation of vectors with this mean.
    pub(crate) fn new(rotation: &[f32], mean: &[f32]) -> Self {
        let rows = || rotation.chunks_exact(mean.len().max(1));
        let step = |row: &[f32]| row.iter().fold(0.0f32, |most, v| most.max(v.abs())) / 127.0;
        let steps: Vec<f32> = rows().map(step).collect();
        let coded = rows().zip(&steps).flat_map(|(row, step)| {
            let unit = if *step > 0.0 { 1.0 / step } else { 0.0 };
            row.iter().map(move |v| (v * unit).round() as i8)
        });
        let coded: Vec<i8> = coded.collect();
        let sum = |row: &[i8]| -> f64 {
            let products = row.iter().zip(mean);
            products.map(|(r, m)| f64::from(*r) * f64::from(*m)).sum()
        };
        let origin = coded.chunks_exact(mean.len().max(1)).zip(&steps);
        Self {
            origin: origin
                .map(|(row, s)| (sum(row) * f64::from(*s)) as f32)
                .collect(),
            rows: coded.into(),
            steps,
        }
    }

    /// Bytes of the rotation.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.len()
    }

    /// Root mean square of the steps.
    pub(crate) fn mean_step(&self) -> f64 {
        let squares = self.steps.iter().map(|s| f64::from(*s) * f64::from(*s));
        (squares.sum::<f64>() / self.steps.len().max(1) as f64).sqrt()
    }

    /// Rotates consecutive vectors of `dim` bytes into `out`.
    pub(crate) fn rotate(&self, vectors: &[u8], dim: usize, sums: &mut Vec<i32>, out: &mut [f32]) {
        sums.clear();
        sums.resize(out.len(), 0);
        garlic_simd::dots_bytes(&self.rows, vectors, dim, sums);
        let scales = || self.steps.iter().zip(&self.origin);
        let wide = self.steps.len().max(1);
        for (out, sums) in out.chunks_exact_mut(wide).zip(sums.chunks_exact(wide)) {
            for ((value, sum), (step, origin)) in out.iter_mut().zip(sums).zip(scales()) {
                *value = *sum as f32 * step - origin;
            }
        }
    }
}
