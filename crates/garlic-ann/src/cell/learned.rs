//! Learned bins and local codes: what the default preset keeps of every cell.
//!
//! A cell's points are projected on its axes and cut into small bins by k-means. Bin centres and points are
//! kept as codes: their coordinates in whole steps of the cell's own scale, eight to a block, each with the
//! norm term that turns an inner product of codes into an estimate of a squared distance.
//!
//! Bins, codes, vectors and identifiers of a cell lie in one order: cell, bin, row.

mod access;

pub(crate) use access::Order;

use garlic_linalg::{Matrix, Rows, Trans, gemm, kmeans_plus_plus, lloyd, nearest_centres};
use garlic_simd::{CODE_LANES, CodeBits, code_block_bytes};
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::model::{Lists, Tempered, by_label};

/// Rounds of k-means in a cell.
const ROUNDS: usize = 8;
/// Codes of bin centres are always of this size: there are few of them.
pub(crate) const BIN_BITS: CodeBits = CodeBits::Eight;
/// Variance to step of 4-bit codes: the uniform quantiser of 16 levels with the least error for a Gaussian.
const STEP_4: f32 = 0.335;

/// The code that stands for zero.
pub(crate) const fn zero_code(bits: CodeBits) -> i32 {
    match bits {
        CodeBits::Eight => 64,
        CodeBits::Four => 8,
    }
}

/// Where a bin's points lie; as a file keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Bin {
    /// Position of the first point.
    pub(crate) first: u32,
    /// First block of codes.
    pub(crate) block: u32,
}

/// Frames, bins and codes of all cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learned {
    pub(crate) bits: CodeBits,
    /// Coordinates of a code: the rank of the model, filled up to whole groups.
    pub(crate) width: usize,
    /// Of every cell, the inner products of its axes with its mean; `rank` values.
    pub(crate) origins: Buffer<f32>,
    /// Of every cell, the steps of bin codes and of point codes; `width` values each.
    pub(crate) bin_steps: Buffer<f32>,
    pub(crate) steps: Buffer<f32>,
    /// First bin of each cell, and the number of bins.
    pub(crate) cell_bins: Buffer<u32>,
    /// Codes of the bin centres; every cell begins with a new block.
    pub(crate) bin_blocks: Buffer<u8>,
    /// First block of bin codes of each cell, and the number of blocks.
    pub(crate) bin_block_of: Buffer<u32>,
    /// Where the bins' points lie; one more than there are bins.
    pub(crate) bins: Buffer<Bin>,
    /// Codes of the points; every bin begins with a new block.
    pub(crate) blocks: Buffer<u8>,
    /// What bins can be skipped by.
    pub(crate) bounds: Buffer<Bounds>,
    /// Whether cells and bins are in order, once that is known.
    pub(crate) order: Order,
}

/// What a bin and its points can be skipped by without losing a neighbour; rounding is allowed for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Bounds {
    /// Largest distance of a point from the bin's coded centre, within the frame.
    pub(crate) radius: f32,
    /// Least and largest distance of a point from the frame.
    pub(crate) low: f32,
    pub(crate) high: f32,
    /// Largest distance between a point and its code, within the frame.
    pub(crate) error: f32,
    /// Largest sum over a point's codes of their distances from the code of zero.
    pub(crate) mass: f32,
}

/// Rounding of squared lengths, relative to the squared distance from the mean.
pub(crate) const ROUNDING: f32 = 1e-5;

/// One cell before the cells are put together.
struct Part {
    order: Vec<u32>,
    sizes: Vec<u32>,
    bin_steps: Vec<f32>,
    steps: Vec<f32>,
    origin: Vec<f32>,
    bin_blocks: Vec<u8>,
    blocks: Vec<u8>,
    bounds: Vec<Bounds>,
}

