//! `garlic build`: summary, parameters, errors, and no half-written index.

use crate::common::{DIM, Lab, POINTS, QUICK, assert_keys, clusters, command, finish};

#[test]
fn the_summary_has_every_key() {
    let lab = Lab::new();
    let ran = lab
        .build(&["--json", "--seed", "7", "--train-fraction", "0.5"])
        .expect(0);
    assert_eq!(ran.stderr, "");
    let lines = ran.json();
    assert_eq!(lines.len(), 1);
    let summary = &lines[0];
    assert_keys(
        summary,
        &[
            "cells",
            "points",
            "dim",
            "seconds.train",
            "seconds.assign",
            "seconds.bins",
            "seconds.total",
            "bytes",
            "peak_rss_bytes",
            "coverage.share",
            "coverage.mean",
            "seed",
            "preset",
            "overrides",
        ],
    );
    assert_eq!(summary["points"], POINTS);
    assert_eq!(summary["dim"], DIM);
    assert_eq!(summary["seed"], 7);
    assert_eq!(summary["overrides"]["train_fraction"], 0.5);
    assert_eq!(summary["overrides"]["epochs"], 4);
    assert!(summary["overrides"].get("tau").is_none());
    let bytes = std::fs::metadata(lab.path("points.garlic")).unwrap().len();
    assert_eq!(summary["bytes"], bytes);
    if cfg!(target_os = "linux") {
        assert!(summary["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
    }
    assert_eq!(
        lab.names(),
        ["points.garlic", "points.npy", "queries.fvecs"]
    );
}

#[test]
fn people_get_a_list_and_quiet_gets_nothing() {
    let lab = Lab::new();
    let ran = lab.build(&[]).expect(0);
    for word in [
        "points",
        "300 of dimension 6",
        "cells",
        "coverage",
        "time",
        "size",
    ] {
        assert!(ran.stdout.contains(word), "no `{word}` in\n{}", ran.stdout);
    }
    assert!(
        ran.stderr.lines().all(|l| l.starts_with("garlic: ")),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("training"), "{}", ran.stderr);
    let ran = lab.build(&["--quiet"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

#[test]
fn the_index_depends_on_the_seed_but_not_on_the_threads() {
    let lab = Lab::new();
    let bytes = |more: &[&str]| {
        lab.build(&[&["--quiet"], more].concat()).expect(0);
        std::fs::read(lab.path("points.garlic")).unwrap()
    };
    let one = bytes(&["--seed", "3", "--threads", "1"]);
    let two = bytes(&["--seed", "3", "--threads", "2"]);
    let other = bytes(&["--seed", "4", "--threads", "2"]);
    assert!(one == two);
    assert!(one != other);
}

#[test]
fn later_parameters_win() {
    let lab = Lab::new();
    std::fs::write(
        lab.path("my.toml"),
        "epochs = 2\ninitial_cells = 5\nbatch = 50\nseed = 9\n",
    )
    .unwrap();
    let args = [
        "build",
        "points.npy",
        "-o",
        "x",
        "--config",
        "my.toml",
        "--preset",
        "paper",
        "--set",
        "epochs=3",
        "--seed",
        "1",
        "--json",
    ];
    let summary = &lab.run(&args).expect(0).json()[0];
    assert_eq!(summary["overrides"]["epochs"], 3);
    assert_eq!(summary["overrides"]["initial_cells"], 5);
    assert_eq!(summary["seed"], 1);
}

#[test]
fn the_history_is_one_entry_an_epoch() {
    let lab = Lab::new();
    lab.build(&["--quiet", "--history", "history.json"])
        .expect(0);
    let text = std::fs::read_to_string(lab.path("history.json")).unwrap();
    let history: serde_json::Value = serde_json::from_str(&text).unwrap();
    let epochs = history["epochs"].as_array().unwrap();
    assert_eq!(epochs.len(), 4);
    assert_keys(&epochs[0], &["epoch", "loss", "cells", "covered"]);
}

#[test]
fn wrong_parameters_are_wrong_usage() {
    let lab = Lab::new();
    let run = |more: &[&str]| lab.run(&[&["build", "points.npy", "-o", "x"], more].concat());
    run(&["--set", "bin_sise=3"]).expect_error(2, &["bin_sise", "did you mean `bin_size`?"]);
    run(&["--set", "tau=3"]).expect_error(2, &["tau", "belongs to preset paper"]);
    let paper = |more: &[&str]| run(&[&["--preset", "paper"], more].concat());
    paper(&["--set", "intial_cells=3"])
        .expect_error(2, &["intial_cells", "did you mean `initial_cells`?"]);
    paper(&["--set", "tau=-1"]).expect_error(2, &["tau", "above 0"]);
    paper(&["--set", "init=best"]).expect_error(2, &["init"]);
    paper(&["--set", "bin_size=3"]).expect_error(2, &["bin_size", "belongs to preset default"]);
    paper(&["--live"]).expect_error(2, &["--live", "default"]);
    run(&["--set", "tau"]).expect_error(2, &["KEY=VALUE"]);
    run(&["--preset", "best"]).expect_error(2, &["best", "default", "paper"]);
    for recall in ["0", "1", "1.5", "-0.1", "nan", "high"] {
        run(&[&format!("--recall={recall}")]).expect_error(2, &["--recall", "--exact"]);
    }
    run(&["--set", "recall=1"]).expect_error(2, &["recall", "below 1"]);
    run(&["--preset", "paper", "--recall", "0.9"]).expect_error(2, &["--recall", "default"]);
    run(&["--history", "h.json"]).expect_error(2, &["--history", "--preset paper"]);
    run(&["--train-fraction", "0.5"]).expect_error(2, &["--train-fraction", "paper"]);
    run(&["--train-fraction", "0"]).expect_error(2, &["--train-fraction"]);
    run(&["--threads", "0"]).expect_error(2, &["--threads"]);
    run(&["--epochs", "3"]).expect_error(2, &["--epochs"]);
    std::fs::write(lab.path("bad.toml"), "tau = = 3\n").unwrap();
    run(&["--config", "bad.toml"]).expect_error(2, &["bad.toml", "TOML"]);
    std::fs::write(lab.path("odd.toml"), "taw = 3\n").unwrap();
    paper(&["--config", "odd.toml"]).expect_error(2, &["odd.toml", "did you mean `tau`?"]);
    run(&["--config", "none.toml"]).expect_error(3, &["none.toml"]);
    assert!(!lab.path("x").exists());
}

#[test]
fn bad_data_is_named() {
    let lab = Lab::new();
    let mut values = clusters(50, DIM, 1);
    values[3 * DIM + 2] = f32::NAN;
    lab.raw_fbin("nan.fbin", &values, DIM);
    values[3 * DIM + 2] = f32::INFINITY;
    lab.raw_fbin("inf.fbin", &values, DIM);
    lab.raw_fbin("empty.fbin", &[], DIM);
    lab.raw_fbin("short.fbin", &values, DIM);
    let bytes = std::fs::read(lab.path("short.fbin")).unwrap();
    std::fs::write(lab.path("short.fbin"), &bytes[..bytes.len() - 5]).unwrap();
    std::fs::write(lab.path("text.npy"), "not an array").unwrap();
    std::fs::write(lab.path("text.txt"), "1 2 3").unwrap();
    let build = |data: &str| lab.run(&["build", data, "-o", "x", "--quiet"]);
    build("nan.fbin").expect_error(3, &["nan.fbin", "row 3", "column 2", "NaN"]);
    build("inf.fbin").expect_error(3, &["inf.fbin", "row 3", "inf"]);
    build("empty.fbin").expect_error(3, &["empty.fbin"]);
    build("short.fbin").expect_error(3, &["short.fbin", "truncated"]);
    build("text.npy").expect_error(3, &["text.npy"]);
    build("text.txt").expect_error(3, &["text.txt", ".npy"]);
    build("nowhere.npy").expect_error(3, &["nowhere.npy", "no such file"]);
    build("no/where.npy").expect_error(3, &["no/where.npy", "no such file"]);
    assert!(!lab.path("x").exists());
}

#[test]
fn outputs_are_checked_before_the_build() {
    let lab = Lab::new();
    // Training that would take hours: the error must come first.
    let long = [
        "--preset",
        "paper",
        "--set",
        "epochs=100000000",
        "--set",
        "early_stop=false",
    ];
    let build =
        |more: &[&str]| lab.run(&[&["build", "points.npy", "--quiet"], &long[..], more].concat());
    build(&["-o", "missing/x"]).expect_error(1, &["missing", "does not exist"]);
    build(&["-o", "."]).expect_error(1, &["directory"]);
    build(&["-o", "points.npy"]).expect_error(2, &["points.npy", "also read"]);
    build(&["-o", "x", "--history", "missing/h.json"]).expect_error(1, &["missing"]);
    assert_eq!(lab.names(), ["points.npy", "queries.fvecs"]);
    assert_eq!(
        garlic_data::read_vectors(lab.path("points.npy"))
            .unwrap()
            .rows(),
        POINTS
    );
}

#[cfg(unix)]
#[test]
fn devices_and_read_only_folders_are_no_place_for_an_index() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    let args = [
        &["build", "points.npy", "-o", "/dev/null", "--quiet"],
        &QUICK[..],
    ]
    .concat();
    lab.run(&args)
        .expect_error(1, &["/dev/null", "not a regular file"]);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());

    std::fs::create_dir(lab.path("closed")).unwrap();
    std::fs::set_permissions(lab.path("closed"), std::fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write everywhere; there is nothing to see then.
    if tempfile::tempfile_in(lab.path("closed")).is_err() {
        lab.run(&["build", "points.npy", "-o", "closed/x"])
            .expect_error(1, &["closed"]);
    }
}

/// A limit on the size of files acts like a full disk: a write in the middle of the file fails.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_index() {
    let lab = Lab::with_index();
    let old = std::fs::read(lab.path("points.garlic")).unwrap();
    let program = env!("CARGO_BIN_EXE_garlic");
    let script = format!(
        "trap '' XFSZ; ulimit -f 2; exec {program} build points.npy -o points.garlic --seed 5 --quiet {}",
        QUICK.join(" ")
    );
    let mut shell = std::process::Command::new("sh");
    let ran = finish(shell.args(["-c", &script]).current_dir(lab.folder()));
    ran.expect_error(1, &["points.garlic", "free some space"]);
    assert!(std::fs::read(lab.path("points.garlic")).unwrap() == old);
    assert_eq!(
        lab.names(),
        ["points.garlic", "points.npy", "queries.fvecs"]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn full_outputs_are_failures() {
    let lab = Lab::new();
    lab.build(&["--quiet", "--history", "/dev/full"])
        .expect_error(1, &["/dev/full", "No space"]);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let ran = finish(command(["config"]).stdout(full));
    ran.expect_error(1, &["standard output", "No space"]);
}

/// Ctrl-C while training.
#[cfg(unix)]
#[test]
fn an_interrupt_cancels_and_leaves_nothing() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};

    let lab = Lab::new();
    let args = [
        "build",
        "points.npy",
        "-o",
        "x",
        "--preset",
        "paper",
        "--set",
        "epochs=100000000",
        "--set",
        "early_stop=false",
    ];
    let mut child = command(args)
        .current_dir(lab.folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("training") {
        line.clear();
        assert_ne!(
            stderr.read_line(&mut line).unwrap(),
            0,
            "the build ended before it trained"
        );
    }
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("garlic: error: cancelled"), "{rest}");
    assert_eq!(lab.names(), ["points.npy", "queries.fvecs"]);
}

#[test]
fn cells_that_were_found_elsewhere_are_taken() {
    let lab = Lab::new();
    let labels: String = (0..POINTS).map(|i| format!("{}\n", i % 4 * 5)).collect();
    lab.write("labels.txt", &labels);
    let build = |cells: &str, name: &str| {
        let words = ["build", "points.npy", "-o", name, "--partition", cells];
        lab.run(&[&words[..], &["--json", "--set", "calibration_queries=0"]].concat())
    };
    let first = build("labels.txt", "first.garlic").expect(0).json();
    assert_eq!(first[0]["cells"], 4);
    // The cells of an index: every point joins the one that a search would visit first, and these lie apart.
    let again = build("first.garlic", "again.garlic").expect(0).json();
    assert_eq!(again[0]["cells"], 4);
    let bytes = |name: &str| std::fs::read(lab.path(name)).unwrap();
    assert!(bytes("first.garlic") == bytes("again.garlic"));
    lab.build(&[]).expect(0);
    let paper = build("points.garlic", "of-paper.garlic").expect(0).json();
    assert!(paper[0]["cells"].as_u64().unwrap() > 1);
    lab.run(&["convert", "first.garlic", "live", "--live", "--quiet"])
        .expect(0);
    build("live", "of-live.garlic").expect(0);
    assert!(bytes("first.garlic") == bytes("of-live.garlic"));
    let words = [
        "build",
        "points.npy",
        "-o",
        "spheres.garlic",
        "--preset",
        "paper",
        "--json",
    ];
    let spheres = lab.run(&[&words[..], &["--partition", "first.garlic"]].concat());
    let spheres = spheres.expect(0).json();
    let first = build("first.garlic", "again.garlic").expect(0).json();
    assert_eq!(spheres[0]["cells"], first[0]["cells"]);

    lab.write("few.txt", "1\n2\n");
    build("few.txt", "no.garlic").expect_error(3, &["few.txt", "cells of 2 vectors", "300"]);
    lab.write("large.txt", &"4294967296\n".repeat(POINTS));
    build("large.txt", "no.garlic").expect_error(3, &["large.txt", "4294967296", "2^32"]);
}
