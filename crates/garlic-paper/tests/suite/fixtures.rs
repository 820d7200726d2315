//! Files of every released format version stay readable and give the answers they gave.
//!
//! `GARLIC_WRITE_FIXTURES=1` writes those of the current version, and their answers, where they are missing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::{env, fs};

use crate::common::{build, config, search_all, small};
use garlic_core::file::{FORMAT_VERSION, SUPPORTED_VERSIONS};
use garlic_paper::{Filter, GaussianIndex, Hit, RangeSearch, Rows, Search};
use serde::{Deserialize, Serialize};

/// The first file, older than some keys of the configuration; its answers are those of [`search_all`].
const FIRST: &str = "published";
/// The others, by the structure of their covariances.
const OTHERS: [&str; 3] = ["full", "diagonal", "isotropic"];

/// Answers of one sort, one for every query: identifiers and distances.
type Answers = Vec<Vec<(u64, f32)>>;

/// What an index told when it was made.
#[derive(Serialize, Deserialize)]
struct Told {
    len: usize,
    answers: BTreeMap<String, Answers>,
}

/// Points in five slanted clumps that overlap, so that searches of a few cells miss some.
fn slanted(rows: Range<usize>, dim: usize) -> Vec<f32> {
    let scatter = |n: usize| (n as u32).wrapping_mul(2_654_435_761) >> 16;
    let value = move |row: usize, axis: usize| {
        let clump = scatter(1 + row % 5 * dim + axis) % 96;
        let along = scatter(500 + row) % 90;
        (clump + along + scatter(1000 + row * dim + axis) % 70) as f32
    };
    rows.flat_map(|row| (0..dim).map(move |axis| value(row, axis)))
        .collect()
}

/// The same on both sides of zero.
fn shifted(rows: Range<usize>, dim: usize) -> Vec<f32> {
    slanted(rows, dim).iter().map(|v| v / 3.0 - 30.1).collect()
}

/// Near both sorts of points, and far away from all.
fn queries(dim: usize) -> Vec<f32> {
    let near = slanted(9000..9003, dim).into_iter().map(|v| v + 0.375);
    let far = (0..dim).map(|axis| 700.25 - 400.0 * axis as f32);
    let shifted = shifted(9003..9005, dim).into_iter();
    near.chain(shifted).chain(far).collect()
}

/// The index of a file, made anew.
fn make(covariance: &str) -> GaussianIndex {
    let settings = [
        ("seed", "3"),
        ("covariance", covariance),
        ("initial_cells", "3"),
        ("epochs", "12"),
        ("warmup_epochs", "2"),
        ("refine_every", "2"),
        ("refine_quiet", "2"),
        ("split_threshold", "0.3"),
        ("max_cells", "6"),
        // Fast, so that shapes get away from the round ones they begin with.
        ("mean_rate", "[0.01, 0.05, 0.01]"),
        ("factor_rate", "[0.01, 0.1, 0.05]"),
        ("batch", "10"),
        ("rank", "2"),
        // What was done when the files were made.
        ("rotate", "true"),
        ("anchor_points", "nearest"),
        ("clone_sample_most", "1000"),
        ("bin_budget", "occupied"),
    ];
    build(config(&settings), &shifted(0..60, 3), 3)
}

fn fixture(version: u32, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}-{name}"))
}

fn is_set(variable: &str, to: &str) -> bool {
    env::var(variable).is_ok_and(|value| value == to)
}

fn pairs(hits: Vec<Hit>) -> Vec<(u64, f32)> {
    hits.iter().map(|hit| (hit.id, hit.distance)).collect()
}

fn tell(index: &GaussianIndex) -> Told {
    let filter = Filter::predicate(|id| id % 3 != 0);
    let exact = Search::new(5).exact(true);
    let searches = [
        ("exact", exact.clone()),
        ("one cell", Search::new(10).probes(1).bins(0.3)),
        ("two cells", Search::new(10).probes(2).bins(0.5)),
        ("filter", Search::new(5).filter(filter.clone())),
        ("filter, exact", exact.filter(filter.clone())),
        (
            "filter, two cells",
            Search::new(5).probes(2).filter(filter.clone()),
        ),
    ];
    let range = RangeSearch::new(35.0);
    let ranges = [
        ("range, filter", range.clone().filter(filter)),
        ("range, recall 0.9", range.clone().recall(0.9)),
        ("range", range),
    ];
    let (mut answers, values) = (BTreeMap::new(), queries(index.dim()));
    let queries = Rows::new(&values, index.dim()).unwrap();
    for (name, search) in searches {
        let answer = |query| pairs(index.search(query, &search).unwrap().hits);
        answers.insert(name.to_owned(), queries.iter().map(answer).collect());
    }
    for (name, range) in ranges {
        let answer = |query| pairs(index.range(query, &range).unwrap().hits);
        answers.insert(name.to_owned(), queries.iter().map(answer).collect());
    }
    let len = index.len();
    Told { len, answers }
}

