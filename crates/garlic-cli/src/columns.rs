//! Columns for the vectors of a build or of `add`, from files of tables.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_csv::reader::Format as Csv;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use garlic_data::Columns;
use serde_json::Value;

use crate::exit::Fault;

/// Where the columns of vectors come from.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// Columns of the vectors, a row for each: .csv with a header, .jsonl, or .arrow (Arrow IPC) [default: columns of the
    /// file of the vectors, if --columns names them]
    #[arg(long, value_name = "FILE")]
    pub(crate) columns_from: Option<PathBuf>,
    /// Names of the columns to keep, separated by commas [default: all of --columns-from]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
}

impl Source {
    /// The columns to read together with the vectors.
    pub(crate) fn of_vectors(&self) -> Columns {
        match &self.columns_from {
            None if !self.columns.is_empty() => Columns::Named(self.columns.clone()),
            _ => Columns::None,
        }
    }

    /// The columns for so many vectors, one row for each. `beside` are those that were read together with the vectors.
    pub(crate) fn read(
        &self,
        vectors: usize,
        beside: &[RecordBatch],
    ) -> anyhow::Result<Option<RecordBatch>> {
        let Some(path) = &self.columns_from else {
            if self.columns.is_empty() {
                return Ok(None);
            }
            let Some(first) = beside.first() else {
                return Err(Fault::usage(
                    "the file of the vectors has no columns; name a file that has them with --columns-from",
                ));
            };
            return Ok(Some(concat_batches(&first.schema(), beside)?));
        };
        let all = read(path)?;
        if all.num_rows() != vectors {
            return Err(Fault::input(format!(
                "{}: holds {} rows for {} vectors; give a row for each vector",
                path.display(),
                all.num_rows(),
                vectors
            )));
        }
        select(&all, &self.columns, path).map(Some)
    }
}

/// Some columns of a table, in the order in which they are named; all without names.
pub(crate) fn select(
    all: &RecordBatch,
    names: &[String],
    path: &Path,
) -> anyhow::Result<RecordBatch> {
    if names.is_empty() {
        return Ok(all.clone());
    }
    let schema = all.schema();
    let at = |name: &String| {
        schema.index_of(name.trim()).map_err(|_| {
            let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Fault::input(format!(
                "{}: has no column `{name}`; its columns are: {}",
                path.display(),
                known.join(", ")
            ))
        })
    };
    let places: Vec<usize> = names.iter().map(at).collect::<anyhow::Result<_>>()?;
    Ok(all.project(&places)?)
}

/// All rows of a file of a table.
fn read(path: &Path) -> anyhow::Result<RecordBatch> {
    let wrong = |error: ArrowError| Fault::input(format!("{}: {error}", path.display()));
    let open = || File::open(path).map_err(|e| Fault::input(format!("{}: {e}", path.display())));
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    let (schema, batches): (SchemaRef, Result<Vec<RecordBatch>, ArrowError>) = match extension {
        "csv" => {
            let mut file = open()?;
            let format = Csv::default().with_header(true);
            let (schema, _) = format.infer_schema(&mut file, None).map_err(wrong)?;
            file.rewind()?;
            let schema = Arc::new(schema);
            let builder = arrow_csv::ReaderBuilder::new(Arc::clone(&schema)).with_format(format);
            (schema, builder.build(file).map_err(wrong)?.collect())
        }
        "json" | "jsonl" | "ndjson" => {
            let mut file = BufReader::new(open()?);
            let inferred = arrow_json::reader::infer_json_schema_from_seekable(&mut file, None);
            let schema = Arc::new(inferred.map_err(wrong)?.0);
            let builder = arrow_json::ReaderBuilder::new(Arc::clone(&schema));
            (schema, builder.build(file).map_err(wrong)?.collect())
        }
        "arrow" | "feather" | "ipc" => {
            let reader = arrow_ipc::reader::FileReader::try_new(open()?, None).map_err(wrong)?;
            (reader.schema(), reader.collect())
        }
        _ => {
            return Err(Fault::usage(format!(
                "{}: the extension names no format for columns; use .csv, .jsonl or .arrow",
                path.display()
            )));
        }
    };
    concat_batches(&schema, &batches.map_err(wrong)?).map_err(wrong)
}

/// Rows as objects of JSON, by column.
pub(crate) fn to_json(rows: &RecordBatch) -> anyhow::Result<Vec<HashMap<String, Value>>> {
    let mut text = Vec::new();
    let mut writer = arrow_json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, arrow_json::writer::LineDelimited>(&mut text);
    writer.write(rows)?;
    writer.finish()?;
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| Ok(serde_json::from_slice(line)?))
        .collect()
}
