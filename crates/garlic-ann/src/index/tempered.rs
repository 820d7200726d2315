//! What the default preset keeps of its cells, and how it is made from the vectors.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use garlic_linalg::{Rows, permutation};
use garlic_simd::CodeBits;
use rayon::prelude::*;

use super::calibration::Calibration;
use super::groups::Groups;
use super::stored::{StoredType, is_byte};
use crate::buffer::Buffer;
use crate::cancel::Cancel;
use crate::cell::learned::Learned;
use crate::config::{Config, Store};
use crate::error::{Error, Result};
use crate::model::Tempered;
use crate::space::{Space, beyond};
use crate::train::streams;
use crate::train::tempered::{SHORTLIST, code_bits};

/// Tempered cells with learned bins and codes.
///
/// Cheap to clone: all large arrays are shared.
#[derive(Clone, Debug, PartialEq)]
pub struct TemperedBody {
    pub(crate) model: Tempered,
    pub(crate) learned: Learned,
    pub(crate) calibration: Calibration,
    /// The rotation of the space; a copy in pages of its own.
    pub(crate) rotation: Buffer<f32>,
    derived: Arc<Derived>,
}

/// What follows from the rest and is made when it is first asked for.
#[derive(Debug, Default)]
struct Derived {
    /// Cell of every bin.
    bin_cell: OnceLock<Buffer<u32>>,
    /// Centres of all bins, `rank` values each.
    centres: OnceLock<Buffer<f32>>,
    coarse: OnceLock<Option<Coarse>>,
    groups: OnceLock<Option<Groups>>,
}

/// Share of the mean squared distance of a point from its cell by which the rough rotation may be wrong about a query's.
const ROUGH: f64 = 0.01;

/// The rotation in whole numbers of 8 bits, for queries of bytes: a quarter of the memory to read and far more products at
/// a time. It moves a query a little, and all that is estimated with it; where that is not little beside the size of
/// the cells, there is none. Exact distances, bounds and what points are built from have nothing to do with it.
#[derive(Debug)]
pub(crate) struct Coarse {
    rows: Buffer<i8>,
    /// What a unit of each row is worth.
    steps: Vec<f32>,
    /// The rotated mean of the space.
    origin: Vec<f32>,
}

impl Coarse {
    fn new(rotation: &[f32], mean: &[f32]) -> Self {
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

    /// Root of the mean squared step.
    fn mean_step(&self) -> f64 {
        let squares = self.steps.iter().map(|s| f64::from(*s) * f64::from(*s));
        (squares.sum::<f64>() / self.steps.len().max(1) as f64).sqrt()
    }

    /// Rotates vectors of `dim` bytes, one after the other, into `out`.
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

/// One learned bin as it was built, in the coordinates of its cell's frame.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedBin {
    /// The cell that it is a part of.
    pub cell: usize,
    /// Its centre, as its code has it.
    pub centre: Vec<f32>,
    /// Largest distance of a point from the centre, within the frame.
    pub radius: f32,
    /// Least and largest distance of a point from the frame.
    pub outside: [f32; 2],
    /// Positions of its points.
    pub positions: Range<usize>,
}

impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl TemperedBody {
    pub(crate) fn new(
        space: &Space,
        model: Tempered,
        learned: Learned,
        calibration: Calibration,
    ) -> Self {
        let rotation = space.rotation.as_ref();
        Self {
            model,
            learned,
            calibration,
            rotation: rotation
                .map_or_else(Vec::new, |r| r.as_slice().to_vec())
                .into(),
            derived: Arc::default(),
        }
    }

    /// Cell of every bin.
    #[inline]
    pub(crate) fn bin_cell(&self) -> &[u32] {
        self.derived.bin_cell.get_or_init(|| {
            let mut cells = vec![0; self.bins()];
            for cell in 0..self.model.len() {
                // Cells that are not in order have no bins, so this is one pass.
                cells[self.learned.bins_of(cell)].fill(cell as u32);
            }
            cells.into()
        })
    }

    /// Centres of all bins, `rank` values each.
    #[inline]
    pub(crate) fn centres(&self) -> &[f32] {
        self.derived.centres.get_or_init(|| {
            let rank = self.model.rank();
            let mut centres = Vec::new();
            for cell in 0..self.model.len() {
                self.learned.decode_centres(cell, rank, &mut centres);
            }
            centres.into()
        })
    }

    /// The rotation for queries of bytes; none where it would be too rough. `mean` is that of the space, `radius` the mean
    /// squared distance of points from the means of their cells.
    #[inline]
    pub(crate) fn coarse(&self, mean: &[f32], radius: f64) -> Option<&Coarse> {
        let made = || {
            if mean.is_empty() || mean.len() > garlic_simd::MAX_U8_LENGTH {
                return None;
            }
            let coarse = Coarse::new(&self.rotation, mean);
            // Each row is wrong by the step of its codes over the root of 12, times the length of the vector; what that
            // makes of the squared length is twice the vector's length as much.
            let noise = 2.0 * coarse.mean_step() / 12f64.sqrt() * (self.spread() + radius);
            (noise <= ROUGH * radius).then_some(coarse)
        };
        self.derived.coarse.get_or_init(made).as_ref()
    }

    /// The cells in groups; none where there are too few of them.
    #[inline]
    pub(crate) fn groups(&self) -> Option<&Groups> {
        let made = || Groups::new(&self.model.means, self.model.dim());
        self.derived.groups.get_or_init(made).as_ref()
    }

    /// Mean squared distance of the cells of points from the mean of the space.
    fn spread(&self) -> f64 {
        let cells = (0..self.model.len()).map(|cell| {
            let mean = &self.model.means[cell * self.model.dim()..][..self.model.dim()];
            let count = self.cell_len(cell) as f64;
            (count, count * f64::from(garlic_simd::dot(mean, mean)))
        });
        let (count, sum) = cells.fold((0.0, 0.0), |(n, s), (count, square)| {
            (n + count, s + square)
        });
        sum / f64::max(count, 1.0)
    }

    /// Bytes of what has been derived so far.
    pub(super) fn derived_bytes(&self) -> u64 {
        let cells = self.derived.bin_cell.get().map_or(0, |v| size_of_val(&**v));
        let centres = self.derived.centres.get().map_or(0, |v| size_of_val(&**v));
        let coarse = self.derived.coarse.get().and_then(Option::as_ref);
        let coarse = coarse.map_or(0, |coarse| coarse.rows.len());
        let groups = self.derived.groups.get().and_then(Option::as_ref);
        let tables = self.learned.copied_bytes();
        (cells + centres + coarse) as u64 + groups.map_or(0, Groups::bytes) + tables
    }

    /// The cells.
    pub fn model(&self) -> &Tempered {
        &self.model
    }

    /// What recall targets take.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.learned.bounds.len()
    }

