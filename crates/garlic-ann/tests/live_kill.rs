//! A process is killed at a random moment while it writes: acknowledged batches are there, no batch is there in part,
//! and a saved file is the old one or the new one.
//!
//! The test starts its own program again, with the environment telling it to be the victim. `GARLIC_KILLS` sets how
//! often each kind of victim is killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, fs, io, thread};

use garlic_ann::live::Options;
use garlic_ann::{Index, Live, Rows};
use garlic_linalg::{random_stream, uniform_unit};

const ROLE: &str = "GARLIC_KILL_ROLE";
const PLACE: &str = "GARLIC_KILL_PLACE";
const FROM: &str = "GARLIC_KILL_FROM";

const DIM: usize = 3;

/// One kind of victim at a time. A process that is being started has the files of its parent until it runs its own
/// program, also the lock of a directory that the other test has opened and closed meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kills() -> usize {
    let set = env::var("GARLIC_KILLS").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(25)
}

fn vector(id: u64, version: u64) -> [f32; DIM] {
    let at = |factor: u64| ((id * factor + 7) % 31) as f32;
    [at(3) + version as f32, at(11), at(17)]
}

type State = BTreeMap<u64, [f32; DIM]>;

/// The batch of a number: points come in pairs, one of each pair is updated, and pairs go some batches later.
enum Batch {
    Add([u64; 2]),
    Update(u64),
    Remove([u64; 2]),
}

fn batch(number: u64) -> Batch {
    let pair = |of: u64| [1000 + 2 * of, 1001 + 2 * of];
    let of = number / 3;
    match number % 3 {
        0 => Batch::Add(pair(of)),
        1 => Batch::Update(pair(of)[0]),
        _ => Batch::Remove(pair(of.saturating_sub(4))),
    }
}

fn apply(live: &Live, number: u64) -> garlic_ann::Result<()> {
    match batch(number) {
        Batch::Add(ids) => {
            let data = ids.map(|id| vector(id, number)).concat();
            live.add(Rows::new(&data, DIM)?, &ids)
        }
        Batch::Update(id) => live.update(Rows::new(&vector(id, number), DIM)?, &[id]),
        Batch::Remove(ids) => live.remove(&ids).map(|_| ()),
    }
}

fn model(state: &mut State, number: u64) {
    match batch(number) {
        Batch::Add(ids) => state.extend(ids.map(|id| (id, vector(id, number)))),
        Batch::Update(id) => {
            state.insert(id, vector(id, number));
        }
        Batch::Remove(ids) => state.retain(|id, _| !ids.contains(id)),
    }
}

fn holds(index: &Index, state: &State) -> bool {
    let same = |(id, vector): (&u64, &[f32; DIM])| index.get(*id).is_some_and(|v| v == vector);
    index.len() == state.len() && state.iter().all(same)
}

fn options() -> Options {
    Options::new().log_limit(800)
}

/// What the victim does; nothing in an ordinary run.
#[test]
fn victim() {
    let Ok(role) = env::var(ROLE) else {
        return;
    };
    let place = env::var(PLACE).unwrap();
    let place = Path::new(&place);
    let from: u64 = env::var(FROM).unwrap().parse().unwrap();
    let mut out = io::stdout();
    writeln!(out).unwrap();
    match role.as_str() {
        "log" => {
            let live = options().open(place.join("live")).unwrap();
            for number in from.. {
                apply(&live, number).unwrap();
                writeln!(out, "done {number}").unwrap();
            }
        }
        "save" => {
            let indexes: Vec<Index> = (0..3)
                .map(|i| Index::open(place.join(format!("{i}.garlic"))).unwrap())
                .collect();
            for number in from.. {
                let index = &indexes[(number % 3) as usize];
                index.save(place.join("target").join("saved")).unwrap();
                writeln!(out, "done {number}").unwrap();
            }
        }
        other => panic!("{other}"),
    }
}

