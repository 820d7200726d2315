//! Writing results: checked before the work starts, complete or not there at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Fault, stdout_error};

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    with_stdout(|out| out.write_all(text.as_bytes()))
}

/// Writes one JSON object and a newline to standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(value)?;
    with_stdout(|out| writeln!(out, "{line}"))
}

/// Runs `write` on a buffered standard output and flushes it.
pub(crate) fn with_stdout(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .map_err(stdout_error)
}

/// Finds out whether `path` can be written, before hours are spent on what would go there.
///
/// `inputs` are the files that are read: writing over one of them is refused.
pub(crate) fn check(path: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    let shown = path.display();
    if path.file_name().is_none() || path.is_dir() {
        return Err(Fault::failed(format!(
            "{shown}: is a directory; name the file to write"
        )));
    }
    if inputs.iter().any(|input| is_same(path, input)) {
        return Err(Fault::usage(format!(
            "{shown}: is also read; write the output to another file"
        )));
    }
    if is_special(path) {
        return Ok(());
    }
    check_folder(path, &folder(path))
}

/// Whether two paths lead to the same file, which need not exist yet.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let made = || Some(folder(path).canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(made)
    };
    matches!((place(a), place(b)), (Some(a), Some(b)) if a == b)
}

/// Like [`check`], for an index directory that is to be made.
pub(crate) fn check_directory(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if garlic_ann::live::is_index_directory(path) {
        return Err(Fault::failed(format!(
            "{shown}: there is an index directory already; remove it first, or name another one"
        )));
    }
    if path.is_dir() {
        return check_folder(path, path);
    }
    if path.exists() {
        return Err(Fault::failed(format!(
            "{shown}: is a file; name a directory to make"
        )));
    }
    check_folder(path, &folder(path))
}

/// Finds out whether files can be made in `folder`, for the sake of `path`.
fn check_folder(path: &Path, folder: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if !folder.is_dir() {
        return Err(Fault::failed(format!(
            "{shown}: the directory {} does not exist; create it first",
            folder.display()
        )));
    }
    // The only test that knows about permissions, read-only mounts and quotas alike.
    tempfile::tempfile_in(folder).map(drop).map_err(|e| {
        Fault::failed(format!(
            "{shown}: cannot write into {}: {e}",
            folder.display()
        ))
    })
}

/// Like [`check`], for a file that is replaced by renaming: devices and pipes are refused.
pub(crate) fn check_regular(path: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    if is_special(path) {
        return Err(Fault::failed(format!(
            "{}: is not a regular file; name another one",
            path.display()
        )));
    }
    check(path, inputs)
}

/// Writes a file under its final name only when it is complete; devices and pipes are written directly.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    if is_special(path) {
        return write_through(path, write).map_err(|e| write_error(path, &e));
    }
    garlic_data::atomic::write_atomically(path, |out| write(out)).map_err(|e| write_error(path, &e))
}

/// The error of a write that failed. What was written is never half there, so the message may say so.
pub(crate) fn write_error(path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    let shown = path.display().to_string();
    let text = error.to_string();
    let named = if text.contains(&shown) {
        text
    } else {
        format!("{shown}: {text}")
    };
    Fault::failed(format!(
        "{named}; it was not written: free some space or choose another place"
    ))
}

/// The error of saving an index. What is wrong with the index itself stays what it is.
pub(crate) fn save_error(path: &Path, error: garlic_ann::Error) -> anyhow::Error {
    use garlic_ann::Error;
    match error {
        Error::Io { .. } | Error::Directory { .. } | Error::Locked { .. } => {
            write_error(path, &error)
        }
        error => anyhow::Error::from(error).context(path.display().to_string()),
    }
}

fn write_through(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
    write(&mut out)?;
    out.flush()
}

/// Whether a device or a pipe is there.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        write_file(&path, |w| w.write_all(b"old")).unwrap();
        let error = write_file(&path, |w| {
            w.write_all(b"new")?;
            Err(io::Error::other("disk full"))
        });
        assert!(error.unwrap_err().to_string().contains("disk full"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn outputs_that_cannot_be_written_are_found_early() {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("input");
        fs::write(&input, b"x").unwrap();
        assert!(check(&dir.path().join("new"), &[&input]).is_ok());
        assert!(check(&dir.path().join("missing/new"), &[]).is_err());
        assert!(check(dir.path(), &[]).is_err());
        assert!(check(&dir.path().join("./input"), &[&input]).is_err());
        let new = dir.path().join("new");
        assert!(is_same(&new, &dir.path().join("./new")) && !is_same(&new, &input));
        assert!(!is_same(&new, &dir.path().join("missing/new")));
        assert!(check_directory(&dir.path().join("new")).is_ok());
        assert!(check_directory(dir.path()).is_ok());
        assert!(check_directory(&input).is_err());
        assert!(check_directory(&dir.path().join("missing/new")).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
