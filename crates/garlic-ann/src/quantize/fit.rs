//! Chooses the quantization steps for the coordinates of a cell's points.

use super::HALF_RANGE;
use garlic_linalg::Rows;
use garlic_simd::CodeBits;

/// Step of 4-bit codes per standard deviation: the uniform quantizer of 16 levels with the least error for a
/// Gaussian.
const STEP_PER_SIGMA_4BIT: f32 = 0.335;

/// Steps of the codes of bin centres and of points.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a> {
    pub(crate) bins: &'a [f32],
    pub(crate) points: &'a [f32],
}

/// A coordinate is an outlier if it exceeds the quantile at 1 - [`TAIL_SHARE`] by this factor. 8-bit codes cover all
/// other coordinates. 4-bit codes fit their variance.
const OUTLIER_FACTOR: f32 = 3.0;
const TAIL_SHARE: f64 = 0.01;

/// Steps for codes that cover these coordinates, except outliers.
pub(crate) fn fit_steps(rows: Rows<'_>, width: usize, bits: CodeBits) -> Vec<f32> {
    let mut column = Vec::with_capacity(rows.len());
    (0..width)
        .map(|axis| {
            let magnitudes = || rows.iter().filter_map(|row| row.get(axis)).map(|v| v.abs());
            column.clear();
            column.extend(magnitudes());
            let limit = OUTLIER_FACTOR * bulk(&mut column);
            let held = magnitudes().map(|v| v.min(limit));
            match bits {
                CodeBits::Eight => held.fold(0.0, f32::max) / HALF_RANGE,
                CodeBits::Four => {
                    let squares: f32 = held.map(|v| v * v).sum();
                    (squares / rows.len().max(1) as f32).sqrt() * STEP_PER_SIGMA_4BIT
                }
            }
        })
        .collect()
}

/// The quantile of the magnitudes at 1 - [`TAIL_SHARE`], or infinity if it is zero.
fn bulk(magnitudes: &mut [f32]) -> f32 {
    let at = (magnitudes.len() as f64 * (1.0 - TAIL_SHARE)) as usize;
    match magnitudes.get(at) {
        None => f32::INFINITY,
        Some(_) => {
            let bulk = *magnitudes.select_nth_unstable_by(at, f32::total_cmp).1;
            if bulk > 0.0 { bulk } else { f32::INFINITY }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{rows, uniform};

    const ROWS: usize = 400;
    const DIM: usize = 3;

    fn cloud() -> Vec<f32> {
        uniform(ROWS, DIM, 1)
    }

    fn steps_of(values: &[f32], bits: CodeBits) -> Vec<f32> {
        fit_steps(rows(values, DIM), 8, bits)
    }

    #[test]
    fn codes_of_eight_bits_hold_every_coordinate_where_there_are_no_outliers() {
        let values = cloud();
        let steps = steps_of(&values, CodeBits::Eight);
        for (axis, step) in steps.iter().take(DIM).enumerate() {
            let column = values.iter().skip(axis).step_by(DIM);
            let most = column.map(|v| v.abs()).fold(0.0, f32::max);
            assert_eq!(*step, most / HALF_RANGE, "{axis}");
        }
        assert_eq!(steps[DIM..], [0.0; 8 - DIM]);
    }

    /// One coordinate of one point does not make the codes of the others coarse.
    #[test]
    fn an_outlier_leaves_the_steps_of_the_others() {
        for bits in [CodeBits::Eight, CodeBits::Four] {
            let before = steps_of(&cloud(), bits);
            let mut values = cloud();
            values[70 * DIM + 1] = 1e6;
            let after = steps_of(&values, bits);
            assert_eq!((before[0], before[2]), (after[0], after[2]));
            let coarser = after[1] / before[1];
            assert!((0.9..=3.1).contains(&coarser), "{bits:?}: {coarser}");
        }
    }

    #[test]
    fn an_axis_that_only_outliers_use_has_steps_for_them() {
        let mut values = vec![0.0; ROWS * DIM];
        values[5 * DIM] = -126.0;
        assert_eq!(steps_of(&values, CodeBits::Eight)[..2], [2.0, 0.0]);
    }
}
