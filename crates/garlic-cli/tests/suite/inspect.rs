//! `garlic inspect`, `verify`, `datasets`, `config`, help and version.

use crate::common::{DIM, Lab, MANY, POINTS, WIDE, assert_keys, command, finish};

#[test]
fn inspect_describes_the_index() {
    let lab = Lab::with_index();
    let ran = lab.run(&["inspect", "points.garlic", "--json"]).expect(0);
    let lines = ran.json();
    assert_eq!(lines.len(), 1);
    let about = &lines[0];
    assert_keys(
        about,
        &[
            "cells",
            "sizes.min",
            "sizes.median",
            "sizes.mean",
            "sizes.max",
            "largest_share",
            "coverage.share",
            "spectra.anisotropy.median",
            "spectra.effective_dimension.median",
            "bins_occupied.mean",
            "memory.total",
            "memory.vectors",
            "training.epochs",
            "config.epochs",
        ],
    );
    assert_eq!(
        (&about["points"], &about["dim"]),
        (&POINTS.into(), &DIM.into())
    );
    assert_eq!(about["config"]["epochs"], 4);
    assert!(about["spectra"]["anisotropy"]["min"].as_f64().unwrap() >= 1.0);
    let effective = about["spectra"]["effective_dimension"]["max"]
        .as_f64()
        .unwrap();
    assert!((1.0..=DIM as f64 + 1e-9).contains(&effective));
    // Every point is in a cell at least once.
    let cells = about["cells"].as_f64().unwrap();
    assert!(about["sizes"]["mean"].as_f64().unwrap() * cells >= POINTS as f64 - 1e-6);

    let text = lab
        .run(&["inspect", "points.garlic", "--sample", "2"])
        .expect(0)
        .stdout;
    for word in [
        "cell sizes",
        "coverage",
        "anisotropy",
        "2 cells sampled",
        "memory",
        "total",
        "epochs=4",
    ] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
}

#[test]
fn inspect_describes_the_cells() {
    let lab = Lab::with_default_index();
    let about = &lab
        .run(&["inspect", "many.garlic", "--json"])
        .expect(0)
        .json()[0];
    assert_keys(
        about,
        &[
            "cells",
            "sizes.median",
            "largest_share",
            "bins",
            "points_per_bin",
            "space_dim",
            "axes",
            "code_bits",
            "stored_as",
            "beyond_vectors.share",
            "effective_axes.median",
            "variance_kept.min",
            "memory.codes",
            "calibration.settings",
            "recall",
            "config.bin_size",
        ],
    );
    assert_eq!(
        (&about["preset"], &about["points"]),
        (&"default".into(), &MANY.into())
    );
    // Every point is in one cell.
    let cells = about["cells"].as_f64().unwrap();
    let mean = about["sizes"]["mean"].as_f64().unwrap();
    assert!((mean * cells - MANY as f64).abs() < 1e-6);
    let memory = &about["memory"];
    let beyond = memory["total"].as_u64().unwrap() - memory["vectors"].as_u64().unwrap();
    assert_eq!(about["beyond_vectors"]["bytes"], beyond);
    let share = about["beyond_vectors"]["share"].as_f64().unwrap();
    assert!((share - beyond as f64 / (4 * MANY * WIDE) as f64).abs() < 1e-12);

    let text = lab.run(&["inspect", "many.garlic"]).expect(0).stdout;
    for word in [
        "cell sizes",
        "a cell",
        "points each",
        "axes each",
        "beyond vectors",
        "variance kept",
        "preset default",
        "what a recall takes",
        "rerank",
        "total",
    ] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
}

#[cfg(not(feature = "report"))]
#[test]
fn a_program_without_reports_says_so() {
    let lab = Lab::with_index();
    lab.run(&["inspect", "points.garlic", "--report", "about.html"])
        .expect_error(2, &["built without reports", "feature `report`"]);
    assert!(!lab.path("about.json").exists());
}

