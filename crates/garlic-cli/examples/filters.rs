//! Searches among some of the points: `cargo run --release -p garlic-cli --example filters -- SET.hdf5`.
//!
//! Filters allow a share of the points, chosen at random, or those farthest along the first principal component, so
//! that most queries lie outside of what is allowed. Beside each search brute force over the allowed points alone,
//! their vectors gathered in one array, on one thread as well. Recall is that of the test queries against that
//! brute force. The table is Markdown.

#![allow(clippy::print_stdout, reason = "an experiment ends with its table")]

mod common;

use std::time::Instant;

use anyhow::Result;
use common::{Set, right, sort_along_first_axis};
use garlic_ann::{Filter, Index, Rows, Search};
use garlic_linalg::{Matrix, permutation};

const K: usize = 10;
const QUERIES: usize = 300;
const SHARES: [f64; 4] = [0.5, 0.1, 0.01, 0.001];
/// Runs of which the fastest counts.
const RUNS: usize = 3;

fn main() -> Result<()> {
    let set = Set::from_arguments(QUERIES)?;
    let (rows, queries, dim) = (set.base()?, set.queries()?, set.dim);
    let index = Index::builder().build(rows)?;

    println!(
        "{} points of dimension {dim}, {} queries, recall target .95 at k = {K}\n",
        rows.len(),
        queries.len()
    );
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
    let bytes = index.stored_as() == "u8";
    let as_bytes: Vec<u8> = match bytes {
        true => gathered.as_slice().iter().map(|v| *v as u8).collect(),
        false => Vec::new(),
    };
    let mut brute = f64::INFINITY;
    let mut radii = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        radii = queries
            .iter()
            .map(|query| match bytes {
                true => kth_of_bytes(query, &as_bytes),
                false => kth(query, gathered.as_rows()),
            })
            .collect();
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

/// The distance of the k-th nearest row, as a plain program finds it.
fn kth(query: &[f32], rows: Rows<'_>) -> f32 {
    let mut best = Nearest::default();
    for row in rows.iter() {
        best.offer(garlic_simd::l2_squared(query, row));
    }
    best.worst().sqrt()
}

fn kth_of_bytes(query: &[f32], rows: &[u8]) -> f32 {
    let mut best = Nearest::default();
    let query: Vec<u8> = query.iter().map(|v| *v as u8).collect();
    for row in rows.chunks_exact(query.len()) {
        best.offer(garlic_simd::l2_squared_u8_u8(&query, row) as f32);
    }
    best.worst().sqrt()
}

/// The smallest numbers, in order.
#[derive(Default)]
struct Nearest(Vec<f32>);

impl Nearest {
    fn offer(&mut self, squared: f32) {
        if self.0.len() < K || squared < self.worst() {
            let at = self.0.partition_point(|other| *other <= squared);
            self.0.insert(at, squared);
            self.0.truncate(K);
        }
    }

    fn worst(&self) -> f32 {
        self.0.last().copied().unwrap_or(f32::INFINITY)
    }
}
