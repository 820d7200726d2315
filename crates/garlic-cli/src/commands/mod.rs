//! One file a command: its arguments, what it does, what it prints.

pub(crate) mod build;
pub(crate) mod config;
pub(crate) mod datasets;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod inspect;
pub(crate) mod search;
pub(crate) mod verify;

use crate::args::Command;

/// Does what the command line asks for.
pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Build(args) => build::run(&args),
        Command::Search(args) => search::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Datasets(args) => datasets::run(&args),
        Command::Config(args) => config::run(&args),
    }
}
