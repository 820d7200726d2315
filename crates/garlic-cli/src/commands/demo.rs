//! `garlic demo`: a tour on synthetic data.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use garlic_eval::demo::{self, Budget, DemoOptions, DemoResult, DemoStage, ShapeRecall};
use garlic_eval::{GARLIC_DEFAULT, GARLIC_PAPER};
use garlic_table::FirstRows;
use serde::Serialize;

use crate::args::{positive, share};
use crate::exit::Fault;
use crate::output;
use crate::progress::Meter;
use crate::report;
use crate::system;
use crate::table::{self, Table};

/// Index synthetic data, and compare with k-means cells and brute force
///
/// The data are needles, pancakes and balls of different density. Both presets index them: paper with the parameters
/// below, default without any. Tables go to standard output. A report with plots goes to DIR/report.html, and the index
/// of preset default to DIR/index.garlic, which `garlic serve` shows in a browser.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the report; it is created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "garlic-demo")]
    out: PathBuf,
    /// Points to index [default: 100000]
    #[arg(long, value_name = "N", value_parser = positive)]
    points: Option<usize>,
    /// Dimension of the points, at least 16 [default: 64]
    #[arg(long, value_name = "D", value_parser = positive)]
    dim: Option<usize>,
    /// Queries to measure with [default: 1000]
    #[arg(long, value_name = "N", value_parser = positive)]
    queries: Option<usize>,
    /// Cells at the start of training, preset paper [default: 100]
    #[arg(long, value_name = "K0", value_parser = positive)]
    initial_cells: Option<usize>,
    /// Training epochs, preset paper [default: 70]
    #[arg(long, value_name = "E")]
    epochs: Option<usize>,
    /// Share of the points to train on, preset paper, in (0, 1] [default: 0.25]
    #[arg(long, value_name = "F", value_parser = share)]
    train_fraction: Option<f64>,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "T", value_parser = positive)]
    threads: Option<usize>,
    /// Seed of the data and of the indexes
    #[arg(long, value_name = "S", default_value = "7")]
    seed: u64,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    /// Print everything that was measured as one JSON object; no progress
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic demo
  garlic demo --points 20000 --dim 128 --out /tmp/demo";

impl Args {
    fn options(&self) -> DemoOptions {
        let usual = DemoOptions::default();
        DemoOptions {
            points: self.points.unwrap_or(usual.points),
            dim: self.dim.unwrap_or(usual.dim),
            queries: self.queries.unwrap_or(usual.queries),
            initial_cells: self.initial_cells.unwrap_or(usual.initial_cells),
            epochs: self.epochs.unwrap_or(usual.epochs),
            train_fraction: self.train_fraction.unwrap_or(usual.train_fraction),
            threads: self.threads.unwrap_or_else(system::default_threads),
            seed: self.seed,
            ..usual
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Measured<'a> {
    #[serde(flatten)]
    result: &'a DemoResult,
    /// The page; null when this program makes none.
    report: Option<&'a Path>,
    /// The index of the default preset.
    index: &'a Path,
}

/// Runs the demo.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let page = args.out.join("report.html");
    let page = report::AVAILABLE.then_some(page.as_path());
    let index = args.out.join("index.garlic");
    std::fs::create_dir_all(&args.out).map_err(|e| {
        let folder = args.out.display();
        Fault::failed(format!("cannot make the folder {folder}: {e}"))
    })?;
    for file in page.into_iter().chain([index.as_path()]) {
        output::check_regular(file, &[])?;
    }
    let options = args.options();

    let state = Mutex::new((Meter::new(args.quiet || args.json), None));
    let result = demo::run(&options, &|p| {
        // A lost bar is no reason to lose the demo.
        let Ok(mut state) = state.lock() else { return };
        let (meter, stage) = &mut *state;
        if *stage != Some(p.stage) {
            *stage = Some(p.stage);
            meter.start(name(p.stage), p.total);
        }
        meter.set(p.done, p.total, "");
    });
    if let Ok(mut state) = state.lock() {
        state.0.finish();
    }
    let mut result = result?;
    save_index(&mut result, &index)?;
    if let Some(page) = page {
        let text = report::demo_page(&options, &result)?;
        output::write_file(page, |out| out.write_all(text.as_bytes()))?;
    }
    if args.json {
        return output::print_json(&Measured {
            result: &result,
            report: page,
            index: &index,
        });
    }
    output::print(&readable(&options, &result, page, &index))
}

/// Writes the index of the default preset, with the shape of each point's cluster as a column.
fn save_index(result: &mut DemoResult, path: &Path) -> anyhow::Result<()> {
    let Some(index) = result.index.take() else {
        return Ok(());
    };
    let shapes = StringArray::from_iter_values(result.shapes.iter().map(|shape| shape.name()));
    let shapes: ArrayRef = Arc::new(shapes);
    let columns = RecordBatch::try_from_iter([("shape", shapes)])?;
    let rows = FirstRows::new(index.len(), None, Some(&columns))?;
    rows.attach(index.into())
        .save(path)
        .map_err(|e| output::save_error(path, e))
}

fn name(stage: DemoStage) -> &'static str {
    match stage {
        DemoStage::Draw => "drawing",
        DemoStage::Truth => "true neighbours",
        DemoStage::Train => "training",
        DemoStage::Index => "indexing",
        DemoStage::Default => "default preset",
        DemoStage::Kmeans => "k-means cells",
        DemoStage::Measure => "measuring",
    }
}

