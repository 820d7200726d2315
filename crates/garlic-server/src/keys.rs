//! API keys: who may read, and who may write.

use std::hint::black_box;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a key. Digests of equal length are compared in constant time, and the keys themselves are not kept.
type Hashed = [u8; 32];

/// The keys of a server. A key for writing reads, too. Without keys, everybody may do everything.
#[derive(Clone, Default)]
pub struct Keys {
    read: Vec<Hashed>,
    write: Vec<Hashed>,
}

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A line that is not `read KEY` or `write KEY`.
    #[error("line {line} of the keys is not `read KEY` or `write KEY`")]
    Line {
        /// Number of the line, from 1 on.
        line: usize,
    },
    /// A key that could be guessed, or that a header cannot hold.
    #[error(
        "a key must have 16 to 256 characters of letters, digits and -._~+/=; `openssl rand -hex 32` makes one"
    )]
    Key,
}

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Nothing that needs a key.
    Open,
    /// Read indexes.
    Read,
    /// Read and change them.
    Write,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (read, write) = (self.read.len(), self.write.len());
        write!(f, "Keys({read} to read, {write} to write)")
    }
}

impl Keys {
    /// Reads lines of `read KEY` or `write KEY`. Empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    /// [`KeysError`] without the key itself.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let mut keys = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match text.split_once(char::is_whitespace) {
                Some(("read", key)) => keys.allow_reading(key.trim())?,
                Some(("write", key)) => keys.allow_writing(key.trim())?,
                _ => return Err(KeysError::Line { line }),
            }
        }
        Ok(keys)
    }

    /// Adds a key that reads.
    ///
    /// # Errors
    /// [`KeysError::Key`].
    pub fn allow_reading(&mut self, key: &str) -> Result<(), KeysError> {
        self.read.push(hashed(key)?);
        Ok(())
    }

    /// Adds a key that reads and writes.
    ///
    /// # Errors
    /// [`KeysError::Key`].
    pub fn allow_writing(&mut self, key: &str) -> Result<(), KeysError> {
        self.write.push(hashed(key)?);
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// What a request with this key may do.
    pub(crate) fn access(&self, key: Option<&str>) -> Access {
        if self.is_empty() {
            return Access::Write;
        }
        let Some(key) = key else {
            return Access::Open;
        };
        let given: Hashed = Sha256::digest(key.as_bytes()).into();
        // All keys are compared, whichever is the right one.
        let found = |keys: &[Hashed]| keys.iter().fold(0, |n, key| n + same(key, &given)) > 0;
        match (found(&self.write), found(&self.read)) {
            (true, _) => Access::Write,
            (_, true) => Access::Read,
            _ => Access::Open,
        }
    }
}

fn hashed(key: &str) -> Result<Hashed, KeysError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    match (16..=256).contains(&key.len()) && key.chars().all(is_fine) {
        true => Ok(Sha256::digest(key.as_bytes()).into()),
        false => Err(KeysError::Key),
    }
}

/// 1 if both are the same, in a time that does not depend on where they differ.
fn same(a: &Hashed, b: &Hashed) -> u32 {
    let differ = a.iter().zip(b).fold(0, |d, (a, b)| black_box(d | (a ^ b)));
    u32::from(differ == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_for_writing_read_and_others_do_nothing() {
        let text = "# comment\n\nread abcdefghijklmnop\nwrite  ABCDEFGHIJKLMNOP \n";
        let keys = Keys::parse(text).unwrap();
        assert_eq!(keys.access(Some("abcdefghijklmnop")), Access::Read);
        assert_eq!(keys.access(Some("ABCDEFGHIJKLMNOP")), Access::Write);
        assert_eq!(keys.access(Some("abcdefghijklmnoq")), Access::Open);
        assert_eq!(keys.access(Some("")), Access::Open);
        assert_eq!(keys.access(None), Access::Open);
        assert_eq!(Keys::default().access(None), Access::Write);
        assert_eq!(format!("{keys:?}"), "Keys(1 to read, 1 to write)");
    }

    #[test]
    fn weak_keys_and_other_lines_are_errors_that_do_not_show_the_key() {
        for wrong in [
            "read short",
            "write abcdefghij klmnopq",
            "admin abcdefghijklmnop",
            "read",
        ] {
            let error = Keys::parse(wrong).unwrap_err().to_string();
            assert!(
                !error.contains("abcdefgh") && !error.contains("short"),
                "{error}"
            );
        }
    }
}
