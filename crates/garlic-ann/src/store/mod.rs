//! Saves and opens an index.
//!
//! In: an [`Index`]. Out: an index file, and the other way round. `docs/reference/file-format.md` describes the file,
//! `garlic_core::file` implements the container. [`Index::open`] maps a file, [`Index::load`] reads and checks every
//! byte, and [`Index::verify`] also checks what a search does not rely on.

use crate::plan::Calibration;
use crate::segment::{Index, Segment};

mod graph;
mod interface;
mod meta;
mod sections;
mod validate;
mod verify;

#[cfg(test)]
mod tests;

pub use garlic_core::file::{
    FORMAT_VERSION, SUPPORTED_VERSIONS, SectionSummary, Summary, is_index_file,
};

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use garlic_core::file::atomic::{Disk, FileOps};
use garlic_core::file::{
    self, Access, Decode, Fault, Kind, MAX_META, Reader, Sections, Source, inconsistent, put,
    put_attachment, put_transform, put_vectors, read_attachment, read_ids, read_transform,
    read_vectors, with_path,
};
use garlic_core::metric::Embedding;
use garlic_core::vector_file::ReadBackend;
use garlic_core::{Bytes, Cancel, FormatError, Result};

use meta::{Body, Meta, StoredConfig};

/// The sections of an index with a neighbour graph and a table, in the order of the file.
const KINDS: &[Kind] = &[
    Kind::Meta,
    Kind::Space,
    Kind::Cells,
    Kind::Learned,
    Kind::Codes,
    Kind::Vectors,
    Kind::Ids,
    Kind::Graph,
    Kind::Table,
];

/// The sections of an index with a table and without a neighbour graph.
const KINDS_WITHOUT_GRAPH: &[Kind] = &[
    Kind::Meta,
    Kind::Space,
    Kind::Cells,
    Kind::Learned,
    Kind::Codes,
    Kind::Vectors,
    Kind::Ids,
    Kind::Table,
];

/// The sections of an index with or without a neighbour graph and a table.
fn kinds(with_graph: bool, with_table: bool) -> &'static [Kind] {
    let all = if with_graph {
        KINDS
    } else {
        KINDS_WITHOUT_GRAPH
    };
    match with_table {
        true => all,
        false => &all[..all.len() - 1],
    }
}

