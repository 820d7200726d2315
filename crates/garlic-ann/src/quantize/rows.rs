//! Row codes: one code per point in a row of its own, for points that are read in any order.
//!
//! Blocks of codes are scanned from end to end. A graph jumps from point to point, so its codes are rows of whole
//! cache lines. Coordinates get 0, 2, 4, 6 or 8 bits, more where the variance is larger. The bits of a coordinate are
//! split into *crumbs* of two bits. Crumbs of similar weight share a lane, so that 8-bit weights suffice.
//!
//! A code has two parts. The *head* has the crumbs of largest weight, and shows that most points are too far away. The
//! *rest* is read for the others only.

use garlic_simd::{ROW_CODE_LINE, RowCodeQuery, RowCodes, estimate_rows, row_code_weights};

/// Crumbs of a lane and of a line. The last lane of a part has no crumbs but a number that is added to the estimate.
const LANE_CRUMBS: usize = 16;
const LINE_CRUMBS: usize = 4 * ROW_CODE_LINE;
/// Largest number of lines of a code.
pub(crate) const MAX_LINES: usize = 8;
/// Share of the variance that the codes may lose.
const MAX_LOSS: f64 = 0.015;
/// Share of the variance that the heads may lose.
const MAX_HEAD_LOSS: f64 = 0.2;

/// Error of the uniform quantizer of 0, 2, 4, 6 and 8 bits that is best for a Gaussian, as a share of the variance,
/// and its step per standard deviation. See J. Max, Quantizing for Minimum Distortion, 1960.
const ERRORS: [f64; 5] = [1.0, 0.1188, 0.01154, 0.001_041, 0.000_087];
const STEPS_PER_SIGMA: [f32; 5] = [0.0, 0.9957, 0.3352, 0.1041, 0.0308];

/// Bits and steps of the coordinates of a row code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowQuantizer {
    /// Crumbs of every coordinate, 0 to 4.
    crumbs: Vec<u32>,
    steps: Vec<f32>,
    head: Part,
    rest: Part,
    /// The share of the squared rest of a point that is expected as its product with the rest of a near query. Heads
    /// include it, so that they do not estimate too much.
    rest_share: f32,
}

/// The crumbs of a part of a code.
#[derive(Clone, Debug, Default, PartialEq)]
struct Part {
    lines: usize,
    /// Coordinate and step of every crumb.
    axes: Vec<u32>,
    steps: Vec<f32>,
    /// Shift of every crumb in the code of its coordinate.
    shifts: Vec<u32>,
}

impl Part {
    /// Number of crumbs.
    fn capacity(lines: usize) -> usize {
        (lines * LINE_CRUMBS).saturating_sub(LANE_CRUMBS)
    }

    /// A part with the first of these crumbs: their coordinates, steps and shifts.
    fn new(lines: usize, crumbs: &mut impl Iterator<Item = (u32, f32, u32)>) -> Self {
        let places = lines * LINE_CRUMBS;
        let mut part = Self {
            lines,
            axes: vec![0; places],
            steps: vec![0.0; places],
            shifts: vec![0; places],
        };
        for (place, (axis, step, shift)) in crumbs.take(Self::capacity(lines)).enumerate() {
            (part.axes[place], part.steps[place], part.shifts[place]) = (axis, step, shift);
        }
        part
    }

    /// Byte of a code, and shift in it, of a crumb.
    fn byte_of(place: usize) -> (usize, usize) {
        let (lane, element) = (place / LANE_CRUMBS, place % LANE_CRUMBS);
        (4 * lane + element % 4, 2 * (element / 4))
    }

    /// Writes the crumbs of coordinates with these codes.
    fn encode(&self, codes: &[u32], out: &mut [u8]) {
        out.fill(0);
        for (place, axis) in self.axes.iter().enumerate() {
            if self.steps[place] > 0.0 {
                let crumb = (codes[*axis as usize] >> self.shifts[place]) & 3;
                let (byte, shift) = Self::byte_of(place);
                out[byte] |= (crumb as u8) << shift;
            }
        }
    }

    /// What the crumbs of a code represent, with their coordinates.
    fn values(&self, code: &[u8]) -> impl Iterator<Item = (u32, f32)> {
        let crumbs = self.axes.iter().zip(&self.steps).enumerate();
        crumbs.map(|(place, (axis, step))| {
            let (byte, shift) = Self::byte_of(place);
            let crumb = f32::from(code[byte] >> shift & 3);
            (*axis, (crumb - 1.5) * step)
        })
    }

