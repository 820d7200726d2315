//! A row-major set of vectors, in memory or in a mapped file.

use std::borrow::Cow;
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::{DataError, Origin, Result};

/// The type of a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// 32-bit float.
    F32,
    /// Unsigned byte.
    U8,
}

impl Element {
    /// Bytes a coordinate takes.
    pub fn width(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::U8 => 1,
        }
    }

    /// The name used in messages and listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::U8 => "u8",
        }
    }
}

/// What a header says about a set of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of vectors.
    pub rows: usize,
    /// Coordinates of each.
    pub dim: usize,
    /// Type of a coordinate.
    pub element: Element,
}

#[derive(Debug, Clone)]
enum Storage {
    F32(Arc<Vec<f32>>),
    U8(Arc<Vec<u8>>),
    /// Bytes of a file, from `start`, aligned for the element type.
    Mapped {
        map: Arc<Mmap>,
        start: usize,
        element: Element,
    },
}

/// A row-major set of vectors; a clone shares the memory.
///
/// Every set has at least one row and one column, and every coordinate is finite.
#[derive(Debug, Clone)]
pub struct Vectors {
    storage: Storage,
    rows: usize,
    dim: usize,
}

impl Vectors {
    /// Vectors of floats, `dim` to a row.
    pub fn from_f32(data: Vec<f32>, dim: usize) -> Result<Self> {
        Self::owned_f32(data, dim, &Origin::memory())
    }

    /// Vectors of bytes, `dim` to a row.
    pub fn from_u8(data: Vec<u8>, dim: usize) -> Result<Self> {
        Self::owned_u8(data, dim, &Origin::memory())
    }

    pub(crate) fn owned_f32(data: Vec<f32>, dim: usize, origin: &Origin) -> Result<Self> {
        let rows = count_rows(data.len(), dim, origin)?;
        check_finite(&data, dim, origin)?;
        let storage = Storage::F32(Arc::new(data));
        Ok(Self { storage, rows, dim })
    }

    pub(crate) fn owned_u8(data: Vec<u8>, dim: usize, origin: &Origin) -> Result<Self> {
        let rows = count_rows(data.len(), dim, origin)?;
        let storage = Storage::U8(Arc::new(data));
        Ok(Self { storage, rows, dim })
    }

    /// Vectors whose number and values were checked before.
    pub(crate) fn checked_f32(data: Vec<f32>, rows: usize, dim: usize) -> Self {
        let storage = Storage::F32(Arc::new(data));
        Self { storage, rows, dim }
    }

    /// Vectors inside a mapped file; none if they do not lie inside it or are not aligned.
    pub(crate) fn mapped(map: Arc<Mmap>, offset: u64, shape: Shape) -> Option<Self> {
        let Shape { rows, dim, element } = shape;
        let start = usize::try_from(offset).ok()?;
        let bytes = rows.checked_mul(dim)?.checked_mul(element.width())?;
        let slice = map.get(start..start.checked_add(bytes)?)?;
        if element == Element::F32 {
            bytemuck::try_cast_slice::<u8, f32>(slice).ok()?;
        }
        let storage = Storage::Mapped {
            map,
            start,
            element,
        };
        Some(Self { storage, rows, dim })
    }

    pub(crate) fn check_finite(&self, origin: &Origin) -> Result<()> {
        match self.as_f32() {
            Some(data) => check_finite(data, self.dim, origin),
            None => Ok(()),
        }
    }

    /// Number of vectors.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Coordinates of each vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Type of the stored coordinates.
    pub fn element(&self) -> Element {
        match &self.storage {
            Storage::F32(_) => Element::F32,
            Storage::U8(_) => Element::U8,
            Storage::Mapped { element, .. } => *element,
        }
    }

    /// Rows, dimension and element type together.
    pub fn shape(&self) -> Shape {
        Shape {
            rows: self.rows,
            dim: self.dim,
            element: self.element(),
        }
    }

    /// Whether the coordinates lie in a mapped file instead of this process's own memory.
    pub fn is_mapped(&self) -> bool {
        matches!(self.storage, Storage::Mapped { .. })
    }

