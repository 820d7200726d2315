//! What there is to say about the default index.

use garlic_ann::Index;
use serde_json::{Map, Value};

use super::{Fact, Spread, entry, participation};
use crate::words::{bytes, count, percent};

/// Cells, bins and codes in words.
pub(super) fn facts(index: &Index) -> Vec<Fact> {
    let axes = index.cell_shape(0).map_or(0, |cell| cell.variances.len());
    let (bins, cells) = (index.bins(), index.cells());
    let memory = index.memory();
    let beyond = memory.total - memory.vectors;
    let floats = 4 * index.len() * index.dim();
    vec![
        (
            "cells",
            format!(
                "{} in {} of {} dimensions, {axes} axes each",
                count(cells),
                index.transform().out_dim(),
                index.dim()
            ),
        ),
        (
            "bins",
            format!(
                "{}, {:.1} a cell, {:.1} points each",
                count(bins),
                bins as f64 / cells.max(1) as f64,
                index.len() as f64 / bins.max(1) as f64
            ),
        ),
        ("codes", format!("{} bits a coordinate", index.code_bits())),
        ("graph", graph(index)),
        ("vectors", format!("stored as {}", index.stored_as())),
        (
            "beyond vectors",
            match index.is_empty() {
                true => bytes(beyond),
                false => format!(
                    "{}, {} of the vectors' size as f32",
                    bytes(beyond),
                    percent(beyond as f64 / floats.max(1) as f64)
                ),
            },
        ),
        (
            "recall",
            format!(
                "{} unless a search names another",
                index.config().tuning.recall
            ),
        ),
    ]
}

/// Whether there is a neighbour graph, and why.
fn graph(index: &Index) -> String {
    let there = match index.graph_degree() {
        Some(degree) => format!("{degree} neighbours a point"),
        None => "none".to_owned(),
    };
    let Some(decision) = index.calibration().graph_decision else {
        return there;
    };
    let micros = |cost: f64| format!("{:.1} us", cost / 1000.0);
    let bins = micros(decision.bins_cost);
    let costs = match decision.graph_cost {
        Some(cost) => format!("a search costs {} with it and {bins} without", micros(cost)),
        None => format!("a search costs {bins}, too little to try one"),
    };
    format!(
        "{there}; {costs}; local dimension {:.1}",
        decision.local_dimension
    )
}

/// The same with the shapes of the cells.
pub(super) fn all_facts(index: &Index) -> Vec<Fact> {
    let mut facts = facts(index);
    facts.extend([
        ("effective axes", Spread::in_words(effective_axes(index), 1)),
        ("variance kept", Spread::in_words(variance_kept(index), 3)),
    ]);
    facts
}

pub(super) fn add_details(index: &Index, about: &mut Map<String, Value>) {
    entry(about, "graph_degree", index.graph_degree());
    entry(about, "graph_decision", index.calibration().graph_decision);
    entry(about, "effective_axes", effective_axes(index));
    entry(about, "variance_kept", variance_kept(index));
}

/// How many of its axes a cell fills.
fn effective_axes(index: &Index) -> Option<Spread> {
    let cells = (0..index.cells()).filter_map(|cell| index.cell_shape(cell));
    Spread::of(cells.map(|cell| participation(cell.variances.iter().map(|v| f64::from(*v)))))
}

/// Share of a cell's variance that lies along its axes.
fn variance_kept(index: &Index) -> Option<Spread> {
    let cells = (0..index.cells()).filter_map(|cell| index.cell_shape(cell));
    Spread::of(cells.map(|cell| {
        let kept: f64 = cell.variances.iter().map(|v| f64::from(*v)).sum();
        // Cells of few points have fewer axes; the others are zero.
        let others = cell.mean.len() - cell.variances.iter().filter(|v| **v > 0.0).count();
        let all = kept + f64::from(cell.residual_variance) * others as f64;
        if all > 0.0 { kept / all } else { 1.0 }
    }))
}
