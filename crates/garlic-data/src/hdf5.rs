//! ANN-Benchmarks HDF5 files: one set for each table, the distance as an attribute.
//!
//! The file is read on demand, so that a listing touches headers only; a contiguous set of
//! little-endian floats or of bytes is mapped instead of being read.

use hdf5_pure::{DType, Datatype, DatatypeByteOrder, File, FloatingPointLayout, Layout as Storage};

use crate::error::{DataError, Origin, Result};
use crate::flat::Layout;
use crate::ids::Ids;
use crate::input::{Input, to_usize};
use crate::vectors::{Element, Shape, Vectors, check_finite};

/// No filter shrinks data further than deflate, whose best is 1032 to 1: a compressed set that
/// claims more than this was not written by one.
const LARGEST_RATIO: u64 = 1032;

/// An open HDF5 file.
pub(crate) struct Hdf5<'a> {
    file: File,
    input: &'a Input,
    sets: Vec<String>,
}

/// A set whose claims were checked against the file.
struct Set {
    data: hdf5_pure::Dataset,
    origin: Origin,
    dtype: DType,
    axes: Vec<u64>,
    /// Where its values lie, if they lie in one piece.
    address: Option<u64>,
}

impl<'a> Hdf5<'a> {
    pub(crate) fn open(input: &'a Input) -> Result<Self> {
        let signed = hdf5_pure::is_hdf5(&input.path)
            .map_err(|cause| DataError::io("read", &input.path, cause))?;
        if !signed {
            return Err(DataError::BadHeader {
                origin: input.origin(),
                offset: 0,
                reason: "the HDF5 signature is missing".to_owned(),
            });
        }
        let failed = |cause| unreadable(input.origin(), cause);
        let file = File::open_streaming(&input.path).map_err(failed)?;
        let sets = file.root().datasets().map_err(failed)?;
        Ok(Self { file, input, sets })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.sets.iter().any(|set| set == name)
    }

    /// The attribute `distance`, if the file has one.
    pub(crate) fn distance(&self) -> Result<Option<String>> {
        let origin = self.input.origin();
        let root = self.file.root();
        let attributes = root
            .attrs()
            .map_err(|cause| unreadable(origin.clone(), cause))?;
        if let Some(value) = attributes.get("distance").and_then(|value| value.as_str()) {
            return Ok(Some(value.to_owned()));
        }
        let types = root
            .attr_datatypes()
            .map_err(|cause| unreadable(origin.clone(), cause))?;
        match types.get("distance") {
            None => Ok(None),
            Some(datatype) => Err(DataError::UnsupportedType {
                origin: origin.set("attribute distance"),
                found: datatype.to_string(),
                supported: "a string",
            }),
        }
    }

    fn set(&self, name: &str) -> Result<Set> {
        let origin = self.input.origin().set(name.to_owned());
        if !self.has(name) {
            let present = match self.sets.len() {
                0 => "no sets".to_owned(),
                _ => self.sets.join(", "),
            };
            return Err(DataError::MissingSet { origin, present });
        }
        let failed = |cause| unreadable(origin.clone(), cause);
        let data = self.file.dataset(name).map_err(failed)?;
        let dtype = data.dtype().map_err(failed)?;
        let axes = data.shape().map_err(failed)?;
        let width = data.element_size().map_err(failed)?;
        let bytes = axes.iter().try_fold(width, |n, axis| n.checked_mul(*axis));
        let bytes = bytes.unwrap_or(u64::MAX);
        let truncated = |needed| DataError::Truncated {
            origin: origin.clone(),
            what: "the set as its header describes it",
            needed,
            len: self.input.len,
        };
        let unsupported = |reason| DataError::UnsupportedStorage {
            origin: origin.clone(),
            reason,
        };
        let mut place = None;
        match data.layout().map_err(failed)? {
            Storage::Contiguous { address, size } if bytes > 0 => {
                let address = address.ok_or_else(|| unsupported("the set was never written"))?;
                let end = address.saturating_add(bytes.max(size));
                if end > self.input.len {
                    return Err(truncated(end));
                }
                place = Some(address);
            }
            Storage::Contiguous { .. } | Storage::Compact { .. } => {
                if bytes > self.input.len {
                    return Err(truncated(bytes));
                }
            }
            Storage::Chunked { .. } => {
                let ratio = if data.filters().is_empty() {
                    1
                } else {
                    LARGEST_RATIO
                };
                if bytes > self.input.len.saturating_mul(ratio) {
                    return Err(truncated(bytes / ratio));
                }
            }
            _ => return Err(unsupported("the set is virtual")),
        }
        Ok(Set {
            data,
            origin,
            dtype,
            axes,
            address: place,
        })
    }

    pub(crate) fn vectors_shape(&self, name: &str) -> Result<Shape> {
        self.set(name)?.vectors_shape()
    }

    /// A set of vectors; 64-bit floats are rounded to 32 bits, and 16-bit floats become 32-bit floats.
    pub(crate) fn vectors(&self, name: &str) -> Result<Vectors> {
        let set = self.set(name)?;
        let shape = set.vectors_shape()?;
        let failed = |cause| unreadable(set.origin.clone(), cause);
        if set.is_half() {
            return match set.address {
                Some(address) => self.input.half_vectors(address, shape, &set.origin),
                None => set.half_vectors(shape),
            };
        }
        let plain = match shape.element {
            Element::F32 => hdf5_pure::make_f32_type(),
            Element::U8 => hdf5_pure::make_u8_type(),
        };
        if let Some(address) = set.address
            && set.data.datatype().map_err(failed)? == plain
        {
            return self.input.vectors(address, shape, &set.origin);
        }
        match shape.element {
            Element::F32 => {
                let data = set.data.read_f32().map_err(failed)?;
                Vectors::owned_f32(data, shape.dim, &set.origin)
            }
            Element::U8 => {
                let data = set.data.read_u8().map_err(failed)?;
                Vectors::owned_u8(data, shape.dim, &set.origin)
            }
        }
    }