    /// Prepares a query with these coordinates.
    fn prepare(&self, coordinates: &[f32], offset: f32, query: &mut PartQuery) {
        query.weights.resize(self.axes.len(), 0);
        query.scales.resize(self.axes.len() / LANE_CRUMBS, 0.0);
        let (weights, scales) = (&mut query.weights, &mut query.scales);
        let sum = row_code_weights(coordinates, &self.axes, &self.steps, weights, scales);
        // The crumbs of a coordinate count from zero. Its middle is at 1.5 for every crumb.
        query.offset = offset - 1.5 * sum;
    }
}

/// A query prepared for row codes.
#[derive(Debug, Default)]
pub(crate) struct RowQuery {
    head: PartQuery,
    rest: PartQuery,
}

/// A query prepared for a part of row codes.
#[derive(Debug, Default)]
struct PartQuery {
    weights: Vec<i8>,
    scales: Vec<f32>,
    offset: f32,
}

impl PartQuery {
    #[inline]
    fn estimate(&self, codes: RowCodes<'_>, rows: &[u32], out: &mut [f32]) {
        let query = RowCodeQuery {
            weights: &self.weights,
            scales: &self.scales,
            offset: self.offset,
        };
        estimate_rows(codes, &query, rows, out);
    }
}

impl RowQuery {
    /// Estimates squared distances by heads.
    #[inline]
    pub(crate) fn estimate_heads(&self, heads: RowCodes<'_>, rows: &[u32], out: &mut [f32]) {
        self.head.estimate(heads, rows, out);
    }

    /// What the rests add to the estimates.
    #[inline]
    pub(crate) fn estimate_rests(&self, rests: RowCodes<'_>, rows: &[u32], out: &mut [f32]) {
        self.rest.estimate(rests, rows, out);
    }
}

impl RowQuantizer {
    /// Fits a quantizer to the variances of coordinates. It has as few lines as lose at most [`MAX_LOSS`] of the
    /// variance.
    pub(crate) fn fit(variances: &[f64]) -> Self {
        let total: f64 = variances.iter().sum();
        let loss = |lines: usize| -> f64 {
            let crumbs = allocate(variances, Part::capacity(lines));
            let each = variances.iter().zip(&crumbs);
            each.map(|(v, c)| v * ERRORS[*c as usize]).sum()
        };
        let fewest = |share: f64| (1..MAX_LINES).find(|lines| loss(*lines) <= share * total);
        let lines = fewest(MAX_LOSS).unwrap_or(MAX_LINES);
        let head = fewest(MAX_HEAD_LOSS).unwrap_or(MAX_LINES).min(lines);
        let capacity = Part::capacity(head) + Part::capacity(lines - head);
        let crumbs = allocate(variances, capacity);
        let steps = variances.iter().zip(&crumbs);
        let steps = steps.map(|(v, c)| v.max(0.0).sqrt() as f32 * STEPS_PER_SIGMA[*c as usize]);
        Self::new([head, lines - head], crumbs.clone(), steps.collect())
    }

    /// The quantizer with these crumbs and steps, or `None` if they do not fit the lines of head and rest.
    pub(crate) fn restore(lines: [usize; 2], crumbs: Vec<u32>, steps: Vec<f32>) -> Option<Self> {
        let [head, rest] = lines;
        let sound = (1..=MAX_LINES).contains(&head)
            && rest <= MAX_LINES - head
            && crumbs.len() == steps.len()
            && crumbs.iter().all(|c| *c <= 4)
            && crumbs.iter().sum::<u32>() as usize <= Part::capacity(head) + Part::capacity(rest)
            && steps.iter().all(|s| *s >= 0.0 && s.is_finite());
        sound.then(|| Self::new(lines, crumbs, steps))
    }

    fn new([head, rest]: [usize; 2], crumbs: Vec<u32>, steps: Vec<f32>) -> Self {
        let mut order: Vec<(f32, u32, u32)> = Vec::new();
        for (axis, (count, step)) in crumbs.iter().zip(&steps).enumerate() {
            for shift in 0..*count {
                let sigma = step / STEPS_PER_SIGMA[*count as usize];
                let weight = sigma * step * (1u32 << (2 * shift)) as f32;
                order.push((weight, axis as u32, shift));
            }
        }
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let mut order = order.into_iter().map(|(_, axis, shift)| {
            let step = steps[axis as usize] * (1u32 << (2 * shift)) as f32;
            (axis, step, 2 * shift)
        });
        Self {
            head: Part::new(head, &mut order),
            rest: Part::new(rest, &mut order),
            crumbs,
            steps,
            rest_share: 0.0,
        }
    }

