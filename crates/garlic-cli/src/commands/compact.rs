//! `garlic compact`: a directory without removed points and without a log to replay.

use std::path::PathBuf;
use std::time::Instant;

use garlic_ann::{Index, Live};
use serde_json::json;

use crate::interrupt::Watch;
use crate::output;
use crate::place;
use crate::table;
use crate::writer;

/// Rewrite an index directory without removed points and with an empty log
///
/// The command verifies the old checkpoint and writes a new one. Searches can run meanwhile. The index is trained only
/// with --retrain; `garlic inspect` says when that pays. An index file is always compact: the command checks it and
/// changes it only with --recalibrate or --retrain.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index directory
    index: PathBuf,
    /// Measure again what recall targets take, after the index has grown; works on an index file, too
    #[arg(long)]
    recalibrate: bool,
    /// Train axes, cells, bins and calibration again, from all points; works on an index file, too
    #[arg(long, conflicts_with = "recalibrate")]
    retrain: bool,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic compact live-index
  garlic compact live-index --recalibrate
  garlic compact live-index --retrain
  garlic compact live-index --json";

/// Compacts.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let before = place::bytes(&args.index);
    let index = if place::is_directory(&args.index) {
        let live = Live::open(&args.index)?;
        // While the lock is held, nobody replaces the files that are checked here.
        place::verify_directory(&args.index)?;
        // A checkpoint that has begun is finished.
        let done = Watch::start().run(|| match (args.recalibrate, args.retrain) {
            (true, _) => live.recalibrate(),
            (_, true) => live.retrain(),
            _ => live.compact(),
        });
        done.map_err(|e| writer::explain(&args.index, e))?;
        Index::clone(&live.snapshot())
    } else {
        let index = place::load_sound(&args.index)?;
        let mut index = index
            .updatable()
            .map_err(|e| writer::explain(&args.index, e))?
            .clone();
        if args.recalibrate || args.retrain {
            let watch = Watch::start();
            watch.run(|| match args.retrain {
                true => index.retrain(),
                false => index.recalibrate(),
            })?;
            watch.check()?;
            index
                .save(&args.index)
                .map_err(|e| output::save_error(&args.index, e))?;
        }
        index
    };
    let seconds = start.elapsed().as_secs_f64();
    let after = place::bytes(&args.index);
    let drift = index.drift();
    if args.json {
        return output::print_json(&json!({
            "index": args.index,
            "points": index.len(),
            "bytes_before": before,
            "bytes": after,
            "seconds": seconds,
            "drift": drift,
        }));
    }
    if args.quiet {
        return Ok(());
    }
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".into(), table::bytes);
    let mut entries = vec![
        ("index", args.index.display().to_string()),
        ("points", table::count(index.len())),
        ("size", format!("{}, was {}", size(after), size(before))),
        ("time", table::seconds(seconds)),
    ];
    entries.extend(writer::advice(&drift).map(|advice| ("drift", advice)));
    output::print(&table::list(&entries))
}
