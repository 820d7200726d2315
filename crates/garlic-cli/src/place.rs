//! Where an index is kept: in a single file, or in a directory that keeps every change.

use std::fs;
use std::path::{Path, PathBuf};

use garlic_ann::store::Summary;
use garlic_ann::{Index, Live};

use crate::exit::Fault;

/// What an index file begins with.
const SIGNATURE: &[u8] = b"GARLIC\0\x1a";

/// Whether the path is taken for an index directory; everything else is taken for a file.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

/// Whether there is an index directory, or a file that begins as an index does.
pub(crate) fn is_index(path: &Path) -> bool {
    if is_directory(path) {
        return path.join("CURRENT").exists();
    }
    let mut start = [0; SIGNATURE.len()];
    let read = |mut file: fs::File| std::io::Read::read_exact(&mut file, &mut start).ok();
    // Asked before opening: a pipe would wait for a writer.
    path.is_file() && fs::File::open(path).ok().and_then(read).is_some() && start == SIGNATURE
}

/// Opens an index where it lies: a file is mapped, a directory is read as it is now, without its lock.
pub(crate) fn open(path: &Path) -> anyhow::Result<Index> {
    if is_directory(path) {
        let live = Live::open_read_only(path)?;
        return Ok(Index::clone(&live.snapshot()));
    }
    Ok(Index::open(path)?)
}

/// Opens an index to measure it: a file is read into memory, so that the first search is as fast as the others.
pub(crate) fn load(path: &Path) -> anyhow::Result<Index> {
    if is_directory(path) {
        return open(path);
    }
    Ok(Index::load(path)?)
}

/// Reads an index that is to be written again. All of it is checked: what is damaged must not get a checksum that
/// says it is sound.
pub(crate) fn load_sound(path: &Path) -> anyhow::Result<Index> {
    if is_directory(path) {
        return Ok(verify_directory(path)?.1);
    }
    Ok(Index::load(path)?)
}

/// Bytes on the device; of a directory its checkpoint and its log.
pub(crate) fn bytes(path: &Path) -> Option<u64> {
    if is_directory(path) {
        let files = Files::of(path).ok()?;
        return Some(files.checkpoint_bytes + files.log_bytes);
    }
    fs::metadata(path).map(|m| m.len()).ok()
}

/// The files of an index directory that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// Number of the checkpoint.
    pub(crate) generation: u64,
    /// The checkpoint, an index file.
    pub(crate) checkpoint: PathBuf,
    /// Its length.
    pub(crate) checkpoint_bytes: u64,
    /// Length of the log, its header included.
    pub(crate) log_bytes: u64,
}

impl Files {
    /// The files of a directory that could be opened; a writer may replace them at any moment.
    pub(crate) fn of(directory: &Path) -> anyhow::Result<Self> {
        let current = directory.join("CURRENT");
        let failed = |why: String| Fault::input(format!("{}: {why}", current.display()));
        let text = fs::read_to_string(&current).map_err(|e| failed(e.to_string()))?;
        let generation: u64 = text
            .lines()
            .nth(1)
            .and_then(|line| line.strip_prefix("generation ")?.parse().ok())
            .ok_or_else(|| failed("the file is damaged: it does not name a generation".into()))?;
        let length = |path: &Path| fs::metadata(path).map_or(0, |m| m.len());
        let checkpoint = directory.join(format!("index-{generation}.garlic"));
        Ok(Self {
            generation,
            checkpoint_bytes: length(&checkpoint),
            log_bytes: length(&directory.join(format!("log-{generation}"))),
            checkpoint,
        })
    }
}

/// Checks everything in a directory: reads its log, and verifies its checkpoint. Gives what the checkpoint holds, the
/// index with the log applied, and the files.
pub(crate) fn verify_directory(path: &Path) -> anyhow::Result<(Summary, Index, Files)> {
    loop {
        let index = open(path)?;
        let files = Files::of(path)?;
        match Index::verify(&files.checkpoint) {
            Ok(summary) => return Ok((summary, index, files)),
            // A writer has made another checkpoint meanwhile, and removed this one.
            Err(_) if Files::of(path)?.generation != files.generation => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use garlic_ann::Rows;

    use super::*;

    #[test]
    fn files_and_directories_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (file, directory) = (folder.path().join("a"), folder.path().join("b"));
        let values: Vec<f32> = (0..80).map(|i| (i * 7 % 31) as f32).collect();
        let built = Index::builder().threads(1);
        let built = built.build(Rows::new(&values, 4).unwrap()).unwrap();
        built.save(&file).unwrap();
        let live = Live::create(&directory, built.clone()).unwrap();

        assert!(is_index(&file) && is_index(&directory));
        assert!(!is_index(folder.path()) && !is_index(&folder.path().join("c")));
        fs::write(folder.path().join("c"), b"short").unwrap();
        assert!(!is_index(&folder.path().join("c")));
        for path in [&file, &directory] {
            assert_eq!(open(path).unwrap(), built);
            assert_eq!(load(path).unwrap(), built);
            assert_eq!(load_sound(path).unwrap(), built);
        }
        let length = fs::metadata(&file).unwrap().len();
        assert_eq!(bytes(&file), Some(length));
        assert_eq!(bytes(&directory), Some(length + 32));

        live.remove(&[3]).unwrap();
        let (summary, index, files) = verify_directory(&directory).unwrap();
        assert_eq!((summary.points, index.len(), files.generation), (20, 19, 1));
        assert!(files.log_bytes > 32);
        live.checkpoint().unwrap();
        let files = Files::of(&directory).unwrap();
        assert_eq!((files.generation, files.log_bytes), (2, 32));
    }
}
