//! Vectors that stay in a file and are read when they are needed.
//!
//! A mapped file counts as memory of the process while its pages are there, and a page that is not there stops a search for
//! as long as the device takes. What is read here does not count, and the vectors of many candidates are read at once:
//! with io_uring (`ring`) where the kernel has it, else by threads that wait (`threads`). `span` joins reads of the same
//! pages.

#[cfg(target_os = "linux")]
mod ring;
mod rows;
mod span;
mod threads;

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use crate::buffer::{Blank, Buffer};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::pool::ObjectPool;
use crate::vectors::{StoredType, StoredVectors};

pub use rows::FetchedRows;

/// Bytes that are read at a time where all vectors are read.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes that are read at a time for the candidates of searches, at most.
const WAVE_BYTES: usize = 32 << 20;

/// The environment variable that chooses how vectors are read: `io_uring` or `threads`.
const CHOICE: &str = "GARLIC_IO";

/// How the vectors of many candidates are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadBackend {
    /// One call to the kernel for many reads.
    IoUring,
    /// Threads that wait for the device.
    Threads,
}

impl ReadBackend {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::IoUring, Self::Threads];

    /// io_uring where the kernel has it and allows it, else threads. The environment variable `GARLIC_IO` may ask for
    /// threads.
    #[must_use]
    pub fn detect() -> Self {
        let wants_threads =
            std::env::var(CHOICE).is_ok_and(|choice| choice == Self::Threads.name());
        match !wants_threads && Self::IoUring.is_available() {
            true => Self::IoUring,
            false => Self::Threads,
        }
    }

    /// Whether this machine can read in this way.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::IoUring => ring::is_available(),
            #[cfg(not(target_os = "linux"))]
            Self::IoUring => false,
            Self::Threads => true,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
        }
    }
}

/// Stored vectors in a file, one row after the other, little-endian.
#[derive(Clone, Debug)]
pub struct VectorFile {
    shared: Arc<Shared>,
}

/// Where vectors lie.
#[derive(Debug)]
pub struct VectorPlace {
    /// The file.
    pub file: Arc<File>,
    /// Its name in error messages.
    pub path: PathBuf,
    /// Bytes before the first vector.
    pub offset: u64,
    /// The element type.
    pub element: StoredType,
    /// Coordinates of a vector.
    pub dim: usize,
    /// Number of vectors.
    pub rows: usize,
}

#[derive(Debug)]
struct Shared {
    place: VectorPlace,
    backend: ReadBackend,
    /// Buffers of reads.
    buffers: ObjectPool,
    failures: AtomicU64,
    /// The latest failure.
    failure: Mutex<Option<(io::ErrorKind, String)>>,
}

