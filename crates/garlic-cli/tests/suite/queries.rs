//! `garlic search` and `garlic eval`.

use crate::common::{DIM, Lab, POINTS, QUERIES, assert_keys, clusters};

/// Exact neighbours of the lab's queries.
fn exact(k: usize) -> garlic_data::Truth {
    garlic_data::ground_truth(
        &clusters(POINTS, DIM, 1),
        DIM,
        &clusters(QUERIES, DIM, 2),
        k,
    )
    .unwrap()
}

/// Flags that make a search exact.
const ALL: [&str; 4] = ["--probes", "1000", "--bins", "1"];

#[test]
fn an_exhaustive_search_writes_the_exact_neighbours_in_every_format() {
    let lab = Lab::with_index();
    let truth = exact(5);
    for out in ["hits.ivecs", "hits.npy", "hits.ibin"] {
        let args = [
            "search",
            "points.garlic",
            "queries.fvecs",
            "-k",
            "5",
            "-o",
            out,
        ];
        let ran = lab.run(&[&args, &ALL[..]].concat()).expect(0);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.contains("20 queries"), "{}", ran.stderr);
        let ids = garlic_data::read_ids(lab.path(out)).unwrap();
        assert_eq!((ids.rows, ids.cols), (QUERIES, 5));
        assert_eq!(ids.data, truth.ids, "{out}");
    }
    let args = [
        "search",
        "points.garlic",
        "queries.fvecs",
        "-k",
        "5",
        "-o",
        "hits.csv",
        "--distances",
        "d.npy",
        "--json",
    ];
    let ran = lab.run(&[&args, &ALL[..]].concat()).expect(0);
    assert_keys(
        &ran.json()[0],
        &["queries", "k", "qps", "candidates", "seconds"],
    );
    let csv = std::fs::read_to_string(lab.path("hits.csv")).unwrap();
    assert_eq!(csv.lines().next().unwrap(), "query,rank,id,distance");
    assert_eq!(csv.lines().count(), 1 + QUERIES * 5);
    assert!(
        csv.lines()
            .nth(1)
            .unwrap()
            .starts_with(&format!("0,1,{},", truth.ids[0]))
    );
    let distances = garlic_data::read_vectors(lab.path("d.npy"))
        .unwrap()
        .into_f32();
    for (found, wanted) in distances.iter().zip(&truth.distances) {
        assert!(
            (found - wanted).abs() <= 1e-4 * wanted.max(1.0),
            "{found} {wanted}"
        );
    }
}

#[test]
fn standard_output_takes_lines_or_objects() {
    let lab = Lab::with_index();
    let args = [
        "search",
        "points.garlic",
        "queries.fvecs",
        "-k",
        "3",
        "-o",
        "-",
    ];
    let ran = lab.run(&args).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1 + QUERIES * 3);
    let ran = lab.run(&[&args[..], &["--json"]].concat()).expect(0);
    let objects = ran.json();
    assert_eq!(objects.len(), QUERIES);
    assert_eq!(objects[7]["query"], 7);
    assert_eq!(objects[7]["ids"].as_array().unwrap().len(), 3);
    assert_eq!(objects[7]["distances"].as_array().unwrap().len(), 3);
    lab.run(&[
        "search",
        "points.garlic",
        "queries.fvecs",
        "-k",
        "3",
        "-o",
        "hits.jsonl",
        "--quiet",
    ])
    .expect(0);
    assert_eq!(
        std::fs::read_to_string(lab.path("hits.jsonl")).unwrap(),
        ran.stdout
    );
}

#[test]
fn more_neighbours_than_points_are_filled_up() {
    let lab = Lab::with_index();
    let args = [
        "search",
        "points.garlic",
        "queries.fvecs",
        "-k",
        "301",
        "-o",
        "hits.ivecs",
    ];
    lab.run(&[&args, &ALL[..]].concat()).expect(0);
    let ids = garlic_data::read_ids(lab.path("hits.ivecs")).unwrap();
    assert_eq!(ids.row(3)[300], -1);
    assert!(ids.row(3)[..300].iter().all(|id| *id >= 0));
}

