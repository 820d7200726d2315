//! The current files of an index directory, for programs that inspect them.

use std::path::{Path, PathBuf};

use super::current::{self, CURRENT, index_path, log_path};
use super::directory::length_of;
use super::disk::{Disk, RealDisk};
use garlic_core::Result;

/// The current files of an index directory: those of the generation that `CURRENT` names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Files {
    /// Number of the checkpoint, starting at 1.
    pub generation: u64,
    /// The checkpoint, an index file.
    pub checkpoint: PathBuf,
    /// Length of the checkpoint.
    pub checkpoint_bytes: u64,
    /// The log.
    pub log: PathBuf,
    /// Length of the log, including its header.
    pub log_bytes: u64,
}

/// The current files of an index directory. It takes no lock, so a writer may replace them at any time.
///
/// # Errors
/// [`Error::Directory`](crate::Error::Directory) if it is not an index directory or `CURRENT` is damaged,
/// [`Error::Io`](crate::Error::Io) if a file is missing or cannot be read.
pub fn files(directory: impl AsRef<Path>) -> Result<Files> {
    files_on(&RealDisk, directory.as_ref())
}

/// Whether a path is an index directory, valid or not: a folder with a file `CURRENT`.
pub fn is_index_directory(path: impl AsRef<Path>) -> bool {
    path.as_ref().join(CURRENT).exists()
}

fn files_on(disk: &dyn Disk, directory: &Path) -> Result<Files> {
    let mut generation = current::read(disk, directory)?;
    loop {
        match measure(disk, directory, generation) {
            Ok(files) => return Ok(files),
            Err(error) => {
                // A writer may have written a checkpoint and removed the files meanwhile.
                let now = current::read(disk, directory)?;
                if now == generation {
                    return Err(error);
                }
                generation = now;
            }
        }
    }
}

fn measure(disk: &dyn Disk, directory: &Path, generation: u64) -> Result<Files> {
    let (checkpoint, log) = (
        index_path(directory, generation),
        log_path(directory, generation),
    );
    Ok(Files {
        generation,
        checkpoint_bytes: length_of(disk, &checkpoint)?,
        checkpoint,
        log_bytes: length_of(disk, &log)?,
        log,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use garlic_linalg::Rows;

    use super::*;
    use crate::{Error, Index, Live};

    #[test]
    fn the_files_that_count_are_named_and_a_damaged_current_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("live");
        assert!(!is_index_directory(&place) && !is_index_directory(folder.path()));
        assert!(matches!(files(&place), Err(Error::Directory { .. })));
        let values: Vec<f32> = (0..80).map(|i| (i * 7 % 31) as f32).collect();
        let built = Index::builder().threads(1);
        let built = built.build(Rows::new(&values, 4).unwrap()).unwrap();
        let live = Live::create(&place, built).unwrap();
        live.remove(&[3]).unwrap();
        for generation in [1, 2] {
            let found = files(&place).unwrap();
            let status = live.status().unwrap();
            assert_eq!(found.generation, generation);
            assert_eq!(found.generation, status.generation);
            assert_eq!(found.checkpoint_bytes, status.checkpoint_bytes);
            assert_eq!(found.log_bytes, status.log_bytes);
            for (path, bytes) in [
                (&found.checkpoint, found.checkpoint_bytes),
                (&found.log, found.log_bytes),
            ] {
                assert_eq!(fs::metadata(path).unwrap().len(), bytes);
            }
            live.checkpoint().unwrap();
        }

        // Generation 3 is current. A wrong digit names files that a careless reader would look for.
        let current = place.join(CURRENT);
        let sound = fs::read_to_string(&current).unwrap();
        fs::write(&current, sound.replace("generation 3", "generation 2")).unwrap();
        assert!(is_index_directory(&place));
        match files(&place) {
            Err(Error::Directory { path, message }) => {
                assert_eq!(path, current);
                assert!(message.contains("checksum"), "{message}");
            }
            other => panic!("{other:?}"),
        }
        fs::write(&current, &sound).unwrap();
        let found = files(&place).unwrap();
        fs::remove_file(&found.log).unwrap();
        match files(&place) {
            Err(Error::Io { path, .. }) => assert_eq!(path, found.log),
            other => panic!("{other:?}"),
        }
    }
}
