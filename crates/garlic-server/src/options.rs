//! What a server is started with.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::keys::Keys;

/// An index that is served: its name and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The name in addresses.
    pub name: String,
    /// An index file, or an index directory.
    pub path: PathBuf,
}

/// A name that cannot be in an address.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{name}` cannot be the name of an index: use letters, digits, `-`, `_` and `.`, at most 100 of them and not `.` \
     first; name an index with NAME=PATH"
)]
pub struct ServedError {
    name: String,
}

/// The end of the names of index files.
pub(crate) const FILE_END: &str = ".garlic";

/// Whether a name can be part of an address and of a path below the root.
pub(crate) fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=100).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_fine)
}

impl FromStr for Served {
    type Err = ServedError;

    /// Reads `PATH` or `NAME=PATH`. Without a name, it is that of the file without `.garlic`.
    fn from_str(text: &str) -> Result<Self, ServedError> {
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        let (name, path) = match named {
            Some((name, path)) => (name.to_owned(), Path::new(path)),
            None => return Self::at(Path::new(text)),
        };
        Ok(Self {
            name,
            path: path.to_owned(),
        })
    }
}

impl Served {
    /// The index at a path, with the name of the file without `.garlic`.
    pub(crate) fn at(path: &Path) -> Result<Self, ServedError> {
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        let name = last.strip_suffix(FILE_END).unwrap_or(&last).to_owned();
        let path = path.to_owned();
        match is_name(&name) {
            true => Ok(Self { name, path }),
            false => Err(ServedError { name }),
        }
    }
}

/// A certificate and its key, in PEM files.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The chain of certificates, that of the server first.
    pub certificates: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Limits of what one client can ask for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the body of a request.
    pub body: usize,
    /// Bytes of a snapshot that is restored.
    pub snapshot: u64,
    /// Neighbours of a query.
    pub k: usize,
    /// Neighbours of all queries of a request.
    pub hits: usize,
    /// Bytes of the vectors of an answer, and of those of points that a search names.
    pub vectors: usize,
    /// Snapshots that are downloaded at a time. Each takes the memory and the room on the disk of its index.
    pub downloads: usize,
    /// Dimension of the vectors of an index that is created.
    pub dim: usize,
    /// Requests that are worked on at a time.
    pub requests: usize,
    /// Open connections.
    pub connections: usize,
    /// Time to answer a request whose body is there. Builds, snapshots and compactions have no limit.
    pub time: Duration,
    /// Time to send the head of a request, to send its body, to wait for the next one on a connection, and between two
    /// writes.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 64 << 20,
            snapshot: 64 << 30,
            k: 10_000,
            hits: 1_000_000,
            vectors: 256 << 20,
            downloads: 8,
            dim: 32_768,
            requests: 512,
            connections: 16_384,
            time: Duration::from_secs(30),
            idle: Duration::from_secs(30),
        }
    }
}

/// What a server is started with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The indexes.
    pub indexes: Vec<Served>,
    /// A directory whose indexes are served, and in which new ones are created.
    pub root: Option<PathBuf>,
    /// The address to listen on; port 0 takes a free one.
    pub address: SocketAddr,
    /// The keys that requests need.
    pub keys: Keys,
    /// Whether an address beyond loopback needs no keys.
    pub insecure: bool,
    /// Whether directories are opened without their lock, and nothing can be changed.
    pub read_only: bool,
    /// TLS instead of plain HTTP.
    pub tls: Option<Tls>,
    /// Names that clients may call the server by, beside its address and `localhost`.
    pub hosts: Vec<String>,
    /// Threads that search.
    pub threads: usize,
    /// Limits of requests.
    pub limits: Limits,
}

impl Default for Options {
    /// No index, `127.0.0.1:7878`, no keys, a thread for each core.
    fn default() -> Self {
        Self {
            indexes: Vec::new(),
            root: None,
            address: SocketAddr::from(([127, 0, 0, 1], 7878)),
            keys: Keys::default(),
            insecure: false,
            read_only: false,
            tls: None,
            hosts: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            limits: Limits::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_paths_or_are_given() {
        let named = |text: &str| text.parse::<Served>().map(|s| (s.name, s.path));
        let expected = |name: &str, path: &str| (name.to_owned(), PathBuf::from(path));
        assert_eq!(named("a/b.garlic").unwrap(), expected("b", "a/b.garlic"));
        assert_eq!(named("a/live/").unwrap(), expected("live", "a/live/"));
        assert_eq!(named("x=a=b.garlic").unwrap(), expected("x", "a=b.garlic"));
        assert_eq!(named("./a b=c").ok(), None, "neither is a name");
        let at = Served::at(Path::new("x=y/b.garlic")).unwrap();
        assert_eq!((at.name, at.path), expected("b", "x=y/b.garlic"));
        for wrong in ["..", "a b", "", "ä", ".hidden"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
