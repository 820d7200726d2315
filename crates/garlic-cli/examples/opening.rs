//! What opening an index takes before the first query, and copying it: `cargo run --release -p garlic-cli --example
//! opening -- INDEX.garlic`.

#![allow(clippy::print_stdout, reason = "an experiment ends with its figures")]

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, Result};
use garlic_ann::{Index, Search};

/// Copies that the time of one is taken from.
const COPIES: u32 = 100_000;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("which index file?")?;
    let before = resident();
    let started = Instant::now();
    let index = Index::open(&path)?;
    let opened = started.elapsed();
    let after = resident();
    println!(
        "{} points opened in {:.2} ms; resident {:.1} MiB, {:.1} MiB of it before",
        index.len(),
        opened.as_secs_f64() * 1e3,
        after / 1024.0,
        before / 1024.0
    );
    let query = vec![0.0; index.dim()];
    for what in ["first", "second"] {
        let started = Instant::now();
        index.search(&query, &Search::new(10))?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{what} query in {:.2} ms", seconds * 1e3);
    }
    println!("resident then {:.1} MiB", resident() / 1024.0);

    // As it was opened, and with a change in the delta of every copy.
    println!("a copy in {:.2} us", copying(&index));
    let mut changed = index.clone();
    changed.remove(&index.ids()[..1])?;
    println!("a copy of a changed index in {:.2} us", copying(&changed));
    Ok(())
}

/// Microseconds that a copy takes, its end included.
fn copying(index: &Index) -> f64 {
    let started = Instant::now();
    for _ in 0..COPIES {
        drop(black_box(index.clone()));
    }
    started.elapsed().as_secs_f64() / f64::from(COPIES) * 1e6
}

/// Resident memory in KiB; 0 where the system does not tell.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|n| n.trim().parse().ok()).unwrap_or(0.0)
}
