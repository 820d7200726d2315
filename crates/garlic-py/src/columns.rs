//! Columns on their way in and out: Arrow data by the PyCapsule interface, or NumPy arrays and lists.
//!
//! `garlic_ann._columns` decides which of the two a user has given, and makes arrays of what goes out.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, GenericByteArray, PrimitiveArray, RecordBatch,
    RecordBatchIterator, RecordBatchReader, StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow_select::concat::concat_batches;
use garlic_ann::Error;
use numpy::{Element, IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyCapsuleMethods, PyList, PyString};

use crate::arrays::columns_maker;
use crate::errors::raise;

/// The name of a capsule with a stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

fn failed(error: ArrowError) -> PyErr {
    raise(Error::Columns {
        message: error.to_string(),
    })
}

/// The columns that a user's argument stands for.
pub(crate) fn take(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<RecordBatch>> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(None);
    };
    let made = columns_maker(given.py())?.call1((given,))?;
    match made.cast::<PyList>() {
        Ok(list) => from_arrays(list).map(Some),
        Err(_) => from_stream(&made).map(Some),
    }
}

/// All rows of an object with `__arrow_c_stream__`.
#[expect(
    unsafe_code,
    reason = "Arrow data come from other libraries by a pointer"
)]
fn from_stream(given: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let capsule = given.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: the interface promises that a capsule of this name points to a stream, which is valid until the capsule is
    // dropped. Moving it out marks the one in the capsule as released, so that it is released once.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    let reader = RecordBatchStreamReader::try_new(stream).map_err(failed)?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(failed)?;
    concat_batches(&schema, &batches).map_err(failed)
}

/// A column of `garlic_ann._columns`: its name, its type, its values, and which of them there are.
type Column<'py> = (
    String,
    String,
    Bound<'py, PyAny>,
    Option<PyReadonlyArray1<'py, bool>>,
);

fn from_arrays(list: &Bound<'_, PyList>) -> PyResult<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in list {
        let (name, kind, values, valid) = column.extract::<Column<'_>>()?;
        let valid = valid.map(|valid| Ok::<_, PyErr>(NullBuffer::from(valid.as_slice()?)));
        let array = from_array(&kind, &values, valid.transpose()?)?;
        if let Some(first) = arrays.first().map(|first: &ArrayRef| first.len())
            && first != array.len()
        {
            return Err(PyValueError::new_err(format!(
                "column `{name}` has {} values, the first column {first}",
                array.len()
            )));
        }
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(failed)
}

fn from_array(
    kind: &str,
    values: &Bound<'_, PyAny>,
    valid: Option<NullBuffer>,
) -> PyResult<ArrayRef> {
    Ok(match kind {
        "bool" => {
            let values: PyReadonlyArray1<'_, bool> = values.extract()?;
            Arc::new(BooleanArray::new(
                BooleanBuffer::from(values.as_slice()?),
                valid,
            ))
        }
        "int8" => numbers::<Int8Type>(values, valid)?,
        "int16" => numbers::<Int16Type>(values, valid)?,
        "int32" => numbers::<Int32Type>(values, valid)?,
        "int64" => numbers::<Int64Type>(values, valid)?,
        "uint8" => numbers::<UInt8Type>(values, valid)?,
        "uint16" => numbers::<UInt16Type>(values, valid)?,
        "uint32" => numbers::<UInt32Type>(values, valid)?,
        "uint64" => numbers::<UInt64Type>(values, valid)?,
        "float32" => numbers::<Float32Type>(values, valid)?,
        "float64" => numbers::<Float64Type>(values, valid)?,
        "datetime64[D]" => numbers::<Date32Type>(values, valid)?,
        "datetime64[s]" => numbers::<TimestampSecondType>(values, valid)?,
        "datetime64[ms]" => numbers::<TimestampMillisecondType>(values, valid)?,
        "datetime64[us]" => numbers::<TimestampMicrosecondType>(values, valid)?,
        "datetime64[ns]" => numbers::<TimestampNanosecondType>(values, valid)?,
        "text" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
        "bytes" => {
            let values: Vec<Option<Vec<u8>>> = values.extract()?;
            Arc::new(values.into_iter().collect::<BinaryArray>())
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "no column is of type {other}"
            )));
        }
    })
}

fn numbers<T: ArrowPrimitiveType>(
    values: &Bound<'_, PyAny>,
    valid: Option<NullBuffer>,
) -> PyResult<ArrayRef>
where
    T::Native: Element,
{
    let values: PyReadonlyArray1<'_, T::Native> = values.extract()?;
    let values = ScalarBuffer::from(values.as_slice()?.to_vec());
    let array = PrimitiveArray::<T>::try_new(values, valid).map_err(failed)?;
    Ok(Arc::new(array))
}

