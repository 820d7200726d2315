//! The folders of the library are a pipeline: each uses only those before it.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files of `src`, from the first to the last of the pipeline.
const LAYERS: [&str; 15] = [
    "config",
    "streams",
    "transform",
    "partition",
    "quantize",
    "bins",
    "graph",
    "plan",
    "segment",
    "search",
    "tune",
    "build",
    "update",
    "store",
    "live",
];

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

/// The layers that a source text names as `crate::NAME`, outside of comments and of tests.
fn layers_named(text: &str) -> Vec<String> {
    let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let code = text[..tests]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut named = Vec::new();
    for line in code {
        for rest in line.split("crate::").skip(1) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            match rest.strip_prefix('{') {
                // use crate::{a, b::c};
                Some(list) => named.extend(list.split(',').map(|part| {
                    let name = part.split("::").next().unwrap_or_default();
                    name.trim_matches([' ', '}', ';']).to_owned()
                })),
                None => named.push(rest[..end.unwrap_or(rest.len())].to_owned()),
            }
        }
    }
    named
}

/// What a file of the layer `own` uses that comes after it.
fn breaches(own: &str, text: &str) -> Vec<String> {
    let own = layer(own).expect("a layer");
    let after = |name: &String| layer(name).is_some_and(|other| other > own);
    layers_named(text).into_iter().filter(after).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn each_folder_uses_only_those_before_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = vec![0; LAYERS.len()];
    for path in sources(&root) {
        let inside = path.strip_prefix(&root).unwrap();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        let own = first.trim_end_matches(".rs");
        let is_test = inside
            .iter()
            .any(|part| part.to_string_lossy().starts_with("tests"));
        if own == "lib" || own == "testdata" || is_test {
            continue;
        }
        let number = layer(own).unwrap_or_else(|| panic!("{own} has no place in the pipeline"));
        seen[number] += 1;
        let found = breaches(own, &fs::read_to_string(&path).unwrap());
        assert!(found.is_empty(), "{} uses {found:?}", inside.display());
    }
    assert!(seen.iter().all(|files| *files > 0), "{seen:?}");
}

#[test]
fn a_breach_is_found() {
    let text = "use crate::search::Plan;\nuse crate::{live, bins::Bin};\n// crate::store\n";
    assert_eq!(breaches("segment", text), ["search", "live"]);
    assert_eq!(
        breaches("bins", "fn f() { crate::tune::check() }"),
        ["tune"]
    );
    assert!(breaches("live", text).is_empty());
}
