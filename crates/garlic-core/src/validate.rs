//! Checks user input: vectors, identifiers, queries.

use std::collections::HashSet;

use garlic_linalg::Rows;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::metric::{Embedding, Metric};

/// Largest magnitude of a value. Sums of squared differences over many coordinates must stay finite.
pub const MAX_VALUE: f32 = 1e15;

/// If all values are smaller, squared distances lose precision in 32 bits.
const SMALLEST_VALUE: f32 = 1e-18;

/// Upper limit of identifiers.
pub const ID_LIMIT: u64 = 1 << 63;

/// Fails if there are no vectors, or more than an index can number.
///
/// # Errors
/// [`Error::NoVectors`], [`Error::TooManyVectors`].
pub fn check_count(vectors: Rows<'_>) -> Result<()> {
    check_count_of(vectors.len())
}

/// [`check_count`] of `rows` vectors.
///
/// # Errors
/// [`Error::NoVectors`], [`Error::TooManyVectors`].
pub fn check_count_of(rows: usize) -> Result<()> {
    if rows == 0 {
        return Err(Error::NoVectors);
    }
    // Positions have 32 bits, and the largest one is reserved.
    let limit = (u32::MAX - 1) as usize;
    if rows > limit {
        return Err(Error::TooManyVectors { rows, limit });
    }
    Ok(())
}

/// Fails for values that are not finite or too large. Runs in the current rayon pool.
///
/// # Errors
/// [`Error::NotFinite`], [`Error::TooLarge`] for the first such value.
pub fn check_finite(vectors: Rows<'_>) -> Result<()> {
    let dim = vectors.dim();
    let bad = vectors
        .data()
        .par_iter()
        .position_first(|v| v.is_nan() || v.abs() > MAX_VALUE);
    match bad {
        None => Ok(()),
        Some(at) => {
            let (row, column, value) = (at / dim, at % dim, vectors.data()[at]);
            if value.is_finite() {
                return Err(Error::TooLarge {
                    row,
                    column,
                    value,
                    limit: MAX_VALUE,
                });
            }
            Err(Error::NotFinite { row, column, value })
        }
    }
}

/// Fails for vectors whose squared distances vanish in 32 bits. Cosine distances do not depend on lengths.
///
/// # Errors
/// [`Error::TooSmall`].
pub fn check_scale(vectors: Rows<'_>, metric: Metric) -> Result<()> {
    if metric == Metric::Cosine {
        return Ok(());
    }
    let magnitudes = vectors.data().par_iter().map(|v| v.abs());
    let largest = magnitudes.reduce(|| 0.0, f32::max);
    match largest > 0.0 && largest < SMALLEST_VALUE {
        true => Err(Error::TooSmall {
            largest,
            limit: SMALLEST_VALUE,
        }),
        false => Ok(()),
    }
}

/// Fails for identifiers that are too large or occur twice.
///
/// # Errors
/// [`Error::IdTooLarge`], [`Error::IdTwice`].
pub fn check_ids(ids: &[u64]) -> Result<()> {
    let mut seen = HashSet::with_capacity(ids.len());
    for id in ids {
        if *id >= ID_LIMIT {
            return Err(Error::IdTooLarge { id: *id });
        }
        if !seen.insert(*id) {
            return Err(Error::IdTwice { id: *id });
        }
    }
    Ok(())
}

/// Fails unless there is one distinct identifier per vector.
///
/// # Errors
/// [`Error::IdCount`], and those of [`check_ids`].
pub fn check_ids_of(ids: Option<&[u64]>, vectors: usize) -> Result<()> {
    match ids {
        None => Ok(()),
        Some(ids) if ids.len() != vectors => Err(Error::IdCount {
            vectors,
            ids: ids.len(),
        }),
        Some(ids) => check_ids(ids),
    }
}

/// Fails unless a query has `dim` finite values. Errors name it by `row`.
///
/// # Errors
/// [`Error::Dimension`], [`Error::QueryTooLarge`], [`Error::QueryNotFinite`], [`Error::ZeroQuery`].
pub fn check_query(query: &[f32], dim: usize, embedding: &Embedding, row: usize) -> Result<()> {
    if query.len() != dim {
        return Err(Error::Dimension {
            expected: dim,
            found: query.len(),
        });
    }
    let right = |v: &f32| v.abs() <= MAX_VALUE;
    // The loop has no early exit, so that it vectorizes.
    if query.iter().fold(true, |all, v| all & right(v)) {
        return embedding.check_query(query, row);
    }
    let wrong = query.iter().position(|v| !right(v));
    let column = wrong.unwrap_or_default();
    let value = query[column];
    Err(match value.is_finite() {
        true => Error::QueryTooLarge {
            row,
            column,
            value,
            limit: MAX_VALUE,
        },
        false => Error::QueryNotFinite { row, column, value },
    })
}
