//! Lists of numbers as rows of floats.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::error::{DataError, Origin, Result};
use crate::reader::check_dimension;

/// Where some rows are: the file, and the number of the first.
pub(super) struct Place<'a> {
    pub(super) origin: &'a Origin,
    pub(super) first: usize,
}

impl Place<'_> {
    /// The error of row `row` of these.
    pub(super) fn bad(&self, row: usize, problem: impl Into<String>) -> DataError {
        DataError::BadRow {
            origin: self.origin.clone(),
            place: format!("row {}", self.first + row),
            problem: problem.into(),
        }
    }
}

/// Whether a column of this type may hold vectors.
pub(super) fn holds_vectors(kind: &DataType) -> bool {
    match kind {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => {
            item.data_type().is_integer() || item.data_type().is_floating()
        }
        _ => false,
    }
}

/// Appends the rows of a column of lists to `values`; they have the dimension `expected`, if any came before. Returns the
/// dimension, if there are rows.
pub(super) fn append(
    column: &ArrayRef,
    expected: Option<usize>,
    at: &Place<'_>,
    values: &mut Vec<f32>,
) -> Result<Option<usize>> {
    if column.is_empty() {
        return Ok(None);
    }
    if let Some(row) = first_null(column) {
        return Err(at.bad(row, "there is no vector (null): leave out rows without one"));
    }
    let (items, start, dim) = match column.data_type() {
        DataType::FixedSizeList(..) => {
            let lists = column.as_fixed_size_list();
            let dim = lists.value_length() as usize;
            if let Some(expected) = expected {
                check_dimension(expected, dim, at.first, at.origin)?;
            }
            (lists.values(), lists.value_offset_at(0), dim)
        }
        DataType::LargeList(_) => {
            let lists = column.as_list::<i64>();
            let ends = lists.value_offsets().iter().map(|end| *end as usize);
            (
                lists.values(),
                lists.value_offsets()[0] as usize,
                equal(ends, expected, at)?,
            )
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let ends = lists.value_offsets().iter().map(|end| *end as usize);
            (
                lists.values(),
                lists.value_offsets()[0] as usize,
                equal(ends, expected, at)?,
            )
        }
        other => {
            let problem = format!("the vectors are {other} here, not lists of numbers");
            return Err(at.bad(0, problem));
        }
    };
    if dim == 0 {
        return Err(at.bad(0, "the vector is empty: rows need at least one coordinate"));
    }
    let items = items.slice(start, column.len() * dim);
    if let Some(item) = first_null(&items) {
        let problem = format!(
            "coordinate {} is missing (null): fill it in, or leave out the row",
            item % dim
        );
        return Err(at.bad(item / dim, problem));
    }
    numbers(&items, at, values)?;
    Ok(Some(dim))
}

pub(super) fn first_null(array: &dyn Array) -> Option<usize> {
    match array.null_count() {
        0 => None,
        _ => (0..array.len()).find(|i| array.is_null(*i)),
    }
}

/// The length that all lists have, which begin and end at these places.
fn equal(
    ends: impl Iterator<Item = usize> + Clone,
    expected: Option<usize>,
    at: &Place<'_>,
) -> Result<usize> {
    let lengths = ends.clone().zip(ends.skip(1)).map(|(a, b)| b - a);
    let expected = expected.or_else(|| lengths.clone().next()).unwrap_or(0);
    for (row, found) in lengths.enumerate() {
        check_dimension(expected, found, at.first + row, at.origin)?;
    }
    Ok(expected)
}

/// Appends numbers of any type as floats, the nearest ones where they are wider.
fn numbers(items: &ArrayRef, at: &Place<'_>, values: &mut Vec<f32>) -> Result<()> {
    fn each<T: ArrowPrimitiveType>(
        items: &ArrayRef,
        values: &mut Vec<f32>,
        convert: impl Fn(T::Native) -> f32,
    ) {
        let items = items.as_primitive::<T>().values();
        values.extend(items.iter().map(|v| convert(*v)));
    }
    match items.data_type() {
        DataType::Float32 => values.extend_from_slice(items.as_primitive::<Float32Type>().values()),
        DataType::Float16 => each::<Float16Type>(items, values, |v| v.to_f32()),
        // Values beyond float32 become infinity, which is refused by name.
        DataType::Float64 => each::<Float64Type>(items, values, |v| v as f32),
        DataType::Int8 => each::<Int8Type>(items, values, f32::from),
        DataType::Int16 => each::<Int16Type>(items, values, f32::from),
        DataType::Int32 => each::<Int32Type>(items, values, |v| v as f32),
        DataType::Int64 => each::<Int64Type>(items, values, |v| v as f32),
        DataType::UInt8 => each::<UInt8Type>(items, values, f32::from),
        DataType::UInt16 => each::<UInt16Type>(items, values, f32::from),
        DataType::UInt32 => each::<UInt32Type>(items, values, |v| v as f32),
        DataType::UInt64 => each::<UInt64Type>(items, values, |v| v as f32),
        other => return Err(at.bad(0, format!("the coordinates are {other}, not numbers"))),
    }
    Ok(())
}
