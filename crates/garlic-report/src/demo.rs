//! The page of the demo.

use garlic_eval::baseline::{BRUTE_FORCE, KMEANS, KMEANS_FINE};
use garlic_eval::demo::{DemoOptions, DemoResult, Epoch};
use garlic_eval::{GARLIC_DEFAULT, GARLIC_PAPER, Row, TARGETS};
use minijinja::value::Serde;
use minijinja::{Value, context};
use plotters::style::RGBColor;

use crate::Result;
use crate::page::render;
use crate::plot::{
    Axis, BLUE, Chart, Drawing, GREEN, GREY, INK, Mark, ORANGE, Series, VERMILLION, bars, cells,
};

/// The page of a demo that was run with these options.
pub fn demo_page(options: &DemoOptions, result: &DemoResult) -> Result<String> {
    let (rows, trained) = (&result.rows, &result.trained);
    let settings = rows
        .iter()
        .map(|r| vec![Value::from(r.params.label()), Serde(r).into()]);
    let [loss, number, share] = training(&trained.epochs)?;
    let content = context! {
        paper => GARLIC_PAPER,
        default => GARLIC_DEFAULT,
        methods => [GARLIC_DEFAULT, GARLIC_PAPER, KMEANS, KMEANS_FINE].to_vec(),
        targets => TARGETS.to_vec(),
        options => Serde(options),
        result => Serde(result),
        trained => Serde(trained),
        machine => machine(),
        work => recall(rows, "distance equivalents per query", |r| (r.distance_equivalents, r.front_work))?,
        candidates => recall(rows, "exact distances per query", |r| (r.candidates, r.front))?,
        loss, number, share,
        settings => settings.collect::<Vec<_>>(),
        sizes => bars("points in a cell", "cells", &trained.sizes.histogram, None)?,
        view => cells(&trained.view, trained.tau)?,
    };
    render("demo.html", content)
}

/// Recall@1 against cost: every setting a dot, each method's front a line. `cost` tells what a query costs and whether the
/// setting is on the front.
fn recall(rows: &[Row], label: &str, cost: fn(&Row) -> (f64, bool)) -> Result<Drawing> {
    let mut methods: Vec<&str> = Vec::new();
    for row in rows {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let of = |method: &str, front: bool| {
        let own = rows
            .iter()
            .filter(|r| r.method == method && cost(r).1 == front);
        let mut points: Vec<(f64, f64)> = own.map(|r| (cost(r).0, r.recall_at_1)).collect();
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
    let chart = |y: Axis, series: Vec<Series>| {
        let x = Axis::linear("epoch").from(0.0);
        let y = y.from(0.0);
        Chart { x, y, series }.draw()
    };
    let losses = vec![
        line("total (weighted)", INK, Mark::Plain, |e| e.loss),
        line("divergence", BLUE, Mark::Dashed, |e| e.divergence),
        line("coverage", VERMILLION, Mark::Plain, |e| e.coverage),
        line("anchor", GREEN, Mark::Dashed, |e| e.anchor),
    ];
    let cells = vec![line("", BLUE, Mark::Plain, |e| e.cells as f64)];
    let shares = vec![
        line("within tau of a cell", BLUE, Mark::Plain, |e| e.covered),
        line("in the largest cell", ORANGE, Mark::Dashed, |e| e.largest),
    ];
    Ok([
        chart(Axis::linear("loss"), losses)?,
        chart(Axis::linear("number of cells"), cells)?,
        chart(Axis::linear("share of the points").to(1.0), shares)?,
    ])
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
