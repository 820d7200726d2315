//! Changes that cannot be made, or not to their end: what is told, and what stays.

mod common;

use common::{Lab, MANY, MORE, POINTS, WIDE, clusters};
use garlic_ann::Live;

#[test]
fn identifiers_that_do_not_fit_change_nothing() {
    let lab = Lab::with_live_index();
    let numbers = |more: &str| {
        let text: String = (0..MORE - 1).map(|i| format!("{}\n", 9000 + i)).collect();
        text + more
    };
    lab.write("short.txt", &numbers(""));
    lab.write("twice.txt", &numbers("9000\n"));
    lab.write("taken.txt", &numbers("7\n"));
    lab.write("garbage.txt", &numbers("seven\n"));
    lab.write("large.txt", &numbers("9223372036854775808\n"));
    let negative = garlic_data::Ids::new(vec![-1; MORE], 1).unwrap();
    garlic_data::write_npy_i64(lab.path("negative.npy"), &negative).unwrap();
    let file = std::fs::read(lab.path("many.garlic")).unwrap();
    for index in ["many.garlic", "live"] {
        let add = |ids: &str, more: &[&str]| {
            let base = ["add", index, "more.npy", "--batch", "100", "--ids", ids];
            lab.run(&[&base[..], more].concat())
        };
        add("short.txt", &[]).expect_error(3, &["short.txt", "499", "500", "one identifier"]);
        add("twice.txt", &[]).expect_error(3, &["9000 comes twice"]);
        add("taken.txt", &[]).expect_error(3, &[index, "7 is there already"]);
        add("taken.txt", &["--update"]).expect_error(3, &[index, "no point", "9000"]);
        add("garbage.txt", &[]).expect_error(3, &["garbage.txt", "line 500", "seven"]);
        add("large.txt", &[]).expect_error(3, &["large.txt", "line 500", "2^63"]);
        add("negative.npy", &[]).expect_error(3, &["negative.npy", "row 0", "-1"]);
        add("missing.txt", &[]).expect_error(3, &["missing.txt"]);
        lab.run(&["remove", index, "--ids", "garbage.txt"])
            .expect_error(3, &["garbage.txt", "line 500"]);
        lab.run(&["remove", index, "x"])
            .expect_error(2, &["`x`", "whole number"]);
        lab.run(&["remove", index]).expect_error(2, &["--ids"]);
        lab.run(&["add", index, "more.npy", "--update"])
            .expect_error(2, &["--ids"]);
        lab.run(&["add", index, "points.npy"])
            .expect_error(3, &["points.npy", "dimension 6", "8"]);
        lab.run(&["add", index, "nothing.npy"])
            .expect_error(3, &["nothing.npy"]);
    }
    for command in [
        &["add", "missing", "more.npy"][..],
        &["remove", "missing", "3"],
    ] {
        lab.run(command).expect_error(3, &["missing"]);
    }
    assert_eq!(std::fs::read(lab.path("many.garlic")).unwrap(), file);
    let about = &lab.run(&["inspect", "live", "--json"]).expect(0).json()[0];
    assert_eq!(about["directory"]["log_bytes"], 32);
}

#[test]
fn a_vector_that_is_refused_is_counted_from_the_beginning_of_its_file() {
    let lab = Lab::with_live_index();
    for (index, live) in [("cosine.garlic", None), ("cosine", Some("--live"))] {
        let build = ["build", "many.npy", "-o", index, "--metric", "cosine", "-q"];
        let args: Vec<&str> = build.into_iter().chain(live).collect();
        lab.run(&args).expect(0);
        let mut values = clusters(MORE, WIDE, 9);
        values[WIDE * 420..WIDE * 421].fill(0.0);
        garlic_data::write_npy_f32(lab.path("zero.npy"), &values, WIDE).unwrap();
        let so_far = match live {
            None => "nothing was written",
            Some(_) => "the first 400 of 500 vectors are in the index",
        };
        lab.run(&["add", index, "zero.npy", "--batch", "100"])
            .expect_error(3, &[so_far, "vector 420 is zero"]);
        let about = &lab.run(&["inspect", index, "--json"]).expect(0).json()[0];
        let expected = MANY + if live.is_some() { 400 } else { 0 };
        assert_eq!(about["points"], expected);
    }
}

