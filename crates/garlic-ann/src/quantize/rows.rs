//! Row codes: one code per point in a row of its own, for points that are read in any order.
//!
//! Blocks of codes are scanned from end to end. A graph jumps from point to point, so its codes are rows of whole
//! cache lines. Coordinates get 0, 2, 4, 6 or 8 bits, more where the variance is larger. The bits of a coordinate are
//! split into *crumbs* of two bits. Crumbs of similar weight share a lane, so that 8-bit weights suffice.

use garlic_simd::{ROW_CODE_LINE, RowCodeQuery, estimate_rows, row_code_weights};

/// Crumbs of a lane, of a line, and of the lane at the end that holds the norm instead.
const LANE_CRUMBS: usize = 16;
const LINE_CRUMBS: usize = 4 * ROW_CODE_LINE;
/// Largest number of lines of a code.
pub(crate) const MAX_LINES: usize = 8;
/// Share of the variance that the codes may lose.
const MAX_LOSS: f64 = 0.04;

/// Error of the uniform quantizer of 0, 2, 4, 6 and 8 bits that is best for a Gaussian, as a share of the variance,
/// and its step per standard deviation. See J. Max, Quantizing for Minimum Distortion, 1960.
const ERRORS: [f64; 5] = [1.0, 0.1188, 0.01154, 0.001_041, 0.000_087];
const STEPS_PER_SIGMA: [f32; 5] = [0.0, 0.9957, 0.3352, 0.1041, 0.0308];

/// Bits and steps of the coordinates of a row code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowQuantizer {
    lines: usize,
    /// Crumbs of every coordinate, 0 to 4.
    crumbs: Vec<u32>,
    steps: Vec<f32>,
    /// Coordinate and step of every crumb of a code.
    crumb_axes: Vec<u32>,
    crumb_steps: Vec<f32>,
    /// Shift of every crumb in the code of its coordinate.
    shifts: Vec<u32>,
}

/// A query prepared for row codes.
#[derive(Debug, Default)]
pub(crate) struct RowQuery {
    weights: Vec<i8>,
    scales: Vec<f32>,
    offset: f32,
}

impl RowQuery {
    /// Estimates the squared distances of rows of `codes`.
    #[inline]
    pub(crate) fn estimate(&self, codes: &[u8], rows: &[u32], out: &mut [f32]) {
        let query = RowCodeQuery {
            weights: &self.weights,
            scales: &self.scales,
            offset: self.offset,
        };
        estimate_rows(codes, &query, rows, out);
    }
}

impl RowQuantizer {
    /// Fits a quantizer to the variances of coordinates. It has as few lines as lose at most [`MAX_LOSS`] of the
    /// variance.
    pub(crate) fn fit(variances: &[f64]) -> Self {
        let total: f64 = variances.iter().sum();
        let loss = |crumbs: &[u32]| -> f64 {
            let each = variances.iter().zip(crumbs);
            each.map(|(v, c)| v * ERRORS[*c as usize]).sum()
        };
        let fits = |lines: &usize| loss(&allocate(variances, *lines)) <= MAX_LOSS * total;
        let lines = (1..MAX_LINES).find(fits).unwrap_or(MAX_LINES);
        let crumbs = allocate(variances, lines);
        let steps = variances.iter().zip(&crumbs);
        let steps = steps.map(|(v, c)| v.max(0.0).sqrt() as f32 * STEPS_PER_SIGMA[*c as usize]);
        Self::new(lines, crumbs.clone(), steps.collect())
    }

    /// The quantizer with these crumbs and steps, or `None` if they do not fit the lines.
    pub(crate) fn restore(lines: usize, crumbs: Vec<u32>, steps: Vec<f32>) -> Option<Self> {
        let sound = (1..=MAX_LINES).contains(&lines)
            && crumbs.len() == steps.len()
            && crumbs.iter().all(|c| *c <= 4)
            && crumbs.iter().sum::<u32>() as usize <= capacity(lines)
            && steps.iter().all(|s| *s >= 0.0 && s.is_finite());
        sound.then(|| Self::new(lines, crumbs, steps))
    }

