//! What becomes of an index that half of the points are added to: `cargo run --release -p garlic-cli --example
//! streaming -- SET.hdf5`.
//!
//! The index is built from half of the base points; the other half is added in batches: in the order of the file,
//! and sorted by the first principal component, so that what comes drifts. The hardest case is built from one end
//! of all points sorted like that. Beside them an index built from all points. Recall is that of the test queries.
//! "At the budget of the first row" is the recall that as much work buys, all of it counted in distance equivalents,
//! as the index built from all points does for the target; "in its time" the recall that as many seconds of one thread
//! buy. Compacted, the index is laid out as a build would have it, with the cells that it has; recalibrated, what
//! targets take has been measured again as well. A second table gives every index the same budget: the cells to visit and
//! the exact distances to compute that the calibration of the first one has for a target. The tables are Markdown.

#![allow(clippy::print_stdout, reason = "an experiment ends with its table")]

mod common;

use std::time::Instant;

use anyhow::Result;
use common::{Set, right, sort_along_first_axis};
use garlic_ann::Setting;
use garlic_ann::{Answer, Index, Rows, Search};
use garlic_linalg::Matrix;

const K: usize = 10;
const BATCH: usize = 1000;
const QUERIES: usize = 5000;

fn main() -> Result<()> {
    let set = Set::from_arguments(QUERIES)?;
    let (rows, queries, dim) = (set.base()?, set.queries()?, set.dim);
    let radii = set.radii(K)?;

    println!(
        "{} points of dimension {dim}, {} queries, batches of {BATCH}\n",
        rows.len(),
        queries.len()
    );
    println!(
        "| index | s to build | adds/s | cells | recall@{K} for .90 | .95 | .99 | with the work of the first row: \
         .90 | .95 | .99 | in its time: .90 | .95 | .99 | QPS at .95 | spread | rebuild? |"
    );
    println!("|---|{}---|", "---:|".repeat(14));
    let started = Instant::now();
    let whole = Index::builder().build(rows)?;
    let built = started.elapsed().as_secs_f64();
    let reference = measure(&whole, queries, &radii)?;
    row(
        "built from all",
        &whole,
        built,
        None,
        &reference,
        &reference,
    );
    let budgets = Budget::of(&whole);
    let given = budgets.measure(&whole, queries, &radii)?;
    let mut second = vec![budgets.row("built from all", &given, &given)];
    drop(whole);

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
        let rate = Some((rows.len() - half) as f64 / seconds);
        let found = measure(&index, queries, &radii)?;
        row(name, &index, built, rate, &found, &reference);
        let found = budgets.measure(&index, queries, &radii)?;
        second.push(budgets.row(name, &found, &given));
        index.compact()?;
        let found = measure(&index, queries, &radii)?;
        let compacted = format!("{name}, compacted");
        row(&compacted, &index, built, None, &found, &reference);
        index.recalibrate()?;
        let found = measure(&index, queries, &radii)?;
        let name = format!("{name}, recalibrated");
        row(&name, &index, built, None, &found, &reference);
        let found = budgets.measure(&index, queries, &radii)?;
        second.push(budgets.row(&name, &found, &given));
    }
    println!("\n{}{}", budgets.header(), second.concat());
    Ok(())
}

/// What the calibration of one index has for the targets that are shown, to be given to all indexes.
struct Budget(Vec<Setting>);

impl Budget {
    fn of(index: &Index) -> Self {
        let settings = index.calibration().settings.iter().copied();
        let shown = SHOWN.map(|at| TARGETS[at]);
        Self(
            settings
                .filter(|s| s.k == K && shown.contains(&s.recall))
                .collect(),
        )
    }

    fn measure(&self, index: &Index, queries: Rows<'_>, radii: &[f32]) -> Result<Vec<Measured>> {
        let searches = self.0.iter().map(|s| {
            let search = Search::new(K).recall(s.recall);
            search.probes(s.probes).rerank(s.rerank)
        });
        searches
            .map(|search| measure_one(index, queries, radii, &search))
            .collect()
    }

    fn header(&self) -> String {
        let names = self
            .0
            .iter()
            .map(|s| format!("{} cells, {} distances | work | ", s.probes, s.rerank));
        format!(
            "| index | {}\n|---|{}\n",
            names.collect::<String>().trim_end(),
            "---:|---:|".repeat(self.0.len())
        )
    }

    fn row(&self, name: &str, found: &[Measured], given: &[Measured]) -> String {
        let columns = found
            .iter()
            .zip(given)
            .map(|(f, g)| format!("{:.4} | {:.2} | ", f.recall, f.work / g.work));
        let columns: String = columns.collect();
        format!("| {name} | {}\n", columns.trim_end())
    }
}

/// What one recall target did.
struct Measured {
    recall: f64,
    /// Distance equivalents of all work.
    work: f64,
    qps: f64,
}

/// Targets, and the three of them that the table shows.
const TARGETS: [f64; 10] = [0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.97, 0.98, 0.99, 0.995];
const SHOWN: [usize; 3] = [3, 5, 8];

fn measure(index: &Index, queries: Rows<'_>, radii: &[f32]) -> Result<Vec<Measured>> {
    TARGETS
        .iter()
        .map(|target| measure_one(index, queries, radii, &Search::new(K).recall(*target)))
        .collect()
}

fn measure_one(
    index: &Index,
    queries: Rows<'_>,
    radii: &[f32],
    search: &Search,
) -> Result<Measured> {
    let mut best = f64::INFINITY;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        answers = index.search_batch(queries, search)?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    let found = |(answer, radius): (&Answer, &f32)| right(answer, *radius) as f64 / K as f64;
    let count = radii.len() as f64;
    let work = answers
        .iter()
        .map(|a| a.stats.distance_equivalents(index.dim()));
    Ok(Measured {
        recall: answers.iter().zip(radii).map(found).sum::<f64>() / count,
        work: work.sum::<f64>() / count,
        qps: count / best,
    })
}

/// The recall that a cost buys, between the targets that were measured.
fn recall_for(cost: f64, measured: &[Measured], cost_of: fn(&Measured) -> f64) -> Option<f64> {
    let (pair, low, high) = measured
        .windows(2)
        .map(|pair| (pair, cost_of(&pair[0]), cost_of(&pair[1])))
        .find(|(_, low, high)| *low <= cost && cost <= *high)?;
    let share = (cost - low) / (high - low).max(f64::MIN_POSITIVE);
    Some(pair[0].recall + share * (pair[1].recall - pair[0].recall))
}

fn row(
    name: &str,
    index: &Index,
    built: f64,
    rate: Option<f64>,
    found: &[Measured],
    reference: &[Measured],
) {
    let rate = rate.map_or(String::new(), |rate| format!("{rate:.0}"));
    let at_target = SHOWN.map(|at| format!("{:.4}", found[at].recall));
    let at_cost = |cost_of: fn(&Measured) -> f64| {
        SHOWN.map(|at| {
            let recall = recall_for(cost_of(&reference[at]), found, cost_of);
            recall.map_or("-".into(), |recall| format!("{recall:.4}"))
        })
    };
    println!(
        "| {name} | {built:.1} | {rate} | {} | {} | {} | {} | {:.0} | {:.2} | {} |",
        index.cells(),
        at_target.join(" | "),
        at_cost(|m| m.work).join(" | "),
        at_cost(|m| 1.0 / m.qps).join(" | "),
        found[SHOWN[1]].qps,
        index.drift().spread,
        if index.drift().rebuild { "yes" } else { "no" },
    );
}