    /// The same quantizer with another share of the rest in the heads.
    pub(crate) fn with_rest_share(self, rest_share: f32) -> Self {
        Self { rest_share, ..self }
    }

    /// The share of the rest in the heads.
    pub(crate) fn rest_share(&self) -> f32 {
        self.rest_share
    }

    /// Number of lines of head and rest.
    pub(crate) fn lines(&self) -> [usize; 2] {
        [self.head.lines, self.rest.lines]
    }

    /// Upper limits of the crumbs of head and rest.
    pub(crate) fn part_crumbs(&self) -> [usize; 2] {
        self.lines().map(Part::capacity)
    }

    /// Number of coordinates.
    pub(crate) fn dim(&self) -> usize {
        self.crumbs.len()
    }

    /// Number of coordinates up to the last one that codes represent.
    pub(crate) fn coded_dim(&self) -> usize {
        let last = self.crumbs.iter().rposition(|crumbs| *crumbs > 0);
        last.map_or(0, |last| last + 1)
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

    /// Writes the code, head and then rest, of a point with these coordinates and this squared distance from the
    /// origin.
    pub(crate) fn encode(&self, coordinates: &[f32], norm: f32, out: &mut [u8]) {
        let code = |axis: usize| -> u32 {
            let levels = (1u32 << (2 * self.crumbs[axis])) as f32;
            let code = coordinates[axis] / self.steps[axis] + (levels - 1.0) / 2.0;
            // NaN, from a step of zero, becomes zero.
            code.round().clamp(0.0, levels - 1.0) as u32
        };
        let codes: Vec<u32> = (0..self.dim()).map(code).collect();
        let (head, rest) = out.split_at_mut(self.head.lines * ROW_CODE_LINE);
        self.head.encode(&codes, head);
        self.rest.encode(&codes, rest);
        self.set_norm(norm, head, rest);
    }

    /// Stores the squared distance from the origin in a code: what is expected of the rest in the rest, and all else in
    /// the head.
    pub(crate) fn set_norm(&self, norm: f32, head: &mut [u8], rest: &mut [u8]) {
        let expected = 2.0 * self.rest_share * self.rest_squared(rest);
        for (part, term) in [(head, norm - expected), (rest, expected)] {
            if let Some(last) = part.last_chunk_mut() {
                *last = term.to_le_bytes();
            }
        }
    }

    /// Squared length of what the rest of a code represents.
    pub(crate) fn rest_squared(&self, rest: &[u8]) -> f32 {
        self.rest.values(rest).map(|(_, v)| v * v).sum()
    }

    /// The coordinates that a code, head and then rest, stands for.
    pub(crate) fn decode(&self, code: &[u8], coordinates: &mut [f32]) {
        coordinates.fill(0.0);
        let (head, rest) = code.split_at(self.head.lines * ROW_CODE_LINE);
        let values = self.head.values(head).chain(self.rest.values(rest));
        for (axis, value) in values {
            coordinates[axis as usize] += value;
        }
    }

    /// Prepares a query with these coordinates and this squared distance from the origin.
    pub(crate) fn prepare(&self, coordinates: &[f32], squared: f32, query: &mut RowQuery) {
        self.head.prepare(coordinates, squared, &mut query.head);
        self.rest.prepare(coordinates, 0.0, &mut query.rest);
    }
}

/// Gives up to `capacity` crumbs one by one to the coordinate whose error they reduce most.
fn allocate(variances: &[f64], capacity: usize) -> Vec<u32> {
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
    for (_, axis) in gains.into_iter().take(capacity) {
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

    /// Codes of points: heads, then rests.
    fn encode(quantizer: &RowQuantizer, values: &[f32]) -> [Vec<u8>; 2] {
        let [head, rest] = quantizer.lines().map(|lines| lines * ROW_CODE_LINE);
        let (mut heads, mut rests) = (Vec::new(), Vec::new());
        let mut code = vec![0; head + rest];
        for row in values.chunks(quantizer.dim()) {
            quantizer.encode(row, garlic_simd::dot(row, row), &mut code);
            heads.extend_from_slice(&code[..head]);
            rests.extend_from_slice(&code[head..]);
        }
        [heads, rests]
    }

    #[test]
    fn estimates_are_near_the_distances_and_rests_make_them_better() {
        // As many coordinates of equal variance as need a rest.
        let (count, dim) = (300, 384);
        let values = uniform(count, dim, 4);
        let quantizer = RowQuantizer::fit(&vec![1.0 / 12.0; dim]);
        assert!(quantizer.lines().into_iter().all(|lines| lines > 0));
        let [heads, rests] = encode(&quantizer, &values);
        let [heads, rests] = [(&heads, 0), (&rests, 1)]
            .map(|(bytes, part)| RowCodes::new(bytes, quantizer.lines()[part]));
        let rows: Vec<u32> = (0..count as u32).collect();
        let mut query = RowQuery::default();
        let (mut error, mut head_error, mut total) = (0.0, 0.0, 0.0);
        for q in values.chunks(dim).take(50) {
            quantizer.prepare(q, garlic_simd::dot(q, q), &mut query);
            let (mut first, mut more) = (vec![0.0; count], vec![0.0; count]);
            query.estimate_heads(heads, &rows, &mut first);
            query.estimate_rests(rests, &rows, &mut more);
            for (row, (first, more)) in values.chunks(dim).zip(first.iter().zip(&more)) {
                let exact = garlic_simd::l2_squared(q, row);
                head_error += f64::from((first - exact).abs());
                error += f64::from((first + more - exact).abs());
                total += f64::from(exact);
            }
        }
        assert!(error < 0.03 * total, "{error} of {total}");
        assert!(2.0 * error < head_error && head_error < 0.3 * total);
    }

    #[test]
    fn a_code_stands_for_nearly_the_point() {
        let (values, variances) = points(100);
        let quantizer = RowQuantizer::fit(&variances);
        let (mut code, mut decoded) = (vec![0; 64], vec![9.0; DIM]);
        let (mut error, mut total) = (0.0, 0.0);
        for row in values.chunks(DIM) {
            quantizer.encode(row, 1.0, &mut code);
            quantizer.decode(&code, &mut decoded);
            error += garlic_simd::l2_squared(row, &decoded);
            total += garlic_simd::dot(row, row);
        }
        assert!(error < 0.04 * total, "{error} of {total}");
    }

    #[test]
    fn coordinates_of_large_variance_get_more_crumbs() {
        let (_, variances) = points(300);
        let crumbs = allocate(&variances, 240);
        assert!(crumbs.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(crumbs[0] == 4 && crumbs.iter().sum::<u32>() <= 240);
        let flat = allocate(&vec![1.0; 500], 240);
        assert_eq!(flat.iter().sum::<u32>(), 240);
    }

    #[test]
    fn more_lines_lose_less_and_no_more_are_taken_than_needed() {
        let lines = |variances: &[f64]| RowQuantizer::fit(variances).lines();
        let [head, rest] = lines(&[1.0; 384]);
        assert!(head > 1 && rest > 0 && head + rest < MAX_LINES);
        assert_eq!(lines(&[1.0; 16]), [1, 0]);
        assert_eq!(lines(&vec![1.0; 4000]), [MAX_LINES, 0]);
        let falling: Vec<f64> = (1..400).map(|axis| 1.0 / f64::from(axis)).collect();
        assert_eq!(lines(&falling), [1, 2]);
    }

    #[test]
    fn constant_coordinates_have_no_crumbs() {
        let quantizer = RowQuantizer::fit(&[1.0, 0.0, 0.5]);
        assert_eq!(quantizer.parameters().0[1], 0);
        let values = [0.5, 9.0, 0.1];
        let [heads, _] = encode(&quantizer, &values);
        let mut query = RowQuery::default();
        quantizer.prepare(&values, garlic_simd::dot(&values, &values), &mut query);
        let mut estimate = [f32::NAN];
        query.estimate_heads(RowCodes::new(&heads, 1), &[0], &mut estimate);
        let unseen = 2.0 * 9.0 * 9.0;
        assert!((estimate[0] - unseen).abs() < 0.1, "{estimate:?}");
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let restore = RowQuantizer::restore;
        assert!(restore([1, 0], vec![1, 4], vec![0.1, 0.2]).is_some());
        assert!(restore([1, 1], vec![4; 120], vec![0.1; 120]).is_some());
        assert!(restore([0, 1], vec![1], vec![0.1]).is_none());
        assert!(restore([MAX_LINES + 1, 0], vec![1], vec![0.1]).is_none());
        assert!(restore([1, MAX_LINES], vec![1], vec![0.1]).is_none());
        assert!(restore([1, 0], vec![5], vec![0.1]).is_none());
        assert!(restore([1, 0], vec![1, 1], vec![0.1]).is_none());
        assert!(restore([1, 0], vec![4; 61], vec![0.1; 61]).is_none());
        assert!(restore([1, 0], vec![1], vec![f32::NAN]).is_none());
    }
}
