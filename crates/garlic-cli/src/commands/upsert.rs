//! `garlic upsert`: vectors and columns of points, whether the index has these points or not.

use crate::commands::add::{self, NewPoints};
use crate::exit::Fault;
use crate::writer::Put;

/// Add vectors to an index, and replace the vectors and columns of points that exist
///
/// The identifiers say which points these are. Columns that are not given are missing (null) afterwards. Otherwise it works as
/// `garlic add` does, in batches as well.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    points: NewPoints,
}

const EXAMPLES: &str = "\
Examples:
  garlic upsert articles.garlic today.parquet --vectors embedding --ids id --columns title,year
  garlic upsert live-index changed.npy --ids changed.txt --json";

/// Adds and replaces.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.points.ids.is_none() {
        return Err(Fault::usage(
            "the points have no identifiers; name a column or a file that has them with --ids",
        ));
    }
    add::put(&args.points, Put::Upsert)
}
