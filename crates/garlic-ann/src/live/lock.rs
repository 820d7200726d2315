//! Locks an index directory for writing.
//!
//! A path names whatever is there now, but a lock belongs to what was there when it was taken. A writer therefore
//! keeps a handle to its directory and creates, renames and removes files relative to the handle. It cannot touch
//! another directory that has the same path later. [`Lock::is_in_place`] checks whether the path still leads to the
//! locked directory.
//!
//! A forked process has copies of all handles, and the system frees a lock when the last copy is closed. The owner
//! therefore unlocks explicitly, and a child can close its copy.

use std::fs::{self, File, Metadata, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, process};

use super::current::LOCK;
use super::disk::{Lock, LockedDirectory};

/// Locks a directory. `None` if it is locked already.
pub(super) fn acquire_lock(directory: &Path) -> io::Result<Option<LockedDirectory>> {
    // Use an absolute path because the program may change its working directory.
    let path = std::path::absolute(directory)?.join(LOCK);
    let (disk, file) = platform::open(directory)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let lock = LockFile {
        path,
        identity: identity(&file.metadata()?),
        process: process::id(),
        file: Mutex::new(Some(file)),
    };
    Ok(Some(LockedDirectory {
        lock: Arc::new(lock),
        disk,
    }))
}

/// The locked file `LOCK` of a directory.
struct LockFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    /// The process that took the lock.
    process: u32,
    /// `None` after a forked process closed its copy.
    file: Mutex<Option<File>>,
}

impl Lock for LockFile {
    fn is_in_place(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(found) => identity(&found) == self.identity,
            // Other errors are inconclusive. Files are accessed by the handle in any case.
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
        }
    }

    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    fn release_inherited(&self) {
        // Do not wait: at the time of the fork, another thread of the parent may have held this mutex.
        if self.is_inherited()
            && let Ok(mut file) = self.file.try_lock()
        {
            *file = None;
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let inherited = self.is_inherited();
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = file
            && !inherited
        {
            // Closing the file is not enough while a child has a copy. If unlocking fails, closing follows.
            let _ = file.unlock();
        }
    }
}

/// Device and inode of a file, or `None` if the standard library does not provide them. On such systems, a directory
/// with open files cannot be moved.
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
    use super::super::disk::{Disk, Input, LockedDirectory, Opening, Output, RealDisk};
    use crate::segment::Index;
    use garlic_core::Result;

    /// Opens a directory and its file `LOCK`.
    pub(super) fn open(directory: &Path) -> io::Result<(Arc<dyn Disk>, File)> {
        let held = DirectoryHandle(File::open(directory)?);
        let file = held.open(Path::new(LOCK), OFlags::WRONLY | OFlags::CREATE)?;
        Ok((Arc::new(held), file))
    }

    /// A directory by its handle. Only the last component of a path is used.
    struct DirectoryHandle(File);

    impl DirectoryHandle {
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

    impl Disk for DirectoryHandle {
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
            // With `NONBLOCK`, opening a pipe does not wait for a writer.
            let file = self.open(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
            let found = file.metadata()?;
            if !found.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a file"));
            }
            Ok((Box::new(file), found.len()))
        }

        fn open_index(&self, path: &Path, how: Opening) -> Result<Index> {
            RealDisk.open_index(path, how)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            Ok(renameat(&self.0, name(from)?, &self.0, name(to)?)?)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            Ok(unlinkat(&self.0, name(path)?, AtFlags::empty())?)
        }

        fn make_directory(&self, path: &Path) -> io::Result<()> {
            RealDisk.make_directory(path)
        }

        fn sync_directory(&self, _: &Path) -> io::Result<()> {
            self.0.sync_all()
        }

        fn names(&self, _: &Path) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.0)? {
                // Our file names are Unicode.
                if let Ok(name) = entry?.file_name().to_str() {
                    names.push(name.to_owned());
                }
            }
            Ok(names)
        }

        fn lock(&self, directory: &Path) -> io::Result<Option<LockedDirectory>> {
            RealDisk.lock(directory)
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
    use super::super::disk::{Disk, RealDisk};

    /// Opens the file `LOCK` of a directory.
    pub(super) fn open(directory: &Path) -> io::Result<(Arc<dyn Disk>, File)> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        Ok((Arc::new(RealDisk), options.open(directory.join(LOCK))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lock of an open file, taken by this process number.
    fn taken_by(process: u32, directory: &Path, file: File) -> LockFile {
        LockFile {
            path: directory.join(LOCK),
            identity: identity(&file.metadata().unwrap()),
            process,
            file: Mutex::new(Some(file)),
        }
    }

    /// A lock as inherited by a forked process: the same open file, taken by another process.
    fn inherited(directory: &Path, file: File) -> LockFile {
        taken_by(process::id() ^ 1, directory, file)
    }

    #[test]
    fn a_lock_is_free_when_its_owner_says_so() {
        let place = tempfile::tempdir().unwrap();
        let (_, file) = platform::open(place.path()).unwrap();
        file.lock().unwrap();
        let copies = [file.try_clone().unwrap(), file.try_clone().unwrap()];
        let owner = taken_by(process::id(), place.path(), file);
        let [first, second] = copies.map(|copy| inherited(place.path(), copy));
        assert!(first.is_inherited() && !owner.is_inherited());
        // A child that ends does not release the lock of its parent.
        drop(first);
        owner.release_inherited();
        assert!(acquire_lock(place.path()).unwrap().is_none());
        drop(owner);
        assert!(acquire_lock(place.path()).unwrap().is_some());
        drop(second);
    }

    #[test]
    fn a_child_that_has_left_does_not_keep_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let (_, file) = platform::open(place.path()).unwrap();
        file.lock().unwrap();
        let child = inherited(place.path(), file.try_clone().unwrap());
        // The parent is killed: it closes its file without unlocking.
        drop(file);
        assert!(acquire_lock(place.path()).unwrap().is_none());
        child.release_inherited();
        assert!(acquire_lock(place.path()).unwrap().is_some());
    }

    /// A call that has begun completes in the directory that was opened.
    #[cfg(unix)]
    #[test]
    fn files_are_those_of_the_directory_that_was_opened() {
        use super::super::current::CURRENT;
        use std::io::Write;

        let place = tempfile::tempdir().unwrap();
        let (path, aside) = (place.path().join("live"), place.path().join("aside"));
        fs::create_dir(&path).unwrap();
        let LockedDirectory { lock, disk } = acquire_lock(&path).unwrap().unwrap();
        assert!(lock.is_in_place());
        fs::rename(&path, &aside).unwrap();
        assert!(!lock.is_in_place());
        fs::create_dir(&path).unwrap();
        for name in ["old", "new", "CURRENT"] {
            fs::write(path.join(name), "theirs").unwrap();
        }
        let mut file = disk.create(&path.join("old")).unwrap();
        file.write_all(b"ours").unwrap();
        disk.rename(&path.join("old"), &path.join("new")).unwrap();
        disk.append(&path.join("new"))
            .unwrap()
            .write_all(b" too")
            .unwrap();
        assert_eq!(disk.read(&path.join("new")).unwrap().1, 8);
        assert!(disk.create(&path.join("new")).is_err(), "it is there");
        disk.sync_directory(&path).unwrap();
        let mut names = disk.names(&path).unwrap();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        assert_eq!(names, [LOCK, "new"]);
        disk.remove(&path.join("new")).unwrap();
        assert!(disk.remove(&path.join(CURRENT)).is_err());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 3);
        for name in ["old", "new", "CURRENT"] {
            assert_eq!(fs::read_to_string(path.join(name)).unwrap(), "theirs");
        }
    }
}
