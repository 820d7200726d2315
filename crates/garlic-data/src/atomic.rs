//! Whole files or none: a reader never sees a file that is half written.
//!
//! The content goes to a temporary file in the same folder, is flushed to the disk, and takes the
//! final name in one step; then the folder is flushed, so that the name survives a power cut too.
//! A file that some process has mapped keeps its old content for that process.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::{DataError, Result};

const BUFFER: usize = 1 << 20;

/// Writes the file at `path` with what `write` produces, replacing it whole or not at all.
///
/// An error of `write`, or of any later step, leaves the old file as it was and removes the
/// temporary one.
pub fn write_atomically<F>(path: impl AsRef<Path>, write: F) -> Result<()>
where
    F: FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
{
    let path = path.as_ref();
    let Some(name) = path.file_name() else {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        return Err(DataError::io("write", path, cause));
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };

    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    // Without this the file would be private to its owner, unlike any other file they write.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let temporary = builder
        .tempfile_in(folder)
        .map_err(|cause| DataError::io("create a temporary file beside", path, cause))?;

    let mut writer = BufWriter::with_capacity(BUFFER, temporary);
    write(&mut writer).map_err(|cause| DataError::io("write", path, cause))?;
    let temporary = writer
        .into_inner()
        .map_err(|failed| DataError::io("write", path, failed.into_error()))?;
    temporary
        .as_file()
        .sync_all()
        .map_err(|cause| DataError::io("flush", path, cause))?;
    temporary
        .persist(path)
        .map_err(|failed| DataError::io("rename a temporary file to", path, failed.error))?;
    sync_folder(folder)
}

/// Makes the names in a folder durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<()> {
    fs::File::open(folder)
        .and_then(|handle| handle.sync_all())
        .map_err(|cause| DataError::io("flush the folder", folder, cause))
}

/// Other systems have no call for it.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn writes_and_replaces_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        write_atomically(&path, |w| w.write_all(b"first, and longer")).unwrap();
        write_atomically(&path, |w| w.write_all(b"second")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn failure_keeps_the_old_file_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        write_atomically(&path, |w| w.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |w| {
            w.write_all(b"half")?;
            Err(io::Error::other("disk on fire"))
        });
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("a.bin") && message.contains("disk on fire"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn errors_name_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("a.bin");
        let error = write_atomically(&path, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
        assert!(matches!(
            write_atomically("..", |_| Ok(())),
            Err(DataError::Io { .. })
        ));
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_an_ordinary_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        write_atomically(&ours, |_| Ok(())).unwrap();
        fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
