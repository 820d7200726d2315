//! `garlic build`: from vectors to an index file or an index directory.

mod empty;
mod streamed;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use garlic_ann::{BuildReport, EXHAUSTIVE_POINTS, Index, Live, Metric, NeighborIndex, Rows};
use garlic_any::{AnyBuilder, AnyConfig, AnyIndex, Feature, Preset, describe};
use garlic_data::Vectors;
use garlic_table::FirstRows;
use serde_json::{Value, json};

use crate::args::{bytes, positive, recall, share};
use crate::columns;
use crate::exit::Fault;
use crate::ids;
use crate::input::{self, Points, Reading};
use crate::interrupt::Watch;
use crate::metric;
use crate::names;
use crate::output;
use crate::place;
use crate::progress::Reporter;
use crate::system;
use crate::table;
use crate::targets;

/// Build an index from a set of vectors
///
/// The default preset needs no tuning. It chooses the number of cells and measures what each recall target takes, so
/// that a search only names its recall target. `--preset paper` is the published method.
///
/// The index is one file, which `garlic add` and `garlic remove` replace. With --live it is a directory that keeps every
/// change. Use a directory if the index changes often or while it is searched.
///
/// With --empty the index has no points. `garlic add` adds them in any order, and the index trains itself as it grows.
/// --train-on fits its cells to a sample first.
///
/// Later sources of parameters override earlier ones: the preset, the metric of the data set, the file of --config,
/// --set, and flags such as --seed. `garlic config` prints all parameters with their meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Vectors to index: a file, a folder of files, `-` for standard input, or the name of a data set
    #[arg(required_unless_present = "empty")]
    data: Option<PathBuf>,
    /// Index file to write; with --live, directory to make
    #[arg(short, long, value_name = "INDEX")]
    output: PathBuf,
    /// Make an index directory, which keeps every change
    #[arg(long)]
    live: bool,
    /// Make an index without points; it needs --dim or --train-on
    #[arg(long, conflicts_with_all = ["data", "ids", "columns_from", "partition", "history", "train_fraction"])]
    empty: bool,
    /// Dimension of the vectors that an empty index takes
    #[arg(long, value_name = "N", value_parser = positive, requires = "empty")]
    dim: Option<usize>,
    /// Sample to fit the cells and the calibration of an empty index to: a file, or the name of a data set
    #[arg(long, value_name = "SAMPLE", requires = "empty")]
    train_on: Option<PathBuf>,
    /// Identifiers of the vectors: a column of the same table (an array of the same archive), or a file: text with one per
    /// line, .npy, .ivecs or .ibin; `-` reads text from standard input. They are numbers if every one is
    /// a whole number, and names otherwise [default: row numbers]
    #[arg(long, value_name = "COLUMN|FILE")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    columns: columns::Source,
    /// Use these cells: a file with the cell number of each vector (text with one per line, .npy, .ivecs or .ibin), or
    /// an index, where each vector joins the nearest cell
    #[arg(long, value_name = "FILE")]
    partition: Option<PathBuf>,
    /// Measure recall targets with these queries instead of held-out points: a file with a sample of the queries that
    /// will be asked, at least 100; of a data set its queries
    #[arg(long, value_name = "FILE", conflicts_with = "empty")]
    queries_like: Option<PathBuf>,
    /// Kind of index: default or paper
    #[arg(long, default_value = "default")]
    preset: String,
    /// Metric: euclidean (l2), cosine (cos) or inner_product (ip, dot) [default: that of the data set, or euclidean]
    #[arg(long, value_name = "M", value_parser = metric::parse)]
    metric: Option<Metric>,
    /// Default recall target of searches, in (0, 1) [default: 0.95]
    #[arg(long, value_name = "R", value_parser = recall)]
    recall: Option<f64>,
    /// TOML file with parameters
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One parameter, such as --set cells=256; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Share of the points to train on, in (0, 1]; preset paper only
    #[arg(long, value_name = "F", value_parser = share)]
    train_fraction: Option<f64>,
    /// Worker threads; the index does not depend on their number [default: all cores]
    #[arg(long, value_name = "T", value_parser = positive)]
    threads: Option<usize>,
    /// Seed of every random choice
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Write the training history by epochs to this JSON file; preset paper only
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Stay below this resident memory, such as 4GiB: the vectors are read some at a time, and the parts of the build lie
    /// in the folder INDEX.parts meanwhile. The index is the same
    #[arg(long, value_name = "SIZE", value_parser = bytes, conflicts_with_all = ["live", "empty", "partition", "history", "train_fraction"])]
    memory: Option<u64>,
    /// Go on with a build with --memory that was stopped, from its last finished part
    #[arg(long, requires = "memory")]
    resume: bool,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
    /// Print the summary as one JSON object; no progress
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