#[cfg(feature = "report")]
#[test]
fn inspect_writes_a_report_of_either_preset() {
    for (lab, index, preset, points) in [
        (Lab::with_index(), "points.garlic", "paper", POINTS),
        (Lab::with_live_index(), "live", "default", MANY),
    ] {
        let run = || lab.run(&["inspect", index, "--report", "about.html", "--json"]);
        let about = &run().expect(0).json()[0];
        assert_eq!(about["report"]["json"], "about.json");
        let page = std::fs::read_to_string(lab.path("about.html")).unwrap();
        for section in [
            "Reconstruction landscape",
            "Coverage landscape",
            "Density and coverage",
            "Curvature",
            "Anisotropy of the cells",
            "Band energy and diagonality",
            "Cell sizes",
        ] {
            assert!(page.contains(section), "no `{section}`");
        }
        assert!(page.contains("<svg") && page.ends_with("</html>\n"));
        let text = std::fs::read_to_string(lab.path("about.json")).unwrap();
        let numbers: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_keys(
            &numbers,
            &[
                "radius.config_tau",
                "landscape.nearest",
                "landscape.covered",
                "coverage.counts.counts",
                "density.covered",
                "curvature.sizes",
                "anisotropy.ratio.summary.median",
                "anisotropy.band_energy",
                "cell_sizes.largest_share",
            ],
        );
        assert_eq!(numbers["subject"]["preset"], preset);
        assert_eq!(numbers["subject"]["points"], points);
        // Files that are there are replaced, and by the same.
        run().expect(0);
        assert_eq!(
            std::fs::read_to_string(lab.path("about.json")).unwrap(),
            text
        );
    }
}

#[cfg(feature = "report")]
#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_work() {
    let lab = Lab::with_index();
    let before = lab.names();
    let run = |file: &str| lab.run(&["inspect", "points.garlic", "--report", file]);
    run("missing/about.html").expect_error(1, &["missing", "does not exist"]);
    run(".").expect_error(1, &["is a directory"]);
    run("about.json").expect_error(2, &["about.json", "about.html"]);
    run("points.garlic").expect_error(2, &["points.garlic", "is also read"]);
    std::fs::create_dir(lab.path("taken.json")).unwrap();
    run("taken.html").expect_error(1, &["taken.json", "is a directory"]);
    std::fs::remove_dir(lab.path("taken.json")).unwrap();
    assert_eq!(lab.names(), before);
}

#[test]
fn verify_accepts_a_sound_index_and_names_what_is_wrong() {
    let lab = Lab::with_index();
    let text = lab.run(&["verify", "points.garlic"]).expect(0).stdout;
    assert!(text.contains("sound"), "{text}");
    let about = &lab
        .run(&["verify", "points.garlic", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(about["ok"], true);

    let bytes = std::fs::read(lab.path("points.garlic")).unwrap();
    let broken = |name: &str, bytes: &[u8]| std::fs::write(lab.path(name), bytes).unwrap();
    broken("short", &bytes[..bytes.len() / 2]);
    broken("empty", b"");
    broken("text", b"this is no index at all, whatever it is; but it is long enough to have a header of any kind");
    let mut flipped = bytes.clone();
    let middle = flipped.len() - flipped.len() / 3;
    flipped[middle] ^= 0x10;
    broken("flipped", &flipped);
    // Others map the file and do not look at every byte; a measurement reads it as a whole.
    lab.run(&["verify", "flipped"])
        .expect_error(3, &["flipped"]);
    lab.run(&["eval", "flipped", "points.npy"])
        .expect_error(3, &["flipped"]);
    for file in ["short", "empty", "text", "points.npy", "missing", "."] {
        for command in ["verify", "inspect"] {
            lab.run(&[command, file]).expect_error(3, &[file]);
        }
        lab.run(&["search", file, "queries.fvecs", "-o", "hits.csv"])
            .expect_error(3, &[file]);
        lab.run(&["eval", file, "points.npy"])
            .expect_error(3, &[file]);
    }
    lab.run(&["verify", "short"])
        .expect_error(3, &["truncated"]);
    assert!(!lab.path("hits.csv").exists());
}

#[test]
fn datasets_are_listed_and_found_by_name() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("sets")).unwrap();
    std::fs::copy(lab.path("points.npy"), lab.path("sets/tiny-6.npy")).unwrap();
    std::fs::write(lab.path("sets/broken.fbin"), b"abc").unwrap();
    std::fs::write(lab.path("sets/notes.txt"), b"abc").unwrap();
    let run = |args: &[&str]| {
        finish(
            command(args)
                .current_dir(lab.folder())
                .env("GARLIC_DATA", lab.path("sets")),
        )
    };

    let listed = run(&["datasets", "--json"]).expect(0).json();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["name"], "broken");
    assert!(listed[0]["error"].as_str().unwrap().contains("broken.fbin"));
    assert_eq!(listed[1]["name"], "tiny-6");
    assert_eq!(
        (&listed[1]["points"], &listed[1]["dim"]),
        (&POINTS.into(), &DIM.into())
    );
    let text = run(&["datasets"]).expect(0).stdout;
    assert!(text.contains("tiny-6") && text.contains("300"), "{text}");

    let build = ["build", "tiny-6", "-o", "tiny.garlic", "--quiet"];
    run(&[&build, &crate::common::QUICK[..]].concat()).expect(0);
    assert!(lab.path("tiny.garlic").exists());
    run(&["build", "tiny", "-o", "x"]).expect_error(3, &["did you mean `tiny-6`?"]);
}

