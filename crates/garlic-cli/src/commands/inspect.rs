//! `garlic inspect`: what is in an index.

mod report;

use std::path::PathBuf;

use garlic_ann::Memory;
use garlic_any::describe::{self, Spread};
use garlic_any::{AnyConfig, AnyIndex};
use garlic_table::Snapshot;
use serde_json::{Value, json};

use crate::args::positive;
use crate::kept::Kept;
use crate::output;
use crate::place;
use crate::table;
use crate::targets;

/// Show columns, cells, sizes, shapes, bins, changes, memory, recall targets and parameters of an index
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file or index directory
    index: PathBuf,
    /// Number of cells to compute eigenvalues of; preset paper only
    #[arg(long, value_name = "N", default_value = "16", value_parser = positive)]
    sample: usize,
    /// Write a page with charts of coverage, shapes and curvature to FILE.html, and their numbers to FILE.json
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic inspect vectors.garlic
  garlic inspect vectors.garlic --sample 100
  garlic inspect vectors.garlic --report vectors.html
  garlic inspect live-index --json | jq .drift";

/// Opens and describes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let report = args.report.as_deref();
    let report = report
        .map(|html| report::Files::checked(html, &args.index))
        .transpose()?;
    let index = place::open(&args.index)?;
    let kept = Kept::of(&args.index, &index)?;
    let rows = Snapshot::new(index.clone())?;
    // Cells and bins are told as a checkpoint would have them: points of the log lie beside them until then.
    let index = index.compacted()?;
    if let Some(files) = &report {
        files.write(&*index)?;
    }
    if args.json {
        let mut about = describe(args, &index, &kept, &rows);
        if let Some(files) = &report {
            about["report"] = json!({ "html": files.html, "json": files.json });
        }
        output::print_json(&about)
    } else {
        output::print(&readable(args, &index, &kept, &rows))
    }
}

/// Smallest, middle, mean and largest number of points of a cell, and the share of the points in the largest.
fn sizes(index: &AnyIndex) -> (Option<Spread>, f64) {
    let sizes = index.cell_sizes();
    let spread = Spread::of(sizes.into_iter().map(|size| size as f64));
    let largest = spread.map_or(0.0, |spread| spread.max);
    (spread, largest / index.len().max(1) as f64)
}

fn describe(args: &Args, index: &AnyIndex, kept: &Kept, rows: &Snapshot) -> Value {
    let columns = rows.column_types().into_iter();
    let columns = columns.map(|(name, kind)| json!({ "name": name, "type": kind }));
    let (sizes, largest) = sizes(index);
    let mut about = json!({
        "index": args.index,
        "bytes": place::bytes(&args.index),
        "points": index.len(),
        "dim": index.dim(),
        "metric": index.metric(),
        "named": rows.is_named(),
        "columns": columns.collect::<Vec<_>>(),
        "cells": index.cells(),
        "largest_share": sizes.map(|_| largest),
        "sizes": sizes,
        "preset": index.preset(),
        "config": index.config(),
    });
    kept.describe(&mut about);
    for (key, value) in describe::details(index, args.sample) {
        about[key] = value;
    }
    about
}

fn readable(args: &Args, index: &AnyIndex, kept: &Kept, rows: &Snapshot) -> String {
    let (sizes, largest) = sizes(index);
    let mut entries = vec![
        ("index", args.index.display().to_string()),
        (
            "points",
            format!("{} of dimension {}", table::count(index.len()), index.dim()),
        ),
        ("metric", index.metric().to_string()),
    ];
    if rows.is_named() {
        entries.push(("identifiers", "names".to_owned()));
    }
    let columns = rows.column_types().into_iter();
    let columns: Vec<String> = columns
        .map(|(name, kind)| format!("{name} ({kind})"))
        .collect();
    if !columns.is_empty() {
        entries.push(("columns", columns.join(", ")));
    }
    entries.extend(kept.facts());
    entries.extend(describe::facts(index, args.sample));
    if let Ok(index) = index.updatable() {
        entries.extend(targets::exhaustive(index));
    }
    entries.extend([
        ("cell sizes", Spread::in_words(sizes, 0)),
        (
            "largest cell",
            format!("{} of the points", table::percent(largest)),
        ),
        ("parameters", parameters(&index.config())),
        ("memory", String::new()),
    ]);
    let mut text = table::list(&entries);
    text.push_str(&memory(kept.memory()));
    if let Ok(index) = index.updatable() {
        text.push_str(&targets::calibration(index.calibration()));
    }
    text
}

/// Memory by part, the largest first and the total last.
fn memory(memory: &Memory) -> String {
    let Ok(Value::Object(parts)) = serde_json::to_value(memory) else {
        return String::new();
    };
    let mut parts: Vec<(String, u64)> = parts
        .into_iter()
        .filter_map(|(part, size)| Some((part, size.as_u64()?)))
        .collect();
    parts.sort_by_key(|(part, size)| (part == "total", std::cmp::Reverse(*size)));
    let mut table = table::Table::new(&["<  part", "size"]);
    for (part, size) in parts {
        table.row(vec![format!("  {part}"), table::bytes(size)]);
    }
    table.render()
}

/// What differs from the preset; everything is in the JSON form.
fn parameters(config: &AnyConfig) -> String {
    let changed = config.overrides().into_iter();
    let changed = changed.map(|(key, value)| match value {
        Value::String(text) => format!(", {key}={text}"),
        value => format!(", {key}={value}"),
    });
    let (preset, seed) = (config.preset().name(), config.seed());
    format!(
        "preset {preset}, seed={seed}{}",
        changed.collect::<String>()
    )
}
