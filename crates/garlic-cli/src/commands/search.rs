//! `garlic search`: look up neighbours, and print them or write them to a file.

use std::path::{Path, PathBuf};
use std::time::Instant;

use garlic_ann::{Answer, Filter, NeighborIndex, RangeSearch, Rows};
use garlic_eval::Params;
use garlic_table::Snapshot;
use serde_json::json;

use crate::args::{positive, radius, recall, share};
use crate::exit::Fault;
use crate::filter::Restriction;
use crate::hits::{Format, Hits};
use crate::input::{self, Reading};
use crate::interrupt::Watch;
use crate::names;
use crate::output;
use crate::place;
use crate::system;
use crate::table;
use crate::targets;

/// Find the nearest neighbours of every query
///
/// --recall R finds that share of the true neighbours, on average over queries. --exact finds all of them. --probes,
/// --bins and --rerank override what the recall target takes.
///
/// --radius R finds the points within a distance: all of them, or with --recall about that share. Tables are then as
/// wide as the longest answer. --filter-ids searches only among the listed points, --exclude-ids only among the others.
/// With both flags, the search is among the points of the first list that are not in the second.
///
/// Without OUT the neighbours are printed as a readable table. The extension of OUT names its format. Tables of identifiers
/// are .ivecs, .ibin or .npy (64-bit), with K entries per query. A .csv file has a line for each neighbour: query, rank, id,
/// distance. A .json, .jsonl or .ndjson file has an object for each query, a .txt file the readable table. The bare names
/// `csv`, `jsonl` and `txt` print that format to standard output; `-` is `csv`, or `jsonl` with --json. If a query has fewer
/// than K neighbours, tables of identifiers are filled with -1; distances of inner products, which may be negative, with the
/// largest 32-bit float.
///
/// Distances are those of the index's metric: Euclidean distance, one minus the cosine, or minus the inner product.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file (memory-mapped) or index directory
    index: PathBuf,
    /// Queries: a file of vectors, `-` for standard input, or a data set with queries
    queries: PathBuf,
    /// Neighbours per query
    #[arg(short, value_name = "K", default_value = "10", value_parser = positive)]
    k: usize,
    /// Find all points within this distance, as the metric of the index reports it, instead of K neighbours
    #[arg(
        long,
        value_name = "R",
        value_parser = radius,
        allow_negative_numbers = true,
        conflicts_with_all = ["k", "probes", "bins", "rerank"]
    )]
    radius: Option<f32>,
    /// Search only points with these identifiers: text with one per line, .npy, .ivecs or .ibin; `-` reads text from standard input
    #[arg(long, value_name = "FILE")]
    filter_ids: Option<PathBuf>,
    /// Leave out points with these identifiers; same formats
    #[arg(long, value_name = "FILE")]
    exclude_ids: Option<PathBuf>,
    /// Search only points for which this expression over the columns and `id` is true, such as "lang = 'en' AND year > 2015"
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Columns to write with each neighbour, separated by commas; to .csv, .json and standard output
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// File to write, or csv, jsonl or txt to print in that format [default: print a readable table]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Also write the distances, as .fvecs, .fbin or .npy
    #[arg(long, value_name = "FILE")]
    distances: Option<PathBuf>,
    /// Recall target: share of the true neighbours to find, in (0, 1) [default: that of the index]
    #[arg(long, value_name = "R", value_parser = recall)]
    recall: Option<f64>,
    /// Find all true neighbours, with proof
    #[arg(long, conflicts_with_all = ["recall", "probes", "bins", "rerank"])]
    exact: bool,
    /// Cells to visit [default: what the recall target takes]
    #[arg(long, value_name = "P", value_parser = positive)]
    probes: Option<usize>,
    /// Share of the bins of visited cells to scan, in (0, 1] [default: what the recall target takes]
    #[arg(long, value_name = "RHO", value_parser = share)]
    bins: Option<f64>,
    /// Points, best by their codes, to compute exact distances for [default: what the recall target takes]
    #[arg(long, value_name = "N", value_parser = positive)]
    rerank: Option<usize>,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "T", value_parser = positive)]
    threads: Option<usize>,
    /// Leave the vectors in the index file and read those of candidates from the disk; everything else is in memory
    #[arg(long)]
    on_disk: bool,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
    /// Print an object for each query; if OUT is a file, print the summary as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

