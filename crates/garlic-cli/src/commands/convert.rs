//! `garlic convert`: vectors into another file format; indexes between file, directory and format versions.

use std::path::{Path, PathBuf};

use garlic_ann::{Live, live, store};
use garlic_data::{Element, Vectors};
use serde_json::json;

use crate::args::positive;
use crate::exit::Fault;
use crate::input::Reading;
use crate::interrupt::Watch;
use crate::names;
use crate::output;
use crate::place;
use crate::table;

/// Convert vectors to another file format, or an index to a file, a directory or the newest format
///
/// For vectors, the extension of the output names the format: .npy, .parquet, .fbin, .fvecs, .u8bin or .bvecs. Of a data
/// set the base vectors are converted, of a table its column of vectors alone. Bytes become floats if the format holds floats. Floats become bytes if all of them are
/// whole numbers from 0 to 255.
///
/// An index is checked, compacted and written as an index file of the newest format version, or with --live as an index
/// directory.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Vectors (a file, a folder of files, `-` for standard input, or the name of a data set), index file, or index
    /// directory
    input: PathBuf,
    /// File to write; with --live, directory to make
    output: PathBuf,
    /// Only the first N vectors
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "live")]
    limit: Option<usize>,
    /// Make an index directory
    #[arg(long)]
    live: bool,
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
  garlic convert vectors.npy vectors.fbin --limit 100000
  garlic convert articles.parquet vectors.npy --vectors embedding
  garlic convert vectors.garlic live-index --live
  garlic convert live-index vectors.garlic
  garlic convert old.garlic new.garlic";

/// Extensions of files of vectors that can be written, and whether they hold bytes only.
const FORMATS: [(&str, bool); 6] = [
    ("npy", false),
    ("parquet", false),
    ("fbin", false),
    ("fvecs", false),
    ("u8bin", true),
    ("bvecs", true),
];

/// Converts.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // A directory is an index, or else a folder of vectors if a file of vectors is to be written.
    let is_folder = format_of(&args.output).is_some() && !live::is_index_directory(&args.input);
    let is_index = match place::is_directory(&args.input) {
        true => !is_folder,
        false => store::is_index_file(&args.input),
    };
    let told = if is_index {
        convert_index(args)?
    } else {
        convert_vectors(args)?
    };
    if args.json {
        return output::print_json(&json!({
            "output": args.output,
            "kind": told.kind,
            "rows": told.rows,
            "dim": told.dim,
            "type": told.stored,
            "bytes": place::bytes(&args.output),
        }));
    }
    if args.quiet {
        return Ok(());
    }
    let size = place::bytes(&args.output).map_or_else(|| "unknown".into(), table::bytes);
    output::print(&table::list(&[
        (
            "output",
            format!("{}, {}", args.output.display(), told.kind),
        ),
        (
            "rows",
            format!(
                "{} of dimension {}, stored as {}",
                table::count(told.rows),
                told.dim,
                told.stored
            ),
        ),
        ("size", size),
    ]))
}

/// What was written.
struct Told {
    kind: &'static str,
    rows: usize,
    dim: usize,
    stored: &'static str,
}

fn format_of(path: &Path) -> Option<(&'static str, bool)> {
    let extension = path.extension()?;
    FORMATS.into_iter().find(|(known, _)| extension == *known)
}

fn convert_index(args: &Args) -> anyhow::Result<Told> {
    if args.limit.is_some() {
        return Err(Fault::usage(
            "--limit is for files of vectors; an index is converted as a whole",
        ));
    }
    if format_of(&args.output).is_some() {
        return Err(Fault::usage(format!(
            "{}: {} is an index, not a file of vectors; name an index file, such as {}",
            args.output.display(),
            args.input.display(),
            args.output.with_extension("garlic").display()
        )));
    }
    if args.live {
        output::check_directory(&args.output)?;
    } else {
        output::check_regular(&args.output, &[])?;
    }
    let index = place::load_sound(&args.input)?;
    let told = Told {
        kind: if args.live {
            "index directory"
        } else {
            "index file"
        },
        rows: index.len(),
        dim: index.dim(),
        stored: index.stored_as(),
    };
    // A first Ctrl-C waits until the output is whole.
    let _watch = Watch::start();
    let written = if args.live {
        let index = index.updatable().cloned();
        index.and_then(|index| Live::create(&args.output, index).map(drop))
    } else {
        index.save(&args.output)
    };
    written.map_err(|e| output::save_error(&args.output, e))?;
    Ok(told)
}

fn convert_vectors(args: &Args) -> anyhow::Result<Told> {
    let path = names::data(&args.input)?;
    if args.live {
        return Err(Fault::usage(format!(
            "--live is for indexes, and {} is none; `garlic build --live` makes one of vectors",
            path.display()
        )));
    }
    let Some((_, bytes_only)) = format_of(&args.output) else {
        return Err(Fault::usage(format!(
            "{}: the extension names no format for vectors; use .npy, .parquet, .fbin, .fvecs, .u8bin or .bvecs",
            args.output.display()
        )));
    };
    output::check_regular(&args.output, &[&path])?;
    let mut vectors = args.reading.open(&path)?.read()?.vectors;
    if let Some(limit) = args.limit {
        vectors = vectors.head(limit)?;
    }
    if bytes_only && vectors.element() != Element::U8 {
        vectors = to_bytes(&vectors, &path)?;
    }
    let _watch = Watch::start();
    garlic_data::write_vectors(&args.output, &vectors)
        .map_err(|e| output::write_error(&args.output, &e))?;
    let as_floats = matches!(
        format_of(&args.output),
        Some(("fbin" | "fvecs" | "parquet", _))
    );
    Ok(Told {
        kind: "vectors",
        rows: vectors.rows(),
        dim: vectors.dim(),
        stored: if as_floats {
            "f32"
        } else {
            vectors.element().name()
        },
    })
}

/// Floats as bytes, where nothing is lost by that.
fn to_bytes(vectors: &Vectors, path: &Path) -> anyhow::Result<Vectors> {
    let (values, dim) = (vectors.to_f32(), vectors.dim());
    let other = |v: &f32| f32::from(*v as u8) != *v;
    if let Some(at) = values.iter().position(other) {
        return Err(Fault::input(format!(
            "{}: vector {} has the value {} at coordinate {}, which is no whole number from 0 to 255; write .npy, \
             .parquet, .fbin or .fvecs",
            path.display(),
            at / dim,
            values[at],
            at % dim
        )));
    }
    let bytes = values.iter().map(|v| *v as u8).collect();
    Ok(Vectors::from_u8(bytes, dim)?)
}
