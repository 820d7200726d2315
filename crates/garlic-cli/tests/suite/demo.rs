//! A data set with queries and truth in one file, and the demo.

use crate::common::{DIM, Lab, POINTS, QUERIES, QUICK, assert_keys, clusters};
use hdf5_pure::{AttrValue, FileBuilder};

/// An ANN-Benchmarks file of the lab's points and queries.
fn benchmark(lab: &Lab, name: &str, metric: &str) {
    let (points, queries) = (clusters(POINTS, DIM, 1), clusters(QUERIES, DIM, 2));
    let truth = garlic_data::ground_truth(&points, DIM, &queries, 10).unwrap();
    let neighbors: Vec<i32> = truth.ids.iter().map(|id| *id as i32).collect();
    let mut builder = FileBuilder::new();
    let shape = |rows: usize, cols: usize| [rows as u64, cols as u64];
    builder
        .create_dataset("train")
        .with_f32_data(&points)
        .with_shape(&shape(POINTS, DIM));
    builder
        .create_dataset("test")
        .with_f32_data(&queries)
        .with_shape(&shape(QUERIES, DIM));
    builder
        .create_dataset("neighbors")
        .with_i32_data(&neighbors)
        .with_shape(&shape(QUERIES, 10));
    builder
        .create_dataset("distances")
        .with_f32_data(&truth.distances)
        .with_shape(&shape(QUERIES, 10));
    builder.set_attr("distance", AttrValue::String(metric.into()));
    std::fs::write(lab.path(name), builder.finish().unwrap()).unwrap();
}

#[test]
fn a_benchmark_file_is_all_that_is_needed() {
    let lab = Lab::new();
    benchmark(&lab, "set.hdf5", "euclidean");
    let build = ["build", "set.hdf5", "-o", "set.garlic", "--quiet"];
    lab.run(&[&build, &QUICK[..]].concat()).expect(0);

    let ran = lab
        .run(&[
            "eval",
            "set.garlic",
            "set.hdf5",
            "--probes",
            "99",
            "--bins",
            "1",
            "--json",
        ])
        .expect(0);
    assert_eq!(ran.stderr, "");
    let row = &ran.json()[0];
    assert_eq!(
        (&row["recall_at_1"], &row["recall_at_10"]),
        (&1.0.into(), &1.0.into())
    );
    assert_eq!(row["queries"], QUERIES);
    let row = &lab
        .run(&["eval", "set.garlic", "set.hdf5", "--queries", "7", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(
        (&row["queries"], &row["params"]["probes"]),
        (&7.into(), &5.into())
    );

    let ran = lab
        .run(&["search", "set.garlic", "set.hdf5", "-k", "2", "-o", "-"])
        .expect(0);
    assert_eq!(ran.stdout.lines().count(), 1 + 2 * QUERIES);
    let listed = lab
        .run(&["datasets", "--dir", ".", "--json"])
        .expect(0)
        .json();
    let set = listed.iter().find(|s| s["name"] == "set").unwrap();
    assert_eq!(
        (&set["queries"], &set["truth"]),
        (&QUERIES.into(), &true.into())
    );
}

#[test]
fn a_set_for_another_distance_is_refused() {
    let lab = Lab::new();
    benchmark(&lab, "jaccard.hdf5", "jaccard");
    lab.run(&["build", "jaccard.hdf5", "-o", "x"])
        .expect_error(3, &["jaccard.hdf5", "euclidean"]);
    assert!(!lab.path("x").exists());
}

/// What the demo says of its report.
const REPORT: &str = match cfg!(feature = "report") {
    true => "report.html",
    false => "built without reports",
};

#[test]
fn the_demo_prints_tables_and_writes_a_report() {
    let lab = Lab::new();
    let small = [
        "demo",
        "--out",
        "new/demo",
        "--points",
        "1500",
        "--dim",
        "16",
        "--queries",
        "40",
        "--epochs",
        "3",
        "--initial-cells",
        "8",
    ];
    let ran = lab.run(&small).expect(0);
    for part in [
        "Recall@1 at equal candidates",
        "garlic default",
        "garlic paper",
        "k-means",
        "brute force",
        "needles",
        REPORT,
    ] {
        assert!(ran.stdout.contains(part), "no `{part}` in\n{}", ran.stdout);
    }
    let report = std::fs::read_to_string(lab.path("new/demo/report.html"));
    match cfg!(feature = "report") {
        true => assert!(report.unwrap().contains("<svg")),
        false => assert!(report.is_err()),
    }
    let ran = lab.run(&[&small[..], &["--json"]].concat()).expect(0);
    assert_eq!(ran.stderr, "");
    assert_keys(
        &ran.json()[0],
        &["rows", "by_candidates", "seconds.total", "report"],
    );
    lab.run(&["demo", "--dim", "3", "--points", "100"])
        .expect_error(2, &["dim", "16"]);
    if cfg!(feature = "report") {
        lab.run(&["demo", "--out", "points.npy"])
            .expect_error(1, &["points.npy"]);
    }
}
