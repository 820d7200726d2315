//! What `build` and `inspect` tell about an index of tempered cells.

use garlic_ann::Index;
use garlic_ann::index::{Calibration, Exhaustive, TemperedBody};
use serde_json::{Map, Value, json};

use crate::table::{self, Table};

/// Neighbours that the table of the calibration is about, where it knows them.
const USUAL_K: usize = 10;

/// The cells in figures, for JSON.
pub(crate) fn describe(index: &Index, body: &TemperedBody) -> Map<String, Value> {
    let (bytes, share) = beyond_vectors(index);
    let exhaustive: Vec<Value> = index
        .exhaustive_targets()
        .iter()
        .map(|told| {
            let mut about = json!(told);
            about["why"] = json!(told.cause.to_string());
            about
        })
        .collect();
    let object = json!({
        "space_dim": body.model().dim(),
        "axes": body.model().rank(),
        "bins": body.bins(),
        "points_per_bin": index.len() as f64 / body.bins().max(1) as f64,
        "code_bits": body.code_bits(),
        "stored_as": index.stored_as(),
        "beyond_vectors": { "bytes": bytes, "share": share },
        "recall": index.config().recall,
        "calibration": body.calibration(),
        "reads_everything": reads_everything(index),
        "exhaustive": exhaustive,
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The cells in words.
pub(crate) fn facts(index: &Index, body: &TemperedBody) -> Vec<(&'static str, String)> {
    let (bytes, share) = beyond_vectors(index);
    let model = body.model();
    vec![
        (
            "cells",
            format!(
                "{} in {} of {} dimensions, {} axes each",
                table::count(index.cells()),
                model.dim(),
                index.dim(),
                model.rank()
            ),
        ),
        (
            "bins",
            format!(
                "{}, {:.1} a cell, {:.1} points each",
                table::count(body.bins()),
                body.bins() as f64 / index.cells().max(1) as f64,
                index.len() as f64 / body.bins().max(1) as f64
            ),
        ),
        ("codes", format!("{} bits a coordinate", body.code_bits())),
        ("vectors", format!("stored as {}", index.stored_as())),
        (
            "beyond vectors",
            match index.is_empty() {
                true => table::bytes(bytes),
                false => format!(
                    "{}, {} of the vectors' size as f32",
                    table::bytes(bytes),
                    table::percent(share)
                ),
            },
        ),
        (
            "recall",
            format!("{} unless a search names another", index.config().recall),
        ),
    ]
}

/// Whether a search that says nothing else reads everything.
pub(crate) fn reads_everything(index: &Index) -> bool {
    index.reads_everything(USUAL_K, index.config().recall)
}

/// Why it does.
pub(crate) fn why_everything(index: &Index) -> String {
    let told = index.exhaustive(USUAL_K).map(|told| told.cause.to_string());
    told.unwrap_or_default()
}

/// The recall targets that are met by reading everything, and why, a line for each number of neighbours.
pub(crate) fn exhaustive(index: &Index) -> Vec<(&'static str, String)> {
    let targets = index.exhaustive_targets();
    let Some(first) = targets.first() else {
        return vec![("reads all", "for no recall target".to_owned())];
    };
    if targets.iter().all(|t| t.above == 0.0) {
        let why = format!("for every recall target: {}", first.cause);
        return vec![("reads all", why)];
    }
    let mut name = "reads all";
    let mut line = |t: &Exhaustive| {
        let above = match t.above {
            0.0 => "every recall target".to_owned(),
            above => format!("recall targets above {}", table::recall(above)),
        };
        let text = format!("for {above} with {} neighbours: {}", t.k, t.cause);
        (std::mem::take(&mut name), text)
    };
    targets.iter().map(&mut line).collect()
}

/// Bytes of everything but the vectors, and their share of the vectors' size as 32-bit floats.
fn beyond_vectors(index: &Index) -> (u64, f64) {
    let memory = index.memory();
    let bytes = memory.total - memory.vectors;
    let floats = 4 * index.len() * index.dim();
    (bytes, bytes as f64 / floats.max(1) as f64)
}

/// What recall targets take, as a table under a heading; empty when nothing was measured.
pub(crate) fn calibration(calibration: &Calibration) -> String {
    let settings = &calibration.settings;
    let Some(k) = settings
        .iter()
        .map(|s| s.k)
        .min_by_key(|k| k.abs_diff(USUAL_K))
    else {
        return String::new();
    };
    let mut table = Table::new(&["  recall", "probes", "bins", "rerank"]);
    for setting in settings.iter().filter(|s| s.k == k) {
        if setting.everything {
            table.row(vec![setting.recall.to_string(), "everything".to_owned()]);
            continue;
        }
        table.row(vec![
            setting.recall.to_string(),
            setting.probes.to_string(),
            format!("{:.3}", setting.bins),
            setting.rerank.to_string(),
        ]);
    }
    format!(
        "what a recall takes, for {k} neighbours, measured with {} held-out points\n{}",
        table::count(calibration.queries),
        table.render()
    )
}

#[cfg(test)]
mod tests {
    use garlic_ann::Rows;

    use super::*;

    #[test]
    fn facts_and_table_are_those_of_the_index() {
        let values: Vec<f32> = (0..16_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e4)
            .collect();
        let rows = Rows::new(&values, 8).unwrap();
        let index = Index::builder().threads(1).build(rows).unwrap();
        let body = index.tempered().unwrap();

        let about = describe(&index, body);
        let memory = index.memory();
        let beyond = memory.total - memory.vectors;
        assert_eq!(about["beyond_vectors"]["bytes"], beyond);
        assert_eq!(about["beyond_vectors"]["share"], beyond as f64 / 64_000.0);
        assert_eq!(about["bins"], body.bins());
        assert_eq!(about["stored_as"], "f32");
        let cells = format!("{} in 8 of 8 dimensions, 8 axes each", index.cells());
        assert!(facts(&index, body).contains(&("cells", cells)));

        let measured = body.calibration();
        let wanted = measured.settings.iter().filter(|s| s.k == USUAL_K);
        let text = calibration(measured);
        for (setting, line) in wanted.clone().zip(text.lines().skip(2)) {
            let shown: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(shown[0], setting.recall.to_string());
            if setting.everything {
                assert_eq!(shown[1..], ["everything"]);
                continue;
            }
            assert_eq!(shown[1], setting.probes.to_string());
            assert_eq!(shown[3], setting.rerank.to_string());
        }
        let lines = text.lines().count();
        assert_eq!(lines.saturating_sub(2), wanted.count());
        assert_eq!(calibration(&Calibration::default()), "");

        // So few points are read whole, and that is said.
        assert!(reads_everything(&index));
        assert_eq!(about["reads_everything"], true);
        assert_eq!(about["exhaustive"][0]["cause"]["kind"], "few_points");
        let told = exhaustive(&index);
        assert!(
            told.len() == 1 && told[0].1.contains("4,096 points"),
            "{told:?}"
        );
    }

    #[test]
    fn targets_that_take_everything_have_no_numbers() {
        let setting = json!({ "k": 10, "recall": 0.99, "measured": 1.0, "probes": u32::MAX, "bins": 1.0,
            "rerank": u32::MAX, "slack": 1.0, "trust": 1.0, "everything": true });
        let about = json!({ "queries": 5, "settings": [setting] });
        let text = calibration(&serde_json::from_value(about).unwrap());
        assert!(text.ends_with("\n    0.99  everything\n"), "{text}");
    }
}
