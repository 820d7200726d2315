//! `garlic eval`: recall against work and time.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use garlic_ann::Index;
use garlic_data::{Dataset, Ids, Vectors};
use garlic_eval::{Grid, Options, Row, Truth, evaluate, sweep};

use crate::args::{positive, share};
use crate::exit::Fault;
use crate::input;
use crate::names;
use crate::output;
use crate::progress::Meter;
use crate::table::Table;

/// Measure recall, work and time of searches
///
/// Queries and true neighbours come from DATA, or from --query-file and --truth; truth that is not given is
/// computed exactly. Every number of --probes is measured with every share of --bins. Times are those of
/// single queries.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file
    index: PathBuf,
    /// The data that the index was built from: a file, or the name of a data set
    data: PathBuf,
    /// Neighbours a query asks for; recall_at_10 needs at least 10
    #[arg(short, value_name = "K", default_value = "10", value_parser = positive)]
    k: usize,
    /// Only the first N queries
    #[arg(long, value_name = "N", value_parser = positive)]
    queries: Option<usize>,
    /// Numbers of cells to visit [default: that of the index]
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = positive)]
    probes: Vec<usize>,
    /// Shares of each cell's occupied bins to scan, in (0, 1] [default: that of the index]
    #[arg(long, value_name = "RHO,..", value_delimiter = ',', value_parser = share)]
    bins: Vec<f64>,
    /// Measure many settings (unless listed: 1-8, 12, 16, 32 cells; .1-.5 by .05, .7, 1 of the bins) and mark
    /// the Pareto front
    #[arg(long)]
    sweep: bool,
    /// Threads that answer queries, each one query at a time
    #[arg(long, value_name = "T", default_value = "1", value_parser = positive)]
    threads: usize,
    /// Queries, where DATA has none or others are wanted
    #[arg(long, value_name = "FILE")]
    query_file: Option<PathBuf>,
    /// True neighbours of the queries: .ivecs, .ibin or .npy
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic eval fm.garlic fashion-mnist-784-euclidean
  garlic eval fm.garlic fashion-mnist-784-euclidean --sweep --queries 2000 --json > sweep.jsonl
  garlic eval vectors.garlic vectors.npy --query-file queries.npy --probes 1,5,20 --bins 0.3,1";

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let data_path = names::data(&args.data)?;
    let index = Index::open(&args.index)?;
    let data = Dataset::open(&data_path)?;
    input::check_dimension(&index, &data.train, &data_path)?;
    if data.train.rows() != index.len() {
        return Err(Fault::input(format!(
            "{}: holds {} vectors, the index {}; evaluate with the data the index was built from",
            data_path.display(),
            data.train.rows(),
            index.len()
        )));
    }
    let (queries, known) = queries_and_neighbors(args, &data, &data_path)?;
    let queries = match args.queries {
        Some(n) => queries.head(n)?,
        None => queries,
    };
    let truth = truth(args, &data, &queries, known)?;

    let values = queries.to_f32();
    let rows = input::rows(&values, queries.dim())?;
    let grid = grid(args, &index);
    let options = Options {
        threads: args.threads,
        ..Options::default()
    };
    let settings = grid.settings(&index, args.k);
    let mut meter = Meter::new(args.quiet || args.json);
    if settings.len() > 1 {
        meter.start("measuring", settings.len());
    }
    let measured = if args.sweep {
        sweep(
            &index,
            rows,
            &truth,
            args.k,
            &grid,
            &options,
            &mut |done, total| {
                meter.set(done, total, &settings[done - 1].label());
            },
        )?
    } else {
        let mut measured: Vec<Row> = Vec::with_capacity(settings.len());
        for (done, params) in settings.iter().enumerate() {
            let row = evaluate(&index, rows, &truth, params, &options)?;
            if args.json {
                output::print_json(&row)?;
            }
            meter.set(done + 1, settings.len(), &params.label());
            measured.push(row);
        }
        measured
    };
    meter.finish();
    match (args.json, args.sweep) {
        (true, true) => measured.iter().try_for_each(output::print_json),
        (true, false) => Ok(()),
        (false, _) => output::print(&readable(&measured, args.sweep)),
    }
}

