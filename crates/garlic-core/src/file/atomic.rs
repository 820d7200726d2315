//! Replacing a file all at once: whoever opens the name sees the old file or the new one, never a part.
//!
//! Write to a temporary file beside the target, sync it, rename it over the target, sync the directory. The
//! steps go through [`Place`], so that tests can make each of them fail, or cut the power between them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes that small writes are gathered into; larger ones go straight to the file.
const BUFFER: usize = 256 * 1024;
/// Temporary names tried when earlier saves of a process with the same number were killed.
const ATTEMPTS: u32 = 100;

/// What replacing a file asks of the file system.
pub trait Place {
    /// A file being written.
    type File: Write;
    /// Creates a temporary file; it must not exist yet.
    fn create(&self, temporary: &Path) -> io::Result<Self::File>;
    /// Forces the file to the device.
    fn sync(&self, file: &mut Self::File) -> io::Result<()>;
    /// Gives the temporary file its final name.
    fn rename(&self, temporary: &Path, target: &Path) -> io::Result<()>;
    /// Forces the directory's new entry to the device.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Removes a temporary file that is not wanted any more.
    fn remove(&self, temporary: &Path) -> io::Result<()> {
        fs::remove_file(temporary)
    }
}

/// The file system of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Place for Disk {
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
        // Elsewhere a directory cannot be opened as a file, and a rename is durable by itself or not at all.
        if cfg!(unix) {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}

/// Replaces `target` by what `content` writes.
///
/// On an error `target` is as it was and the temporary file is gone. The one exception: if only the last step
/// fails, syncing the directory, `target` is the new file, whole, but may not survive a power cut.
pub fn replace<P: Place>(
    place: &P,
    target: &Path,
    content: impl FnOnce(&mut BufWriter<P::File>) -> io::Result<()>,
) -> io::Result<()> {
    prepare(place, target, content)?.commit()
}

/// Writes and syncs a temporary file beside `target`. As long as it is not committed, `target` is untouched;
/// whoever must know whether an error may have changed `target` takes the two halves one by one.
pub fn prepare<'a, P: Place>(
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
    let mut out = BufWriter::with_capacity(BUFFER, file);
    let written = content(&mut out).and_then(|()| out.flush());
    // Not `into_inner` or a plain drop, which would try to write once more after an error.
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

/// A new file, written and synced, that does not have its final name yet. Dropped, it is removed.
pub struct Prepared<'a, P: Place> {
    temporary: Temporary<'a, P>,
    target: &'a Path,
}

impl<P: Place> std::fmt::Debug for Prepared<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl<P: Place> Prepared<'_, P> {
    /// Gives the file its final name and makes that durable.
    pub fn commit(self) -> io::Result<()> {
        let place = self.temporary.place;
        place.rename(&self.temporary.path, self.target)?;
        self.temporary.keep();
        place.sync_directory(directory_of(self.target))
    }
}

fn create<'a, P: Place>(
    place: &'a P,
    directory: &Path,
    name: &str,
) -> io::Result<(P::File, Temporary<'a, P>)> {
    // Cut, because the target's own name may already be as long as the file system allows.
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
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes the temporary file on every way out, a panic included, unless it was renamed.
struct Temporary<'a, P: Place> {
    place: &'a P,
    path: PathBuf,
    keep: bool,
}

impl<P: Place> Temporary<'_, P> {
    fn keep(mut self) {
        self.keep = true;
    }
}

impl<P: Place> Drop for Temporary<'_, P> {
    fn drop(&mut self) {
        if !self.keep {
            // The error that brought us here is the one to report.
            let _ = self.place.remove(&self.path);
        }
    }
}