    /// One bin, for reports and pictures; none past the last.
    pub fn bin(&self, bin: usize) -> Option<LearnedBin> {
        let rank = self.model.rank();
        let bounds = self.learned.bounds.get(bin)?;
        Some(LearnedBin {
            cell: *self.bin_cell().get(bin)? as usize,
            centre: self.centres().get(bin * rank..(bin + 1) * rank)?.to_vec(),
            radius: bounds.radius,
            outside: [bounds.low, bounds.high],
            positions: self.learned.positions(bin),
        })
    }

    /// Number of points of a cell.
    pub fn cell_len(&self, cell: usize) -> usize {
        let bins = self.learned.bins_of(cell);
        let starts = self.learned.starts();
        let first = |bin: usize| starts.get(bin).map_or(0, |bin| bin.first);
        first(bins.end).saturating_sub(first(bins.start)) as usize
    }

    /// The cell of a position.
    pub(crate) fn cell_of(&self, position: usize) -> usize {
        let bin = self
            .learned
            .starts()
            .partition_point(|bin| bin.first as usize <= position);
        let cell = self.bin_cell().get(bin.saturating_sub(1));
        cell.map_or(0, |cell| *cell as usize)
    }

    /// Bits of a coordinate in a code.
    pub fn code_bits(&self) -> usize {
        match self.learned.bits {
            CodeBits::Eight => 8,
            CodeBits::Four => 4,
        }
    }
}

/// Values from here on round to infinity in half precision.
const HALF_LIMIT: f32 = 65_520.0;

/// The type that the vectors are stored in.
pub(crate) fn stored_type(vectors: Rows<'_>, store: Store) -> Result<StoredType> {
    let bytes_fit = vectors.dim() <= garlic_simd::MAX_U8_LENGTH;
    let first_other = || vectors.data().par_iter().position_first(|v| !is_byte(*v));
    match store {
        Store::F32 => Ok(StoredType::F32),
        Store::F16 => match vectors
            .data()
            .par_iter()
            .position_first(|v| v.abs() >= HALF_LIMIT)
        {
            None => Ok(StoredType::F16),
            Some(at) => Err(Error::Config {
                key: "store".into(),
                message: format!(
                    "vector {} has the value {} at coordinate {}, too large for half precision; scale the data or \
                     use f32",
                    at / vectors.dim(),
                    vectors.data()[at],
                    at % vectors.dim()
                ),
            }),
        },
        Store::Auto if bytes_fit && first_other().is_none() => Ok(StoredType::U8),
        Store::Auto => Ok(StoredType::F32),
        Store::U8 if !bytes_fit => Err(Error::Config {
            key: "store".into(),
            message: format!(
                "vectors of more than {} bytes are not supported; use f32",
                garlic_simd::MAX_U8_LENGTH
            ),
        }),
        Store::U8 => match first_other() {
            None => Ok(StoredType::U8),
            Some(at) => Err(Error::Config {
                key: "store".into(),
                message: format!(
                    "vector {} has the value {} at coordinate {}, which is no whole number from 0 to 255; use f32, \
                     f16 or auto",
                    at / vectors.dim(),
                    vectors.data()[at],
                    at % vectors.dim()
                ),
            }),
        },
    }
}

