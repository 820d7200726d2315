//! Writes vectors as a table of Parquet, with identifiers and other columns.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::atomic::write_atomically;
use crate::error::{DataError, Origin, Result};
use crate::identifiers::Identifiers;
use crate::vectors::{check_finite, count_rows};

/// The names of the first columns of a table.
const ID: &str = "id";
const VECTOR: &str = "vector";
/// Bytes of vectors that are written, and later read, at once.
const GROUP_BYTES: usize = 64 << 20;

/// Writes vectors, `dim` numbers each, as a column `vector` of lists, behind a column `id` if there are identifiers and
/// before the other columns. [`crate::Reader`] reads it, and so does every library that knows Parquet.
///
/// # Errors
/// Fails for numbers that are not finite, for identifiers and columns of another length, and for other columns with one
/// of these names.
pub fn write_parquet(
    path: impl AsRef<Path>,
    vectors: &[f32],
    dim: usize,
    ids: Option<&Identifiers>,
    columns: Option<&RecordBatch>,
) -> Result<()> {
    let path = path.as_ref();
    let origin = Origin::file(path);
    let rows = count_rows(vectors.len(), dim, &origin)?;
    check_finite(vectors, dim, &origin)?;
    let counted = |what, found| match found == rows {
        true => Ok(()),
        false => Err(DataError::CountMismatch {
            origin: origin.clone(),
            what,
            expected: rows,
            found,
            fix: "there must be one for each vector",
        }),
    };
    counted("identifiers", ids.map_or(rows, Identifiers::len))?;
    counted(
        "rows of columns",
        columns.map_or(rows, RecordBatch::num_rows),
    )?;
    for name in [ID, VECTOR] {
        if columns.is_some_and(|columns| columns.schema().field_with_name(name).is_ok()) {
            let problem =
                format!("`{name}` is a column of its own: give the other column another name");
            return Err(DataError::selection(origin, problem));
        }
    }
    let group = group_rows(dim);
    let properties = properties(dim);
    write_atomically(path, |out| {
        let some = |rows| batch(vectors, dim, ids, columns, rows).map_err(io::Error::other);
        let writer = ArrowWriter::try_new(out, some(0..0)?.schema(), Some(properties));
        let mut writer = writer.map_err(io::Error::other)?;
        for start in (0..rows).step_by(group) {
            let part = some(start..rows.min(start + group))?;
            writer.write(&part).map_err(io::Error::other)?;
        }
        writer.close().map(|_| ()).map_err(io::Error::other)
    })
}

/// Rows of a group of rows.
fn group_rows(dim: usize) -> usize {
    (GROUP_BYTES / (dim.max(1) * size_of::<f32>())).max(1)
}

/// How a file of vectors of `dim` numbers is written.
pub(crate) fn properties(dim: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(group_rows(dim)))
        .build()
}

/// Some rows of the table.
pub(crate) fn batch(
    vectors: &[f32],
    dim: usize,
    ids: Option<&Identifiers>,
    columns: Option<&RecordBatch>,
    rows: std::ops::Range<usize>,
) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
    match ids.map(|ids| ids.slice(rows.clone())) {
        None => {}
        Some(Identifiers::Numbers(numbers)) => {
            fields.push(Arc::new(Field::new(ID, DataType::UInt64, false)));
            arrays.push(Arc::new(UInt64Array::from(numbers)));
        }
        Some(Identifiers::Strings(names)) => {
            fields.push(Arc::new(Field::new(ID, DataType::Utf8, false)));
            arrays.push(Arc::new(StringArray::from(names)));
        }
    }
    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let values = Float32Array::from(vectors[rows.start * dim..rows.end * dim].to_vec());
    let width = i32::try_from(dim)
        .map_err(|e| arrow_schema::ArrowError::InvalidArgumentError(e.to_string()))?;
    let lists = FixedSizeListArray::try_new(item, width, Arc::new(values), None)?;
    fields.push(Arc::new(Field::new(
        VECTOR,
        lists.data_type().clone(),
        false,
    )));
    arrays.push(Arc::new(lists));
    if let Some(columns) = columns {
        let part = columns.slice(rows.start, rows.len());
        fields.extend(part.schema().fields().iter().cloned());
        arrays.extend(part.columns().iter().cloned());
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