const EXAMPLES: &str = "\
Examples:
  garlic search vectors.garlic queries.npy -k 3
  garlic search articles.garlic questions.parquet --vectors embedding --output jsonl
  garlic search vectors.garlic queries.npy -k 10 -o hits.ivecs
  garlic search vectors.garlic queries.npy -k 10 -o hits.ivecs --recall 0.99
  garlic search vectors.garlic queries.fvecs -k 100 -o hits.npy --distances distances.npy --exact
  garlic search fm.garlic fashion-mnist-784-euclidean -o - --json | head -1
  garlic search live-index queries.npy -k 10 -o hits.csv --filter-ids allowed.txt
  garlic search pages.garlic queries.npy -o - --filter \"lang = 'en' AND year > 2015\" --columns title,year
  garlic search live-index queries.npy --radius 0.5 -o hits.jsonl";

/// Searches and writes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let queries_path = names::data(&args.queries)?;
    input::check_stdin(&[
        Some(&queries_path),
        args.filter_ids.as_deref(),
        args.exclude_ids.as_deref(),
    ])?;
    let (file, format) = check_outputs(args, &queries_path)?;

    let snapshot = Snapshot::new(match args.on_disk {
        true => place::open_on_disk(&args.index)?,
        false => place::open(&args.index)?,
    })?;
    check_rows(args, &snapshot, file, format)?;
    let index = snapshot.index();
    let queries = args.reading.queries(&queries_path)?;
    input::check_dimension(&**index, &queries, &queries_path)?;
    let values = queries.to_f32();
    let threads = args.threads.unwrap_or_else(system::default_threads);
    let restriction = Restriction {
        allow: args.filter_ids.as_deref(),
        deny: args.exclude_ids.as_deref(),
        expression: args.filter.as_deref(),
    };
    let filter = restriction.read(&snapshot)?;
    let start = Instant::now();
    let rows = input::rows(&values, queries.dim())?;
    if index.is_empty() && !args.quiet {
        eprintln!("garlic: warning: the index has no points, so no query has neighbours");
    }
    if !args.quiet
        && args.radius.is_none()
        && !args.exact
        && let Some(recall) = args.recall
        && targets::saturated(index, args.k, recall)
    {
        eprintln!(
            "garlic: warning: a search for {} neighbours with --recall {recall} reads all points; `garlic inspect` says why, \
             and --exact proves its answers for the same work",
            args.k
        );
    }
    let watch = Watch::start();
    let answers = watch.run(|| match args.radius {
        Some(radius) => within(args, &**index, rows, radius, filter, threads),
        None => nearest(args, &**index, rows, filter, threads),
    })?;
    // What was found is printed in any case; a first Ctrl-C ends that.
    drop(watch);
    let seconds = start.elapsed().as_secs_f64();

    let found: usize = answers.iter().map(|a| a.hits.len()).sum();
    let longest = answers.iter().map(|a| a.hits.len()).max().unwrap_or(0);
    let width = match args.radius {
        Some(_) => longest.max(1),
        None => args.k,
    };
    let hits = Hits::new(&answers, width, index.metric()).with_rows(&snapshot, &args.columns)?;
    match file {
        None => output::with_stdout(|out| hits.write_text(out, format))?,
        Some(file) => {
            // A first Ctrl-C waits until the files are whole.
            let _watch = Watch::start();
            hits.write(file, format)?;
        }
    }
    if let Some(path) = &args.distances {
        let _watch = Watch::start();
        hits.write_distances(path)?;
    }
    let candidates: u64 = answers.iter().map(|a| a.stats.candidates).sum();
    let mean = candidates as f64 / answers.len().max(1) as f64;
    let qps = answers.len() as f64 / seconds.max(1e-9);
    let exact = answers.iter().all(|a| a.exact);
    if args.json && file.is_some() {
        return output::print_json(&json!({
            "output": file,
            "queries": answers.len(),
            "k": args.radius.is_none().then_some(args.k),
            "radius": args.radius,
            "hits": found,
            "metric": index.metric(),
            "threads": threads,
            "seconds": seconds,
            "qps": qps,
            "candidates": mean,
            "exact": exact,
        }));
    }
    if !args.quiet && !args.json {
        let within = args.radius.map_or_else(String::new, |radius| {
            let proof = if exact { "all of them" } else { "not exact" };
            format!("; {} hits within {radius}, {proof}", table::count(found))
        });
        eprintln!(
            "garlic: {} queries in {} ({qps:.0} a second on {threads} threads), {mean:.0} candidates a query{within}",
            table::count(answers.len()),
            table::seconds(seconds),
        );
    }
    Ok(())
}

