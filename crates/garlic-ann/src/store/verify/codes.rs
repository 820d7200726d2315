//! Checks axes, codes, norms and bounds of cells against the vectors.

use garlic_core::file::{check_axes, inconsistent};
use garlic_simd::{CODE_LANES, CodeBits};

use super::{sample_step, vector};
use crate::bins::Bounds;
use crate::quantize::{BIN_BITS, zero_code};
use crate::segment::{Index, Segment};
use garlic_core::file::{Fault, Kind};
use garlic_core::vectors::StoredType;

/// Relative tolerance of coordinates and squared distances. Sums are grouped differently, and distances are
/// differences of larger numbers.
const TOLERANCE: f64 = 1e-4;
/// Relative error of a half-precision number.
const HALF_EPSILON: f64 = 1.0 / 2048.0;
/// Smallest step of half-precision numbers.
const HALF_STEP: f64 = 1.0 / (1 << 24) as f64;

/// Checks the axes of all cells, and the codes, norms and bounds of a sample of points.
pub(super) fn check(index: &Index) -> Result<(), Fault> {
    let segment = &*index.segment;
    let (model, encoded) = (&segment.cells, &segment.encoded);
    for cell in 0..model.len() {
        let axes = model.axes(cell);
        // Cells whose points span fewer dimensions end with zero axes.
        let used = axes
            .iter()
            .rposition(|v| *v != 0.0)
            .map_or(0, |last| last / model.dim() + 1);
        check_axes(&axes[..used * model.dim()], model.dim())
            .map_err(|message| inconsistent(Kind::Cells, format!("cell {cell}: {message}")))?;
        let origin = &encoded.origins[cell * model.rank()..][..model.rank()];
        let size = size(model.mean(cell));
        for (axis, (row, origin)) in axes.chunks_exact(model.dim()).zip(origin).enumerate() {
            let found = f64::from(garlic_simd::dot(row, model.mean(cell)));
            if !near(f64::from(*origin), found, TOLERANCE * size) {
                return Err(inconsistent(
                    Kind::Learned,
                    format!("cell {cell}: axis {axis} has the origin {origin}, not {found}"),
                ));
            }
        }
    }
    let step = sample_step(index);
    for bin in 0..segment.bins() {
        let positions = encoded.positions(bin);
        for at in positions.clone().filter(|at| at.is_multiple_of(step)) {
            let point = PointInCell::of(index, segment, bin, at);
            point
                .check(segment, bin, at - positions.start)
                .map_err(|(kind, message)| {
                    inconsistent(kind, format!("the point at position {at}: {message}"))
                })?;
        }
    }
    Ok(())
}

/// A point in the frame of its cell, computed from its vector.
struct PointInCell {
    cell: usize,
    /// Coordinates along the axes.
    y: Vec<f64>,
    /// Squared distance from the mean.
    norm: f64,
    /// Tolerance of coordinates.
    slack: f64,
    /// Tolerance of squared distances.
    square_slack: f64,
}

/// The section of a fault, and its description.
type FaultIn = (Kind, String);

impl PointInCell {
    fn of(index: &Index, segment: &Segment, bin: usize, position: usize) -> Self {
        let model = &segment.cells;
        let cell = segment.bin_cell()[bin] as usize;
        let vector = vector(index, position);
        let mut x = vec![0.0; model.dim()];
        index.transform.apply(&vector, &mut x);
        let whole: f64 = vector
            .iter()
            .zip(&index.transform.mean)
            .map(|(v, m)| square(v - m))
            .sum();
        let residual_squared = (whole - size(&x).powi(2)).max(0.0);
        for (x, m) in x.iter_mut().zip(model.mean(cell)) {
            *x -= m;
        }
        let axes = model.axes(cell).chunks_exact(model.dim());
        let y = axes
            .map(|axis| f64::from(garlic_simd::dot(axis, &x)))
            .collect();
        let norm = size(&x).powi(2) + residual_squared;
        let scale = whole.sqrt() + size(model.mean(cell)) + size(&index.transform.mean);
        // Older versions computed codes before they rounded the vectors.
        let rounding = match index.segment.vectors.element() {
            StoredType::F16 => {
                HALF_EPSILON * size(&vector) + HALF_STEP * (vector.len() as f64).sqrt()
            }
            StoredType::F32 | StoredType::U8 | StoredType::Int8 => 0.0,
        };
        let slack = TOLERANCE * scale + rounding;
        Self {
            cell,
            y,
            norm,
            slack,
            square_slack: TOLERANCE * scale * scale
                + 2.0 * norm.sqrt() * rounding
                + rounding * rounding,
        }
    }

