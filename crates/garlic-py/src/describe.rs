//! What is in an index, as JSON that Python turns into dictionaries.

use garlic_ann::live::{Status, Training};
use garlic_any::{AnyIndex, describe};
use serde_json::{Value, json};

/// Neighbours that the recall of an index is about where nobody says how many.
const USUAL_K: usize = 10;
/// Cells whose spectra are computed where that takes long.
const SPECTRA: usize = 16;

/// The facts that cost nothing to gather.
pub(crate) fn stats(index: &AnyIndex) -> Value {
    let mut about = json!({
        "points": index.len(),
        "dim": index.dim(),
        "metric": index.metric(),
        "cells": index.cells(),
        "stored_as": index.stored_as(),
        "next_id": index.next_id(),
        "memory": index.memory(),
        "mapped_bytes": index.mapped_bytes(),
        "disk_reads": Value::Null,
        "bins": Value::Null,
        "trainings": 0,
        "trained_points": index.len(),
        "trains_at": Value::Null,
        "reads_everything": false,
    });
    if let Ok(index) = index.updatable() {
        let drift = index.drift();
        about["disk_reads"] = json!(index.disk_reads());
        about["bins"] = json!(index.bins());
        about["trainings"] = json!(drift.trainings);
        about["trained_points"] = json!(drift.built);
        about["trains_at"] = json!(index.trains_at());
        let recall = index.config().tuning.recall;
        about["reads_everything"] = json!(index.reads_everything(USUAL_K, recall));
    }
    about
}

/// What is known about a training beside the index.
pub(crate) fn training(about: &mut Value, training: &Training) {
    about["training"] = json!({ "running": training.running, "failed": training.failed });
}

/// Everything: parameters, sizes of the cells, what recalls take. Of an index without pending changes.
pub(crate) fn inspect(index: &AnyIndex) -> Value {
    let mut about = stats(index);
    about["config"] = json!(index.config());
    about["preset"] = json!(index.preset());
    about["cell_sizes"] = json!(index.cell_sizes());
    about["drift"] = json!(index.updatable().ok().map(|index| index.drift()));
    for (key, value) in describe::details(index, SPECTRA) {
        about[key] = value;
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
