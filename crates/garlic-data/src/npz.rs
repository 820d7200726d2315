//! NumPy's `.npz`: a zip archive with a `.npy` file for each array.

use std::io::{Cursor, Read};

use bytes::Bytes;
use zip::{CompressionMethod, ZipArchive};

use crate::error::{DataError, Result};
use crate::identifiers::Identifiers;
use crate::input::Input;
use crate::npy;
use crate::reader::ReadOptions;
use crate::vectors::{Shape, Vectors};

/// No data shrink further by deflate.
const LARGEST_RATIO: u64 = 1032;

fn open(input: &Input) -> Result<ZipArchive<Cursor<Bytes>>> {
    ZipArchive::new(Cursor::new(input.bytes()?)).map_err(|cause| unreadable(input, &cause))
}

fn unreadable(input: &Input, cause: &dyn std::fmt::Display) -> DataError {
    DataError::Unreadable {
        origin: input.origin(),
        format: "npz",
        cause: cause.to_string(),
    }
}

/// Names of the arrays, as numpy knows them.
pub(crate) fn names(input: &Input) -> Result<Vec<String>> {
    let archive = open(input)?;
    let name = |n: &str| n.strip_suffix(".npy").map(str::to_owned);
    let names = archive.file_names().flatten();
    Ok(names.filter_map(|n| name(&n)).collect())
}

/// The array of this name as a file of its own: where it lies, or unpacked.
fn array(input: &Input, name: &str) -> Result<Input> {
    let mut archive = open(input)?;
    let origin = input.origin().set(name.to_owned());
    let present = names(input)?.join(", ");
    let mut entry = match archive.by_name(&format!("{name}.npy")) {
        Ok(entry) => entry,
        Err(zip::result::ZipError::FileNotFound) => {
            return Err(DataError::MissingSet { origin, present });
        }
        Err(cause) => return Err(unreadable(input, &cause)),
    };
    let (len, packed) = (entry.size(), entry.compressed_size());
    let truncated = |needed| DataError::Truncated {
        origin: origin.clone(),
        what: "the array as the archive describes it",
        needed,
        len: input.len,
    };
    if entry.compression() == CompressionMethod::Stored {
        let Some(start) = entry.data_start() else {
            return Err(unreadable(input, &"an array without a place"));
        };
        return match start.checked_add(len).filter(|end| *end <= input.len) {
            Some(_) => input.part(start, len, origin),
            None => Err(truncated(start.saturating_add(len))),
        };
    }
    if len > packed.saturating_mul(LARGEST_RATIO) {
        return Err(truncated(len));
    }
    let mut unpacked = Checked {
        entry: (&mut entry).take(len),
        failed: None,
    };
    let spooled = Input::spool(&mut unpacked, origin)?;
    match unpacked.failed {
        Some(cause) => Err(unreadable(input, &cause)),
        None => Ok(spooled),
    }
}

/// Ends at an error of the archive, which is no error of a device, and keeps it.
struct Checked<R> {
    entry: R,
    failed: Option<std::io::Error>,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.entry.read(buffer).or_else(|cause| {
            self.failed = Some(cause);
            Ok(0)
        })
    }
}

/// The array with the vectors: the one that is named, or the only one.
fn vectors(input: &Input, options: &ReadOptions) -> Result<Input> {
    if let Some(name) = &options.vectors {
        return array(input, name);
    }
    let names = names(input)?;
    let mut others = names
        .iter()
        .filter(|name| options.ids.as_ref() != Some(name));
    match (others.next(), others.next()) {
        (Some(name), None) => array(input, name),
        (None, _) => Err(DataError::selection(
            input.origin(),
            "the archive has no array: save one with numpy.savez",
        )),
        _ => Err(DataError::selection(
            input.origin(),
            format!(
                "the archive has the arrays {}: name the one of the vectors with --vectors",
                names.join(", ")
            ),
        )),
    }
}

pub(crate) fn shape(input: &Input, options: &ReadOptions) -> Result<Shape> {
    npy::shape(&vectors(input, options)?)
}

pub(crate) fn read(input: &Input, options: &ReadOptions) -> Result<(Vectors, Option<Identifiers>)> {
    let vectors = npy::read(&vectors(input, options)?)?;
    let Some(name) = &options.ids else {
        return Ok((vectors, None));
    };
    let array = array(input, name)?;
    let ids = npy::read_identifiers(&array)?;
    if ids.len() != vectors.rows() {
        return Err(DataError::CountMismatch {
            origin: array.origin(),
            what: "identifiers",
            expected: vectors.rows(),
            found: ids.len(),
            fix: "there must be one for each vector",
        });
    }
    Ok((vectors, Some(ids)))
}
