//! Reading what a command needs, with errors that name the file.

use std::path::Path;

use garlic_ann::{Metric, NeighborIndex, Rows};
use garlic_data::{Dataset, Format, Identifiers, ReadOptions, Reader, Vectors};
use garlic_table::{Ids, RecordBatch};

use crate::columns;
use crate::exit::Fault;
use crate::ids;
use crate::metric;

/// What stands for standard input where a file of vectors is named.
pub(crate) const STDIN: &str = "-";

/// Flags that say what to read of a file of vectors, and how.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct Reading {
    /// Column of a Parquet or Arrow table, array of an .npz archive or set of an HDF5 file with the vectors [default: the
    /// only one that fits; of HDF5 files `train`, for queries `test`]
    #[arg(long = "vectors", value_name = "COLUMN")]
    column: Option<String>,
    /// Format of the vectors, as its extension names it [default: that of the file; for `-` the first bytes tell]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// What stands between the numbers of a line of text; `\t` is a tabulator [default: comma, tabulator, semicolon or
    /// space, the first of these that the first line has]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,
}

/// Reads a character that stands between numbers.
fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() => Ok(*byte),
            _ => Err("must be one character that is no letter and no digit, or \\t".into()),
        },
    }
}

impl Reading {
    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.vectors.clone_from(&self.column);
        options.format = self.format;
        options.delimiter = self.delimiter;
        options
    }

    /// Opens vectors to index or to search among.
    pub(crate) fn open(&self, path: &Path) -> anyhow::Result<Reader> {
        open(path, &self.options())
    }

    /// The data set of a file, to measure an index with.
    pub(crate) fn dataset(&self, path: &Path) -> anyhow::Result<Dataset> {
        Ok(Dataset::open_with(path, &self.options())?)
    }

    /// The vectors of a file of queries; of a data set its queries.
    pub(crate) fn queries(&self, path: &Path) -> anyhow::Result<Vectors> {
        queries(self.open(path)?)
    }

    /// The vectors of a file of queries that comes beside another file, which the flags are about. The column is that of
    /// the other file where this one has it.
    pub(crate) fn queries_beside(&self, path: &Path) -> anyhow::Result<Vectors> {
        let reader = open(path, &ReadOptions::default())?;
        match &self.column {
            Some(column) if reader.names()?.contains(column) => queries(of_column(reader, column)?),
            _ => queries(reader),
        }
    }
}

fn of_column(reader: Reader, column: &str) -> anyhow::Result<Reader> {
    let mut options = reader.options().clone();
    options.vectors = Some(column.to_owned());
    Ok(reader.with(options)?)
}

fn queries(reader: Reader) -> anyhow::Result<Vectors> {
    let is_dataset = reader.format() == Format::Hdf5 && reader.options().vectors.is_none();
    let reader = match is_dataset {
        true => of_column(reader, "test")?,
        false => reader,
    };
    Ok(reader.read()?.vectors)
}

fn open(path: &Path, options: &ReadOptions) -> anyhow::Result<Reader> {
    if path == Path::new(STDIN) {
        let mut stdin = std::io::stdin().lock();
        return Ok(Reader::from_stream(&mut stdin, "standard input", options)?);
    }
    Ok(Reader::open(path, options)?)
}

/// The metric that a data set was made for, if it says so; only headers are read.
pub(crate) fn metric(reader: &Reader) -> anyhow::Result<Option<Metric>> {
    Ok(reader.metric()?.map(metric::of_data))
}

/// Vectors, their identifiers if some were given, and their columns.
pub(crate) struct Points {
    pub(crate) vectors: Vectors,
    pub(crate) ids: Option<Ids>,
    pub(crate) columns: Option<RecordBatch>,
}

