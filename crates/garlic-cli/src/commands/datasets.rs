//! `garlic datasets`: what is in the data directory, and what can be had for it.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use garlic_data::{DatasetEntry, data_dir, list_datasets};
use serde_json::{Value, json};

use crate::download::{self, Client};
use crate::metric;
use crate::output;
use crate::progress::Meter;
use crate::sources::{self, Source};
use crate::table::{self, Table};

/// List the data sets in the data directory, or download one into it
///
/// The data directory is $GARLIC_DATA, or ~/.cache/garlic/datasets if that is not set. Wherever a command takes a file
/// of vectors, it also takes the name of a file in the data directory, without extension.
///
/// An interrupted download continues where it stopped. A download of another format, or of more than twice the
/// published size, is refused and deleted. The SHA-256 of each file is written beside it. A file that exists is compared
/// with it and not downloaded again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Download this set of ANN-Benchmarks
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(sources::NAMES))]
    get: Option<String>,
    /// Download the class labels of the images of this set
    #[arg(long, value_name = "NAME", conflicts_with = "get",
        value_parser = PossibleValuesParser::new(sources::LABELLED))]
    labels: Option<String>,
    /// Most bytes to download [default: twice the published size]
    #[arg(long, value_name = "N", requires = "get", value_parser = clap::value_parser!(u64).range(1..))]
    max_bytes: Option<u64>,
    /// Use this directory instead of the data directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print one JSON object per line; no progress
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic datasets
  garlic datasets --get fashion-mnist-784-euclidean
  garlic datasets --labels fashion-mnist
  GARLIC_DATA=/data/vectors garlic datasets --json";

/// Lists, or downloads.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let dir = args.dir.clone().unwrap_or_else(data_dir);
    if let Some(name) = &args.get {
        return get(&dir, args.json, |base| {
            let mut source = sources::set(name, base);
            source.most = args.max_bytes.unwrap_or(source.most);
            vec![source]
        });
    }
    if let Some(name) = &args.labels {
        return get(&dir, args.json, |base| sources::labels(name, base));
    }
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
            "garlic: no data sets in {}; `garlic datasets --get NAME` downloads one, or set GARLIC_DATA",
            dir.display()
        );
        return Ok(());
    }
    output::print(&readable(&entries))
}

/// Downloads what is not there yet and tells where all of it is.
fn get(dir: &Path, json: bool, files: impl Fn(Option<&str>) -> Vec<Source>) -> anyhow::Result<()> {
    let client = Client::new()?;
    let mut meter = Meter::new(json);
    for source in files(client.base()) {
        let got = download::get(&client, &source, dir, &mut meter)?;
        if json {
            output::print_json(&json!({
                "path": got.path,
                "bytes": got.bytes,
                "sha256": got.sha256,
                "downloaded": got.new,
            }))?;
        } else {
            output::print(&format!(
                "{}: {}, {}\n",
                got.path.display(),
                table::bytes(got.bytes),
                if got.new {
                    "downloaded"
                } else {
                    "there already"
                },
            ))?;
        }
    }
    Ok(())
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