#[test]
fn the_published_method_keeps_a_point_and_has_no_directory() {
    let lab = Lab::with_index();
    let before = std::fs::read(lab.path("points.garlic")).unwrap();
    let all: String = (0..POINTS).map(|i| format!("{i}\n")).collect();
    lab.write("all.txt", &all);
    lab.run(&["remove", "points.garlic", "--ids", "all.txt"])
        .expect_error(3, &["points.garlic", "all points"]);
    lab.run(&["convert", "points.garlic", "place", "--live"])
        .expect_error(3, &["default preset"]);
    lab.run(&["compact", "points.garlic"])
        .expect_error(3, &["points.garlic", "default preset"]);
    assert_eq!(std::fs::read(lab.path("points.garlic")).unwrap(), before);
    assert!(!lab.path("place").exists());
}

#[test]
fn one_writer_at_a_time_and_readers_meanwhile() {
    let lab = Lab::with_live_index();
    let held = Live::open(lab.path("live")).unwrap();
    lab.run(&["add", "live", "more.npy"])
        .expect_error(1, &["live", "another writer"]);
    lab.run(&["remove", "live", "3"])
        .expect_error(1, &["another writer"]);
    lab.run(&["compact", "live"])
        .expect_error(1, &["another writer"]);
    held.remove(&[3]).unwrap();
    for command in ["verify", "inspect"] {
        lab.run(&[command, "live"]).expect(0);
    }
    let about = &lab.run(&["inspect", "live", "--json"]).expect(0).json()[0];
    assert_eq!(about["points"], MANY - 1);
    drop(held);
    lab.run(&["add", "live", "more.npy", "-q"]).expect(0);
}

#[test]
fn damage_is_named_and_never_written_again() {
    let lab = Lab::with_live_index();
    lab.run(&["add", "live", "more.npy", "--batch", "100", "-q"])
        .expect(0);
    // In the first of five records, the later ones of which prove that it had been acknowledged.
    let log = lab.path("live/log-1");
    let sound = std::fs::read(&log).unwrap();
    let mut bytes = sound.clone();
    bytes[100] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    for command in [
        &["verify", "live"][..],
        &["inspect", "live"],
        &["compact", "live"],
        &["remove", "live", "3"],
        &["add", "live", "more.npy"],
        &["convert", "live", "x.garlic"],
        &["search", "live", "asked.fvecs", "-o", "x.csv"],
        &["eval", "live", "many.npy", "--query-file", "asked.fvecs"],
    ] {
        lab.run(command)
            .expect_error(3, &["log-1", "damaged at byte 32"]);
    }
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
    std::fs::write(&log, &sound).unwrap();

    // A flipped bit of a vector: a mapped index does not see it, whoever writes it again has to.
    for (file, commands) in [
        (
            "many.garlic",
            &[
                &["verify", "many.garlic"][..],
                &["add", "many.garlic", "more.npy"],
                &["remove", "many.garlic", "3"],
                &["compact", "many.garlic"],
                &["convert", "many.garlic", "x", "--live"],
            ][..],
        ),
        (
            "live/index-1.garlic",
            &[
                &["verify", "live"],
                &["compact", "live"],
                &["convert", "live", "x.garlic"],
            ],
        ),
    ] {
        let mut bytes = std::fs::read(lab.path(file)).unwrap();
        let at = bytes.len() - MANY * 8 - 1000;
        bytes[at] ^= 1;
        std::fs::write(lab.path(file), &bytes).unwrap();
        for command in commands {
            lab.run(command).expect_error(3, &[file, "VECTORS"]);
        }
        assert_eq!(std::fs::read(lab.path(file)).unwrap(), bytes);
    }
    assert!(!lab.path("x").exists() && !lab.path("x.garlic").exists());
}

