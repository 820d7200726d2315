//! Archives and tables as other programs write them.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use std::io::{Cursor, Write};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, ListArray, RecordBatch};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Three vectors of dimension 2, in order.
pub const VALUES: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// A table of these columns.
pub fn table(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    let columns = columns
        .iter()
        .map(|(name, column)| (*name, column.clone(), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The bytes of a Parquet file of two rows a group.
pub fn parquet_with(table: &RecordBatch, compression: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(2))
        .build();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties)).unwrap();
    writer.write(table).unwrap();
    writer.close().unwrap();
    bytes
}

/// The same, with the usual compression.
pub fn parquet(table: &RecordBatch) -> Vec<u8> {
    parquet_with(table, Compression::SNAPPY)
}

/// The bytes of an Arrow file.
pub fn arrow(table: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &table.schema()).unwrap();
    writer.write(table).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// The bytes of an Arrow stream.
pub fn stream(table: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &table.schema()).unwrap();
    writer.write(table).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// The vectors of [`VALUES`] as lists.
pub fn rows() -> ArrayRef {
    let rows = VALUES
        .chunks(2)
        .map(|row| Some(row.iter().map(|v| Some(*v)).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
}

/// The bytes of an archive of arrays.
pub fn npz(method: CompressionMethod, arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in arrays {
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