impl Index {
    /// Writes the index to `path` and replaces an existing file atomically.
    ///
    /// It writes a temporary file beside `path`, syncs it and renames it, so that a reader never sees half an index.
    /// On an error the old file is unchanged and the temporary file is removed. A symbolic link at `path` is
    /// replaced, not followed.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) with the path if a file system operation fails.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save_to(&Disk, self, path.as_ref())
    }

    /// Opens an index by mapping its file. Searches load the parts they need.
    ///
    /// The cost does not depend on the number of points. `open` reads and checks the header, section table,
    /// configuration, calibration and transform, and it checks the lengths of all arrays. It does not check the
    /// content of large arrays. With a damaged file, a search may return wrong answers or none, but it never panics,
    /// reads outside of the file or allocates memory without bounds. [`Index::verify`] checks the whole file.
    ///
    /// Replace index files by rename, never in place: use `mv new.garlic index.garlic`, not `cp`. [`Index::save`]
    /// does so. Replacing or deleting the file is safe, because an open index keeps the old content. If the file is
    /// overwritten while the index or a clone of it exists, answers are meaningless or
    /// [`Error::Damaged`](crate::Error::Damaged), but no call panics. If the file is truncated, as `cp` onto the old
    /// name does first, reading past the new end terminates the program (SIGBUS). No program can prevent this. Use
    /// [`Index::load`] if a file may be truncated.
    ///
    /// On systems that cannot map files, this is [`Index::load`].
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read, [`Error::Format`](crate::Error::Format) if it is
    /// not an index.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        Ok(file::open(path.as_ref(), Access::Map)?.0)
    }

    /// Reads an index into memory and checks all of it: header, checksums and content.
    ///
    /// Time and memory are proportional to the size of the file. Searches run at full speed from the first one on.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read, [`Error::Format`](crate::Error::Format) if it is
    /// not a valid index.
    pub fn load(path: impl AsRef<Path>) -> Result<Index> {
        Ok(file::open(path.as_ref(), Access::Read)?.0)
    }

    /// Opens an index for searches whose vectors stay in the file. Everything else is read into memory and checked.
    ///
    /// A search computes exact distances for few points. It reads the vectors of many candidates at once, those of all
    /// queries of a batch together: with io_uring where the kernel has it, else with threads. Answers are those of
    /// [`Index::load`]. Memory holds codes, bins, identifiers and the neighbour graph; the operating system caches
    /// vectors as memory allows. Exact searches and searches of small indexes read many vectors or all of them.
    ///
    /// The index is read-only ([`Error::OnDisk`](crate::Error::OnDisk)). A search fails with
    /// [`Error::Io`](crate::Error::Io) if vectors cannot be read, for example because the file was truncated.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read, [`Error::Format`](crate::Error::Format) if it is
    /// not a valid index.
    pub fn open_on_disk(path: impl AsRef<Path>) -> Result<Index> {
        Self::open_on_disk_with(path, ReadBackend::detect())
    }

    /// [`Index::open_on_disk`] with a choice of how vectors are read.
    ///
    /// # Errors
    /// Those of [`Index::open_on_disk`].
    #[doc(hidden)]
    pub fn open_on_disk_with(path: impl AsRef<Path>, backend: ReadBackend) -> Result<Index> {
        Ok(file::open(path.as_ref(), Access::Disk(backend))?.0)
    }

    /// Checks a file as [`Index::load`] does, and also what a search does not rely on: unique identifiers,
    /// orthonormal axes, and for a sample of points that their bins, codes and bounds agree with their vectors.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read, [`Error::Format`](crate::Error::Format) if it is
    /// not a valid index.
    pub fn verify(path: impl AsRef<Path>) -> Result<Summary> {
        let path = path.as_ref();
        let (index, layout) = file::open::<Index>(path, Access::Read)?;
        verify::check(&index).map_err(|fault| with_path(path, fault))?;
        Ok(Summary::new(
            &layout,
            index.dim(),
            index.len(),
            index.cells(),
        ))
    }

    /// The bytes that [`Index::save`] writes. Equal indexes have equal bytes.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the configuration cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let compacted = self.compacted(&Cancel::default());
        let encode = || file::to_bytes(&Encoded::new(compacted.as_ref().unwrap_or(self))?);
        encode().map_err(|error| with_path(Path::new("memory"), Fault::Io(error)))
    }

    /// Decodes the bytes of [`Index::to_bytes`], with the checks of [`Index::load`].
    ///
    /// # Errors
    /// Fails if the bytes are not a valid index.
    pub fn from_bytes(bytes: &[u8]) -> Result<Index, FormatError> {
        file::from_bytes(bytes)
    }
}

/// Two indexes are equal if their files are.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        if self.delta.changes().is_some() || other.delta.changes().is_some() {
            let bytes = (self.to_bytes(), other.to_bytes());
            return matches!(bytes, (Ok(a), Ok(b)) if a == b);
        }
        self.config == other.config
            && self.embedding == other.embedding
            && self.transform == other.transform
            && self.segment == other.segment
            && self.calibration == other.calibration
            && self.build_stats == other.build_stats
            && self.attachment == other.attachment
    }
}

/// [`Index::save`] to a file system that tests can make fail.
pub(crate) fn save_to<P: FileOps>(place: &P, index: &Index, path: &Path) -> Result<()> {
    let compacted = index.compacted(&Cancel::default());
    let encoded = Encoded::new(compacted.as_ref().unwrap_or(index));
    let encoded = encoded.map_err(|error| with_path(path, Fault::Io(error)))?;
    file::save(place, path, &encoded)
}

/// An index with its encoded META section and the blocks of its table.
struct Encoded<'a> {
    index: &'a Index,
    meta: Vec<u8>,
    table: Vec<Bytes>,
}

