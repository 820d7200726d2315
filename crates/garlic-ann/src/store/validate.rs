//! Checks what a search relies on: shapes, order, ranges and finite numbers.
//!
//! An index is checked when it is loaded and before it is saved, so that every saved index can be loaded. For a
//! mapped file, only the shapes are checked: the lengths of its arrays and the ends of the last ranges.

use crate::bins::Bounds;
use crate::plan::Setting;
use garlic_simd::{CODE_LANES, CodeBits, MAX_CODE_RANK};

use crate::bins::EncodedBins;
use crate::partition::AnisotropicCells;
use crate::plan::Calibration;
use crate::quantize::BIN_BITS;
use crate::segment::Index;
use garlic_core::Transform;
use garlic_core::file::{Fault, Kind, inconsistent};

/// The width of codes is a multiple of this.
const WIDTH_MULTIPLE: usize = 8;
/// Upper limit of a coordinate of an axis: that of a unit vector, plus rounding.
pub(super) const MAX_AXIS_COORDINATE: f32 = 1.001;

/// Upper limit of a step, as a share of [`coordinate_limit`].
pub(super) const MAX_STEP_SHARE: f32 = 0.25;

/// Twice the largest coordinate of a point after centring and rotation of vectors of dimension `dim`.
///
/// Builds accept values up to 1e15. A search multiplies coordinates with steps and adds the products. Within these
/// limits, the sums of a query like the data are finite. An infinite sum could make the padding of a block, whose
/// norm is infinite, look like a point.
pub(super) fn coordinate_limit(dim: usize) -> f32 {
    4e15 * (dim as f32).sqrt()
}

/// Checks an index in memory.
pub(super) fn check(index: &Index) -> Result<(), Fault> {
    let segment = &index.segment;
    check_calibration(&index.calibration)?;
    check_transform(&index.transform)?;
    check_cell_shapes(&segment.cells, &index.transform)?;
    check_cells(&segment.cells, &index.transform)?;
    check_bin_shapes(&segment.encoded, &segment.cells, index.segment.ids.len())?;
    check_bins(&segment.encoded, &index.transform, index.segment.ids.len())?;
    check_codes(&segment.encoded)?;
    match &segment.graph {
        Some(graph) => super::graph::check(graph),
        None => Ok(()),
    }
}

/// Fails for settings that a search cannot use.
pub(super) fn check_calibration(calibration: &Calibration) -> Result<(), Fault> {
    let sound = |s: &Setting| {
        let share = s.bins > 0.0 && s.bins <= 1.0;
        let factor = |v: f32| v >= 0.0 && v.is_finite();
        let recalls = [s.recall, s.measured]
            .iter()
            .all(|r| (-1.0..=1.0).contains(r));
        s.k > 0
            && s.probes > 0
            && share
            && recalls
            && factor(s.bin_prune_ratio)
            && factor(s.rerank_prune_ratio)
            && factor(s.expand_ratio)
    };
    let mut settings = calibration
        .settings
        .iter()
        .chain(&calibration.graph_settings);
    match settings.position(|s| !sound(s)) {
        Some(at) => Err(inconsistent(
            Kind::Meta,
            format!("setting {at} of the calibration is out of range"),
        )),
        None => Ok(()),
    }
}

/// Fails unless the transform rotates and truncates without scaling.
pub(super) fn check_transform(space: &Transform) -> Result<(), Fault> {
    let wrong = |message: String| Err(inconsistent(Kind::Space, message));
    if let Some(at) = space.scale.iter().position(|scale| *scale != 1.0) {
        return wrong(format!("the cells need coordinate {at} unscaled"));
    }
    let limit = coordinate_limit(space.dim());
    if let Some(at) = first_outside(&space.mean, -limit, limit) {
        return wrong(format!("coordinate {at} of the mean is out of range"));
    }
    match &space.rotation {
        None => wrong("the cells need a rotation".into()),
        Some(rotation) => match first_outside(
            rotation.as_slice(),
            -MAX_AXIS_COORDINATE,
            MAX_AXIS_COORDINATE,
        ) {
            Some(at) => wrong(format!("value {at} of the rotation is above 1")),
            None => Ok(()),
        },
    }
}

