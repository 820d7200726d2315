//! Indexes that begin empty and train themselves as they grow.

use crate::common::{Lab, assert_keys, clusters};
use serde_json::Value;

const DIM: usize = 8;

/// A folder with `a.npy` and `b.npy`, 4,000 points each, `all.npy` of both, and `asked.npy`.
fn lab() -> Lab {
    let lab = Lab::new();
    let all = clusters(8000, DIM, 5);
    let write = |name: &str, values: &[f32]| {
        garlic_data::write_npy_f32(lab.path(name), values, DIM).unwrap();
    };
    write("all.npy", &all);
    let (a, b) = all.split_at(4000 * DIM);
    write("a.npy", a);
    write("b.npy", b);
    write("asked.npy", &clusters(500, DIM, 6));
    lab
}

#[track_caller]
fn told(lab: &Lab, args: &[&str]) -> Value {
    let ran = lab.run(&[args, &["--json"]].concat()).expect(0);
    assert_eq!(ran.stderr, "");
    ran.json().remove(0)
}

#[track_caller]
fn recall(lab: &Lab, index: &str, points: &str, target: &str) -> f64 {
    let args = ["eval", index, points, "--query-file", "asked.npy"];
    let more = ["-k", "10", "--recall", target, "--quiet", "--json"];
    let ran = lab.run(&[&args[..], &more].concat()).expect(0);
    ran.json()[0]["recall_at_k"].as_f64().unwrap()
}

#[test]
fn an_empty_index_grows_in_files_and_directories() {
    let lab = lab();
    let build = ["build", "--empty", "--dim", "8", "-o"];
    let made = told(&lab, &[&build[..], &["file.garlic"]].concat());
    assert_eq!((&made["points"], &made["dim"]), (&0.into(), &8.into()));
    assert_eq!(made["reads_everything"], true);
    told(&lab, &[&build[..], &["live", "--live"]].concat());
    for index in ["file.garlic", "live"] {
        lab.run(&["verify", index]).expect(0);
        let text = lab.run(&["inspect", index]).expect(0).stdout;
        for word in [
            "0 of dimension 8",
            "it began empty",
            "trains itself at 4,097 points",
        ] {
            assert!(text.contains(word), "no `{word}` in\n{text}");
        }
        let found = lab.run(&["search", index, "asked.npy", "-k", "2", "-o", "-", "--json"]);
        assert_eq!(found.expect(0).json()[0]["ids"], Value::Array(vec![]));

        let first = told(&lab, &["add", index, "a.npy", "--batch", "700"]);
        assert_eq!(
            (&first["points"], &first["trainings"]),
            (&4000.into(), &0.into())
        );
        let text = lab.run(&["inspect", index]).expect(0).stdout;
        assert!(
            text.contains("4,096 points or fewer are read whole"),
            "{text}"
        );
        assert_eq!(recall(&lab, index, "a.npy", "0.5"), 1.0);

        let ran = lab
            .run(&["add", index, "b.npy", "--batch", "700"])
            .expect(0);
        assert!(ran.stdout.contains("trained anew once"), "{}", ran.stdout);
        assert!(
            ran.stdout.contains("had not been trained"),
            "{}",
            ran.stdout
        );
        // A directory is trained beside the batches, and may be done before them.
        let is_told = ran.stderr.contains("training anew, on 4,");
        assert!(is_told || index == "live", "{}", ran.stderr);
        assert!(recall(&lab, index, "all.npy", "0.95") > 0.94);

        let about = told(&lab, &["inspect", index]);
        assert_keys(
            &about,
            &[
                "trains_at",
                "exhaustive",
                "drift.correction",
                "drift.reads_everything",
            ],
        );
        assert_eq!(
            (&about["points"], &about["drift"]["trainings"]),
            (&8000.into(), &1.into())
        );
        assert!(about["cells"].as_u64().unwrap() > 1);
        for target in about["exhaustive"].as_array().unwrap() {
            assert_keys(target, &["k", "above", "why", "cause.kind"]);
        }
        let text = lab.run(&["inspect", index]).expect(0).stdout;
        assert!(
            text.contains("trained anew once") && text.contains("reads all"),
            "{text}"
        );

        let again = told(&lab, &["compact", index, "--retrain"]);
        assert_eq!(again["drift"]["trainings"], 2);
        assert_eq!(again["drift"]["built"], 8000);
        assert!(recall(&lab, index, "all.npy", "0.95") > 0.94);
    }
}

#[test]
fn a_sample_trains_an_index_without_points() {
    let lab = lab();
    let args = [
        "build",
        "--empty",
        "--train-on",
        "a.npy",
        "-o",
        "index.garlic",
    ];
    let ran = lab.run(&args).expect(0);
    assert!(
        ran.stdout.contains("on a sample of 4,000"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("trains itself anew at 8,000 points"),
        "{}",
        ran.stdout
    );
    let about = told(&lab, &["inspect", "index.garlic"]);
    assert_eq!(
        (&about["points"], &about["drift"]["built"]),
        (&0.into(), &4000.into())
    );
    assert!(about["cells"].as_u64().unwrap() > 1);
    let added = told(&lab, &["add", "index.garlic", "all.npy"]);
    assert_eq!(
        (&added["trainings"], &added["trained_points"]),
        (&1.into(), &8000.into())
    );
    assert!(recall(&lab, "index.garlic", "all.npy", "0.95") > 0.94);
}

#[test]
fn a_directory_need_not_be_waited_for() {
    let lab = lab();
    told(
        &lab,
        &["build", "--empty", "--dim", "8", "--live", "-o", "live"],
    );
    let added = told(&lab, &["add", "live", "all.npy", "--no-wait"]);
    assert_eq!(added["points"], 8000);
    // Who searches meanwhile reads everything; the next writer trains.
    assert!(recall(&lab, "live", "all.npy", "0.99") >= 0.99);
    if added["training_given_up"] == true {
        let added = told(&lab, &["add", "live", "asked.npy"]);
        assert_eq!(added["trainings"], 1);
    }
}

#[test]
fn what_is_empty_says_for_which_vectors() {
    let lab = lab();
    let build = |more: &[&str]| lab.run(&[&["build", "-o", "x.garlic"], more].concat());
    build(&["--empty"]).expect_error(2, &["--dim", "--train-on"]);
    build(&[]).expect_error(2, &["DATA"]);
    build(&["--dim", "8"]).expect_error(2, &["--empty"]);
    build(&["--empty", "--dim", "0"]).expect_error(2, &["--dim"]);
    build(&["a.npy", "--empty", "--dim", "8"]).expect_error(2, &["--empty"]);
    build(&["--empty", "--dim", "8", "--preset", "paper"]).expect_error(2, &["preset paper"]);
    build(&["--empty", "--dim", "8", "--set", "spill=1.2"]).expect_error(2, &["spill"]);
    let other = ["--empty", "--dim", "7", "--train-on", "a.npy"];
    build(&other).expect_error(3, &["a.npy", "dimension 8", "--dim says 7"]);
    assert!(!lab.path("x.garlic").exists());
    let cosine = [
        "--empty", "--dim", "3", "--metric", "cosine", "--recall", "0.9", "--json",
    ];
    let made = &build(&cosine).expect(0).json()[0];
    assert_eq!(
        (&made["metric"], &made["recall"]),
        (&"cosine".into(), &0.9.into())
    );
}
