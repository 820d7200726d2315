//! The page of the demo.

use garlic_eval::baseline::{BRUTE_FORCE, KMEANS, KMEANS_FINE};
use garlic_eval::demo::{Budget, DemoOptions, DemoResult, Epoch, ShapeRecall, TrainedCells};
use garlic_eval::{GARLIC_DEFAULT, GARLIC_PAPER, Row, TARGETS};
use plotters::style::RGBColor;
use serde::Serialize;

use crate::Result;
use crate::page::{Table, render, thousands};
use crate::plot::{
    Axis, BLUE, Chart, Drawing, GREEN, GREY, INK, Mark, ORANGE, Series, VERMILLION, bars, cells,
};

/// The page of a demo that was run with these options.
pub fn demo_page(options: &DemoOptions, result: &DemoResult) -> Result<String> {
    let trained = &result.trained;
    let sizes = &trained.sizes.histogram;
    render(
        "demo.html",
        &Page {
            paper: GARLIC_PAPER,
            default: GARLIC_DEFAULT,
            targets: TARGETS.map(|t| t.to_string()).join(", "),
            options,
            result,
            trained,
            machine: machine(),
            recall: [
                recall(&result.rows, Cost::Work)?,
                recall(&result.rows, Cost::Candidates)?,
            ],
            training: training(&trained.epochs)?,
            sizes: [bars(
                "Points per cell",
                "points in a cell",
                "cells",
                sizes,
                None,
            )?],
            view: [cells(&trained.view, trained.tau)?],
            by_work: budgets("distance equivalents", &result.by_work),
            by_candidates: budgets("candidates", &result.by_candidates),
            by_shape: shapes(&result.by_shape),
            front: settings(result.rows.iter().filter(|r| r.front || r.front_work)),
            all: settings(result.rows.iter()),
        },
    )
}

/// What `templates/demo.html` shows.
#[derive(Serialize)]
struct Page<'a> {
    paper: &'a str,
    default: &'a str,
    targets: String,
    options: &'a DemoOptions,
    result: &'a DemoResult,
    trained: &'a TrainedCells,
    machine: String,
    recall: [Drawing; 2],
    training: [Drawing; 3],
    sizes: [Drawing; 1],
    view: [Drawing; 1],
    by_work: Table,
    by_candidates: Table,
    by_shape: Table,
    front: Table,
    all: Table,
}

/// What a query costs.
#[derive(Clone, Copy, PartialEq)]
enum Cost {
    Candidates,
    Work,
}

impl Cost {
    fn of(self, row: &Row) -> f64 {
        match self {
            Self::Candidates => row.candidates,
            Self::Work => row.distance_equivalents,
        }
    }

    fn on_front(self, row: &Row) -> bool {
        match self {
            Self::Candidates => row.front,
            Self::Work => row.front_work,
        }
    }
}