/// Checks the number and size of the cells against a checked transform.
pub(super) fn check_cell_shapes(model: &AnisotropicCells, space: &Transform) -> Result<(), Fault> {
    let wrong = |message: String| Err(inconsistent(Kind::Cells, message));
    let (cells, rank, dim) = (model.len(), model.rank, model.dim);
    if dim != space.out_dim() {
        return wrong(format!(
            "cells of dimension {dim} in a space of dimension {}",
            space.out_dim()
        ));
    }
    if rank == 0 || rank > dim || rank > MAX_CODE_RANK {
        return wrong(format!("{rank} axes in dimension {dim}"));
    }
    if cells == 0
        || model.means.len() != cells * dim
        || model.axes.len() != cells * rank * dim
        || model.variances.len() != cells * rank
    {
        return wrong(format!("its arrays do not belong to {cells} cells"));
    }
    if !(0.0..=1.0).contains(&model.anisotropy) {
        return wrong(format!("an anisotropy of {}", model.anisotropy));
    }
    Ok(())
}

/// Checks the content of cells with checked shapes.
pub(super) fn check_cells(model: &AnisotropicCells, space: &Transform) -> Result<(), Fault> {
    let wrong = |message: String| Err(inconsistent(Kind::Cells, message));
    let limit = coordinate_limit(space.dim());
    for (values, low, high, what) in [
        (&*model.means, -limit, limit, "means"),
        (
            &*model.axes,
            -MAX_AXIS_COORDINATE,
            MAX_AXIS_COORDINATE,
            "axes",
        ),
        (&*model.variances, 0.0, f32::MAX, "variances"),
        (
            &*model.residual_variances,
            0.0,
            f32::MAX,
            "residual variances",
        ),
    ] {
        if let Some(at) = first_outside(values, low, high) {
            return wrong(format!("value {at} of the {what} is out of range"));
        }
    }
    Ok(())
}

/// Checks the number of bins and blocks against checked cells, and that the last of them end with `points` points.
pub(super) fn check_bin_shapes(
    encoded: &EncodedBins,
    model: &AnisotropicCells,
    points: usize,
) -> Result<(), Fault> {
    let wrong = |message: String| Err(inconsistent(Kind::Learned, message));
    let (cells, rank, width) = (model.len(), model.rank, encoded.width);
    if width < rank || !width.is_multiple_of(WIDTH_MULTIPLE) || width > MAX_CODE_RANK {
        return wrong(format!("codes of {width} coordinates for {rank} axes"));
    }
    if encoded.origins.len() != cells * rank
        || encoded.steps.len() != cells * width
        || encoded.bin_steps.len() != cells * width
        || encoded.cell_bins.len() != cells + 1
        || encoded.bin_block_of.len() != cells + 1
        || encoded.bins.len() != encoded.bounds.len() + 1
    {
        return wrong(format!("its arrays do not belong to {cells} cells"));
    }
    let bins = encoded.bounds.len();
    if encoded.cell_bins.last().map(|end| *end as usize) != Some(bins) {
        return wrong(format!(
            "there are {bins} bins, which is not the number that the tables cover"
        ));
    }
    if encoded.points() != points {
        return wrong(format!(
            "there are {points} points, which is not the number that the tables cover"
        ));
    }
    Ok(())
}

