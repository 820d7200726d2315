//! One file a command: its arguments, what it does, what it prints.

pub(crate) mod add;
pub(crate) mod build;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod datasets;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod remove;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod synth;
pub(crate) mod tune;
pub(crate) mod upsert;
pub(crate) mod verify;

use crate::args::Command;

/// Does what the command line asks for.
pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Build(args) => build::run(&args),
        Command::Search(args) => search::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Upsert(args) => upsert::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Compact(args) => compact::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Datasets(args) => datasets::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
