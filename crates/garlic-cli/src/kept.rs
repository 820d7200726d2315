//! What `inspect` tells about the way an index is kept: its files, its changes, how far the data have moved.

use std::path::Path;

use garlic_ann::live::{self, Files};
use garlic_ann::{Drift, Memory};
use garlic_any::AnyIndex;
use serde_json::{Value, json};

use crate::place;
use crate::table;
use crate::writer;

/// How an index is kept, before anything was laid out anew.
pub(crate) struct Kept {
    files: Option<Files>,
    mapped: u64,
    memory: Memory,
    /// None for an index that does not change.
    drift: Option<Drift>,
    trains_at: Option<usize>,
}

impl Kept {
    /// Looks at the index at `path` as it was opened.
    pub(crate) fn of(path: &Path, index: &AnyIndex) -> anyhow::Result<Self> {
        let files = match place::is_directory(path) {
            true => Some(live::files(path)?),
            false => None,
        };
        Ok(Self {
            files,
            mapped: index.mapped_bytes(),
            memory: index.memory(),
            drift: index.updatable().ok().map(|index| index.drift()),
            trains_at: index.updatable().ok().and_then(|index| index.trains_at()),
        })
    }

    /// The same for JSON.
    pub(crate) fn describe(&self, about: &mut Value) {
        about["kind"] = json!(match self.files {
            Some(_) => "directory",
            None => "file",
        });
        about["directory"] = json!(self.files.as_ref().map(|files| json!({
            "generation": files.generation,
            "checkpoint_bytes": files.checkpoint_bytes,
            "log_bytes": files.log_bytes,
        })));
        about["mapped_bytes"] = json!(self.mapped);
        let changes = self.drift.as_ref().map(|drift| drift.added + drift.removed);
        about["changes"] = json!(changes.unwrap_or(0));
        about["drift"] = json!(self.drift);
        about["trains_at"] = json!(self.trains_at);
        about["memory"] = json!(self.memory);
    }

    /// The same in words.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mapped = match self.mapped {
            0 => "in memory".to_owned(),
            bytes => format!("{} mapped", table::bytes(bytes)),
        };
        let kept = match &self.files {
            None => format!("in a file, {mapped}"),
            Some(files) => format!(
                "in a directory, {mapped}; generation {}, checkpoint of {}, log of {}",
                files.generation,
                table::bytes(files.checkpoint_bytes),
                table::bytes(files.log_bytes)
            ),
        };
        let Some(drift) = &self.drift else {
            return vec![("kept", kept)];
        };
        let changes = format!(
            "{} points added and {} removed since {}",
            table::count(drift.added as usize),
            table::count(drift.removed as usize),
            match (drift.built, drift.trainings) {
                (0, _) => "it began empty".to_owned(),
                (built, 0) => format!("it was built from {}", table::count(built as usize)),
                (built, _) => format!("it was trained on {}", table::count(built as usize)),
            }
        );
        let moved = writer::advice(drift).unwrap_or_else(|| {
            format!(
                "added points lie {:.2} times as far (squared) from their cells; no rebuild needed",
                drift.spread
            )
        });
        let trained = match (drift.trainings, self.trains_at) {
            (_, None) => None,
            (0, Some(at)) => Some(format!("trains itself at {} points", table::count(at))),
            (times, Some(at)) => Some(format!(
                "trained anew {} so far; the next time at {} points",
                table::times(times as usize),
                table::count(at)
            )),
        };
        let mut facts = vec![("kept", kept), ("changes", changes), ("drift", moved)];
        facts.extend(trained.map(|trained| ("growth", trained)));
        if drift.correction > 1.0 {
            let told = format!(
                "were missed since the index changed; searches aim at {:.1} times fewer misses",
                drift.correction
            );
            facts.push(("targets", told));
        }
        facts
    }

    /// Bytes that the index takes.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}
