//! The program `garlic`: build, change, query, evaluate and inspect indexes.
//!
//! Rule of this crate: it only joins the libraries to a command line. Results go to standard output, everything
//! else to standard error; every error ends in one line that says what to do and in a documented exit code.

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

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    exit::finish(interrupt::install().and_then(|()| commands::run(args.command)))
}
