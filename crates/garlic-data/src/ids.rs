//! Neighbour lists: a row-major table of ids.

use crate::error::{DataError, Origin, Result};
use crate::vectors::count_rows;

/// A row-major table of ids, a row for each query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    /// The ids, row after row.
    pub data: Vec<i64>,
    /// Number of rows.
    pub rows: usize,
    /// Ids in each row.
    pub cols: usize,
}

impl Ids {
    /// A table with `cols` ids to a row.
    pub fn new(data: Vec<i64>, cols: usize) -> Result<Self> {
        Self::with_origin(data, cols, &Origin::memory())
    }

    pub(crate) fn with_origin(data: Vec<i64>, cols: usize, origin: &Origin) -> Result<Self> {
        let rows = count_rows(data.len(), cols, origin)?;
        Ok(Self { data, rows, cols })
    }

    /// The ids of row `i`.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &[i64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Checks that every id is from 0 to `rows - 1`; `origin` names the table in the error.
    pub fn check_below(&self, rows: usize, origin: &Origin) -> Result<()> {
        let valid = |id: &i64| usize::try_from(*id).is_ok_and(|id| id < rows);
        match self.data.iter().position(|id| !valid(id)) {
            None => Ok(()),
            Some(at) => Err(DataError::IdOutOfRange {
                origin: origin.clone(),
                row: at / self.cols,
                column: at % self.cols,
                id: i128::from(self.data[at]),
                rows: rows as u64,
            }),
        }
    }

    /// The ids as 32-bit integers, for the formats that hold no wider ones.
    pub(crate) fn to_i32(&self, origin: &Origin) -> Result<Vec<i32>> {
        let narrow = |id: &i64| {
            i32::try_from(*id).map_err(|_| DataError::TooLarge {
                origin: origin.clone(),
                what: "an id",
                value: id.unsigned_abs(),
                limit: i32::MAX as u64,
                fix: "write .npy, which holds 64-bit ids",
            })
        };
        self.data.iter().map(narrow).collect()
    }
}
