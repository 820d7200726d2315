//! The vectors of some rows of a file, read together.

use super::span::spans_of;
use super::{ReadBackend, VectorFile, threads};
use crate::vectors::{Prepared, StoredRows, StoredType, StoredVectors};

/// Vectors that were read, numbered in the order in which they were asked for.
///
/// It keeps its memory when it is used again.
#[derive(Debug, Default)]
pub struct FetchedRows {
    /// Words, so that all types of values are aligned.
    words: Vec<u64>,
    /// Place of each vector in the bytes. Empty if they could not be read.
    places: Vec<usize>,
    row_bytes: usize,
    element: Option<StoredType>,
}

impl FetchedRows {
    /// Squared distance between a query and a vector, as [`StoredVectors::distance`] has it. Infinite if the vectors could
    /// not be read.
    #[inline]
    pub fn distance(&self, query: &Prepared<'_>, number: usize) -> f32 {
        let squared = self.element.zip(self.row(number));
        squared.map_or(f32::INFINITY, |(element, row)| {
            row_distance(element, query, row).min(f32::INFINITY)
        })
    }

    /// The bytes of a vector.
    fn row(&self, number: usize) -> Option<&[u8]> {
        let place = *self.places.get(number)?;
        bytemuck::cast_slice::<u64, u8>(&self.words).get(place..place + self.row_bytes)
    }
}

impl VectorFile {
    /// Buffers for [`VectorFile::read_rows`]. Give them back with [`VectorFile::give_rows`].
    pub fn take_rows(&self) -> Box<FetchedRows> {
        self.shared.buffers.take()
    }

    /// Takes buffers back.
    pub fn give_rows(&self, rows: Box<FetchedRows>) {
        self.shared.buffers.give(rows);
    }

    /// Reads some rows at once, at best no more than [`VectorFile::rows_at_a_time`]. Rows that do not exist count as a failure, as does any that cannot be read.
    pub fn read_rows(&self, rows: &[u32], out: &mut FetchedRows) {
        out.places.clear();
        (out.row_bytes, out.element) = (self.row_bytes(), Some(self.element()));
        if rows.is_empty() {
            return;
        }
        let mut order: Vec<(u32, u32)> = rows.iter().copied().zip(0..).collect();
        order.sort_unstable();
        if order
            .last()
            .is_some_and(|(row, _)| *row as usize >= self.rows())
        {
            self.note(&std::io::ErrorKind::InvalidInput.into());
            return;
        }
        let place = &self.shared.place;
        let mut sorted = Vec::with_capacity(rows.len());
        let wanted = order.iter().map(|(row, _)| *row);
        let spans = spans_of(wanted, place.offset, out.row_bytes, &mut sorted);
        let needed = spans.last().map_or(0, |span| span.end().div_ceil(8));
        if out.words.len() < needed {
            out.words.resize(needed, 0);
        }
        let bytes = bytemuck::cast_slice_mut(&mut out.words);
        let read = match self.backend() {
            #[cfg(target_os = "linux")]
            // A ring may be refused later on, for example where too many files are open.
            ReadBackend::IoUring => super::ring::read(&place.file, &spans, bytes)
                .or_else(|_| threads::read(&place.file, &spans, bytes)),
            _ => threads::read(&place.file, &spans, bytes),
        };
        if let Err(error) = read {
            self.note(&error);
            return;
        }
        out.places.resize(rows.len(), 0);
        for ((_, number), at) in order.iter().zip(sorted) {
            out.places[*number as usize] = at;
        }
    }

    /// Appends some rows to `picked`.
    pub fn push_rows(&self, rows: &[u32], picked: &mut StoredRows) {
        let mut fetched = self.take_rows();
        for rows in rows.chunks(PICKED_ROWS.min(self.rows_at_a_time())) {
            self.read_rows(rows, &mut fetched);
            for number in 0..rows.len() {
                if let Some(row) = fetched.row(number) {
                    picked.push_bytes(row);
                }
            }
        }
        self.give_rows(fetched);
    }
}

/// Rows that [`VectorFile::push_rows`] reads at a time, at most.
const PICKED_ROWS: usize = 1024;

/// Squared distance between a query and the vector of these little-endian bytes, which are aligned for their type. It is
/// NaN if the vector contains NaN.
#[inline]
fn row_distance(element: StoredType, query: &Prepared<'_>, row: &[u8]) -> f32 {
    if cfg!(target_endian = "big") {
        let mut one = StoredRows::new(element);
        one.push_bytes(row);
        return StoredVectors::from(one).distance(query, 0);
    }
    match (element, query) {
        (StoredType::U8, Prepared::Bytes(q)) => garlic_simd::l2_squared_u8_u8(q, row) as f32,
        (StoredType::F32, Prepared::Float(q)) => {
            garlic_simd::l2_squared(q, bytemuck::cast_slice(row))
        }
        (StoredType::F16, Prepared::Float(q)) => {
            garlic_simd::l2_squared_f16(q, bytemuck::cast_slice(row))
        }
        (StoredType::U8, Prepared::Float(q)) => garlic_simd::l2_squared_u8(q, row),
        (StoredType::Int8, Prepared::Float(q)) => garlic_simd::l2_squared_int8(q, row),
        (_, Prepared::Bytes(_)) => unreachable!("bytes are prepared for bytes only"),
    }
}
