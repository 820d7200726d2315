//! The temporary folder of a streamed build: its files, and errors that name them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use garlic_core::vector_file::read_at;
use garlic_core::{Error, Result};

/// A file that only folders of builds have. The build that uses the folder holds its lock.
const LOCK: &str = "build.lock";

/// A temporary folder, locked for one build.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// The error of an operation on a file.
pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}

impl Folder {
    /// The folder at `path`, made if it is not there. Fails if it has files of others, or if another build uses it.
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        let refused = |message: &str| Error::Directory {
            path: path.clone(),
            message: message.into(),
        };
        fs::create_dir_all(&path).map_err(failed(&path))?;
        let place = path.join(LOCK);
        let is_empty = fs::read_dir(&path).map_err(failed(&path))?.next().is_none();
        if !is_empty && !place.is_file() {
            return Err(refused(
                "the parts of the build would lie in this folder, but it has other files; move or remove it",
            ));
        }
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let lock = options.open(&place).map_err(failed(&place))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(refused(
                "another build is using this folder; wait until it has ended",
            )),
            Err(TryLockError::Error(error)) => Err(failed(&place)(error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Begins a file anew.
    pub(super) fn create(&self, name: &str, buffer: usize) -> Result<Output> {
        let path = self.file(name);
        let file = File::create(&path).map_err(failed(&path))?;
        Ok(Output {
            out: BufWriter::with_capacity(buffer, file),
            path,
        })
    }

    /// Goes on with a file after its first `len` bytes.
    pub(super) fn append(&self, name: &str, len: u64) -> Result<Output> {
        use std::io::Seek as _;
        let path = self.file(name);
        let open = || -> io::Result<File> {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            file.set_len(len)?;
            file.seek(io::SeekFrom::Start(len))?;
            Ok(file)
        };
        let file = open().map_err(failed(&path))?;
        Ok(Output {
            out: BufWriter::new(file),
            path,
        })
    }

    pub(super) fn open(&self, name: &str) -> Result<Input> {
        let path = self.file(name);
        let file = File::open(&path).map_err(failed(&path))?;
        Ok(Input { file, path })
    }

    /// Removes a file that is not needed any more. What is left is removed with the folder.
    pub(super) fn discard(&self, name: &str) {
        let _ = fs::remove_file(self.file(name));
    }

    /// Removes the folder and everything in it.
    pub(super) fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.path).map_err(failed(&self.path))
    }
}

/// A file that is written from its beginning to its end.
pub(super) struct Output {
    out: BufWriter<File>,
    path: PathBuf,
}

impl Output {
    pub(super) fn put<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> Result<()> {
        let written = self.out.write_all(bytemuck::cast_slice(values));
        written.map_err(failed(&self.path))
    }

    /// Ends the file. After that it survives a power cut.
    pub(super) fn finish(mut self) -> Result<()> {
        let flushed = self.out.flush();
        let ended = flushed.and_then(|()| self.out.get_ref().sync_all());
        ended.map_err(failed(&self.path))
    }
}

/// A file that is read at any place.
pub(super) struct Input {
    file: File,
    path: PathBuf,
}

impl Input {
    pub(super) fn read<T: bytemuck::Pod>(&self, values: &mut [T], offset: u64) -> Result<()> {
        let bytes = bytemuck::cast_slice_mut(values);
        read_at(&self.file, bytes, offset).map_err(failed(&self.path))
    }

    /// All bytes.
    pub(super) fn whole(&self) -> Result<Vec<u8>> {
        let len = self.file.metadata().map_err(failed(&self.path))?.len();
        let mut bytes = vec![0; len as usize];
        self.read(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// The arrays of a file, one after the other.
pub(super) struct Cursor {
    input: Input,
    offset: u64,
}

impl Cursor {
    pub(super) fn open(folder: &Folder, name: &str) -> Result<Self> {
        let input = folder.open(name)?;
        Ok(Self { input, offset: 0 })
    }

    /// Fills `values` with the next ones.
    pub(super) fn fill<T: bytemuck::Pod>(&mut self, values: &mut [T]) -> Result<()> {
        self.input.read(values, self.offset)?;
        self.offset += size_of_val(values) as u64;
        Ok(())
    }

    /// The next `len` values.
    pub(super) fn next<T: bytemuck::Pod>(&mut self, len: usize) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); len];
        self.fill(&mut values)?;
        Ok(values)
    }
}