#[test]
fn an_exhaustive_evaluation_has_recall_one() {
    let lab = Lab::with_index();
    let args = [
        "eval",
        "points.garlic",
        "points.npy",
        "--query-file",
        "queries.fvecs",
        "--json",
    ];
    let ran = lab.run(&[&args, &ALL[..]].concat()).expect(0);
    assert!(ran.stderr.contains("computing"), "{}", ran.stderr);
    let rows = ran.json();
    assert_eq!(rows.len(), 1);
    assert_keys(
        &rows[0],
        &[
            "params.k",
            "params.probes",
            "params.bins",
            "recall_at_1",
            "recall_at_10",
            "candidates",
            "cells_scored",
            "distance_equivalents",
            "qps",
            "p50_us",
            "p99_us",
        ],
    );
    assert_eq!(rows[0]["recall_at_1"], 1.0);
    assert_eq!(rows[0]["recall_at_10"], 1.0);
    assert_eq!(rows[0]["candidates"], POINTS as f64);
    assert_eq!(rows[0]["queries"], QUERIES);
}

#[test]
fn lists_are_combined_and_queries_are_the_first() {
    let lab = Lab::with_index();
    let args = [
        "eval",
        "points.garlic",
        "points.npy",
        "--query-file",
        "queries.fvecs",
        "--json",
    ];
    let lists = [
        "--probes",
        "1,2",
        "--bins",
        "0.2,0.5,1",
        "--queries",
        "5",
        "--threads",
        "2",
        "-k",
        "3",
    ];
    let rows = lab.run(&[&args, &lists[..]].concat()).expect(0).json();
    let settings: Vec<(u64, f64)> = rows
        .iter()
        .map(|r| {
            (
                r["params"]["probes"].as_u64().unwrap(),
                r["params"]["bins"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        settings,
        [(1, 0.2), (1, 0.5), (1, 1.0), (2, 0.2), (2, 0.5), (2, 1.0)]
    );
    assert!(
        rows.iter()
            .all(|r| r["queries"] == 5 && r["recall_at_10"].is_null())
    );
}

#[test]
fn a_sweep_marks_the_front() {
    let lab = Lab::with_index();
    let args = [
        "eval",
        "points.garlic",
        "points.npy",
        "--query-file",
        "queries.fvecs",
        "--sweep",
    ];
    let rows = lab.run(&[&args[..], &["--json"]].concat()).expect(0).json();
    assert!(rows.len() > 10);
    assert!(rows.iter().any(|r| r["front"] == true));
    assert!(rows.iter().any(|r| r["front"] == false));
    let ran = lab.run(&args).expect(0);
    assert!(ran.stdout.starts_with("probes"), "{}", ran.stdout);
    assert!(
        ran.stdout.lines().any(|l| l.ends_with('*')),
        "{}",
        ran.stdout
    );
}

#[test]
fn given_truth_is_used() {
    let lab = Lab::with_index();
    let mut ids = exact(10).into_ids();
    garlic_data::write_ivecs(lab.path("truth.ivecs"), &ids).unwrap();
    let base = [
        "eval",
        "points.garlic",
        "points.npy",
        "--query-file",
        "queries.fvecs",
        "--json",
    ];
    let eval = |truth: &str| lab.run(&[&base, &ALL[..], &["--truth", truth]].concat());
    let ran = eval("truth.ivecs").expect(0);
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.json()[0]["recall_at_10"], 1.0);

    ids.data[0] = POINTS as i64;
    garlic_data::write_ivecs(lab.path("wrong.ivecs"), &ids).unwrap();
    eval("wrong.ivecs").expect_error(3, &["wrong.ivecs", "300"]);
    let few = garlic_data::Ids::new(exact(10).ids[..50].to_vec(), 10).unwrap();
    garlic_data::write_ivecs(lab.path("few.ivecs"), &few).unwrap();
    eval("few.ivecs").expect_error(3, &["few.ivecs", "5 queries"]);
    eval("none.ivecs").expect_error(3, &["none.ivecs"]);
}

#[test]
fn what_does_not_fit_the_index_is_bad_data() {
    let lab = Lab::with_index();
    lab.raw_fbin("wide.fbin", &clusters(10, 7, 3), 7);
    lab.raw_fbin("fewer.fbin", &clusters(10, DIM, 3), DIM);
    lab.run(&["search", "points.garlic", "wide.fbin", "-o", "-"])
        .expect_error(3, &["wide.fbin", "7", "6"]);
    lab.run(&["eval", "points.garlic", "wide.fbin"])
        .expect_error(3, &["wide.fbin", "7", "6"]);
    lab.run(&["eval", "points.garlic", "points.npy"])
        .expect_error(3, &["points.npy", "--query-file"]);
    lab.run(&[
        "eval",
        "points.garlic",
        "fewer.fbin",
        "--query-file",
        "queries.fvecs",
    ])
    .expect_error(3, &["fewer.fbin", "10", "300"]);
    lab.run(&[
        "eval",
        "points.garlic",
        "points.npy",
        "--query-file",
        "wide.fbin",
    ])
    .expect_error(3, &["wide.fbin", "7", "6"]);
    let mut values = clusters(4, DIM, 3);
    values[DIM] = f32::NAN;
    lab.raw_fbin("nan.fbin", &values, DIM);
    lab.run(&["search", "points.garlic", "nan.fbin", "-o", "-"])
        .expect_error(3, &["nan.fbin", "row 1"]);
}

#[test]
fn wrong_search_parameters_are_wrong_usage() {
    let lab = Lab::with_index();
    let search =
        |more: &[&str]| lab.run(&[&["search", "points.garlic", "queries.fvecs"], more].concat());
    search(&["-k", "0", "-o", "-"]).expect_error(2, &["-k", "at least 1"]);
    search(&["--probes", "0", "-o", "-"]).expect_error(2, &["--probes"]);
    search(&["--bins", "1.5", "-o", "-"]).expect_error(2, &["--bins"]);
    search(&["-o", "hits.xyz"]).expect_error(2, &["hits.xyz", ".ivecs"]);
    search(&["-o", "queries.csv", "--distances", "d.txt"]).expect_error(2, &["d.txt", ".fvecs"]);
    search(&["-o", "h.npy", "--distances", "h.npy"]).expect_error(2, &["--distances"]);
    search(&["-o", "missing/hits.npy"]).expect_error(1, &["missing", "does not exist"]);
    let eval = |more: &[&str]| lab.run(&[&["eval", "points.garlic", "points.npy"], more].concat());
    eval(&["-k", "0"]).expect_error(2, &["-k"]);
    eval(&["--bins", "0.1,0"]).expect_error(2, &["--bins"]);
    eval(&["--probes", "1,,2"]).expect_error(2, &["--probes"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_a_failure() {
    let lab = Lab::with_index();
    std::os::unix::fs::symlink("/dev/full", lab.path("full.csv")).unwrap();
    std::os::unix::fs::symlink("/dev/full", lab.path("full.npy")).unwrap();
    let search = |out: &str| lab.run(&["search", "points.garlic", "queries.fvecs", "-o", out]);
    search("full.csv").expect_error(1, &["full.csv", "No space"]);
    search("full.npy").expect_error(1, &["full.npy", "not a regular file"]);
}

#[test]
fn a_target_that_reads_all_points_is_told() {
    let lab = Lab::with_default_index();
    let build = [
        "build",
        "many.npy",
        "-o",
        "plain.garlic",
        "--set",
        "calibration_queries=0",
        "-q",
    ];
    lab.run(&build).expect(0);
    let search = |index: &str, more: &[&str]| {
        let search = ["search", index, "asked.fvecs", "-k", "3", "-o", "x.csv"];
        lab.run(&[&search[..], more].concat()).expect(0).stderr
    };
    let told = search("plain.garlic", &["--recall", "0.97"]);
    assert!(
        told.contains("warning: a search for 3 neighbours with --recall 0.97 reads all points"),
        "{told}"
    );
    for (index, more) in [
        ("plain.garlic", &["--recall", "0.97", "-q"][..]),
        ("plain.garlic", &["--exact"]),
        ("many.garlic", &["--recall", "0.5"]),
    ] {
        let told = search(index, more);
        assert!(!told.contains("warning"), "{told}");
    }
}
