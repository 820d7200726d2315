//! The content of the simulated device, and what a power cut leaves of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a power cut keeps of unsynced data.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keep {
    Nothing,
    Everything,
    /// All names, and this many unsynced bytes of each file.
    Torn(usize),
    /// The names as synced, the contents as written.
    Contents,
    /// Any part of names and contents.
    Random(u64),
}

/// The bytes of a file.
#[derive(Clone, Default)]
pub(super) struct Inode {
    /// As a reader sees it.
    pub(super) seen: Vec<u8>,
    /// As it is on the device.
    pub(super) synced: Vec<u8>,
    /// What the next sync writes to the device.
    pub(super) dirty: Vec<Range<usize>>,
}

impl Inode {
    /// Appends.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let start = self.seen.len();
        self.seen.extend_from_slice(bytes);
        self.dirty.push(start..self.seen.len());
    }

    /// Brings to the device what is dirty.
    pub(super) fn sync(&mut self) {
        self.synced.resize(self.seen.len(), 0);
        for range in self.dirty.drain(..) {
            self.synced[range.clone()].copy_from_slice(&self.seen[range]);
        }
    }

    /// Applies a power cut. `unit` draws from [0, 1).
    pub(super) fn cut(&mut self, keep: Keep, unit: &mut dyn FnMut() -> f64) {
        let mut bytes = std::mem::take(&mut self.synced);
        let mut left = match keep {
            Keep::Nothing => 0,
            Keep::Torn(bytes) => bytes,
            Keep::Everything | Keep::Contents | Keep::Random(_) => usize::MAX,
        };
        for range in self.dirty.drain(..) {
            let range = range.start..range.end.min(range.start.saturating_add(left));
            left -= range.len().min(left);
            if range.is_empty() {
                continue;
            }
            bytes.resize(bytes.len().max(range.end), 0);
            if !matches!(keep, Keep::Random(_)) {
                bytes[range.clone()].copy_from_slice(&self.seen[range]);
                continue;
            }
            // Pieces of any size are written, stay zero, or keep their old content.
            let mut at = range.start;
            while at < range.end {
                let piece = at..range.end.min(at + 1 + (unit() * 64.0) as usize);
                at = piece.end;
                match (unit() * 8.0) as usize {
                    0 => bytes[piece].fill_with(|| (unit() * 256.0) as u8),
                    1 | 2 => {}
                    _ => bytes[piece.clone()].copy_from_slice(&self.seen[piece]),
                }
            }
            if unit() < 0.5 {
                let lost = (unit() * range.len() as f64) as usize;
                bytes.truncate(range.end - lost);
            }
        }
        self.seen = bytes.clone();
        self.synced = bytes;
    }
}

/// A change of a directory.
#[derive(Clone)]
pub(super) enum Change {
    Link(PathBuf, usize),
    Rename(PathBuf, PathBuf, usize),
    Unlink(PathBuf),
}

impl Change {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Link(path, _) | Self::Rename(_, path, _) | Self::Unlink(path) => path,
        }
    }

    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
        }
    }
}

/// Stands for a directory among the numbers of inodes.
pub(super) const DIRECTORY: usize = usize::MAX;