const EXAMPLES: &str = "\
Examples:
  garlic build vectors.npy -o vectors.garlic
  garlic build articles.parquet -o articles.garlic --vectors embedding --ids id --metric cosine
  garlic build folder-of-parquet -o articles.garlic
  zcat vectors.csv.gz | garlic build - -o vectors.garlic
  garlic build fashion-mnist-784-euclidean -o fm.garlic --recall 0.99 --seed 1
  garlic build embeddings.npy -o embeddings.garlic --metric cosine
  garlic build vectors.npy -o live-index --live --ids ids.txt
  garlic build pages.npy -o pages.garlic --ids names.txt --columns-from pages.csv --columns lang,year
  garlic build --empty --dim 128 -o vectors.garlic
  garlic build --empty --train-on sample.npy -o live-index --live
  garlic build vectors.npy -o vectors.garlic --partition labels.npy
  garlic build answers.npy -o answers.garlic --metric cosine --queries-like questions.npy
  garlic build folder-of-parquet -o large.garlic --memory 4GiB
  garlic build vectors.fbin -o vectors.garlic --config my.toml --set store=f16 --json
  garlic build fashion-mnist-784-euclidean -o fm.garlic --preset paper --set epochs=120 --history history.json";

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write it as KEY=VALUE".into()),
    }
}

/// The cell of each vector: as a file says, or the best one of another index.
fn partition(
    path: &Path,
    vectors: &Vectors,
    rows: Rows<'_>,
    threads: usize,
    watch: &Watch,
) -> anyhow::Result<Vec<u32>> {
    let named = |problem: String| Fault::input(format!("{}: {problem}", path.display()));
    if place::is_directory(path) || garlic_ann::store::is_index_file(path) {
        let index = place::open(path).with_context(|| path.display().to_string())?;
        if index.metric() == Metric::InnerProduct {
            return Err(named(
                "routes queries, not vectors, by inner products; give a file of numbers".into(),
            ));
        }
        let share = rows.len().div_ceil(threads).max(1);
        let starts = (0..rows.len()).step_by(share);
        let parts = std::thread::scope(|scope| {
            let tasks: Vec<_> = starts
                .map(|from| rows.slice(from..rows.len().min(from + share)))
                .map(|rows| {
                    scope.spawn({
                        let index = &*index;
                        move || best_cells(index, rows, watch)
                    })
                })
                .collect();
            let joined = tasks.into_iter().map(|task| task.join());
            joined.collect::<Result<Vec<_>, _>>()
        });
        let parts = parts.map_err(|_| named("a worker thread failed".into()))?;
        let parts: anyhow::Result<Vec<Vec<u32>>> = parts.into_iter().collect();
        return parts
            .map(|parts| parts.concat())
            .with_context(|| path.display().to_string());
    }
    let numbers = ids::read(path)?;
    if numbers.len() != vectors.rows() {
        return Err(named(format!(
            "names the cells of {} vectors, but there are {}; give one number for each",
            numbers.len(),
            vectors.rows()
        )));
    }
    let cell = |number: u64| {
        u32::try_from(number)
            .map_err(|_| named(format!("{number} is no cell; they are numbered below 2^32")))
    };
    numbers.into_iter().map(cell).collect()
}

/// The best cell of each vector.
fn best_cells(
    index: &dyn NeighborIndex,
    rows: Rows<'_>,
    watch: &Watch,
) -> anyhow::Result<Vec<u32>> {
    let mut cells = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        if number % 1000 == 0 {
            watch.check()?;
        }
        let best = index.route(row, 1)?.first().copied();
        cells.push(best.ok_or_else(|| Fault::input("the index has no points; name another one"))?);
    }
    Ok(cells)
}

