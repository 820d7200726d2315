//! Chooses the element type of the stored vectors.

use crate::config::Store;
use garlic_core::metric::Embedded;
use garlic_core::vectors::{StoredType, is_byte};
use garlic_core::{Error, Metric, Result};
use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

/// Values at or above this limit become infinite in half precision.
const HALF_LIMIT: f32 = 65_520.0;

/// The element type of the stored vectors.
pub(crate) fn stored_type(vectors: Rows<'_>, metric: Metric, store: Store) -> Result<StoredType> {
    let store = match (metric, store) {
        // The values may be whole numbers by chance. Embedded vectors that are added later are not.
        (Metric::Cosine | Metric::InnerProduct, Store::Auto) => Store::F32,
        (_, store) => store,
    };
    let bytes_fit = vectors.dim() <= garlic_simd::MAX_U8_LENGTH;
    let first_other = || vectors.data().par_iter().position_first(|v| !is_byte(*v));
    match store {
        Store::F32 => Ok(StoredType::F32),
        Store::Int8 => Ok(StoredType::Int8),
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
                     f16, int8 or auto",
                    at / vectors.dim(),
                    vectors.data()[at],
                    at % vectors.dim()
                ),
            }),
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
    let values = vectors.data().par_iter();
    let (first, stored) = match element {
        StoredType::F32 | StoredType::Int8 => return Ok(()),
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
