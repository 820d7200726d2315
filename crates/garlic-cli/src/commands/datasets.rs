//! `garlic datasets`: what is in the data directory.

use std::path::PathBuf;

use garlic_data::{DatasetEntry, data_dir, list_datasets};
use serde_json::{Value, json};

use crate::metric;
use crate::output;
use crate::table::{self, Table};

/// List the data sets in the data directory
///
/// The directory is $GARLIC_DATA, else ~/.cache/garlic/datasets. Commands take the names of its files, without
/// their extension, wherever they take a file of vectors.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// List this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic datasets
  GARLIC_DATA=/data/vectors garlic datasets --json";

/// Lists.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let dir = args.dir.clone().unwrap_or_else(data_dir);
    // Nobody has to have a data directory; one that was named must be there.
    let entries = if args.dir.is_none() && !dir.exists() {
        Vec::new()
    } else {
        list_datasets(&dir)?
    };
    if args.json {
        return output::with_stdout(|out| {
            entries
                .iter()
                .try_for_each(|e| writeln!(out, "{}", describe(e)))
        });
    }
    if entries.is_empty() {
        eprintln!(
            "garlic: no data sets in {}; put ANN-Benchmarks .hdf5 files there or set GARLIC_DATA",
            dir.display()
        );
        return Ok(());
    }
    output::print(&readable(&entries))
}

fn describe(entry: &DatasetEntry) -> Value {
    match &entry.info {
        Ok(info) => json!({
            "name": info.name,
            "path": info.path,
            "points": info.rows,
            "queries": info.queries,
            "dim": info.dim,
            "type": info.element.name(),
            "metric": info.metric.map(metric::of_data),
            "truth": info.has_truth,
            "labels": info.has_labels,
            "bytes": info.bytes,
        }),
        Err(error) => json!({ "name": entry.name, "path": entry.path, "error": error.to_string() }),
    }
}

fn readable(entries: &[DatasetEntry]) -> String {
    let mut table = Table::new(&[
        "<name", "points", "queries", "dim", "type", "<metric", "<truth", "size", "<file",
    ]);
    for entry in entries {
        let file = entry
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        table.row(match &entry.info {
            Ok(info) => vec![
                info.name.clone(),
                table::count(info.rows),
                table::count(info.queries),
                info.dim.to_string(),
                info.element.name().to_owned(),
                info.metric
                    .map_or_else(|| "-".to_owned(), |m| metric::of_data(m).to_string()),
                if info.has_truth { "yes" } else { "no" }.to_owned(),
                table::bytes(info.bytes),
                file,
            ],
            Err(error) => {
                let mut cells = vec![entry.name.clone()];
                cells.resize(8, "?".to_owned());
                cells.push(format!("{file}: {error}"));
                cells
            }
        });
    }
    table.render()
}
