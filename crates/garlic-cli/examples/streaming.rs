//! What becomes of an index that half of the points are added to: `cargo run --release -p garlic-cli --example
//! streaming -- SET.hdf5`.
//!
//! The index is built from half of the base points; the other half is added in batches: in the order of the file,
//! and sorted by the first principal component, so that what comes drifts. The hardest case is built from one end
//! of all points sorted like that. Beside them an index built from all points. Recall is that of the test queries.
//! The table is Markdown.

#![allow(clippy::print_stdout, reason = "an experiment ends with its table")]

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use garlic_ann::{Config, Index, Rows, Search};
use garlic_data::Dataset;
use garlic_linalg::{Matrix, top_components};

const K: usize = 10;
const BATCH: usize = 1000;
const QUERIES: usize = 5000;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("which HDF5 file?")?;
    let data = Dataset::open(&path)?;
    let (values, dim) = (data.train.to_f32(), data.train.dim());
    let rows = Rows::new(&values, dim)?;
    let queries = data.test.as_ref().context("the file has no queries")?;
    let queries = queries.to_f32();
    let queries = Rows::new(&queries, dim)?;
    let queries = queries.slice(0..QUERIES.min(queries.len()));
    let truth = data.distances.as_ref().context("the file has no truth")?;
    ensure!(truth.cols >= K, "the truth has fewer than {K} neighbours");
    let radii: Vec<f32> = (0..queries.len()).map(|q| truth.row(q)[K - 1]).collect();

    println!(
        "{} points of dimension {dim}, {} queries, batches of {BATCH}\n",
        rows.len(),
        queries.len()
    );
    println!(
        "| index | built in s | adds a second | cells | recall@{K} for .90 | .95 | .99 | exact distances | QPS at .95 | rebuild? |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---|");
    let started = Instant::now();
    let whole = Index::builder().config(Config::default()).build(rows)?;
    report(
        "built from all",
        &whole,
        queries,
        &radii,
        started.elapsed().as_secs_f64(),
        None,
    )?;

    let half = rows.len() / 2;
    let in_order: Vec<u32> = (0..rows.len() as u32).collect();
    let mut rest_sorted = in_order.clone();
    sort_along_first_axis(rows, &mut rest_sorted[half..]);
    let mut all_sorted = in_order.clone();
    sort_along_first_axis(rows, &mut all_sorted);
    for (name, order) in [
        ("half, the rest added in order", in_order),
        ("half, the rest added sorted", rest_sorted),
        ("one end, the other end added sorted", all_sorted),
    ] {
        let first = Matrix::gather(rows, &order[..half]);
        let ids: Vec<u64> = order.iter().map(|row| u64::from(*row)).collect();
        let started = Instant::now();
        let mut index = Index::builder().ids(&ids[..half]).build(first.as_rows())?;
        let built = started.elapsed().as_secs_f64();
        let mut seconds = 0.0;
        for (rows_now, ids_now) in order[half..].chunks(BATCH).zip(ids[half..].chunks(BATCH)) {
            let batch = Matrix::gather(rows, rows_now);
            let started = Instant::now();
            index.add(batch.as_rows(), ids_now)?;
            seconds += started.elapsed().as_secs_f64();
        }
        let rate = (rows.len() - half) as f64 / seconds;
        report(name, &index, queries, &radii, built, Some(rate))?;
        index.compact()?;
        report(
            &format!("{name}, compacted"),
            &index,
            queries,
            &radii,
            built,
            Some(rate),
        )?;
    }
    Ok(())
}

/// Sorts rows by their first principal component.
fn sort_along_first_axis(rows: Rows<'_>, order: &mut [u32]) {
    let sample: Vec<u32> = order
        .iter()
        .copied()
        .step_by(order.len().div_ceil(20_000))
        .collect();
    let found = top_components(Matrix::gather(rows, &sample).as_rows(), 1, 0);
    let axis = found.basis.row(0);
    let along = |row: &u32| -> f32 {
        let row = rows.row(*row as usize);
        row.iter().zip(axis).map(|(x, a)| x * a).sum()
    };
    order.sort_by_cached_key(|row| ordered(along(row)));
}

/// A whole number in the order of the floats.
fn ordered(v: f32) -> i32 {
    let bits = v.to_bits() as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

fn report(
    name: &str,
    index: &Index,
    queries: Rows<'_>,
    radii: &[f32],
    built: f64,
    rate: Option<f64>,
) -> Result<()> {
    let mut row = Vec::new();
    let (mut work, mut qps) = (0.0, 0.0);
    for recall in [0.9, 0.95, 0.99] {
        let search = Search::new(K).recall(recall);
        let mut best = f64::INFINITY;
        let mut answers = Vec::new();
        for _ in 0..3 {
            let started = Instant::now();
            answers = index.search_batch(queries, &search)?;
            best = best.min(started.elapsed().as_secs_f64());
        }
        let found = |(answer, radius): (&garlic_ann::Answer, &f32)| {
            let near = answer
                .hits
                .iter()
                .filter(|h| h.distance <= radius * (1.0 + 1e-6));
            near.count() as f64 / K as f64
        };
        let recall_now = answers.iter().zip(radii).map(found).sum::<f64>() / radii.len() as f64;
        row.push(format!("{recall_now:.4}"));
        if recall == 0.95 {
            let distances = answers.iter().map(|a| a.work.candidates as f64);
            work = distances.sum::<f64>() / radii.len() as f64;
            qps = radii.len() as f64 / best;
        }
    }
    let rate = rate.map_or("".into(), |rate| format!("{rate:.0}"));
    println!(
        "| {name} | {built:.1} | {rate} | {} | {} | {work:.0} | {qps:.0} | {} |",
        index.cells(),
        row.join(" | "),
        if index.drift().rebuild { "yes" } else { "no" },
    );
    Ok(())
}