/// Two are equal if they are the same file.
impl PartialEq for VectorFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl VectorFile {
    /// The vectors of `dim` coordinates in the file at `path`, which must not change meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened or does not hold whole vectors.
    pub fn open(path: &Path, element: StoredType, dim: usize) -> Result<Self> {
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let row_bytes = element.row_bytes(dim) as u64;
        if row_bytes == 0 || !bytes.is_multiple_of(row_bytes) {
            let message = format!("{bytes} bytes are no whole vectors of {row_bytes} bytes");
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, message)));
        }
        let place = VectorPlace {
            file: Arc::new(file),
            path: path.to_owned(),
            offset: 0,
            element,
            dim,
            rows: (bytes / row_bytes) as usize,
        };
        Ok(Self::new(place, ReadBackend::detect()))
    }

    /// The vectors at a place, which must not change meanwhile.
    pub fn new(place: VectorPlace, backend: ReadBackend) -> Self {
        Self {
            shared: Arc::new(Shared {
                place,
                backend,
                buffers: ObjectPool::default(),
                failures: AtomicU64::new(0),
                failure: Mutex::new(None),
            }),
        }
    }

    /// How vectors of candidates are read.
    pub fn backend(&self) -> ReadBackend {
        self.shared.backend
    }

    /// The element type.
    pub fn element(&self) -> StoredType {
        self.shared.place.element
    }

    /// Number of vectors.
    pub fn rows(&self) -> usize {
        self.shared.place.rows
    }

    /// Bytes of all vectors.
    pub fn bytes(&self) -> u64 {
        self.rows() as u64 * self.row_bytes() as u64
    }

    /// Bytes of a vector.
    fn row_bytes(&self) -> usize {
        self.element().row_bytes(self.shared.place.dim)
    }

    /// Number of vectors to ask [`VectorFile::read_rows`] for at a time, so that they and what is read between them take
    /// no more than 32 MiB.
    pub fn rows_at_a_time(&self) -> usize {
        (WAVE_BYTES / (self.row_bytes() + span::MAX_GAP as usize)).max(1)
    }

    /// Number of reads that failed so far.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Fails if a vector could not be read since there were this many failures. Searches then took it for one that is
    /// infinitely far away.
    ///
    /// # Errors
    /// [`Error::Io`] with the latest failure.
    pub fn check_since(&self, failures: u64) -> Result<()> {
        if self.failures() == failures {
            return Ok(());
        }
        let failure = self.shared.failure.lock();
        let failure = failure.unwrap_or_else(PoisonError::into_inner);
        let (kind, reason) = failure
            .clone()
            .unwrap_or((io::ErrorKind::Other, "unknown".into()));
        Err(self.unreadable(kind, &reason))
    }

    fn unreadable(&self, kind: io::ErrorKind, reason: &str) -> Error {
        Error::Io {
            path: self.shared.place.path.clone(),
            source: io::Error::new(kind, format!("vectors could not be read: {reason}")),
        }
    }

    /// Fails if a vector could not be read so far.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn check(&self) -> Result<()> {
        self.check_since(0)
    }

    fn note(&self, error: &io::Error) {
        let failure = self.shared.failure.lock();
        let mut failure = failure.unwrap_or_else(PoisonError::into_inner);
        *failure = Some((error.kind(), error.to_string()));
        self.shared.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// `count` vectors from `first` on, in memory. `None` if there are not so many, or if they cannot be read.
    pub fn fetch(&self, first: usize, count: usize) -> Option<StoredVectors> {
        let end = first.checked_add(count)?;
        if end > self.rows() {
            return None;
        }
        let from = first as u64 * self.row_bytes() as u64;
        let fetched = self.filled(count, |bytes| self.read_from(from, bytes));
        fetched.map_err(|error| self.note(&error)).ok()
    }

    /// Calls `each` with the number of the first vector of every block and the block, until it breaks.
    pub fn for_each_block(&self, mut each: impl FnMut(usize, &StoredVectors) -> ControlFlow<()>) {
        let rows = (BLOCK_BYTES / self.row_bytes()).max(1);
        for first in (0..self.rows()).step_by(rows) {
            let count = rows.min(self.rows() - first);
            if let Some(block) = self.fetch(first, count)
                && each(first, &block).is_break()
            {
                return;
            }
        }
    }

    /// Fills `bytes` from a byte of the vectors on.
    fn read_from(&self, from: u64, bytes: &mut [u8]) -> io::Result<()> {
        let place = &self.shared.place;
        read_at(&place.file, bytes, place.offset + from)
    }

    /// Writes all vectors.
    ///
    /// # Errors
    /// Those of the file and of `out`.
    pub fn copy_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut block = vec![0; BLOCK_BYTES];
        let total = self.bytes();
        let mut done = 0;
        while done < total {
            let now = (total - done).min(BLOCK_BYTES as u64) as usize;
            // The caller knows the name of another file, or of none.
            let named = |error: io::Error| {
                let path = self.shared.place.path.display();
                io::Error::new(error.kind(), format!("{path}: {error}"))
            };
            self.read_from(done, &mut block[..now]).map_err(named)?;
            out.write_all(&block[..now])?;
            done += now as u64;
        }
        Ok(())
    }

    /// All vectors in memory, which needs no more memory than they do.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Cancelled`] soon after `cancel` was set.
    pub fn load(&self, cancel: &Cancel) -> Result<StoredVectors> {
        let loaded = self.filled(self.rows(), |bytes| {
            let blocks = (0..)
                .step_by(BLOCK_BYTES)
                .zip(bytes.chunks_mut(BLOCK_BYTES));
            for (from, block) in blocks {
                if cancel.is_cancelled() {
                    break;
                }
                self.read_from(from, block)?;
            }
            Ok(())
        });
        cancel.check()?;
        loaded.map_err(|error| self.unreadable(error.kind(), &error.to_string()))
    }

    /// `count` vectors of the little-endian bytes that `fill` writes.
    fn filled(
        &self,
        count: usize,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<StoredVectors> {
        let bytes = count * self.row_bytes();
        Ok(match self.element() {
            StoredType::F32 => StoredVectors::F32(filled(bytes, fill)?),
            StoredType::F16 => StoredVectors::F16(filled(bytes, fill)?),
            StoredType::U8 => StoredVectors::U8(filled(bytes, fill)?),
            StoredType::Int8 => StoredVectors::Int8(filled(bytes, fill)?),
        })
    }
}

