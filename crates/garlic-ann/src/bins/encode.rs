//! Points of one cell on their way to bins and codes.
//!
//! [`Projected`] holds them in the cell's frame, `cut` groups them into bins, `encode` writes the codes. A build
//! does this for all points of every cell; a live index for the points that have come since, and for cells that
//! are fitted anew.

use garlic_linalg::{Matrix, Rows, Trans, gemm, kmeans_plus_plus, lloyd, nearest_centres};
use garlic_simd::{CODE_LANES, CodeBits, code_block_bytes};

use super::learned::{BIN_BITS, Bounds, ROUNDING, zero_code};
use crate::transform;
use garlic_core::{Lists, by_label};

/// Rounds of k-means in a cell.
const ROUNDS: usize = 8;
/// Variance to step of 4-bit codes: the uniform quantiser of 16 levels with the least error for a Gaussian.
const STEP_4: f32 = 0.335;

/// Coordinates of a code for frames of `rank` axes: whole groups of eight.
pub(crate) fn code_width(rank: usize) -> usize {
    rank.max(1).next_multiple_of(8)
}

/// Points as one cell sees them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Projected {
    /// Coordinates in the frame, one point a row.
    pub(crate) y: Matrix,
    /// Squared distances from the cell's mean.
    pub(crate) norms: Vec<f32>,
    /// Squared distances from the frame.
    pub(crate) outside: Vec<f32>,
}

/// What a cell's codes are measured in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scales {
    /// Inner products of the axes with the mean.
    pub(crate) origin: Vec<f32>,
    /// Steps of the codes of bin centres; `width` values.
    pub(crate) bin_steps: Vec<f32>,
    /// Steps of the codes of points; `width` values.
    pub(crate) steps: Vec<f32>,
}

impl Scales {
    /// The steps of both kinds of codes.
    pub(crate) fn steps(&self) -> Steps<'_> {
        Steps {
            bins: &self.bin_steps,
            points: &self.steps,
        }
    }
}

/// Steps of the codes of bin centres and of points.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a> {
    pub(crate) bins: &'a [f32],
    pub(crate) points: &'a [f32],
}

/// Points grouped into bins.
pub(crate) struct Cut {
    centres: Matrix,
    labels: Vec<u32>,
}

/// Bins and codes of some points of a cell.
#[derive(Default)]
pub(crate) struct Part {
    /// The points in their stored order: bin after bin.
    pub(crate) order: Vec<u32>,
    /// Points of each bin.
    pub(crate) sizes: Vec<u32>,
    pub(crate) bin_blocks: Vec<u8>,
    pub(crate) blocks: Vec<u8>,
    pub(crate) bounds: Vec<Bounds>,
}

impl Projected {
    /// Projects `points`, whose squared distances from the space they are given in are `beyond`.
    pub(crate) fn new(mut points: Matrix, beyond: Vec<f32>, mean: &[f32], axes: &[f32]) -> Self {
        let (count, dim) = (points.rows(), mean.len());
        let rank = axes.len() / dim;
        for row in points.as_mut_slice().chunks_exact_mut(dim) {
            for (x, m) in row.iter_mut().zip(mean) {
                *x -= m;
            }
        }
        let mut y = Matrix::zeros(count, rank);
        gemm(
            y.as_mut_slice(),
            points.as_slice(),
            Trans::No,
            axes,
            Trans::Yes,
            count,
            rank,
            dim,
            1.0,
            0.0,
        );
        let norms: Vec<f32> = points
            .as_rows()
            .iter()
            .zip(beyond)
            .map(|(row, beyond)| garlic_simd::dot(row, row) + beyond)
            .collect();
        let outside = y
            .as_rows()
            .iter()
            .zip(&norms)
            .map(|(y, norm)| transform::beyond(*norm, y))
            .collect();
        Self { y, norms, outside }
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.norms.len()
    }

