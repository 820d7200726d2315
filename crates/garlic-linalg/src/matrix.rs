//! Row-major matrices: a borrowed view and an owner.

use std::ops::Range;

use thiserror::Error;

/// A slice whose length does not fit the stated number of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// The number of columns was zero.
    #[error("a matrix needs at least one column; the dimension given is 0")]
    ZeroDimension,
    /// The slice does not hold a whole number of rows.
    #[error(
        "{len} values do not fill whole rows of dimension {dim}; check the dimension of the data"
    )]
    Ragged {
        /// Number of values in the slice.
        len: usize,
        /// Number of values in a row.
        dim: usize,
    },
}

/// A borrowed row-major matrix: one vector a row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    data: &'a [f32],
    len: usize,
    dim: usize,
}

impl<'a> Rows<'a> {
    /// Reads `data` as rows of `dim` values each.
    pub fn new(data: &'a [f32], dim: usize) -> Result<Self, ShapeError> {
        let len = row_count(data.len(), dim)?;
        Ok(Self { data, len, dim })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of values in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Row `i`; panics when `i` is out of range.
    pub fn row(&self, i: usize) -> &'a [f32] {
        &self.data[i * self.dim..(i + 1) * self.dim]
    }

    /// All values, row after row.
    pub fn data(&self) -> &'a [f32] {
        self.data
    }

    /// The rows in `range`; panics when it is out of range.
    pub fn slice(&self, range: Range<usize>) -> Rows<'a> {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "rows {range:?} of a matrix with {} rows",
            self.len
        );
        Rows {
            data: &self.data[range.start * self.dim..range.end * self.dim],
            len: range.end - range.start,
            dim: self.dim,
        }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f32]> + Clone + use<'a> {
        let rows = *self;
        (0..rows.len).map(move |i| rows.row(i))
    }
}

/// An owned row-major matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    data: Vec<f32>,
    rows: usize,
    cols: usize,
}

impl Matrix {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self {
            data: vec![0.0; rows * cols],
            rows,
            cols,
        }
    }

    /// Takes `data` as rows of `cols` values each.
    pub fn from_vec(data: Vec<f32>, cols: usize) -> Result<Self, ShapeError> {
        let rows = row_count(data.len(), cols)?;
        Ok(Self { data, rows, cols })
    }

    /// The rows of `source` named by `ids`, in that order; panics when an id is out of range.
    pub fn gather(source: Rows<'_>, ids: &[u32]) -> Self {
        let mut data = Vec::with_capacity(ids.len() * source.dim());
        for &id in ids {
            data.extend_from_slice(source.row(id as usize));
        }
        Self {
            data,
            rows: ids.len(),
            cols: source.dim(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`; panics when `i` is out of range.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, to write to; panics when `i` is out of range.
    pub fn row_mut(&mut self, i: usize) -> &mut [f32] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All values, row after row.
    pub fn as_slice(&self) -> &[f32] {
        &self.data
    }

    /// All values, row after row, to write to.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The matrix as a borrowed view.
    pub fn as_rows(&self) -> Rows<'_> {
        Rows {
            data: &self.data,
            len: self.rows,
            dim: self.cols,
        }
    }

    /// Appends one row; panics when its length is not the number of columns.
    pub fn push_row(&mut self, row: &[f32]) {
        assert_eq!(
            row.len(),
            self.cols,
            "a row of {} values pushed to a matrix of {} columns",
            row.len(),
            self.cols
        );
        self.data.extend_from_slice(row);
        self.rows += 1;
    }

    /// Gives the values back, row after row.
    pub fn into_vec(self) -> Vec<f32> {
        self.data
    }
}

fn row_count(len: usize, dim: usize) -> Result<usize, ShapeError> {
    if dim == 0 {
        return Err(ShapeError::ZeroDimension);
    }
    if !len.is_multiple_of(dim) {
        return Err(ShapeError::Ragged { len, dim });
    }
    Ok(len / dim)
}
