//! Bins and codes of the cells.

pub(crate) mod learned;
pub(crate) mod part;
