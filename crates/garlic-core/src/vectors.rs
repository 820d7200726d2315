//! The stored vectors of an index.

mod element;
mod rows;

use std::ops::ControlFlow;

use garlic_linalg::Rows;

use crate::buffer::Buffer;
use crate::vector_file::VectorFile;

pub use element::{StoredType, is_byte};
pub use rows::StoredRows;

use element::to_bytes;

/// Vectors between two questions whether to go on: so few that the answer comes soon, so many that asking costs nothing.
const ROWS_BETWEEN_LOOKS: usize = 4096;

/// Original vectors, row-major, in cell order. The row number of a vector is its *position*.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredVectors {
    /// 32-bit floats.
    F32(Buffer<f32>),
    /// Half precision.
    F16(Buffer<u16>),
    /// Whole numbers from 0 to 255.
    U8(Buffer<u8>),
    /// Rows of [`garlic_simd::encode_int8`].
    Int8(Buffer<u8>),
    /// Rows of any of these types that stay in a file.
    File(VectorFile),
}

/// A query prepared for distances to stored vectors.
#[derive(Debug)]
pub enum Prepared<'a> {
    /// The query as floats.
    Float(&'a [f32]),
    /// The query as bytes. It consists of whole numbers from 0 to 255, as the stored vectors do.
    Bytes(&'a [u8]),
}

impl Prepared<'_> {
    /// The same query.
    pub fn reborrow(&self) -> Prepared<'_> {
        match self {
            Self::Float(query) => Prepared::Float(query),
            Self::Bytes(query) => Prepared::Bytes(query),
        }
    }
}

impl StoredVectors {
    /// Stores the rows `order` of `vectors` in that order.
    #[must_use]
    pub fn gather(vectors: Rows<'_>, order: &[u32], element: StoredType) -> Self {
        let len = order.len() * vectors.dim();
        let values = || {
            order
                .iter()
                .flat_map(|row| vectors.row(*row as usize).iter().copied())
        };
        match element {
            StoredType::F32 => Self::F32(Buffer::collect(len, values())),
            StoredType::F16 => {
                Self::F16(Buffer::collect(len, values().map(garlic_simd::f32_to_f16)))
            }
            StoredType::U8 => Self::U8(Buffer::collect(len, values().map(|v| v as u8))),
            StoredType::Int8 => {
                let row_bytes = garlic_simd::int8_row_bytes(vectors.dim());
                let rows = order.iter().flat_map(|row| {
                    let mut bytes = vec![0; row_bytes];
                    garlic_simd::encode_int8(vectors.row(*row as usize), &mut bytes);
                    bytes
                });
                Self::Int8(Buffer::collect(order.len() * row_bytes, rows))
            }
        }
    }

    /// Copies the rows `order` of these vectors of `dim` coordinates, in that order.
    pub fn pick(&self, dim: usize, order: &[u32]) -> Self {
        let mut rows = StoredRows::new(self.element());
        if let Self::File(file) = self {
            file.push_rows(order, &mut rows);
            return rows.into();
        }
        for row in order {
            rows.push(self, dim, *row as usize);
        }
        rows.into()
    }

    /// Converts the vectors of `dim` coordinates to 32-bit floats.
    pub fn widen(&self, dim: usize) -> Self {
        let rows = self.len(dim);
        let mut row = Vec::new();
        let values = (0..rows).flat_map(|at| {
            self.read(dim, at, &mut row);
            row.clone()
        });
        Self::F32(Buffer::collect(rows * dim, values))
    }

    /// Number of vectors of `dim` coordinates.
    fn len(&self, dim: usize) -> usize {
        match self {
            Self::F32(data) => data.len() / dim,
            Self::F16(data) => data.len() / dim,
            Self::U8(data) => data.len() / dim,
            Self::Int8(data) => data.len() / garlic_simd::int8_row_bytes(dim),
            Self::File(file) => file.rows(),
        }
    }

    /// The element type.
    pub fn element(&self) -> StoredType {
        match self {
            Self::F32(_) => StoredType::F32,
            Self::F16(_) => StoredType::F16,
            Self::U8(_) => StoredType::U8,
            Self::Int8(_) => StoredType::Int8,
            Self::File(file) => file.element(),
        }
    }

