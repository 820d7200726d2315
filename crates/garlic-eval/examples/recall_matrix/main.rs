//! Whether recall targets are met on hostile data, and while an index grows.
//!
//! ```text
//! cargo run --release -p garlic-eval --example recall_matrix -- --kinds student-32,offset --ks 10
//! cargo run --release -p garlic-eval --example recall_matrix -- --growth --short
//! ```
//!
//! Prints a line for each row, writes a table with `--markdown FILE` and exits with 1 when a row fails.

#![allow(clippy::print_stdout, reason = "prints what it measures")]

mod args;

use std::process::ExitCode;
use std::time::Instant;

use garlic_eval::hostile::{self, Kind};
use garlic_eval::promise::{growth, matrix, table};

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
    let start = Instant::now();
    let (failures, text) = if args.growth {
        run_growth(&args)
    } else {
        run_matrix(&args)
    };
    println!("{failures} failed, {:.0} s", start.elapsed().as_secs_f64());
    if let Some(path) = &args.markdown {
        std::fs::write(path, text)?;
    }
    Ok(match failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

/// The number of failures and the table.
fn run_matrix(args: &Args) -> (usize, String) {
    let (mut rows, mut errors) = (Vec::new(), 0);
    for kind in args.matrix_kinds() {
        errors += run_kind(kind, args, &mut rows);
    }
    println!("{} rows", rows.len());
    let failures = rows.iter().filter(|row| row.fails()).count();
    (errors + failures, table::matrix(&rows))
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
        let mut tell = |row| {
            print_row(&row);
            rows.push(row);
        };
        if let Err(error) = matrix::measure(kind, &sample, metric, plan, &mut tell) {
            println!("FAIL {} {metric}: {error}", kind.name);
            errors += 1;
        }
    }
    errors
}

fn print_row(row: &matrix::Row) {
    println!(
        "{} {:<20} {:<13} n {:<6} k {:<3} target {:<5} realised {:.4} ± {:.4}  work {:>8.0}{}  build {:.1} s  search {:.2} s",
        mark(row.fails()),
        row.kind,
        row.metric.name(),
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

/// The number of failures and the table.
fn run_growth(args: &Args) -> (usize, String) {
    let (mut rows, mut errors) = (Vec::new(), 0);
    for life in args.lives() {
        let before = rows.len();
        let mut tell = |row| {
            print_moment(&row);
            rows.push(row);
        };
        if let Err(error) = growth::measure(&life, &args.growth_targets(), &mut tell) {
            println!("FAIL {}: {error}", describe(&life));
            errors += 1;
        } else if rows.len() == before {
            println!("skip {}: it has vectors of zeros", describe(&life));
        }
    }
    println!("{} rows", rows.len());
    let failures = rows.iter().filter(|row| row.fails()).count();
    (errors + failures, table::growth(&rows))
}

fn print_moment(row: &growth::Row) {
    println!(
        "{} {} points {:<6} target {:<4} realised {:.4} ± {:.4}  work {:>8.0}  {:>8.0} points/s",
        mark(row.fails()),
        describe(&row.life),
        row.points,
        row.target,
        row.realised.mean,
        row.realised.standard_error,
        row.work,
        row.added_per_second,
    );
}

fn describe(life: &growth::Life) -> String {
    format!(
        "{:<20} {:<13} {:<8} chunk {:<5} {}",
        life.kind.name,
        life.metric.name(),
        life.order.name(),
        life.chunk,
        if life.removes { "removals" } else { "        " },
    )
}

fn mark(fails: bool) -> &'static str {
    if fails { "FAIL" } else { "ok  " }
}
