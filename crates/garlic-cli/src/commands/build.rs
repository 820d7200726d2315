//! `garlic build`: from vectors to an index file.

use std::path::PathBuf;

use anyhow::Context as _;
use garlic_ann::{BuildReport, Config, Index, Preset};
use serde_json::{Value, json};

use crate::args::{positive, share};
use crate::commands::config;
use crate::input;
use crate::interrupt::Watch;
use crate::names;
use crate::output;
use crate::progress::Reporter;
use crate::system;
use crate::table;

/// Build an index from a set of vectors
///
/// Parameters come from the preset, then from the file of `--config`, then from `--set`, then from the flags
/// of their own; later ones win. `garlic config` prints all of them with their meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Vectors to index: a file, or the name of a data set
    data: PathBuf,
    /// Index file to write
    #[arg(short, long, value_name = "INDEX")]
    output: PathBuf,
    /// Named set of parameters
    #[arg(long, default_value = "paper")]
    preset: String,
    /// TOML file with parameters
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One parameter, such as --set epochs=120; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Share of the points that training sees, in (0, 1]
    #[arg(long, value_name = "F", value_parser = share)]
    train_fraction: Option<f64>,
    /// Worker threads; the index does not depend on it [default: all cores]
    #[arg(long, value_name = "T", value_parser = positive)]
    threads: Option<usize>,
    /// Seed of every random choice
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Write the training history, epoch by epoch, to this JSON file
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
    /// Print the summary as one JSON object; no progress
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic build vectors.npy -o vectors.garlic
  garlic build fashion-mnist-784-euclidean -o fm.garlic --set epochs=120 --seed 1
  garlic build photosift1m-128-euclidean -o sift.garlic --train-fraction 0.1 --set batch=50000
  garlic build vectors.fbin -o vectors.garlic --config my.toml --history history.json --json";

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write it as KEY=VALUE".into()),
    }
}

/// Builds and saves.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (preset, config) = configuration(args)?;
    let data_path = names::data(&args.data)?;
    let mut inputs = vec![data_path.as_path()];
    inputs.extend(args.config.as_deref());
    output::check_regular(&args.output, &inputs)?;
    if let Some(history) = &args.history {
        inputs.push(&args.output);
        output::check(history, &inputs)?;
    }

    let reporter = Reporter::new(args.quiet || args.json);
    reporter.note(&format!("reading {}", data_path.display()));
    let data = input::base_vectors(&data_path)?;
    let values = data.to_f32();
    let rows = input::rows(&values, data.dim())?;

    let watch = Watch::start();
    let threads = args.threads.unwrap_or_else(system::default_threads);
    let built = Index::builder()
        .config(config.clone())
        .threads(threads)
        .progress(|p| reporter.update(p))
        .cancel(watch.flag())
        .build_reported(rows);
    reporter.finish();
    // Ctrl-C while the last bins were made counts as well.
    watch.check()?;
    let (index, report) = built.with_context(|| data_path.display().to_string())?;
    index
        .save(&args.output)
        .map_err(|e| output::write_error(&args.output, &e))?;
    if let Some(path) = &args.history {
        let text = serde_json::to_vec_pretty(index.history())?;
        output::write_file(path, |out| {
            out.write_all(&text)?;
            out.write_all(b"\n")
        })?;
    }
    drop(watch);

    let summary = summary(args, preset, &config, threads, &index, &report);
    if args.json {
        return output::print_json(&summary);
    }
    if args.quiet {
        return Ok(());
    }
    output::print(&readable(args, &index, &report, &summary))
}

/// The configuration that the flags describe, checked.
fn configuration(args: &Args) -> anyhow::Result<(Preset, Config)> {
    let preset: Preset = args.preset.parse()?;
    let mut config = Config::preset(preset);
    if let Some(path) = &args.config {
        let text = input::read_text(path)?;
        config
            .apply_toml(&text)
            .with_context(|| path.display().to_string())?;
    }
    for (key, value) in &args.set {
        config.set(key, value)?;
    }
    if let Some(fraction) = args.train_fraction {
        config.train_fraction = fraction;
    }
    if let Some(seed) = args.seed {
        config.seed = seed;
    }
    config.validate()?;
    Ok((preset, config))
}

fn summary(
    args: &Args,
    preset: Preset,
    config: &Config,
    threads: usize,
    index: &Index,
    report: &BuildReport,
) -> Value {
    let coverage = index.coverage();
    json!({
        "index": args.output,
        "cells": index.cells(),
        "points": index.len(),
        "dim": index.dim(),
        "seconds": report.seconds,
        "bytes": std::fs::metadata(&args.output).map(|m| m.len()).ok(),
        "peak_rss_bytes": system::peak_rss_bytes(),
        "coverage": { "share": coverage.share, "mean": coverage.mean },
        "epochs": index.history().epochs.len(),
        "preset": preset,
        "seed": config.seed,
        "threads": threads,
        "overrides": config::overrides(preset, config),
    })
}

fn readable(args: &Args, index: &Index, report: &BuildReport, summary: &Value) -> String {
    let coverage = index.coverage();
    let seconds = &report.seconds;
    let size = summary["bytes"]
        .as_u64()
        .map_or_else(|| "unknown".into(), table::bytes);
    let mut entries = vec![
        ("index", args.output.display().to_string()),
        (
            "points",
            format!("{} of dimension {}", table::count(index.len()), index.dim()),
        ),
        ("cells", table::count(index.cells())),
        (
            "coverage",
            format!(
                "{} of the points within tau, {:.2} cells a point",
                table::percent(coverage.share),
                coverage.mean
            ),
        ),
        (
            "time",
            format!(
                "{} (preparing {}, training {}, assigning {}, bins {})",
                table::seconds(seconds.total),
                table::seconds(seconds.prepare),
                table::seconds(seconds.train),
                table::seconds(seconds.assign),
                table::seconds(seconds.bins)
            ),
        ),
        ("size", size),
    ];
    if let Some(peak) = system::peak_rss_bytes() {
        entries.push(("peak memory", table::bytes(peak)));
    }
    table::list(&entries)
}
