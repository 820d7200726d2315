//! The few dense operations GARLIC needs, and k-means.
//!
//! The rule of this crate: **it is the only one that names the algebra library underneath, and every
//! result depends on the data and the seed alone.** Matrices are row-major `f32` slices. Every product runs on
//! the calling thread; the functions that take a whole data set share fixed chunks of rows out over the current
//! rayon pool and reduce them in chunk order, so one thread and sixteen give the same bits.
//!
//! ```
//! use garlic_linalg::{Rows, kmeans_plus_plus, lloyd};
//!
//! let points = [0.0, 0.0, 0.1, 0.0, 9.0, 9.0, 9.1, 9.0];
//! let rows = Rows::new(&points, 2)?;
//! let clustering = lloyd(rows, kmeans_plus_plus(rows, 2, 7), 10);
//! assert_eq!(clustering.sizes, [2, 2]);
//! assert_eq!(clustering.labels[0], clustering.labels[1]);
//! # Ok::<(), garlic_linalg::ShapeError>(())
//! ```
//!
//! Functions on raw slices panic when a slice is shorter than the stated shape, as indexing does.

mod components;
mod decompose;
mod gemm;
mod leading;
mod lloyd;
mod matrix;
mod nearest;
mod pca;
mod random;
mod seeding;
mod triangular;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use components::top_components;
pub use decompose::{Eigen, NotPositiveDefinite, cholesky, symmetric_eigen};
pub use gemm::{Operand, gemm, gram};
pub use leading::{Leading, Wanted, leading_components};
pub use lloyd::{Clustering, lloyd};
pub use matrix::{Matrix, Rows, ShapeError};
pub use nearest::nearest_centres;
pub use pca::{Pca, covariance, pca};
pub use random::{permutation, random_stream, uniform_below, uniform_unit};
pub use seeding::{farthest_points, kmeans_plus_plus, random_rows};
pub use triangular::{
    lower_accumulate_outer, lower_gram, lower_of_symmetric_times_lower, mirror_lower, solve_lower,
    solve_lower_transpose, times_lower,
};
