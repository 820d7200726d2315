//! The program `garlic`, which comes with the package.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with its arguments, its name first, and returns its exit code. It takes over Ctrl-C.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| garlic_cli::run(args))
}
