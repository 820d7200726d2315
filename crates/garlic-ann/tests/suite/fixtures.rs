//! Files and directories of every released format version stay readable and give the answers they gave.
//!
//! `GARLIC_WRITE_FIXTURES=1` writes those of the current version, and their answers, where they are missing.

#[path = "../fixtures/recipes.rs"]
mod recipes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::{env, fs};

use garlic_ann::store::{FORMAT_VERSION, SUPPORTED_VERSIONS};
use garlic_ann::{Filter, Hit, Index, Live, Metric, RangeSearch, Rows, Search};
use recipes::{BUILT, DIRECTORIES, FIRST, REFINED, make, make_directory, queries};
use serde::{Deserialize, Serialize};

/// Answers of one sort, one for every query: identifiers and distances.
type Answers = Vec<Vec<(u64, f32)>>;

/// What an index told when it was made.
#[derive(Serialize, Deserialize)]
struct Told {
    len: usize,
    answers: BTreeMap<String, Answers>,
}

fn fixture(version: u32, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}-{name}"))
}

fn is_set(variable: &str, to: &str) -> bool {
    env::var(variable).is_ok_and(|value| value == to)
}

fn searches() -> Vec<(&'static str, Search)> {
    let filter = Filter::predicate(|id| id % 3 != 0);
    let filtered = || Search::new(5).filter(filter.clone());
    vec![
        ("exact", Search::new(5).exact(true)),
        ("one cell", Search::new(10).probes(1).bins(0.3)),
        ("two cells", Search::new(10).probes(2).bins(0.5)),
        ("filter", filtered()),
        ("filter, exact", filtered().exact(true)),
        ("filter, two cells", filtered().probes(2)),
        ("recall 0.9", Search::new(10).recall(0.9)),
        ("recall 0.99", Search::new(10).recall(0.99)),
        ("rerank", Search::new(10).probes(3).rerank(20)),
    ]
}

fn pairs(hits: Vec<Hit>) -> Vec<(u64, f32)> {
    hits.iter().map(|hit| (hit.id, hit.distance)).collect()
}

fn tell(index: &Index) -> Told {
    let (mut answers, values) = (BTreeMap::new(), queries(index.dim()));
    let queries = Rows::new(&values, index.dim()).unwrap();
    for (name, search) in searches() {
        let answer = |query| pairs(index.search(query, &search).unwrap().hits);
        answers.insert(name.to_owned(), queries.iter().map(answer).collect());
    }
    let range = RangeSearch::new(match index.metric() {
        Metric::Euclidean => 35.0,
        Metric::Cosine => 0.1,
        Metric::InnerProduct => -2000.0,
    });
    let filter = Filter::predicate(|id| id % 3 != 0);
    for (name, range) in [
        ("range, filter", range.clone().filter(filter)),
        ("range, recall 0.9", range.clone().recall(0.9)),
        ("range", range),
    ] {
        let answer = |query| pairs(index.range(query, &range).unwrap().hits);
        answers.insert(name.to_owned(), queries.iter().map(answer).collect());
    }
    let len = index.len();
    Told { len, answers }
}

