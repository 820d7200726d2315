//! Finding the cells: k-means, then rounds of assigning points by the anisotropic score and refitting.

mod balance;
pub(crate) mod fit;
pub(crate) mod streams;
