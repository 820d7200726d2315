//! Identifiers as a column of a file has them.

use std::ops::Range;

use crate::error::{DataError, Origin, Result};

/// An identifier for each vector: whole numbers, or strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identifiers {
    /// Whole numbers from 0 on.
    Numbers(Vec<u64>),
    /// Strings. UUIDs that are stored as 16 bytes are strings in their usual form.
    Strings(Vec<String>),
}

impl Identifiers {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(ids) => ids.len(),
            Self::Strings(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those of some rows.
    pub(crate) fn slice(&self, rows: Range<usize>) -> Self {
        match self {
            Self::Numbers(ids) => Self::Numbers(ids[rows].to_vec()),
            Self::Strings(ids) => Self::Strings(ids[rows].to_vec()),
        }
    }

    /// Adds those of the rows that follow. `origin` names them in an error.
    pub fn append(&mut self, more: Self, origin: &Origin) -> Result<()> {
        match (self, more) {
            (Self::Numbers(ids), Self::Numbers(more)) => ids.extend(more),
            (Self::Strings(ids), Self::Strings(more)) => ids.extend(more),
            _ => {
                let problem = "the identifiers are numbers in some files and strings in others: write them alike";
                return Err(DataError::selection(origin.clone(), problem));
            }
        }
        Ok(())
    }
}