/// Builds and saves.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(data) = args.data.as_deref().filter(|_| !args.empty) else {
        if args.dim.is_none() && args.train_on.is_none() {
            return Err(Fault::usage(
                "--empty does not say for which vectors; add --dim, or a sample with --train-on",
            ));
        }
        return empty::run(args);
    };
    // Before the data are looked at: mistakes in the parameters are cheapest to find.
    configuration(args, None)?;
    let data_path = names::data(data)?;
    input::check_stdin(&[
        Some(&data_path),
        args.ids.as_deref(),
        args.partition.as_deref(),
        args.queries_like.as_deref(),
    ])?;
    let reader = args.reading.open(&data_path)?;
    let made_for = input::metric(&reader)?;
    let config = configuration(args, made_for)?;
    let mut inputs = vec![data_path.as_path()];
    inputs.extend(args.config.as_deref());
    inputs.extend(args.ids.as_deref());
    inputs.extend(args.columns.columns_from.as_deref());
    inputs.extend(args.partition.as_deref());
    let sample_path = args.queries_like.as_deref().map(names::data).transpose()?;
    inputs.extend(sample_path.as_deref());
    if args.live {
        output::check_directory(&args.output)?;
    } else {
        output::check_regular(&args.output, &inputs)?;
    }
    if let Some(history) = &args.history {
        inputs.push(&args.output);
        output::check(history, &inputs)?;
    }

    let reporter = Reporter::new(args.quiet || args.json);
    if let Some(made_for) = made_for {
        reporter.note(&match config.metric() {
            metric if metric == made_for => format!("metric {metric}, as the data set says"),
            metric => format!("metric {metric}, though the data set was made for {made_for}"),
        });
    }
    reporter.note(&format!("reading {}", reader.origin()));
    if let Some(memory) = args.memory {
        return streamed::run(
            args,
            memory,
            config,
            reader,
            sample_path.as_deref(),
            &reporter,
        );
    }
    let Points {
        vectors: data,
        ids: given,
        columns,
    } = input::points(reader, args.ids.as_deref(), None, &args.columns)?;
    let beside = FirstRows::new(data.rows(), given, columns.as_ref())?;
    let watch = Watch::start();
    let threads = args.threads.unwrap_or_else(system::default_threads);
    let mut builder = AnyBuilder::new(config)
        .threads(threads)
        .progress(|p| reporter.update(p))
        .cancel(watch.cancel());
    if let Some(numbers) = beside.numbers() {
        builder = builder.ids(numbers);
    }
    if let Some(path) = &args.partition {
        let values = data.to_f32();
        let rows = input::rows(&values, data.dim())?;
        builder = builder.partition(partition(path, &data, rows, threads, &watch)?);
    }
    let sample = sample_path
        .as_deref()
        .map(|path| args.reading.queries_beside(path))
        .transpose()?;
    if let Some(sample) = &sample {
        let values = sample.to_f32();
        builder = builder.queries_like(input::rows(&values, sample.dim())?);
    }
    // A mapped file of floats is read where it lies; everything else was converted for this build.
    let dim = data.dim();
    let built = match data.as_f32() {
        Some(values) if data.is_mapped() => builder.build(input::rows(values, dim)?),
        _ => builder.build_owned(data.into_f32(), dim),
    };
    reporter.finish();
    // Ctrl-C while the last bins were made counts as well.
    watch.check()?;
    let (index, report) = built.with_context(|| data_path.display().to_string())?;
    let index = beside.attach(index);
    write(args, &index)?;
    if let (Some(path), Some(history)) = (&args.history, index.history()) {
        let text = serde_json::to_vec_pretty(&history)?;
        output::write_file(path, |out| {
            out.write_all(&text)?;
            out.write_all(b"\n")
        })?;
    }
    drop(watch);
    tell(args, threads, &index, &report)
}

/// Saves the index where the flags say.
fn write(args: &Args, index: &AnyIndex) -> anyhow::Result<()> {
    let written = if args.live {
        let index = index.updatable();
        index.and_then(|index| Live::create(&args.output, index.clone()).map(drop))
    } else {
        index.save(&args.output)
    };
    written.map_err(|e| output::save_error(&args.output, e))
}

/// Prints the summary, and what users should know about the index before they search it.
fn tell(args: &Args, threads: usize, index: &AnyIndex, report: &BuildReport) -> anyhow::Result<()> {
    if let Ok(index) = index.updatable()
        // Small indexes are always read whole, which takes next to no time.
        && index.len() > EXHAUSTIVE_POINTS
        && targets::reads_everything(index)
        && !args.quiet
    {
        let why = targets::why_everything(index);
        eprintln!(
            "garlic: warning: searches read everything to reach the index's recall of {}: {why}",
            index.config().tuning.recall
        );
    }
    let config = index.config();
    let mut summary = summary(args, threads, index, report);
    summary["preset"] = json!(config.preset().name());
    let overrides = config.overrides().into_iter();
    summary["overrides"] = overrides
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    if args.json {
        return output::print_json(&summary);
    }
    if args.quiet {
        return Ok(());
    }
    output::print(&readable(args, index, &summary))
}

