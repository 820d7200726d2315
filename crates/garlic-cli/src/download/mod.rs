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
use crate::sources::{Format, Source};

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
        return check(path, source, meter);
    }
    fs::create_dir_all(folder).map_err(|e| local(folder, &e))?;
    let mut part = Part::open(&path)?;
    // Another process may have finished it between the question above and the lock that we have now.
    if path.exists() {
        return check(path, source, meter);
    }
    if !part.begin(&source.url)? {
        let outcome = client.fetch(source, &path, &mut part, meter);
        meter.finish();
        if let Err(error) = outcome {
            part.pause();
            return Err(error);
        }
    }
    // Also of what another run has left: neither its beginning nor its size was looked at here.
    if part.done() > source.most {
        return Err(part.refuse(too_large(source)));
    }
    if !has_signature(part.path(), source.format)? {
        return Err(part.refuse(no_file(source)));
    }
    if let Some(md5) = source.md5 {
        let found = digest::<Md5>(part.path())?;
        if found != md5 {
            return Err(part.refuse(Fault::input(format!(
                "{}: has the checksum {found}, not {md5}; nothing was kept",
                source.url
            ))));
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

/// Something else than a file of the format: a page of the network or of the server.
fn no_file(source: &Source) -> anyhow::Error {
    Fault::input(format!(
        "{}: what comes is no {} file, perhaps a page of the network or the server; nothing was kept: open the address \
         in a browser to see",
        source.url,
        source.format.name()
    ))
}

/// A file that has, or claims to have, more bytes than it should.
fn too_large(source: &Source) -> anyhow::Error {
    Fault::input(format!(
        "{}: has more than {} bytes; nothing was kept: raise --max-bytes if that is right",
        source.url, source.most
    ))
}

/// Whether a file begins as those of the format do.
fn has_signature(path: &Path, format: Format) -> anyhow::Result<bool> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(|e| local(path, &e))?;
    let length = format.signature().len() as u64;
    file.take(length)
        .read_to_end(&mut start)
        .map_err(|e| local(path, &e))?;
    Ok(start == format.signature())
}

/// A file that is there already must be of the format, have its publisher's checksum, and still have the one beside it.
fn check(path: PathBuf, source: &Source, meter: &Meter) -> anyhow::Result<Got> {
    if !has_signature(&path, source.format)? {
        return Err(Fault::input(format!(
            "{}: is no {} file; delete it to download it again",
            path.display(),
            source.format.name()
        )));
    }
    let md5 = source.md5;
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
        let sum = digest::<Md5>(&path).unwrap();
        assert_eq!(sum, "900150983cd24fb0d6963f7d28e17f72");
        let source = crate::sources::labels("mnist", None).remove(0);
        let check = |source: &Source| check(path.clone(), source, &Meter::new(true));
        let error = check(&source).err().unwrap().to_string();
        assert!(error.contains("no gzip file"), "{error}");

        fs::write(&path, b"\x1f\x8babc").unwrap();
        let error = check(&source).err().unwrap().to_string();
        assert!(
            error.contains("checksum") && error.contains("delete it"),
            "{error}"
        );
        let known = Source {
            md5: Some("af1779d7e5d4b0e2e8c73bb85f634488"),
            ..source
        };
        assert_eq!(check(&known).unwrap().bytes, 5);
    }
}