/// Fails for vectors that cannot be stored as `element`.
pub(crate) fn check_type(vectors: Rows<'_>, element: StoredType) -> Result<()> {
    let values = vectors.data().par_iter();
    let (first, stored) = match element {
        StoredType::F32 => return Ok(()),
        StoredType::F16 => (values.position_first(|v| v.abs() >= HALF_LIMIT), "f16"),
        StoredType::U8 => (values.position_first(|v| !is_byte(*v)), "u8"),
    };
    match first {
        None => Ok(()),
        Some(at) => Err(Error::NotStorable {
            row: at / vectors.dim(),
            column: at % vectors.dim(),
            value: vectors.data()[at],
            stored,
        }),
    }
}

/// Squared distance of every vector from the truncated space that `points` are its images in.
pub(crate) fn outside(vectors: Rows<'_>, space: &Space, points: Rows<'_>) -> Vec<f32> {
    // Nothing lies outside of the whole space; rounding would say otherwise, far from the mean.
    if space.out_dim() == space.dim() {
        return vec![0.0; vectors.len()];
    }
    (0..vectors.len())
        .into_par_iter()
        .with_min_len(256)
        .map(|i| {
            let whole = garlic_simd::l2_squared(vectors.row(i), &space.mean);
            beyond(whole, points.row(i))
        })
        .collect()
}

/// Queries that a calibration asks of `points` points with `values` coordinates in all.
pub(crate) fn calibration_queries(points: usize, values: usize, config: &Config) -> usize {
    const MOST_WORK: f64 = 1.5e11;
    let affordable = (MOST_WORK / values.max(1) as f64) as usize;
    let asked = config.calibration_queries;
    asked.min(points / 10).min(affordable.max(100))
}

/// Rows that the training must not see: the queries of the calibration, in order.
///
/// At most a tenth of the points, and fewer when brute force over them would take long.
pub(crate) fn held_out(vectors: Rows<'_>, config: &Config) -> Vec<u32> {
    let count = calibration_queries(vectors.len(), vectors.data().len(), config);
    let mut ids = permutation(vectors.len(), config.seed, streams::CALIBRATION);
    ids.truncate(count);
    ids.sort_unstable();
    ids
}

/// Cuts the cells into bins and codes their points; also returns the stored order of the rows, in which those that lie in two
/// cells come twice.
#[expect(
    clippy::too_many_arguments,
    reason = "one call, all of them different things"
)]
pub(crate) fn build(
    vectors: Rows<'_>,
    space: &Space,
    points: Rows<'_>,
    model: Tempered,
    labels: &[u32],
    held: &[u32],
    config: &Config,
    cancel: &Cancel,
    done: &(dyn Fn(usize) + Sync),
) -> Result<(TemperedBody, Vec<u32>)> {
    let outside = outside(vectors, space, points);
    let seconds = match config.spill {
        0.0 => Vec::new(),
        times => model.seconds(points, labels, times, SHORTLIST, cancel)?,
    };
    let (learned, order) = Learned::build(
        points,
        &outside,
        &model,
        labels,
        &seconds,
        held,
        config.bin_size,
        code_bits(config, points.len()),
        config.seed ^ streams::BINS,
        cancel,
        done,
    )?;
    Ok((
        TemperedBody::new(space, model, learned, Calibration::default()),
        order,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;

    /// Whole numbers from 0 to 255.
    fn bytes(n: usize, dim: usize) -> Vec<u8> {
        let byte = |i: usize| (i * 7919 % 251 + i / dim % 5) as u8;
        (0..n * dim).map(byte).collect()
    }

    #[test]
    fn queries_of_bytes_are_rotated_nearly_as_floats_are() {
        let (n, dim) = (600, 24);
        let bytes = bytes(n, dim);
        let values: Vec<f32> = bytes.iter().map(|b| f32::from(*b)).collect();
        let rows = Rows::new(&values, dim).unwrap();
        let index = Index::builder().build(rows).unwrap();
        let (body, mean) = (index.tempered().unwrap(), &index.space.mean);
        let coarse = body.coarse(mean, index.ledger.radius).unwrap();
        let wide = body.model.dim();
        let mut rough = vec![0.0; n * wide];
        coarse.rotate(&bytes, dim, &mut Vec::new(), &mut rough);
        for (row, rough) in rows.iter().zip(rough.chunks_exact(wide)) {
            let centred: Vec<f32> = row.iter().zip(mean).map(|(x, m)| x - m).collect();
            let mut exact = vec![0.0; wide];
            garlic_simd::dots(&body.rotation, &centred, &mut exact);
            let (gap, length) = (
                garlic_simd::l2_squared(rough, &exact),
                garlic_simd::dot(&exact, &exact),
            );
            assert!(gap <= 1e-4 * length, "{gap} of {length}");
        }
    }

    #[test]
    fn small_cells_are_not_for_the_rough_rotation() {
        let (n, dim) = (600, 24);
        let values: Vec<f32> = bytes(n, dim).iter().map(|b| f32::from(*b)).collect();
        // A calibration would search, and settle it.
        let builder = Index::builder().set("calibration_queries", "0").unwrap();
        let index = builder.build(Rows::new(&values, dim).unwrap()).unwrap();
        let body = index.tempered().unwrap();
        assert!(body.coarse(&index.space.mean, 1.0).is_none());
    }
}