/// What the output cannot hold, before a search that may take long.
fn check_rows(
    args: &Args,
    snapshot: &Snapshot,
    file: Option<&Path>,
    format: Format,
) -> anyhow::Result<()> {
    snapshot.columns(&[], &args.columns)?;
    if let (Format::Ids, Some(file)) = (format, file)
        && (snapshot.is_named() || !args.columns.is_empty())
    {
        return Err(Fault::usage(format!(
            "{}: a table of numbers holds neither names nor columns; use .csv or .jsonl",
            file.display()
        )));
    }
    Ok(())
}

fn nearest(
    args: &Args,
    index: &dyn NeighborIndex,
    queries: Rows<'_>,
    filter: Option<Filter>,
    threads: usize,
) -> garlic_ann::Result<Vec<Answer>> {
    let params = Params {
        k: args.k,
        recall: args.recall,
        probes: args.probes,
        bins: args.bins,
        rerank: args.rerank,
        exact: args.exact,
    };
    let mut search = params.search().threads(threads);
    if let Some(filter) = filter {
        search = search.filter(filter);
    }
    index.search_batch(queries, &search)
}

fn within(
    args: &Args,
    index: &dyn NeighborIndex,
    queries: Rows<'_>,
    radius: f32,
    filter: Option<Filter>,
    threads: usize,
) -> garlic_ann::Result<Vec<Answer>> {
    let mut range = RangeSearch::new(radius).threads(threads);
    if let Some(recall) = args.recall {
        range = range.recall(recall);
    }
    if let Some(filter) = filter {
        range = range.filter(filter);
    }
    index.range_batch(queries, &range)
}

/// Everything that can be wrong with the outputs, before anything is read. Gives the file for the neighbours, none for
/// standard output, and their format.
fn check_outputs<'a>(
    args: &'a Args,
    queries: &'a Path,
) -> anyhow::Result<(Option<&'a Path>, Format)> {
    let mut inputs = vec![queries, args.index.as_path()];
    inputs.extend(args.filter_ids.as_deref());
    inputs.extend(args.exclude_ids.as_deref());
    let printed = match args.output.as_deref().map(|out| (out, out.to_str())) {
        None if args.json => Some(Format::Json),
        None => Some(Format::Readable),
        Some((_, Some("-"))) if args.json => Some(Format::Json),
        Some((_, Some("-"))) => Some(Format::Csv),
        Some((_, name)) => name.and_then(Format::named),
    };
    let file = args.output.as_deref().filter(|_| printed.is_none());
    let format = match (file, printed) {
        (None, Some(Format::Ids)) | (None, None) => {
            return Err(Fault::usage(
                "a table of identifiers is no text; name a file for it, such as -o hits.npy",
            ));
        }
        (None, Some(format)) => format,
        (Some(file), _) => {
            let format = Format::of(file).ok_or_else(|| {
                Fault::usage(format!(
                    "{}: the extension names no format for neighbours; use .ivecs, .ibin, .npy, .csv, .jsonl or .txt",
                    file.display()
                ))
            })?;
            match format {
                Format::Ids => output::check_regular(file, &inputs)?,
                _ => output::check(file, &inputs)?,
            }
            inputs.push(file);
            format
        }
    };
    if let Some(path) = &args.distances {
        let known = path
            .extension()
            .is_some_and(|e| ["fvecs", "fbin", "npy"].iter().any(|known| e == *known));
        if !known {
            return Err(Fault::usage(format!(
                "{}: the extension names no format for distances; use .fvecs, .fbin or .npy",
                path.display()
            )));
        }
        if Some(path.as_path()) == file {
            return Err(Fault::usage(
                "ids and distances need a file each; name another one with --distances",
            ));
        }
        output::check_regular(path, &inputs)?;
    }
    Ok((file, format))
}
