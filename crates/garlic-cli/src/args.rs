//! The command line as a whole; each command's own arguments are beside its code.

use clap::{Parser, Subcommand};

use crate::commands::{
    add, build, compact, config, convert, datasets, demo, eval, inspect, remove, search, verify,
};

/// Nearest-neighbour search over learned anisotropic Gaussian cells.
///
/// `build` learns cells from a set of vectors and writes one index file, which contains the vectors, or with --live
/// an index directory, which keeps every change; `search` and `eval` ask it, for the recall that --recall names;
/// `add`, `remove` and `compact` change it; `inspect` and `verify` look at it. Wherever an index is named, it may be a
/// file or a directory.
#[derive(Debug, Parser)]
#[command(
    name = "garlic",
    bin_name = "garlic",
    version,
    after_help = HELP,
    arg_required_else_help = true,
    max_term_width = 110
)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const HELP: &str = "\
Examples:
  garlic demo                                                      a tour on synthetic data
  garlic build fashion-mnist-784-euclidean -o fm.garlic --seed 1   build an index
  garlic eval fm.garlic fashion-mnist-784-euclidean --recall .9,.95,.99   what recalls cost
  garlic search fm.garlic queries.npy -k 10 -o hits.ivecs          look up neighbours
  garlic search fm.garlic queries.npy -k 10 -o hits.ivecs --exact  all of them, certainly
  garlic add fm.garlic more.npy                                    add vectors

Data:
  .hdf5 (ANN-Benchmarks), .npy, .fvecs, .bvecs, .fbin, .u8bin. A name that is no file is looked
  up in the data directory: $GARLIC_DATA, else ~/.cache/garlic/datasets. `garlic datasets` lists it
  and downloads public sets into it.

Exit codes:
    0   done
    1   failed (full disk, unwritable output, another writer, no threads, ...)
    2   wrong usage (unknown flag, parameter or configuration key, value out of range)
    3   bad data or index (missing, unreadable, damaged, NaN, other dimension, identifiers that do not fit)
  130   cancelled with Ctrl-C";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Build(build::Args),
    Search(search::Args),
    Eval(eval::Args),
    Add(add::Args),
    Remove(remove::Args),
    Compact(compact::Args),
    Inspect(inspect::Args),
    Verify(verify::Args),
    Convert(convert::Args),
    Demo(demo::Args),
    Datasets(datasets::Args),
    Config(config::Args),
}

/// Reads a share in (0, 1].
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v > 0.0 && v <= 1.0 => Ok(v),
        _ => Err("must be a number above 0 and at most 1".into()),
    }
}

/// Reads a recall to aim at, in (0, 1).
pub(crate) fn recall(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v > 0.0 && v < 1.0 => Ok(v),
        _ => Err(
            "must be a number above 0 and below 1; to find all true neighbours search with --exact"
                .into(),
        ),
    }
}

/// Reads a radius.
pub(crate) fn radius(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(v) if v.is_finite() => Ok(v),
        _ => Err("must be a finite number, in the distances that a search reports".into()),
    }
}

/// Reads a number of at least one.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(v) if v > 0 => Ok(v),
        _ => Err("must be a whole number of at least 1".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        for command in Args::command().get_subcommands() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.starts_with("Example"),
                "{} has no examples",
                command.get_name()
            );
            assert!(
                command.get_about().is_some(),
                "{} has no description",
                command.get_name()
            );
        }
    }

    #[test]
    fn shares_and_counts_have_limits() {
        assert_eq!(share("0.3"), Ok(0.3));
        assert!(
            ["0", "1.5", "-1", "nan", "x"]
                .iter()
                .all(|t| share(t).is_err())
        );
        assert_eq!(recall(".95"), Ok(0.95));
        assert!(
            ["0", "1", "1.5", "-0.5", "nan", "95 %"]
                .iter()
                .all(|t| recall(t).unwrap_err().contains("--exact"))
        );
        assert_eq!((radius("2.5"), radius("-1")), (Ok(2.5), Ok(-1.0)));
        assert!(
            ["nan", "inf", "1e99", ""]
                .iter()
                .all(|t| radius(t).is_err())
        );
        assert_eq!(positive("3"), Ok(3));
        assert!(["0", "-1", "1.5", ""].iter().all(|t| positive(t).is_err()));
    }
}