    /// Bytes of all vectors.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::F32(data) => size_of_val(&**data) as u64,
            Self::F16(data) => size_of_val(&**data) as u64,
            Self::U8(data) | Self::Int8(data) => data.len() as u64,
            Self::File(file) => file.bytes(),
        }
    }

    /// Bytes of a vector of `dim` coordinates.
    pub fn row_bytes(&self, dim: usize) -> usize {
        self.element().row_bytes(dim)
    }

    /// The name of the element type.
    pub fn name(&self) -> &'static str {
        self.element().name()
    }

    /// Prepares a query. It becomes bytes if the vectors are bytes and the conversion is exact.
    pub fn prepare<'a>(&self, query: &'a [f32], bytes: &'a mut Vec<u8>) -> Prepared<'a> {
        match self.element() {
            StoredType::U8 if to_bytes(query, bytes) => Prepared::Bytes(bytes),
            _ => Prepared::Float(query),
        }
    }

    /// Bytes that lie in a mapped file.
    pub fn mapped_bytes(&self) -> u64 {
        match self {
            Self::F32(data) => data.mapped_bytes(),
            Self::F16(data) => data.mapped_bytes(),
            Self::U8(data) | Self::Int8(data) => data.mapped_bytes(),
            Self::File(_) => 0,
        }
    }

    /// Squared distance between a query and the vector at `position`. Infinite if there is no such vector, or if it
    /// contains NaN.
    #[inline]
    pub fn distance(&self, query: &Prepared<'_>, position: usize) -> f32 {
        let squared = match (self, query) {
            (Self::U8(data), Prepared::Bytes(q)) => {
                row(data, q.len(), position).map(|v| garlic_simd::l2_squared_u8_u8(q, v) as f32)
            }
            (Self::F32(data), Prepared::Float(q)) => {
                row(data, q.len(), position).map(|v| garlic_simd::l2_squared(q, v))
            }
            (Self::F16(data), Prepared::Float(q)) => {
                row(data, q.len(), position).map(|v| garlic_simd::l2_squared_f16(q, v))
            }
            (Self::U8(data), Prepared::Float(q)) => {
                row(data, q.len(), position).map(|v| garlic_simd::l2_squared_u8(q, v))
            }
            (Self::Int8(data), Prepared::Float(q)) => {
                let wide = garlic_simd::int8_row_bytes(q.len());
                row(data, wide, position).map(|v| garlic_simd::l2_squared_int8(q, v))
            }
            (Self::File(file), query) => file.fetch(position, 1).map(|one| one.distance(query, 0)),
            (_, Prepared::Bytes(_)) => unreachable!("bytes are prepared for bytes only"),
        };
        // `min` ignores NaN.
        squared.map_or(f32::INFINITY, |squared| squared.min(f32::INFINITY))
    }

    /// Squared distances between a query and all vectors, in order.
    #[inline]
    pub fn distances(&self, query: &Prepared<'_>, each: impl FnMut(usize, f32)) {
        self.distances_while(query, || true, each);
    }

    /// [`StoredVectors::distances`] for as long as `goes_on`, which is asked every few thousand vectors.
    #[inline]
    pub fn distances_while(
        &self,
        query: &Prepared<'_>,
        goes_on: impl Fn() -> bool,
        mut each: impl FnMut(usize, f32),
    ) {
        match (self, query) {
            (Self::File(file), query) => file.for_each_block(|first, block| {
                if !goes_on() {
                    return ControlFlow::Break(());
                }
                let each = |at, distance| each(first + at, distance);
                block.each_distance(query, &mut (|| true, each));
                ControlFlow::Continue(())
            }),
            (memory, query) => memory.each_distance(query, &mut (goes_on, each)),
        }
    }

    /// [`StoredVectors::distances_while`] of vectors in memory.
    #[inline]
    fn each_distance(
        &self,
        query: &Prepared<'_>,
        each: &mut (impl Fn() -> bool, impl FnMut(usize, f32)),
    ) {
        match (self, query) {
            (Self::File(_), _) => {}
            (Self::U8(data), Prepared::Bytes(q)) => {
                each_row(
                    data,
                    q.len(),
                    |v| garlic_simd::l2_squared_u8_u8(q, v) as f32,
                    each,
                );
            }
            (Self::F32(data), Prepared::Float(q)) => {
                each_row(data, q.len(), |v| garlic_simd::l2_squared(q, v), each);
            }
            (Self::F16(data), Prepared::Float(q)) => {
                each_row(data, q.len(), |v| garlic_simd::l2_squared_f16(q, v), each);
            }
            (Self::U8(data), Prepared::Float(q)) => {
                each_row(data, q.len(), |v| garlic_simd::l2_squared_u8(q, v), each);
            }
            (Self::Int8(data), Prepared::Float(q)) => {
                let wide = garlic_simd::int8_row_bytes(q.len());
                each_row(data, wide, |v| garlic_simd::l2_squared_int8(q, v), each);
            }
            (_, Prepared::Bytes(_)) => unreachable!("bytes are prepared for bytes only"),
        }
    }

    /// Reads the vector at `position` into `out`, or zeros if there is none. Returns whether there is one.
    pub fn read(&self, dim: usize, position: usize, out: &mut Vec<f32>) -> bool {
        out.clear();
        out.resize(dim, 0.0);
        let found = match self {
            Self::F32(data) => row(data, dim, position).map(|v| out.copy_from_slice(v)),
            Self::F16(data) => row(data, dim, position).map(|v| garlic_simd::widen_f16(v, out)),
            Self::U8(data) => row(data, dim, position).map(|v| garlic_simd::widen_u8(v, out)),
            Self::Int8(data) => row(data, garlic_simd::int8_row_bytes(dim), position)
                .map(|v| garlic_simd::widen_int8(v, out)),
            Self::File(file) => {
                let one = file.fetch(position, 1);
                return one.is_some_and(|one| one.read(dim, 0, out));
            }
        };
        found.is_some()
    }

    /// Prefetches the vector at `position`.
    #[inline]
    pub fn prefetch(&self, dim: usize, position: usize) {
        match self {
            Self::F32(data) => garlic_simd::prefetch(row(data, dim, position).unwrap_or_default()),
            Self::F16(data) => garlic_simd::prefetch(row(data, dim, position).unwrap_or_default()),
            Self::U8(data) => garlic_simd::prefetch(row(data, dim, position).unwrap_or_default()),
            Self::Int8(data) => {
                let wide = garlic_simd::int8_row_bytes(dim);
                garlic_simd::prefetch(row(data, wide, position).unwrap_or_default());
            }
            Self::File(_) => {}
        }
    }

    /// The first vector of `dim` coordinates that has a value that is no finite number, if any.
    pub fn first_not_finite(&self, dim: usize) -> Option<usize> {
        // The largest magnitude of a code is 128. Encoding uses no more than 127.
        let is_sound = |step: f32| step >= 0.0 && (128.0 * step).is_finite();
        match self {
            Self::F32(data) => data.iter().position(|v| !v.is_finite()).map(|at| at / dim),
            Self::F16(data) => {
                let bad = |half: &u16| half & 0x7c00 == 0x7c00;
                data.iter().position(bad).map(|at| at / dim)
            }
            Self::U8(_) => None,
            Self::Int8(data) => {
                let mut rows = data.chunks_exact(garlic_simd::int8_row_bytes(dim));
                rows.position(|row| !garlic_simd::int8_steps(row, dim).all(is_sound))
            }
            Self::File(file) => {
                let mut found = None;
                file.for_each_block(|first, block| {
                    found = block.first_not_finite(dim).map(|at| first + at);
                    match found {
                        Some(_) => ControlFlow::Break(()),
                        None => ControlFlow::Continue(()),
                    }
                });
                found
            }
        }
    }
}

