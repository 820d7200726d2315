//! The tests of the program, in one program of tests: each of its own would be linked again.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/server.rs"]
mod server;

mod build;
mod change;
mod columns;
mod completions;
mod convert;
mod demo;
mod download;
mod exit_codes;
mod filters;
mod grow;
mod input;
mod inspect;
mod interrupt;
mod metric;
mod queries;
mod quickstart;
mod recall;
mod serve;
mod serve_faults;
mod streamed;
mod synth;
