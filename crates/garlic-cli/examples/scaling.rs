//! How the work of a query and the time of a build grow with the number of points: `cargo run --release -p garlic-cli
//! --example scaling -- SET.hdf5`.
//!
//! Indexes of an eighth, a quarter, a half and all of the base points, searched with the same targets; the true
//! neighbours among fewer points come from exact search. Below the table the exponents of n^x that fit best.

#![allow(clippy::print_stdout, reason = "an experiment ends with its table")]

mod common;

use std::time::Instant;

use anyhow::Result;
use common::{Set, right};
use garlic_ann::{Index, Search};

const K: usize = 10;
const QUERIES: usize = 1000;
const TARGETS: [f64; 2] = [0.95, 0.99];

fn main() -> Result<()> {
    let set = Set::from_arguments(QUERIES)?;
    let (rows, queries, dim) = (set.base()?, set.queries()?, set.dim);

    println!("| points | s to build | recall@{K} for .95 | work | us | for .99 | work | us |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut series = vec![Vec::new(); 1 + 2 * TARGETS.len()];
    for part in [8, 4, 2, 1] {
        let points = rows.slice(0..rows.len() / part);
        let started = Instant::now();
        let index = Index::builder().build(points)?;
        let built = started.elapsed().as_secs_f64();
        let exact = Search::new(K).exact(true).threads(2);
        let truth = index.search_batch(queries, &exact)?;
        let mut line = format!("| {} | {built:.1} ", points.len());
        series[0].push((points.len() as f64, built));
        for (target, recall) in TARGETS.into_iter().enumerate() {
            let search = Search::new(K).recall(recall);
            let mut best = f64::INFINITY;
            let mut answers = Vec::new();
            for _ in 0..5 {
                let started = Instant::now();
                answers = index.search_batch(queries, &search)?;
                best = best.min(started.elapsed().as_secs_f64());
            }
            let pairs = answers.iter().zip(&truth);
            let found = pairs.map(|(answer, truth)| right(answer, truth.hits[K - 1].distance));
            let count = queries.len() as f64;
            let found = found.sum::<usize>() as f64 / (K as f64 * count);
            let work = answers.iter().map(|a| a.stats.distance_equivalents(dim));
            let (work, us) = (work.sum::<f64>() / count, best / count * 1e6);
            line += &format!("| {found:.4} | {work:.0} | {us:.1} ");
            series[1 + 2 * target].push((points.len() as f64, work));
            series[2 + 2 * target].push((points.len() as f64, us));
        }
        println!("{line}|");
    }
    let names = [
        "build",
        "work at .95",
        "time at .95",
        "work at .99",
        "time at .99",
    ];
    println!();
    for (name, points) in names.iter().zip(&series) {
        println!("{name}: n^{:.2}", exponent(points));
    }
    Ok(())
}

/// The slope of the line through the logarithms.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(n, y)| (n.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let both: f64 = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    both / logs.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}
