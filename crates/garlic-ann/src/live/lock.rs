//! An index directory of the machine that is held for writing.
//!
//! A path names whatever is there now; a lock belongs to what was there when it was taken. So a writer holds its
//! directory by a handle and creates, renames and removes files relative to that: it cannot touch another directory
//! that has got its path since. [`Lock::is_in_place`] tells whether the path still names what is held.
//!
//! A forked process has copies of all handles, and the system frees a lock when the last copy is closed. So the
//! process that took it gives it back in so many words, and a child can close its copy.

use std::fs::{self, File, Metadata, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, process};

use super::current::LOCK;
use super::disk::{Held, Lock};

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
    let lock = LockFile {
        path,
        identity: identity(&file.metadata()?),
        process: process::id(),
        file: Mutex::new(Some(file)),
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
    /// The process that has taken the lock.
    process: u32,
    /// There until a forked process closes its copy.
    file: Mutex<Option<File>>,
}

impl Lock for LockFile {
    fn is_in_place(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(found) => identity(&found) == self.identity,
            // Other failures do not tell, and files are named by the handle in any case.
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
        }
    }

    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    fn leave_inherited(&self) {
        // No waiting: a thread that the child does not have may have held this when it was forked.
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
            // Closing the file is not enough while a child has a copy; and should this fail, closing follows.
            let _ = file.unlock();
        }
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
    use crate::segment::Index;
    use garlic_core::Result;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The lock of an open file, taken by a process of this number.
    fn taken_by(process: u32, directory: &Path, file: File) -> LockFile {
        LockFile {
            path: directory.join(LOCK),
            identity: identity(&file.metadata().unwrap()),
            process,
            file: Mutex::new(Some(file)),
        }
    }

    /// A lock as a forked process has it: the same open file, taken by another one.
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
        // A child that ends does not take the lock away from its parent.
        drop(first);
        owner.leave_inherited();
        assert!(hold(place.path()).unwrap().is_none());
        drop(owner);
        assert!(hold(place.path()).unwrap().is_some());
        drop(second);
    }

    #[test]
    fn a_child_that_has_left_does_not_keep_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let (_, file) = platform::open(place.path()).unwrap();
        file.lock().unwrap();
        let child = inherited(place.path(), file.try_clone().unwrap());
        // The parent is killed: it closes its file and says nothing.
        drop(file);
        assert!(hold(place.path()).unwrap().is_none());
        child.leave_inherited();
        assert!(hold(place.path()).unwrap().is_some());
    }

    /// A call that has begun ends in the directory that was opened.
    #[cfg(unix)]
    #[test]
    fn files_are_those_of_the_directory_that_was_opened() {
        use super::super::current::CURRENT;
        use std::io::Write;

        let place = tempfile::tempdir().unwrap();
        let (path, aside) = (place.path().join("live"), place.path().join("aside"));
        fs::create_dir(&path).unwrap();
        let Held { lock, disk } = hold(&path).unwrap().unwrap();
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
