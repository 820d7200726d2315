#![allow(clippy::print_stdout, missing_docs)]
use garlic_eval::demo::*;
fn main() {
    let seed: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut o = DemoOptions::new(format!("/tmp/eval-demo/{seed}"));
    o.seed = seed;
    let r = run(&o, &|_| {}).unwrap();
    println!("{:?} cells {} covered {:.3}", r.seconds, r.cells, r.covered);
    let p = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.4}"));
    for (n, t) in [("cand", &r.by_candidates), ("work", &r.by_work)] {
        for b in t {
            println!("{n} {:6} garlic {} kmeans {} fine {}", b.cost, p(b.garlic), p(b.kmeans), p(b.kmeans_fine));
        }
    }
}
