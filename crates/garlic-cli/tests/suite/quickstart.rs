//! docs/guide/quickstart.md: its shell blocks run, its Rust blocks are lines of the example that is run as a test.
//! docs/guide/tuning.md: its defaults are those of the program.

use std::path::Path;

use crate::common::{Lab, clusters, finish};

const DIM: usize = 16;

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// The blocks of one language in a page, in their order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = read(page);
    let open = format!("```{language}\n");
    let blocks = page.split(&open).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

const PAGE: &str = "docs/guide/quickstart.md";

// Packages carry READMEs of their own, with links that work outside of the repository. `garlic-ann` tests its own block.
#[test]
fn readmes_of_packages_have_the_same_examples() {
    for (package, language) in [("garlic-ann", "rust"), ("garlic-cli", "sh")] {
        let own = blocks(&format!("crates/{package}/README.md"), language);
        assert_eq!(own, blocks("README.md", language), "{package}");
    }
}

#[test]
fn rust_blocks_are_lines_of_the_example() {
    fn trimmed(text: &str) -> Vec<&str> {
        text.lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect()
    }
    let example = read("crates/garlic-ann/examples/quickstart.rs");
    let example = trimmed(&example);
    let blocks = blocks(PAGE, "rust");
    assert_eq!(blocks.len(), 5);
    let mut from = 0;
    for block in &blocks {
        let wanted = trimmed(block);
        let found = example[from..]
            .windows(wanted.len())
            .position(|lines| lines == wanted);
        let at =
            found.unwrap_or_else(|| panic!("not in the example, or in another order:\n{block}"));
        from += at + wanted.len();
    }
}

#[test]
fn the_page_on_choosing_names_the_true_defaults() {
    let page = read("docs/guide/tuning.md");
    let config = Lab::new().run(&["config"]).expect(0).stdout;
    let default = |key: &str| {
        let line = config.lines().find(|l| l.starts_with(&format!("{key} = ")));
        line.map(|l| l.split(" = ").nth(1).unwrap().trim_matches('"').to_owned())
    };
    for key in [
        "recall",
        "metric",
        "store",
        "code_bits",
        "cells",
        "bin_size",
        "seed",
    ] {
        let told = page.split(&format!("**{key}** (")).nth(1).expect(key);
        let told = told.split([')', ':']).next().unwrap().trim_matches('`');
        assert_eq!(default(key).as_deref(), Some(told), "{key}");
    }
}

#[test]
#[cfg(unix)]
fn shell_blocks_run() {
    let lab = Lab::new();
    for (name, rows, seed) in [("vectors", 10_000, 1), ("more", 100, 2), ("queries", 20, 3)] {
        let file = lab.path(&format!("{name}.npy"));
        garlic_data::write_npy_f32(file, &clusters(rows, DIM, seed), DIM).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_garlic"));
    let path = std::env::join_paths(std::iter::once(program.parent().unwrap().to_owned()).chain(
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()),
    ))
    .unwrap();
    let blocks = blocks(PAGE, "sh");
    assert_eq!(blocks.len(), 5);
    for block in &blocks {
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-ec", block]).env("PATH", &path);
        finish(shell.current_dir(lab.folder())).expect(0);
    }

    // A header and ten neighbours of each query; the exact ones are nowhere farther.
    let distances = |name: &str| -> Vec<(u64, f64)> {
        let text = std::fs::read_to_string(lab.path(name)).unwrap();
        let entry = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[2].parse().unwrap(), cells[3].parse().unwrap())
        };
        text.lines().skip(1).map(entry).collect()
    };
    let (hits, exact, even) = (
        distances("hits.csv"),
        distances("exact.csv"),
        distances("even.csv"),
    );
    assert_eq!((hits.len(), exact.len(), even.len()), (200, 200, 200));
    assert!(hits.iter().zip(&exact).all(|(a, b)| a.1 >= b.1));
    let found = hits.iter().filter(|hit| exact.contains(hit)).count();
    assert!(found >= 180, "{found} of 200");
    assert!(even.iter().all(|hit| hit.0 % 2 == 0));
    let about = &lab
        .run(&["inspect", "vectors.garlic", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(about["points"], 10_098);
}
