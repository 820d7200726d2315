//! Columns of identifiers: whole numbers, strings, or the 16 bytes of UUIDs.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::lists::{Place, first_null};
use crate::error::Result;
use crate::identifiers::Identifiers;

/// Bytes of a UUID.
const UUID: i32 = 16;

/// Whether a column of this type may hold identifiers.
pub(super) fn holds_identifiers(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::FixedSizeBinary(bytes) => *bytes == UUID,
        DataType::Dictionary(_, value) => holds_identifiers(value),
        kind => kind.is_integer(),
    }
}

/// The identifiers of a column.
pub(super) fn identifiers(column: &ArrayRef, at: &Place<'_>) -> Result<Identifiers> {
    if let Some(row) = first_null(column) {
        return Err(at.bad(row, "there is no identifier (null): every row needs one"));
    }
    let strings = |texts: Vec<String>| Ok(Identifiers::Strings(texts));
    match column.data_type() {
        DataType::Int8 => numbers::<Int8Type>(column, at),
        DataType::Int16 => numbers::<Int16Type>(column, at),
        DataType::Int32 => numbers::<Int32Type>(column, at),
        DataType::Int64 => numbers::<Int64Type>(column, at),
        DataType::UInt8 => numbers::<UInt8Type>(column, at),
        DataType::UInt16 => numbers::<UInt16Type>(column, at),
        DataType::UInt32 => numbers::<UInt32Type>(column, at),
        DataType::UInt64 => numbers::<UInt64Type>(column, at),
        DataType::Utf8 => strings(owned(column.as_string::<i32>().iter())),
        DataType::LargeUtf8 => strings(owned(column.as_string::<i64>().iter())),
        DataType::Utf8View => strings(owned(column.as_string_view().iter())),
        DataType::FixedSizeBinary(UUID) => {
            let uuids = column.as_fixed_size_binary().iter();
            strings(uuids.map(|bytes| uuid(bytes.unwrap_or_default())).collect())
        }
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let plain = take(dictionary.values(), dictionary.keys(), None)
                .map_err(|cause| at.bad(0, cause.to_string()))?;
            identifiers(&plain, at)
        }
        other => Err(at.bad(
            0,
            format!("the identifiers are {other} here, not whole numbers or strings"),
        )),
    }
}

fn owned<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Vec<String> {
    texts
        .map(|text| text.unwrap_or_default().to_owned())
        .collect()
}

fn numbers<T: ArrowPrimitiveType>(column: &ArrayRef, at: &Place<'_>) -> Result<Identifiers>
where
    T::Native: TryInto<u64>,
{
    let values = column.as_primitive::<T>().values().iter().enumerate();
    let number = |(row, value): (usize, &T::Native)| {
        (*value).try_into().map_err(|_| {
            let problem =
                format!("the identifier is {value:?}: identifiers are whole numbers from 0 on");
            at.bad(row, problem)
        })
    };
    let numbers: Result<Vec<u64>> = values.map(number).collect();
    Ok(Identifiers::Numbers(numbers?))
}

/// The usual form of a UUID: `01234567-89ab-cdef-0123-456789abcdef`.
fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
