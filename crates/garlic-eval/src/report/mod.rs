//! Reports: one HTML file with its drawings inside, no scripts, nothing loaded from elsewhere.

mod figures;
mod html;
mod tables;

pub use figures::{Cost, cell_size_figure, cells_figure, recall_figure, training_figure};
pub use html::{Figure, Report, Table};
pub use tables::{budget_table, results_tables, shape_table};

use garlic_ann::Index;
use garlic_ann::index::{Published, TemperedBody};
use garlic_linalg::Rows;

use crate::evaluate::Row;
use crate::plot::Group;

/// Indexed vectors for the picture of the cells.
#[derive(Clone, Debug)]
pub struct Pictured<'a> {
    /// The vectors.
    pub rows: Rows<'a>,
    /// Kinds of vectors, each with its colour.
    pub groups: Vec<Group>,
    /// Each vector's kind; with none, all are of the first.
    pub group_of: Option<&'a [usize]>,
}

/// The report of one index measured by a sweep, with whatever baselines are among the rows.
///
/// Without `pictured` the picture of the cells is left out.
pub fn index_report(
    title: &str,
    facts: Vec<(String, String)>,
    index: &Index,
    rows: &[Row],
    pictured: Option<Pictured<'_>>,
) -> Report {
    let mut report = Report::new(title);
    report.facts = facts;
    report.facts.extend(index_facts(index));
    report.facts.extend(machine_facts());
    report.tables = results_tables(rows);
    report.figures.push(recall_figure(rows, Cost::Candidates));
    report.figures.push(recall_figure(rows, Cost::Work));
    if let Some(body) = index.published() {
        report.figures.push(training_figure(body.history()));
    }
    report.figures.push(cell_size_figure(index));
    if let Some(pictured) = pictured {
        report.figures.extend(cells_figure(index, pictured));
    }
    report
}

/// What an index is, in words and numbers.
fn index_facts(index: &Index) -> Vec<(String, String)> {
    let mut facts = vec![(
        "Vectors".into(),
        format!("{} of dimension {}", index.len(), index.dim()),
    )];
    if let Some(body) = index.published() {
        facts.extend(published_facts(index, body));
    }
    if let Some(body) = index.tempered() {
        facts.extend(tempered_facts(index, body));
    }
    facts
}

fn tempered_facts(index: &Index, body: &TemperedBody) -> Vec<(String, String)> {
    vec![
        (
            "Cells".into(),
            format!(
                "{} in {} dimensions, {} axes each",
                index.cells(),
                body.model().dim(),
                body.model().rank()
            ),
        ),
        (
            "Bins".into(),
            format!(
                "{}, codes of {} bits a coordinate, vectors stored as {}",
                body.bins(),
                body.code_bits(),
                index.stored_as()
            ),
        ),
    ]
}

fn published_facts(index: &Index, body: &Published) -> Vec<(String, String)> {
    let (config, coverage, history) = (index.config(), body.coverage(), body.history());
    let (cells, training) = match history.points {
        0 => (
            format!("{}, found elsewhere", index.cells()),
            "none".to_owned(),
        ),
        points => (
            format!("{} (started with {})", index.cells(), config.initial_cells),
            format!(
                "{} epochs over {points} points, batches of {}, seed {}",
                history.epochs.len(),
                config.batch,
                config.seed
            ),
        ),
    };
    vec![
        ("Cells".into(), cells),
        (
            "Covered".into(),
            format!(
                "{:.1} % of the points lie within radius {} of a cell; a point belongs to {:.2} cells on average",
                100.0 * coverage.share,
                config.tau,
                coverage.mean
            ),
        ),
        ("Training".into(), training),
        (
            "Bins".into(),
            format!(
                "rank {}, {} radial and {} angular steps",
                config.rank, config.radial_steps, config.angular_steps
            ),
        ),
    ]
}

/// What the numbers were measured on.
fn machine_facts() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let features = cpu_features().join(" ");
    let machine = format!(
        "{cores} cores, {} {}{}{features}",
        std::env::consts::OS,
        std::env::consts::ARCH,
        if features.is_empty() { "" } else { ", " },
    );
    let program = format!(
        "garlic {}{}",
        env!("CARGO_PKG_VERSION"),
        if cfg!(debug_assertions) {
            ", built without full optimisation: times mean little"
        } else {
            ""
        }
    );
    vec![("Machine".into(), machine), ("Program".into(), program)]
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<&'static str> {
    let mut found = Vec::new();
    if std::arch::is_x86_feature_detected!("avx2") {
        found.push("avx2");
    }
    if std::arch::is_x86_feature_detected!("fma") {
        found.push("fma");
    }
    if std::arch::is_x86_feature_detected!("avx512f") {
        found.push("avx512f");
    }
    found
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu_features() -> Vec<&'static str> {
    Vec::new()
}
