//! Types of operands: their names in messages, and what two operands are compared or computed as.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, TimeUnit};
use std::sync::Arc;

use super::Fault;
use super::eval::Operand;

/// The name of a type in messages.
pub(crate) fn type_name(of: &DataType) -> String {
    match of {
        DataType::Boolean => "bool".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Timestamp(_, None) => "timestamp".into(),
        DataType::Timestamp(_, Some(zone)) => format!("timestamp, {zone}"),
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => "binary".into(),
        DataType::Null => "null".into(),
        other => other.to_string().to_lowercase(),
    }
}

pub(super) fn is_text(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn is_date(of: &DataType) -> bool {
    matches!(of, DataType::Date32 | DataType::Date64)
}

/// The operands as one type that they can be compared in.
pub(super) fn comparable(left: &Operand, right: &Operand) -> Result<(Operand, Operand), Fault> {
    let target = common(left, right).ok_or_else(|| {
        let (one, two) = (type_name(left.kind()), type_name(right.kind()));
        let mut message = format!("{one} cannot be compared with {two}");
        if [one.as_str(), two.as_str()].contains(&"text") {
            message.push_str("; text stands in single quotes, numbers in none");
        }
        Fault(message)
    })?;
    Ok((left.cast(&target)?.plain()?, right.cast(&target)?.plain()?))
}

/// The type that two operands are compared in.
fn common(left: &Operand, right: &Operand) -> Option<DataType> {
    let (one, two) = (left.kind(), right.kind());
    if one == two {
        return Some(one.clone());
    }
    if *one == DataType::Null {
        return Some(two.clone());
    }
    if *two == DataType::Null {
        return Some(one.clone());
    }
    // A literal takes the type of the other operand, so that a column need not be converted.
    if right.literal && !left.literal {
        return of_literal(one, two);
    }
    if left.literal && !right.literal {
        return of_literal(two, one);
    }
    of_equals(one, two)
}

/// The type that a column is compared with a literal in.
fn of_literal(column: &DataType, literal: &DataType) -> Option<DataType> {
    match (column, literal) {
        (column, literal) if is_text(column) && is_text(literal) => Some(column.clone()),
        (column, literal) if is_date(column) && is_text(literal) => Some(column.clone()),
        // The literal may be finer than the column.
        (DataType::Timestamp(unit, zone), literal)
            if is_text(literal) || matches!(literal, DataType::Timestamp(..)) =>
        {
            let unit = match unit {
                TimeUnit::Nanosecond => TimeUnit::Nanosecond,
                _ => TimeUnit::Microsecond,
            };
            Some(DataType::Timestamp(unit, zone.clone()))
        }
        (DataType::Float16 | DataType::Float32, literal) if literal.is_numeric() => {
            Some(column.clone())
        }
        _ => of_equals(column, literal),
    }
}

/// The type that two operands are compared in where none of them gives way.
fn of_equals(one: &DataType, two: &DataType) -> Option<DataType> {
    if is_text(one) && is_text(two) {
        return Some(DataType::LargeUtf8);
    }
    if is_date(one) && is_date(two) {
        return Some(DataType::Date64);
    }
    match (one, two) {
        (moment @ DataType::Timestamp(..), day) | (day, moment @ DataType::Timestamp(..))
            if is_date(day) =>
        {
            Some(moment.clone())
        }
        (DataType::Timestamp(_, one), DataType::Timestamp(_, two))
            if one.is_some() == two.is_some() =>
        {
            Some(DataType::Timestamp(TimeUnit::Microsecond, one.clone()))
        }
        (one, two) if one.is_numeric() && two.is_numeric() => Some(number(one, two)),
        _ => None,
    }
}

/// The type that two numbers are compared in.
fn number(one: &DataType, two: &DataType) -> DataType {
    if !one.is_integer() || !two.is_integer() {
        return DataType::Float64;
    }
    match [one, two].contains(&&DataType::UInt64) {
        false => DataType::Int64,
        true if one.is_unsigned_integer() && two.is_unsigned_integer() => DataType::UInt64,
        // Holds all 64-bit numbers, with and without sign.
        true => DataType::Decimal128(20, 0),
    }
}

/// The operands as numbers of one type for `+`, `-`, `*` and `%`; as floats for `/`.
pub(super) fn computable(
    left: &Operand,
    right: &Operand,
    as_floats: bool,
) -> Result<(Operand, Operand), Fault> {
    for operand in [left, right] {
        if !operand.kind().is_numeric() && *operand.kind() != DataType::Null {
            return Err(Fault(format!(
                "{} is no number to compute with",
                type_name(operand.kind())
            )));
        }
    }
    let whole =
        |operand: &Operand| operand.kind().is_integer() || *operand.kind() == DataType::Null;
    let target = match !as_floats && whole(left) && whole(right) {
        true => DataType::Int64,
        false => DataType::Float64,
    };
    Ok((left.cast(&target)?, right.cast(&target)?))
}

/// The same values as another type. A value that does not fit is an error.
pub(super) fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Fault> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, to, &options).map_err(|error| {
        Fault(format!(
            "{} cannot be read as {}: {error}",
            type_name(array.data_type()),
            type_name(to)
        ))
    })
}

/// Floats as SQL orders them: without negative zeros, which Arrow sorts below zero, and with one value above all others
/// that is not a number. What a division gives may have a sign.
pub(super) fn as_ordered(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }),
        ),
        _ => Arc::clone(array),
    }
}
