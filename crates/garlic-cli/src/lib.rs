//! The program `garlic`: build, change, query, evaluate and inspect indexes.
//!
//! Rule of this crate: it only joins the libraries to a command line. Results go to standard output, everything
//! else to standard error; every error ends in one line that says what to do and in a documented exit code.
//!
//! It is a library with one function, because the Python package carries the same program.

// The one crate that talks to a terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod columns;
mod commands;
mod download;
mod exit;
mod filter;
mod hits;
mod ids;
mod input;
mod interrupt;
mod kept;
mod metric;
mod names;
mod output;
mod place;
mod progress;
mod report;
mod sources;
mod system;
mod table;
mod targets;
mod writer;

use std::ffi::OsString;
use std::io::Write as _;

use clap::Parser as _;

/// Runs the program and returns its exit code. The first of `args` is the name that it was called by.
///
/// It takes over Ctrl-C and writes to the terminal, so it is for the whole process: call it once.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let code = match args::Args::try_parse_from(args) {
        Ok(args) => exit::finish(interrupt::install().and_then(|()| commands::run(args.command))),
        Err(error) => exit::usage(&error),
    };
    // Only a program in Rust does this when it ends. An error has been told, or its reader is gone.
    let _ = std::io::stdout().flush();
    code as u8
}
