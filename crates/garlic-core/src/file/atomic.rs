//! Replaces a file atomically: a reader sees the old file or the new one, never a part.
//!
//! It writes a temporary file beside the target, syncs it, renames it over the target and syncs the directory. The
//! steps go through [`FileOps`], so that tests can make each of them fail and simulate a power cut between them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Size of the write buffer. Larger writes bypass it.
const BUFFER_BYTES: usize = 256 * 1024;
/// Number of temporary names to try. Names may be taken by killed processes with the same number.
const MAX_TEMPORARY_NAMES: u32 = 100;

/// The file system operations of a replacement.
pub trait FileOps {
    /// A file being written.
    type File: Write;
    /// Creates a temporary file that does not exist yet.
    fn create(&self, temporary: &Path) -> io::Result<Self::File>;
    /// Syncs the file to the device.
    fn sync(&self, file: &mut Self::File) -> io::Result<()>;
    /// Renames the temporary file to its final name.
    fn rename(&self, temporary: &Path, target: &Path) -> io::Result<()>;
    /// Syncs the directory to the device.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Removes an unused temporary file.
    fn remove(&self, temporary: &Path) -> io::Result<()> {
        fs::remove_file(temporary)
    }
}

/// The real file system.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl FileOps for Disk {
    type File = File;

    fn create(&self, temporary: &Path) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(temporary)
    }

    fn sync(&self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, temporary: &Path, target: &Path) -> io::Result<()> {
        fs::rename(temporary, target)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        // Other systems cannot open a directory as a file, and give no control over the durability of a rename.
        if cfg!(unix) {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}

/// Replaces `target` by what `content` writes.
///
/// On an error `target` is unchanged and the temporary file is removed. There is one exception: if only the sync of
/// the directory fails, `target` is the complete new file but may not survive a power cut.
pub fn replace<P: FileOps>(
    place: &P,
    target: &Path,
    content: impl FnOnce(&mut BufWriter<P::File>) -> io::Result<()>,
) -> io::Result<()> {
    prepare(place, target, content)?.commit()
}

/// Writes and syncs a temporary file beside `target`, which stays untouched until the commit. Use the two steps
/// separately to know whether an error may have changed `target`.
pub fn prepare<'a, P: FileOps>(
    place: &'a P,
    target: &'a Path,
    content: impl FnOnce(&mut BufWriter<P::File>) -> io::Result<()>,
) -> io::Result<Prepared<'a, P>> {
    if target.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "is a directory; give the name of a file",
        ));
    }
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "is not the name of a file",
        ));
    };
    let directory = directory_of(target);
    let (file, temporary) = create(place, directory, &name.to_string_lossy())?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let written = content(&mut out).and_then(|()| out.flush());
    // `into_inner` and drop would write again after an error.
    let (mut file, _) = out.into_parts();
    written?;
    place.sync(&mut file)?;
    Ok(Prepared { temporary, target })
}

/// The directory that a file is in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A written and synced file without its final name. Dropping it removes the file.
pub struct Prepared<'a, P: FileOps> {
    temporary: Temporary<'a, P>,
    target: &'a Path,
}

impl<P: FileOps> std::fmt::Debug for Prepared<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl<P: FileOps> Prepared<'_, P> {
    /// Renames the file to its final name and syncs the directory.
    pub fn commit(self) -> io::Result<()> {
        let place = self.temporary.place;
        place.rename(&self.temporary.path, self.target)?;
        self.temporary.keep();
        place.sync_directory(directory_of(self.target))
    }
}

fn create<'a, P: FileOps>(
    place: &'a P,
    directory: &Path,
    name: &str,
) -> io::Result<(P::File, Temporary<'a, P>)> {
    // Shorten the name, because that of the target may already have the maximum length.
    let stem: String = name.chars().take(40).collect();
    let process = std::process::id();
    let mut attempt = 0;
    loop {
        let path = directory.join(format!(".{stem}.{process}-{attempt}.tmp"));
        match place.create(&path) {
            Ok(file) => {
                let keep = false;
                return Ok((file, Temporary { place, path, keep }));
            }
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && attempt < MAX_TEMPORARY_NAMES =>
            {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes the temporary file unless it was renamed, even on a panic.
struct Temporary<'a, P: FileOps> {
    place: &'a P,
    path: PathBuf,
    keep: bool,
}

impl<P: FileOps> Temporary<'_, P> {
    fn keep(mut self) {
        self.keep = true;
    }
}

impl<P: FileOps> Drop for Temporary<'_, P> {
    fn drop(&mut self) {
        if !self.keep {
            // Report the error that led here, not this one.
            let _ = self.place.remove(&self.path);
        }
    }
}
