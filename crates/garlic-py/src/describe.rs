//! What is in an index, as JSON that Python turns into dictionaries.

use garlic_ann::Index;
use garlic_ann::live::{Status, Training};
use serde_json::{Value, json};

/// Neighbours that the recall of an index is about where nobody says how many.
const USUAL_K: usize = 10;

/// The facts that cost nothing to gather.
pub(crate) fn stats(index: &Index) -> Value {
    let drift = index.drift();
    json!({
        "points": index.len(),
        "dim": index.dim(),
        "metric": index.metric(),
        "cells": index.cells(),
        "bins": index.tempered().map(|body| body.bins()),
        "stored_as": index.stored_as(),
        "next_id": index.next_id(),
        "memory": index.memory(),
        "mapped_bytes": index.mapped_bytes(),
        "trainings": drift.trainings,
        "trained_points": drift.built,
        "trains_at": index.trains_at(),
        "reads_everything": index.reads_everything(USUAL_K, index.config().recall),
    })
}

/// What is known about a training beside the index.
pub(crate) fn training(about: &mut Value, training: &Training) {
    about["training"] = json!({ "running": training.running, "failed": training.failed });
}

/// Everything: parameters, sizes of the cells, what recalls take. Of an index without pending changes.
pub(crate) fn inspect(index: &Index) -> Value {
    let mut about = stats(index);
    about["config"] = json!(index.config());
    about["drift"] = json!(index.drift());
    if let Some(body) = index.tempered() {
        let cells = 0..body.model().len();
        about["preset"] = json!("default");
        about["cell_sizes"] = cells.map(|cell| body.cell_len(cell)).collect();
        about["code_bits"] = json!(body.code_bits());
        about["axes"] = json!(body.model().rank());
        about["calibration"] = json!(body.calibration());
        let targets = index.exhaustive_targets();
        about["exhaustive"] = targets
            .iter()
            .map(|told| {
                let mut about = json!(told);
                about["why"] = json!(told.cause.to_string());
                about
            })
            .collect();
    }
    if let Some(body) = index.published() {
        let cells = 0..body.model().len();
        about["preset"] = json!("paper");
        about["cell_sizes"] = cells
            .map(|cell| body.cell(cell).bins.members().len())
            .collect();
        let coverage = body.coverage();
        about["coverage"] = json!({ "share": coverage.share, "mean": coverage.mean });
        about["epochs"] = json!(body.history().epochs.len());
    }
    about
}

/// What is known about a directory.
pub(crate) fn status(status: &Status) -> Value {
    json!({
        "generation": status.generation,
        "checkpoint_bytes": status.checkpoint_bytes,
        "log_bytes": status.log_bytes,
        "log_batches": status.log_batches,
        "failed_checkpoint": status.failed_checkpoint,
    })
}