/// Starts a victim and kills it some time after it has reported `reports` times; returns its last report.
fn kill_one(role: &str, place: &Path, from: u64, reports: u64, wait: Duration) -> Option<u64> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["victim", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(PLACE, place)
        .env(FROM, from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut last = None;
    let mut report = || {
        let mut line = String::new();
        loop {
            line.clear();
            // A line without its end was not reported.
            if output.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
                return false;
            }
            if let Some(number) = line.trim_end().strip_prefix("done ") {
                last = Some(number.parse().unwrap());
                return true;
            }
        }
    };
    for _ in 0..reports {
        if !report() {
            break;
        }
    }
    thread::sleep(wait);
    child.kill().unwrap();
    while report() {}
    let end = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&end.stderr);
    assert!(error.is_empty() && !end.status.success(), "{error}");
    last
}

/// When to kill: after a few reports and a part of what the next one takes, or before the first one.
fn moments(seed: u64) -> impl Iterator<Item = (u64, Duration)> {
    let mut rng = random_stream(seed, 0);
    std::iter::repeat_with(move || {
        let reports = (uniform_unit(&mut rng) * 8.0) as u64;
        let most = if reports == 0 { 20_000.0 } else { 3_000.0 };
        let wait = Duration::from_micros((uniform_unit(&mut rng) * most) as u64);
        (reports, wait)
    })
}

#[test]
fn a_killed_writer_leaves_every_acknowledged_batch_and_no_part_of_one() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let data: Vec<f32> = (0..12).flat_map(|id| vector(id, 0)).collect();
    let builder = Index::builder().threads(1);
    let builder = builder.set("store", "f32").unwrap();
    let index = builder.build(Rows::new(&data, DIM).unwrap()).unwrap();
    let mut state: State = (0..12).map(|id| (id, vector(id, 0))).collect();
    drop(options().create(&path, index).unwrap());

    let (mut next, mut in_flight) = (0, 0);
    for (reports, wait) in moments(1).take(kills()) {
        let last = kill_one("log", place.path(), next, reports, wait);
        let acknowledged = last.map_or(next, |number| number + 1);
        for number in next..acknowledged {
            model(&mut state, number);
        }
        next = acknowledged;
        let mut newer = state.clone();
        model(&mut newer, next);

        let found = Live::open_read_only(&path).unwrap().snapshot();
        if !holds(&found, &state) {
            assert!(holds(&found, &newer), "after batch {next}");
            state = newer;
            next += 1;
            in_flight += 1;
        }
        let live = options().open(&path).unwrap();
        assert!(holds(&live.snapshot(), &state), "after batch {next}");
        drop(live);
        let files = fs::read_dir(&path).unwrap().count();
        assert_eq!(files, 4, "leftovers are cleaned");
    }
    assert!(
        next > kills() as u64,
        "{next} batches, {in_flight} of them found unreported"
    );
}

#[test]
fn a_killed_save_leaves_the_old_file_or_the_new_one() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for i in 0..3 {
        let data: Vec<f32> = (0..2000).flat_map(|id| vector(id, i * 50)).collect();
        let index = Index::builder()
            .build(Rows::new(&data, DIM).unwrap())
            .unwrap();
        let path = place.path().join(format!("{i}.garlic"));
        index.save(&path).unwrap();
        files.push(fs::read(path).unwrap());
    }
    let target = place.path().join("target");
    fs::create_dir(&target).unwrap();
    let saved = target.join("saved");
    fs::write(&saved, &files[0]).unwrap();

    let mut next = 1;
    for (reports, wait) in moments(2).take(kills()) {
        let last = kill_one("save", place.path(), next, reports, wait);
        next = last.map_or(next, |number| number + 1);
        let found = fs::read(&saved).unwrap();
        let of = |number: u64| &files[(number % 3) as usize];
        if found != *of(next - 1) {
            assert!(found == *of(next), "neither save {} nor the next", next - 1);
            next += 1;
        }
        Index::open(&saved).unwrap();
        for entry in fs::read_dir(&target).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name != "saved" {
                assert!(
                    name.starts_with(".saved.") && name.ends_with(".tmp"),
                    "{name}"
                );
                fs::remove_file(target.join(name)).unwrap();
            }
        }
    }
    assert!(next > kills() as u64, "{next} saves");
}
