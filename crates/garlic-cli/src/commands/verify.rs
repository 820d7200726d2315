//! `garlic verify`: read every byte of an index and check it.

use std::path::PathBuf;

use garlic_ann::Index;
use garlic_ann::live::Files;
use garlic_ann::store::Summary;
use serde_json::{Value, json};

use crate::output;
use crate::place;
use crate::table::{self, Table};

/// Check an index thoroughly
///
/// A search checks only the header and the section table of an index file. This command reads every byte. It checks
/// checksums and references, that identifiers are unique, that axes are orthonormal, and that points lie in the bins
/// that list them. Of an index directory it checks the checkpoint in this way, and reads the log. The exit code is 3 if
/// anything is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file or index directory
    index: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic verify vectors.garlic
  garlic verify live-index --json";

/// Verifies.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (summary, log) = if place::is_directory(&args.index) {
        let (summary, index, files) = place::verify_directory(&args.index)?;
        (summary, Some((files, index)))
    } else {
        (garlic_table::verify(&args.index)?, None)
    };
    if args.json {
        let mut object = json!({ "index": args.index, "ok": true });
        if let (Value::Object(object), Value::Object(rest)) =
            (&mut object, serde_json::to_value(&summary)?)
        {
            object.extend(rest);
        }
        if let Some((files, index)) = &log {
            object["directory"] = json!({
                "generation": files.generation,
                "log_bytes": files.log_bytes,
                "points": index.len(),
                "cells": index.cells(),
            });
        }
        return output::print_json(&object);
    }
    output::print(&readable(args, &summary, log.as_ref()))
}

fn readable(args: &Args, summary: &Summary, log: Option<&(Files, Index)>) -> String {
    let mut entries = vec![
        ("index", format!("{}: sound", args.index.display())),
        (
            "format",
            format!(
                "version {}, {}",
                summary.version,
                table::bytes(summary.file_bytes)
            ),
        ),
        (
            "points",
            format!(
                "{} of dimension {}",
                table::count(summary.points),
                summary.dim
            ),
        ),
        ("cells", table::count(summary.cells)),
    ];
    if let Some((files, index)) = log {
        let checkpoint = format!("generation {}, as follows", files.generation);
        let replayed = format!(
            "{}, {} points with it",
            table::bytes(files.log_bytes),
            table::count(index.len())
        );
        entries.insert(1, ("log", replayed));
        entries.insert(2, ("checkpoint", checkpoint));
    }
    entries.push(("sections", String::new()));
    let mut text = table::list(&entries);
    let mut sections = Table::new(&["<  section", "offset", "bytes", "checksum"]);
    for section in &summary.sections {
        sections.row(vec![
            format!("  {}", section.kind),
            section.offset.to_string(),
            section.length.to_string(),
            format!("{:08x}", section.checksum),
        ]);
    }
    text.push_str(&sections.render());
    text
}
