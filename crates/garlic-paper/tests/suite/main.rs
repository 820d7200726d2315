//! The tests of the public interface, in one program: each program of its own would compile and link the crate again.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../garlic-data/tests/fuzzing/mod.rs"]
mod fuzzing;

mod bin_distance;
mod bin_grid;
mod building;
mod damage;
mod determinism;
mod exhaustive;
mod files;
mod fixtures;
mod fuzz;
mod metrics;
mod partition;
mod pruning;
mod queries;
mod real_data;
mod updates;