/// A name in it that is wrong is found by its checksum, even when there are files of that name.
#[test]
fn a_damaged_current_is_named_by_every_command() {
    let lab = Lab::with_live_index();
    let current = lab.path("live/CURRENT");
    let sound = std::fs::read_to_string(&current).unwrap();
    for name in ["index-1.garlic", "log-1"] {
        let other = name.replace('1', "2");
        std::fs::copy(lab.path("live").join(name), lab.path("live").join(other)).unwrap();
    }
    for (damaged, why) in [
        (
            sound.replace("generation 1", "generation 2"),
            "checksum is wrong",
        ),
        (
            sound.replace("checksum ", "checksum 1"),
            "checksum is wrong",
        ),
        (sound.clone() + "\n", "checksum is wrong"),
        ("GARLIC directory 1\n".to_owned(), "checksum is wrong"),
        (
            sound.replace("directory 1", "directory 2"),
            "directory version 2",
        ),
        (String::new(), "does not name a generation"),
    ] {
        std::fs::write(&current, &damaged).unwrap();
        for command in [
            &["verify", "live"][..],
            &["inspect", "live"],
            &["compact", "live"],
            &["remove", "live", "3"],
            &["add", "live", "more.npy"],
            &["convert", "live", "x.garlic"],
            &["search", "live", "asked.fvecs", "-o", "x.csv"],
            &["eval", "live", "many.npy", "--query-file", "asked.fvecs"],
        ] {
            lab.run(command).expect_error(3, &["CURRENT", why]);
        }
        lab.run(&["build", "many.npy", "-o", "live", "--live", "-q"])
            .expect_error(1, &["live", "index directory already"]);
        assert_eq!(std::fs::read_to_string(&current).unwrap(), damaged);
    }
    assert!(!lab.path("x.garlic").exists() && !lab.path("x.csv").exists());
    std::fs::write(&current, &sound).unwrap();
    lab.run(&["verify", "live"]).expect(0);
}

/// A limit on the size of files acts like a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_index() {
    let lab = Lab::with_live_index();
    let file = std::fs::read(lab.path("many.garlic")).unwrap();
    for (change, named) in [
        ("add many.garlic more.npy", "many.garlic"),
        ("remove many.garlic 3", "many.garlic"),
        ("add live more.npy", "log-1"),
        ("compact live", "index-2.garlic"),
        ("convert live copy --live", "copy"),
    ] {
        let program = env!("CARGO_BIN_EXE_garlic");
        let script = format!("trap '' XFSZ; ulimit -f 2; exec {program} {change}");
        let mut shell = std::process::Command::new("sh");
        let ran = common::finish(shell.args(["-c", &script]).current_dir(lab.folder()));
        ran.expect_error(1, &[named, "free some space"]);
        assert!(std::fs::read(lab.path("many.garlic")).unwrap() == file);
        let told = &lab.run(&["verify", "live", "--json"]).expect(0).json()[0];
        assert_eq!(told["directory"]["points"], MANY, "{change}");
    }
    assert!(!lab.path("copy/CURRENT").exists());
    for index in ["live", "many.garlic"] {
        lab.run(&["add", index, "more.npy", "-q"]).expect(0);
        assert_eq!(lab.nearest(index).1, 0.0);
    }
}

/// Ctrl-C between two batches.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_whole_batches_of_a_directory() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};

    let lab = Lab::with_live_index();
    let args = ["add", "live", "many.npy", "--batch", "1"];
    let mut command = common::command(args);
    let mut child = command
        .current_dir(lab.folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert_eq!(line, "garlic: adding\n");
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let mut told = String::new();
    errors.read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{told}");
    let about = &lab.run(&["inspect", "live", "--json"]).expect(0).json()[0];
    let added = about["points"].as_u64().unwrap() - MANY as u64;
    let expected = match added {
        0 => "nothing was written".to_owned(),
        added => format!("the first {added} of {MANY} vectors are in the index"),
    };
    assert!(told.contains(&expected), "{expected}: {told}");
}
