//! Tables with columns: Parquet and Arrow IPC. One column has the vectors as lists of numbers, one may have identifiers.

mod lists;
mod names;
mod write;

use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::batches::Piece;
use crate::error::{DataError, Origin, Result};
use crate::format::Format;
use crate::input::{Input, to_usize};
use crate::reader::{Columns, ReadOptions};
use crate::vectors::{Element, Shape};

pub use write::write_parquet;
pub(crate) use write::{batch, properties};

/// What an Arrow file begins with; a stream begins with a length.
const FILE_MAGIC: &[u8; 6] = b"ARROW1";
/// Bytes of an Arrow file that are read at a time.
const READ_BYTES: usize = 1 << 18;

/// The columns that are read, by name.
struct Chosen {
    vectors: String,
    ids: Option<String>,
    others: Vec<String>,
}

impl Chosen {
    /// The columns that the options name; the vectors are the only lists of numbers if they name none.
    fn of(schema: &SchemaRef, options: &ReadOptions, origin: &Origin) -> Result<Self> {
        let wrong = |problem: String| DataError::selection(origin.clone(), problem);
        let all = || {
            let told = |f: &arrow_schema::FieldRef| format!("{} ({})", f.name(), f.data_type());
            let all: Vec<String> = schema.fields().iter().map(told).collect();
            all.join(", ")
        };
        let find = |name: &String| {
            let field = schema.field_with_name(name);
            field.map_err(|_| wrong(format!("there is no column `{name}`: there are {}", all())))
        };
        let vectors = match &options.vectors {
            Some(name) => {
                let kind = find(name)?.data_type();
                if !lists::holds_vectors(kind) {
                    return Err(wrong(format!(
                        "the column `{name}` holds {kind}, not lists of numbers: name another one of {}",
                        all()
                    )));
                }
                name.clone()
            }
            None => {
                let fits = |f: &&arrow_schema::FieldRef| lists::holds_vectors(f.data_type());
                let fitting: Vec<&str> = schema
                    .fields()
                    .iter()
                    .filter(fits)
                    .map(|f| f.name().as_str())
                    .collect();
                match fitting[..] {
                    [name] => name.to_owned(),
                    [] => {
                        return Err(wrong(format!(
                            "no column holds lists of numbers: there are {}",
                            all()
                        )));
                    }
                    _ => {
                        return Err(wrong(format!(
                            "several columns hold lists of numbers: name the one of the vectors with --vectors: {}",
                            fitting.join(", ")
                        )));
                    }
                }
            }
        };
        if let Some(name) = &options.ids {
            let kind = find(name)?.data_type();
            if !names::holds_identifiers(kind) {
                return Err(wrong(format!(
                    "the column `{name}` holds {kind}: identifiers are whole numbers or strings"
                )));
            }
        }
        let is_other = |name: &String| *name != vectors && options.ids.as_ref() != Some(name);
        let others = match &options.columns {
            Columns::None => Vec::new(),
            Columns::All => schema.fields().iter().map(|f| f.name().clone()).collect(),
            Columns::Named(names) => {
                names.iter().try_for_each(|name| find(name).map(drop))?;
                names.clone()
            }
        };
        Ok(Self {
            ids: options.ids.clone(),
            others: others.into_iter().filter(is_other).collect(),
            vectors,
        })
    }

    /// Places of these columns in the whole table, in its order.
    fn places(&self, schema: &SchemaRef) -> Vec<usize> {
        let wanted = |name: &String| {
            *name == self.vectors || self.ids.as_ref() == Some(name) || self.others.contains(name)
        };
        let fields = schema.fields().iter().enumerate();
        fields
            .filter(|(_, f)| wanted(f.name()))
            .map(|(i, _)| i)
            .collect()
    }
}

type Tables = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The rows of a table, some at a time.
pub(crate) struct Rows {
    tables: Tables,
    format: Format,
    origin: Origin,
    chosen: Chosen,
    rows: usize,
    /// What is left of the last table.
    left: Option<RecordBatch>,
    /// Rows that came before.
    row: usize,
    /// Rows that a footer announces; none once they were counted.
    announced: Option<usize>,
    dim: Option<usize>,
}

fn unreadable(origin: Origin, format: Format, cause: &dyn std::fmt::Display) -> DataError {
    DataError::Unreadable {
        origin,
        format: format.name(),
        cause: cause.to_string(),
    }
}

/// Runs a reader of arrow-rs, which may fail by an error or, on some damaged files, by a panic.
fn guarded<T, E: std::fmt::Display>(
    origin: &Origin,
    format: Format,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<T> {
    // What a panic leaves behind is not used any more: every reader ends with its first error.
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|cause| unreadable(origin.clone(), format, &cause)),
        Err(_) => Err(unreadable(origin.clone(), format, &"it is damaged")),
    }
}

/// A reader of a Parquet file. It reads page by page, so that a large file does not have to fit into memory.
fn parquet(input: &Input) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = input.reopened()?;
    guarded(&input.origin(), Format::Parquet, || {
        ParquetRecordBatchReaderBuilder::try_new(file)
    })
}

/// The columns of an Arrow file or stream, and a reader of those that are chosen.
fn arrow(
    input: &Input,
    places: impl FnOnce(&SchemaRef) -> Result<Option<Vec<usize>>>,
) -> Result<(SchemaRef, Tables)> {
    let origin = input.origin();
    let mut start = [0; FILE_MAGIC.len()];
    let is_file = input.read_at(0, &mut start, "the magic").is_ok() && start == *FILE_MAGIC;
    let open = |file, places| -> Result<(SchemaRef, Tables), ArrowError> {
        let file = BufReader::with_capacity(READ_BYTES, file);
        Ok(match is_file {
            true => {
                let reader = FileReader::try_new(file, places)?;
                (reader.schema(), Box::new(reader))
            }
            false => {
                let reader = StreamReader::try_new(file, places)?;
                (reader.schema(), Box::new(reader))
            }
        })
    };
    let guarded_open = |places| {
        let file = input.reopened()?;
        guarded(&origin, Format::Arrow, || open(file, places))
    };
    let (schema, tables) = guarded_open(None)?;
    match places(&schema)? {
        None => Ok((schema, tables)),
        Some(places) => Ok((schema, guarded_open(Some(places))?.1)),
    }
}

