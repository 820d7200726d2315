//! The default preset: built without flags, searched and measured by recall.

use crate::common::{ASKED, Lab, MANY, WIDE, assert_keys, clusters};
use serde_json::Value;

const EVAL: [&str; 5] = [
    "eval",
    "many.garlic",
    "many.npy",
    "--query-file",
    "asked.fvecs",
];

/// Exact neighbours of the lab's many points.
fn exact(k: usize) -> garlic_data::Truth {
    garlic_data::ground_truth(&clusters(MANY, WIDE, 3), WIDE, &clusters(ASKED, WIDE, 4), k).unwrap()
}

#[track_caller]
fn rows(lab: &Lab, more: &[&str]) -> Vec<Value> {
    lab.run(&[&EVAL[..], &["--json", "--quiet"], more].concat())
        .expect(0)
        .json()
}

#[test]
fn the_default_preset_needs_no_flags() {
    let lab = Lab::with_default_index();
    let build = ["build", "many.npy", "-o", "again.garlic"];
    let ran = lab.run(&[&build[..], &["--json", "--recall", "0.9"]].concat());
    let summary = &ran.expect(0).json()[0];
    assert_keys(
        summary,
        &[
            "cells",
            "points",
            "dim",
            "bins",
            "space_dim",
            "axes",
            "code_bits",
            "stored_as",
            "beyond_vectors.bytes",
            "beyond_vectors.share",
            "calibration.queries",
            "calibration.settings",
            "seconds.total",
            "bytes",
            "seed",
            "overrides",
        ],
    );
    assert_eq!(summary["preset"], "default");
    assert_eq!(summary["recall"], 0.9);
    assert_eq!(summary["overrides"].as_object().unwrap().len(), 1);
    assert_eq!(summary["overrides"]["recall"], 0.9);
    assert_eq!(summary["stored_as"], "f32");
    assert!(summary.get("coverage").is_none() && summary.get("epochs").is_none());

    let text = lab.run(&build).expect(0).stdout;
    for word in [
        "6,000 of dimension 8",
        "cells",
        "axes each",
        "bins",
        "8 bits a coordinate",
        "stored as f32",
        "of the vectors' size as f32",
        "0.95 unless a search names another",
        "what a recall takes, for 10 neighbours",
        "rerank",
    ] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    // Parameters of the other preset are refused, not ignored.
    let ran = lab.run(&[&build[..], &["--set", "epochs=7"]].concat());
    ran.expect_error(2, &["epochs", "belongs to preset paper"]);
}

#[test]
fn every_recall_is_a_row_with_its_gap() {
    let lab = Lab::with_default_index();
    let measured = rows(&lab, &["--recall", ".8,.9,.99"]);
    let targets: Vec<f64> = measured
        .iter()
        .map(|r| r["target"].as_f64().unwrap())
        .collect();
    assert_eq!(targets, [0.8, 0.9, 0.99]);
    for row in &measured {
        let found = row["recall_at_k"].as_f64().unwrap();
        let (target, gap) = (
            row["target"].as_f64().unwrap(),
            row["gap"].as_f64().unwrap(),
        );
        assert!((found - target - gap).abs() < 1e-12, "{row}");
        assert_eq!(row["params"]["recall"], row["target"]);
        assert_eq!(row["method"], "garlic default");
        assert!(row["qps_batch"].is_null() && row["work"]["codes"].as_f64().unwrap() > 0.0);
    }
    let costs: Vec<f64> = measured
        .iter()
        .map(|r| r["distance_equivalents"].as_f64().unwrap())
        .collect();
    assert!(costs[0] <= costs[1] && costs[1] <= costs[2], "{costs:?}");

    let ran = lab.run(
        &[
            &EVAL[..],
            &["--recall", ".9,.99", "--batch", "--repeat", "2"],
        ]
        .concat(),
    );
    let text = ran.expect(0).stdout;
    let header: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header[..4], ["target", "gap", "R@1", "R@10"], "{text}");
    assert!(text.contains("batch QPS"), "{text}");
    let first: Vec<&str> = text
        .lines()
        .map(|l| l.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(first[1..3], ["0.9", "0.99"]);
}

#[test]
fn without_flags_the_index_decides_and_flags_override_it() {
    let lab = Lab::with_default_index();
    let row = &rows(&lab, &[])[0];
    assert_eq!(
        (&row["target"], &row["params"]["probes"]),
        (&0.95.into(), &Value::Null)
    );
    let lists = [
        "--probes", "2,4", "--bins", "0.5", "--rerank", "20,40", "--batch",
    ];
    let measured = rows(&lab, &lists);
    let settings: Vec<(u64, u64)> = measured
        .iter()
        .map(|r| {
            let number = |key: &str| r["params"][key].as_u64().unwrap();
            (number("probes"), number("rerank"))
        })
        .collect();
    assert_eq!(settings, [(2, 20), (2, 40), (4, 20), (4, 40)]);
    for row in &measured {
        assert!(row["target"].is_null() && row["gap"].is_null());
        assert!(row["qps_batch"].as_f64().unwrap() > 0.0);
        assert!(row["candidates"].as_f64().unwrap() <= row["params"]["rerank"].as_f64().unwrap());
    }
}

#[test]
fn a_sweep_walks_the_grid_of_the_preset() {
    let lab = Lab::with_default_index();
    let fewer = ["--sweep", "--bins", "0.1,1", "--rerank", "10,40,160"];
    let measured = rows(&lab, &fewer);
    assert_eq!(measured.len() % 6, 0);
    assert!(measured.iter().any(|r| r["front_work"] == true));
    assert!(measured.iter().any(|r| r["front_work"] == false));
    assert!(measured.iter().all(|r| r["queries"] == ASKED));
    let text = lab.run(&[&EVAL[..], &fewer[..]].concat()).expect(0).stdout;
    assert!(text.starts_with("probes"), "{text}");
    assert!(text.lines().any(|l| l.ends_with('*')), "{text}");
}