    fn new(lines: usize, crumbs: Vec<u32>, steps: Vec<f32>) -> Self {
        let mut order: Vec<(f32, u32, u32)> = Vec::new();
        for (axis, (count, step)) in crumbs.iter().zip(&steps).enumerate() {
            for shift in 0..*count {
                let sigma = step / STEPS_PER_SIGMA[*count as usize];
                let weight = sigma * step * (1u32 << (2 * shift)) as f32;
                order.push((weight, axis as u32, shift));
            }
        }
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let places = lines * LINE_CRUMBS;
        let (mut crumb_axes, mut crumb_steps) = (vec![0; places], vec![0.0; places]);
        let mut shifts = vec![0; places];
        for (place, (_, axis, shift)) in order.into_iter().enumerate() {
            crumb_axes[place] = axis;
            crumb_steps[place] = steps[axis as usize] * (1u32 << (2 * shift)) as f32;
            shifts[place] = 2 * shift;
        }
        Self {
            lines,
            crumbs,
            steps,
            crumb_axes,
            crumb_steps,
            shifts,
        }
    }

    /// Bytes of a code.
    pub(crate) fn bytes(&self) -> usize {
        self.lines * ROW_CODE_LINE
    }

    /// Number of lines of a code.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// Number of coordinates.
    pub(crate) fn dim(&self) -> usize {
        self.crumbs.len()
    }

    /// The largest coordinate that codes represent.
    pub(crate) fn largest(&self) -> f32 {
        let half = |crumbs: u32| ((1u32 << (2 * crumbs)) - 1) as f32 / 2.0;
        let all = self.steps.iter().zip(&self.crumbs);
        all.map(|(step, crumbs)| step * half(*crumbs))
            .fold(0.0, f32::max)
    }

    /// Crumbs and step of every coordinate.
    pub(crate) fn parameters(&self) -> (&[u32], &[f32]) {
        (&self.crumbs, &self.steps)
    }

    /// Writes the code of a point with these coordinates and this squared distance from the origin.
    pub(crate) fn encode(&self, coordinates: &[f32], norm: f32, out: &mut [u8]) {
        let code = |axis: usize| -> u32 {
            let levels = (1u32 << (2 * self.crumbs[axis])) as f32;
            let code = coordinates[axis] / self.steps[axis] + (levels - 1.0) / 2.0;
            // NaN, from a step of zero, becomes zero.
            code.round().clamp(0.0, levels - 1.0) as u32
        };
        let out = &mut out[..self.bytes()];
        out.fill(0);
        for (place, axis) in self.crumb_axes.iter().enumerate() {
            if self.crumb_steps[place] > 0.0 {
                let crumb = (code(*axis as usize) >> self.shifts[place]) & 3;
                let (lane, element) = (place / LANE_CRUMBS, place % LANE_CRUMBS);
                out[4 * lane + element % 4] |= (crumb as u8) << (2 * (element / 4));
            }
        }
        let norm_at = out.len() - 4;
        out[norm_at..].copy_from_slice(&norm.to_le_bytes());
    }

    /// Prepares a query with these coordinates and this squared distance from the origin.
    pub(crate) fn prepare(&self, coordinates: &[f32], squared: f32, query: &mut RowQuery) {
        let places = self.lines * LINE_CRUMBS;
        query.weights.resize(places, 0);
        query.scales.resize(places / LANE_CRUMBS, 0.0);
        let (axes, steps) = (&self.crumb_axes, &self.crumb_steps);
        let sum = row_code_weights(
            coordinates,
            axes,
            steps,
            &mut query.weights,
            &mut query.scales,
        );
        // The crumbs of a coordinate count from zero. Its middle is at 1.5 for every crumb.
        query.offset = squared - 1.5 * sum;
    }
}

/// Number of crumbs in a code.
fn capacity(lines: usize) -> usize {
    lines * LINE_CRUMBS - LANE_CRUMBS
}

