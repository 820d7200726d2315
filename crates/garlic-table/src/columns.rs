//! Columns as they are stored: checked against those that a table has.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use garlic_core::{Error, Result};

use crate::expr::{self, type_name};

/// The name that filters know the identifiers by.
pub(crate) const ID: &str = "id";

fn wrong(message: String) -> Error {
    Error::Columns { message }
}

/// The columns of the first rows: every type as it is stored, every column with room for nulls.
pub(crate) fn first(columns: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (field, array) in columns.schema().fields().iter().zip(columns.columns()) {
        let name = field.name();
        if name == ID {
            return Err(wrong(format!(
                "a column must not be called `{ID}`, which is the identifier; give the identifiers by themselves, or \
                 rename the column"
            )));
        }
        if fields.iter().any(|known: &Field| known.name() == name) {
            return Err(wrong(format!("there are two columns `{name}`; rename one")));
        }
        let array = stored(array)?;
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    batch(Arc::new(Schema::new(fields)), arrays, columns.num_rows())
}

/// Dictionaries, runs and views as the values that they stand for.
fn stored(array: &ArrayRef) -> Result<ArrayRef> {
    let plain = match array.data_type() {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        other => plain_type(other),
    };
    cast(array, &plain)
}

fn plain_type(of: &DataType) -> DataType {
    match of {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, to, &options).map_err(|error| wrong(error.to_string()))
}

/// `rows` rows as a table with this schema stores them. Columns that are not given are null.
pub(crate) fn conform(
    columns: Option<&RecordBatch>,
    rows: usize,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    if let Some(columns) = columns {
        for field in columns.schema().fields() {
            if schema.column_with_name(field.name()).is_none() {
                return Err(wrong(format!(
                    "there is no column `{}`; {}",
                    field.name(),
                    expr::columns(schema)
                )));
            }
        }
    }
    let given = |field: &Field| match columns.and_then(|c| c.column_by_name(field.name())) {
        Some(array) => typed(array, field, schema),
        None => Ok(new_null_array(field.data_type(), rows)),
    };
    let arrays: Vec<ArrayRef> = (schema.fields().iter())
        .map(|field| given(field))
        .collect::<Result<_>>()?;
    batch(Arc::clone(schema), arrays, rows)
}

/// An array as the type of a column, if no value changes by that.
fn typed(array: &ArrayRef, field: &Field, schema: &SchemaRef) -> Result<ArrayRef> {
    let array = stored(array)?;
    let (from, to) = (array.data_type(), field.data_type());
    let refused = || {
        wrong(format!(
            "column `{}` is {}, the rows that are given have {}; {}",
            field.name(),
            type_name(to),
            type_name(from),
            expr::columns(schema)
        ))
    };
    if !is_kin(from, to) || !can_cast_types(from, to) {
        return Err(refused());
    }
    cast(&array, to).map_err(|_| refused())
}

/// Whether values of one type are also values of the other, as long as they fit.
fn is_kin(from: &DataType, to: &DataType) -> bool {
    let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8);
    let bytes = |t: &DataType| matches!(t, DataType::Binary | DataType::LargeBinary);
    let float = |t: &DataType| t.is_floating();
    let date = |t: &DataType| matches!(t, DataType::Date32 | DataType::Date64);
    from == to
        || *from == DataType::Null
        || from.is_integer() && (to.is_integer() || float(to))
        || float(from) && float(to)
        || text(from) && text(to)
        || bytes(from) && bytes(to)
        || date(from) && date(to)
        || matches!((from, to), (DataType::Timestamp(_, a), DataType::Timestamp(_, b)) if a == b)
}

/// A batch, also one without columns.
pub(crate) fn batch(schema: SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .map_err(|error| wrong(error.to_string()))
}
