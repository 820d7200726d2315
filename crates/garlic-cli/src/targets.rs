//! What `build` and `inspect` tell about recall targets.

use garlic_ann::{Calibration, EXHAUSTIVE_POINTS, Exhaustive, Index};
use garlic_any::AnyIndex;

use crate::table::{self, Table};

/// Neighbours that the table of the calibration is about, where it knows them.
const USUAL_K: usize = 10;

/// Whether a search that says nothing else reads everything.
pub(crate) fn reads_everything(index: &Index) -> bool {
    index.reads_everything(USUAL_K, index.config().tuning.recall)
}

/// Whether a target makes searches read all of more points than every search reads.
pub(crate) fn saturated(index: &AnyIndex, k: usize, recall: f64) -> bool {
    let saturated = |index: &Index| index.reads_everything(k, recall);
    index.len() > EXHAUSTIVE_POINTS && index.updatable().is_ok_and(saturated)
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
        "what a recall takes, for {k} neighbours, measured with {} queries\n{}{}",
        table::count(calibration.queries),
        table.render(),
        in_graph(calibration, k)
    )
}

/// What recall targets take in the neighbour graph, as a table under a heading; empty without one.
fn in_graph(calibration: &Calibration, k: usize) -> String {
    let settings: Vec<_> = calibration
        .graph_settings
        .iter()
        .filter(|s| s.k == k)
        .collect();
    if settings.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["  recall", "expand ratio", "prune ratio"]);
    for setting in settings {
        let pruned = setting.rerank_prune_ratio < f32::MAX;
        table.row(vec![
            setting.recall.to_string(),
            format!("{:.3}", setting.expand_ratio),
            match pruned {
                true => setting.rerank_prune_ratio.to_string(),
                false => "none".to_owned(),
            },
        ]);
    }
    format!(
        "in the neighbour graph, which serves targets up to the last of these\n{}",
        table.render()
    )
}

#[cfg(test)]
mod tests {
    use garlic_ann::Rows;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_is_that_of_the_index() {
        let values: Vec<f32> = (0..16_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e4)
            .collect();
        let rows = Rows::new(&values, 8).unwrap();
        let index = Index::builder().threads(1).build(rows).unwrap();
        let measured = index.calibration();
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

    #[test]
    fn searches_in_the_graph_have_a_table_of_their_own() {
        let setting = |expand: f64, prune: f64| {
            json!({ "k": 10, "recall": 0.95, "measured": 0.95, "probes": 7, "bins": 1.0, "rerank": 512,
                "slack": 1.0, "trust": prune, "expand_ratio": expand })
        };
        let about = json!({ "queries": 5, "settings": [setting(0.0, 1.1)],
            "graph_settings": [setting(1.0625, 1.25), setting(1.5, f64::from(f32::MAX))] });
        let text = calibration(&serde_json::from_value(about).unwrap());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[lines.len() - 2..],
            [["0.95", "1.062", "1.25"], ["0.95", "1.500", "none"]]
        );
    }
}