/// Gives crumbs one by one to the coordinate whose error they reduce most.
fn allocate(variances: &[f64], lines: usize) -> Vec<u32> {
    let mut crumbs = vec![0u32; variances.len()];
    let gain = |axis: usize, crumbs: u32| {
        let now = crumbs as usize;
        variances[axis] * (ERRORS[now] - ERRORS[now + 1])
    };
    // The gains of a coordinate fall with every crumb, so all of them can be sorted at once.
    let mut gains: Vec<(f64, usize)> = (0..variances.len())
        .flat_map(|axis| (0..4).map(move |crumbs| (gain(axis, crumbs), axis)))
        .filter(|(gain, _)| *gain > 0.0)
        .collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, axis) in gains.into_iter().take(capacity(lines)) {
        crumbs[axis] += 1;
    }
    crumbs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::uniform;

    const DIM: usize = 40;

    /// Points whose coordinates have falling variances, and these variances.
    fn points(count: usize) -> (Vec<f32>, Vec<f64>) {
        let mut values = uniform(count, DIM, 4);
        for (i, value) in values.iter_mut().enumerate() {
            *value *= 4.0 / (1 + i % DIM) as f32;
        }
        let variance = |axis: usize| {
            let column = values.iter().skip(axis).step_by(DIM);
            column.map(|v| f64::from(v * v)).sum::<f64>() / count as f64
        };
        let variances = (0..DIM).map(variance).collect();
        (values, variances)
    }

    #[test]
    fn estimates_are_near_the_distances() {
        let (values, variances) = points(300);
        let quantizer = RowQuantizer::fit(&variances);
        let bytes = quantizer.bytes();
        let mut codes = vec![0; 300 * bytes];
        for (row, code) in values.chunks(DIM).zip(codes.chunks_mut(bytes)) {
            quantizer.encode(row, garlic_simd::dot(row, row), code);
        }
        let rows: Vec<u32> = (0..300).collect();
        let mut query = RowQuery::default();
        let (mut error, mut total) = (0.0, 0.0);
        for q in values.chunks(DIM).take(50) {
            quantizer.prepare(q, garlic_simd::dot(q, q), &mut query);
            let mut estimates = vec![0.0; 300];
            query.estimate(&codes, &rows, &mut estimates);
            for (row, estimate) in values.chunks(DIM).zip(&estimates) {
                let exact = garlic_simd::l2_squared(q, row);
                error += f64::from((estimate - exact).abs());
                total += f64::from(exact);
            }
        }
        assert!(error < 0.03 * total, "{error} of {total}");
    }

    #[test]
    fn coordinates_of_large_variance_get_more_crumbs() {
        let (_, variances) = points(300);
        let crumbs = allocate(&variances, 1);
        assert!(crumbs.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(crumbs[0] == 4 && crumbs.iter().sum::<u32>() as usize <= capacity(1));
        let flat = allocate(&vec![1.0; 500], 1);
        assert_eq!(flat.iter().sum::<u32>() as usize, capacity(1));
    }

    #[test]
    fn more_lines_lose_less_and_no_more_are_taken_than_needed() {
        let flat = vec![1.0; 384];
        let quantizer = RowQuantizer::fit(&flat);
        assert!(quantizer.lines() > 1 && quantizer.lines() < MAX_LINES);
        let few = RowQuantizer::fit(&[1.0; 16]);
        assert_eq!(few.lines(), 1);
        let wide = RowQuantizer::fit(&vec![1.0; 4000]);
        assert_eq!(wide.lines(), MAX_LINES);
    }

    #[test]
    fn constant_coordinates_have_no_crumbs() {
        let quantizer = RowQuantizer::fit(&[1.0, 0.0, 0.5]);
        assert_eq!(quantizer.parameters().0[1], 0);
        let mut code = vec![0; quantizer.bytes()];
        quantizer.encode(&[0.5, 9.0, 0.1], 1.0, &mut code);
        let mut query = RowQuery::default();
        quantizer.prepare(&[0.5, 9.0, 0.1], 1.0, &mut query);
        let mut estimate = [0.0];
        query.estimate(&code, &[0], &mut estimate);
        assert!(estimate[0] >= 0.0 && estimate[0].is_finite());
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let restore = RowQuantizer::restore;
        assert!(restore(1, vec![1, 4], vec![0.1, 0.2]).is_some());
        assert!(restore(0, vec![1], vec![0.1]).is_none());
        assert!(restore(MAX_LINES + 1, vec![1], vec![0.1]).is_none());
        assert!(restore(1, vec![5], vec![0.1]).is_none());
        assert!(restore(1, vec![1, 1], vec![0.1]).is_none());
        assert!(restore(1, vec![4; 100], vec![0.1; 100]).is_none());
        assert!(restore(1, vec![1], vec![f32::NAN]).is_none());
    }
}
