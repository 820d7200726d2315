//! Sixteen threads search, add, update, remove, save and make checkpoints at the same time.
//!
//! `GARLIC_STRESS_SECONDS` sets for how long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use garlic_ann::live::Options;
use garlic_ann::{Index, Live, Rows, Search};
use garlic_linalg::{random_stream, uniform_unit};

const DIM: usize = 4;
/// Points that stay.
const FIXED: u64 = 60;
const WRITERS: u64 = 3;
const SEARCHERS: u64 = 11;
/// Identifiers of one writer, used again and again.
const OWN: u64 = 40;
/// Points of one writer at any time, at most.
const MOST: usize = 24;
/// How much more memory the second half of a run may take than the first.
const GROWTH: u64 = 96 << 20;

fn seconds() -> f64 {
    let set = std::env::var("GARLIC_STRESS_SECONDS").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(2.0)
}

/// Numbers whose squared distances are exact in any order of the sum.
fn vector(draw: &mut impl FnMut() -> f64) -> [f32; DIM] {
    std::array::from_fn(|_| (draw() * 64.0).floor() as f32 / 2.0)
}

fn draws(task: u64) -> impl FnMut() -> f64 {
    let mut rng = random_stream(16, task);
    move || uniform_unit(&mut rng)
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f32>().sqrt()
}

/// Everything a snapshot holds.
fn content(index: &Index) -> BTreeMap<u64, Vec<f32>> {
    let content: BTreeMap<u64, Vec<f32>> = (0..FIXED + WRITERS * OWN)
        .filter_map(|id| Some((id, index.get(id)?)))
        .collect();
    assert_eq!(content.len(), index.len());
    content
}

/// Compares one exact search with all distances within the same snapshot.
fn check_search(index: &Index, query: &[f32], k: usize) {
    let answer = index.search(query, &Search::new(k).exact(true)).unwrap();
    let content = content(index);
    let mut all: Vec<f32> = content.values().map(|v| distance(query, v)).collect();
    all.sort_by(f32::total_cmp);
    let found: Vec<f32> = answer.hits.iter().map(|hit| hit.distance).collect();
    assert_eq!(found, all[..k.min(all.len())]);
    let mut seen = BTreeSet::new();
    for hit in &answer.hits {
        assert!(seen.insert(hit.id), "{} is there twice", hit.id);
        assert_eq!(distance(query, &content[&hit.id]), hit.distance);
    }
}

/// Adds, updates and removes points of its own, a few at a time; they are in pairs, so that half a batch shows.
fn write(live: &Live, writer: u64, going: &AtomicBool) -> u64 {
    let mut draw = draws(100 + writer);
    let mut there: VecDeque<[u64; 2]> = VecDeque::new();
    let mut free: VecDeque<[u64; 2]> = (0..OWN / 2)
        .map(|i| FIXED + writer * OWN + 2 * i)
        .map(|id| [id, id + 1])
        .collect();
    let mut batches = 0;
    while going.load(Ordering::Relaxed) {
        let data = [vector(&mut draw), vector(&mut draw)].concat();
        let rows = Rows::new(&data, DIM).unwrap();
        if there.len() * 2 >= MOST || (draw() < 0.3 && !there.is_empty()) {
            let pair = there.pop_front().unwrap();
            assert_eq!(live.remove(&pair).unwrap(), 2);
            assert!(!live.snapshot().contains(pair[0]));
            free.push_back(pair);
        } else if draw() < 0.3 && !there.is_empty() {
            let pair = there[(draw() * there.len() as f64) as usize];
            live.update(rows, &pair).unwrap();
            assert_eq!(live.snapshot().get(pair[1]).unwrap(), data[DIM..]);
        } else {
            let pair = free.pop_front().unwrap();
            live.add(rows, &pair).unwrap();
            assert_eq!(live.snapshot().get(pair[0]).unwrap(), data[..DIM]);
            there.push_back(pair);
        }
        batches += 1;
    }
    batches
}

fn search(live: &Live, searcher: u64, going: &AtomicBool) -> u64 {
    let mut draw = draws(200 + searcher);
    let mut searches = 0;
    while going.load(Ordering::Relaxed) {
        let snapshot = live.snapshot();
        for pair in (FIXED..FIXED + WRITERS * OWN).step_by(2) {
            let both = [pair, pair + 1].map(|id| snapshot.contains(id));
            assert_eq!(both[0], both[1], "a part of a batch");
        }
        check_search(&snapshot, &vector(&mut draw), 1 + (draw() * 12.0) as usize);
        let query = vector(&mut draw);
        let hits = live
            .search(&query, &Search::new(3).recall(0.9))
            .unwrap()
            .hits;
        assert_eq!(hits.len(), 3);
        searches += 1;
    }
    searches
}

/// Bytes of memory in use, where the system tells.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

#[test]
fn many_threads_see_whole_snapshots_only() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let mut draw = draws(0);
    let data: Vec<f32> = (0..FIXED).flat_map(|_| vector(&mut draw)).collect();
    let index = Index::builder()
        .build(Rows::new(&data, DIM).unwrap())
        .unwrap();
    let live = Options::new()
        .log_limit(20_000)
        .create(&path, index)
        .unwrap();

    let going = AtomicBool::new(true);
    let (batches, searches, saves) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let memory = Mutex::new([0, 0]);
    let length = Duration::from_secs_f64(seconds());
    let start = Instant::now();
    thread::scope(|scope| {
        let (live, going, path) = (&live, &going, &path);
        let (batches, searches, saves, memory) = (&batches, &searches, &saves, &memory);
        for writer in 0..WRITERS {
            scope.spawn(move || batches.fetch_add(write(live, writer, going), Ordering::Relaxed));
        }
        for searcher in 0..SEARCHERS {
            scope.spawn(move || {
                searches.fetch_add(search(live, searcher, going), Ordering::Relaxed)
            });
        }
        scope.spawn(move || {
            let file = path.with_extension("saved");
            while going.load(Ordering::Relaxed) {
                let snapshot = live.snapshot();
                snapshot.save(&file).unwrap();
                let saved = Index::open(&file).unwrap();
                assert_eq!(content(&saved), content(&snapshot));
                saves.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(move || {
            while going.load(Ordering::Relaxed) {
                match saves.load(Ordering::Relaxed) % 3 {
                    0 => live.checkpoint().unwrap(),
                    1 => live.compact().unwrap(),
                    _ => drop(content(&Live::open_read_only(path).unwrap().snapshot())),
                }
            }
        });
        while start.elapsed() < length {
            thread::sleep(Duration::from_millis(20));
            let half = usize::from(start.elapsed() > length / 2);
            let mut memory = memory.lock().unwrap();
            memory[half] = resident().max(memory[half]);
        }
        going.store(false, Ordering::Relaxed);
    });
    for (what, count) in [
        ("batches", &batches),
        ("searches", &searches),
        ("saves", &saves),
    ] {
        assert!(count.load(Ordering::Relaxed) > 0, "no {what}");
    }
    let [first, second] = *memory.lock().unwrap();
    assert!(
        second <= first + GROWTH,
        "memory grew from {first} to {second} bytes"
    );

    let last = content(&live.snapshot());
    drop(live);
    assert_eq!(content(&Live::open(&path).unwrap().snapshot()), last);
}
