//! The extension module of the Python package `garlic_ann`.
//!
//! It turns arrays into rows, errors into exceptions and answers into arrays, and lets go of the interpreter while
//! the library works. What users see, docstrings included, is written in Python (`python/garlic_ann`).
//!
//! The rule of this crate: no search logic. It may use `garlic-table`, `garlic-any`, `garlic-ann` and `garlic-data`,
//! and `garlic-cli` only to run the program.

mod arrays;
mod building;
mod columns;
mod describe;
mod errors;
mod files;
mod filter;
mod handle;
mod interrupt;
mod output;
mod program;
mod reading;
mod shapes;

use pyo3::prelude::*;

/// Native part of `garlic_ann`; import that.
#[pymodule(gil_used = true)]
mod _garlic {
    #[pymodule_export]
    use super::building::{build, build_like, check_settings, empty, parameters, train_like};
    #[pymodule_export]
    use super::columns::Table;
    #[pymodule_export]
    use super::errors::FormatError;
    #[pymodule_export]
    use super::files::{from_bytes, live_create, live_open, open, verify};
    #[pymodule_export]
    use super::filter::Filter;
    #[pymodule_export]
    use super::handle::Handle;
    #[pymodule_export]
    use super::program::program;
    #[pymodule_export]
    use super::reading::{read, write};
    #[pymodule_export]
    use super::shapes::{assign, project, route, shapes};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("EXHAUSTIVE_POINTS", garlic_ann::EXHAUSTIVE_POINTS)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