impl<'a> Encoded<'a> {
    fn new(index: &'a Index) -> io::Result<Self> {
        let meta = serde_json::to_vec(&Meta {
            dim: index.transform.dim() as u64,
            longest: index.embedding.longest(),
            points: index.segment.ids.len() as u64,
            cells: index.cells() as u64,
            element: index.segment.vectors.element(),
            config: StoredConfig(index.config.clone()),
            body: Body::Tempered {
                calibration: (*index.calibration).clone(),
            },
            build_stats: index.build_stats,
        })?;
        Ok(Self {
            index,
            meta,
            table: index.attachment.blocks()?,
        })
    }
}

impl Sections for Encoded<'_> {
    fn kinds(&self) -> &'static [Kind] {
        kinds(
            self.index.segment.graph.is_some(),
            !self.index.attachment.is_none(),
        )
    }

    fn check(&self, _: u64) -> io::Result<()> {
        let refuse = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
        if self.meta.len() as u64 > MAX_META {
            let len = self.meta.len();
            return refuse(format!(
                "configuration and calibration take {len} bytes, more than the {MAX_META} an index file holds"
            ));
        }
        // JSON cannot represent NaN and infinity. Reading them back fails.
        if let Err(error) = serde_json::from_slice::<Meta>(&self.meta) {
            return refuse(format!(
                "configuration or calibration cannot be stored, probably because a number is not finite: {error}"
            ));
        }
        let segment = &self.index.segment;
        if segment.vectors.element().rounds()
            && let Some(at) = segment.vectors.first_not_finite(self.index.transform.dim())
        {
            return refuse(format!(
                "vector {} has a coordinate too large for {}; build the index with `store` f32",
                segment.ids[at],
                segment.vectors.name()
            ));
        }
        match validate::check(self.index) {
            Ok(()) => Ok(()),
            Err(Fault::Io(error)) => Err(error),
            Err(Fault::Format(error)) => refuse(format!("it could not be opened again: {error}")),
        }
    }

    fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
        let segment = &self.index.segment;
        match kind {
            Kind::Meta => out.write_all(&self.meta),
            Kind::Space => put_transform(&self.index.transform, out),
            Kind::Vectors => put_vectors(&segment.vectors, out),
            Kind::Ids => put(out, &segment.ids),
            Kind::Graph => match &segment.graph {
                Some(graph) => graph::write(graph, out),
                None => Ok(()),
            },
            Kind::Table => put_attachment(&self.table, out),
            _ => sections::write(segment, kind, out),
        }
    }
}

/// Arrays are read first. Their content is checked after the checksum of the section. What passes must not make a
/// search panic. For a mapped file, only the lengths of large arrays are checked, and searches accept any content.
impl Decode for Index {
    fn decode<R: Source>(reader: &mut Reader<R>) -> Result<Self, Fault> {
        let meta = meta::read(reader)?;
        let metric = meta.config.0.metric;
        let embedding = Embedding::restore(metric, meta.longest, meta.dim)
            .ok_or_else(|| inconsistent(Kind::Meta, "`longest` is not what the metric asks for"))?;
        let (dim, points) = (meta.dim, meta.points);
        let transform = read_transform(reader, dim, |rows| (1..=dim).contains(&rows))?;
        validate::check_transform(&transform)?;
        let (model, encoded) = sections::read(reader, meta.cells, points, &transform)?;
        let vectors = read_vectors(reader, points, dim, meta.element)?;
        let ids = read_ids(reader, points)?;
        let mut segment = Segment::new(&transform, model, encoded, vectors, ids);
        if reader.layout().length(Kind::Graph).is_some() {
            segment.graph = graph::read(reader, points, dim)?.map(Arc::new);
        }
        let attachment = read_attachment(reader)?;
        let Body::Tempered { calibration } = meta.body;
        let index = Index::new(
            meta.config.0,
            embedding,
            Arc::new(transform),
            segment,
            Calibration::default(),
            meta.build_stats,
        );
        Ok(Index {
            calibration: Arc::new(calibration),
            attachment,
            ..index
        })
    }
}
