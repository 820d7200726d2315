//! The sections that every index has: META, SPACE, VECTORS, IDS.

use std::io::{self, Write};
use std::sync::Arc;

use garlic_linalg::Matrix;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::MAX_META;
use super::error::{Fault, inconsistent};
use super::layout::Kind;
use super::read::Reader;
use super::source::{OnDisk, Source};
use super::write::{Aligned, put};
use crate::buffer::Buffer;
use crate::transform::Transform;
use crate::vector_file::{VectorFile, VectorPlace};
use crate::vectors::{StoredType, StoredVectors};

/// Tolerance of the inner products of orthonormal axes.
const AXIS_TOLERANCE: f32 = 1e-3;

/// Content of META: sizes, and three parts whose types depend on the kind of index.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta<Config, Body, Stats> {
    /// Dimension of the stored vectors.
    pub dim: u64,
    /// The largest length, for inner products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<f32>,
    /// Number of positions.
    pub points: u64,
    /// Number of cells.
    pub cells: u64,
    /// The element type of the stored vectors.
    pub element: StoredType,
    /// The parameters.
    pub config: Config,
    /// Small data of this kind of index.
    pub body: Body,
    /// Statistics since the build. Missing in the oldest files.
    #[serde(default, rename = "ledger")]
    pub build_stats: Stats,
}

/// Reads META.
///
/// # Errors
/// [`FormatError::Inconsistent`](super::FormatError::Inconsistent) if it cannot be parsed as `M`.
pub fn read_meta<M: DeserializeOwned, R: Source>(reader: &mut Reader<R>) -> Result<M, Fault> {
    let wrong = |message: String| inconsistent(Kind::Meta, message);
    let json = reader.section(Kind::Meta, |section| {
        if section.left() > MAX_META {
            return Err(wrong(format!(
                "{} bytes, at most {MAX_META} are allowed",
                section.left()
            )));
        }
        section.words::<u8>(section.left())
    })?;
    serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))
}

/// Checks sizes against the section table, which must have exactly the sections `kinds`.
///
/// # Errors
/// Fails if something is inconsistent.
pub fn check_meta<C, B, L, R: Source>(
    meta: &Meta<C, B, L>,
    reader: &Reader<R>,
    kinds: &[Kind],
) -> Result<(), Fault> {
    let wrong = |message: String| Err(inconsistent(Kind::Meta, message));
    let Meta {
        dim,
        points,
        cells,
        element,
        ..
    } = meta;
    if *dim == 0 || *cells == 0 {
        return wrong(format!(
            "{points} points of dimension {dim} in {cells} cells are no index"
        ));
    }
    // The largest 32-bit position is reserved.
    if *points >= u64::from(u32::MAX) {
        return wrong(format!(
            "{points} points are more than positions can number"
        ));
    }
    reader.layout().expect(kinds)?;
    // The file size bounds dimension and points before anything relies on them.
    let vectors = reader.layout().length(Kind::Vectors);
    if element.section_bytes(*points, *dim) != vectors {
        return wrong(format!(
            "{points} points of dimension {dim} do not fit the section VECTORS"
        ));
    }
    let longest = garlic_simd::MAX_U8_LENGTH as u64;
    if *element == StoredType::U8 && *dim > longest {
        return wrong(format!(
            "vectors of {dim} bytes, at most {longest} are allowed"
        ));
    }
    Ok(())
}

/// Writes SPACE.
///
/// # Errors
/// Those of `out`.
pub fn put_transform(transform: &Transform, out: &mut dyn Write) -> io::Result<()> {
    let rotation = transform.rotation.as_ref();
    let rows = rotation.map_or(0, |rotation| rotation.rows());
    let mut out = Aligned::new(out);
    out.put(&[transform.mean.len() as u64, rows as u64])?;
    out.array(&transform.mean)?;
    out.array(&transform.scale)?;
    out.array(rotation.map_or(&[][..], |rotation| rotation.as_slice()))
}

/// Reads SPACE: the transform of vectors of dimension `expected`, with a number of axes that `fits`.
///
/// # Errors
/// Fails if the section is damaged or inconsistent.
pub fn read_transform<R: Source>(
    reader: &mut Reader<R>,
    expected: u64,
    fits: impl FnOnce(u64) -> bool,
) -> Result<Transform, Fault> {
    let (mean, scale, rotation) = reader.section(Kind::Space, |section| {
        let [dim, rows] = [section.word::<u64>()?, section.word::<u64>()?];
        if dim != expected || !fits(rows) {
            let message = format!(
                "dimension {dim} with {rows} axes, where vectors have dimension {expected}"
            );
            return Err(inconsistent(Kind::Space, message));
        }
        let values = product(&[rows, dim]);
        section.expect_arrays(&[(Some(dim), 4), (Some(dim), 4), (values, 4)])?;
        let mut values = |count: u64| -> Result<Vec<f32>, Fault> {
            section.align()?;
            section.words(count)
        };
        Ok((values(dim)?, values(dim)?, values(rows * dim)?))
    })?;
    if let Some(at) = scale.iter().position(|scale| *scale < 0.0) {
        return Err(inconsistent(
            Kind::Space,
            format!("the scale of coordinate {at} is negative"),
        ));
    }
    let rotation = match rotation.is_empty() {
        true => None,
        false => Some(matrix(Kind::Space, rotation, expected)?),
    };
    Ok(Transform {
        mean,
        scale,
        rotation,
    })
}

