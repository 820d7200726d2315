//! `garlic inspect`: what is in an index.

mod report;

use std::path::PathBuf;

use garlic_ann::config::Covariance;
use garlic_ann::index::{Memory, Published, TemperedBody};
use garlic_ann::{Config, Index};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::positive;
use crate::commands::config;
use crate::kept::Kept;
use crate::output;
use crate::place;
use crate::spectrum::{self, Spectrum};
use crate::table;
use crate::tempered;

/// Show what is in an index: cells, sizes, shapes, bins, changes, memory, what recalls take, parameters
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file or index directory
    index: PathBuf,
    /// Cells whose eigenvalues are computed, spread over all of them; preset paper
    #[arg(long, value_name = "N", default_value = "16", value_parser = positive)]
    sample: usize,
    /// Write a page with pictures of coverage, shapes and curvature to FILE, and its numbers to a .json beside it
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

/// Smallest, middle, mean and largest of some numbers.
#[derive(Debug, PartialEq, Serialize)]
struct Range {
    min: f64,
    median: f64,
    mean: f64,
    max: f64,
}

impl Range {
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        Some(Self {
            min: *values.first()?,
            median: (values[(n - 1) / 2] + values[n / 2]) / 2.0,
            mean: values.iter().sum::<f64>() / n as f64,
            max: *values.last()?,
        })
    }
}

/// Opens and describes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let report = args.report.as_deref();
    let report = report
        .map(|html| report::Files::checked(html, &args.index))
        .transpose()?;
    let mut index = place::open(&args.index)?;
    let kept = Kept::of(&args.index, &index)?;
    // Cells and bins are told as a checkpoint would have them: points of the log lie beside them until then.
    index.compact()?;
    if let Some(files) = &report {
        files.write(&index)?;
    }
    if args.json {
        let mut about = describe(args, &index, &kept);
        if let Some(files) = &report {
            about["report"] = json!({ "html": files.html, "json": files.json });
        }
        output::print_json(&about)
    } else {
        output::print(&readable(args, &index, &kept))
    }
}

/// Points in every cell.
fn sizes(index: &Index) -> Vec<f64> {
    let cells = 0..index.cells();
    if let Some(body) = index.published() {
        return cells
            .map(|c| body.cell(c).bins.members().len() as f64)
            .collect();
    }
    index.tempered().map_or_else(Vec::new, |body| {
        cells.map(|c| body.cell_len(c) as f64).collect()
    })
}

fn describe(args: &Args, index: &Index, kept: &Kept) -> Value {
    let sizes = Range::of(sizes(index));
    let mut about = json!({
        "index": args.index,
        "bytes": place::bytes(&args.index),
        "points": index.len(),
        "dim": index.dim(),
        "metric": index.metric(),
        "cells": index.cells(),
        "largest_share": sizes.as_ref().map(|s| s.max / index.len().max(1) as f64),
        "sizes": sizes,
        "preset": config::preset_of(index.config()),
        "config": index.config(),
    });
    kept.describe(&mut about);
    if let Some(body) = index.published() {
        describe_published(&mut about, body, args.sample);
    }
    if let (Some(body), Value::Object(about)) = (index.tempered(), &mut about) {
        about.extend(tempered::describe(index, body));
        about.insert("effective_axes".into(), json!(effective_axes(body)));
        about.insert("variance_kept".into(), json!(variance_kept(body)));
    }
    about
}

fn describe_published(about: &mut Value, body: &Published, sample: usize) {
    let spectra = spectrum::sample(body.model(), sample);
    let history = body.history();
    about["coverage"] = json!(body.coverage());
    about["spectra"] = json!({
        "sampled": spectra.len(),
        "anisotropy": Range::of(spectra.iter().map(Spectrum::anisotropy)),
        "effective_dimension": Range::of(spectra.iter().map(Spectrum::effective_dimension)),
        "largest_eigenvalue": Range::of(spectra.iter().map(Spectrum::largest)),
        "smallest_eigenvalue": Range::of(spectra.iter().map(Spectrum::smallest)),
    });
    about["bins_occupied"] = json!(occupied(body));
    about["training"] = json!({
        "points": history.points,
        "epochs": history.epochs.len(),
        "ended": history.ended,
        "floored_scales": history.floored_scales,
        "last": history.epochs.last(),
    });
}

/// Occupied bins of the cells.
fn occupied(body: &Published) -> Option<Range> {
    Range::of((0..body.model().len()).map(|c| body.cell(c).bins.occupied().len() as f64))
}

/// How many of its axes a cell fills: the participation ratio of the variances along them.
fn effective_axes(body: &TemperedBody) -> Option<Range> {
    let model = body.model();
    Range::of((0..model.len()).map(|cell| spectrum::participation(model.variances(cell))))
}