/// The values of little-endian bytes, which `fill` writes to where they stay.
fn filled<T: Pod + Send>(
    bytes: usize,
    fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
) -> io::Result<Buffer<T>> {
    let mut blank = Blank::<T>::new(bytes / size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
    let place: &mut [u8] = bytemuck::cast_slice_mut(&mut blank);
    fill(place)?;
    if cfg!(target_endian = "big") {
        place
            .chunks_exact_mut(size_of::<T>())
            .for_each(<[u8]>::reverse);
    }
    Ok(blank.freeze())
}

/// Fills `bytes` from `offset` of a file without moving its cursor, so that threads can share it.
///
/// # Errors
/// Those of the file; one that is too short is an error.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
    }
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
    #[cfg(not(any(unix, windows)))]
    {
        use std::io::{Read as _, Seek as _};
        let mut file = file.try_clone()?;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::put_vectors;
    use garlic_linalg::Rows;

    fn backends() -> impl Iterator<Item = ReadBackend> {
        ReadBackend::ALL.into_iter().filter(|b| b.is_available())
    }

    /// Reads rows in and out of order, some of them twice, from a file with something before the vectors.
    fn read_together(
        path: &Path,
        element: StoredType,
        backend: ReadBackend,
        memory: &StoredVectors,
        query: &crate::vectors::Prepared<'_>,
    ) {
        let shifted = path.with_extension("shifted");
        let vectors = std::fs::read(path).unwrap();
        std::fs::write(&shifted, [&[7; 192], &vectors[..]].concat()).unwrap();
        let place = VectorPlace {
            file: Arc::new(File::open(&shifted).unwrap()),
            path: shifted,
            offset: 192,
            element,
            dim: 37,
            rows: 90,
        };
        let file = VectorFile::new(place, backend);
        let mut rows = file.take_rows();
        let many: Vec<u32> = (0..1000).map(|i| i * 7919 % 90).collect();
        for wanted in [&[5][..], &[89, 0, 5, 5], &many, &[], &[88]] {
            file.read_rows(wanted, &mut rows);
            for (number, row) in wanted.iter().enumerate() {
                let expected = memory.distance(query, *row as usize);
                assert_eq!(rows.distance(query, number), expected, "{backend:?}");
            }
            assert_eq!(rows.distance(query, wanted.len()), f32::INFINITY);
        }
        file.check().unwrap();
        file.read_rows(&[3, 90], &mut rows);
        assert!(file.check().is_err(), "there is no row 90");
        file.give_rows(rows);
    }

    #[test]
    fn threads_that_read_at_the_same_time_do_not_mix_their_vectors() {
        let (dim, count) = (64, 20_000);
        // Sums of these squares are exact in any order, so every kernel gives the same.
        let value = |row: usize| (row % 500) as f32;
        let values: Vec<f32> = (0..count * dim).map(|i| value(i / dim)).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        std::fs::write(&path, bytemuck::cast_slice::<f32, u8>(&values)).unwrap();
        for backend in backends() {
            let opened = VectorFile::open(&path, StoredType::F32, dim).unwrap();
            let place = VectorPlace {
                file: Arc::new(File::open(&path).unwrap()),
                path: path.clone(),
                offset: 0,
                element: opened.element(),
                dim,
                rows: opened.rows(),
            };
            let file = VectorFile::new(place, backend);
            std::thread::scope(|scope| {
                for thread in 0..6u32 {
                    let file = &file;
                    scope.spawn(move || {
                        let zero = vec![0.0; dim];
                        let query = crate::vectors::Prepared::Float(&zero);
                        let mut rows = file.take_rows();
                        for round in 0..50u32 {
                            let row =
                                |i: u32| (i * 7919 + thread * 31 + round * 977) % count as u32;
                            let wanted: Vec<u32> = (0..300).map(row).collect();
                            file.read_rows(&wanted, &mut rows);
                            for (number, row) in wanted.iter().enumerate() {
                                let expected = value(*row as usize).powi(2) * dim as f32;
                                assert_eq!(rows.distance(&query, number), expected);
                            }
                        }
                    });
                }
            });
            file.check().unwrap();
        }
    }

    #[test]
    fn reading_all_vectors_ends_when_it_is_told_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        std::fs::write(&path, vec![1; 3 * BLOCK_BYTES]).unwrap();
        let file = VectorFile::open(&path, StoredType::U8, 64).unwrap();
        let set = Cancel::new(Arc::new(true.into()));
        assert!(matches!(file.load(&set), Err(Error::Cancelled)));
        assert_eq!(file.load(&Cancel::default()).unwrap().bytes(), file.bytes());
        let (stored, zero) = (StoredVectors::File(file), [0; 64]);
        let (looks, mut seen) = (std::cell::Cell::new(0), 0);
        let goes_on = || looks.replace(looks.get() + 1) < 1;
        let query = crate::vectors::Prepared::Bytes(&zero);
        stored.distances_while(&query, goes_on, |_, _| seen += 1);
        assert_eq!((looks.get(), seen), (2, BLOCK_BYTES / 64));
    }

    #[test]
    fn vectors_in_a_file_are_those_in_memory() {
        let dim = 37;
        let values: Vec<f32> = (0..90 * dim).map(|i| (i * 7919 % 251) as f32).collect();
        let order: Vec<u32> = (0..90).rev().collect();
        let query: Vec<f32> = values[5..][..dim].to_vec();
        let folder = tempfile::tempdir().unwrap();
        for element in [
            StoredType::F32,
            StoredType::F16,
            StoredType::U8,
            StoredType::Int8,
        ] {
            let memory = StoredVectors::gather(Rows::new(&values, dim).unwrap(), &order, element);
            let path = folder.path().join(element.name());
            let mut bytes = Vec::new();
            put_vectors(&memory, &mut bytes).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            let file = VectorFile::open(&path, element, dim).unwrap();
            assert_eq!(file.load(&Cancel::default()).unwrap(), memory);
            let stored = StoredVectors::File(file.clone());
            assert_eq!((stored.bytes(), stored.mapped_bytes()), (memory.bytes(), 0));
            assert_eq!(stored.pick(dim, &[7, 0]), memory.pick(dim, &[7, 0]));
            assert_eq!(stored.widen(dim), memory.widen(dim));
            assert_eq!(stored.first_not_finite(dim), None);
            let mut copied = Vec::new();
            put_vectors(&stored, &mut copied).unwrap();
            assert_eq!(copied, bytes);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let (mut bytes_a, mut bytes_b) = (Vec::new(), Vec::new());
            let query_a = memory.prepare(&query, &mut bytes_a);
            let query_b = stored.prepare(&query, &mut bytes_b);
            let mut all = Vec::new();
            stored.distances(&query_b, |at, distance| all.push((at, distance)));
            assert_eq!(all.len(), 90);
            for (at, distance) in all {
                assert_eq!(distance, memory.distance(&query_a, at), "{element:?}");
                assert_eq!(stored.distance(&query_b, at), distance);
                assert!(memory.read(dim, at, &mut a) && stored.read(dim, at, &mut b));
                assert_eq!(a, b);
            }
            assert!(!stored.read(dim, 90, &mut b));
            assert_eq!(stored.distance(&query_b, 90), f32::INFINITY);
            file.check().unwrap();
            for backend in backends() {
                read_together(&path, element, backend, &memory, &query_a);
            }
            // A file that was cut short is noticed, not taken for a far point only.
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(3)
                .unwrap();
            assert_eq!(stored.distance(&query_b, 80), f32::INFINITY);
            assert!(file.check().is_err());
            let failures = file.failures();
            file.check_since(failures).unwrap();
            let mut rows = FetchedRows::default();
            file.read_rows(&[0, 80], &mut rows);
            assert_eq!(rows.distance(&query_b, 0), f32::INFINITY);
            let message = file.check_since(failures).unwrap_err().to_string();
            // Either of the two reads may fail first.
            assert!(message.contains("the file ends at byte"), "{message}");
            let message = file.copy_to(&mut Vec::new()).unwrap_err().to_string();
            assert!(
                message.starts_with(&path.display().to_string()),
                "{message}"
            );
            assert!(VectorFile::open(&path, element, dim).is_err());
        }
    }
}