/// The configuration that the flags describe, checked; `made_for` is the metric unless they name another.
fn configuration(args: &Args, made_for: Option<Metric>) -> anyhow::Result<AnyConfig> {
    let preset: Preset = args.preset.parse()?;
    for (flag, given, feature) in [
        ("--recall", args.recall.is_some(), Feature::Recall),
        (
            "--queries-like",
            args.queries_like.is_some(),
            Feature::Recall,
        ),
        ("--live", args.live, Feature::Updates),
        ("--history", args.history.is_some(), Feature::Epochs),
        (
            "--train-fraction",
            args.train_fraction.is_some(),
            Feature::Epochs,
        ),
    ] {
        if given && feature.preset() != preset {
            let preset = feature.preset().name();
            return Err(Fault::usage(format!(
                "{flag} belongs to preset {preset}; leave it out or use --preset {preset}"
            )));
        }
    }
    let mut config = AnyConfig::new(preset);
    config.set_metric(made_for.unwrap_or(config.metric()));
    if let Some(path) = &args.config {
        let text = input::read_text(path)?;
        config
            .apply_toml(&text)
            .with_context(|| path.display().to_string())?;
    }
    let flags = [
        ("train_fraction", args.train_fraction.map(|v| v.to_string())),
        ("recall", args.recall.map(|v| v.to_string())),
        ("seed", args.seed.map(|v| v.to_string())),
    ];
    for (key, value) in &args.set {
        config.set(key, value)?;
    }
    for (key, value) in flags {
        if let Some(value) = value {
            config.set(key, &value)?;
        }
    }
    if let Some(metric) = args.metric {
        config.set_metric(metric);
    }
    config.validate()?;
    Ok(config)
}

fn summary(args: &Args, threads: usize, index: &AnyIndex, report: &BuildReport) -> Value {
    let mut summary = json!({
        "index": args.output,
        "cells": index.cells(),
        "points": index.len(),
        "dim": index.dim(),
        "metric": index.metric(),
        "seconds": report.seconds,
        "bytes": place::bytes(&args.output),
        "peak_rss_bytes": system::peak_rss_bytes(),
        "seed": index.config().seed(),
        "threads": threads,
    });
    for (key, value) in index.details() {
        summary[key] = value;
    }
    summary
}

/// Parts of a build in the order in which they happen, as they are reported and as they are told.
const PARTS: [(&str, &str); 6] = [
    ("prepare", "preparing"),
    ("train", "training"),
    ("assign", "assigning"),
    ("bins", "bins"),
    ("graph", "linking"),
    ("calibrate", "calibrating"),
];

/// Where the time went; parts that a preset does not have are left out.
fn times(seconds: &Value) -> String {
    let of = |part: &str| seconds[part].as_f64().unwrap_or(0.0);
    let parts: Vec<String> = PARTS
        .iter()
        .filter(|(part, _)| of(part) > 0.0)
        .map(|(part, told)| format!("{told} {}", table::seconds(of(part))))
        .collect();
    let total = table::seconds(of("total"));
    match parts.is_empty() {
        true => total,
        false => format!("{total} ({})", parts.join(", ")),
    }
}

/// What an index without points was trained on, and when it trains itself.
fn trained(index: &Index) -> String {
    let at = table::count(index.trains_at().unwrap_or(0));
    match index.drift().built {
        0 => format!("none yet; it trains itself at {at} points"),
        sample => format!(
            "on a sample of {}; it trains itself anew at {at} points",
            table::count(sample as usize)
        ),
    }
}

fn readable(args: &Args, index: &AnyIndex, summary: &Value) -> String {
    let size = summary["bytes"]
        .as_u64()
        .map_or_else(|| "unknown".into(), table::bytes);
    let mut entries = vec![
        ("index", args.output.display().to_string()),
        (
            "points",
            format!("{} of dimension {}", table::count(index.len()), index.dim()),
        ),
        ("metric", index.metric().to_string()),
    ];
    entries.extend(describe::summary(index));
    let updatable = index.updatable().ok();
    if let Some(index) = updatable {
        if targets::reads_everything(index) {
            entries.extend(targets::exhaustive(index));
        }
        if index.is_empty() {
            entries.push(("training", trained(index)));
        }
    }
    entries.push(("time", times(&summary["seconds"])));
    entries.push(("size", size));
    if let Some(peak) = system::peak_rss_bytes() {
        entries.push(("peak memory", table::bytes(peak)));
    }
    let mut text = table::list(&entries);
    if let Some(index) = updatable {
        text.push_str(&targets::calibration(index.calibration()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_order_and_without_empty_parts() {
        let seconds =
            json!({ "total": 4.0, "train": 2.5, "bins": 1.0, "assign": 0.0, "prepare": 0.5 });
        assert_eq!(
            times(&seconds),
            "4.0 s (preparing 500 ms, training 2.5 s, bins 1.0 s)"
        );
    }
}