/// Names of the columns.
pub(crate) fn names(input: &Input, format: Format) -> Result<Vec<String>> {
    let schema = match format {
        Format::Parquet => parquet(input)?.schema().clone(),
        _ => arrow(input, |_| Ok(None))?.0,
    };
    Ok(schema.fields().iter().map(|f| f.name().clone()).collect())
}

/// Rows of a Parquet file, as its footer says.
pub(crate) fn announced_rows(input: &Input) -> Result<usize> {
    let rows = parquet(input)?.metadata().file_metadata().num_rows();
    let rows = u64::try_from(rows).unwrap_or(0);
    to_usize(rows, "the number of rows", &input.origin())
}

/// Rows of a Parquet file as its footer says, and the dimension of the first.
pub(crate) fn shape(input: &Input, options: &ReadOptions) -> Result<Shape> {
    let builder = parquet(input)?;
    let chosen = Chosen::of(builder.schema(), options, &input.origin())?;
    let kind = builder.schema().field_with_name(&chosen.vectors);
    let dim = match kind.map(|field| field.data_type()) {
        Ok(DataType::FixedSizeList(_, dim)) if *dim > 0 => *dim as usize,
        _ => match Rows::open(input, Format::Parquet, options, 1)?.next() {
            Some(piece) => piece?.dim,
            None => 0,
        },
    };
    let (rows, origin) = (announced_rows(input)?, input.origin());
    match (rows, dim) {
        (0, _) => Err(DataError::ZeroRows { origin }),
        (_, 0) => Err(DataError::ZeroDimension { origin }),
        _ => Ok(Shape {
            rows,
            dim,
            element: Element::F32,
        }),
    }
}

impl Rows {
    pub(crate) fn open(
        input: &Input,
        format: Format,
        options: &ReadOptions,
        rows: usize,
    ) -> Result<Self> {
        let origin = input.origin();
        let (chosen, tables): (Chosen, Tables) = match format {
            Format::Parquet => {
                let builder = parquet(input)?;
                let chosen = Chosen::of(builder.schema(), options, &origin)?;
                let places = chosen.places(builder.schema());
                let mask = ProjectionMask::roots(builder.parquet_schema(), places);
                let builder = builder.with_projection(mask).with_batch_size(rows);
                let reader = guarded(&origin, format, || builder.build())?;
                (chosen, Box::new(reader))
            }
            _ => {
                let mut chosen = None;
                let (_, tables) = arrow(input, |schema| {
                    let chosen = chosen.insert(Chosen::of(schema, options, &origin)?);
                    Ok(Some(chosen.places(schema)))
                })?;
                let Some(chosen) = chosen else {
                    return Err(DataError::ZeroRows { origin });
                };
                (chosen, tables)
            }
        };
        Ok(Self {
            tables,
            format,
            origin,
            chosen,
            rows,
            left: None,
            row: 0,
            announced: match format {
                Format::Parquet => Some(announced_rows(input)?),
                _ => None,
            },
            dim: None,
        })
    }

    /// At the end: whether the footer announced as many rows as came.
    fn miscounted(&mut self) -> Option<DataError> {
        let announced = self.announced.take()?;
        let told = format!(
            "its footer announces {announced} rows, there are {}",
            self.row
        );
        (announced != self.row).then(|| unreadable(self.origin.clone(), self.format, &told))
    }

    fn convert(&mut self, table: &RecordBatch) -> Result<Piece> {
        let missing = |name: &str| {
            let problem = format!("the column `{name}` is missing: write the file again");
            DataError::selection(self.origin.clone(), problem)
        };
        let column = |name: &str| table.column_by_name(name).ok_or_else(|| missing(name));
        let at = lists::Place {
            origin: &self.origin,
            first: self.row,
        };
        let mut values = Vec::new();
        let vectors = column(&self.chosen.vectors)?;
        let dim = lists::append(vectors, self.dim, &at, &mut values)?;
        self.dim = dim.or(self.dim);
        let ids = match &self.chosen.ids {
            Some(name) => Some(names::identifiers(column(name)?, &at)?),
            None => None,
        };
        let schema = table.schema();
        let place = |name: &String| schema.index_of(name).map_err(|_| missing(name));
        let places: Result<Vec<usize>> = self.chosen.others.iter().map(place).collect();
        let columns = table
            .project(&places?)
            .map_err(|cause| unreadable(self.origin.clone(), self.format, &cause))?;
        self.row += table.num_rows();
        Ok(Piece {
            values,
            dim: dim.unwrap_or(0),
            ids,
            columns,
        })
    }
}

impl Iterator for Rows {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        let table = match self.left.take() {
            Some(table) => table,
            None => {
                let tables = &mut self.tables;
                match guarded(&self.origin, self.format, || tables.next().transpose()) {
                    Ok(Some(table)) => table,
                    Ok(None) => return self.miscounted().map(Err),
                    Err(error) => return Some(Err(error)),
                }
            }
        };
        let now = table.num_rows().min(self.rows);
        if now < table.num_rows() {
            self.left = Some(table.slice(now, table.num_rows() - now));
        }
        Some(self.convert(&table.slice(0, now)))
    }
}
