//! Exit codes of commands that are given a damaged or foreign index: always 3.

use std::path::Path;

use crate::common::Lab;
use garlic_ann::Index;

/// Makes the bins of the first cell end nowhere. `Index::open` does not see that, the first use does.
fn disorder(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let sections = Index::verify(path).unwrap().sections;
    let bins = sections.iter().find(|s| s.kind == "LEARNED").unwrap();
    let at = bins.offset as usize;
    let word = |number: usize| {
        let bytes = bytes[at + 8 * number..][..8].try_into().unwrap();
        u64::from_le_bytes(bytes) as usize
    };
    // The words are cells, axes, and the width of codes; then come origins and two arrays of steps.
    let arrays = [word(0) * word(1), word(0) * word(2), word(0) * word(2)];
    let end = arrays.iter().fold(40, |end: usize, values| {
        end.next_multiple_of(64) + 4 * values
    });
    let first_end = at + end.next_multiple_of(64) + 4;
    bytes[first_end..first_end + 4].fill(0xff);
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Every command that reads an index, for the index at `path`.
fn commands(path: &str) -> Vec<Vec<&str>> {
    [
        &["search", path, "asked.fvecs", "-o", "x.csv"][..],
        &["search", path, "asked.fvecs", "-o", "-", "--exact"],
        &["search", path, "asked.fvecs", "-o", "-", "--radius", "1"],
        &[
            "search",
            path,
            "asked.fvecs",
            "-o",
            "-",
            "--filter-ids",
            "few.txt",
        ],
        &["eval", path, "many.npy", "--query-file", "asked.fvecs"],
        &["inspect", path],
        &["inspect", path, "--json"],
        &["inspect", path, "--report", "x.html"],
        &["verify", path],
        &["add", path, "more.npy"],
        &["add", path, "more.npy", "--ids", "known.txt", "--update"],
        &["remove", path, "3"],
        &["compact", path],
        &["compact", path, "--recalibrate"],
        &["convert", path, "x.garlic"],
        &["convert", path, "x", "--live"],
    ]
    .map(<[&str]>::to_vec)
    .to_vec()
}

fn lab() -> Lab {
    let lab = Lab::with_live_index();
    lab.write("few.txt", "1\n2\n3\n");
    lab.write(
        "known.txt",
        &(0..crate::common::MORE)
            .map(|i| format!("{i}\n"))
            .collect::<String>(),
    );
    lab
}

#[test]
fn cells_and_bins_out_of_order_are_bad_input() {
    let lab = lab();
    disorder(&lab.path("many.garlic"));
    disorder(&lab.path("live/index-1.garlic"));
    let before = lab.names();
    for index in ["many.garlic", "live"] {
        for command in commands(index) {
            lab.run(&command).expect_error(3, &[]);
        }
        let partition = [
            "build",
            "many.npy",
            "-o",
            "x.garlic",
            "-q",
            "--partition",
            index,
        ];
        lab.run(&partition).expect_error(3, &[index]);
    }
    assert_eq!(lab.names(), before, "nothing was written");
    for index in ["many.garlic", "live"] {
        for command in [
            &["search", index, "asked.fvecs", "-o", "-"][..],
            &["inspect", index],
            &["remove", index, "3"],
        ] {
            lab.run(command).expect_error(3, &[index, "damaged"]);
        }
    }
}

#[test]
fn what_is_no_index_is_bad_input() {
    let lab = lab();
    let sound = std::fs::read(lab.path("many.garlic")).unwrap();
    let mut newer = sound.clone();
    newer[8] = 99;
    for (name, bytes) in [
        ("short.garlic", &sound[..sound.len() / 2]),
        ("empty.garlic", b""),
        ("text.garlic", &[b'x'; 5000]),
        ("newer.garlic", &newer),
    ] {
        std::fs::write(lab.path(name), bytes).unwrap();
        for command in commands(name) {
            // What does not begin as an index does is taken for a file of vectors to convert.
            if command[0] == "convert" && !bytes.starts_with(&sound[..8]) {
                continue;
            }
            lab.run(&command).expect_error(3, &[name]);
        }
    }
}

/// A disk that takes no more than a few kilobytes.
#[cfg(unix)]
#[test]
fn an_index_that_cannot_be_written_is_a_failure() {
    let lab = lab();
    let before = std::fs::read(lab.path("many.garlic")).unwrap();
    for args in ["compact many.garlic --recalibrate", "remove many.garlic 3"] {
        let limited = format!("trap '' XFSZ; ulimit -f 16; exec \"$0\" {args}");
        let mut command = std::process::Command::new("sh");
        let command = command.args(["-c", &limited, env!("CARGO_BIN_EXE_garlic")]);
        crate::common::finish(command.current_dir(lab.folder()))
            .expect_error(1, &["many.garlic", "not written"]);
    }
    assert_eq!(std::fs::read(lab.path("many.garlic")).unwrap(), before);
}
