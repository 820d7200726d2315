//! The vectors as they came, in the order of their rows, in a file.
//!
//! A chunk of rows whose values are all whole numbers from 0 to 255 is kept as bytes, any other as 32-bit floats. Both
//! keep the values as they are.

use garlic_core::metric::Embedding;
use garlic_core::validate::{MAX_VALUE, check_finite, check_scale};
use garlic_core::vectors::is_byte;
use garlic_core::{Error, Metric, Result, Rows};
use serde::{Deserialize, Serialize};

use super::folder::{Folder, Input, Output};

const NAME: &str = "rows";
/// Rows of a chunk.
const CHUNK_ROWS: usize = 1024;

/// What is known of the rows when all were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Summary {
    pub(super) rows: usize,
    pub(super) dim: usize,
    /// Whether each chunk is kept as bytes.
    bytes: Vec<bool>,
    /// Length of the longest vector, for inner products.
    longest: Option<f32>,
    largest: f32,
}

/// Writes rows.
pub(super) struct RowWriter {
    out: Output,
    metric: Metric,
    embedding: Option<Embedding>,
    /// Values of the unfinished chunk.
    chunk: Vec<f32>,
    summary: Summary,
}

impl RowWriter {
    pub(super) fn new(folder: &Folder, metric: Metric) -> Result<Self> {
        Ok(Self {
            out: folder.create(NAME, 1 << 20)?,
            metric,
            embedding: None,
            chunk: Vec::new(),
            summary: Summary::default(),
        })
    }

    /// Checks and appends rows.
    pub(super) fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let first = self.summary.rows;
        if first == 0 {
            self.summary.dim = rows.dim();
        }
        if rows.dim() != self.summary.dim {
            return Err(Error::Dimension {
                expected: self.summary.dim,
                found: rows.dim(),
            });
        }
        check_finite(rows).map_err(|error| shifted(error, first))?;
        let values = rows.data().iter();
        let largest = values.fold(0.0f32, |most, v| most.max(v.abs()));
        self.summary.largest = self.summary.largest.max(largest);
        if self.metric == Metric::Cosine
            && let Some(row) = rows.iter().position(|row| row.iter().all(|v| *v == 0.0))
        {
            return Err(Error::ZeroVector { row: first + row });
        }
        let fitted = Embedding::fit(self.metric, rows);
        let longest = fitted.longest().unwrap_or(0.0);
        let embedding = self.embedding.get_or_insert(fitted);
        if let Some(longer) = embedding.lengthened(longest, 1.0) {
            *embedding = longer;
        }
        for row in rows.iter() {
            self.chunk.extend_from_slice(row);
            self.summary.rows += 1;
            if self.summary.rows.is_multiple_of(CHUNK_ROWS) {
                self.end_chunk()?;
            }
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let are_bytes = self
            .chunk
            .iter()
            .all(|v| is_byte(*v) && v.is_sign_positive());
        match are_bytes {
            true => {
                let bytes: Vec<u8> = self.chunk.iter().map(|v| *v as u8).collect();
                self.out.put(&bytes)?;
            }
            false => self.out.put(&self.chunk)?,
        }
        self.summary.bytes.push(are_bytes);
        self.chunk.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Summary> {
        self.end_chunk()?;
        self.out.finish()?;
        self.summary.longest = self.embedding.and_then(|embedding| embedding.longest());
        Ok(self.summary)
    }
}

/// The error of a row of a batch whose first row has this number.
fn shifted(error: Error, first: usize) -> Error {
    match error {
        Error::NotFinite { row, column, value } => Error::NotFinite {
            row: first + row,
            column,
            value,
        },
        Error::TooLarge {
            row, column, value, ..
        } => Error::TooLarge {
            row: first + row,
            column,
            value,
            limit: MAX_VALUE,
        },
        other => other,
    }
}

impl Summary {
    /// The embedding of the vectors.
    pub(super) fn embedding(&self, metric: Metric) -> Result<Embedding> {
        // One value stands for all: the check looks for the largest.
        check_scale(Rows::new(&[self.largest], 1)?, metric)?;
        let inner = self.dim + usize::from(metric == Metric::InnerProduct);
        Embedding::restore(metric, self.longest, inner as u64).ok_or(Error::Damaged)
    }

    /// Whether all values are whole numbers from 0 to 255.
    pub(super) fn are_bytes(&self) -> bool {
        self.bytes.iter().all(|bytes| *bytes)
    }
}

/// Reads rows.
pub(super) struct RowFile {
    input: Input,
    summary: Summary,
    /// Where each chunk begins.
    offsets: Vec<u64>,
}

impl RowFile {
    pub(super) fn open(folder: &Folder, summary: &Summary) -> Result<Self> {
        let mut end = 0;
        let mut offsets = Vec::with_capacity(summary.bytes.len());
        for bytes in &summary.bytes {
            offsets.push(end);
            end += (CHUNK_ROWS * summary.dim * width(*bytes)) as u64;
        }
        Ok(Self {
            input: folder.open(NAME)?,
            summary: summary.clone(),
            offsets,
        })
    }

    /// Appends `count` rows from `first` on.
    pub(super) fn read(&self, first: usize, count: usize, out: &mut Vec<f32>) -> Result<()> {
        let dim = self.summary.dim;
        let end = first + count;
        let mut row = first;
        while row < end {
            let chunk = row / CHUNK_ROWS;
            let now = end.min((chunk + 1) * CHUNK_ROWS) - row;
            let is_bytes = self.summary.bytes[chunk];
            let inside = row % CHUNK_ROWS * dim * width(is_bytes);
            let offset = self.offsets[chunk] + inside as u64;
            let start = out.len();
            if is_bytes {
                let mut bytes = vec![0u8; now * dim];
                self.input.read(&mut bytes, offset)?;
                out.extend(bytes.into_iter().map(f32::from));
            } else {
                out.resize(start + now * dim, 0.0);
                self.input.read(&mut out[start..], offset)?;
            }
            row += now;
        }
        Ok(())
    }

    pub(super) fn discard(folder: &Folder) {
        folder.discard(NAME);
    }
}

/// Bytes of a value.
fn width(is_bytes: bool) -> usize {
    if is_bytes { 1 } else { 4 }
}
