//! An index directory of the machine that is held for writing.
//!
//! A path names whatever is there now; a lock belongs to what was there when it was taken. So a writer holds its
//! directory by a handle and creates, renames and removes files relative to that: it cannot touch another directory
//! that has got its path since. [`Lock::check`] tells whether the path still names what is held.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::current::LOCK;
use super::disk::{Held, Lock, Lost};

/// Takes the lock of a directory; `None` when somebody has it.
pub(super) fn hold(directory: &Path) -> io::Result<Option<Held>> {
    // The program may change its working directory.
    let path = std::path::absolute(directory)?.join(LOCK);
    let (disk, file) = platform::open(directory)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let identity = identity(&file.metadata()?);
    let lock = LockFile {
        path,
        identity,
        file,
    };
    Ok(Some(Held {
        lock: Arc::new(lock),
        disk,
    }))
}

/// The locked file `LOCK` of a directory.
struct LockFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    file: File,
}

impl Lock for LockFile {
    fn check(&self) -> Result<(), Lost> {
        let same = match fs::metadata(&self.path) {
            Ok(found) => identity(&found) == self.identity,
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
        };
        if same { Ok(()) } else { Err(Lost::Moved) }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Device and number of a file; none where the standard library does not tell them. There, a directory with open files
/// cannot be moved.
fn identity(file: &Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((file.dev(), file.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

#[cfg(unix)]
mod platform {
    use std::fs::File;
    use std::io::{self, Seek, SeekFrom};
    use std::path::Path;
    use std::sync::Arc;

    use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};

    use super::super::current::LOCK;
    use super::super::disk::{Disk, Held, Input, Opening, Output, Real};
    use crate::error::Result;
    use crate::index::Index;

    /// Opens a directory, and its file `LOCK`.
    pub(super) fn open(directory: &Path) -> io::Result<(Arc<dyn Disk>, File)> {
        let held = HeldDirectory(File::open(directory)?);
        let file = held.open(Path::new(LOCK), OFlags::WRONLY | OFlags::CREATE)?;
        Ok((Arc::new(held), file))
    }

    /// A directory by its handle: of a path only the last name counts.
    struct HeldDirectory(File);

    impl HeldDirectory {
        fn open(&self, path: &Path, how: OFlags) -> io::Result<File> {
            let mode = Mode::from_raw_mode(0o666);
            let file = openat(&self.0, name(path)?, how | OFlags::CLOEXEC, mode)?;
            Ok(File::from(file))
        }
    }

    fn name(path: &Path) -> io::Result<&Path> {
        let name = path.file_name().map(Path::new);
        name.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    impl Disk for HeldDirectory {
        fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
            let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            Ok(Box::new(self.open(path, new)?))
        }

        fn append(&self, path: &Path) -> io::Result<Box<dyn Output>> {
            let mut file = self.open(path, OFlags::WRONLY)?;
            file.seek(SeekFrom::End(0))?;
            Ok(Box::new(file))
        }

        fn read(&self, path: &Path) -> io::Result<(Box<dyn Input>, u64)> {
            // A pipe does not wait for a writer then.
            let file = self.open(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
            let found = file.metadata()?;
            if !found.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a file"));
            }
            Ok((Box::new(file), found.len()))
        }

        fn open_index(&self, path: &Path, how: Opening) -> Result<Index> {
            Real.open_index(path, how)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            Ok(renameat(&self.0, name(from)?, &self.0, name(to)?)?)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            Ok(unlinkat(&self.0, name(path)?, AtFlags::empty())?)
        }

        fn make_directory(&self, path: &Path) -> io::Result<()> {
            Real.make_directory(path)
        }

        fn sync_directory(&self, _: &Path) -> io::Result<()> {
            self.0.sync_all()
        }

        fn names(&self, _: &Path) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.0)? {
                // A name that is not Unicode is not one of ours.
                if let Ok(name) = entry?.file_name().to_str() {
                    names.push(name.to_owned());
                }
            }
            Ok(names)
        }

        fn lock(&self, directory: &Path) -> io::Result<Option<Held>> {
            Real.lock(directory)
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    use super::super::current::LOCK;
    use super::super::disk::{Disk, Real};

    /// Opens the file `LOCK` of a directory.
    pub(super) fn open(directory: &Path) -> io::Result<(Arc<dyn Disk>, File)> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        Ok((Arc::new(Real), options.open(directory.join(LOCK))?))
    }
}