#[test]
fn an_exact_search_is_brute_force() {
    let lab = Lab::with_default_index();
    let truth = exact(5);
    let search = [
        "search",
        "many.garlic",
        "asked.fvecs",
        "-k",
        "5",
        "-o",
        "hits.ivecs",
    ];
    let ran = lab.run(&[&search[..], &["--exact", "--json"]].concat());
    assert_eq!(ran.expect(0).json()[0]["exact"], true);
    let ids = garlic_data::read_ids(lab.path("hits.ivecs")).unwrap();
    assert_eq!(ids.data, truth.ids);

    let row = &rows(&lab, &["--exact"])[0];
    assert_eq!(
        (&row["recall_at_1"], &row["recall_at_k"]),
        (&1.0.into(), &1.0.into())
    );
    assert_eq!(
        (&row["params"]["exact"], &row["target"]),
        (&true.into(), &Value::Null)
    );
    let text = lab
        .run(&[&EVAL[..], &["--exact"]].concat())
        .expect(0)
        .stdout;
    assert!(text.lines().nth(1).unwrap().starts_with("exact"), "{text}");
}

#[test]
fn a_search_takes_a_recall() {
    let lab = Lab::with_default_index();
    let candidates = |more: &[&str]| {
        let search = [
            "search",
            "many.garlic",
            "asked.fvecs",
            "-o",
            "hits.npy",
            "--json",
        ];
        let ran = lab.run(&[&search[..], more].concat()).expect(0);
        ran.json()[0]["candidates"].as_f64().unwrap()
    };
    assert!(candidates(&["--recall", "0.5"]) <= candidates(&["--recall", "0.99"]));
    assert!(candidates(&["--recall", "0.99", "--rerank", "12"]) <= 12.0);
    assert!(candidates(&[]) > 0.0);
}

#[test]
fn wrong_values_are_wrong_usage() {
    let lab = Lab::with_default_index();
    let search = |more: &[&str]| {
        lab.run(&[&["search", "many.garlic", "asked.fvecs", "-o", "-"], more].concat())
    };
    let eval = |more: &[&str]| lab.run(&[&EVAL[..], &["--quiet"], more].concat());
    for wrong in ["0", "1", "2", "-0.5", "nan", "x"] {
        let flag = format!("--recall={wrong}");
        search(&[&flag]).expect_error(2, &["--recall", "--exact"]);
        eval(&[&flag]).expect_error(2, &["--recall", "--exact"]);
    }
    eval(&["--recall", ".9,1"]).expect_error(2, &["--recall", "--exact"]);
    search(&["--rerank", "0"]).expect_error(2, &["--rerank", "at least 1"]);
    eval(&["--repeat", "0"]).expect_error(2, &["--repeat", "at least 1"]);
    for other in [
        ["--recall", "0.9"],
        ["--probes", "3"],
        ["--bins", "1"],
        ["--rerank", "9"],
    ] {
        search(&["--exact", other[0], other[1]]).expect_error(2, &["--exact", other[0]]);
        eval(&["--exact", other[0], other[1]]).expect_error(2, &["--exact", other[0]]);
    }
    eval(&["--sweep", "--recall", "0.9"]).expect_error(2, &["--sweep", "--recall"]);
}

/// The published method has no calibration and no codes.
#[test]
fn a_published_index_has_no_recall_to_ask_for() {
    let lab = Lab::with_index();
    let search = ["search", "points.garlic", "queries.fvecs", "-o", "-"];
    let eval = [
        "eval",
        "points.garlic",
        "points.npy",
        "--query-file",
        "queries.fvecs",
        "--quiet",
    ];
    for more in [["--recall", "0.9"], ["--rerank", "20"]] {
        let name = more[0].trim_start_matches("--");
        lab.run(&[&search[..], &more[..]].concat())
            .expect_error(2, &[name]);
        lab.run(&[&eval[..], &more[..]].concat())
            .expect_error(2, &[name]);
    }
    lab.run(&[&eval[..], &["--sweep", "--rerank", "20"]].concat())
        .expect_error(2, &["--rerank"]);
}

#[test]
fn a_sample_of_queries_tunes_an_index_and_a_build() {
    let lab = Lab::with_default_index();
    let tuned = lab.run(&["tune", "many.garlic", "--queries", "many.npy", "--json"]);
    let summary = &tuned.expect(0).json()[0];
    assert_keys(
        summary,
        &["index", "points", "queries", "sample_correction", "seconds"],
    );
    assert_eq!(summary["points"], MANY);
    assert_eq!(summary["queries"], 750.min(MANY));
    let build = ["build", "many.npy", "-o", "like.garlic", "--quiet"];
    lab.run(&[&build[..], &["--queries-like", "many.npy"]].concat())
        .expect(0);
    let inspected = lab.run(&["inspect", "like.garlic", "--json"]);
    let calibration = &inspected.expect(0).json()[0]["calibration"];
    assert_eq!(calibration["queries"], 750.min(MANY));
    let few = ["tune", "many.garlic", "--queries", "asked.fvecs"];
    lab.run(&few).expect_error(2, &["40", "at least 100"]);
    let narrow = ["tune", "many.garlic", "--queries", "points.npy"];
    lab.run(&narrow).expect_error(3, &["dimension 6"]);
}