fn readable(
    options: &DemoOptions,
    result: &DemoResult,
    page: Option<&Path>,
    index: &Path,
) -> String {
    let seconds = &result.seconds;
    let facts = table::list(&[
        (
            "data",
            format!(
                "{} points of dimension {}: needles, pancakes and balls",
                table::count(options.points),
                options.dim
            ),
        ),
        (GARLIC_DEFAULT, format!("{} cells", result.default_cells)),
        (
            GARLIC_PAPER,
            format!(
                "{} cells, {} of the points within tau",
                result.cells,
                table::percent(result.covered)
            ),
        ),
        (
            "time",
            format!(
                "{} ({GARLIC_DEFAULT} {}, {GARLIC_PAPER} {}, k-means {}, measuring {})",
                table::seconds(seconds.total),
                table::seconds(seconds.build_default),
                table::seconds(seconds.build),
                table::seconds(seconds.kmeans),
                table::seconds(seconds.measure)
            ),
        ),
    ]);
    let report = page.map_or(report::MISSING.into(), |p| p.display().to_string());
    let shapes = shapes(&result.by_shape);
    format!(
        "{facts}\nRecall@1 at equal candidates (brute force: 1.0000 at {n})\n{}\
         \nRecall@1 at equal work, in distance equivalents (brute force: 1.0000 at {n})\n{}\
         \nRecall@1 by shape of the cluster, at equal candidates\n{shapes}\nk-means: as many cells; k-means x4: four times as many.\nReport: {}\n\
         To look at the index: garlic serve {}, then open the address that it prints\n",
        budgets("candidates", &result.by_candidates),
        budgets("work", &result.by_work),
        report,
        index.display(),
        n = table::count(options.points),
    )
}

fn shapes(by_shape: &[ShapeRecall]) -> String {
    let mut shapes = Table::new(&[
        "<shape",
        "queries",
        "candidates",
        GARLIC_DEFAULT,
        GARLIC_PAPER,
        "k-means",
        "k-means x4",
    ]);
    for shape in by_shape {
        for budget in &shape.budgets {
            shapes.row(vec![
                shape.stratum.name().to_owned(),
                shape.queries.to_string(),
                format!("{:.0}", budget.cost),
                recall(budget.garlic_default),
                recall(budget.garlic_paper),
                recall(budget.kmeans),
                recall(budget.kmeans_fine),
            ]);
        }
    }
    shapes.render()
}

fn budgets(unit: &str, budgets: &[Budget]) -> String {
    let mut table = Table::new(&[unit, GARLIC_DEFAULT, GARLIC_PAPER, "k-means", "k-means x4"]);
    for budget in budgets {
        table.row(vec![
            format!("{:.0}", budget.cost),
            recall(budget.garlic_default),
            recall(budget.garlic_paper),
            recall(budget.kmeans),
            recall(budget.kmeans_fine),
        ]);
    }
    table.render()
}

fn recall(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |r| format!("{r:.4}"))
}
