//! Searches among some of the points, and exact searches among all: `cargo run --release -p garlic-cli --example filters -- SET.hdf5`.
//!
//! Filters allow a share of the points, chosen at random, or those farthest along the first principal component, so
//! that most queries lie outside of what is allowed. Beside each search brute force over the allowed points alone,
//! their vectors gathered in one array, on one thread as well. Recall is that of the test queries against that
//! brute force. The first rows are exact searches of all points, beside brute force over all. The tables are Markdown.

#![allow(clippy::print_stdout, reason = "an experiment ends with its table")]

mod common;

use std::time::Instant;

use anyhow::{Result, ensure};
use common::{Set, right, sort_along_first_axis};
use garlic_ann::{Filter, Index, Rows, Search};
use garlic_linalg::{Matrix, permutation};

const K: usize = 10;
const QUERIES: usize = 300;
/// Queries of exact searches: each reads much of the index.
const EXACT_QUERIES: usize = 100;
const SHARES: [f64; 4] = [0.5, 0.1, 0.01, 0.001];
/// Runs of which the fastest counts.
const RUNS: usize = 3;

fn main() -> Result<()> {
    let set = Set::from_arguments(QUERIES)?;
    let (rows, queries, dim) = (set.base()?, set.queries()?, set.dim);
    let index = Index::builder().build(rows)?;

    println!(
        "{} points of dimension {dim}, {} queries\n",
        rows.len(),
        queries.len()
    );
    exact(rows, queries, &index)?;
    println!("\nrecall target .95 at k = {K}\n");
    println!(
        "| allowed | share | recall@{K} | us a query | brute force, us | ratio | exact | first query with the filter, ms |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|---:|");
    let random = permutation(rows.len(), 1, 2);
    let mut along: Vec<u32> = (0..rows.len() as u32).collect();
    sort_along_first_axis(rows, &mut along);
    along.reverse();
    for (name, order) in [("at random", &random), ("one end", &along)] {
        for share in SHARES {
            let count = (rows.len() as f64 * share) as usize;
            report(name, share, &order[..count], rows, queries, &index)?;
        }
    }
    Ok(())
}

/// Exact searches beside brute force over all points, both one query after the other.
fn exact(rows: Rows<'_>, queries: Rows<'_>, index: &Index) -> Result<()> {
    println!("| k | exact search, us | brute force, us | ratio | exact distances of a search |");
    println!("|---:|---:|---:|---:|---:|");
    let queries = queries.slice(0..queries.len().min(EXACT_QUERIES));
    let count = queries.len() as f64;
    let plain = Plain::new(rows, index);
    for k in [1, 10, 100] {
        let search = Search::new(k).exact(true);
        let (mut searching, mut brute) = (f64::INFINITY, f64::INFINITY);
        let mut candidates = 0;
        for _ in 0..RUNS {
            let started = Instant::now();
            let answers = queries.iter().map(|query| index.search(query, &search));
            let answers: Vec<_> = answers.collect::<Result<_, _>>()?;
            searching = searching.min(started.elapsed().as_secs_f64());
            candidates = answers.iter().map(|a| a.stats.candidates).sum();
            let started = Instant::now();
            let radii: Vec<f32> = queries.iter().map(|query| plain.kth(query, k)).collect();
            brute = brute.min(started.elapsed().as_secs_f64());
            for (answer, radius) in answers.iter().zip(&radii) {
                ensure!(right(answer, *radius) == k, "exact search was wrong");
            }
        }
        println!(
            "| {k} | {:.0} | {:.0} | {:.2} | {:.0} |",
            searching / count * 1e6,
            brute / count * 1e6,
            searching / brute,
            candidates as f64 / count,
        );
    }
    Ok(())
}

fn report(
    name: &str,
    share: f64,
    allowed: &[u32],
    rows: Rows<'_>,
    queries: Rows<'_>,
    index: &Index,
) -> Result<()> {
    let mut ids: Vec<u64> = allowed.iter().map(|row| u64::from(*row)).collect();
    ids.sort_unstable();
    let filter = Filter::bitmap(ids.into_iter().collect());
    let search = Search::new(K).recall(0.95).filter(filter);
    let started = Instant::now();
    index.search(queries.row(0), &search)?;
    let first = started.elapsed().as_secs_f64();
    let mut searching = f64::INFINITY;
    let mut answers = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        answers = queries
            .iter()
            .map(|query| index.search(query, &search))
            .collect::<Result<_, _>>()?;
        searching = searching.min(started.elapsed().as_secs_f64());
    }

    let gathered = Matrix::gather(rows, allowed);
    let plain = Plain::new(gathered.as_rows(), index);
    let mut brute = f64::INFINITY;
    let mut radii = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        radii = queries.iter().map(|query| plain.kth(query, K)).collect();
        brute = brute.min(started.elapsed().as_secs_f64());
    }
    let found: usize = answers
        .iter()
        .zip(&radii)
        .map(|(answer, radius)| right(answer, *radius))
        .sum();
    let count = queries.len() as f64;
    let wanted = K.min(allowed.len()) as f64;
    println!(
        "| {name} | {share} | {:.4} | {:.1} | {:.1} | {:.2} | {} | {:.1} |",
        found as f64 / wanted / count,
        searching / count * 1e6,
        brute / count * 1e6,
        searching / brute,
        if answers[0].exact { "yes" } else { "no" },
        first * 1e3,
    );
    Ok(())
}

/// Vectors side by side as the index stores them, and what a plain program does with them.
enum Plain<'a> {
    Floats(Rows<'a>),
    Bytes(Vec<u8>),
}

impl<'a> Plain<'a> {
    fn new(rows: Rows<'a>, index: &Index) -> Self {
        match index.stored_as() {
            "u8" => Self::Bytes(rows.data().iter().map(|v| *v as u8).collect()),
            _ => Self::Floats(rows),
        }
    }

    /// The distance of the k-th nearest row.
    fn kth(&self, query: &[f32], k: usize) -> f32 {
        let mut best = Nearest {
            k,
            smallest: Vec::with_capacity(k + 1),
        };
        match self {
            Self::Floats(rows) => {
                for row in rows.iter() {
                    best.offer(garlic_simd::l2_squared(query, row));
                }
            }
            Self::Bytes(bytes) => {
                let query: Vec<u8> = query.iter().map(|v| *v as u8).collect();
                for row in bytes.chunks_exact(query.len()) {
                    best.offer(garlic_simd::l2_squared_u8_u8(&query, row) as f32);
                }
            }
        }
        best.worst().sqrt()
    }
}

/// The smallest numbers, in order.
struct Nearest {
    k: usize,
    smallest: Vec<f32>,
}

impl Nearest {
    fn offer(&mut self, squared: f32) {
        if self.smallest.len() < self.k || squared < self.worst() {
            let at = self.smallest.partition_point(|other| *other <= squared);
            self.smallest.insert(at, squared);
            self.smallest.truncate(self.k);
        }
    }

    fn worst(&self) -> f32 {
        self.smallest.last().copied().unwrap_or(f32::INFINITY)
    }
}