    /// All coordinates as floats, without a copy where they are stored as floats.
    pub fn to_f32(&self) -> Cow<'_, [f32]> {
        match (self.as_f32(), self.as_u8()) {
            (Some(floats), _) => Cow::Borrowed(floats),
            (None, Some(bytes)) => Cow::Owned(bytes.iter().map(|b| f32::from(*b)).collect()),
            (None, None) => Cow::Borrowed(&[]),
        }
    }

    /// All coordinates as floats in a vector of their own, without a copy where nobody shares them.
    pub fn into_f32(self) -> Vec<f32> {
        match self.storage {
            Storage::F32(data) => {
                let mut data = Arc::unwrap_or_clone(data);
                data.truncate(self.rows * self.dim);
                data
            }
            _ => self.to_f32().into_owned(),
        }
    }

    /// All coordinates, if they are stored as floats.
    pub fn as_f32(&self) -> Option<&[f32]> {
        let count = self.rows * self.dim;
        match &self.storage {
            Storage::F32(data) => Some(&data[..count]),
            Storage::Mapped {
                map,
                start,
                element: Element::F32,
            } => Some(bytemuck::cast_slice(&map[*start..*start + count * 4])),
            _ => None,
        }
    }

    /// All coordinates, if they are stored as bytes.
    pub fn as_u8(&self) -> Option<&[u8]> {
        let count = self.rows * self.dim;
        match &self.storage {
            Storage::U8(data) => Some(&data[..count]),
            Storage::Mapped {
                map,
                start,
                element: Element::U8,
            } => Some(&map[*start..*start + count]),
            _ => None,
        }
    }

    /// Copies vector `i` into `row` as floats.
    ///
    /// # Panics
    ///
    /// If `i` is not below [`rows`](Self::rows) or `row` is not [`dim`](Self::dim) long.
    pub fn row_f32(&self, i: usize, row: &mut [f32]) {
        let range = i * self.dim..(i + 1) * self.dim;
        if let Some(floats) = self.as_f32() {
            row.copy_from_slice(&floats[range]);
        } else if let Some(bytes) = self.as_u8() {
            assert_eq!(row.len(), self.dim, "a row has dim() coordinates");
            for (value, byte) in row.iter_mut().zip(&bytes[range]) {
                *value = f32::from(*byte);
            }
        }
    }

    /// The first `n` vectors (all, where there are fewer), sharing the memory.
    pub fn head(&self, n: usize) -> Result<Self> {
        if n == 0 {
            let origin = Origin::memory();
            return Err(DataError::ZeroRows { origin });
        }
        let mut head = self.clone();
        head.rows = n.min(self.rows);
        Ok(head)
    }
}

impl PartialEq for Vectors {
    /// Equal shapes, element types and coordinates, wherever they are stored.
    fn eq(&self, other: &Self) -> bool {
        self.shape() == other.shape()
            && self.as_f32() == other.as_f32()
            && self.as_u8() == other.as_u8()
    }
}

/// The number of rows in `len` values, which must be a whole number above zero.
pub(crate) fn count_rows(len: usize, dim: usize, origin: &Origin) -> Result<usize> {
    let origin = || origin.clone();
    if dim == 0 {
        return Err(DataError::ZeroDimension { origin: origin() });
    }
    if len == 0 {
        return Err(DataError::ZeroRows { origin: origin() });
    }
    if !len.is_multiple_of(dim) {
        let origin = origin();
        return Err(DataError::BadLength { origin, len, dim });
    }
    Ok(len / dim)
}

/// Finds the first NaN or infinity.
pub(crate) fn check_finite(data: &[f32], dim: usize, origin: &Origin) -> Result<()> {
    check_finite_from(0, data, dim, origin)
}

/// Finds the first NaN or infinity in rows that follow `first` others.
pub(crate) fn check_finite_from(
    first: usize,
    data: &[f32],
    dim: usize,
    origin: &Origin,
) -> Result<()> {
    // A branch per block instead of per value lets the check run at the speed of memory.
    const BLOCK: usize = 4096;
    let infinite = |value: &f32| value.to_bits() & 0x7f80_0000 == 0x7f80_0000;
    for (block, values) in data.chunks(BLOCK).enumerate() {
        if !values.iter().fold(false, |any, v| any | infinite(v)) {
            continue;
        }
        if let Some(at) = values.iter().position(infinite) {
            let index = block * BLOCK + at;
            return Err(DataError::NotFinite {
                origin: origin.clone(),
                row: first + index / dim,
                column: index % dim,
                value: data[index],
            });
        }
    }
    Ok(())
}
