//! Chooses the element type of the stored vectors.

use crate::config::Store;
use garlic_core::metric::Embedded;
use garlic_core::vectors::{StoredType, is_byte};
use garlic_core::{Error, Metric, Result};
use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

/// Values at or above this limit become infinite in half precision.
const HALF_LIMIT: f32 = 65_520.0;

/// A value, and where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) value: f32,
}

/// The first value that `is_wanted`.
pub(crate) fn first_value(
    vectors: Rows<'_>,
    is_wanted: impl Fn(f32) -> bool + Sync,
) -> Option<Place> {
    let values = vectors.data().par_iter();
    let at = values.position_first(|v| is_wanted(*v))?;
    Some(Place {
        row: at / vectors.dim(),
        column: at % vectors.dim(),
        value: vectors.data()[at],
    })
}

/// Whether a value is no byte.
pub(crate) fn is_no_byte(v: f32) -> bool {
    !is_byte(v)
}

/// Whether a value becomes infinite in half precision.
pub(crate) fn is_no_half(v: f32) -> bool {
    v.abs() >= HALF_LIMIT
}

/// The element type of stored vectors of `dim` coordinates. `first` finds the first embedded value that fulfils a
/// condition.
pub(crate) fn stored_type(
    dim: usize,
    metric: Metric,
    store: Store,
    first: impl Fn(fn(f32) -> bool) -> Result<Option<Place>>,
) -> Result<StoredType> {
    let store = match (metric, store) {
        // The values may be whole numbers by chance. Embedded vectors that are added later are not.
        (Metric::Cosine | Metric::InnerProduct, Store::Auto) => Store::F32,
        (_, store) => store,
    };
    let bytes_fit = dim <= garlic_simd::MAX_U8_LENGTH;
    let refused = |place: Place, problem: &str| Error::Config {
        key: "store".into(),
        message: format!(
            "vector {} has the value {} at coordinate {}, {problem}",
            place.row, place.value, place.column
        ),
    };
    match store {
        Store::F32 => Ok(StoredType::F32),
        Store::Int8 => Ok(StoredType::Int8),
        Store::F16 => match first(is_no_half)? {
            None => Ok(StoredType::F16),
            Some(place) => Err(refused(
                place,
                "too large for half precision; scale the data or use f32",
            )),
        },
        Store::Auto if bytes_fit && first(is_no_byte)?.is_none() => Ok(StoredType::U8),
        Store::Auto => Ok(StoredType::F32),
        Store::U8 if !bytes_fit => Err(Error::Config {
            key: "store".into(),
            message: format!(
                "vectors of more than {} bytes are not supported; use f32",
                garlic_simd::MAX_U8_LENGTH
            ),
        }),
        Store::U8 => match first(is_no_byte)? {
            None => Ok(StoredType::U8),
            Some(place) => Err(refused(
                place,
                "which is no whole number from 0 to 255; use f32, f16, int8 or auto",
            )),
        },
    }
}

/// The values that are stored as `element`. It rounds vectors of its own where they are.
pub(crate) fn rounded(vectors: Embedded<'_>, element: StoredType) -> Result<Embedded<'_>> {
    if !element.rounds() {
        return Ok(vectors);
    }
    let mut own = match vectors {
        Embedded::Made(own) => own,
        Embedded::Given(rows) => Matrix::from_vec(rows.data().to_vec(), rows.dim())?,
    };
    let dim = own.cols();
    element.round_in_place(own.as_mut_slice(), dim);
    Ok(Embedded::Made(own))
}

/// Fails for vectors that cannot be stored as `element`.
pub(crate) fn check_type(vectors: Rows<'_>, element: StoredType) -> Result<()> {
    let (first, stored) = match element {
        StoredType::F32 | StoredType::Int8 => return Ok(()),
        StoredType::F16 => (first_value(vectors, is_no_half), "f16"),
        StoredType::U8 => (first_value(vectors, is_no_byte), "u8"),
    };
    match first {
        None => Ok(()),
        Some(Place { row, column, value }) => Err(Error::NotStorable {
            row,
            column,
            value,
            stored,
        }),
    }
}
