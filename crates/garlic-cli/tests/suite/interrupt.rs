//! Ctrl-C: every command ends soon, with the documented exit code, and leaves whole files behind.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Lab, MANY, WIDE, clusters};

/// Starts the program, waits until it is at work, and presses Ctrl-C. Gives what it said and how it ended.
fn interrupt(lab: &Lab, args: &[&str], after: Duration) -> (String, Option<i32>) {
    let mut child: Child = crate::common::command(args)
        .current_dir(lab.folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    assert!(
        child.try_wait().unwrap().is_none(),
        "{args:?} has ended by itself"
    );
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let pressed = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(pressed.elapsed() < Duration::from_secs(2), "{args:?}");
    assert!(output.stdout.is_empty());
    let told = String::from_utf8(output.stderr).unwrap();
    (told, output.status.code())
}

/// Minutes of work, were it not for the signal.
#[test]
fn long_searches_end() {
    let lab = Lab::with_default_index();
    let queries = clusters(10_000, WIDE, 5).repeat(300);
    garlic_data::write_npy_f32(lab.path("long.npy"), &queries, WIDE).unwrap();
    for how in [&["--exact"][..], &["--radius", "5"], &["--recall", "0.99"]] {
        let search = [
            "search",
            "many.garlic",
            "long.npy",
            "-o",
            "hits.npy",
            "--threads",
            "1",
        ];
        let (told, code) = interrupt(&lab, &[&search, how].concat(), Duration::from_secs(1));
        assert_eq!(code, Some(130), "{told}");
        assert!(told.contains("cancelled; nothing was written"), "{told}");
        assert!(!lab.path("hits.npy").exists());
    }
}

#[test]
fn long_changes_end() {
    let lab = Lab::with_default_index();
    let many = clusters(60_000, 64, 7);
    garlic_data::write_npy_f32(lab.path("large.npy"), &many, 64).unwrap();
    lab.run(&[
        "build",
        "--empty",
        "--dim",
        "64",
        "-o",
        "large.garlic",
        "-q",
    ])
    .expect(0);
    let before = std::fs::read(lab.path("large.garlic")).unwrap();
    // One batch, which the index is trained with.
    let add = ["add", "large.garlic", "large.npy", "--batch", "60000"];
    let (told, code) = interrupt(&lab, &add, Duration::from_millis(700));
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("cancelled; nothing was written"), "{told}");
    assert_eq!(std::fs::read(lab.path("large.garlic")).unwrap(), before);
    assert!(
        lab.names().iter().all(|name| !name.starts_with('.')),
        "{:?}",
        lab.names()
    );
    let about = &lab
        .run(&["inspect", "many.garlic", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(about["points"], MANY);
}
