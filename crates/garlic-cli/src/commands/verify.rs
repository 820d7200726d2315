//! `garlic verify`: read every byte of an index and check it.

use std::path::PathBuf;

use garlic_ann::Index;
use garlic_ann::store::Summary;
use serde_json::{Value, json};

use crate::output;
use crate::table::{self, Table};

/// Check an index file thoroughly
///
/// Every command that opens an index checks its lengths, checksums and references; this also checks what a
/// search does not rely on: that ids are unique, axes orthonormal, and points in the bins that list them. Exit
/// code 3 when anything is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file
    index: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic verify vectors.garlic
  garlic verify vectors.garlic --json";

/// Verifies.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let summary = Index::verify(&args.index)?;
    if args.json {
        let mut object = json!({ "index": args.index, "ok": true });
        if let (Value::Object(object), Value::Object(rest)) =
            (&mut object, serde_json::to_value(&summary)?)
        {
            object.extend(rest);
        }
        return output::print_json(&object);
    }
    output::print(&readable(args, &summary))
}

fn readable(args: &Args, summary: &Summary) -> String {
    let mut text = table::list(&[
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
        ("sections", String::new()),
    ]);
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