/// Columns as `garlic_ann._columns.arrays` takes them: the name, the type of NumPy, and an array or a list.
pub(crate) fn put<'py>(py: Python<'py>, columns: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (field, array) in columns.schema().fields().iter().zip(columns.columns()) {
        let (kind, values) = put_array(py, array)?;
        list.append((field.name(), kind, values))?;
    }
    Ok(list)
}

fn put_array<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<(String, Bound<'py, PyAny>)> {
    let whole = |array: &ArrayRef| array.null_count() == 0;
    let moments =
        |kind: &str, values: Vec<i64>| (kind.to_owned(), values.into_pyarray(py).into_any());
    macro_rules! plain {
        ($($kind:ident => $type:ty),*) => {
            match array.data_type() {
                DataType::Boolean if whole(array) => {
                    let values: Vec<bool> = array.as_boolean().values().iter().collect();
                    values.into_pyarray(py).into_any()
                }
                $(DataType::$kind if whole(array) => {
                    array.as_primitive::<$type>().values().to_vec().into_pyarray(py).into_any()
                })*
                _ => return put_objects(py, array),
            }
        };
    }
    match array.data_type() {
        // Missing numbers are not a number.
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().iter();
            let values: Vec<f32> = values.map(|v| v.unwrap_or(f32::NAN)).collect();
            return Ok((String::new(), values.into_pyarray(py).into_any()));
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().iter();
            let values: Vec<f64> = values.map(|v| v.unwrap_or(f64::NAN)).collect();
            return Ok((String::new(), values.into_pyarray(py).into_any()));
        }
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>().iter();
            let values = values.map(|v| v.map_or(i64::MIN, i64::from));
            return Ok(moments("datetime64[D]", values.collect()));
        }
        DataType::Date64 => return Ok(moments("datetime64[ms]", ticks::<Date64Type>(array))),
        DataType::Timestamp(unit, _) => {
            return Ok(match unit {
                TimeUnit::Second => moments("datetime64[s]", ticks::<TimestampSecondType>(array)),
                TimeUnit::Millisecond => {
                    moments("datetime64[ms]", ticks::<TimestampMillisecondType>(array))
                }
                TimeUnit::Microsecond => {
                    moments("datetime64[us]", ticks::<TimestampMicrosecondType>(array))
                }
                TimeUnit::Nanosecond => {
                    moments("datetime64[ns]", ticks::<TimestampNanosecondType>(array))
                }
            });
        }
        _ => {}
    }
    let values = plain!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    );
    Ok((String::new(), values))
}

fn ticks<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef) -> Vec<i64> {
    let values = array.as_primitive::<T>().iter();
    // What NumPy takes for no time.
    values.map(|v| v.unwrap_or(i64::MIN)).collect()
}

/// Values that NumPy has no type for, or that have gaps, as a list of Python's objects.
fn put_objects<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<(String, Bound<'py, PyAny>)> {
    macro_rules! list {
        ($($kind:ident => $type:ty),*) => {
            match array.data_type() {
                $(DataType::$kind => PyList::new(py, array.as_primitive::<$type>().iter())?,)*
                DataType::Boolean => PyList::new(py, array.as_boolean().iter())?,
                DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter())?,
                DataType::LargeUtf8 => PyList::new(py, array.as_string::<i64>().iter())?,
                DataType::Binary => bytes(py, array.as_binary::<i32>())?,
                DataType::LargeBinary => bytes(py, array.as_binary::<i64>())?,
                _ => {
                    let options = FormatOptions::new();
                    let shown = ArrayFormatter::try_new(array, &options).map_err(failed)?;
                    let value = |at| array.is_valid(at).then(|| shown.value(at).to_string());
                    PyList::new(py, (0..array.len()).map(value))?
                }
            }
        };
    }
    let list = list!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    );
    Ok(("object".to_owned(), list.into_any()))
}

fn bytes<'py, T>(py: Python<'py>, array: &GenericByteArray<T>) -> PyResult<Bound<'py, PyList>>
where
    T: ByteArrayType<Native = [u8]>,
{
    let value = |value: Option<&[u8]>| value.map(|value| PyBytes::new(py, value));
    PyList::new(py, array.iter().map(value).collect::<Vec<_>>())
}

/// The rows of an index; pyarrow, pandas and polars read it by the Arrow PyCapsule interface.
#[pyclass(frozen, module = "garlic_ann")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn column_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let fields = self.schema.fields().iter();
        PyList::new(py, fields.map(|field| PyString::new(py, field.name())))
    }

    /// All columns, as `garlic_ann._columns.arrays` takes them.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        put(
            py,
            &concat_batches(&self.schema, &self.batches).map_err(failed)?,
        )
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to answer with the schema that there is.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new(py, stream, Some(STREAM.to_owned()))
    }

    fn __repr__(&self) -> String {
        let fields = self.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        format!("Table({} rows: {})", self.__len__(), names.join(", "))
    }
}