/// Share of a cell's variance that lies along its axes.
fn variance_kept(body: &TemperedBody) -> Option<Range> {
    let model = body.model();
    Range::of((0..model.len()).map(|cell| {
        let variances = model.variances(cell);
        let kept: f64 = variances.iter().map(|v| f64::from(*v)).sum();
        // Cells of few points have fewer axes; the others are zero.
        let others = model.dim() - variances.iter().filter(|v| **v > 0.0).count();
        let all = kept + f64::from(model.residual_of(cell)) * others as f64;
        if all > 0.0 { kept / all } else { 1.0 }
    }))
}

fn in_words(range: Option<Range>, digits: usize) -> String {
    range.map_or_else(
        || "none".to_owned(),
        |r| {
            format!(
                "min {:.digits$}, median {:.digits$}, mean {:.digits$}, max {:.digits$}",
                r.min, r.median, r.mean, r.max
            )
        },
    )
}

fn readable(args: &Args, index: &Index, kept: &Kept) -> String {
    let sizes = sizes(index);
    let largest = sizes.iter().copied().fold(0.0, f64::max) / index.len().max(1) as f64;
    let mut entries = vec![
        ("index", args.index.display().to_string()),
        (
            "points",
            format!("{} of dimension {}", table::count(index.len()), index.dim()),
        ),
        ("metric", index.metric().to_string()),
    ];
    entries.extend(kept.facts());
    if let Some(body) = index.published() {
        entries.extend(published_facts(body, args.sample));
    }
    if let Some(body) = index.tempered() {
        entries.extend(tempered::facts(index, body));
        entries.extend(tempered::exhaustive(index));
        entries.push(("effective axes", in_words(effective_axes(body), 1)));
        entries.push(("variance kept", in_words(variance_kept(body), 3)));
    }
    entries.extend([
        ("cell sizes", in_words(Range::of(sizes), 0)),
        (
            "largest cell",
            format!("{} of the points", table::percent(largest)),
        ),
        ("parameters", parameters(index.config())),
        ("memory", String::new()),
    ]);
    let mut text = table::list(&entries);
    text.push_str(&memory(kept.memory()));
    if let Some(body) = index.tempered() {
        text.push_str(&tempered::calibration(body.calibration()));
    }
    text
}

fn published_facts(body: &Published, sample: usize) -> Vec<(&'static str, String)> {
    let spectra = spectrum::sample(body.model(), sample);
    let coverage = body.coverage();
    vec![
        (
            "cells",
            format!(
                "{}, {} covariances",
                table::count(body.model().len()),
                structure(body)
            ),
        ),
        (
            "coverage",
            format!(
                "{} of the points within tau, {:.2} cells a point",
                table::percent(coverage.share),
                coverage.mean
            ),
        ),
        ("bins occupied", in_words(occupied(body), 0)),
        (
            "anisotropy",
            format!(
                "{} (largest over smallest eigenvalue, {} cells sampled)",
                in_words(Range::of(spectra.iter().map(Spectrum::anisotropy)), 1),
                spectra.len()
            ),
        ),
        (
            "effective dim",
            in_words(
                Range::of(spectra.iter().map(Spectrum::effective_dimension)),
                1,
            ),
        ),
        ("training", training(body)),
    ]
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

fn structure(body: &Published) -> &'static str {
    match body.model().factors.covariance() {
        Covariance::Full => "full",
        Covariance::Diagonal => "diagonal",
        Covariance::Isotropic => "isotropic",
    }
}

fn training(body: &Published) -> String {
    let history = body.history();
    if history.points == 0 {
        return "none: the cells were given".to_owned();
    }
    let loss = history
        .epochs
        .last()
        .map_or_else(String::new, |e| format!(", loss {:.4}", e.loss));
    format!(
        "{} epochs on {} points{loss}",
        history.epochs.len(),
        table::count(history.points)
    )
}

/// What differs from the preset; everything is in the JSON form.
fn parameters(config: &Config) -> String {
    let changed: Vec<String> = config::overrides(config)
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            value => format!("{key}={value}"),
        })
        .collect();
    let rest = if changed.is_empty() {
        String::new()
    } else {
        format!(", {}", changed.join(", "))
    };
    let preset = config::name(config::preset_of(config));
    format!("preset {preset}, seed={}{rest}", config.seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_few_numbers() {
        let r = Range::of([4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((r.min, r.median, r.mean, r.max), (1.0, 2.5, 2.5, 4.0));
        assert_eq!(Range::of([7.0]).unwrap().median, 7.0);
        assert_eq!(Range::of([]), None);
    }
}
