//! A process is killed at a random moment while it changes points by name: acknowledged batches are there with their
//! names and columns, and no batch is there in part.
//!
//! The test starts its own program again, with the environment telling it to be the victim. `GARLIC_KILLS` sets how often
//! it is killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, io, thread};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use garlic_ann::live::Options;
use garlic_ann::{Config, Index, Rows};
use garlic_table::{Collection, Ids, Snapshot, check_table};

const PLACE: &str = "GARLIC_KILL_PLACE";
const FROM: &str = "GARLIC_KILL_FROM";
const DIM: usize = 3;

fn options() -> Options {
    // Most batches make a checkpoint, some stay in the log.
    Options::new().log_limit(5000)
}

/// Version of every point: its vector and its column both have it.
type Model = BTreeMap<String, u64>;

fn vector(name: &str, version: u64) -> [f32; DIM] {
    let sum: u32 = name.bytes().map(u32::from).sum();
    [version as f32, sum as f32, name.len() as f32]
}

/// The names that the batch of a number puts, and those that it removes.
fn batch(number: u64) -> (Vec<String>, Vec<String>) {
    let name = |of: u64| format!("p{}", of % 40);
    match number % 4 {
        3 => (Vec::new(), vec![name(number * 7), name(number * 11)]),
        _ => {
            let first = number * 13;
            (
                vec![name(first), name(first + 1), name(first + 5)],
                Vec::new(),
            )
        }
    }
}

fn model(model: &mut Model, number: u64) {
    let (put, gone) = batch(number);
    model.extend(put.into_iter().map(|name| (name, number)));
    model.retain(|name, _| !gone.contains(name));
}

fn apply(collection: &Collection, number: u64) -> garlic_ann::Result<()> {
    let (put, gone) = batch(number);
    if put.is_empty() {
        return collection.remove(&Ids::Names(gone)).map(|_| ());
    }
    let data: Vec<f32> = put.iter().flat_map(|name| vector(name, number)).collect();
    let version: ArrayRef = Arc::new(UInt64Array::from(vec![number; put.len()]));
    let columns = RecordBatch::try_from_iter([("version", version)]).unwrap();
    collection.upsert(Rows::new(&data, DIM)?, &Ids::Names(put), Some(&columns))
}

fn holds(snapshot: &Snapshot, model: &Model) -> bool {
    check_table(snapshot).unwrap();
    let names = Ids::names(model.keys().cloned());
    let numbers = snapshot.numbers(&names).unwrap();
    if snapshot.index().len() != model.len() || numbers.contains(&None) {
        return false;
    }
    let columns = snapshot.columns(&numbers, &["version".into()]).unwrap();
    let versions = columns.column(0).as_primitive::<UInt64Type>();
    model.iter().enumerate().all(|(at, (name, version))| {
        let stored = numbers[at].and_then(|number| snapshot.index().get(number));
        versions.value(at) == *version && stored.unwrap() == vector(name, *version)
    })
}

/// What the victim does; nothing in an ordinary run.
#[test]
fn victim() {
    let Ok(place) = env::var(PLACE) else {
        return;
    };
    let from: u64 = env::var(FROM).unwrap().parse().unwrap();
    let mut out = io::stdout();
    writeln!(out).unwrap();
    let collection = Collection::open(Path::new(&place), &options()).unwrap();
    for number in from.. {
        apply(&collection, number).unwrap();
        writeln!(out, "done {number}").unwrap();
    }
}

#[test]
fn a_killed_process_keeps_names_and_columns_with_their_vectors() {
    if env::var(PLACE).is_ok() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("live");
    let empty = Index::empty(DIM, Config::default()).unwrap().into();
    drop(Collection::create(&place, &empty, &options()).unwrap());
    let kills = env::var("GARLIC_KILLS").ok().and_then(|n| n.parse().ok());
    let (mut done, mut state) = (0, Model::new());
    for kill in 0..kills.unwrap_or(12_u64) {
        let mut victim = Command::new(env::current_exe().unwrap())
            .args(["victim", "--exact", "--nocapture", "--test-threads", "1"])
            .env(PLACE, &place)
            .env(FROM, done.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        // It has begun when the first batch is acknowledged.
        let number = |line: &str| line.strip_prefix("done ")?.parse::<u64>().ok();
        let mut acknowledged = lines.find_map(|line| number(&line.unwrap())).unwrap();
        thread::sleep(Duration::from_micros(kill * 2311 % 40_000));
        victim.kill().unwrap();
        victim.wait().unwrap();
        // The last line may be cut off.
        acknowledged = lines
            .map_while(Result::ok)
            .filter_map(|line| number(&line))
            .fold(acknowledged, u64::max);
        while done <= acknowledged {
            model(&mut state, done);
            done += 1;
        }
        let found = Collection::open(&place, &options())
            .unwrap()
            .snapshot()
            .unwrap();
        if !holds(&found, &state) {
            // One more batch may be there that was not acknowledged.
            model(&mut state, done);
            done += 1;
            assert!(holds(&found, &state), "after batch {done}, kill {kill}");
        }
    }
}
