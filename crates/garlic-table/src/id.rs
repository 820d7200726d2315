//! Identifiers: numbers or names.

use std::collections::HashSet;
use std::fmt;

use garlic_core::{Error, Result};

/// The identifier of a point.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// Of an index that numbers its points.
    Number(u64),
    /// Of an index that names them.
    Name(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// Identifiers of several points, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Numbers below 2^63.
    Numbers(Vec<u64>),
    /// Names: any text but the empty one. A UUID is the text that it is written as.
    Names(Vec<String>),
}

impl Ids {
    /// Names of anything that is text.
    pub fn names<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        Self::Names(names.into_iter().map(Into::into).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Names(names) => names.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn get(&self, at: usize) -> Id {
        match self {
            Self::Numbers(numbers) => Id::Number(numbers[at]),
            Self::Names(names) => Id::Name(names[at].clone()),
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Id> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Fails for empty names, and for identifiers that come twice.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Numbers(numbers) => {
                let mut seen = HashSet::with_capacity(numbers.len());
                match numbers.iter().find(|id| !seen.insert(**id)) {
                    Some(id) => Err(Error::IdTwice { id: *id }),
                    None => Ok(()),
                }
            }
            Self::Names(names) => {
                if let Some(at) = names.iter().position(String::is_empty) {
                    return Err(Error::IdKind {
                        message: format!("the identifier of row {at} is empty; name every point"),
                    });
                }
                let mut seen = HashSet::with_capacity(names.len());
                match names.iter().find(|name| !seen.insert(name.as_str())) {
                    Some(name) => Err(Error::NameTwice { name: name.clone() }),
                    None => Ok(()),
                }
            }
        }
    }
}

impl From<Vec<u64>> for Ids {
    fn from(numbers: Vec<u64>) -> Self {
        Self::Numbers(numbers)
    }
}

impl From<Vec<String>> for Ids {
    fn from(names: Vec<String>) -> Self {
        Self::Names(names)
    }
}
