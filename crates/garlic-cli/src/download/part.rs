//! What has come of a file so far, and how to know that it is right.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::Sha256;
use sha2::digest::Digest as _;

use super::{PIECE, beside, hex, local, sidecar};
use crate::exit::Fault;

/// Bytes after which the note is brought up to date: what a killed process may have to fetch again.
const NOTE_EVERY: u64 = 16 << 20;

/// Where a part comes from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Note {
    url: String,
    /// What the server calls this version of the file (`ETag` or `Last-Modified`): only the same one can go on.
    version: Option<String>,
    /// Bytes in all.
    length: Option<u64>,
    /// Bytes that are known to be right; notes of the Python package have none.
    #[serde(default)]
    checked: Option<Checked>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Checked {
    bytes: u64,
    sha256: String,
}

/// A file that is coming. One process at a time has it.
pub(super) struct Part {
    path: PathBuf,
    note_path: PathBuf,
    file: File,
    note: Note,
    digest: Sha256,
    done: u64,
    noted: u64,
}

impl Part {
    /// Takes the part of `path`, which need not be there yet.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let part = beside(path, ".part");
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&part).map_err(|e| local(&part, &e))?;
        // File systems without locks do without.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Fault::failed(format!(
                "{}: another process is downloading it; wait for that",
                path.display()
            )));
        }
        Ok(Self {
            note_path: beside(path, ".part.json"),
            path: part,
            file,
            note: Note::default(),
            digest: Sha256::new(),
            done: 0,
            noted: 0,
        })
    }

    /// Keeps what is there of `url` and is right; whether that is all of it.
    pub(super) fn begin(&mut self, url: &str) -> anyhow::Result<bool> {
        let known = fs::read(&self.note_path)
            .ok()
            .and_then(|text| serde_json::from_slice::<Note>(&text).ok())
            .filter(|note| note.url == url && note.version.is_some());
        if let Some(note) = known
            && self.trust(&note).map_err(|e| local(&self.path, &e))?
        {
            self.note = note;
        } else {
            self.note.url = url.to_owned();
            self.restart()?;
        }
        Ok(self.done > 0 && self.note.length == Some(self.done))
    }

    /// Reads what is there up to where the note vouches for it, and cuts off the rest.
    fn trust(&mut self, note: &Note) -> io::Result<bool> {
        let have = self.file.metadata()?.len();
        let wanted = note.checked.as_ref().map_or(have, |c| c.bytes);
        if wanted > have || note.length.is_some_and(|length| wanted > length) {
            return Ok(false);
        }
        self.file.seek(SeekFrom::Start(0))?;
        let mut piece = vec![0; PIECE];
        while self.done < wanted {
            let most = PIECE.min((wanted - self.done) as usize);
            let n = self.file.read(&mut piece[..most])?;
            if n == 0 {
                return Ok(false);
            }
            self.digest.update(&piece[..n]);
            self.done += n as u64;
        }
        let right = note
            .checked
            .as_ref()
            .is_none_or(|c| c.sha256 == self.sha256());
        if right {
            self.file.set_len(wanted)?;
            self.noted = wanted;
        }
        Ok(right)
    }

    /// Begins with nothing.
    fn restart(&mut self) -> anyhow::Result<()> {
        (self.digest, self.done, self.noted) = (Sha256::new(), 0, 0);
        let cleared = self.file.set_len(0);
        cleared
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(|e| local(&self.path, &e))?;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are there.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// The version that these bytes are of, if there are any.
    pub(super) fn version(&self) -> Option<&str> {
        self.note.version.as_deref().filter(|_| self.done > 0)
    }

    /// The server has answered: what follows is of this version, and goes on or begins anew.
    pub(super) fn expect(
        &mut self,
        goes_on: bool,
        version: Option<String>,
        length: Option<u64>,
    ) -> anyhow::Result<()> {
        if !goes_on {
            self.restart()?;
        }
        (self.note.version, self.note.length) = (version, length);
        self.write_note()
    }

    /// Takes what has come.
    pub(super) fn push(&mut self, piece: &[u8]) -> anyhow::Result<()> {
        self.file
            .write_all(piece)
            .map_err(|e| local(&self.path, &e))?;
        self.digest.update(piece);
        self.done += piece.len() as u64;
        if self.done - self.noted >= NOTE_EVERY {
            self.write_note()?;
        }
        Ok(())
    }

    /// Leaves things so that another run can go on; a part that holds nothing goes.
    pub(super) fn pause(&mut self) {
        if self.done == 0 {
            self.discard();
        } else {
            // Without a new note the next run goes on from the one before.
            let _ = self.write_note();
        }
    }

    fn write_note(&mut self) -> anyhow::Result<()> {
        self.note.checked = Some(Checked {
            bytes: self.done,
            sha256: self.sha256(),
        });
        self.noted = self.done;
        let text = serde_json::to_vec(&self.note)?;
        fs::write(&self.note_path, text).map_err(|e| local(&self.note_path, &e))
    }

    fn sha256(&self) -> String {
        hex(&self.digest.clone().finalize())
    }

    /// Forgets all of it because of `error`, which it gives back.
    pub(super) fn refuse(&mut self, error: anyhow::Error) -> anyhow::Error {
        self.discard();
        // Nothing is left to go on with.
        self.done = 0;
        error
    }

    /// Forgets all of it.
    fn discard(&mut self) {
        // What cannot be removed is checked by the next run.
        let _ = fs::remove_file(&self.note_path);
        let _ = fs::remove_file(&self.path);
    }

    /// Gives the file its name; its size and checksum.
    pub(super) fn finish(self, path: &Path) -> anyhow::Result<(u64, String)> {
        let sha256 = self.sha256();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The checksum first: a file without one is a file that was put there by hand.
        let beside = sidecar(path);
        fs::write(&beside, format!("{sha256}  {name}\n"))
            .and_then(|()| self.file.sync_all())
            .and_then(|()| fs::rename(&self.path, path))
            .map_err(|e| {
                // The part stays, for the next run; a checksum of nothing goes.
                let _ = fs::remove_file(&beside);
                local(path, &e)
            })?;
        let _ = fs::remove_file(&self.note_path);
        Ok((self.done, sha256))
    }
}
