//! `garlic eval`: recall against work and time.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use garlic_ann::Metric;
use garlic_any::AnyIndex;
use garlic_data::{Dataset, Ids, Vectors};
use garlic_eval::{Grid, IndexTarget, Options, Params, Row, Truth, evaluate, sweep};

use crate::args::{positive, recall, share};
use crate::exit::Fault;
use crate::input::{self, Reading};
use crate::metric;
use crate::names;
use crate::output;
use crate::place;
use crate::progress::Meter;
use crate::table::Table;

/// Measure recall, work and time of searches
///
/// Queries and true neighbours come from DATA, or from --query-file and --truth. If there are no true neighbours, they
/// are computed. --recall, --probes, --bins and --rerank take lists, and every combination is measured. Without these
/// flags the default recall target of the index is measured. Times are those of single queries.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index file (read into memory) or index directory
    index: PathBuf,
    /// The data that the index was built from: a file, or the name of a data set
    data: PathBuf,
    /// Neighbours per query; recall_at_10 needs at least 10
    #[arg(short, value_name = "K", default_value = "10", value_parser = positive)]
    k: usize,
    /// Metric of the index, to confirm it if DATA names another one: euclidean, cosine or inner_product
    #[arg(long, value_name = "M", value_parser = metric::parse)]
    metric: Option<Metric>,
    /// Only the first N queries
    #[arg(long, value_name = "N", value_parser = positive)]
    queries: Option<usize>,
    /// Recall targets, in (0, 1); a row for each shows the gap to the measured recall [default: that of the index]
    #[arg(long, value_name = "R,..", value_delimiter = ',', value_parser = recall)]
    recall: Vec<f64>,
    /// Measure exact search, which finds all true neighbours
    #[arg(long, conflicts_with_all = ["recall", "probes", "bins", "rerank", "sweep"])]
    exact: bool,
    /// Numbers of cells to visit [default: what the recall target takes]
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = positive)]
    probes: Vec<usize>,
    /// Shares of the bins of visited cells to scan, in (0, 1] [default: what the recall target takes]
    #[arg(long, value_name = "RHO,..", value_delimiter = ',', value_parser = share)]
    bins: Vec<f64>,
    /// Numbers of points, best by their codes, to compute exact distances for [default: what the recall target takes]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = positive)]
    rerank: Vec<usize>,
    /// Measure a grid of settings and mark the Pareto front. --probes, --bins and --rerank replace parts of the grid. The
    /// default index measures the grid on the queries of --timed, and the front on all queries
    #[arg(long, conflicts_with = "recall")]
    sweep: bool,
    /// Queries that a sweep uses for timing
    #[arg(long, value_name = "N", default_value = "1000", value_parser = positive, requires = "sweep")]
    timed: usize,
    /// Also measure all queries in one call
    #[arg(long)]
    batch: bool,
    /// Report the times of the fastest of N runs
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    repeat: usize,
    /// Threads; each answers one query at a time
    #[arg(long, value_name = "T", default_value = "1", value_parser = positive)]
    threads: usize,
    /// Leave the vectors in the index file and read those of candidates from the disk; everything else is in memory
    #[arg(long)]
    on_disk: bool,
    /// Queries, if DATA has none or you want others
    #[arg(long, value_name = "FILE")]
    query_file: Option<PathBuf>,
    /// True neighbours of the queries: .ivecs, .ibin or .npy
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