    /// Where the rows of a set of vectors lie, if they lie in one piece.
    pub(crate) fn layout(&self, name: &str) -> Result<Option<Layout>> {
        let set = self.set(name)?;
        let Shape { rows, dim, element } = set.vectors_shape()?;
        let Some(address) = set.address else {
            return Ok(None);
        };
        if set.is_half() {
            return Ok(Some(Layout::halves(address, rows, dim)));
        }
        let plain = match element {
            Element::F32 => hdf5_pure::make_f32_type(),
            Element::U8 => hdf5_pure::make_u8_type(),
        };
        let found = set.data.datatype();
        let found = found.map_err(|cause| unreadable(set.origin.clone(), cause))?;
        Ok((found == plain).then(|| Layout::plain(address, rows, dim, element)))
    }

    /// A set of ids.
    pub(crate) fn ids(&self, name: &str) -> Result<Ids> {
        let set = self.set(name)?;
        let (_, cols) = set.table()?;
        set.need_integers()?;
        let data = set.data.read_i64();
        let data = data.map_err(|cause| unreadable(set.origin.clone(), cause))?;
        Ids::with_origin(data, cols, &set.origin)
    }

    /// A set of numbers as floats, with its rows and columns.
    pub(crate) fn floats(&self, name: &str) -> Result<(Vec<f32>, usize, usize)> {
        let set = self.set(name)?;
        let (rows, cols) = set.table()?;
        if !matches!(set.dtype, DType::F32 | DType::F64) {
            return Err(set.unsupported("float32"));
        }
        let data = set.data.read_f32();
        let data = data.map_err(|cause| unreadable(set.origin.clone(), cause))?;
        check_finite(&data, cols, &set.origin)?;
        Ok((data, rows, cols))
    }

    /// A set of labels, one a row.
    pub(crate) fn labels(&self, name: &str) -> Result<Vec<i64>> {
        let set = self.set(name)?;
        if !matches!(set.axes[..], [_] | [_, 1]) {
            return Err(DataError::BadRank {
                origin: set.origin,
                found: set.axes.len(),
                expected: 1,
                fix: "(rows,)",
            });
        }
        set.need_integers()?;
        let data = set.data.read_i64();
        data.map_err(|cause| unreadable(set.origin.clone(), cause))
    }

    /// Rows and columns of a set, as its header says.
    pub(crate) fn table_shape(&self, name: &str) -> Result<(usize, usize)> {
        self.set(name)?.table()
    }
}

impl Set {
    fn unsupported(&self, supported: &'static str) -> DataError {
        DataError::UnsupportedType {
            origin: self.origin.clone(),
            found: self.dtype.to_string(),
            supported,
        }
    }

    /// Whether the numbers are little-endian IEEE half-precision floats.
    fn is_half(&self) -> bool {
        let half = Datatype::FloatingPoint {
            size: 2,
            byte_order: DatatypeByteOrder::LittleEndian,
            layout: FloatingPointLayout {
                bit_offset: 0,
                bit_precision: 16,
                exponent_location: 10,
                exponent_size: 5,
                mantissa_location: 0,
                mantissa_size: 10,
                exponent_bias: 15,
            },
        };
        matches!(&self.dtype, DType::Other(found) if **found == half)
    }

    /// The half-precision vectors of a set that does not lie in one piece, converted some rows at a time.
    fn half_vectors(&self, shape: Shape) -> Result<Vectors> {
        const ROWS: usize = 1024;
        let mut data = Vec::with_capacity(shape.rows * shape.dim);
        for first in (0..shape.rows).step_by(ROWS) {
            let count = ROWS.min(shape.rows - first);
            let raw = self.data.read_raw_rows(first as u64, count as u64);
            let raw = raw.map_err(|cause| unreadable(self.origin.clone(), cause))?;
            let halves = raw.as_chunks::<2>().0.iter();
            data.extend(halves.map(|b| garlic_simd::f16_to_f32(u16::from_le_bytes(*b))));
        }
        Vectors::owned_f32(data, shape.dim, &self.origin)
    }

    fn need_integers(&self) -> Result<()> {
        use DType::{I8, I16, I32, I64, U8, U16, U32, U64};
        match self.dtype {
            I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 => Ok(()),
            _ => Err(self.unsupported("int32 or int64")),
        }
    }

    fn table(&self) -> Result<(usize, usize)> {
        let origin = || self.origin.clone();
        let [rows, cols] = self.axes[..] else {
            return Err(DataError::BadRank {
                origin: origin(),
                found: self.axes.len(),
                expected: 2,
                fix: "(rows, columns)",
            });
        };
        if cols == 0 {
            return Err(DataError::ZeroDimension { origin: origin() });
        }
        if rows == 0 {
            return Err(DataError::ZeroRows { origin: origin() });
        }
        Ok((
            to_usize(rows, "the number of rows", &self.origin)?,
            to_usize(cols, "the number of columns", &self.origin)?,
        ))
    }

    fn vectors_shape(&self) -> Result<Shape> {
        let (rows, dim) = self.table()?;
        let element = match self.dtype {
            DType::F32 | DType::F64 => Element::F32,
            DType::Other(_) if self.is_half() => Element::F32,
            DType::U8 => Element::U8,
            _ => return Err(self.unsupported("float32, float16 or uint8")),
        };
        Ok(Shape { rows, dim, element })
    }
}

fn unreadable(origin: Origin, cause: hdf5_pure::Error) -> DataError {
    let cause = Box::new(cause);
    DataError::Hdf5 { origin, cause }
}
