//! `garlic inspect`: what is in an index.

use std::path::PathBuf;

use garlic_ann::config::Covariance;
use garlic_ann::{Config, Index, Preset};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::positive;
use crate::commands::config;
use crate::output;
use crate::spectrum::{self, Spectrum};
use crate::table;

/// Show what is in an index: cells, sizes, coverage, shapes, bins, memory, parameters
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file
    index: PathBuf,
    /// Cells whose eigenvalues are computed, spread over all of them
    #[arg(long, value_name = "N", default_value = "16", value_parser = positive)]
    sample: usize,
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic inspect vectors.garlic
  garlic inspect vectors.garlic --sample 100
  garlic inspect vectors.garlic --json | jq .memory";

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
    let index = Index::open(&args.index)?;
    let spectra = spectrum::sample(index.model(), args.sample);
    if args.json {
        output::print_json(&describe(args, &index, &spectra))
    } else {
        output::print(&readable(args, &index, &spectra))
    }
}

fn sizes(index: &Index) -> impl Iterator<Item = f64> {
    (0..index.cells()).map(|c| index.cell(c).bins.members().len() as f64)
}

fn occupied(index: &Index) -> impl Iterator<Item = f64> {
    (0..index.cells()).map(|c| index.cell(c).bins.occupied().len() as f64)
}

fn describe(args: &Args, index: &Index, spectra: &[Spectrum]) -> Value {
    let sizes = Range::of(sizes(index));
    let history = index.history();
    json!({
        "index": args.index,
        "bytes": std::fs::metadata(&args.index).map(|m| m.len()).ok(),
        "points": index.len(),
        "dim": index.dim(),
        "cells": index.cells(),
        "largest_share": sizes.as_ref().map(|s| s.max / index.len().max(1) as f64),
        "sizes": sizes,
        "coverage": index.coverage(),
        "spectra": {
            "sampled": spectra.len(),
            "anisotropy": Range::of(spectra.iter().map(Spectrum::anisotropy)),
            "effective_dimension": Range::of(spectra.iter().map(Spectrum::effective_dimension)),
            "largest_eigenvalue": Range::of(spectra.iter().map(Spectrum::largest)),
            "smallest_eigenvalue": Range::of(spectra.iter().map(Spectrum::smallest)),
        },
        "bins_occupied": Range::of(occupied(index)),
        "memory": index.memory(),
        "training": {
            "points": history.points,
            "epochs": history.epochs.len(),
            "ended": history.ended,
            "floored_scales": history.floored_scales,
            "last": history.epochs.last(),
        },
        "config": index.config(),
    })
}

fn readable(args: &Args, index: &Index, spectra: &[Spectrum]) -> String {
    let coverage = index.coverage();
    let range = |r: Option<Range>, digits: usize| {
        r.map_or_else(
            || "none".to_owned(),
            |r| {
                format!(
                    "min {:.digits$}, median {:.digits$}, mean {:.digits$}, max {:.digits$}",
                    r.min, r.median, r.mean, r.max
                )
            },
        )
    };
    let largest = sizes(index).fold(0.0, f64::max) / index.len().max(1) as f64;
    let entries = [
        ("index", args.index.display().to_string()),
        (
            "points",
            format!("{} of dimension {}", table::count(index.len()), index.dim()),
        ),
        (
            "cells",
            format!(
                "{}, {} covariances",
                table::count(index.cells()),
                structure(index)
            ),
        ),
        ("cell sizes", range(Range::of(sizes(index)), 0)),
        (
            "largest cell",
            format!("{} of the points", table::percent(largest)),
        ),
        (
            "coverage",
            format!(
                "{} of the points within tau, {:.2} cells a point",
                table::percent(coverage.share),
                coverage.mean
            ),
        ),
        ("bins occupied", range(Range::of(occupied(index)), 0)),
        (
            "anisotropy",
            format!(
                "{} (largest over smallest eigenvalue, {} cells sampled)",
                range(Range::of(spectra.iter().map(Spectrum::anisotropy)), 1),
                spectra.len()
            ),
        ),
        (
            "effective dim",
            range(
                Range::of(spectra.iter().map(Spectrum::effective_dimension)),
                1,
            ),
        ),
        ("training", training(index)),
        ("parameters", parameters(index.config())),
        ("memory", String::new()),
    ];
    let mut text = table::list(&entries);
    text.push_str(&memory(index));
    text
}

/// Memory by part, the largest first and the total last.
fn memory(index: &Index) -> String {
    let Ok(Value::Object(parts)) = serde_json::to_value(index.memory()) else {
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

fn structure(index: &Index) -> &'static str {
    match index.model().factors.covariance() {
        Covariance::Full => "full",
        Covariance::Diagonal => "diagonal",
        Covariance::Isotropic => "isotropic",
    }
}

fn training(index: &Index) -> String {
    let history = index.history();
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
    let changed: Vec<String> = config::overrides(Preset::default(), config)
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
    format!("preset paper, seed={}{rest}", config.seed)
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
