//! `garlic remove`: points out of an index.

use std::path::PathBuf;
use std::time::Instant;

use garlic_table::Ids;
use serde_json::json;

use crate::exit::Fault;
use crate::ids;
use crate::interrupt::Watch;
use crate::output;
use crate::table;
use crate::writer::{self, Writer};

/// Remove points from an index by their identifiers
///
/// Identifiers that do not exist are ignored; the summary says how many existed. An index directory removes all of them
/// in one batch, and `garlic compact` frees their space. An index file is replaced.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file or index directory
    index: PathBuf,
    /// Identifiers to remove
    #[arg(value_name = "ID")]
    id: Vec<String>,
    /// More identifiers: text with one per line, .npy, .ivecs or .ibin; `-` reads text from standard input
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic remove vectors.garlic 17 99
  garlic remove live-index --ids old.txt
  cut -d, -f3 hits.csv | tail -n +2 | garlic remove live-index --ids - --json";

/// Removes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.ids.is_none() && args.id.is_empty() {
        return Err(Fault::usage(
            "no identifiers to remove; name some, or a file of them with --ids",
        ));
    }
    let inputs: Vec<_> = args.ids.as_deref().into_iter().collect();
    let mut writer = Writer::open(&args.index, &inputs)?;
    let ids = named(args, writer.is_named()?)?;

    // A first Ctrl-C waits until the change is whole.
    let watch = Watch::start();
    let start = Instant::now();
    let removed = watch.run(|| writer.remove(&ids));
    let removed = removed.map_err(|e| writer.failed(e))?;
    let index = match removed {
        0 => writer.snapshot(),
        _ => writer.finish()?,
    };
    let seconds = start.elapsed().as_secs_f64();
    drop(watch);

    let drift = index.updatable().ok().map(|index| index.drift());
    if args.json {
        return output::print_json(&json!({
            "index": args.index,
            "asked": ids.len(),
            "removed": removed,
            "points": index.len(),
            "seconds": seconds,
            "drift": drift,
        }));
    }
    if args.quiet {
        return Ok(());
    }
    let mut entries = vec![
        ("index", args.index.display().to_string()),
        (
            "removed",
            format!(
                "{} of {} that were named",
                table::count(removed),
                table::count(ids.len())
            ),
        ),
        ("points", table::count(index.len())),
    ];
    let advice = drift.as_ref().and_then(writer::advice);
    entries.extend(advice.map(|advice| ("drift", advice)));
    output::print(&table::list(&entries))
}

/// The identifiers to remove, each once: names, or numbers.
fn named(args: &Args, is_named: bool) -> anyhow::Result<Ids> {
    let listed = match &args.ids {
        Some(file) => ids::read_any(file, Some(is_named))?,
        None => Ids::Numbers(Vec::new()),
    };
    match (is_named, listed) {
        (true, Ids::Names(names)) => {
            let mut names = [&args.id[..], &names].concat();
            names.sort_unstable();
            names.dedup();
            Ok(Ids::Names(names))
        }
        (true, Ids::Numbers(numbers)) if numbers.is_empty() => {
            let mut names = args.id.clone();
            names.sort_unstable();
            names.dedup();
            Ok(Ids::Names(names))
        }
        (_, Ids::Numbers(mut numbers)) => {
            for id in &args.id {
                let number = ids::parse(id).map_err(|rule| {
                    Fault::usage(format!("`{id}` is no identifier of this index: it {rule}"))
                })?;
                numbers.push(number);
            }
            Ok(Ids::Numbers(ids::sorted(numbers)))
        }
        (false, names @ Ids::Names(_)) => Ok(names),
    }
}
