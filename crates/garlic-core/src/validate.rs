//! Checks of what users give: vectors, identifiers, queries.

use std::collections::HashSet;

use garlic_linalg::Rows;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::metric::{Embedding, Metric};

/// Largest magnitude of a value: squares of differences, summed over many coordinates, must stay finite.
pub const LARGEST_VALUE: f32 = 1e15;

/// Where all values are smaller, squared distances lose their digits in 32 bits.
const SMALLEST_VALUE: f32 = 1e-18;

/// Identifiers are below this.
pub const ID_LIMIT: u64 = 1 << 63;

/// Fails for no vectors, and for more than an index can number.
///
/// # Errors
/// [`Error::NoVectors`], [`Error::TooManyVectors`].
pub fn check_count(vectors: Rows<'_>) -> Result<()> {
    if vectors.is_empty() {
        return Err(Error::NoVectors);
    }
    // Positions are 32-bit numbers, and the largest one marks "none".
    let limit = (u32::MAX - 1) as usize;
    if vectors.len() > limit {
        return Err(Error::TooManyVectors {
            rows: vectors.len(),
            limit,
        });
    }
    Ok(())
}

/// Fails for values that are not finite or too large. Runs in rayon's current pool.
///
/// # Errors
/// [`Error::NotFinite`], [`Error::TooLarge`]: the first such value.
pub fn check_finite(vectors: Rows<'_>) -> Result<()> {
    let dim = vectors.dim();
    let bad = vectors
        .data()
        .par_iter()
        .position_first(|v| v.is_nan() || v.abs() > LARGEST_VALUE);
    match bad {
        None => Ok(()),
        Some(at) => {
            let (row, column, value) = (at / dim, at % dim, vectors.data()[at]);
            if value.is_finite() {
                return Err(Error::TooLarge {
                    row,
                    column,
                    value,
                    limit: LARGEST_VALUE,
                });
            }
            Err(Error::NotFinite { row, column, value })
        }
    }
}

/// Fails for vectors whose squared distances, in 32 bits, would be nothing but zeros. Cosines do not depend on lengths.
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

/// Fails for identifiers that are too large or come twice.
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

/// Fails unless there is one identifier for each of `vectors` vectors, each once.
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

/// Fails for a query that is not one of `dim` finite numbers; `row` is what the error calls it.
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
    let right = |v: &f32| v.abs() <= LARGEST_VALUE;
    // Without an early exit at every value, so that the loop is vectorised.
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
            limit: LARGEST_VALUE,
        },
        false => Error::QueryNotFinite { row, column, value },
    })
}