const EXAMPLES: &str = "\
Examples:
  garlic eval fm.garlic fashion-mnist-784-euclidean --recall .9,.95,.99
  garlic eval fm.garlic fashion-mnist-784-euclidean --batch --repeat 5
  garlic eval fm.garlic fashion-mnist-784-euclidean --sweep --queries 2000 --json > sweep.jsonl
  garlic eval vectors.garlic vectors.npy --query-file queries.npy --probes 4,8,16 --bins 0.05 --rerank 40";

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let data_path = names::data(&args.data)?;
    let index = match args.on_disk {
        true => place::open_on_disk(&args.index)?,
        false => place::load(&args.index)?,
    };
    let data = args.reading.dataset(&data_path)?;
    input::check_dimension(&*index, &data.train, &data_path)?;
    if data.train.rows() != index.len() {
        return Err(Fault::input(format!(
            "{}: holds {} vectors, the index {}; evaluate with the data the index was built from",
            data_path.display(),
            data.train.rows(),
            index.len()
        )));
    }
    let usable = metric::check(&*index, args.metric, data.metric, &data_path)?;
    let (queries, known) = queries_and_neighbors(args, &data, &data_path, usable)?;
    let queries = match args.queries {
        Some(n) => queries.head(n)?,
        None => queries,
    };
    let truth = truth(args, &index, &data, &queries, known)?;

    let values = queries.to_f32();
    let rows = input::rows(&values, queries.dim())?;
    let options = Options {
        threads: args.threads,
        batch: args.batch,
        repeat: args.repeat,
        timed: args.timed,
    };
    if args.sweep && !args.rerank.is_empty() && !index.takes_recall() {
        return Err(Fault::usage(
            "--rerank belongs to preset default: this index has no codes to choose points by; leave it out",
        ));
    }
    let target = IndexTarget(&*index);
    let grid = args.sweep.then(|| grid(args, &target));
    let settings = match &grid {
        Some(grid) => grid.settings(&target, args.k),
        None => settings(args, &index),
    };
    let mut meter = Meter::new(args.quiet || args.json);
    if settings.len() > 1 {
        meter.start("measuring", settings.len());
    }
    let measured = if let Some(grid) = &grid {
        let mut tell = |done: usize, total: usize| {
            let label = settings
                .get(done - 1)
                .map_or_else(|| "the front, on all queries".into(), Params::label);
            meter.set(done, total, &label);
        };
        sweep(&target, rows, &truth, args.k, grid, &options, &mut tell)?
    } else {
        let mut measured: Vec<Row> = Vec::with_capacity(settings.len());
        for (done, params) in settings.iter().enumerate() {
            let row = evaluate(&target, rows, &truth, params, &options)?;
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
        (false, _) => output::print(&readable(&measured, args.sweep, index.takes_recall())),
    }
}

/// The settings of a sweep: lists as given, else those that suit the index.
fn grid(args: &Args, target: &IndexTarget<'_>) -> Grid {
    let mut grid = Grid::of(target, args.k);
    if !args.probes.is_empty() {
        grid.probes.clone_from(&args.probes);
    }
    if !args.bins.is_empty() {
        grid.bins.clone_from(&args.bins);
    }
    if !args.rerank.is_empty() {
        grid.rerank.clone_from(&args.rerank);
    }
    grid
}

/// Every combination of what the flags list; what they do not list is left to the index.
fn settings(args: &Args, index: &AnyIndex) -> Vec<Params> {
    fn each<T: Copy>(given: &[T], otherwise: Option<T>) -> Vec<Option<T>> {
        match given {
            [] => vec![otherwise],
            given => given.iter().copied().map(Some).collect(),
        }
    }
    let usual = index.usual_search();
    let named = !(args.probes.is_empty() && args.bins.is_empty() && args.rerank.is_empty());
    // Rows say what was measured: defaults of the index are written out where one number says them.
    let recall = usual.wanted_recall().filter(|_| !named && !args.exact);
    let probes = usual.wanted_probes().filter(|_| !args.exact);
    let bins = usual.wanted_bins().filter(|_| !args.exact);
    let mut settings = Vec::new();
    for recall in each(&args.recall, recall) {
        for probes in each(&args.probes, probes) {
            for bins in each(&args.bins, bins) {
                for rerank in each(&args.rerank, None) {
                    settings.push(Params {
                        k: args.k,
                        recall,
                        probes,
                        bins,
                        rerank,
                        exact: args.exact,
                    });
                }
            }
        }
    }
    settings
}