fn first_answers(index: &GaussianIndex) -> Answers {
    search_all(index).into_iter().map(pairs).collect()
}

/// Writes what is missing, once, before any test looks.
fn prepare() {
    static WRITTEN: Once = Once::new();
    if is_set("GARLIC_WRITE_FIXTURES", "1") {
        // Only these kernels give bytes that can be made again.
        assert!(is_set("GARLIC_SIMD", "scalar"), "set GARLIC_SIMD=scalar");
        WRITTEN.call_once(write_missing);
    }
}

fn write_missing() {
    for name in [FIRST].into_iter().chain(OTHERS) {
        let path = fixture(FORMAT_VERSION, &format!("{name}.index"));
        let is_first = name == FIRST;
        if !path.exists() {
            let index = if is_first { small() } else { make(name) };
            index.save(&path).unwrap();
        }
        let index = GaussianIndex::load(&path).unwrap();
        let text = match is_first {
            true => serde_json::to_string(&first_answers(&index)),
            false => serde_json::to_string(&tell(&index)),
        };
        let path = path.with_extension("json");
        if !path.exists() {
            fs::write(path, text.unwrap() + "\n").unwrap();
        }
    }
}

fn assert_same(found: &Answers, expected: &Answers, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let ids =
            |answer: &[(u64, f32)]| -> Vec<u64> { answer.iter().map(|(id, _)| *id).collect() };
        assert_eq!(ids(found), ids(expected), "{what}");
        for ((_, found), (_, expected)) in found.iter().zip(expected) {
            let apart = (found - expected).abs();
            assert!(apart <= 1e-5 * expected.abs(), "{what}: {found} {expected}");
        }
    }
}

/// The index tells what it told then, and that was enough to tell it from others.
fn assert_told(index: &GaussianIndex, version: u32, name: &str) {
    let text = fs::read(fixture(version, &format!("{name}.json"))).unwrap();
    let expected: Told = serde_json::from_slice(&text).unwrap();
    assert_eq!((expected.answers.len(), expected.len), (9, 60), "{name}");
    for answer in &expected.answers["exact"] {
        assert_eq!(answer.len(), 5, "{name}");
    }
    let in_range = expected.answers["range"].iter().map(Vec::len);
    assert!(in_range.sum::<usize>() > 0, "{name}");

    let found = tell(index);
    assert_eq!(found.len, expected.len, "{name}");
    assert!(found.answers.keys().eq(expected.answers.keys()), "{name}");
    for (sort, answers) in &expected.answers {
        assert_eq!(answers.len(), 6, "{name}: {sort}");
        let what = format!("{sort} of {name}, version {version}");
        assert_same(&found.answers[sort], answers, &what);
    }
}

/// Verifies a file, and opens it in both ways.
fn read(version: u32, name: &str) -> [GaussianIndex; 2] {
    let path = fixture(version, &format!("{name}.index"));
    let summary = GaussianIndex::verify(&path).unwrap();
    assert_eq!(summary.version, version);
    let opened = GaussianIndex::open(&path).unwrap();
    [opened, GaussianIndex::load(&path).unwrap()]
}

#[test]
fn old_files_are_read_and_answer_as_they_did() {
    prepare();
    for version in SUPPORTED_VERSIONS {
        for index in read(version, FIRST) {
            let text = fs::read(fixture(version, &format!("{FIRST}.json"))).unwrap();
            let expected: Answers = serde_json::from_slice(&text).unwrap();
            assert_eq!(expected.len(), 20);
            assert_same(&first_answers(&index), &expected, FIRST);
        }
        for name in OTHERS {
            for index in read(version, name) {
                assert_told(&index, version, name);
                assert!(
                    index
                        .history()
                        .epochs
                        .iter()
                        .any(|e| e.refinement.is_some())
                );
                if version == FORMAT_VERSION {
                    let path = fixture(version, &format!("{name}.index"));
                    assert!(
                        index.to_bytes().unwrap() == fs::read(path).unwrap(),
                        "{name}"
                    );
                }
            }
        }
    }
}

/// The matrix library chooses its own instructions, whatever our kernels do: the files were made with its widest ones.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn same_processor() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn same_processor() -> bool {
    false
}

#[test]
fn scalar_kernels_make_the_same_again() {
    prepare();
    if !same_processor() {
        return;
    }
    if !is_set("GARLIC_SIMD", "scalar") {
        // A process chooses its kernels once.
        let ran = Command::new(env::current_exe().unwrap())
            .args(["fixtures::scalar_kernels_make_the_same_again", "--exact"])
            .env("GARLIC_SIMD", "scalar")
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && out.contains("1 passed"), "{out}");
        return;
    }
    let file = fs::read(fixture(FORMAT_VERSION, "full.index")).unwrap();
    assert!(make("full").to_bytes().unwrap() == file);
    // Distances to these cells are summed in another order since, so that the last bits of the models differ.
    for name in ["diagonal", "isotropic"] {
        assert_told(&make(name), FORMAT_VERSION, name);
    }
}
