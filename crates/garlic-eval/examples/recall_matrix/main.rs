//! Whether recall targets are met on hostile data, and while an index grows.
//!
//! ```text
//! cargo run --release -p garlic-eval --example recall_matrix -- --kinds student-32,offset --ks 10
//! ```
//!
//! Prints a line for each row, writes a table with `--markdown FILE` and exits with 1 when a row fails.

#![allow(clippy::print_stdout, reason = "prints what it measures")]

mod args;

use std::process::ExitCode;

use garlic_ann::Metric;
use garlic_eval::hostile::{self, Kind};
use garlic_eval::promise::{matrix, table};

use args::Args;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = Args::parse(std::env::args().skip(1))?;
    if args.help {
        print!("{}", args::HELP);
        return Ok(ExitCode::SUCCESS);
    }
    if args.list {
        for kind in hostile::kinds() {
            println!("{:<20} d {:<4} {}", kind.name, kind.dim, kind.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut failures = 0;
    let mut text = String::new();
    {
        let mut rows = Vec::new();
        for kind in &args.kinds {
            failures += run_kind(kind, &args, &mut rows);
        }
        failures += rows.iter().filter(|row| row.fails()).count();
        println!("{} rows, {failures} failed", rows.len());
        text += &table::matrix(&rows);
    }
    if let Some(path) = &args.markdown {
        std::fs::write(path, text)?;
    }
    Ok(match failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

/// Measures a kind with every metric; returns how many of them could not be measured at all.
fn run_kind(kind: &Kind, args: &Args, rows: &mut Vec<matrix::Row>) -> usize {
    let plan = &args.plan;
    let sample = kind.sample(plan.points, plan.queries, plan.seed);
    let mut errors = 0;
    for &metric in &args.metrics {
        if !matrix::is_defined(metric, &sample) {
            println!("skip {} {metric}: it has vectors of zeros", kind.name);
            continue;
        }
        match matrix::measure(kind, &sample, metric, plan, &mut print_row) {
            Ok(measured) => rows.extend(measured),
            Err(error) => {
                println!("FAIL {} {metric}: {error}", kind.name);
                errors += 1;
            }
        }
    }
    errors
}

fn print_row(row: &matrix::Row) {
    println!(
        "{} {:<20} {:<13} n {:<6} k {:<3} target {:<5} realised {:.4} ± {:.4}  work {:>8.0}{}  build {:.1} s  search {:.2} s",
        if row.fails() { "FAIL" } else { "ok  " },
        row.kind,
        Metric::name(row.metric),
        row.points,
        row.k,
        row.target,
        row.realised.mean,
        row.realised.standard_error,
        row.work,
        if row.read_everything {
            " (all)"
        } else {
            "      "
        },
        row.build_seconds,
        row.search_seconds,
    );
}