/// Recall@1 against cost: every setting a dot, each method's front a line.
fn recall(rows: &[Row], cost: Cost) -> Result<Drawing> {
    let (caption, label) = match cost {
        Cost::Work => ("Recall against all work", "distance equivalents per query"),
        Cost::Candidates => ("Recall against candidates", "exact distances per query"),
    };
    let mut methods: Vec<&str> = rows.iter().map(|r| r.method.as_str()).collect();
    let mut seen = Vec::new();
    methods.retain(|m| {
        !seen.contains(m) && {
            seen.push(*m);
            true
        }
    });
    let of = |method: &str, front: bool| {
        let own = rows
            .iter()
            .filter(|r| r.method == method && cost.on_front(r) == front);
        let mut points: Vec<(f64, f64)> = own.map(|r| (cost.of(r), r.recall_at_1)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let dots = methods
        .iter()
        .map(|m| Series::new("", colour(m), Mark::Dots, of(m, false)));
    let lines = methods
        .iter()
        .map(|m| Series::new(*m, colour(m), Mark::Line, of(m, true)));
    Chart {
        caption: caption.into(),
        x: Axis::log(label),
        y: Axis::linear("recall@1").to(1.0),
        series: dots.chain(lines).collect(),
    }
    .draw()
}

/// The colour of a method, the same in every drawing.
fn colour(method: &str) -> RGBColor {
    match method {
        GARLIC_DEFAULT => GREEN,
        GARLIC_PAPER => BLUE,
        KMEANS => VERMILLION,
        KMEANS_FINE => ORANGE,
        BRUTE_FORCE => INK,
        _ => GREY,
    }
}

/// Terms of the loss, number of cells and covered share, epoch by epoch.
fn training(epochs: &[Epoch]) -> Result<[Drawing; 3]> {
    let line = |name: &str, colour: RGBColor, mark: Mark, value: fn(&Epoch) -> f64| {
        let points = epochs.iter().map(|e| (e.epoch as f64, value(e)));
        Series::new(name, colour, mark, points)
    };
    let chart = |caption: &str, y: Axis, series: Vec<Series>| {
        Chart {
            caption: caption.into(),
            x: Axis::linear("epoch").from(0.0),
            y: y.from(0.0),
            series,
        }
        .draw()
    };
    Ok([
        chart(
            "Loss",
            Axis::linear("loss"),
            vec![
                line("total (weighted)", INK, Mark::Plain, |e| e.loss),
                line("divergence", BLUE, Mark::Dashed, |e| e.divergence),
                line("coverage", VERMILLION, Mark::Plain, |e| e.coverage),
                line("anchor", GREEN, Mark::Dashed, |e| e.anchor),
            ],
        )?,
        chart(
            "Cells",
            Axis::linear("number of cells"),
            vec![line("", BLUE, Mark::Plain, |e| e.cells as f64)],
        )?,
        chart(
            "Coverage",
            Axis::linear("share of the points").to(1.0),
            vec![
                line("within tau of a cell", BLUE, Mark::Plain, |e| e.covered),
                line("in the largest cell", ORANGE, Mark::Dashed, |e| e.largest),
            ],
        )?,
    ])
}

/// Columns of [`compared`].
const COMPARED: [&str; 5] = [
    GARLIC_DEFAULT,
    GARLIC_PAPER,
    KMEANS,
    KMEANS_FINE,
    "difference",
];

/// Recall of the methods, and how far the published one is above the better k-means.
fn compared(budget: &Budget) -> [String; 5] {
    let rival = budget
        .kmeans
        .into_iter()
        .chain(budget.kmeans_fine)
        .reduce(f64::max);
    let difference = budget
        .garlic_paper
        .zip(rival)
        .map(|(own, rival)| own - rival);
    let [default, paper, kmeans, fine] = [
        budget.garlic_default,
        budget.garlic_paper,
        budget.kmeans,
        budget.kmeans_fine,
    ]
    .map(share);
    let difference = difference.map_or("-".into(), |d| format!("{d:+.4}"));
    [default, paper, kmeans, fine, difference]
}

fn share(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.4}"))
}

fn table<const N: usize>(first: [&str; N], rows: Vec<Vec<String>>, left: usize) -> Table {
    let header = first.into_iter().chain(COMPARED).map(str::to_owned);
    Table {
        header: header.collect(),
        rows,
        left,
    }
}

/// Recall of the methods at the same budgets.
fn budgets(unit: &str, budgets: &[Budget]) -> Table {
    let row = |b: &Budget| [thousands(b.cost)].into_iter().chain(compared(b)).collect();
    table([unit], budgets.iter().map(row).collect(), 0)
}

/// The same for each shape of cluster.
fn shapes(shapes: &[ShapeRecall]) -> Table {
    let row = |s: &ShapeRecall, b: &Budget| {
        let first = [
            s.stratum.name().to_owned(),
            s.queries.to_string(),
            thousands(b.cost),
        ];
        first.into_iter().chain(compared(b)).collect()
    };
    let rows = shapes
        .iter()
        .flat_map(|s| s.budgets.iter().map(move |b| row(s, b)));
    table(["shape", "queries", "candidates"], rows.collect(), 1)
}

/// Everything measured of some settings.
fn settings<'a>(rows: impl Iterator<Item = &'a Row>) -> Table {
    let header = [
        "method",
        "cells",
        "setting",
        "recall@1",
        "recall@10",
        "candidates",
        "distance equivalents",
        "QPS",
        "p50 µs",
        "p99 µs",
        "gap",
        "front",
    ];
    let row = |r: &Row| {
        let front = |on: bool, letter: &'static str| if on { letter } else { "" };
        vec![
            r.method.clone(),
            if r.cells > 0 {
                r.cells.to_string()
            } else {
                "-".into()
            },
            r.params.label(),
            share(Some(r.recall_at_1)),
            share(r.recall_at_10),
            thousands(r.candidates),
            thousands(r.distance_equivalents),
            thousands(r.qps),
            thousands(r.p50_us),
            thousands(r.p99_us),
            r.gap.map_or("-".into(), |g| format!("{g:+.4}")),
            format!("{} {}", front(r.front, "c"), front(r.front_work, "w")),
        ]
    };
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.map(row).collect(),
        left: 1,
    }
}

/// What the times were measured on.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let slow = match cfg!(debug_assertions) {
        true => ", built without full optimisation: times mean little",
        false => "",
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("{cores} cores, {os} {arch}; garlic {version}{slow}")
}
