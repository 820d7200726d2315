//! Which format a file is: by its extension first, then by what its bytes look like.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use crate::error::{DataError, Origin, Result};
use crate::ids::Ids;
use crate::input::Input;
use crate::reader::{ReadOptions, Reader};
use crate::vectors::{Shape, Vectors};
use crate::{bin, npy, table, vecs};

/// The file formats of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// An array of NumPy.
    Npy,
    /// An archive of arrays of NumPy.
    Npz,
    /// Numbers as text, a vector a line.
    Csv,
    /// The same with tabulators.
    Tsv,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC, as a file or as a stream; Feather is the former.
    Arrow,
    /// Floats after two `u32`: rows and dimension.
    Fbin,
    /// Bytes after two `u32`: rows and dimension.
    U8bin,
    /// Ids after two `u32`: rows and columns.
    Ibin,
    /// Rows of floats, each after its own dimension.
    Fvecs,
    /// Rows of bytes, each after its own dimension.
    Bvecs,
    /// Rows of ids, each after its own dimension.
    Ivecs,
    /// ANN-Benchmarks HDF5.
    Hdf5,
}

/// Each format with the extensions of its files, its name first.
const EXTENSIONS: [(Format, &[&str]); 13] = [
    (Format::Npy, &["npy"]),
    (Format::Npz, &["npz"]),
    (Format::Csv, &["csv"]),
    (Format::Tsv, &["tsv"]),
    (Format::Parquet, &["parquet", "pq"]),
    (Format::Arrow, &["arrow", "feather", "arrows", "ipc"]),
    (Format::Fbin, &["fbin"]),
    (Format::U8bin, &["u8bin"]),
    (Format::Ibin, &["ibin"]),
    (Format::Fvecs, &["fvecs"]),
    (Format::Bvecs, &["bvecs"]),
    (Format::Ivecs, &["ivecs"]),
    (Format::Hdf5, &["hdf5", "h5"]),
];

impl FromStr for Format {
    type Err = String;