    /// Groups the points into bins of about `bin_size`. Points that `is_held` choose among the others' bins.
    pub(crate) fn cut(&self, bin_size: usize, seed: u64, is_held: impl Fn(u32) -> bool) -> Cut {
        let numbers = 0..self.len() as u32;
        let (out, seen): (Vec<u32>, Vec<u32>) = numbers.partition(|i| is_held(*i));
        // A cell of held-out points alone has nobody else to choose.
        let (seen, out) = if seen.is_empty() {
            (out, seen)
        } else {
            (seen, out)
        };
        let known = Matrix::gather(self.y.as_rows(), &seen);
        let count = seen.len().div_ceil(bin_size).max(1);
        let seeds = kmeans_plus_plus(known.as_rows(), count, seed);
        let clustering = lloyd(known.as_rows(), seeds, ROUNDS);
        let others = Matrix::gather(self.y.as_rows(), &out);
        let (theirs, _) = nearest_centres(others.as_rows(), clustering.centres.as_rows());
        let mut labels = vec![0; self.len()];
        for (i, label) in seen
            .iter()
            .zip(clustering.labels)
            .chain(out.iter().zip(theirs))
        {
            labels[*i as usize] = label;
        }
        Cut {
            centres: clustering.centres,
            labels,
        }
    }

    /// Scales that fit these points.
    pub(crate) fn scales(
        &self,
        mean: &[f32],
        axes: &[f32],
        width: usize,
        bits: CodeBits,
    ) -> Scales {
        let rows = self.y.as_rows();
        Scales {
            origin: axes
                .chunks_exact(mean.len())
                .map(|a| garlic_simd::dot(a, mean))
                .collect(),
            bin_steps: steps(rows, width, BIN_BITS),
            steps: steps(rows, width, bits),
        }
    }

    /// Bins, codes and bounds of the points.
    pub(crate) fn encode(&self, cut: &Cut, steps: Steps<'_>, width: usize, bits: CodeBits) -> Part {
        let bins = Lists::group(cut.centres.rows(), by_label(&cut.labels));
        let sizes = (0..cut.centres.rows()).map(|b| bins.get(b).len() as u32);
        let mut part = Part {
            order: Vec::with_capacity(self.len()),
            sizes: sizes.collect(),
            ..Part::default()
        };
        let mut bin_norms = Vec::with_capacity(part.sizes.len());
        for (bin, centre) in cut.centres.as_rows().iter().enumerate() {
            let inside = bins.get(bin);
            let outside = inside.iter().map(|i| self.outside[*i as usize]);
            let mean_outside = outside.sum::<f32>() / inside.len() as f32;
            bin_norms.push(length(centre, steps.bins) + mean_outside);
            part.bounds.push(self.bounds(centre, steps, bits, inside));
            let rows = inside.iter().map(|i| *i as usize);
            let rows = rows.map(|i| (self.y.row(i), self.norms[i]));
            encode(bits, width, steps.points, rows, &mut part.blocks);
            part.order.extend(inside);
        }
        let rows = cut.centres.as_rows().iter().zip(bin_norms);
        encode(BIN_BITS, width, steps.bins, rows, &mut part.bin_blocks);
        part
    }

    /// What a bin around `centre` with these members can be skipped by.
    pub(crate) fn bounds(
        &self,
        centre: &[f32],
        steps: Steps<'_>,
        bits: CodeBits,
        members: &[u32],
    ) -> Bounds {
        let coded = |row: &[f32], steps: &[f32], bits: CodeBits| -> Vec<f32> {
            let codes = row.iter().zip(steps);
            codes
                .map(|(v, s)| (code(bits, *v, *s) - zero_code(bits)) as f32 * s)
                .collect()
        };
        let centre = coded(centre, steps.bins, BIN_BITS);
        let steps = steps.points;
        let mut bounds = Bounds {
            low: f32::INFINITY,
            ..Bounds::default()
        };
        for i in members {
            let i = *i as usize;
            let (y, norm, outside) = (self.y.row(i), self.norms[i], self.outside[i]);
            let slack = norm * ROUNDING;
            let rounding = slack.sqrt() * ROUNDING.sqrt();
            let radius = garlic_simd::l2_squared(y, &centre).sqrt() + rounding;
            let error = garlic_simd::l2_squared(y, &coded(y, steps, bits)).sqrt() + rounding;
            let mass: i32 = y
                .iter()
                .zip(steps)
                .map(|(v, s)| (code(bits, *v, *s) - zero_code(bits)).abs())
                .sum();
            bounds.radius = bounds.radius.max(radius);
            bounds.low = bounds.low.min((outside - slack).max(0.0).sqrt());
            bounds.high = bounds.high.max((outside + slack).sqrt());
            bounds.error = bounds.error.max(error);
            bounds.mass = bounds.mass.max(mass as f32);
        }
        bounds
    }
}

