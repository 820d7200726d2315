#![allow(clippy::print_stdout, missing_docs)]
use garlic_eval::demo::*;
fn main() {
    let mut o = DemoOptions::new("/tmp/eval-demo");
    for a in std::env::args().skip(1) {
        let (k, v) = a.split_once('=').unwrap();
        match k {
            "points" => o.points = v.parse().unwrap(),
            "dim" => o.dim = v.parse().unwrap(),
            "queries" => o.queries = v.parse().unwrap(),
            "seed" => o.seed = v.parse().unwrap(),
            "cells" => o.initial_cells = v.parse().unwrap(),
            "epochs" => o.epochs = v.parse().unwrap(),
            "fraction" => o.train_fraction = v.parse().unwrap(),
            "out" => o.out_dir = v.into(),
            _ => o.settings.push((k.into(), v.into())),
        }
    }
    let r = run(&o, &|_| {}).unwrap();
    println!("{:?} cells {} covered {:.3}", r.seconds, r.cells, r.covered);
    let p = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.4}"));
    for (n, t) in [("cand", &r.by_candidates), ("work", &r.by_work)] {
        for b in t {
            println!(
                "{n} {:6} garlic {} kmeans {}",
                b.cost,
                p(b.garlic),
                p(b.kmeans)
            );
        }
    }
    for s in &r.by_shape {
        for b in &s.budgets {
            println!(
                "{:9} n {} {:6} garlic {} kmeans {}",
                s.stratum.name(),
                s.queries,
                b.cost,
                p(b.garlic),
                p(b.kmeans)
            );
        }
    }
    for row in r.rows.iter().filter(|r| r.front) {
        println!(
            "{:14} {:24} r1 {:.4} cand {:7.0} de {:7.0} qps {:.0}",
            row.method,
            row.params.label(),
            row.recall_at_1,
            row.candidates,
            row.distance_equivalents,
            row.qps
        );
    }
}
