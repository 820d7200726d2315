//! The tests of the readers and writers, in one program: each of its own would be linked again.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
#[path = "../fuzzing/mod.rs"]
mod fuzzing;

mod benchmark_files;
mod errors;
mod fuzz;
mod halves;
mod layouts;
mod real_data;
mod round_trip;
mod tables;
mod truncation;
mod truth;
