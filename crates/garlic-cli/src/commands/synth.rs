//! `garlic synth`: as many vectors like those of a data set as one likes.

use std::io;
use std::path::{Path, PathBuf};

use garlic_ann::Error;
use garlic_data::{Element, Shape, write_vectors_with};
use garlic_eval::resample::{ResampleOptions, Resampler, are_bytes};
use serde_json::json;

use crate::args::positive;
use crate::exit::Fault;
use crate::input::{self, Reading};
use crate::interrupt::Watch;
use crate::names;
use crate::output;
use crate::progress::Meter;
use crate::system;
use crate::table;

/// Make more vectors like those of a data set
///
/// A new vector is one of the data set that is moved along its local frame: by a random combination of the differences to
/// its nearest neighbours. So the local dimension is that of the data set. The vectors are written some at a time; memory
/// depends on the data set only. The same data set, options and seed give the same files.
///
/// The extension names the format: .npy, .fbin, .u8bin or .parquet. Bytes are made of a data set of bytes, unless the
/// format holds floats only.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Data set to resample: a file, a folder of files, or the name of a data set
    data: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Number of vectors
    #[arg(short = 'n', long, value_name = "N", value_parser = positive)]
    points: usize,
    /// Also write queries that are made in the same way of other vectors of the data set
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Number of queries
    #[arg(long, value_name = "N", default_value = "10000", value_parser = positive, requires = "queries")]
    query_count: usize,
    /// Type of the values: f32, or u8, which rounds to whole numbers from 0 to 255 [default: that of the data set, or the one that the format holds]
    #[arg(long = "type", value_name = "TYPE", value_parser = ["f32", "u8"])]
    element: Option<String>,
    /// Number of nearest neighbours that span the local frame of a vector
    #[arg(long, value_name = "K", default_value = "16", value_parser = positive)]
    neighbours: usize,
    /// Standard deviation of a move, as a multiple of the distances to these neighbours
    #[arg(long, value_name = "S", default_value = "0.5")]
    spread: f64,
    /// Seed of every random choice
    #[arg(long, value_name = "S", default_value = "0")]
    seed: u64,
    /// Worker threads; the vectors do not depend on their number [default: all cores]
    #[arg(long, value_name = "T", value_parser = positive)]
    threads: Option<usize>,
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
  garlic synth sift-128-euclidean -n 10000000 -o large.u8bin --type u8 --queries queries.u8bin
  garlic synth embeddings.npy -n 5000000 -o large.parquet --seed 1";

/// Draws and writes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let path = names::data(&args.data)?;
    let inputs = [path.as_path()];
    output::check_regular(&args.output, &inputs)?;
    if let Some(queries) = &args.queries {
        if output::is_same(queries, &args.output) {
            return Err(Fault::usage("vectors and queries need a file each"));
        }
        output::check_regular(queries, &inputs)?;
    }
    let data = args.reading.open(&path)?.read()?.vectors;
    let bytes = data.element() == Element::U8 || are_bytes(&data.to_f32());
    let element = element(args, &args.output, bytes)?;
    if element == Element::U8 && !bytes && args.element.is_none() {
        return Err(Fault::usage(format!(
            "{}: the format holds whole numbers from 0 to 255, which those of {} are not; use .fbin, or round them with \
             --type u8",
            args.output.display(),
            path.display()
        )));
    }
    if let Some(queries) = &args.queries {
        // Vectors and queries are rounded alike.
        if self::element(args, queries, element == Element::U8)? != element {
            return Err(Fault::usage(format!(
                "{}: the format does not hold {}, as the vectors are; use .npy",
                queries.display(),
                element.name()
            )));
        }
    }
    let watch = Watch::start();
    let threads = args.threads.unwrap_or_else(system::default_threads);
    let mut meter = Meter::new(args.quiet || args.json);
    meter.note(&format!(
        "finding the neighbours of {} vectors",
        table::count(data.rows())
    ));
    let values = data.to_f32();
    let mut options = ResampleOptions::default();
    options.neighbours = args.neighbours;
    options.spread = args.spread;
    options.seed = args.seed;
    options.bytes = element == Element::U8;
    let rows = input::rows(&values, data.dim())?;
    let drawer = Resampler::new(rows, options, threads, &watch.cancel());
    watch.check()?;
    let drawer = drawer?;
    let mut write = |path: &Path, count: usize, name: &'static str, queries: bool| {
        meter.start(name, count);
        let shape = Shape {
            rows: count,
            dim: drawer.dim(),
            element,
        };
        let written = write_vectors_with(path, shape, |range, out| {
            let cancelled = |_| io::Error::other(Error::Cancelled);
            watch.check().map_err(cancelled)?;
            match queries {
                true => drawer.queries(range.start, out),
                false => drawer.vectors(range.start, out),
            }
            meter.set(range.end, count, "");
            Ok(())
        });
        meter.finish();
        watch.check()?;
        Ok::<(), anyhow::Error>(written?)
    };
    write(&args.output, args.points, "vectors", false)?;
    if let Some(queries) = &args.queries {
        write(queries, args.query_count, "queries", true)?;
    }
    tell(args, drawer.dim(), element)
}

fn tell(args: &Args, dim: usize, element: Element) -> anyhow::Result<()> {
    let size = std::fs::metadata(&args.output).map(|m| m.len()).ok();
    if args.json {
        return output::print_json(&json!({
            "output": args.output,
            "points": args.points,
            "dim": dim,
            "type": element.name(),
            "bytes": size,
            "queries": args.queries,
            "query_count": args.queries.as_ref().map(|_| args.query_count),
            "seed": args.seed,
        }));
    }
    if args.quiet {
        return Ok(());
    }
    let size = size.map_or_else(|| "unknown".into(), table::bytes);
    output::print(&table::list(&[
        ("output", args.output.display().to_string()),
        (
            "rows",
            format!(
                "{} of dimension {dim}, {}",
                table::count(args.points),
                element.name()
            ),
        ),
        ("size", size),
    ]))
}

/// The type of the values of a file: as asked for, or as the format and the data set (`bytes`) suggest.
fn element(args: &Args, path: &Path, bytes: bool) -> anyhow::Result<Element> {
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    let only = match extension {
        "fbin" => Some(Element::F32),
        "u8bin" => Some(Element::U8),
        "npy" | "parquet" | "pq" => None,
        _ => {
            return Err(Fault::usage(format!(
                "{}: the extension names no format to write; use .npy, .fbin, .u8bin or .parquet",
                path.display()
            )));
        }
    };
    let asked = args.element.as_deref().map(|name| match name {
        "u8" => Element::U8,
        _ => Element::F32,
    });
    match (asked, only) {
        (Some(asked), Some(only)) if asked != only => Err(Fault::usage(format!(
            "{}: the format holds {}, but --type says {}",
            path.display(),
            only.name(),
            asked.name()
        ))),
        (asked, only) => Ok(asked.or(only).unwrap_or(match bytes {
            true => Element::U8,
            false => Element::F32,
        })),
    }
}
