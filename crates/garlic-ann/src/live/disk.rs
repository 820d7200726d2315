//! What an index directory asks of the file system, and the file system of the machine.
//!
//! Everything goes through [`Disk`], so that tests can fail every step, and cut the power between any two.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use super::held;
use crate::segment::Index;
use garlic_core::Result;
use garlic_core::file::atomic::{self, Place};

/// What an index file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// The next checkpoint is made from it: damage must not get new checksums.
    ToWrite,
    ToRead,
}

/// A file system.
pub(crate) trait Disk: Send + Sync {
    /// Creates a file; it must not exist yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Opens a file to write behind its end.
    fn append(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Opens a file to read it, and says how long it is.
    fn read(&self, path: &Path) -> io::Result<(Box<dyn Input>, u64)>;
    /// Opens an index file: to change it, which reads and checks all of it, or to map it.
    fn open_index(&self, path: &Path, how: Opening) -> Result<Index>;
    /// Renames a file, replacing what has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory unless it is there.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Forces names that were made, changed or removed in a directory to the device.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// The names of the files of a directory.
    fn names(&self, directory: &Path) -> io::Result<Vec<String>>;
    /// Takes the lock of a directory, until the result is dropped; `None` when somebody has it.
    fn lock(&self, directory: &Path) -> io::Result<Option<Held>>;
}

/// A file being written.
pub(crate) trait Output: Write + Send {
    /// Forces what was written to the device.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file being read.
pub(crate) trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// A directory that is held for writing.
pub(crate) struct Held {
    pub(super) lock: Arc<dyn Lock>,
    /// The file system as its writer uses it.
    pub(super) disk: Arc<dyn Disk>,
}

/// The lock of a directory, given back when it is dropped.
pub(crate) trait Lock: Send + Sync {
    /// Whether the path of the directory still leads to what is locked.
    fn is_in_place(&self) -> bool {
        true
    }

    /// Whether another process took the lock, which has been forked since: this one is not its owner.
    fn is_inherited(&self) -> bool {
        false
    }

    /// Lets go of an inherited lock, so that it is free when its owner ends.
    fn leave_inherited(&self) {}
}

/// The file system of the machine.
pub(crate) struct Real;

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for Real {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(atomic::Disk.create(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Box::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<(Box<dyn Input>, u64)> {
        // Asked before opening: a pipe would wait for a writer.
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
            // A name that is not Unicode is not one of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock(&self, directory: &Path) -> io::Result<Option<Held>> {
        held::hold(directory)
    }
}

/// A [`Disk`] as the [`Place`] that files are replaced in.
pub(super) struct OnDisk<'a>(pub(super) &'a dyn Disk);

impl Place for OnDisk<'_> {
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
