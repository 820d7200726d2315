//! Which format a file is: by its extension first, then by what its bytes look like.

use std::io::{self, Write};
use std::path::Path;

use crate::error::{DataError, Origin, Result};
use crate::hdf5::Hdf5;
use crate::ids::Ids;
use crate::input::Input;
use crate::vectors::{Element, Shape, Vectors};
use crate::{bin, npy, vecs};

/// The file formats of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Npy,
    Fbin,
    U8bin,
    Ibin,
    Fvecs,
    Bvecs,
    Ivecs,
    Hdf5,
}

impl Format {
    pub(crate) fn from_path(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        Ok(match extension.to_ascii_lowercase().as_str() {
            "npy" => Self::Npy,
            "fbin" => Self::Fbin,
            "u8bin" => Self::U8bin,
            "ibin" => Self::Ibin,
            "fvecs" => Self::Fvecs,
            "bvecs" => Self::Bvecs,
            "ivecs" => Self::Ivecs,
            "hdf5" | "h5" => Self::Hdf5,
            _ => {
                return Err(DataError::UnknownFormat {
                    origin: Origin::file(path),
                    extension: extension.into_owned(),
                });
            }
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Fbin => "fbin",
            Self::U8bin => "u8bin",
            Self::Ibin => "ibin",
            Self::Fvecs => "fvecs",
            Self::Bvecs => "bvecs",
            Self::Ivecs => "ivecs",
            Self::Hdf5 => "hdf5",
        }
    }

    /// Whether files of this format hold vectors rather than ids.
    pub(crate) fn holds_vectors(self) -> bool {
        !matches!(self, Self::Ibin | Self::Ivecs)
    }

    fn wrong_kind(self, path: &Path, wanted: &'static str, instead: &'static str) -> DataError {
        DataError::WrongKind {
            origin: Origin::file(path),
            format: self.name(),
            wanted,
            instead,
        }
    }

    /// Floats as little-endian bytes.
    pub(crate) fn write_f32(w: &mut dyn Write, data: &[f32]) -> io::Result<()> {
        if cfg!(target_endian = "little") {
            return w.write_all(bytemuck::cast_slice(data));
        }
        data.iter().try_for_each(|v| w.write_all(&v.to_le_bytes()))
    }
}

/// Opens a file and runs `read` on it, telling a mislabelled file from a damaged one.
pub(crate) fn open<T>(
    path: &Path,
    format: Format,
    read: impl FnOnce(&Input) -> Result<T>,
) -> Result<T> {
    let input = Input::open(path)?;
    let mislabelled = |seems| DataError::Mislabelled {
        origin: input.origin(),
        expected: format.name(),
        seems,
    };
    if let Some(seems) = magic(&input).filter(|seems| *seems != format.name()) {
        return Err(mislabelled(seems));
    }
    read(&input).map_err(|error| {
        let suspicious = error.hints_at_mislabelling();
        match suspicious.then(|| fitting_layout(&input, format)).flatten() {
            Some(seems) => mislabelled(seems),
            None => error,
        }
    })
}

/// The format whose magic number the file begins with.
fn magic(input: &Input) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 5] = [
        (b"\x89HDF\r\n\x1a\n", "hdf5"),
        (npy::MAGIC, "npy"),
        (b"PK\x03\x04", "a zip archive (npz?)"),
        (b"\x1f\x8b\x08", "compressed with gzip"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    ];
    let mut start = [0; 8];
    let len = input.len.min(8) as usize;
    input.read_at(0, &mut start[..len], "its start").ok()?;
    let matches = |(magic, _): &&(&[u8], &str)| start[..len].starts_with(magic);
    KNOWN.iter().find(matches).map(|(_, name)| *name)
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

const VECTOR_FORMATS: &str = ".npy, .fbin, .u8bin, .fvecs, .bvecs, .hdf5 or .h5";
const ID_FORMATS: &str = ".ivecs, .ibin or .npy";

/// Reads the vectors of a file; of an HDF5 file its set `train`.
///
/// The extension names the format; `.npy`, `.fbin`, `.u8bin` and contiguous HDF5 sets are mapped
/// into memory instead of being read, so the file must stay as it is while the vectors live.
pub fn read_vectors(path: impl AsRef<Path>) -> Result<Vectors> {
    let path = path.as_ref();
    let format = Format::from_path(path)?;
    open(path, format, |input| match format {
        Format::Npy => npy::read(input),
        Format::Fbin => bin::read(input, Element::F32),
        Format::U8bin => bin::read(input, Element::U8),
        Format::Fvecs => vecs::read(input, Element::F32),
        Format::Bvecs => vecs::read(input, Element::U8),
        Format::Hdf5 => Hdf5::open(input)?.vectors("train"),
        Format::Ibin | Format::Ivecs => Err(format.wrong_kind(path, "vectors", VECTOR_FORMATS)),
    })
}

/// What a file's header says about its vectors, compared with its length; the values are not read.
pub fn vectors_shape(path: impl AsRef<Path>) -> Result<Shape> {
    let path = path.as_ref();
    let format = Format::from_path(path)?;
    open(path, format, |input| match format {
        Format::Npy => npy::shape(input),
        Format::Fbin => bin::shape(input, Element::F32),
        Format::U8bin => bin::shape(input, Element::U8),
        Format::Fvecs => vecs::shape(input, Element::F32),
        Format::Bvecs => vecs::shape(input, Element::U8),
        Format::Hdf5 => Hdf5::open(input)?.vectors_shape("train"),
        Format::Ibin | Format::Ivecs => Err(format.wrong_kind(path, "vectors", VECTOR_FORMATS)),
    })
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
        _ => {
            let fitting = ".npy, .fbin or .fvecs (.u8bin and .bvecs for bytes)";
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