/// Checks everything except the codes of `points` points, after the shapes.
pub(super) fn check_bins(
    encoded: &EncodedBins,
    space: &Transform,
    points: usize,
) -> Result<(), Fault> {
    let wrong = |message: String| Err(inconsistent(Kind::Learned, message));
    let limit = coordinate_limit(space.dim());
    let step = limit * MAX_STEP_SHARE;
    for (values, low, high, what) in [
        (&encoded.origins, -limit, limit, "origins"),
        (&encoded.bin_steps, 0.0, step, "steps of bins"),
        (&encoded.steps, 0.0, step, "steps of points"),
    ] {
        if let Some(at) = first_outside(values, low, high) {
            return wrong(format!("value {at} of the {what} is out of range"));
        }
    }
    encoded.check_layout(points).or_else(wrong)?;
    let ordered = |b: &Bounds| {
        (0.0..=f32::MAX).contains(&b.radius)
            && 0.0 <= b.low
            && b.low <= b.high
            && b.high.is_finite()
            && (0.0..=f32::MAX).contains(&b.error)
            && (0.0..=f32::MAX).contains(&b.code_sum)
    };
    match encoded.bounds.iter().position(|bounds| !ordered(bounds)) {
        Some(bin) => wrong(format!("the bounds of bin {bin} are out of range")),
        None => Ok(()),
    }
}

/// Bytes of all bin codes and of all point codes, after [`check_bin_shapes`].
pub(super) fn code_bytes(encoded: &EncodedBins) -> [u64; 2] {
    let bins = encoded
        .bin_block_of
        .last()
        .map_or(0, |blocks| u64::from(*blocks));
    let points = encoded.bins.last().map_or(0, |bin| u64::from(bin.block));
    [
        bins * encoded.bin_block_bytes() as u64,
        points * encoded.block_bytes() as u64,
    ]
}

/// Checks the codes of checked bins.
pub(super) fn check_codes(encoded: &EncodedBins) -> Result<(), Fault> {
    let wrong = |message: String| inconsistent(Kind::Codes, message);
    let lengths = [encoded.bin_blocks.len() as u64, encoded.blocks.len() as u64];
    if lengths != code_bytes(encoded) {
        return Err(wrong("not as many codes as bins and points".into()));
    }
    for cell in 0..encoded.cells() {
        let count = encoded.bins_of(cell).len();
        check_blocks(
            encoded.bin_codes(cell),
            BIN_BITS,
            encoded.bin_block_bytes(),
            count,
        )
        .map_err(|message| wrong(format!("cell {cell}: {message}")))?;
    }
    for bin in 0..encoded.bounds.len() {
        let count = encoded.positions(bin).len();
        check_blocks(
            encoded.codes(bin),
            encoded.bits,
            encoded.block_bytes(),
            count,
        )
        .map_err(|message| wrong(format!("bin {bin}: {message}")))?;
    }
    Ok(())
}

/// Checks that the codes are within range, that the norms of `count` lanes are finite, and that those of the padding
/// lanes are infinite so that a scan skips them.
fn check_blocks(blocks: &[u8], bits: CodeBits, bytes: usize, count: usize) -> Result<(), String> {
    for (number, block) in blocks.chunks_exact(bytes).enumerate() {
        let (codes, norms) = block.split_at(bytes - 4 * CODE_LANES);
        // Every nibble is a valid 4-bit code. The loop has no early exit, so that it vectorizes.
        let all = codes.iter().fold(0, |all, code| all | code);
        if bits == CodeBits::Eight && all > bits.largest() {
            return Err(format!("a code in block {number} is out of range"));
        }
        for (lane, norm) in (number * CODE_LANES..).zip(norms.as_chunks::<4>().0) {
            let norm = f32::from_le_bytes(*norm);
            let sound = match lane < count {
                true => (0.0..=f32::MAX).contains(&norm),
                false => norm == f32::INFINITY,
            };
            if !sound {
                return Err(format!("{norm} is no norm for lane {lane} of {count}"));
            }
        }
    }
    Ok(())
}

/// The first value that is not between `low` and `high`. NaN is not.
fn first_outside(values: &[f32], low: f32, high: f32) -> Option<usize> {
    values.iter().position(|v| !(low..=high).contains(v))
}
