//! Where an index is kept: in a single file, or in a directory that keeps every change.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use garlic_ann::live::{self, Files};
use garlic_ann::store::Summary;
use garlic_ann::{Error, Index, Live, Rows, Search};
use garlic_any::AnyIndex;
use garlic_table::{Snapshot, check_table};

use crate::exit::Fault;

/// Whether the path is taken for an index directory; everything else is taken for a file.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

/// Opens an index where it lies: a file is mapped, a directory is read as it is now, without its lock.
pub(crate) fn open(path: &Path) -> anyhow::Result<AnyIndex> {
    let index = match is_directory(path) {
        true => open_directory(path)?.into(),
        false => AnyIndex::open(path)?,
    };
    // What is mapped is checked at its first use, and the error does not know the name. Searching for nothing is one.
    let nothing = Rows::new(&[], index.dim()).map_err(Error::from)?;
    index
        .search_batch(nothing, &Search::new(1))
        .with_context(|| path.display().to_string())?;
    Ok(index)
}

/// Opens an index file for searches that read vectors from the disk.
pub(crate) fn open_on_disk(path: &Path) -> anyhow::Result<AnyIndex> {
    if is_directory(path) {
        return Err(Fault::usage(format!(
            "{}: --on-disk takes an index file, and this is a directory",
            path.display()
        )));
    }
    Ok(AnyIndex::open_on_disk(path)?)
}

/// A directory as it is now, without its lock.
fn open_directory(path: &Path) -> garlic_ann::Result<Index> {
    Ok(Index::clone(&Live::open_read_only(path)?.snapshot()))
}

/// Opens an index to measure it: a file is read into memory, so that the first search is as fast as the others.
pub(crate) fn load(path: &Path) -> anyhow::Result<AnyIndex> {
    if is_directory(path) {
        return open(path);
    }
    Ok(AnyIndex::load(path)?)
}

/// Reads an index that is to be written again. All of it is checked: what is damaged must not get a checksum that
/// says it is sound.
pub(crate) fn load_sound(path: &Path) -> anyhow::Result<AnyIndex> {
    if is_directory(path) {
        return Ok(verify_directory(path)?.1.into());
    }
    Ok(AnyIndex::load(path)?)
}

/// Bytes on the device; of a directory its checkpoint and its log.
pub(crate) fn bytes(path: &Path) -> Option<u64> {
    if is_directory(path) {
        let files = live::files(path).ok()?;
        return Some(files.checkpoint_bytes + files.log_bytes);
    }
    fs::metadata(path).map(|m| m.len()).ok()
}

/// Checks everything in a directory: reads its log, and verifies its checkpoint. Gives what the checkpoint holds, the
/// index with the log applied, and the files.
pub(crate) fn verify_directory(path: &Path) -> anyhow::Result<(Summary, Index, Files)> {
    loop {
        let index = open_directory(path)?;
        let files = live::files(path)?;
        match Index::verify(&files.checkpoint) {
            Ok(summary) => {
                check_table(&Snapshot::new(index.clone().into())?)?;
                return Ok((summary, index, files));
            }
            // A writer has made another checkpoint meanwhile, and removed this one.
            Err(_) if live::files(path)?.generation != files.generation => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_directories_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (file, directory) = (folder.path().join("a"), folder.path().join("b"));
        let values: Vec<f32> = (0..80).map(|i| (i * 7 % 31) as f32).collect();
        let built = Index::builder().threads(1);
        let built = built.build(Rows::new(&values, 4).unwrap()).unwrap();
        built.save(&file).unwrap();
        let writer = Live::create(&directory, built.clone()).unwrap();

        assert!(is_directory(&directory) && !is_directory(&file));
        for path in [&file, &directory] {
            let expected = AnyIndex::from(built.clone());
            assert_eq!(open(path).unwrap(), expected);
            assert_eq!(load(path).unwrap(), expected);
            assert_eq!(load_sound(path).unwrap(), expected);
        }
        let length = fs::metadata(&file).unwrap().len();
        assert_eq!(bytes(&file), Some(length));
        assert_eq!(bytes(&directory), Some(length + 32));

        writer.remove(&[3]).unwrap();
        let (summary, index, files) = verify_directory(&directory).unwrap();
        assert_eq!((summary.points, index.len(), files.generation), (20, 19, 1));
        assert!(files.log_bytes > 32);
        writer.checkpoint().unwrap();
        let files = live::files(&directory).unwrap();
        assert_eq!((files.generation, files.log_bytes), (2, 32));
    }
}
