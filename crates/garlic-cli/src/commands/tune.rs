//! `garlic tune`: recall targets for queries like those of a sample.

use std::path::PathBuf;
use std::time::Instant;

use garlic_ann::{Index, Live};
use serde_json::json;

use crate::input::{self, Reading};
use crate::interrupt::Watch;
use crate::names;
use crate::output;
use crate::place;
use crate::table;
use crate::targets;
use crate::writer;

/// Measure what recall targets take for queries like those of a sample
///
/// A build measures its recall targets with points of the index. Queries that do not resemble them may miss these
/// targets. Give a sample of the queries as they are asked, at least 100. The index is written anew; a directory gets a
/// checkpoint.
///
/// Trainings and checks after later changes keep how many times fewer misses searches have to allow. Run the command
/// again to measure it again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file or index directory
    index: PathBuf,
    /// Sample of queries: a file, `-` for standard input, or the name of a data set, whose queries are taken
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

const EXAMPLES: &str = "\
Examples:
  garlic tune answers.garlic --queries questions.npy
  garlic tune live-index --queries questions.npy --json";

/// Tunes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let path = names::data(&args.queries)?;
    let sample = args.reading.queries(&path)?;
    let values = sample.to_f32();
    let index = if place::is_directory(&args.index) {
        let live = Live::open(&args.index)?;
        input::check_dimension(&*live.snapshot(), &sample, &path)?;
        let rows = input::rows(&values, sample.dim())?;
        // A checkpoint that has begun is finished.
        Watch::start()
            .run(|| live.tune(rows))
            .map_err(|e| writer::explain(&args.index, e))?;
        Index::clone(&live.snapshot())
    } else {
        let index = place::load_sound(&args.index)?;
        let mut index = index
            .updatable()
            .map_err(|e| writer::explain(&args.index, e))?
            .clone();
        input::check_dimension(&index, &sample, &path)?;
        let rows = input::rows(&values, sample.dim())?;
        let watch = Watch::start();
        watch.run(|| index.tune(rows))?;
        watch.check()?;
        index
            .save(&args.index)
            .map_err(|e| output::save_error(&args.index, e))?;
        index
    };
    let seconds = start.elapsed().as_secs_f64();
    let calibration = index.calibration();
    if args.json {
        return output::print_json(&json!({
            "index": args.index,
            "points": index.len(),
            "queries": calibration.queries,
            "sample_correction": calibration.sample_correction,
            "seconds": seconds,
        }));
    }
    if args.quiet {
        return Ok(());
    }
    let entries = vec![
        ("index", args.index.display().to_string()),
        ("points", table::count(index.len())),
        ("queries", table::count(calibration.queries)),
        (
            "correction",
            format!(
                "{:.1} times fewer misses than stored points need",
                calibration.sample_correction
            ),
        ),
        ("time", table::seconds(seconds)),
    ];
    let mut text = table::list(&entries);
    text.push_str(&targets::calibration(calibration));
    output::print(&text)
}
