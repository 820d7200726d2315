//! A recall target holds on any data, at any moment of an index's life.
//!
//! Short by default; `GARLIC_SOAK=1` measures every kind, metric, number of neighbours and target, and all lives of
//! growing indexes. `cargo run --release -p garlic-eval --example recall_matrix` measures a part of your choice.

use std::fmt::Write;

use garlic_ann::Metric;
use garlic_eval::hostile::{self, Kind};
use garlic_eval::promise::{
    GROWTH_KINDS, SHORT_GROWTH_KINDS, SHORT_KINDS, growth, growth::Order, matrix,
};

fn is_soak() -> bool {
    std::env::var("GARLIC_SOAK").is_ok_and(|value| value == "1")
}

fn named(names: &[&str]) -> Vec<&'static Kind> {
    let known = |name: &&str| hostile::kind(name).unwrap_or_else(|| panic!("no kind {name}"));
    names.iter().map(known).collect()
}

#[test]
fn targets_hold_on_any_data() {
    let (kinds, plan) = match is_soak() {
        true => (hostile::kinds().iter().collect(), matrix::Plan::default()),
        false => (named(&SHORT_KINDS), matrix::Plan::short()),
    };
    let (mut measured, mut failures) = (0, String::new());
    for (number, kind) in kinds.into_iter().enumerate() {
        let sample = kind.sample(plan.points, plan.queries, plan.seed);
        for metric in metrics(number) {
            if !matrix::is_defined(metric, &sample) {
                continue;
            }
            let mut tell = |row: matrix::Row| {
                measured += 1;
                if row.fails() {
                    let (k, target, realised) = (row.k, row.target, row.realised.mean);
                    let error = row.realised.standard_error;
                    let name = kind.name;
                    let _ = writeln!(
                        failures,
                        "{name} {metric} k {k} target {target}: {realised:.4} ± {error:.4}"
                    );
                }
            };
            if let Err(error) = matrix::measure(kind, &sample, metric, &plan, &mut tell) {
                let _ = writeln!(failures, "{} {metric}: {error}", kind.name);
            }
        }
    }
    let failed = failures.lines().count();
    assert!(failed == 0, "{failed} of {measured} rows fail\n{failures}");
}

/// All metrics in a soak; else the Euclidean one and one of the others, by turns.
fn metrics(number: usize) -> Vec<Metric> {
    match is_soak() {
        true => Metric::ALL.to_vec(),
        false => vec![Metric::Euclidean, Metric::ALL[1 + number % 2]],
    }
}

#[test]
fn targets_hold_while_an_index_grows() {
    let lives = match is_soak() {
        true => growth::lives(
            &named(&GROWTH_KINDS),
            &Metric::ALL,
            &Order::ALL,
            &growth::CHUNKS,
            50_000,
            1,
        ),
        false => growth::lives(
            &named(&SHORT_GROWTH_KINDS),
            &Metric::ALL,
            &Order::ALL,
            &[1, 100, 1000],
            4000,
            1,
        ),
    };
    let (mut measured, mut failures) = (0, String::new());
    for life in lives {
        let about = format!(
            "{} {} {} chunk {} removals {}",
            life.kind.name,
            life.metric,
            life.order.name(),
            life.chunk,
            life.removes
        );
        let mut tell = |row: growth::Row| {
            measured += 1;
            if row.fails() {
                let (points, target, realised) = (row.points, row.target, row.realised.mean);
                let error = row.realised.standard_error;
                let _ = writeln!(
                    failures,
                    "{about} points {points} target {target}: {realised:.4} ± {error:.4}"
                );
            }
        };
        if let Err(error) = growth::measure(&life, &growth::TARGETS, &mut tell) {
            let _ = writeln!(failures, "{about}: {error}");
        }
    }
    let failed = failures.lines().count();
    assert!(failed == 0, "{failed} of {measured} rows fail\n{failures}");
}
