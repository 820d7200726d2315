//! Data that an index carries for its points beside the vectors, such as names and columns.
//!
//! An index stores an attachment with the vectors and does not look into it. A file keeps it as blocks of bytes, and
//! each batch of a log may add a block. What the blocks mean is up to the crate that attaches them. It decodes them
//! once, when they are first needed.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// A value that can be attached to an index.
pub trait Attached: Any + fmt::Debug + Send + Sync {
    /// The blocks that a file keeps of it. Equal values have equal blocks.
    ///
    /// # Errors
    /// Fails if it cannot be encoded.
    fn to_blocks(&self) -> io::Result<Vec<Bytes>>;
}

/// What is attached to an index, if anything. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Attachment(Option<Arc<Mutex<State>>>);

enum State {
    /// Blocks from a file and a log.
    Stored(Vec<Bytes>),
    Value(Arc<dyn Attached>),
}

impl Attachment {
    /// Attaches a value.
    pub fn new(value: Arc<dyn Attached>) -> Self {
        Self::of(State::Value(value))
    }

    /// What a file holds.
    pub fn from_blocks(stored: Vec<Bytes>) -> Self {
        Self::of(State::Stored(stored))
    }

    fn of(state: State) -> Self {
        Self(Some(Arc::new(Mutex::new(state))))
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.0.as_ref()?.lock();
        Some(state.unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether nothing is attached.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a block of a log that is replayed.
    ///
    /// # Errors
    /// Fails if the attached value cannot be encoded.
    pub fn push(&mut self, block: Bytes) -> io::Result<()> {
        // A replay has the only reference, so that blocks are not copied for every record.
        let own = self.0.as_mut().and_then(Arc::get_mut);
        if let Some(Ok(State::Stored(stored))) = own.map(Mutex::get_mut) {
            stored.push(block);
            return Ok(());
        }
        let mut stored = self.blocks()?;
        stored.push(block);
        *self = Self::from_blocks(stored);
        Ok(())
    }

    /// The blocks that a file keeps.
    ///
    /// # Errors
    /// Fails if the attached value cannot be encoded.
    pub fn blocks(&self) -> io::Result<Vec<Bytes>> {
        let value = match self.state().as_deref() {
            None => return Ok(Vec::new()),
            Some(State::Stored(stored)) => return Ok(stored.clone()),
            Some(State::Value(value)) => Arc::clone(value),
        };
        value.to_blocks()
    }

    /// The attached value, decoded from its blocks the first time. The blocks are dropped then.
    ///
    /// # Errors
    /// Those of `decode`.
    pub fn value<E>(
        &self,
        decode: impl FnOnce(&[Bytes]) -> Result<Arc<dyn Attached>, E>,
    ) -> Result<Option<Arc<dyn Attached>>, E> {
        let Some(mut state) = self.state() else {
            return Ok(None);
        };
        let value = match &*state {
            State::Value(value) => return Ok(Some(Arc::clone(value))),
            State::Stored(stored) => decode(stored)?,
        };
        *state = State::Value(Arc::clone(&value));
        Ok(Some(value))
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state().as_deref() {
            None => f.write_str("nothing"),
            Some(State::Stored(stored)) => write!(f, "{} blocks", stored.len()),
            Some(State::Value(value)) => value.fmt(f),
        }
    }
}

/// Attachments are equal if their blocks are.
impl PartialEq for Attachment {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(two)) if Arc::ptr_eq(one, two) => true,
            (Some(_), Some(_)) => {
                matches!((self.blocks(), other.blocks()), (Ok(one), Ok(two)) if one == two)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Text(String);

    impl Attached for Text {
        fn to_blocks(&self) -> io::Result<Vec<Bytes>> {
            Ok(vec![Bytes::from(self.0.clone())])
        }
    }

    #[test]
    fn blocks_are_decoded_once_and_values_are_encoded() {
        let mut attached = Attachment::default();
        assert!(attached.is_none() && attached.blocks().unwrap().is_empty());
        attached.push(Bytes::from_static(b"a")).unwrap();
        attached.push(Bytes::from_static(b"b")).unwrap();
        let shared = attached.clone();
        attached.push(Bytes::from_static(b"c")).unwrap();
        assert_eq!(shared.blocks().unwrap(), [&b"a"[..], b"b"]);
        assert_eq!(attached.blocks().unwrap(), [&b"a"[..], b"b", b"c"]);
        assert_ne!(shared, attached);

        let decode = |blocks: &[Bytes]| -> Result<Arc<dyn Attached>, ()> {
            let text = String::from_utf8(blocks.concat()).map_err(|_| ())?;
            Ok(Arc::new(Text(text)))
        };
        attached.value(decode).unwrap().unwrap();
        let again = attached.value(|_| Err("decoded twice")).unwrap().unwrap();
        assert_eq!(again.to_blocks().unwrap(), [&b"abc"[..]]);
        // From now on it is the value that is stored.
        assert_eq!(attached, Attachment::new(Arc::new(Text("abc".into()))));
        attached.push(Bytes::from_static(b"d")).unwrap();
        assert_eq!(attached.blocks().unwrap(), [&b"abc"[..], b"d"]);
    }
}