/// Squared length of a centre; that of its code where the code cannot hold it.
fn length(centre: &[f32], steps: &[f32]) -> f32 {
    let fits = |(v, s): (&f32, &f32)| v.abs() <= 63.5 * s;
    if centre.iter().zip(steps).all(fits) {
        return garlic_simd::dot(centre, centre);
    }
    let coded = centre.iter().zip(steps);
    let coded = coded.map(|(v, s)| (code(BIN_BITS, *v, *s) - zero_code(BIN_BITS)) as f32 * s);
    coded.map(|v| v * v).sum()
}

/// Coordinates beyond this many times the magnitude that all but [`TAIL`] of them stay below are outliers. Codes of 8 bits
/// hold all others, which are all of them where there are no outliers; those of 4 bits are made for their variance.
const TAIL_REACH: f32 = 3.0;
const TAIL: f64 = 0.01;

/// Steps that let the codes hold these coordinates, but for outliers.
fn steps(rows: Rows<'_>, width: usize, bits: CodeBits) -> Vec<f32> {
    let mut column = Vec::with_capacity(rows.len());
    (0..width)
        .map(|axis| {
            let magnitudes = || rows.iter().filter_map(|row| row.get(axis)).map(|v| v.abs());
            column.clear();
            column.extend(magnitudes());
            let limit = TAIL_REACH * usual(&mut column);
            let held = magnitudes().map(|v| v.min(limit));
            match bits {
                CodeBits::Eight => held.fold(0.0, f32::max) / 63.0,
                CodeBits::Four => {
                    let squares: f32 = held.map(|v| v * v).sum();
                    (squares / rows.len().max(1) as f32).sqrt() * STEP_4
                }
            }
        })
        .collect()
}

/// The magnitude that all but [`TAIL`] of some stay below; infinite if that is zero.
fn usual(magnitudes: &mut [f32]) -> f32 {
    let at = (magnitudes.len() as f64 * (1.0 - TAIL)) as usize;
    match magnitudes.get(at) {
        None => f32::INFINITY,
        Some(_) => {
            let usual = *magnitudes.select_nth_unstable_by(at, f32::total_cmp).1;
            if usual > 0.0 { usual } else { f32::INFINITY }
        }
    }
}

/// The code of a coordinate.
fn code(bits: CodeBits, value: f32, step: f32) -> i32 {
    let steps = if step > 0.0 {
        (value / step).round() as i32
    } else {
        0
    };
    let code = zero_code(bits).saturating_add(steps);
    code.clamp(0, i32::from(bits.largest()))
}

/// Bytes of a lane in a row of a block, and of a row.
const LANE: usize = 4;
const ROW: usize = LANE * CODE_LANES;

/// Appends whole blocks of codes; lanes without a point have an infinite norm.
fn encode<'a>(
    bits: CodeBits,
    width: usize,
    steps: &[f32],
    rows: impl Iterator<Item = (&'a [f32], f32)>,
    out: &mut Vec<u8>,
) {
    let bytes = code_block_bytes(bits, width);
    for (i, (row, norm)) in rows.enumerate() {
        let block = lane_block(bytes, i, out);
        encode_lane(bits, steps, row, norm, block, i % CODE_LANES);
    }
}

/// The block at the end of `out` that has the lane `number`; a new one when it is the first of eight.
pub(crate) fn lane_block(bytes: usize, number: usize, out: &mut Vec<u8>) -> &mut [u8] {
    if number.is_multiple_of(CODE_LANES) {
        let start = out.len();
        out.resize(start + bytes, 0);
        for norm in out[start + bytes - ROW..].chunks_exact_mut(LANE) {
            norm.copy_from_slice(&f32::INFINITY.to_le_bytes());
        }
    }
    let start = out.len() - bytes;
    &mut out[start..]
}

