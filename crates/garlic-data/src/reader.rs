//! One door to every kind of vector file: a file, a folder of files or a stream, as a whole or in batches.

use std::io::Read;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use crate::batches::{BATCH_ROWS, Batches, Cut, Part};
use crate::dataset::{self, Metric};
use crate::error::{DataError, Origin, Result};
use crate::flat::{Flat, Layout};
use crate::format::{self, Format};
use crate::hdf5::Hdf5;
use crate::identifiers::Identifiers;
use crate::input::Input;
use crate::vectors::{Element, Shape, Vectors};
use crate::{bin, npy, npz, table, text, vecs};

/// Which columns of a table come with the vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Columns {
    /// No others.
    #[default]
    None,
    /// All others.
    All,
    /// These.
    Named(Vec<String>),
}

/// What to read of a file, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The format. Otherwise the extension names it, and the first bytes of a stream.
    pub format: Option<Format>,
    /// The column of a table, the array of an archive or the set of an HDF5 file that has the vectors. Otherwise the only
    /// one that fits, and the set `train`.
    pub vectors: Option<String>,
    /// The column or array that has the identifiers. Otherwise none are read.
    pub ids: Option<String>,
    /// Which other columns of a table to read.
    pub columns: Columns,
    /// What stands between the numbers of a line of text. Otherwise the first line tells.
    pub delimiter: Option<u8>,
}

/// Everything that was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Table {
    /// The vectors.
    pub vectors: Vectors,
    /// An identifier for each vector, if a column was named for them.
    pub ids: Option<Identifiers>,
    /// The other columns that were asked for, in pieces: a row for each vector.
    pub columns: Vec<RecordBatch>,
}

/// A file, a folder of files or a stream that is about to be read.
///
/// The files of a folder are read in the order of their names. They are of one format; files of other kinds, and those
/// whose names begin with `.` or `_`, are left out.
#[derive(Debug)]
pub struct Reader {
    inputs: Vec<Input>,
    format: Format,
    options: ReadOptions,
    origin: Origin,
}

