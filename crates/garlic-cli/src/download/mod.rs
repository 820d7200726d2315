//! Downloads into the data directory: once, and as a whole or not at all under the final name.
//!
//! While a file comes it is called `NAME.part`, and `NAME.part.json` says where from; `NAME.sha256` is the checksum it
//! came with. `garlic_ann.datasets` uses the same files, so that either goes on with what the other has begun.

mod client;
mod part;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use md5::Md5;
use sha2::Sha256;
use sha2::digest::Digest;

pub(crate) use client::Client;
use part::Part;

use crate::exit::Fault;
use crate::progress::Meter;
use crate::sources::Source;

/// Bytes that are read at once.
const PIECE: usize = 1 << 18;

/// A file in the data directory.
pub(crate) struct Got {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its SHA-256.
    pub(crate) sha256: String,
    /// Whether it came now.
    pub(crate) new: bool,
}

/// The file of `source` in `folder`: downloaded, unless it is there and has the checksum that it came with.
pub(crate) fn get(
    client: &Client,
    source: &Source,
    folder: &Path,
    meter: &mut Meter,
) -> anyhow::Result<Got> {
    let path = folder.join(&source.file);
    if path.exists() {
        return check(path, source.md5, meter);
    }
    fs::create_dir_all(folder).map_err(|e| local(folder, &e))?;
    let mut part = Part::open(&path)?;
    // Another process may have finished it between the question above and the lock that we have now.
    if path.exists() {
        return check(path, source.md5, meter);
    }
    if !part.begin(&source.url)? {
        let outcome = client.fetch(&source.url, &path, &mut part, meter);
        meter.finish();
        if let Err(error) = outcome {
            part.pause();
            return Err(error);
        }
    }
    if let Some(md5) = source.md5 {
        let found = digest::<Md5>(part.path())?;
        if found != md5 {
            part.discard();
            return Err(Fault::input(format!(
                "{}: has the checksum {found}, not {md5}; nothing was kept",
                source.url
            )));
        }
    }
    let (bytes, sha256) = part.finish(&path)?;
    Ok(Got {
        path,
        bytes,
        sha256,
        new: true,
    })
}

/// A file that is there already must have its publisher's checksum, and still have the one beside it.
fn check(path: PathBuf, md5: Option<&str>, meter: &Meter) -> anyhow::Result<Got> {
    let sha256 = digest::<Sha256>(&path)?;
    let beside = fs::read_to_string(sidecar(&path)).ok();
    let kept = beside
        .as_ref()
        .is_none_or(|text| text.split_whitespace().next() == Some(&sha256));
    let known = match md5 {
        Some(md5) => digest::<Md5>(&path)? == md5,
        None => true,
    };
    if !(kept && known) {
        return Err(Fault::input(format!(
            "{}: does not have its checksum; delete it to download it again",
            path.display()
        )));
    }
    if beside.is_none() && md5.is_none() {
        meter.note(&format!(
            "{} is there, without a checksum to compare it with",
            path.display()
        ));
    }
    let bytes = fs::metadata(&path).map_err(|e| local(&path, &e))?.len();
    Ok(Got {
        path,
        bytes,
        sha256,
        new: false,
    })
}

fn sidecar(path: &Path) -> PathBuf {
    beside(path, ".sha256")
}

/// `path` with something after its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn digest<D: Digest>(path: &Path) -> anyhow::Result<String> {
    let failed = |e: io::Error| local(path, &e);
    let mut file = File::open(path).map_err(failed)?;
    let mut digest = D::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).map_err(failed)? {
            0 => return Ok(hex(&digest.finalize())),
            n => digest.update(&piece[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An error of the file system.
fn local(path: &Path, error: &io::Error) -> anyhow::Error {
    Fault::failed(format!(
        "{}: {error}; check the data directory and the space that is left",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_known_by_the_checksum_of_their_publisher() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mnist-train-labels.gz");
        fs::write(&path, b"abc").unwrap();
        let check = |md5| check(path.clone(), Some(md5), &Meter::new(true));
        assert_eq!(check("900150983cd24fb0d6963f7d28e17f72").unwrap().bytes, 3);
        let error = check("d53e105ee54ea40749a09fcbcd1e9432").err().unwrap();
        assert!(error.to_string().contains("delete it"), "{error}");
    }
}