impl Learned {
    /// Cuts every cell into bins of about `bin_size` points and codes them; also returns the stored order of
    /// the rows. `residual` is the squared distance of each point from the space that `points` live in.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of them different things"
    )]
    pub(crate) fn build(
        points: Rows<'_>,
        residual: &[f32],
        model: &Tempered,
        labels: &[u32],
        held: &[u32],
        bin_size: usize,
        bits: CodeBits,
        seed: u64,
        cancel: &Cancel,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<(Self, Vec<u32>)> {
        let members = Lists::group(model.len(), by_label(labels));
        let width = model.rank().max(1).next_multiple_of(8);
        let finished = std::sync::atomic::AtomicUsize::new(0);
        let parts: Vec<Part> = (0..model.len())
            .into_par_iter()
            .map(|cell| {
                cancel.check()?;
                let builder = CellBuilder {
                    points,
                    residual,
                    model,
                    held,
                    width,
                    bits,
                    cell,
                };
                let part = builder.build(members.get(cell), bin_size, seed);
                done(finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
                Ok(part)
            })
            .collect::<Result<_>>()?;
        let bin_bytes = code_block_bytes(BIN_BITS, width);
        let (mut bin_blocks, mut blocks) = (Vec::new(), Vec::new());
        let (mut origins, mut bin_steps, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let (mut cell_bins, mut bin_block_of) = (vec![0], vec![0]);
        let (mut bins, mut bounds) = (Vec::new(), Vec::new());
        let mut order = Vec::with_capacity(points.len());
        let mut block = 0;
        for part in parts {
            let mut first = order.len() as u32;
            for size in &part.sizes {
                bins.push(Bin { first, block });
                first += size;
                block += size.div_ceil(CODE_LANES as u32);
            }
            order.extend(part.order);
            origins.extend(part.origin);
            bin_steps.extend(part.bin_steps);
            steps.extend(part.steps);
            bin_blocks.extend(part.bin_blocks);
            blocks.extend(part.blocks);
            bounds.extend(part.bounds);
            cell_bins.push(bins.len() as u32);
            bin_block_of.push((bin_blocks.len() / bin_bytes) as u32);
        }
        bins.push(Bin {
            first: order.len() as u32,
            block,
        });
        let learned = Self {
            bits,
            width,
            origins: origins.into(),
            bin_steps: bin_steps.into(),
            steps: steps.into(),
            cell_bins: cell_bins.into(),
            bin_blocks: bin_blocks.into(),
            bin_block_of: bin_block_of.into(),
            bins: bins.into(),
            blocks: blocks.into(),
            bounds: bounds.into(),
            order: Order::default(),
        };
        Ok((learned, order))
    }
}

struct CellBuilder<'a> {
    points: Rows<'a>,
    residual: &'a [f32],
    model: &'a Tempered,
    /// Rows that the bins must not know, in order.
    held: &'a [u32],
    width: usize,
    bits: CodeBits,
    cell: usize,
}

impl CellBuilder<'_> {
    fn build(&self, members: &[u32], bin_size: usize, seed: u64) -> Part {
        let (rank, dim) = (self.model.rank(), self.model.dim());
        let mean = self.model.mean(self.cell);
        let axes = self.model.axes(self.cell);
        let origin: Vec<f32> = axes
            .chunks_exact(dim)
            .map(|a| garlic_simd::dot(a, mean))
            .collect();
        let mut centred = Matrix::gather(self.points, members);
        for row in centred.as_mut_slice().chunks_exact_mut(dim) {
            for (x, m) in row.iter_mut().zip(mean) {
                *x -= m;
            }
        }
        let mut y = Matrix::zeros(members.len(), rank);
        gemm(
            y.as_mut_slice(),
            centred.as_slice(),
            Trans::No,
            axes,
            Trans::Yes,
            members.len(),
            rank,
            dim,
            1.0,
            0.0,
        );
        // Squared distances from the mean, and from the frame.
        let norms: Vec<f32> = centred
            .as_rows()
            .iter()
            .zip(members)
            .map(|(row, p)| garlic_simd::dot(row, row) + self.residual[*p as usize])
            .collect();
        let outside: Vec<f32> = y
            .as_rows()
            .iter()
            .zip(&norms)
            .map(|(y, n)| (n - garlic_simd::dot(y, y)).max(0.0))
            .collect();
        drop(centred);

        let (centres, labels) = self.cluster(&y, members, bin_size, seed);
        let bins = Lists::group(centres.rows(), by_label(&labels));

        let bin_steps = self.steps(y.as_rows(), BIN_BITS);
        let steps = self.steps(y.as_rows(), self.bits);
        let mut part = Part {
            order: Vec::with_capacity(members.len()),
            sizes: (0..centres.rows())
                .map(|b| bins.get(b).len() as u32)
                .collect(),
            bin_blocks: Vec::new(),
            blocks: Vec::new(),
            bounds: Vec::new(),
            bin_steps,
            steps,
            origin,
        };
        let mut bin_norms = Vec::with_capacity(part.sizes.len());
        for (bin, centre) in centres.as_rows().iter().enumerate() {
            let inside = bins.get(bin);
            let mean_outside =
                inside.iter().map(|i| outside[*i as usize]).sum::<f32>() / inside.len() as f32;
            bin_norms.push(garlic_simd::dot(centre, centre) + mean_outside);
            let points = inside.iter().map(|i| *i as usize);
            let points = points.map(|i| (y.row(i), norms[i], outside[i]));
            part.bounds
                .push(self.bounds(centre, &part.bin_steps, &part.steps, points));
            let rows = inside
                .iter()
                .map(|i| (y.row(*i as usize), norms[*i as usize]));
            encode(self.bits, self.width, &part.steps, rows, &mut part.blocks);
            part.order
                .extend(inside.iter().map(|i| members[*i as usize]));
        }
        let rows = centres.as_rows().iter().zip(bin_norms);
        encode(
            BIN_BITS,
            self.width,
            &part.bin_steps,
            rows,
            &mut part.bin_blocks,
        );
        part
    }

    /// Bin centres, and the bin of every member. Members that were held out choose among the others' bins.
    fn cluster(
        &self,
        y: &Matrix,
        members: &[u32],
        bin_size: usize,
        seed: u64,
    ) -> (Matrix, Vec<u32>) {
        let is_held = |row: &u32| self.held.binary_search(row).is_ok();
        let numbers = 0..members.len() as u32;
        let (out, seen): (Vec<u32>, Vec<u32>) =
            numbers.partition(|i| is_held(&members[*i as usize]));
        // A cell of held-out points alone has nobody else to choose.
        let (seen, out) = if seen.is_empty() {
            (out, seen)
        } else {
            (seen, out)
        };
        let known = Matrix::gather(y.as_rows(), &seen);
        let count = seen.len().div_ceil(bin_size).max(1);
        let seeds = kmeans_plus_plus(known.as_rows(), count, seed ^ self.cell as u64);
        let clustering = lloyd(known.as_rows(), seeds, ROUNDS);
        let others = Matrix::gather(y.as_rows(), &out);
        let (theirs, _) = nearest_centres(others.as_rows(), clustering.centres.as_rows());
        let mut labels = vec![0; members.len()];
        for (i, label) in seen
            .iter()
            .zip(clustering.labels)
            .chain(out.iter().zip(theirs))
        {
            labels[*i as usize] = label;
        }
        (clustering.centres, labels)
    }

    fn bounds<'b>(
        &self,
        centre: &[f32],
        bin_steps: &[f32],
        steps: &[f32],
        members: impl Iterator<Item = (&'b [f32], f32, f32)>,
    ) -> Bounds {
        let coded = |row: &[f32], steps: &[f32], bits: CodeBits| -> Vec<f32> {
            let codes = row.iter().zip(steps);
            codes
                .map(|(v, s)| (code(bits, *v, *s) - zero_code(bits)) as f32 * s)
                .collect()
        };
        let centre = coded(centre, bin_steps, BIN_BITS);
        let mut bounds = Bounds {
            low: f32::INFINITY,
            ..Bounds::default()
        };
        for (y, norm, outside) in members {
            let slack = norm * ROUNDING;
            let rounding = slack.sqrt() * ROUNDING.sqrt();
            let radius = garlic_simd::l2_squared(y, &centre).sqrt() + rounding;
            let error = garlic_simd::l2_squared(y, &coded(y, steps, self.bits)).sqrt() + rounding;
            let mass: i32 = y
                .iter()
                .zip(steps)
                .map(|(v, s)| (code(self.bits, *v, *s) - zero_code(self.bits)).abs())
                .sum();
            bounds.radius = bounds.radius.max(radius);
            bounds.low = bounds.low.min((outside - slack).max(0.0).sqrt());
            bounds.high = bounds.high.max((outside + slack).sqrt());
            bounds.error = bounds.error.max(error);
            bounds.mass = bounds.mass.max(mass as f32);
        }
        bounds
    }

    /// Steps that let the codes hold these coordinates.
    fn steps(&self, rows: Rows<'_>, bits: CodeBits) -> Vec<f32> {
        let mut steps = vec![0.0f32; self.width];
        for row in rows.iter() {
            for (s, v) in steps.iter_mut().zip(row) {
                match bits {
                    CodeBits::Eight => *s = s.max(v.abs()),
                    CodeBits::Four => *s += v * v,
                }
            }
        }
        for s in &mut steps {
            *s = match bits {
                CodeBits::Eight => *s / 63.0,
                CodeBits::Four => (*s / rows.len().max(1) as f32).sqrt() * STEP_4,
            };
        }
        steps
    }
}