/// Writes VECTORS.
///
/// # Errors
/// Those of `out`.
pub fn put_vectors(vectors: &StoredVectors, out: &mut dyn Write) -> io::Result<()> {
    match vectors {
        StoredVectors::F32(values) => put(out, values),
        StoredVectors::F16(halves) => put(out, halves),
        StoredVectors::U8(bytes) | StoredVectors::Int8(bytes) => put(out, bytes),
        StoredVectors::File(file) => file.copy_to(out),
    }
}

/// Reads VECTORS, unless they stay in the file. Then only their number is checked.
///
/// # Errors
/// Fails if the section is damaged or inconsistent.
pub fn read_vectors<R: Source>(
    reader: &mut Reader<R>,
    points: u64,
    dim: u64,
    element: StoredType,
) -> Result<StoredVectors, Fault> {
    if reader.inner.keeps_vectors().is_some() {
        return leave_vectors(reader, points, dim, element);
    }
    let vectors = reader.large_section(Kind::Vectors, |section| {
        let bytes = element.section_bytes(points, dim);
        section.expect(bytes)?;
        let count = points * dim;
        Ok(match element {
            StoredType::F32 => StoredVectors::F32(section.buffer(count)?),
            StoredType::F16 => StoredVectors::F16(section.buffer(count)?),
            StoredType::U8 => StoredVectors::U8(section.buffer(count)?),
            StoredType::Int8 => StoredVectors::Int8(section.buffer(bytes.unwrap_or(0))?),
        })
    })?;
    // Reading has checked all other types value by value.
    if element == StoredType::Int8
        && !reader.is_mapped()
        && let Some(at) = vectors.first_not_finite(dim as usize)
    {
        let message = format!("the vector at position {at} has a step that is no finite number");
        return Err(inconsistent(Kind::Vectors, message));
    }
    Ok(vectors)
}

/// Leaves VECTORS in the file.
fn leave_vectors<R: Source>(
    reader: &mut Reader<R>,
    points: u64,
    dim: u64,
    element: StoredType,
) -> Result<StoredVectors, Fault> {
    let offset = reader.unread_section(Kind::Vectors, |section| {
        section.expect(element.section_bytes(points, dim))?;
        Ok(section.leave())
    })?;
    let Some(OnDisk {
        file,
        path,
        backend,
    }) = reader.inner.keeps_vectors()
    else {
        return Err(inconsistent(Kind::Vectors, "they do not stay in the file"));
    };
    let place = VectorPlace {
        file: Arc::clone(file),
        path: path.clone(),
        offset,
        element,
        dim: dim as usize,
        rows: points as usize,
    };
    Ok(StoredVectors::File(VectorFile::new(place, *backend)))
}

/// Reads IDS. The content of a mapped file is not checked.
///
/// # Errors
/// Fails if the section is damaged or inconsistent.
pub fn read_ids<R: Source>(reader: &mut Reader<R>, points: u64) -> Result<Buffer<u64>, Fault> {
    let ids = reader.large_section(Kind::Ids, |section| {
        section.expect(product(&[points, 8]))?;
        section.buffer::<u64>(points)
    })?;
    if reader.is_mapped() {
        return Ok(ids);
    }
    match ids.iter().position(|id| *id >= crate::validate::ID_LIMIT) {
        Some(at) => Err(inconsistent(
            Kind::Ids,
            format!(
                "the identifier {} at position {at} is not below 2^63",
                ids[at]
            ),
        )),
        None => Ok(ids),
    }
}

/// A matrix of the values of a section.
///
/// # Errors
/// Fails unless they form whole rows.
pub fn matrix(kind: Kind, values: Vec<f32>, cols: u64) -> Result<Matrix, Fault> {
    Matrix::from_vec(values, cols as usize).map_err(|error| inconsistent(kind, error.to_string()))
}

/// The product, or `None` on overflow.
pub fn product(factors: &[u64]) -> Option<u64> {
    factors
        .iter()
        .try_fold(1_u64, |all, factor| all.checked_mul(*factor))
}

/// Fails unless the rows of `axes` are orthonormal.
///
/// # Errors
/// A text that names the first wrong pair.
pub fn check_axes(axes: &[f32], dim: usize) -> Result<(), String> {
    let axes: Vec<&[f32]> = axes.chunks_exact(dim).collect();
    for (i, a) in axes.iter().enumerate() {
        for (j, b) in axes[..=i].iter().enumerate() {
            let expected = if i == j { 1.0 } else { 0.0 };
            let found = garlic_simd::dot(a, b);
            // Written so that NaN fails.
            let near = (found - expected).abs() <= AXIS_TOLERANCE;
            if !near {
                return Err(format!(
                    "axes {j} and {i} have the inner product {found}, not {expected}"
                ));
            }
        }
    }
    Ok(())
}