    /// The format that an extension names.
    fn from_str(name: &str) -> Result<Self, String> {
        let name = name.to_ascii_lowercase();
        let found = EXTENSIONS.iter().find(|(_, e)| e.contains(&name.as_str()));
        found.map(|(format, _)| *format).ok_or_else(|| {
            let names: Vec<&str> = EXTENSIONS.iter().map(|(f, _)| f.name()).collect();
            format!("no such format; the formats are: {}", names.join(", "))
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Format {
    pub(crate) fn from_path(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        extension.parse().map_err(|_| DataError::UnknownFormat {
            origin: Origin::file(path),
            extension: extension.into_owned(),
        })
    }

    /// Its name, which is the usual extension of its files.
    pub fn name(self) -> &'static str {
        let entry = EXTENSIONS.iter().find(|(format, _)| *format == self);
        entry.map_or("", |(_, extensions)| extensions[0])
    }

    /// Whether files of this format hold vectors rather than ids.
    pub fn holds_vectors(self) -> bool {
        !matches!(self, Self::Ibin | Self::Ivecs)
    }

    /// Whether its files have columns or arrays with names, of which one has the vectors and one may have identifiers.
    pub fn has_names(self) -> bool {
        matches!(
            self,
            Self::Npz | Self::Csv | Self::Tsv | Self::Parquet | Self::Arrow
        )
    }

    /// Whether a header tells the number of vectors and their dimension.
    pub(crate) fn has_header(self) -> bool {
        !matches!(self, Self::Csv | Self::Tsv | Self::Arrow)
    }

    fn wrong_kind(self, path: &Path, wanted: &'static str, instead: &'static str) -> DataError {
        wrong_kind(Origin::file(path), self, wanted, instead)
    }

    /// Floats as little-endian bytes.
    pub(crate) fn write_f32(w: &mut dyn Write, data: &[f32]) -> io::Result<()> {
        if cfg!(target_endian = "little") {
            return w.write_all(bytemuck::cast_slice(data));
        }
        data.iter().try_for_each(|v| w.write_all(&v.to_le_bytes()))
    }
}

fn wrong_kind(
    origin: Origin,
    format: Format,
    wanted: &'static str,
    instead: &'static str,
) -> DataError {
    DataError::WrongKind {
        origin,
        format: format.name(),
        wanted,
        instead,
    }
}

/// The error of a file that holds ids where vectors are needed.
pub(crate) fn no_vectors(origin: Origin, format: Format) -> DataError {
    let instead = ".npy, .npz, .csv, .parquet, .arrow, .fbin, .u8bin, .fvecs, .bvecs or .hdf5";
    wrong_kind(origin, format, "vectors", instead)
}

/// Opens a file and runs `read` on it, telling a mislabelled file from a damaged one.
pub(crate) fn open<T>(
    path: &Path,
    format: Format,
    read: impl FnOnce(&Input) -> Result<T>,
) -> Result<T> {
    labelled(&Input::open(path)?, format, read)
}

/// Runs `read` on a file, telling a mislabelled file from a damaged one.
pub(crate) fn labelled<T>(
    input: &Input,
    format: Format,
    read: impl FnOnce(&Input) -> Result<T>,
) -> Result<T> {
    let mislabelled = |seems| DataError::Mislabelled {
        origin: input.origin(),
        expected: format.name(),
        seems,
    };
    if let Some((seems, words)) = magic(input)
        && seems != Some(format)
    {
        return Err(mislabelled(words));
    }
    read(input).map_err(|error| {
        let suspicious = error.hints_at_mislabelling();
        match suspicious.then(|| fitting_layout(input, format)).flatten() {
            Some(seems) => mislabelled(seems),
            None => error,
        }
    })
}

/// The format of a file without a name: by its first bytes, or text.
pub(crate) fn detect(input: &Input) -> Result<Format> {
    if let Some((Some(format), _)) = magic(input) {
        return Ok(format);
    }
    let mut start = vec![0; input.len.min(512) as usize];
    input.read_at(0, &mut start, "its start")?;
    let is_text = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace() || *b >= 0x80;
    if magic(input).is_none() && !start.is_empty() && start.iter().all(is_text) {
        return Ok(Format::Csv);
    }
    let problem = match (magic(input), start.is_empty()) {
        (_, true) => "there is nothing to read".to_owned(),
        (Some((_, words)), _) => format!("the bytes seem to be {words}: convert them first"),
        _ => "the bytes do not tell their format: name it with --format".to_owned(),
    };
    Err(DataError::selection(input.origin(), problem))
}

/// The format whose magic number the file begins with, if it is one of this crate's, and what to call it.
fn magic(input: &Input) -> Option<(Option<Format>, &'static str)> {
    const KNOWN: [(&[u8], Option<Format>, &str); 7] = [
        (b"\x89HDF\r\n\x1a\n", Some(Format::Hdf5), "hdf5"),
        (npy::MAGIC, Some(Format::Npy), "npy"),
        (b"PK\x03\x04", Some(Format::Npz), "a zip archive (npz?)"),
        (b"PAR1", Some(Format::Parquet), "parquet"),
        (b"ARROW1\0\0", Some(Format::Arrow), "arrow"),
        (b"\x1f\x8b\x08", None, "compressed with gzip"),
        (b"\x28\xb5\x2f\xfd", None, "compressed with zstd"),
    ];
    let mut start = [0; 8];
    let len = input.len.min(8) as usize;
    input.read_at(0, &mut start[..len], "its start").ok()?;
    // A stream of Arrow begins with the length of its schema.
    if let [0xff, 0xff, 0xff, 0xff, length @ ..] = start
        && (1..input.len as i64).contains(&i64::from(i32::from_le_bytes(length)))
    {
        return Some((Some(Format::Arrow), "an arrow stream"));
    }
    let found = KNOWN
        .iter()
        .find(|(magic, ..)| start[..len].starts_with(magic));
    found.map(|(_, format, words)| (*format, *words))
}

/// Another format, without a magic number, whose layout fits the file's length exactly.
fn fitting_layout(input: &Input, labelled: Format) -> Option<&'static str> {
    let same = |formats: &[Format]| formats.contains(&labelled);
    if let Ok((rows, cols)) = bin::header(input)
        && rows * cols > 0
    {
        let ends = |width| (rows * cols).checked_mul(width) == input.len.checked_sub(8);
        if ends(4) && !same(&[Format::Fbin, Format::Ibin]) {
            return Some("fbin or ibin");
        }
        if ends(1) && !same(&[Format::U8bin]) {
            return Some("u8bin");
        }
    }
    let prefix = |offset| {
        let mut bytes = [0; 4];
        let read = input.read_at(offset, &mut bytes, "a row's dimension");
        read.ok().map(|()| i32::from_le_bytes(bytes))
    };
    let dim = prefix(0).filter(|dim| *dim > 0)?;
    let fits = |width: u64| {
        // Two rows that agree: one row alone fits far too many files by chance.
        let stride = 4 + dim as u64 * width;
        input.len.is_multiple_of(stride) && prefix(stride) == Some(dim)
    };
    if fits(4) && !same(&[Format::Fvecs, Format::Ivecs]) {
        return Some("fvecs or ivecs");
    }
    if fits(1) && !same(&[Format::Bvecs]) {
        return Some("bvecs");
    }
    None
}

const ID_FORMATS: &str = ".ivecs, .ibin or .npy";

/// Reads the vectors of a file or of the files of a folder; of an HDF5 file its set `train`.
///
/// The extension names the format; `.npy`, `.fbin`, `.u8bin` and contiguous HDF5 sets are mapped
/// into memory instead of being read, so the file must stay as it is while the vectors live.
/// A [`Reader`] reads other columns and sets, identifiers, streams, and batches.
pub fn read_vectors(path: impl AsRef<Path>) -> Result<Vectors> {
    Ok(Reader::open(path, &ReadOptions::default())?.read()?.vectors)
}

/// The number of vectors and their dimension. Formats that have headers are not read further; of the others,
/// `.csv`, `.tsv` and Arrow, everything is read.
pub fn vectors_shape(path: impl AsRef<Path>) -> Result<Shape> {
    Reader::open(path, &ReadOptions::default())?.shape()
}

/// Reads a table of ids: `.ivecs`, `.ibin`, or an integer `.npy`.
pub fn read_ids(path: impl AsRef<Path>) -> Result<Ids> {
    let path = path.as_ref();
    let format = Format::from_path(path)?;
    open(path, format, |input| match format {
        Format::Npy => npy::read_ids(input),
        Format::Ibin => bin::read_ids(input),
        Format::Ivecs => vecs::read_ids(input),
        _ => Err(format.wrong_kind(path, "ids", ID_FORMATS)),
    })
}

/// Writes vectors in the format the extension names.
///
/// Byte vectors become floats where the format holds floats; floats are not narrowed to bytes.
pub fn write_vectors(path: impl AsRef<Path>, vectors: &Vectors) -> Result<()> {
    let path = path.as_ref();
    let (format, dim) = (Format::from_path(path)?, vectors.dim());
    match (format, vectors.as_u8()) {
        (Format::Npy, Some(bytes)) => npy::write_npy_u8(path, bytes, dim),
        (Format::U8bin, Some(bytes)) => bin::write_u8bin(path, bytes, dim),
        (Format::Bvecs, Some(bytes)) => vecs::write_bvecs(path, bytes, dim),
        (Format::Npy, None) => npy::write_npy_f32(path, &vectors.to_f32(), dim),
        (Format::Fbin, _) => bin::write_fbin(path, &vectors.to_f32(), dim),
        (Format::Fvecs, _) => vecs::write_fvecs(path, &vectors.to_f32(), dim),
        (Format::Parquet, _) => table::write_parquet(path, &vectors.to_f32(), dim, None, None),
        _ => {
            let fitting = ".npy, .parquet, .fbin or .fvecs (.u8bin and .bvecs for bytes)";
            Err(format.wrong_kind(path, "a place for these vectors", fitting))
        }
    }
}

/// Writes ids in the format the extension names (`.npy` with 64 bits an id).
pub fn write_ids(path: impl AsRef<Path>, ids: &Ids) -> Result<()> {
    let path = path.as_ref();
    match Format::from_path(path)? {
        Format::Npy => npy::write_npy_i64(path, ids),
        Format::Ibin => bin::write_ibin(path, ids),
        Format::Ivecs => vecs::write_ivecs(path, ids),
        format => Err(format.wrong_kind(path, "a place for ids", ID_FORMATS)),
    }
}
