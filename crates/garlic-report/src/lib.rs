//! Pages and pictures of the numbers that `garlic-eval` measures.
//!
//! The rule of this crate: it sees numbers, never an index. A page is one HTML text with its drawings inside: no scripts,
//! nothing loaded from elsewhere, readable on a phone and on a dark screen. The picture comes first, then one table; the
//! rest is folded away. What a page says is in `templates/`, what it draws in this code.
//!
//! ```
//! use garlic_eval::diagnose::Diagnosis;
//!
//! # fn main() -> Result<(), garlic_report::Error> {
//! let page = garlic_report::diagnosis_page(&Diagnosis::default())?;
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok(())
//! # }
//! ```

mod demo;
mod diagnosis;
mod page;
mod plot;
#[cfg(test)]
mod tests;

pub use demo::demo_page;
pub use diagnosis::diagnosis_page;

use plotters::drawing::DrawingAreaErrorKind;

/// What can go wrong while a page is made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A drawing failed.
    #[error("a picture of the report could not be drawn: {0}")]
    Drawing(#[from] DrawingAreaErrorKind<std::io::Error>),
    /// A template failed.
    #[error("the page of the report could not be made: {0:#}")]
    Template(#[from] minijinja::Error),
}

/// `Result` with the crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