/// Writes the code of one point.
pub(crate) fn encode_lane(
    bits: CodeBits,
    steps: &[f32],
    row: &[f32],
    norm: f32,
    block: &mut [u8],
    lane: usize,
) {
    for (j, (v, s)) in row.iter().zip(steps).enumerate() {
        let code = code(bits, *v, *s) as u8;
        match bits {
            CodeBits::Eight => block[j / 4 * ROW + lane * LANE + j % 4] = code,
            CodeBits::Four => {
                block[j / 8 * ROW + lane * LANE + j % 4] |= code << (if j % 8 < 4 { 0 } else { 4 });
            }
        }
    }
    norm_of(block, lane).copy_from_slice(&norm.to_le_bytes());
}

/// The bytes of a lane's norm, the last thing of a block.
fn norm_of(block: &mut [u8], lane: usize) -> &mut [u8] {
    let norms_at = block.len() - ROW;
    &mut block[norms_at + LANE * lane..][..LANE]
}

/// Moves the norm of a bin, the last lane at the end of `blocks`, into what the bounds of its points allow: they may
/// not be those that it was computed from.
pub(crate) fn fit_norm(
    blocks: &mut [u8],
    bytes: usize,
    number: usize,
    centre: &[f32],
    bounds: &Bounds,
) {
    let start = blocks.len() - bytes;
    let norm = norm_of(&mut blocks[start..], number % CODE_LANES);
    let mut old = [0; LANE];
    old.copy_from_slice(norm);
    let inside = garlic_simd::dot(centre, centre);
    let (low, high) = (bounds.low * bounds.low, bounds.high * bounds.high);
    let outside = f32::from_le_bytes(old) - inside;
    if !(low..=high).contains(&outside) {
        // In this order nothing panics, whatever the numbers are.
        let fitted = inside + outside.min(high).max(low);
        norm.copy_from_slice(&fitted.to_le_bytes());
    }
}

/// Copies one lane of blocks of `bytes` bytes to the lane `number` of what is at the end of `to`.
pub(crate) fn copy_lane(from: &[u8], lane: usize, bytes: usize, number: usize, to: &mut Vec<u8>) {
    let source = &from[lane / CODE_LANES * bytes..][..bytes];
    let target = lane_block(bytes, number, to);
    for row in (0..bytes).step_by(ROW) {
        let from = row + lane % CODE_LANES * LANE;
        let to = row + number % CODE_LANES * LANE;
        target[to..to + LANE].copy_from_slice(&source[from..from + LANE]);
    }
}

/// Appends the centres of `count` bins as their codes have them, one value for each of `steps`.
pub(crate) fn decode_centres(
    blocks: &[u8],
    steps: &[f32],
    width: usize,
    count: usize,
    out: &mut Vec<f32>,
) {
    let blocks = blocks.chunks_exact(code_block_bytes(BIN_BITS, width));
    let lanes = blocks.flat_map(|block| (0..CODE_LANES).map(move |lane| (block, lane)));
    for (block, lane) in lanes.take(count) {
        out.extend(steps.iter().enumerate().map(|(j, s)| {
            let code = i32::from(block[j / 4 * ROW + lane * LANE + j % 4]);
            (code - zero_code(BIN_BITS)) as f32 * s
        }));
    }
}

#[cfg(test)]
mod tests {
    use garlic_linalg::{random_stream, uniform_unit};

    use super::*;

    const ROWS: usize = 400;
    const DIM: usize = 3;

    fn cloud() -> Vec<f32> {
        let mut random = random_stream(1, 51);
        let values = (0..ROWS * DIM).map(|_| uniform_unit(&mut random) as f32 - 0.5);
        values.collect()
    }

    fn steps_of(values: &[f32], bits: CodeBits) -> Vec<f32> {
        steps(Rows::new(values, DIM).unwrap(), 8, bits)
    }

    #[test]
    fn codes_of_eight_bits_hold_every_coordinate_where_there_are_no_outliers() {
        let values = cloud();
        let steps = steps_of(&values, CodeBits::Eight);
        for (axis, step) in steps.iter().take(DIM).enumerate() {
            let column = values.iter().skip(axis).step_by(DIM);
            let most = column.map(|v| v.abs()).fold(0.0, f32::max);
            assert_eq!(*step, most / 63.0, "{axis}");
        }
        assert_eq!(steps[DIM..], [0.0; 8 - DIM]);
    }

    /// One coordinate of one point does not make the codes of all others coarse.
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
