//! What becomes of a neighbour graph that half of the points are added to, or that loses three in ten: `cargo run
//! --release -p garlic-cli --example graph_changes -- SET.hdf5 [RUN ...]`.
//!
//! A run is one of the names in `RUNS`; without names, all of them. Points are added by `add` in batches, in random
//! order, sorted by the cells of a k-means with 64 cells ("topics"), or topics that the built half has no point of.
//! Each changed index is compared with an index built from the same points. "At its work" is the recall with as much
//! work per query, in distances, as the built index does for the target, from a sweep of recall targets.

#![allow(clippy::print_stdout, reason = "an experiment ends with its table")]

mod common;

use std::time::Instant;

use anyhow::Result;
use common::{Set, right};
use garlic_ann::{Index, Rows, Search};
use garlic_linalg::{Matrix, kmeans_plus_plus, lloyd, nearest_centres, permutation};

const K: usize = 10;
const QUERIES: usize = 2000;
const TOPICS: usize = 64;
const REMOVED: f64 = 0.3;
/// Targets of the sweep, and the three of them that the table shows.
const TARGETS: [f64; 18] = [
    0.05, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.96, 0.97, 0.98, 0.985,
    0.99,
];
const SHOWN: [usize; 3] = [10, 12, 17];

const RUNS: [(&str, &str); 5] = [
    ("random", "half, the rest added in random order"),
    ("small", "the same in batches of 100"),
    ("topics", "half, the rest added by topics"),
    ("new-topics", "half of the topics, the others added"),
    ("removed", "three in ten removed"),
];

fn main() -> Result<()> {
    let set = Set::from_arguments(QUERIES)?;
    let rows = set.base()?;
    let names: Vec<String> = std::env::args().skip(2).collect();
    let chosen = |run: &str| names.is_empty() || names.iter().any(|name| name == run);
    println!(
        "{} points of dimension {}, {} queries\n",
        rows.len(),
        set.dim,
        set.queries()?.len()
    );
    println!(
        "| index | changes/s | per second of a processor | work for .90 | .95 | .99 | recall@{K} for .90 | .95 | .99 | at its work: .90 | .95 | .99 |"
    );
    println!("|---|{}", "---:|".repeat(11));
    let whole = build(&set, &(0..rows.len() as u32).collect::<Vec<_>>())?;
    let radii = radii(&whole, &set)?;
    let reference = curve(&whole, &set, &radii)?;
    line("built from all points", " | ", &reference, &reference);
    for (run, name) in RUNS {
        if !chosen(run) || run == "removed" {
            continue;
        }
        let random = permutation(rows.len(), 1, 0);
        // One point more than half, because an index is trained again when it has doubled.
        let half = rows.len() / 2 + 1;
        let mut order = random;
        match run {
            "topics" => sort_by_topic(rows, &mut order[half..]),
            "new-topics" => sort_by_topic(rows, &mut order),
            _ => {}
        }
        let batch = if run == "small" { 100 } else { 1000 };
        let mut index = build(&set, &order[..half])?;
        let clock = Clock::start();
        for rows_now in order[half..].chunks(batch) {
            let points = Matrix::gather(rows, rows_now);
            let ids: Vec<u64> = rows_now.iter().map(|row| u64::from(*row)).collect();
            index.add(points.as_rows(), &ids)?;
        }
        let rate = clock.rate(rows.len() - half);
        let found = curve(&index, &set, &radii)?;
        line(name, &rate, &found, &reference);
        let clock = Clock::start();
        index.compact()?;
        let rate = clock.rate(rows.len() - half);
        let found = curve(&index, &set, &radii)?;
        line(&format!("{name}, compacted"), &rate, &found, &reference);
        let clock = Clock::start();
        index.recalibrate()?;
        let rate = clock.rate(rows.len() - half);
        let found = curve(&index, &set, &radii)?;
        line(&format!("{name}, recalibrated"), &rate, &found, &reference);
    }
    if chosen("removed") {
        removed(&set, whole)?;
    }
    Ok(())
}

/// Removes points, and compares with an index of the others.
fn removed(set: &Set, mut index: Index) -> Result<()> {
    let order = permutation(set.base()?.len(), 2, 0);
    let (gone, left) = order.split_at((order.len() as f64 * REMOVED) as usize);
    let built = build(set, left)?;
    let radii = radii(&built, set)?;
    let reference = curve(&built, set, &radii)?;
    line("built from the others", " | ", &reference, &reference);
    drop(built);
    let clock = Clock::start();
    for batch in gone.chunks(1000) {
        index.remove(&batch.iter().map(|row| u64::from(*row)).collect::<Vec<_>>())?;
    }
    let rate = clock.rate(gone.len());
    let found = curve(&index, set, &radii)?;
    line("three in ten removed", &rate, &found, &reference);
    let clock = Clock::start();
    index.compact()?;
    let rate = clock.rate(gone.len());
    let found = curve(&index, set, &radii)?;
    line("three in ten removed, compacted", &rate, &found, &reference);
    Ok(())
}