#[test]
fn an_absent_data_directory_is_empty_unless_it_was_named() {
    let lab = Lab::new();
    let ran = lab.run(&["datasets"]).expect(0);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("no data sets"), "{}", ran.stderr);
    lab.run(&["datasets", "--dir", "missing"])
        .expect_error(3, &["missing"]);
}

#[test]
fn the_printed_configuration_builds() {
    let lab = Lab::new();
    for (preset, lines) in [
        (
            "default",
            ["# --- tuning", "recall = 0.95", "code_bits = 0"],
        ),
        (
            "paper",
            ["# --- loss", "tau = 3.0", "init = \"kmeans-plus-plus\""],
        ),
    ] {
        let text = lab.run(&["config", "--preset", preset]).expect(0).stdout;
        for line in lines {
            let told = text.contains(&format!("\n{line}\n"));
            assert!(told, "no `{line}` in\n{text}");
        }
        std::fs::write(lab.path("all.toml"), &text).unwrap();
        let args = [
            "build",
            "points.npy",
            "-o",
            "x",
            "--config",
            "all.toml",
            "--json",
        ];
        let mut args = [&args[..], &["--preset", preset]].concat();
        if preset == "paper" {
            args.extend(["--set", "initial_cells=4", "--set", "epochs=2"]);
        }
        let summary = &lab.run(&args).expect(0).json()[0];
        assert_eq!(summary["preset"], preset);
        let overrides = summary["overrides"].as_object().unwrap();
        let changed = if preset == "paper" { 2 } else { 0 };
        assert_eq!(overrides.len(), changed, "{summary}");
    }
    lab.run(&["config", "--preset", "none"])
        .expect_error(2, &["none", "default", "paper"]);
}

#[test]
fn help_and_version() {
    let run = |args: &[&str]| finish(&mut command(args));
    let help = run(&["--help"]).expect(0).stdout;
    for part in [
        "Exit codes",
        "130",
        "build",
        "search",
        "eval",
        "inspect",
        "verify",
        "add",
        "remove",
        "compact",
        "convert",
        "demo",
        "datasets",
        "Examples",
    ] {
        assert!(help.contains(part), "no `{part}` in\n{help}");
    }
    for name in [
        "build",
        "search",
        "eval",
        "add",
        "remove",
        "compact",
        "inspect",
        "verify",
        "convert",
        "demo",
        "datasets",
        "config",
        "completions",
        "man",
    ] {
        for flag in ["--help", "-h"] {
            let help = run(&[name, flag]).expect(0).stdout;
            assert!(
                help.contains("Examples:") && help.contains(&format!("garlic {name}")),
                "{help}"
            );
        }
    }
    assert!(
        run(&["--version"])
            .expect(0)
            .stdout
            .starts_with("garlic 0.")
    );
    assert!(run(&[]).expect(2).stderr.contains("Usage"));
    run(&["biuld"]).expect_error(2, &["biuld"]);
    run(&["verify", "--nonsense", "x"]).expect_error(2, &["--nonsense"]);
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_is_no_error() {
    let lab = Lab::new();
    let program = env!("CARGO_BIN_EXE_garlic");
    let script =
        format!("(sleep 0.3; {program} config 2>errors; echo $? >code) | true; sleep 0.1; wait");
    let mut shell = std::process::Command::new("sh");
    finish(shell.args(["-c", &script]).current_dir(lab.folder())).expect(0);
    assert_eq!(
        std::fs::read_to_string(lab.path("code")).unwrap().trim(),
        "0"
    );
    assert_eq!(std::fs::read_to_string(lab.path("errors")).unwrap(), "");
}
