//! What there is to say about an index of the published method.

use garlic_paper::config::Covariance;
use garlic_paper::{GaussianIndex, NeighborIndex as _};
use serde_json::{Map, Value, json};

use super::{Fact, Spread, entry, participation};
use crate::words::{count, percent};

/// Cells and coverage in words.
pub(super) fn summary(index: &GaussianIndex) -> Vec<Fact> {
    vec![
        ("cells", count(index.cells())),
        ("coverage", coverage(index)),
    ]
}

/// The same with spectra, bins and training.
pub(super) fn facts(index: &GaussianIndex, sample: usize) -> Vec<Fact> {
    let spectra = spectra(index, sample);
    let structure = match index.model().factors.covariance() {
        Covariance::Diagonal => "diagonal",
        Covariance::Isotropic => "isotropic",
        _ => "full",
    };
    vec![
        (
            "cells",
            format!("{}, {structure} covariances", count(index.cells())),
        ),
        ("coverage", coverage(index)),
        ("bins occupied", Spread::in_words(occupied(index), 0)),
        (
            "anisotropy",
            format!(
                "{} (largest over smallest eigenvalue, {} cells sampled)",
                Spread::in_words(Spread::of(spectra.iter().map(|s| anisotropy(s))), 1),
                spectra.len()
            ),
        ),
        (
            "effective dim",
            Spread::in_words(
                Spread::of(spectra.iter().map(|s| effective_dimension(s))),
                1,
            ),
        ),
        ("training", training(index)),
    ]
}

pub(super) fn add_details(index: &GaussianIndex, sample: usize, about: &mut Map<String, Value>) {
    let spectra = spectra(index, sample);
    let spread = |of: fn(&[f64]) -> f64| Spread::of(spectra.iter().map(|s| of(s)));
    entry(
        about,
        "spectra",
        json!({
            "sampled": spectra.len(),
            "anisotropy": spread(anisotropy),
            "effective_dimension": spread(effective_dimension),
            "largest_eigenvalue": spread(|values| values.first().copied().unwrap_or(f64::NAN)),
            "smallest_eigenvalue": spread(|values| values.last().copied().unwrap_or(f64::NAN)),
        }),
    );
    entry(about, "bins_occupied", occupied(index));
    let history = index.history();
    entry(
        about,
        "training",
        json!({
            "points": history.points,
            "epochs": history.epochs.len(),
            "ended": history.ended,
            "floored_scales": history.floored_scales,
            "last": history.epochs.last(),
        }),
    );
}

fn coverage(index: &GaussianIndex) -> String {
    let coverage = index.coverage();
    format!(
        "{} of the points within tau, {:.2} cells a point",
        percent(coverage.share),
        coverage.mean
    )
}

/// Occupied bins of the cells.
fn occupied(index: &GaussianIndex) -> Option<Spread> {
    let cells = 0..index.cells();
    Spread::of(cells.map(|cell| index.cell(cell).bins.occupied().len() as f64))
}

/// Eigenvalues of at most `limit` cells, spread evenly over all.
fn spectra(index: &GaussianIndex, limit: usize) -> Vec<Vec<f64>> {
    let (shapes, cells) = (index.shapes(), index.cells());
    let chosen = limit.min(cells);
    (0..chosen)
        .map(|i| shapes.eigenvalues(i * cells / chosen))
        .collect()
}

fn anisotropy(eigenvalues: &[f64]) -> f64 {
    match (eigenvalues.first(), eigenvalues.last()) {
        (Some(largest), Some(smallest)) => largest / smallest,
        _ => f64::NAN,
    }
}

fn effective_dimension(eigenvalues: &[f64]) -> f64 {
    participation(eigenvalues.iter().copied())
}

fn training(index: &GaussianIndex) -> String {
    let history = index.history();
    if history.points == 0 {
        return "none: the cells were given".to_owned();
    }
    let loss = history
        .epochs
        .last()
        .map_or_else(String::new, |e| format!(", loss {:.4}", e.loss));
    format!(
        "{} epochs on {} points{loss}",
        history.epochs.len(),
        count(history.points)
    )
}