/// Time since a start: of the clock, and of all threads on processors as Linux counts it.
struct Clock(Instant, Option<f64>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), cpu_seconds())
    }

    /// Changes a second, by the clock and of processor time, for a row of the table.
    fn rate(&self, changes: usize) -> String {
        let changes = changes as f64;
        let cpu = cpu_seconds().zip(self.1).map(|(now, then)| now - then);
        let cpu = cpu.map_or(String::new(), |cpu| format!("{:.0}", changes / cpu));
        format!("{:.0} | {cpu}", changes / self.0.elapsed().as_secs_f64())
    }
}

fn cpu_seconds() -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

/// An index with a graph, of some points.
fn build(set: &Set, points: &[u32]) -> Result<Index> {
    let ids: Vec<u64> = points.iter().map(|row| u64::from(*row)).collect();
    let builder = Index::builder().seed(1).metric(set.metric).ids(ids);
    let rows = Matrix::gather(set.base()?, points);
    Ok(builder.set("graph", "on")?.build(rows.as_rows())?)
}

/// The distance of each query's k-th neighbour.
fn radii(index: &Index, set: &Set) -> Result<Vec<f32>> {
    let exact = Search::new(K).exact(true).threads(2);
    let answers = index.search_batch(set.queries()?, &exact)?;
    Ok(answers
        .iter()
        .map(|a| a.hits.last().map_or(0.0, |hit| hit.distance))
        .collect())
}

/// Work per query in distances, and recall.
type Point = (f64, f64);

fn curve(index: &Index, set: &Set, radii: &[f32]) -> Result<Vec<Point>> {
    let measure = |target: &f64| -> Result<Point> {
        let search = Search::new(K).recall(*target).threads(2);
        let answers = index.search_batch(set.queries()?, &search)?;
        let work = answers
            .iter()
            .map(|a| a.stats.distance_equivalents(set.dim));
        let work: f64 = work.sum();
        let found: usize = answers.iter().zip(radii).map(|(a, r)| right(a, *r)).sum();
        let count = answers.len() as f64;
        Ok((work / count, found as f64 / (count * K as f64)))
    };
    TARGETS.iter().map(measure).collect()
}

/// The recall with so much work, between the targets that were measured.
fn recall_at(work: f64, curve: &[Point]) -> Option<f64> {
    let between = |pair: &&[Point]| pair[0].0 <= work && work <= pair[1].0;
    let pair = curve.windows(2).find(between)?;
    let share = (work - pair[0].0) / (pair[1].0 - pair[0].0).max(f64::MIN_POSITIVE);
    Some(pair[0].1 + share * (pair[1].1 - pair[0].1))
}

fn line(name: &str, rate: &str, found: &[Point], reference: &[Point]) {
    let work = SHOWN.map(|at| format!("{:.0}", found[at].0));
    let recall = SHOWN.map(|at| format!("{:.4}", found[at].1));
    let at_work = SHOWN.map(|at| {
        let recall = recall_at(reference[at].0, found);
        recall.map_or("-".into(), |recall| format!("{recall:.4}"))
    });
    println!(
        "| {name} | {rate} | {} | {} | {} |",
        work.join(" | "),
        recall.join(" | "),
        at_work.join(" | ")
    );
}

/// Sorts rows by the cells of a k-means.
fn sort_by_topic(rows: Rows<'_>, order: &mut [u32]) {
    let sample: Vec<u32> = order.iter().copied().step_by(10).collect();
    let sample = Matrix::gather(rows, &sample);
    let topics = lloyd(
        sample.as_rows(),
        kmeans_plus_plus(sample.as_rows(), TOPICS, 1),
        10,
    );
    let points = Matrix::gather(rows, order);
    let (labels, _) = nearest_centres(points.as_rows(), topics.centres.as_rows());
    let mut keyed: Vec<(u32, u32)> = labels.into_iter().zip(order.iter().copied()).collect();
    keyed.sort_by_key(|(topic, _)| *topic);
    for (place, (_, row)) in order.iter_mut().zip(keyed) {
        *place = row;
    }
}
