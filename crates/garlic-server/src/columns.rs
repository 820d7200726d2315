//! Columns as JSON, and back.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::reader::infer_json_schema_from_iterator;
use arrow_schema::{ArrowError, Schema};
use garlic_table::Snapshot;
use serde_json::{Map, Value};

use crate::error::{ApiError, ApiResult};
use crate::types::ColumnLists;

/// Columns that came as lists, as rows of an index: with its types where it has such columns, else with the types that
/// the values have.
pub(crate) fn to_batch(
    columns: &ColumnLists,
    rows: usize,
    snapshot: Option<&Snapshot>,
) -> ApiResult<Option<RecordBatch>> {
    if columns.is_empty() {
        return Ok(None);
    }
    for (name, values) in columns {
        if values.len() != rows {
            return Err(ApiError::invalid(format!(
                "column `{name}` has {} values, there are {rows} points; give a value or null for each",
                values.len()
            )));
        }
    }
    let row = |at: usize| -> Map<String, Value> {
        let of = |(name, values): (&String, &Vec<Value>)| (name.clone(), values[at].clone());
        columns.iter().map(of).collect()
    };
    let records: Vec<Value> = (0..rows).map(|at| Value::Object(row(at))).collect();
    if records.is_empty() {
        return Ok(None);
    }
    let inferred = infer_json_schema_from_iterator(records.iter().map(Ok::<_, ArrowError>));
    let inferred = inferred.map_err(|error| wrong(&error))?;
    let known = snapshot.and_then(|snapshot| snapshot.table());
    let fields = inferred.fields().iter().map(|field| {
        let known = known.and_then(|table| table.schema().field_with_name(field.name()).ok());
        known.cloned().map_or_else(|| Arc::clone(field), Arc::new)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let decoder = arrow_json::ReaderBuilder::new(schema).with_batch_size(rows);
    let mut decoder = decoder.build_decoder().map_err(|error| wrong(&error))?;
    decoder.serialize(&records).map_err(|error| wrong(&error))?;
    decoder.flush().map_err(|error| wrong(&error))
}

fn wrong(error: &ArrowError) -> ApiError {
    ApiError::invalid(format!("the columns cannot be read: {error}"))
}

/// Rows as JSON objects.
pub(crate) fn to_json(batch: &RecordBatch) -> ApiResult<Vec<Value>> {
    if batch.num_columns() == 0 {
        return Ok(vec![Value::Object(Map::new()); batch.num_rows()]);
    }
    let mut text = Vec::new();
    let mut writer = arrow_json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, arrow_json::writer::LineDelimited>(&mut text);
    let written = writer.write(batch).and_then(|()| writer.finish());
    written.map_err(|error| wrong(&error))?;
    let rows = serde_json::Deserializer::from_slice(&text).into_iter();
    rows.collect::<Result<_, _>>().map_err(|error| {
        tracing::error!(%error, "columns are no JSON");
        ApiError::internal()
    })
}

/// The names of all columns but the identifiers.
pub(crate) fn all_names(snapshot: &Snapshot) -> Vec<String> {
    let Some(table) = snapshot.table() else {
        return Vec::new();
    };
    let fields = table.schema().fields().iter();
    fields.map(|field| field.name().clone()).collect()
}

/// Some columns of some points, as a JSON object for each; all columns without names.
pub(crate) fn of_points(
    snapshot: &Snapshot,
    numbers: &[u64],
    names: Option<&[String]>,
) -> ApiResult<Vec<Value>> {
    let all;
    let names = match names {
        Some(names) => names,
        None => {
            all = all_names(snapshot);
            &all
        }
    };
    let numbers: Vec<Option<u64>> = numbers.iter().copied().map(Some).collect();
    to_json(&snapshot.columns(&numbers, names)?)
}
