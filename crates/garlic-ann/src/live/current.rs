//! The file `CURRENT`, which names the current generation of checkpoint and log.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::disk::Disk;
use garlic_core::{Error, Result};

/// Name of the file.
pub(super) const CURRENT: &str = "CURRENT";
/// Name of the file that a writer locks.
pub(super) const LOCK: &str = "LOCK";
/// Upper limit of the size of `CURRENT`.
const MAX_CURRENT_BYTES: u64 = 256;

/// Content of the file for a generation.
pub(super) fn encode(generation: u64) -> String {
    let text = format!("GARLIC directory 1\ngeneration {generation}\n");
    let checksum = crc32fast::hash(text.as_bytes());
    format!("{text}checksum {checksum:08x}\n")
}

/// The generation that `CURRENT` of a directory names.
pub(super) fn read(disk: &dyn Disk, directory: &Path) -> Result<u64> {
    let path = directory.join(CURRENT);
    let (input, _) = disk.read(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::Directory {
            path: directory.to_owned(),
            message: "there is no index directory here (no file CURRENT); create one first".into(),
        },
        _ => Error::Io {
            path: path.clone(),
            source,
        },
    })?;
    let mut bytes = Vec::new();
    let read = input.take(MAX_CURRENT_BYTES).read_to_end(&mut bytes);
    read.map_err(|source| Error::Io {
        path: path.clone(),
        source,
    })?;
    decode(&bytes).map_err(|message| Error::Directory { path, message })
}

/// Accepts only the exact bytes of [`encode`], so that any damage is detected.
fn decode(bytes: &[u8]) -> Result<u64, String> {
    let text = str::from_utf8(bytes).unwrap_or_default();
    let mut lines = text.lines();
    match lines
        .next()
        .and_then(|l| l.strip_prefix("GARLIC directory "))
    {
        Some("1") => {}
        Some(version) if version.parse::<u32>().is_ok() => {
            return Err(format!(
                "directory version {version}, this program reads 1; update the program"
            ));
        }
        _ => return Err("the file is damaged: it does not name a generation".into()),
    }
    lines
        .next()
        .and_then(|line| line.strip_prefix("generation "))
        .and_then(|number| number.parse().ok())
        .filter(|generation| encode(*generation).as_bytes() == bytes)
        .ok_or_else(|| "the file is damaged: its checksum is wrong".into())
}

/// Path of the checkpoint of a generation.
pub(super) fn index_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("index-{generation}.garlic"))
}

/// Path of the log of a generation.
pub(super) fn log_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("log-{generation}"))
}

/// Whether a file of this name is a leftover of another generation or of a killed writer. Files with other names do
/// not belong to the index.
pub(super) fn is_leftover(name: &str, generation: u64) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    if let Some(of) = name
        .strip_prefix("index-")
        .and_then(|rest| rest.strip_suffix(".garlic"))
        .or_else(|| name.strip_prefix("log-"))
    {
        return number(of).is_some_and(|of| of != generation);
    }
    let temporary = name
        .strip_prefix('.')
        .and_then(|rest| rest.strip_suffix(".tmp"));
    temporary.is_some_and(|stem| {
        ["CURRENT.", "index-", "log-"]
            .iter()
            .any(|ours| stem.starts_with(ours))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_of_current_is_noticed() {
        for generation in [1, 9, 10, u64::MAX] {
            let bytes = encode(generation).into_bytes();
            assert_eq!(decode(&bytes), Ok(generation));
            for at in 0..bytes.len() {
                assert!(decode(&bytes[..at]).is_err());
                for flip in 1..=255 {
                    let mut changed = bytes.clone();
                    changed[at] ^= flip;
                    assert!(decode(&changed).is_err(), "{generation} {at} {flip}");
                }
            }
        }
    }

    #[test]
    fn only_our_own_leftovers_are_cleaned() {
        let left = |name| is_leftover(name, 7);
        for name in [
            "index-6.garlic",
            "index-8.garlic",
            "log-1",
            ".log-7.12-0.tmp",
            ".CURRENT.3-1.tmp",
            ".index-8.garlic.3-1.tmp",
        ] {
            assert!(left(name), "{name}");
        }
        for name in [
            "index-7.garlic",
            "log-7",
            "CURRENT",
            "LOCK",
            "index-x.garlic",
            "index-.garlic",
            "log-7.txt",
            "notes.tmp",
            ".notes.tmp",
            "index-6",
        ] {
            assert!(!left(name), "{name}");
        }
    }
}