impl Reader {
    /// Opens a file or a folder.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let (format, files) = folder(path, options.format)?;
            let inputs: Result<Vec<Input>> = files.iter().map(|file| Input::open(file)).collect();
            return Self::new(inputs?, format, options, Origin::file(path));
        }
        let format = match options.format {
            Some(format) => format,
            None => Format::from_path(path)?,
        };
        let inputs = vec![Input::open(path)?];
        Self::new(inputs, format, options, Origin::file(path))
    }

    /// Takes everything that a stream gives; `name` stands for it in messages. It is kept in a temporary file as long as
    /// it is needed.
    pub fn from_stream(stream: &mut dyn Read, name: &str, options: &ReadOptions) -> Result<Self> {
        let origin = Origin::file(name);
        let input = Input::spool(stream, origin.clone())?;
        let format = match options.format {
            Some(format) => format,
            None => format::detect(&input)?,
        };
        Self::new(vec![input], format, options, origin)
    }

    fn new(
        inputs: Vec<Input>,
        format: Format,
        options: &ReadOptions,
        origin: Origin,
    ) -> Result<Self> {
        if !format.holds_vectors() {
            return Err(format::no_vectors(origin, format));
        }
        let reader = Self {
            inputs,
            format,
            options: ReadOptions::default(),
            origin,
        };
        reader.with(options.clone())
    }

    /// Reads by other options, of which the format is not one.
    pub fn with(mut self, options: ReadOptions) -> Result<Self> {
        let format = self.format;
        let names = [
            (&options.vectors, format == Format::Hdf5),
            (&options.ids, false),
        ];
        for (name, is_allowed) in names {
            if let Some(name) = name
                && !format.has_names()
                && !is_allowed
            {
                let problem = format!(
                    "a .{format} file has no column `{name}`: leave out its name, or read another file"
                );
                return Err(DataError::selection(self.origin, problem));
            }
        }
        self.options = options;
        Ok(self)
    }

    /// What is read.
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// The distance that an HDF5 data set was made for, if it says so.
    pub fn metric(&self) -> Result<Option<Metric>> {
        match (self.format, self.inputs.first()) {
            (Format::Hdf5, Some(input)) => format::labelled(input, self.format, |input| {
                dataset::metric(&Hdf5::open(input)?, &input.origin())
            }),
            _ => Ok(None),
        }
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The file, the folder, or the name of the stream.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What is read, in words that change when it does: the options, and the name, length and time of change of each file.
    pub fn describe(&self) -> Result<String> {
        let mut text = format!("{} {:?}", self.format, self.options);
        for input in &self.inputs {
            let metadata = input.file.metadata();
            let metadata = metadata.map_err(|cause| DataError::io("read", &input.path, cause))?;
            let changed = metadata.modified().ok().and_then(|time| {
                let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
                Some(since.as_nanos())
            });
            text.push_str(&format!(
                "\n{} {} {}",
                input.origin(),
                input.len,
                changed.unwrap_or(0)
            ));
        }
        Ok(text)
    }

    /// Names of the columns of a table or the arrays of an archive, of the first file of a folder. Other formats have none.
    pub fn names(&self) -> Result<Vec<String>> {
        let Some(input) = self.inputs.first() else {
            return Ok(Vec::new());
        };
        format::labelled(input, self.format, |input| match self.format {
            Format::Npz => npz::names(input),
            Format::Csv | Format::Tsv => text::names(input, self.format, &self.options),
            Format::Parquet | Format::Arrow => table::names(input, self.format),
            _ => Ok(Vec::new()),
        })
    }

    /// Number of vectors and their dimension. Only headers are read, where the format has one that tells.
    pub fn shape(&self) -> Result<Shape> {
        let mut whole: Option<Shape> = None;
        for input in &self.inputs {
            let shape = match self.format.has_header() {
                true => format::labelled(input, self.format, |input| self.header(input))?,
                false => self.counted(input)?,
            };
            match &mut whole {
                None => whole = Some(shape),
                Some(whole) => {
                    check_dimension(whole.dim, shape.dim, 0, &input.origin())?;
                    whole.rows += shape.rows;
                    whole.element = Element::F32;
                }
            }
        }
        let origin = self.origin.clone();
        whole.ok_or(DataError::ZeroRows { origin })
    }

    fn header(&self, input: &Input) -> Result<Shape> {
        match self.format {
            Format::Npy => npy::shape(input),
            Format::Npz => npz::shape(input, &self.options),
            Format::Fbin => bin::shape(input, Element::F32),
            Format::U8bin => bin::shape(input, Element::U8),
            Format::Fvecs => vecs::shape(input, Element::F32),
            Format::Bvecs => vecs::shape(input, Element::U8),
            Format::Hdf5 => Hdf5::open(input)?.vectors_shape(self.set()),
            Format::Parquet => table::shape(input, &self.options),
            format => Err(format::no_vectors(input.origin(), format)),
        }
    }

    /// The shape of a file that has to be read to know it.
    fn counted(&self, input: &Input) -> Result<Shape> {
        let (mut rows, mut dim) = (0, 0);
        for batch in self.open_part(input, BATCH_ROWS)? {
            let batch = batch?;
            rows += batch.vectors.rows();
            dim = batch.vectors.dim();
        }
        let origin = input.origin();
        match rows {
            0 => Err(DataError::ZeroRows { origin }),
            _ => Ok(Shape {
                rows,
                dim,
                element: Element::F32,
            }),
        }
    }

    /// The set of an HDF5 file that has the vectors.
    fn set(&self) -> &str {
        self.options.vectors.as_deref().unwrap_or("train")
    }

    /// Reads a file that is no table as a whole; most are mapped.
    fn whole(&self, input: &Input) -> Result<(Vectors, Option<Identifiers>)> {
        let vectors = match self.format {
            Format::Npy => npy::read(input),
            Format::Npz => return npz::read(input, &self.options),
            Format::Fbin => bin::read(input, Element::F32),
            Format::U8bin => bin::read(input, Element::U8),
            Format::Fvecs => vecs::read(input, Element::F32),
            Format::Bvecs => vecs::read(input, Element::U8),
            Format::Hdf5 => Hdf5::open(input)?.vectors(self.set()),
            format => Err(format::no_vectors(input.origin(), format)),
        };
        Ok((vectors?, None))
    }

    /// Where the rows of a file lie, if they lie one after the other. Others have to be read as a whole.
    fn layout(&self, input: &Input) -> Result<Option<Layout>> {
        Ok(match self.format {
            Format::Npy => npy::layout(input)?,
            Format::Fbin => Some(bin::layout(input, Element::F32)?),
            Format::U8bin => Some(bin::layout(input, Element::U8)?),
            Format::Fvecs => Some(vecs::layout(input, Element::F32)?),
            Format::Bvecs => Some(vecs::layout(input, Element::U8)?),
            Format::Hdf5 => Hdf5::open(input)?.layout(self.set())?,
            _ => None,
        })
    }

    /// What messages name: the set of an HDF5 file, or the file.
    fn place(&self, input: &Input) -> Origin {
        match self.format {
            Format::Hdf5 => input.origin().set(self.set().to_owned()),
            _ => input.origin(),
        }
    }

    /// Whether [`Reader::batches`] reads some rows at a time. Other files are in memory as a whole while they are read.
    pub fn is_streamed(&self) -> Result<bool> {
        if self.is_table() {
            return Ok(true);
        }
        for input in &self.inputs {
            let layout = format::labelled(input, self.format, |input| self.layout(input))?;
            if layout.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_table(&self) -> bool {
        matches!(
            self.format,
            Format::Csv | Format::Tsv | Format::Parquet | Format::Arrow
        )
    }

    /// The rows of file `number`, at most `rows` at a time; none if there are not so many files.
    pub(crate) fn part(&self, number: usize, rows: usize) -> Result<Option<Part>> {
        let input = self.inputs.get(number);
        input.map(|input| self.open_part(input, rows)).transpose()
    }

    fn open_part(&self, input: &Input, rows: usize) -> Result<Part> {
        format::labelled(input, self.format, |input| {
            Ok(match self.format {
                Format::Csv | Format::Tsv => Part::new(
                    input.origin(),
                    text::Lines::open(input, self.format, &self.options, rows)?,
                ),
                Format::Parquet | Format::Arrow => Part::new(
                    input.origin(),
                    table::Rows::open(input, self.format, &self.options, rows)?,
                ),
                _ => match self.layout(input)? {
                    Some(layout) => Part::new(self.place(input), Flat::new(input, layout, rows)?),
                    None => {
                        let (vectors, ids) = self.whole(input)?;
                        Part::new(input.origin(), Cut::new(vectors, ids, rows))
                    }
                },
            })
        })
    }

    /// Reads everything. A single file of floats or bytes is mapped; all else is converted batch by batch into one copy.
    pub fn read(&self) -> Result<Table> {
        if let [input] = &self.inputs[..]
            && !self.is_table()
        {
            let (vectors, ids) = format::labelled(input, self.format, |input| self.whole(input))?;
            let columns = Vec::new();
            return Ok(Table {
                vectors,
                ids,
                columns,
            });
        }
        let rows = self.rows_in_headers();
        let mut values = Vec::new();
        let mut table: Option<(usize, usize, Option<Identifiers>)> = None;
        let mut columns = Vec::new();
        for batch in Batches::new(self, BATCH_ROWS) {
            let batch = batch?;
            let (dim, count) = (batch.vectors.dim(), batch.vectors.rows());
            match &mut table {
                None => {
                    // A header may exaggerate: then memory is taken as rows come.
                    let _ = values.try_reserve_exact(rows.unwrap_or(0).saturating_mul(dim));
                    table = Some((dim, count, batch.ids));
                }
                Some((_, rows, ids)) => {
                    *rows += count;
                    if let (Some(ids), Some(more)) = (ids, batch.ids) {
                        ids.append(more, &self.origin)?;
                    }
                }
            }
            values.extend_from_slice(&batch.vectors.to_f32());
            columns.extend((batch.columns.num_columns() > 0).then_some(batch.columns));
        }
        let origin = self.origin.clone();
        let (dim, rows, ids) = table.ok_or(DataError::ZeroRows { origin })?;
        Ok(Table {
            vectors: Vectors::checked_f32(values, rows, dim),
            ids,
            columns,
        })
    }

    /// All rows that the headers announce, if they do.
    fn rows_in_headers(&self) -> Option<usize> {
        if !self.format.has_header() {
            return None;
        }
        let rows = self.inputs.iter().map(|input| match self.format {
            Format::Parquet => table::announced_rows(input).ok(),
            _ => self.header(input).ok().map(|shape| shape.rows),
        });
        rows.sum()
    }

    /// The rows in order, at most `rows` at a time: for those who do not want everything in memory at once.
    pub fn batches(self, rows: usize) -> Batches {
        Batches::new(self, rows)
    }
}

/// Refuses a row of another dimension than the rows before it.
pub(crate) fn check_dimension(
    expected: usize,
    found: usize,
    row: usize,
    origin: &Origin,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(DataError::BadRow {
        origin: origin.clone(),
        place: format!("row {row}"),
        problem: format!(
            "has dimension {found}, the rows before it have {expected}: all rows must have one dimension"
        ),
    })
}

/// The files of a folder that hold vectors, in the order of their names, and their format.
fn folder(path: &Path, format: Option<Format>) -> Result<(Format, Vec<PathBuf>)> {
    let failed = |cause| DataError::io("list", path, cause);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(['.', '_']) && !entry.path().is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    let of = |file: &Path| Format::from_path(file).ok();
    let format = match format {
        Some(format) => format,
        None => match files.iter().find_map(|file| of(file)) {
            Some(format) => format,
            None => {
                let problem = "no file in this folder has an extension of a vector format: name a file, or another folder";
                return Err(DataError::selection(Origin::file(path), problem));
            }
        },
    };
    if let Some(other) = files
        .iter()
        .find(|file| of(file).is_some_and(|f| f != format))
    {
        let problem = format!(
            "the folder has {format} files and {}: keep one format in a folder, or name a file",
            other.display()
        );
        return Err(DataError::selection(Origin::file(path), problem));
    }
    files.retain(|file| of(file) == Some(format));
    Ok((format, files))
}
