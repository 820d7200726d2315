//! The command line as a whole; each command's own arguments are beside its code.

use clap::{Parser, Subcommand};

use crate::commands::{
    add, build, compact, completions, config, convert, datasets, demo, eval, inspect, man, remove,
    search, serve, synth, tune, upsert, verify,
};

/// Nearest-neighbour search with recall targets.
///
/// `build` makes an index from a set of vectors. The index contains the vectors. It is a file, or with --live a
/// directory that keeps every change. `search` finds neighbours and `eval` measures searches; --recall names the
/// recall target. `serve` answers searches over HTTP. `add`, `upsert`, `remove`, `compact` and `tune` change an index. `inspect` and `verify` examine it. Every command takes
/// an index file or an index directory.
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
  garlic eval fm.garlic fashion-mnist-784-euclidean --recall .9,.95,.99   what recall costs
  garlic search fm.garlic queries.npy -k 10 -o hits.ivecs          find neighbours
  garlic search fm.garlic queries.npy -k 10 -o hits.ivecs --exact  exact search
  garlic add fm.garlic more.npy                                    add vectors
  garlic serve fm.garlic                                           searches over HTTP, and a page to look at it

Data:
  Formats are .parquet, .arrow (.feather), .npy, .npz, .csv, .tsv, .hdf5 (ANN-Benchmarks), .fvecs,
  .bvecs, .fbin and .u8bin, a folder of such files, and `-` for standard input. --vectors and --ids
  name columns. A name that is not a file is looked up in the data directory: $GARLIC_DATA, or
  ~/.cache/garlic/datasets if that is not set. `garlic datasets` lists the directory and downloads
  public data sets into it.

Exit codes:
    0   done
    1   failed (full disk, unwritable output, another writer, no threads, ...)
    2   wrong usage (unknown flag, parameter or configuration key, value out of range)
    3   bad data or index (missing, unreadable, damaged, NaN, wrong dimension, wrong identifiers)
  130   cancelled with Ctrl-C";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Build(build::Args),
    Search(search::Args),
    Serve(serve::Args),
    Eval(eval::Args),
    Add(add::Args),
    Upsert(upsert::Args),
    Remove(remove::Args),
    Compact(compact::Args),
    Tune(tune::Args),
    Inspect(inspect::Args),
    Verify(verify::Args),
    Convert(convert::Args),
    Synth(synth::Args),
    Demo(demo::Args),
    Datasets(datasets::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Reads a number of bytes such as 4GiB, 512MB or 1000000.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("b", 1),
        ("", 1),
    ];
    let lower = text.trim().to_ascii_lowercase();
    let number = |(unit, bytes): (&str, u64)| {
        let number = lower.strip_suffix(unit)?.trim_end().parse::<f64>().ok()?;
        (number > 0.0 && number.is_finite()).then_some((number * bytes as f64) as u64)
    };
    let found = UNITS.into_iter().find_map(number);
    found.ok_or_else(|| "must be a number of bytes such as 4GiB, 512MB or 1000000".into())
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