/// What the flags ask to measure: lists as given, else the sweep's, else what the index does by default.
fn grid(args: &Args, index: &Index) -> Grid {
    let mut grid = if args.sweep {
        Grid::default()
    } else {
        Grid {
            probes: vec![index.config().probes],
            bins: vec![index.config().bins],
        }
    };
    if !args.probes.is_empty() {
        grid.probes.clone_from(&args.probes);
    }
    if !args.bins.is_empty() {
        grid.bins.clone_from(&args.bins);
    }
    grid
}

/// The queries, and their true neighbours with the file they come from, if they are known.
fn queries_and_neighbors(
    args: &Args,
    data: &Dataset,
    path: &Path,
) -> anyhow::Result<(Vectors, Option<(Ids, PathBuf)>)> {
    let (queries, own) = match (&args.query_file, &data.test) {
        (Some(file), _) => {
            let file = names::data(file)?;
            let queries = input::query_vectors(&file)?;
            if queries.dim() != data.train.dim() {
                return Err(Fault::input(format!(
                    "{}: the queries have dimension {}, the data {}; use queries of the same data set",
                    file.display(),
                    queries.dim(),
                    data.train.dim()
                )));
            }
            (queries, None)
        }
        (None, Some(test)) => (test.clone(), data.neighbors.clone()),
        (None, None) => {
            return Err(Fault::input(format!(
                "{}: has no queries; name a file of queries with --query-file",
                path.display()
            )));
        }
    };
    let known = match &args.truth {
        Some(file) => Some((garlic_data::read_ids(file)?, file.clone())),
        None => own.map(|ids| (ids, path.to_owned())),
    };
    Ok((queries, known))
}

/// True distances of the queries, computed by brute force when the neighbours are not known.
fn truth(
    args: &Args,
    data: &Dataset,
    queries: &Vectors,
    known: Option<(Ids, PathBuf)>,
) -> anyhow::Result<Truth> {
    let base = data.train.to_f32();
    let values = queries.to_f32();
    let wanted = args.k.max(10);
    let Some((ids, path)) = known else {
        if !args.quiet {
            eprintln!(
                "garlic: no true neighbours given: computing those of {} queries exactly",
                queries.rows()
            );
        }
        let exact = garlic_data::ground_truth(&base, data.train.dim(), &values, wanted)?;
        return Ok(Truth::new(exact.distances, exact.k)?);
    };
    if ids.rows < queries.rows() {
        return Err(Fault::input(format!(
            "{}: has true neighbours of {} queries, there are {}; take both from the same data set or use --queries",
            path.display(),
            ids.rows,
            queries.rows()
        )));
    }
    ids.check_below(data.train.rows(), &garlic_data::Origin::file(&path))?;
    let columns = wanted.min(ids.cols);
    let neighbors: Vec<u64> = (0..queries.rows())
        .flat_map(|q| ids.row(q)[..columns].iter().map(|id| id.unsigned_abs()))
        .collect();
    let dim = data.train.dim();
    Truth::from_neighbors(
        input::rows(&base, dim)?,
        input::rows(&values, dim)?,
        &neighbors,
        columns,
    )
    .with_context(|| path.display().to_string())
}

fn readable(rows: &[Row], sweep: bool) -> String {
    let mut header = vec![
        "probes",
        "bins",
        "R@1",
        "R@10",
        "candidates",
        "cells",
        "DE",
        "QPS",
        "p50 us",
        "p99 us",
    ];
    if sweep {
        header.push("<front");
    }
    let mut table = Table::new(&header);
    for row in rows {
        let mut cells = vec![
            row.params
                .probes
                .map_or_else(|| "-".into(), |p| p.to_string()),
            row.params
                .bins
                .map_or_else(|| "-".into(), |b| format!("{b:.2}")),
            format!("{:.4}", row.recall_at_1),
            row.recall_at_10
                .map_or_else(|| "-".into(), |r| format!("{r:.4}")),
            format!("{:.1}", row.candidates),
            format!("{:.1}", row.cells_scored),
            format!("{:.1}", row.distance_equivalents),
            format!("{:.0}", row.qps),
            format!("{:.1}", row.p50_us),
            format!("{:.1}", row.p99_us),
        ];
        if sweep {
            cells.push(if row.front { "*" } else { "" }.into());
        }
        table.row(cells);
    }
    let mut text = table.render();
    text.push_str("DE: all work of a query in units of one exact distance\n");
    if sweep {
        text.push_str("*: no other setting has at least this R@1 with fewer candidates\n");
    }
    text
}
