//! The tests of the public interface, in one program: each program of its own would compile and link the crate again.
//! Tests that kill themselves, or count the threads or the memory of their process, stay in programs of their own.

#[path = "../../../garlic-data/tests/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../testdata/mod.rs"]
mod testdata;

mod brute_force;
mod cancel;
mod cells;
mod damage;
mod determinism;
mod disk;
mod drift;
mod errors;
mod filters;
mod fixtures;
mod fuzz;
mod graph;
mod growth;
mod high_dimensions;
mod int8;
mod interface;
mod layers;
mod live_moved;
mod mapped;
mod metric;
mod outliers;
mod overwritten;
mod precision;
mod progress;
mod range;
mod real_data;
mod recall;
mod spilling;
mod store;
mod stored_types;
mod tune;
mod updates;
