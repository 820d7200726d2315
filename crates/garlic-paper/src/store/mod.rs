//! Files: one file an index, vectors included.
//!
//! In and out: a [`GaussianIndex`] and the bytes of its file. The container is that of [`garlic_core::file`];
//! `docs/reference/file-format.md` draws the layout. `meta` has the section META, `cells` those of Gaussians and frames, `bins` that of
//! the bins, `verify` what opening leaves out.
//!
//! Whatever passes here must not make a search panic. Of a mapped file only the shapes of vectors and identifiers are
//! known: a search takes them as they are and makes do with any content.

mod bins;
mod cells;
mod meta;
mod verify;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use garlic_core::file::atomic::Disk;
use garlic_core::file::{
    self, Access, Decode, Fault, FormatError, Kind, Reader, Sections, Source, Summary, put,
    put_attachment, put_transform, put_vectors, read_attachment, read_ids, read_transform,
    read_vectors, with_path,
};
use garlic_core::{Bytes, Error, Result};

use crate::index::{GaussianIndex, Parts};
use meta::Meta;

/// The sections of a file with a table, in their order.
const KINDS: &[Kind] = &[
    Kind::Meta,
    Kind::Space,
    Kind::Means,
    Kind::Factors,
    Kind::Frames,
    Kind::Bins,
    Kind::Vectors,
    Kind::Ids,
    Kind::Table,
];

/// The sections of a file with or without a table.
fn kinds(with_table: bool) -> &'static [Kind] {
    match with_table {
        true => KINDS,
        false => &KINDS[..KINDS.len() - 1],
    }
}

impl GaussianIndex {
    /// Writes the index to `path`, replacing what is there all at once.
    ///
    /// A temporary file is written beside it, synced and renamed, so that nobody ever sees half an index. On an
    /// error the old file stays as it was and nothing is left behind. A symbolic link at `path` is replaced, not
    /// followed.
    ///
    /// # Errors
    /// [`Error::Io`] with the path when a step of the file system fails.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let encoded = Encoded::new(self).map_err(|error| with_path(path, Fault::Io(error)))?;
        file::save(&Disk, path, &encoded)
    }

    /// Opens an index where it lies: the file is mapped, and vectors are read when a search needs them.
    ///
    /// Header, section table, configuration, change of coordinates and cells are read and checked, and so is that vectors
    /// and identifiers have the length they must have. Their content is not looked at: a damaged file gives wrong answers,
    /// but a search never panics, reads outside of the file or asks for memory without bounds. [`GaussianIndex::verify`]
    /// tells whether a file is sound.
    ///
    /// Replace index files by rename, never in place: `mv new.garlic index.garlic`, not `cp`. [`GaussianIndex::save`] does
    /// so, and replacing or deleting the file is harmless: an open index keeps what it was opened on. If somebody
    /// overwrites the file while the index or a clone of it exists, answers mean nothing, but no call panics. If somebody
    /// shortens it, as `cp` onto the old name does first, reading behind the new end ends the program (SIGBUS), which
    /// nothing can prevent. Use [`GaussianIndex::load`] where nobody can promise that.
    ///
    /// Where files cannot be mapped this is [`GaussianIndex::load`].
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is no index of this kind.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(file::open(path.as_ref(), Access::Map)?.0)
    }

    /// Reads an index into memory and checks all of it: header, checksums, and that the content makes sense.
    ///
    /// Takes time and memory in proportion to the file, and gives the fastest searches from the first one on.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is no sound index of this kind.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Ok(file::open(path.as_ref(), Access::Read)?.0)
    }

    /// Does all that [`GaussianIndex::load`] does, and checks what a search does not rely on: that identifiers are unique,
    /// that axes are orthonormal, and that points lie in the bins that list them.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is no sound index of this kind.
    pub fn verify(path: impl AsRef<Path>) -> Result<Summary> {
        let path = path.as_ref();
        let (index, layout) = file::open::<Self>(path, Access::Read)?;
        verify::check(&index).map_err(|fault| with_path(path, fault))?;
        Ok(Summary::new(
            &layout,
            index.dim(),
            index.len(),
            index.cells(),
        ))
    }

    /// The bytes that [`GaussianIndex::save`] writes. Equal indexes give equal bytes.
    ///
    /// # Errors
    /// [`Error::Io`] when a section cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let encode = || file::to_bytes(&Encoded::new(self)?);
        encode().map_err(|source| Error::Io {
            path: "memory".into(),
            source,
        })
    }

    /// The index that [`GaussianIndex::to_bytes`] gave the bytes of, checked as [`GaussianIndex::load`] does.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        file::from_bytes(bytes)
    }
}

/// An index with its section META ready.
struct Encoded<'a> {
    index: &'a GaussianIndex,
    meta: Vec<u8>,
    table: Vec<Bytes>,
}

impl<'a> Encoded<'a> {
    fn new(index: &'a GaussianIndex) -> io::Result<Self> {
        let meta = serde_json::to_vec(&meta::of(index))?;
        Ok(Self {
            index,
            meta,
            table: index.attachment.blocks()?,
        })
    }
}

impl Sections for Encoded<'_> {
    fn kinds(&self) -> &'static [Kind] {
        kinds(!self.index.attachment.is_none())
    }

    fn check(&self, file_len: u64) -> io::Result<()> {
        let refuse = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
        let (found, most) = (self.meta.len() as u64, file::MAX_META);
        if found > most {
            return refuse(format!(
                "configuration and history take {found} bytes, more than the {most} an index file holds; train fewer \
                 epochs"
            ));
        }
        // JSON has no NaN and no infinity: they come back as an error.
        if let Err(error) = serde_json::from_slice::<Meta>(&self.meta) {
            return refuse(format!(
                "configuration or history cannot be stored, probably because a number is not finite: {error}"
            ));
        }
        match bins::too_many_steps(&self.index.trained.cells, file_len) {
            Some(message) => refuse(message),
            None => Ok(()),
        }
    }

    fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
        let trained = &*self.index.trained;
        match kind {
            Kind::Meta => out.write_all(&self.meta),
            Kind::Space => put_transform(&self.index.transform, out),
            Kind::Means => put(out, trained.model.means.as_slice()),
            Kind::Factors => cells::write_factors(&trained.model, out),
            Kind::Frames => cells::write_frames(&trained.cells, out),
            Kind::Bins => bins::write(&trained.cells, out),
            Kind::Vectors => put_vectors(&self.index.vectors, out),
            Kind::Ids => put(out, &self.index.ids),
            Kind::Table => put_attachment(&self.table, out),
            // Of the other kind of index.
            Kind::Cells | Kind::Learned | Kind::Codes | Kind::Graph => Ok(()),
        }
    }
}

impl Decode for GaussianIndex {
    fn decode<R: Source>(reader: &mut Reader<R>) -> Result<Self, Fault> {
        let (meta, embedding) = meta::read(reader)?;
        let fits = |rows: u64| rows == 0 || rows == meta.dim;
        let transform = read_transform(reader, meta.dim, fits)?;
        let trained = cells::read(reader, &meta)?;
        let vectors = read_vectors(reader, meta.points, meta.dim, meta.element)?;
        let ids = read_ids(reader, meta.points)?;
        let mut index = Self::from(Parts {
            config: meta.config.0,
            embedding,
            transform,
            trained,
            vectors,
            ids,
        });
        index.attachment = read_attachment(reader)?;
        Ok(index)
    }
}
