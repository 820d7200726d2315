//! `garlic search` among some of the points, and within a radius; how `inspect` and `verify` tell of changes.

use crate::common::{ASKED, Lab, MANY, WIDE, assert_keys, clusters};
use serde_json::Value;

/// Distances of all points from a query, as (distance, id) in order.
fn all(query: usize) -> Vec<(f32, u64)> {
    let (points, queries) = (clusters(MANY, WIDE, 3), clusters(ASKED, WIDE, 4));
    let query = &queries[query * WIDE..(query + 1) * WIDE];
    let squared = |point: &[f32]| -> f32 {
        let differences = point.iter().zip(query).map(|(a, b)| (a - b) * (a - b));
        differences.sum()
    };
    let mut all: Vec<(f32, u64)> = (0..)
        .zip(points.chunks(WIDE))
        .map(|(id, point)| (squared(point).sqrt(), id))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

#[track_caller]
fn search(lab: &Lab, more: &[&str]) -> Vec<Value> {
    let base = ["search", "many.garlic", "asked.fvecs", "-o", "-", "--json"];
    let answers = lab.run(&[&base[..], more].concat()).expect(0).json();
    assert_eq!(answers.len(), ASKED);
    answers
}

fn ids(answer: &Value) -> Vec<u64> {
    let ids = answer["ids"].as_array().unwrap();
    ids.iter().map(|id| id.as_u64().unwrap()).collect()
}

fn list(lab: &Lab, name: &str, ids: impl Iterator<Item = usize>) {
    let text: String = ids.map(|id| format!("{id}\n")).collect();
    std::fs::write(lab.path(name), text).unwrap();
}

#[test]
fn filters_allow_and_exclude() {
    let lab = Lab::with_default_index();
    list(&lab, "thirds.txt", (0..MANY + 30).step_by(3));
    list(&lab, "fifths.txt", (0..MANY).step_by(5));
    let allow = ["--filter-ids", "thirds.txt"];
    let deny = ["--exclude-ids", "fifths.txt"];
    let both = [&allow[..], &deny].concat();
    for (flags, allows) in [
        (&allow[..], (|id| id % 3 == 0) as fn(u64) -> bool),
        (&deny, |id| id % 5 != 0),
        (&both, |id| id % 3 == 0 && id % 5 != 0),
    ] {
        let found = search(&lab, &[flags, &["-k", "5", "--exact"]].concat());
        for (query, answer) in found.iter().enumerate() {
            let mut wanted = all(query);
            wanted.retain(|(_, id)| allows(*id));
            let wanted: Vec<u64> = wanted.iter().take(5).map(|(_, id)| *id).collect();
            assert_eq!(ids(answer), wanted, "query {query}, {flags:?}");
        }
        let found = search(&lab, &[flags, &["-k", "5"]].concat());
        assert!(found.iter().all(|a| ids(a).into_iter().all(allows)));
    }
    // Fewer points than neighbours.
    list(&lab, "two.txt", [7, 9, 70_000].into_iter());
    let found = search(&lab, &["--filter-ids", "two.txt"]);
    assert!(found.iter().all(|a| ids(a).len() == 2));
}

#[test]
fn filters_that_allow_nothing_are_mistakes() {
    let lab = Lab::with_default_index();
    let base = ["search", "many.garlic", "asked.fvecs", "-o", "x.csv"];
    let run = |more: &[&str]| lab.run(&[&base[..], more].concat());
    list(&lab, "strangers.txt", 50_000..50_010);
    list(&lab, "none.txt", 0..0);
    list(&lab, "all.txt", 0..MANY);
    for file in ["strangers.txt", "none.txt"] {
        run(&["--filter-ids", file]).expect_error(3, &[file, "allows no point"]);
    }
    run(&["--filter-ids", "all.txt", "--exclude-ids", "all.txt"])
        .expect_error(3, &["all.txt", "allows no point"]);
    run(&["--exclude-ids", "all.txt"]).expect_error(3, &["all.txt", "excludes every point"]);
    run(&["--radius", "1", "--filter-ids", "none.txt"]).expect_error(3, &["allows no point"]);
    let untrue = ["--filter", "id > 99999"];
    run(&untrue).expect_error(3, &["id > 99999", "allows no point"]);
    list(&lab, "first.txt", 0..5);
    run(&["--filter", "id > 100", "--filter-ids", "first.txt"])
        .expect_error(3, &["id > 100", "allows no point"]);
    std::fs::write(lab.path("bad.txt"), "1\n2\n3,4\n").unwrap();
    run(&["--filter-ids", "bad.txt"]).expect_error(3, &["bad.txt", "line 3", "3,4"]);
    run(&["--exclude-ids", "nowhere.txt"]).expect_error(3, &["nowhere.txt"]);
    run(&["--filter-ids", "x.csv"]).expect_error(2, &["x.csv", "is also read"]);
    assert!(!lab.path("x.csv").exists());
    run(&["--exclude-ids", "none.txt"]).expect(0);
}

#[test]
fn all_points_within_a_radius() {
    let lab = Lab::with_default_index();
    let found = search(&lab, &["--radius", "0.6"]);
    let wanted: Vec<Vec<u64>> = (0..ASKED)
        .map(|query| {
            let near = all(query).into_iter().take_while(|(d, _)| *d <= 0.6);
            near.map(|(_, id)| id).collect()
        })
        .collect();
    assert_eq!(found.iter().map(ids).collect::<Vec<_>>(), wanted);
    let longest = wanted.iter().map(Vec::len).max().unwrap();
    let total: usize = wanted.iter().map(Vec::len).sum();
    assert!(longest > 10, "the radius is too small to show anything");

    // The same in a table, filled up, with the summary as an object.
    let base = [
        "search",
        "many.garlic",
        "asked.fvecs",
        "--radius",
        "0.6",
        "-o",
    ];
    let more = ["hits.npy", "--distances", "d.npy", "--json"];
    let told = &lab.run(&[&base[..], &more].concat()).expect(0).json()[0];
    assert_keys(told, &["queries", "metric", "seconds", "qps", "candidates"]);
    assert_eq!(
        (&told["hits"], &told["exact"]),
        (&total.into(), &true.into())
    );
    assert!(told["k"].is_null() && told["radius"].is_number());
    let table = garlic_data::read_ids(lab.path("hits.npy")).unwrap();
    assert_eq!((table.rows, table.cols), (ASKED, longest));
    for (row, wanted) in wanted.iter().enumerate() {
        let (ids, rest) = table.row(row).split_at(wanted.len());
        assert!(ids.iter().zip(wanted).all(|(a, b)| *a as u64 == *b));
        assert!(rest.iter().all(|id| *id == -1));
    }
    let distances = garlic_data::read_vectors(lab.path("d.npy")).unwrap();
    assert_eq!((distances.rows(), distances.dim()), (ASKED, longest));

    let run = |more: &[&str]| lab.run(&[&base[..], more].concat());
    let told = run(&["x.csv"]).expect(0).stderr;
    assert!(told.contains("all of them"), "{told}");
    let told = run(&["x.csv", "--recall", "0.9"]).expect(0).stderr;
    assert!(told.contains("not exact"), "{told}");
    let found = search(&lab, &["--radius", "-1"]);
    assert!(found.iter().all(|a| ids(a).is_empty()));
    // A table has at least one column.
    let none = [
        "search",
        "many.garlic",
        "asked.fvecs",
        "--radius",
        "-1",
        "-o",
    ];
    lab.run(&[&none[..], &["none.npy", "-q"]].concat())
        .expect(0);
    let table = garlic_data::read_ids(lab.path("none.npy")).unwrap();
    assert_eq!(table.data, [-1; ASKED]);

    list(&lab, "even.txt", (0..MANY).step_by(2));
    let found = search(&lab, &["--radius", "0.6", "--filter-ids", "even.txt"]);
    for (answer, wanted) in found.iter().zip(&wanted) {
        let even: Vec<u64> = wanted.iter().copied().filter(|id| id % 2 == 0).collect();
        assert_eq!(ids(answer), even);
    }
}

#[test]
fn a_radius_is_a_number_and_goes_without_k() {
    let lab = Lab::with_default_index();
    let base = ["search", "many.garlic", "asked.fvecs", "-o", "x.csv"];
    let run = |more: &[&str]| lab.run(&[&base[..], more].concat());
    for radius in ["nan", "inf", "wide", "1e99"] {
        run(&["--radius", radius]).expect_error(2, &[radius, "finite number"]);
    }
    for flag in [["-k", "3"], ["--probes", "3"], ["--rerank", "9"]] {
        run(&[&["--radius", "1"], &flag[..]].concat()).expect_error(2, &["--radius", flag[0]]);
    }
    run(&["--radius", "1", "--recall", "1"]).expect_error(2, &["--exact"]);
    run(&["--radius", "1", "--exact"]).expect(0);
}

#[test]
fn inspect_and_verify_tell_how_an_index_is_kept() {
    let lab = Lab::with_default_index();
    let inspect = |index: &str| {
        lab.run(&["inspect", index, "--json"])
            .expect(0)
            .json()
            .remove(0)
    };
    let about = inspect("many.garlic");
    assert_eq!(
        (&about["kind"], &about["metric"]),
        (&"file".into(), &"euclidean".into())
    );
    assert_eq!(
        (&about["changes"], &about["directory"]),
        (&0.into(), &Value::Null)
    );
    assert_eq!(about["drift"]["built"], MANY);
    assert_eq!(about["drift"]["rebuild"], false);
    #[cfg(target_endian = "little")]
    assert!(about["mapped_bytes"].as_u64().unwrap() > (4 * MANY * WIDE) as u64);

    let convert = ["convert", "many.garlic", "live", "--live", "-q"];
    lab.run(&convert).expect(0);
    lab.run(&["remove", "live", "1", "2", "-q"]).expect(0);
    garlic_data::write_npy_f32(lab.path("more.npy"), &clusters(600, WIDE, 8), WIDE).unwrap();
    lab.run(&["add", "live", "more.npy", "-q"]).expect(0);
    let about = inspect("live");
    assert_keys(
        &about,
        &[
            "directory.checkpoint_bytes",
            "drift.spread",
            "memory.changes",
        ],
    );
    assert_eq!(
        (&about["kind"], &about["changes"]),
        (&"directory".into(), &602.into())
    );
    assert_eq!(about["points"], MANY + 598);
    // Points of the log are in the cells, too.
    let cells = about["cells"].as_f64().unwrap();
    let mean = about["sizes"]["mean"].as_f64().unwrap();
    assert!((mean * cells - (MANY + 598) as f64).abs() < 1e-6);
    let text = lab.run(&["inspect", "live"]).expect(0).stdout;
    for word in [
        "in a directory",
        "generation 1",
        "600 points added and 2 removed",
        "drift",
    ] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }

    let told = &lab.run(&["verify", "live", "--json"]).expect(0).json()[0];
    assert_keys(
        told,
        &["version", "file_bytes", "sections", "directory.log_bytes"],
    );
    assert_eq!((&told["ok"], &told["points"]), (&true.into(), &MANY.into()));
    assert_eq!(told["directory"]["points"], MANY + 598);
    let text = lab.run(&["verify", "live"]).expect(0).stdout;
    for word in [
        "live: sound",
        "log",
        "6,598 points",
        "generation 1",
        "VECTORS",
    ] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
}
