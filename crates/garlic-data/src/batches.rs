//! Rows in batches, from one file after the other.

use std::borrow::Borrow;
use std::fmt;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;

use crate::error::{Origin, Result};
use crate::identifiers::Identifiers;
use crate::reader::{Reader, check_dimension};
use crate::vectors::{Vectors, check_finite_from};

/// Some rows of a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Batch {
    /// The vectors, as floats.
    pub vectors: Vectors,
    /// An identifier for each vector, if a column was named for them.
    pub ids: Option<Identifiers>,
    /// The other columns that were asked for, with a row for each vector.
    pub columns: RecordBatch,
}

/// What a format's own reader gives: values that were not looked at yet.
pub(crate) struct Piece {
    pub(crate) values: Vec<f32>,
    pub(crate) dim: usize,
    pub(crate) ids: Option<Identifiers>,
    pub(crate) columns: RecordBatch,
}

/// A table of `rows` rows and no columns.
pub(crate) fn no_columns(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Schema::empty().into(), Vec::new(), &options)
        .unwrap_or_else(|_| RecordBatch::new_empty(Schema::empty().into()))
}

/// The rows of one file.
pub(crate) struct Part {
    origin: Origin,
    /// Rows that came before.
    row: usize,
    pieces: Box<dyn Iterator<Item = Result<Piece>> + Send>,
}

impl Part {
    pub(crate) fn new(
        origin: Origin,
        pieces: impl Iterator<Item = Result<Piece>> + Send + 'static,
    ) -> Self {
        Self {
            origin,
            row: 0,
            pieces: Box::new(pieces),
        }
    }

    fn check(&mut self, piece: Piece) -> Result<Batch> {
        let rows = piece.values.len() / piece.dim.max(1);
        check_finite_from(self.row, &piece.values, piece.dim, &self.origin)?;
        self.row += rows;
        Ok(Batch {
            vectors: Vectors::checked_f32(piece.values, rows, piece.dim),
            ids: piece.ids,
            columns: piece.columns,
        })
    }
}

impl Iterator for Part {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        let piece = self.pieces.find(|piece| {
            piece
                .as_ref()
                .map_or(true, |piece| !piece.values.is_empty())
        })?;
        Some(piece.and_then(|piece| self.check(piece)))
    }
}

/// Vectors that are there as a whole, cut into batches.
pub(crate) struct Cut {
    vectors: Vectors,
    ids: Option<Identifiers>,
    rows: usize,
    done: usize,
}

impl Cut {
    pub(crate) fn new(vectors: Vectors, ids: Option<Identifiers>, rows: usize) -> Self {
        Self {
            vectors,
            ids,
            rows,
            done: 0,
        }
    }
}

impl Iterator for Cut {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        let dim = self.vectors.dim();
        let range = self.done..self.vectors.rows().min(self.done.saturating_add(self.rows));
        if range.is_empty() {
            return None;
        }
        let mut values = vec![0.0; range.len() * dim];
        for (row, values) in range.clone().zip(values.chunks_exact_mut(dim)) {
            self.vectors.row_f32(row, values);
        }
        self.done = range.end;
        Some(Ok(Piece {
            values,
            dim,
            ids: self.ids.as_ref().map(|ids| ids.slice(range.clone())),
            columns: no_columns(range.len()),
        }))
    }
}

/// The rows of a [`Reader`], a batch at a time. It ends after the first error.
pub struct Batches<R = Reader> {
    reader: R,
    rows: usize,
    /// The next file.
    next: usize,
    current: Option<Part>,
    dim: Option<usize>,
}

impl<R> fmt::Debug for Batches<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("file", &self.next)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// Rows of a batch that nobody chose the size of.
pub(crate) const BATCH_ROWS: usize = 4096;

impl<R: Borrow<Reader>> Batches<R> {
    pub(crate) fn new(reader: R, rows: usize) -> Self {
        Self {
            reader,
            rows: rows.max(1),
            next: 0,
            current: None,
            dim: None,
        }
    }

    fn advance(&mut self) -> Result<Option<Batch>> {
        loop {
            let part = match &mut self.current {
                Some(part) => part,
                None => match self.reader.borrow().part(self.next, self.rows)? {
                    None => return Ok(None),
                    Some(part) => {
                        self.next += 1;
                        self.current.insert(part)
                    }
                },
            };
            let row = part.row;
            match part.next().transpose()? {
                None => self.current = None,
                Some(batch) => {
                    let dim = *self.dim.get_or_insert(batch.vectors.dim());
                    check_dimension(dim, batch.vectors.dim(), row, &part.origin)?;
                    return Ok(Some(batch));
                }
            }
        }
    }
}

impl<R: Borrow<Reader>> Iterator for Batches<R> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        let batch = self.advance().transpose();
        if matches!(batch, Some(Err(_))) {
            (self.next, self.current) = (usize::MAX, None);
        }
        batch
    }
}