    fn check(&self, segment: &Segment, bin: usize, lane: usize) -> Result<(), FaultIn> {
        let encoded = &segment.encoded;
        let width = encoded.width;
        let code = Code::read(
            encoded.codes(bin),
            encoded.bits,
            encoded.block_bytes(),
            lane,
            self.y.len(),
        );
        if !near(f64::from(code.norm), self.norm, self.square_slack) {
            let message = format!("its norm is {}, not {}", code.norm, self.norm);
            return Err((Kind::Codes, message));
        }
        let steps = &encoded.steps[self.cell * width..][..width];
        for (axis, (y, step)) in self.y.iter().zip(steps).enumerate() {
            if !code.stands_for(axis, *y, f64::from(*step), self.slack) {
                let code = code.steps[axis];
                let message =
                    format!("{y} along axis {axis} is not coded by {code} steps of {step}");
                return Err((Kind::Codes, message));
            }
        }
        let first = encoded.bins_of(self.cell).start;
        let bytes = encoded.bin_block_bytes();
        let centre = Code::read(
            encoded.bin_codes(self.cell),
            BIN_BITS,
            bytes,
            bin - first,
            self.y.len(),
        );
        let steps = &encoded.bin_steps[self.cell * width..][..width];
        self.check_bounds(&centre, steps, &encoded.bounds[bin])
    }

    /// Checks the point against the bounds of its bin, whose centre is known up to quantization.
    fn check_bounds(&self, centre: &Code, steps: &[f32], bounds: &Bounds) -> Result<(), FaultIn> {
        let coordinates = || {
            centre
                .steps
                .iter()
                .zip(steps)
                .map(|(c, s)| f64::from(*c) * f64::from(*s))
        };
        let coding = 0.5 * size(steps) + self.slack;
        let away: f64 = self
            .y
            .iter()
            .zip(coordinates())
            .map(|(y, c)| (y - c).powi(2))
            .sum();
        if away.sqrt() > f64::from(bounds.radius) + coding {
            let message = format!(
                "{} from the centre of a bin of radius {}",
                away.sqrt(),
                bounds.radius
            );
            return Err((Kind::Learned, message));
        }
        let (low, high) = (
            f64::from(bounds.low).powi(2),
            f64::from(bounds.high).powi(2),
        );
        let within = |v: f64, slack: f64| v >= low - slack && v <= high + slack;
        let residual_squared = (self.norm - self.y.iter().map(|y| y * y).sum::<f64>()).max(0.0);
        if !within(residual_squared, self.square_slack) {
            let message = format!(
                "{} from the frame, where its bin reaches from {} to {}",
                residual_squared.sqrt(),
                bounds.low,
                bounds.high
            );
            return Err((Kind::Learned, message));
        }
        // The norm of a bin is the squared length of its centre plus the mean squared distance of its points from the
        // frame.
        let inside: f64 = coordinates().map(|c| c * c).sum();
        let slack = self.square_slack + coding * (2.0 * inside.sqrt() + coding);
        if !within(f64::from(centre.norm) - inside, slack) {
            let message = format!("the centre of its bin has the norm {}", centre.norm);
            return Err((Kind::Codes, message));
        }
        Ok(())
    }
}

/// A decoded lane of a block.
struct Code {
    /// Number of steps from zero along every axis.
    steps: Vec<i32>,
    norm: f32,
    /// The smallest and the largest number of steps that a code can express.
    range: [i32; 2],
}

impl Code {
    fn read(blocks: &[u8], bits: CodeBits, bytes: usize, lane: usize, rank: usize) -> Self {
        let block = &blocks[lane / CODE_LANES * bytes..][..bytes];
        let lane = lane % CODE_LANES;
        let code = |axis: usize| match bits {
            CodeBits::Eight => block[axis / 4 * 32 + lane * 4 + axis % 4],
            CodeBits::Four => {
                let pair = block[axis / 8 * 32 + lane * 4 + axis % 4];
                if axis % 8 < 4 { pair & 0x0f } else { pair >> 4 }
            }
        };
        let zero = zero_code(bits);
        let mut norm = [0; 4];
        norm.copy_from_slice(&block[bytes - 4 * CODE_LANES + 4 * lane..][..4]);
        Self {
            steps: (0..rank).map(|axis| i32::from(code(axis)) - zero).collect(),
            norm: f32::from_le_bytes(norm),
            range: [-zero, i32::from(bits.largest()) - zero],
        }
    }

    /// Whether the code along an axis is the nearest to `y`, or the last one of the range.
    fn stands_for(&self, axis: usize, y: f64, step: f64, slack: f64) -> bool {
        let steps = self.steps[axis];
        let (low, high) = (f64::from(steps) - 0.5, f64::from(steps) + 0.5);
        (steps == self.range[0] || y >= low * step - slack)
            && (steps == self.range[1] || y <= high * step + slack)
    }
}

fn square(v: f32) -> f64 {
    f64::from(v).powi(2)
}

fn size(v: &[f32]) -> f64 {
    v.iter().map(|v| square(*v)).sum::<f64>().sqrt()
}

/// Whether two numbers differ by at most `slack`. False for NaN.
fn near(a: f64, b: f64, slack: f64) -> bool {
    (a - b).abs() <= slack + f64::from(f32::MIN_POSITIVE)
}
