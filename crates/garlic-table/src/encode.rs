//! Rows as bytes: an Arrow IPC stream for each block, with a checksum before it.
//!
//! The first column has the number of each row, the second one the identifiers: text, or numbers. A point with a name has
//! the number of its first row in the index. The other columns are those of the table. `docs/reference/file-format.md`
//! describes the metadata.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch, UInt64Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use garlic_core::{Bytes, Error, Result};

use crate::chunk::Chunk;
use crate::columns;
use crate::table::Table;

/// First bytes of a block, and room for the checksum of the rest.
const MAGIC: [u8; 8] = *b"GTAB\0\0\0\0";
/// Rows of one batch of a stream.
pub(crate) const BATCH_ROWS: usize = 1 << 16;
/// Metadata: the version of this layout.
const VERSION: (&str, &str) = ("garlic.table", "1");
/// Metadata: how many rows were given so far.
const ROWS: &str = "garlic.rows";
/// Columns before those of the table.
const OWN: usize = 2;

fn damaged(message: impl std::fmt::Display) -> Error {
    Error::Columns {
        message: format!(
            "the table of the index is damaged: {message}; verify the file, and restore it from a copy"
        ),
    }
}

/// Rows as a block. `rows` is the number of rows that were given so far.
pub(crate) fn block(named: bool, schema: &SchemaRef, chunks: &[Chunk], rows: u64) -> Result<Bytes> {
    let failed = |error: arrow_schema::ArrowError| Error::Columns {
        message: format!("the columns cannot be stored: {error}"),
    };
    let identifier = match named {
        true => Field::new("garlic.name", DataType::LargeUtf8, false),
        false => Field::new("garlic.id", DataType::UInt64, false),
    };
    let own = [
        Field::new("garlic.row", DataType::UInt64, false),
        identifier,
    ];
    let mut fields: Vec<Arc<Field>> = own.into_iter().map(Arc::new).collect();
    fields.extend(schema.fields().iter().cloned());
    let metadata = HashMap::from([
        (VERSION.0.to_owned(), VERSION.1.to_owned()),
        (ROWS.to_owned(), rows.to_string()),
    ]);
    let stored = Arc::new(Schema::new(fields).with_metadata(metadata));
    let mut writer = StreamWriter::try_new(MAGIC.to_vec(), &stored).map_err(failed)?;
    for chunk in chunks {
        let positions = 0..chunk.len() as u32;
        let rows = positions.clone().map(|at| chunk.row(at));
        let rows: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows));
        let identifiers: ArrayRef = match named {
            true => Arc::new(LargeStringArray::from_iter_values(
                positions.filter_map(|at| chunk.name(at)),
            )),
            false => Arc::new(UInt64Array::from_iter_values(
                positions.map(|at| chunk.id(at)),
            )),
        };
        let mut arrays = vec![rows, identifiers];
        arrays.extend(chunk.columns().columns().iter().cloned());
        let batch = columns::batch(Arc::clone(&stored), arrays, chunk.len())?;
        writer.write(&batch).map_err(failed)?;
    }
    let mut bytes = writer.into_inner().map_err(failed)?;
    let checksum = crc32fast::hash(&bytes[MAGIC.len()..]);
    bytes[4..MAGIC.len()].copy_from_slice(&checksum.to_le_bytes());
    Ok(Bytes::from(bytes))
}

/// The table that some blocks hold, the oldest first.
pub(crate) fn decode(blocks: &[Bytes]) -> Result<Table> {
    let mut table: Option<Table> = None;
    for block in blocks {
        let stream = checked(block)?;
        let reader = StreamReader::try_new(Cursor::new(stream), None).map_err(damaged)?;
        let stored = reader.schema();
        let (named, rows) = head(&stored)?;
        let own = Arc::new(Schema::new(stored.fields()[OWN..].to_vec()));
        let mut decoded = match table {
            Some(table) if table.is_named() == named && *table.schema() == own => table,
            None => Table::empty(named, own),
            // The first rows of an index that was empty have set the columns.
            Some(table) if table.rows_given() == 0 => Table::empty(named, own),
            Some(_) => return Err(damaged("its blocks have different columns")),
        };
        for batch in reader {
            let batch = batch.map_err(damaged)?;
            decoded = decoded.take_rows(chunk(&batch, named, decoded.schema())?, rows);
        }
        table = Some(decoded);
    }
    table.ok_or_else(|| damaged("it has no block"))
}

/// The stream of a block, in memory of its own: a mapped file may change after its checksum was found right.
fn checked(block: &Bytes) -> Result<Vec<u8>> {
    let mut block = block.to_vec();
    let (magic, checksum, stream) = match block.split_first_chunk::<8>() {
        Some(([a, b, c, d, checksum @ ..], stream)) => ([*a, *b, *c, *d], checksum, stream),
        None => return Err(damaged("a block is too short")),
    };
    if magic != MAGIC[..4] || crc32fast::hash(stream) != u32::from_le_bytes(*checksum) {
        return Err(damaged("a checksum is wrong"));
    }
    Ok(block.split_off(MAGIC.len()))
}

/// Whether points are named, and how many rows were given.
fn head(schema: &Schema) -> Result<(bool, u64)> {
    let found = |key: &str| schema.metadata().get(key).map(String::as_str);
    if found(VERSION.0) != Some(VERSION.1) {
        return Err(damaged(format!(
            "it is of version {:?}, this program reads {}",
            found(VERSION.0),
            VERSION.1
        )));
    }
    let rows = found(ROWS).and_then(|rows| rows.parse().ok());
    let rows = rows.ok_or_else(|| damaged("the number of rows is missing"))?;
    let kinds: Vec<&DataType> = schema
        .fields()
        .iter()
        .map(|field| field.data_type())
        .collect();
    let is_nullable = |at: usize| schema.field(at).is_nullable();
    match kinds[..] {
        [DataType::UInt64, identifier, ..] if !is_nullable(0) && !is_nullable(1) => {
            match identifier {
                DataType::LargeUtf8 => Ok((true, rows)),
                DataType::UInt64 => Ok((false, rows)),
                _ => Err(damaged("its identifiers are neither text nor numbers")),
            }
        }
        _ => Err(damaged("the columns of rows and identifiers are missing")),
    }
}

fn chunk(batch: &RecordBatch, named: bool, schema: &SchemaRef) -> Result<Chunk> {
    let [rows, identifiers] = [0, 1].map(|at| batch.column(at));
    if rows.null_count() > 0 || identifiers.null_count() > 0 {
        return Err(damaged("an identifier is missing"));
    }
    let rows = rows.as_primitive::<UInt64Type>().values().to_vec();
    let columns = batch.columns()[OWN..].to_vec();
    let columns = columns::batch(Arc::clone(schema), columns, batch.num_rows())?;
    Ok(match named {
        true => {
            let names = identifiers.as_string::<i64>().clone();
            Chunk::new(rows.clone(), rows, Some(names), columns)
        }
        false => {
            let ids = identifiers.as_primitive::<UInt64Type>().values().to_vec();
            Chunk::new(rows, ids, None, columns)
        }
    })
}
