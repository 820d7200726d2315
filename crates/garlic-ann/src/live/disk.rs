//! The file system operations of an index directory, and their real implementation.
//!
//! All operations go through [`Disk`], so that tests can make each one fail and simulate a power cut between any two.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use super::lock;
use crate::segment::Index;
use garlic_core::Result;
use garlic_core::file::atomic::{self, FileOps};

/// Purpose of opening an index file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// The next checkpoint is written from it, so damage must not get new checksums.
    ToWrite,
    ToRead,
}

/// A file system.
pub(crate) trait Disk: Send + Sync {
    /// Creates a file that does not exist yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Opens a file for appending.
    fn append(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Opens a file for reading and returns its length.
    fn read(&self, path: &Path) -> io::Result<(Box<dyn Input>, u64)>;
    /// Opens an index file. To write, it is loaded and checked completely, otherwise mapped.
    fn open_index(&self, path: &Path, how: Opening) -> Result<Index>;
    /// Renames a file and replaces an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory unless it exists.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Syncs changes of the names in a directory.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Names of the files in a directory.
    fn names(&self, directory: &Path) -> io::Result<Vec<String>>;
    /// Locks a directory until the result is dropped. `None` if it is locked already.
    fn lock(&self, directory: &Path) -> io::Result<Option<LockedDirectory>>;
}

/// A file being written.
pub(crate) trait Output: Write + Send {
    /// Syncs the written bytes to the device.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file being read.
pub(crate) trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// A directory that is locked for writing.
pub(crate) struct LockedDirectory {
    pub(super) lock: Arc<dyn Lock>,
    /// The file system, restricted to this directory.
    pub(super) disk: Arc<dyn Disk>,
}

/// The lock of a directory. It is released on drop.
pub(crate) trait Lock: Send + Sync {
    /// Whether the path of the directory still leads to the locked one.
    fn is_in_place(&self) -> bool {
        true
    }

    /// Whether this process is a fork of the one that took the lock.
    fn is_inherited(&self) -> bool {
        false
    }

    /// Releases an inherited copy of the lock, so that it is free when its owner ends.
    fn release_inherited(&self) {}
}

/// The real file system.
pub(crate) struct RealDisk;

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(atomic::Disk.create(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Box::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<(Box<dyn Input>, u64)> {
        // Check before opening: opening a pipe would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a file"));
        }
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((Box::new(file), length))
    }

    fn open_index(&self, path: &Path, how: Opening) -> Result<Index> {
        match how {
            Opening::ToWrite => Index::load(path),
            Opening::ToRead => Index::open(path),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        atomic::Disk.sync_directory(path)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            // Our file names are Unicode.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock(&self, directory: &Path) -> io::Result<Option<LockedDirectory>> {
        lock::acquire_lock(directory)
    }
}

/// Adapts a [`Disk`] to the [`FileOps`] of atomic replacement.
pub(super) struct OnDisk<'a>(pub(super) &'a dyn Disk);

impl FileOps for OnDisk<'_> {
    type File = Box<dyn Output>;

    fn create(&self, temporary: &Path) -> io::Result<Box<dyn Output>> {
        self.0.create(temporary)
    }

    fn sync(&self, file: &mut Box<dyn Output>) -> io::Result<()> {
        file.sync()
    }

    fn rename(&self, temporary: &Path, target: &Path) -> io::Result<()> {
        self.0.rename(temporary, target)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.0.sync_directory(directory)
    }

    fn remove(&self, temporary: &Path) -> io::Result<()> {
        self.0.remove(temporary)
    }
}