/// The vectors of a file, their identifiers if `ids` names a column or a file that has them, and the columns that the
/// flags name. `named` says whether the points of the index have names, if that is known.
pub(crate) fn points(
    reader: Reader,
    ids: Option<&Path>,
    named: Option<bool>,
    source: &columns::Source,
) -> anyhow::Result<Points> {
    let origin = reader.origin().clone();
    let (reader, file) = beside(reader, ids, source)?;
    let read = reader.read()?;
    let rows = read.vectors.rows();
    let ids = match (read.ids, file) {
        (Some(ids), _) => Some(of_column_ids(ids, named)),
        (None, Some(file)) => Some(ids::read_for(file, rows, &origin, named)?),
        (None, None) => None,
    };
    Ok(Points {
        columns: source.read(rows, &read.columns)?,
        vectors: read.vectors,
        ids,
    })
}

/// A reader of the vectors, of the identifiers if `ids` names a column, and of the columns that the flags name. Also
/// returns the file of the identifiers if `ids` names no column.
pub(crate) fn beside<'a>(
    reader: Reader,
    ids: Option<&'a Path>,
    source: &columns::Source,
) -> anyhow::Result<(Reader, Option<&'a Path>)> {
    let (origin, names) = (reader.origin().clone(), reader.names()?);
    let column = ids.and_then(Path::to_str);
    let column = column.filter(|id| names.iter().any(|n| n == id));
    let file = ids.filter(|_| column.is_none());
    if let Some(file) = file
        && !names.is_empty()
        && file != Path::new(STDIN)
        && !file.exists()
    {
        return Err(Fault::input(format!(
            "{}: there is no such file, and {origin} has no such column; its columns are {}",
            file.display(),
            names.join(", ")
        )));
    }
    let mut options = reader.options().clone();
    options.ids = column.map(str::to_owned);
    options.columns = source.of_vectors();
    Ok((reader.with(options)?, file))
}

/// Identifiers of a column. Numbers are names if the points of the index have names.
pub(crate) fn of_column_ids(ids: Identifiers, named: Option<bool>) -> Ids {
    match ids {
        Identifiers::Numbers(numbers) if named != Some(true) => Ids::Numbers(numbers),
        Identifiers::Numbers(numbers) => {
            let names: Vec<String> = numbers.iter().map(u64::to_string).collect();
            Ids::names(names.iter().map(String::as_str))
        }
        Identifiers::Strings(names) => Ids::names(names.iter().map(String::as_str)),
    }
}

/// Values as rows of the library.
pub(crate) fn rows(values: &[f32], dim: usize) -> anyhow::Result<Rows<'_>> {
    Ok(Rows::new(values, dim).map_err(garlic_ann::Error::from)?)
}

/// Refuses vectors of another dimension than the index.
pub(crate) fn check_dimension(
    index: &dyn NeighborIndex,
    vectors: &Vectors,
    path: &Path,
) -> anyhow::Result<()> {
    if vectors.dim() == index.dim() {
        return Ok(());
    }
    Err(Fault::input(format!(
        "{}: the vectors have dimension {}, the index was built for {}; use vectors of the same data set",
        path.display(),
        vectors.dim(),
        index.dim()
    )))
}

/// The whole text of a small file.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|e| Fault::input(format!("cannot read {}: {e}", path.display())))
}

/// Refuses to read standard input twice.
pub(crate) fn check_stdin(paths: &[Option<&Path>]) -> anyhow::Result<()> {
    let read = paths
        .iter()
        .flatten()
        .filter(|path| **path == Path::new(STDIN));
    match read.count() {
        0 | 1 => Ok(()),
        _ => Err(Fault::usage(
            "standard input can be read once; name a file instead of one of the `-`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_one_character() {
        assert_eq!(delimiter(";"), Ok(b';'));
        assert_eq!((delimiter("\\t"), delimiter(" ")), (Ok(b'\t'), Ok(b' ')));
        assert!(
            ["", "ab", "1", "e", "é"]
                .iter()
                .all(|t| delimiter(t).is_err())
        );
    }

    #[test]
    fn standard_input_is_read_once() {
        let (stdin, file) = (Some(Path::new("-")), Some(Path::new("a.npy")));
        assert!(check_stdin(&[stdin, None, file]).is_ok());
        assert!(check_stdin(&[stdin, file, stdin]).is_err());
    }
}