/// The code of a coordinate.
fn code(bits: CodeBits, value: f32, step: f32) -> i32 {
    let steps = if step > 0.0 {
        (value / step).round() as i32
    } else {
        0
    };
    (zero_code(bits) + steps).clamp(0, i32::from(bits.largest()))
}

/// Appends whole blocks of codes; lanes without a point have an infinite norm.
fn encode<'a>(
    bits: CodeBits,
    width: usize,
    steps: &[f32],
    rows: impl Iterator<Item = (&'a [f32], f32)>,
    out: &mut Vec<u8>,
) {
    let bytes = code_block_bytes(bits, width);
    let norms_at = bytes - 4 * CODE_LANES;
    for (i, (row, norm)) in rows.enumerate() {
        let lane = i % CODE_LANES;
        if lane == 0 {
            let start = out.len();
            out.resize(start + bytes, 0);
            for norm in out[start + norms_at..].chunks_exact_mut(4) {
                norm.copy_from_slice(&f32::INFINITY.to_le_bytes());
            }
        }
        let start = out.len() - bytes;
        let block = &mut out[start..];
        for (j, (v, s)) in row.iter().zip(steps).enumerate() {
            let code = code(bits, *v, *s) as u8;
            match bits {
                CodeBits::Eight => block[j / 4 * 32 + lane * 4 + j % 4] = code,
                CodeBits::Four => {
                    block[j / 8 * 32 + lane * 4 + j % 4] |= code << (if j % 8 < 4 { 0 } else { 4 });
                }
            }
        }
        block[norms_at + 4 * lane..][..4].copy_from_slice(&norm.to_le_bytes());
    }
}