/// Calls `each` with the number and the distance of every row. The distance may be NaN in a damaged file.
#[inline(always)]
fn each_row<T>(
    data: &[T],
    dim: usize,
    distance: impl Fn(&[T]) -> f32,
    (goes_on, each): &mut (impl Fn() -> bool, impl FnMut(usize, f32)),
) {
    for (block, rows) in data.chunks(dim * ROWS_BETWEEN_LOOKS).enumerate() {
        if !goes_on() {
            return;
        }
        let first = block * ROWS_BETWEEN_LOOKS;
        for (at, row) in (first..).zip(rows.chunks_exact(dim)) {
            each(at, distance(row));
        }
    }
}

/// The row at `position`, if there is one.
#[inline]
fn row<T>(data: &[T], dim: usize, position: usize) -> Option<&[T]> {
    let from = position.checked_mul(dim)?;
    data.get(from..from.checked_add(dim)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_become_bytes() {
        let mut bytes = vec![7; 3];
        let every: Vec<f32> = (0..=255).map(|v| v as f32).collect();
        assert!(to_bytes(&every, &mut bytes));
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert!(to_bytes(&[-0.0], &mut bytes) && bytes == [0]);
        let near = every.iter().flat_map(|v| [v.next_up(), v.next_down()]);
        let others = [
            0.5,
            254.5,
            256.0,
            -1.0,
            -256.0,
            1e10,
            8_388_608.0,
            16_777_216.0,
            f32::MIN_POSITIVE,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
        ];
        for v in near.chain(others) {
            assert!(!is_byte(v) && !to_bytes(&[1.0, v, 2.0], &mut bytes), "{v}");
        }
    }

    #[test]
    fn distances_end_when_they_are_told_to() {
        let values: Vec<f32> = (0..3 * ROWS_BETWEEN_LOOKS).map(|i| i as f32).collect();
        let stored = StoredVectors::F32(values.clone().into());
        let query = Prepared::Float(&[0.0]);
        let mut all = Vec::new();
        stored.distances(&query, |at, distance| all.push((at, distance.sqrt())));
        let wanted: Vec<(usize, f32)> = values.iter().copied().enumerate().collect();
        assert_eq!(all, wanted);
        let (looks, mut seen) = (std::cell::Cell::new(0), 0);
        let goes_on = || looks.replace(looks.get() + 1) < 2;
        stored.distances_while(&query, goes_on, |_, _| seen += 1);
        assert_eq!((looks.get(), seen), (3, 2 * ROWS_BETWEEN_LOOKS));
    }

    #[test]
    fn every_type_stores_reads_and_measures_its_rounded_values() {
        let dim = 37;
        let values: Vec<f32> = (0..20 * dim).map(|i| (i * 7919 % 251) as f32).collect();
        let vectors = Rows::new(&values, dim).unwrap();
        let order = [3, 0, 19, 7, 7];
        let query: Vec<f32> = values[5..][..dim].iter().map(|v| v + 0.25).collect();
        for element in [
            StoredType::F32,
            StoredType::F16,
            StoredType::U8,
            StoredType::Int8,
        ] {
            let rounded = element.round(vectors);
            let rounded = Rows::new(&rounded, dim).unwrap();
            assert_eq!(*element.round(rounded), *rounded.data(), "{element:?}");
            let stored = StoredVectors::gather(vectors, &order, element);
            assert_eq!(stored, StoredVectors::gather(rounded, &order, element));
            assert_eq!(stored.len(dim), order.len());
            assert_eq!(stored.bytes() as usize, order.len() * stored.row_bytes(dim));
            assert_eq!(stored.first_not_finite(dim), None);
            assert_eq!(stored.pick(dim, &[0, 1, 2, 3, 4]), stored);
            let picked = stored.pick(dim, &[2, 1]);
            let wide = stored.widen(dim);
            let (mut row, mut bytes) = (Vec::new(), Vec::new());
            let query = stored.prepare(&query, &mut bytes);
            let Prepared::Float(floats) = query else {
                panic!("a query that is no whole number is not bytes");
            };
            stored.distances(&query, |at, distance| {
                let exact = rounded.row(order[at] as usize);
                assert!(stored.read(dim, at, &mut row) && row == exact);
                assert!(wide.read(dim, at, &mut row) && row == exact);
                assert_eq!(distance, garlic_simd::l2_squared(floats, exact));
                assert_eq!(stored.distance(&query, at), distance);
                stored.prefetch(dim, at);
            });
            assert!(picked.read(dim, 0, &mut row) && row == rounded.row(19));
            assert!(!stored.read(dim, 5, &mut row) && row == vec![0.0; dim]);
            assert_eq!(stored.distance(&query, 5), f32::INFINITY);
        }
    }

    #[test]
    fn values_that_are_no_numbers_are_found() {
        let dim = 33;
        let mut row = vec![0; garlic_simd::int8_row_bytes(dim)];
        garlic_simd::encode_int8(&vec![2.0; dim], &mut row);
        for step in [f32::NAN, f32::INFINITY, -1.0, 1e38] {
            let mut rows = row.repeat(3);
            let at = 2 * row.len() - 2;
            rows[at..at + 2].copy_from_slice(&step.to_le_bytes()[2..]);
            let stored = StoredVectors::Int8(rows.into());
            assert_eq!(stored.first_not_finite(dim), Some(1), "{step}");
        }
        let halves = StoredVectors::F16(vec![0, 0, 0xfc00, 0].into());
        assert_eq!(halves.first_not_finite(2), Some(1));
        let floats = StoredVectors::F32(vec![0.0, f32::NAN].into());
        assert_eq!(floats.first_not_finite(1), Some(1));
    }
}
