//! From the library's errors to Python's exceptions, with the library's words.

use std::io;

use garlic_ann::Error;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyKeyError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(
    garlic_ann,
    FormatError,
    PyValueError,
    "A file, a directory or bytes that are no index, are damaged, or are of another format version."
);

/// The exception of an error of the library.
pub(crate) fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io { source, .. } => os_error(&source, text),
        Error::Locked { .. }
        | Error::Moved { .. }
        | Error::Forked { .. }
        | Error::Directory { .. }
        | Error::ReadOnly { .. }
        | Error::Broken { .. } => PyOSError::new_err(text),
        Error::Format { .. } | Error::Log { .. } => FormatError::new_err(text),
        Error::UnknownId { .. } | Error::UnknownName { .. } => PyKeyError::new_err(text),
        Error::Cancelled => PyKeyboardInterrupt::new_err(text),
        Error::Threads { .. } | Error::FilterInItself => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The exception of bytes that are no index.
pub(crate) fn raise_format(error: &garlic_ann::FormatError) -> PyErr {
    FormatError::new_err(error.to_string())
}

/// The exception of an array that the system gives no memory for.
pub(crate) fn no_memory(values: usize) -> PyErr {
    PyMemoryError::new_err(format!(
        "the answer would take {values} entries, more than the system gives memory for"
    ))
}

/// `OSError` or the one of its subclasses that Python gives this failure.
pub(crate) fn os_error(source: &io::Error, text: String) -> PyErr {
    Python::attach(|py| {
        // Python chooses the class by the number; the library's text stays the message.
        let Some(number) = source.raw_os_error() else {
            return PyOSError::new_err(text);
        };
        let class = match PyOSError::new_err((number, "")).value(py).get_type() {
            class if class.is_subclass_of::<PyOSError>().unwrap_or(false) => class,
            _ => return PyOSError::new_err(text),
        };
        match class.call1((text.as_str(),)) {
            Ok(value) => {
                // Without the number the message would still be right.
                let _ = value.setattr("errno", number);
                PyErr::from_value(value)
            }
            Err(_) => PyOSError::new_err(text),
        }
    })
}