fn first_answers(index: &Index) -> Answers {
    crate::testdata::small::search_all(index)
        .into_iter()
        .map(pairs)
        .collect()
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
    let put = |name: &str, text: serde_json::Result<String>| {
        let path = fixture(FORMAT_VERSION, &format!("{name}.json"));
        if !path.exists() {
            fs::write(path, text.unwrap() + "\n").unwrap();
        }
    };
    for name in [&FIRST[..], &BUILT].concat() {
        let path = fixture(FORMAT_VERSION, &format!("{name}.index"));
        if !path.exists() {
            make(name).save(&path).unwrap();
        }
        let index = Index::load(&path).unwrap();
        match FIRST.contains(&name) {
            true => put(name, serde_json::to_string(&first_answers(&index))),
            false => put(name, serde_json::to_string(&tell(&index))),
        }
    }
    for name in DIRECTORIES {
        let path = fixture(FORMAT_VERSION, name);
        if !path.exists() {
            make_directory(name, &path);
        }
        let live = Live::open_read_only(&path).unwrap();
        put(name, serde_json::to_string(&tell(&live.snapshot())));
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
fn assert_told(index: &Index, version: u32, name: &str) {
    let text = fs::read(fixture(version, &format!("{name}.json"))).unwrap();
    let expected: Told = serde_json::from_slice(&text).unwrap();
    assert_eq!(expected.answers.len(), 12, "{name}");
    for answer in &expected.answers["exact"] {
        assert_eq!(answer.len(), expected.len.min(5), "{name}");
    }
    let in_range = expected.answers["range"].iter().map(Vec::len);
    assert!(in_range.sum::<usize>() > 0 || expected.len == 0, "{name}");

    let found = tell(index);
    assert_eq!(found.len, expected.len, "{name}");
    assert!(found.answers.keys().eq(expected.answers.keys()), "{name}");
    for (sort, answers) in &expected.answers {
        assert_eq!(answers.len(), 6, "{name}: {sort}");
        let what = format!("{sort} of {name}, version {version}");
        assert_same(&found.answers[sort], answers, &what);
    }
}

#[test]
fn old_files_are_read_and_answer_as_they_did() {
    prepare();
    for version in SUPPORTED_VERSIONS {
        for name in [&FIRST[..], &BUILT, &[REFINED]].concat() {
            let path = fixture(version, &format!("{name}.index"));
            assert_eq!(Index::verify(&path).unwrap().version, version);
            for index in [Index::open(&path).unwrap(), Index::load(&path).unwrap()] {
                if FIRST.contains(&name) {
                    let text = fs::read(path.with_extension("json")).unwrap();
                    let expected: Answers = serde_json::from_slice(&text).unwrap();
                    assert_eq!(expected.len(), 28);
                    assert_same(&first_answers(&index), &expected, name);
                } else {
                    assert_told(&index, version, name);
                }
                // Below 4,096 points everything is read, whatever was measured.
                if index.len() > 4096 {
                    assert!(!index.reads_everything(10, 0.9), "{name}");
                }
                // The first ones were made before some of the settings that files keep.
                if version == FORMAT_VERSION && BUILT.contains(&name) {
                    assert!(
                        index.to_bytes().unwrap() == fs::read(&path).unwrap(),
                        "{name}"
                    );
                }
            }
        }
    }
}

/// The files of a directory and what is in them.
fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(path).unwrap().map(|file| {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        (name, fs::read(file.path()).unwrap())
    });
    files.collect()
}

#[test]
fn old_directories_are_opened_and_answer_as_they_did() {
    prepare();
    for version in SUPPORTED_VERSIONS {
        for name in DIRECTORIES {
            let place = tempfile::tempdir().unwrap();
            let files = contents(&fixture(version, name));
            for (file, bytes) in &files {
                fs::write(place.path().join(file), bytes).unwrap();
            }
            let live = Live::open_read_only(place.path()).unwrap();
            assert_told(&live.snapshot(), version, name);
            assert!(contents(place.path()) == files, "{name} was changed");

            let live = Live::open(place.path()).unwrap();
            assert_told(&live.snapshot(), version, name);
            let status = live.status().unwrap();
            let expected = match name {
                "live-changed" => (2, 6),
                "live-grown" => (1, 6),
                _ => (1, 0),
            };
            assert_eq!((status.generation, status.log_batches), expected);

            // It goes on from there.
            let (before, point) = (live.snapshot().len(), [1.5, 2.0, 3.0]);
            let rows = Rows::new(&point, 3).unwrap();
            live.add(rows, &[1 << 50]).unwrap();
            drop(live);
            let live = Live::open(place.path()).unwrap();
            live.checkpoint().unwrap();
            drop(live);
            let live = Live::open_read_only(place.path()).unwrap();
            assert_eq!(live.snapshot().len(), before + 1);
            let answer = live.search(&point, &Search::new(1).exact(true)).unwrap();
            assert_eq!(pairs(answer.hits), [(1 << 50, 0.0)]);
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
fn scalar_kernels_make_the_same_bytes_again() {
    prepare();
    if !same_processor() {
        return;
    }
    if !is_set("GARLIC_SIMD", "scalar") {
        // A process chooses its kernels once.
        let ran = Command::new(env::current_exe().unwrap())
            .args([
                "fixtures::scalar_kernels_make_the_same_bytes_again",
                "--exact",
            ])
            .env("GARLIC_SIMD", "scalar")
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && out.contains("1 passed"), "{out}");
        return;
    }
    let mut made = BTreeMap::new();
    for name in BUILT {
        made.insert(
            name.to_owned(),
            fingerprint(&make(name).to_bytes().unwrap()),
        );
    }
    for name in DIRECTORIES {
        let place = tempfile::tempdir().unwrap();
        make_directory(name, place.path());
        for (file, bytes) in contents(place.path()) {
            made.insert(format!("{name}/{file}"), fingerprint(&bytes));
        }
    }
    let path = fixture(FORMAT_VERSION, "rebuilt.json");
    if is_set("GARLIC_WRITE_FIXTURES", "1") && !path.exists() {
        fs::write(&path, serde_json::to_string_pretty(&made).unwrap() + "\n").unwrap();
    }
    let expected: BTreeMap<String, (usize, u64)> =
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(made, expected);
}

/// Length and hash (FNV-1a) of bytes.
fn fingerprint(bytes: &[u8]) -> (usize, u64) {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (bytes.len(), hash)
}