/// The queries, and their true neighbours with the file they come from, if they are known; those of the data only if
/// they are `usable`.
fn queries_and_neighbors(
    args: &Args,
    data: &Dataset,
    path: &Path,
    usable: bool,
) -> anyhow::Result<(Vectors, Option<(Ids, PathBuf)>)> {
    let (queries, own) = match (&args.query_file, &data.test) {
        (Some(file), _) => {
            let file = names::data(file)?;
            let queries = args.reading.queries_beside(&file)?;
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
        (None, Some(test)) => (test.clone(), data.neighbors.clone().filter(|_| usable)),
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
    index: &AnyIndex,
    data: &Dataset,
    queries: &Vectors,
    known: Option<(Ids, PathBuf)>,
) -> anyhow::Result<Truth> {
    let metric = index.metric();
    let finish = |truth: Truth, neighbors: Vec<u64>| match reports_rounded(index, data) {
        true => truth.by_identifier(neighbors),
        false => Ok(truth),
    };
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
        let (dim, by) = (data.train.dim(), metric::of_index(metric));
        let exact = garlic_data::ground_truth_by(by, &base, dim, &values, wanted)?;
        let neighbors: Vec<u64> = exact.ids.iter().map(|id| id.unsigned_abs()).collect();
        let (base, queries) = (input::rows(&base, dim)?, input::rows(&values, dim)?);
        let truth = Truth::from_neighbors(metric, base, queries, &neighbors, exact.k)?;
        return Ok(finish(truth, neighbors)?);
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
    let truth = Truth::from_neighbors(
        metric,
        input::rows(&base, dim)?,
        input::rows(&values, dim)?,
        &neighbors,
        columns,
    );
    truth
        .and_then(|truth| finish(truth, neighbors))
        .with_context(|| path.display().to_string())
}

/// Whether the index reports the distances of rounded vectors, and its identifiers are the rows of the data, so that
/// they tell what was found.
fn reports_rounded(index: &AnyIndex, data: &Dataset) -> bool {
    let rows = data.train.rows() as u64;
    matches!(index.stored_as(), "f16" | "int8")
        && (index.updatable()).is_ok_and(|index| index.ids().iter().all(|id| *id < rows))
}

/// A column of the table: its name, whether any row needs it, and its entries.
type Column<'a> = (String, bool, Box<dyn Fn(&Row) -> String + 'a>);

fn column<'a>(name: &str, needed: bool, entry: impl Fn(&Row) -> String + 'a) -> Column<'a> {
    (name.to_owned(), needed, Box::new(entry))
}

/// Text of a number, or a dash.
fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// The rows as a table; of an index with codes the front is that of recall@k and work.
fn readable(rows: &[Row], sweep: bool, codes: bool) -> String {
    let any = |test: fn(&Row) -> bool| rows.iter().any(test);
    let k = rows.first().map_or(0, |r| r.params.k);
    let queries = rows.iter().map(|r| r.queries).max().unwrap_or(0);
    let share = |r: Option<f64>| or_dash(r, |r| format!("{r:.4}"));
    let on_front = |r: &Row| if codes { r.front_work } else { r.front };
    let mut columns = vec![
        column("<", any(|r| r.params.exact), |r| {
            if r.params.exact { "exact" } else { "" }.to_owned()
        }),
        column("target", any(|r| r.target.is_some()), |r| {
            or_dash(r.target, |t| t.to_string())
        }),
        column("gap", any(|r| r.target.is_some()), |r| {
            or_dash(r.gap, |g| format!("{g:+.4}"))
        }),
        column("probes", any(|r| r.params.probes.is_some()), |r| {
            or_dash(r.params.probes, |p| p.to_string())
        }),
        column("bins", any(|r| r.params.bins.is_some()), |r| {
            or_dash(r.params.bins, |b| b.to_string())
        }),
        column("rerank", any(|r| r.params.rerank.is_some()), |r| {
            or_dash(r.params.rerank, |n| n.to_string())
        }),
        column("R@1", true, |r| format!("{:.4}", r.recall_at_1)),
        column("R@10", true, |r| share(r.recall_at_10)),
        column(&format!("R@{k}"), k != 1 && k != 10, |r| {
            share(r.recall_at_k)
        }),
        column("candidates", true, |r| format!("{:.1}", r.candidates)),
        column("codes", codes, |r| format!("{:.1}", r.work.codes)),
        column("cells", true, |r| format!("{:.1}", r.cells_scored)),
        column("DE", true, |r| format!("{:.1}", r.distance_equivalents)),
        column("QPS", true, |r| format!("{:.0}", r.qps)),
        column("batch QPS", any(|r| r.qps_batch.is_some()), |r| {
            or_dash(r.qps_batch, |q| format!("{q:.0}"))
        }),
        column("p50 us", true, |r| format!("{:.1}", r.p50_us)),
        column("p99 us", true, |r| format!("{:.1}", r.p99_us)),
        column("queries", rows.iter().any(|r| r.queries != queries), |r| {
            r.queries.to_string()
        }),
        column("<front", sweep, |r| {
            if on_front(r) { "*" } else { "" }.to_owned()
        }),
    ];
    columns.retain(|(_, needed, _)| *needed);
    let header: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
    let mut table = Table::new(&header);
    for row in rows {
        table.row(columns.iter().map(|(.., entry)| entry(row)).collect());
    }
    let mut text = table.render();
    text.push_str("DE: all work of a query in units of one exact distance\n");
    if any(|r| r.target.is_some()) {
        text.push_str(&format!("gap: R@{k} less its target\n"));
    }
    if sweep && codes {
        text.push_str(&format!(
            "*: no other setting has at least this R@{k} with less work (DE)\n"
        ));
    } else if sweep {
        text.push_str("*: no other setting has at least this R@1 with fewer candidates\n");
    }
    text
}
