//! On real vectors, when they are there: pruned assignment and routing give what full evaluation gives.

use std::io::Write as _;

use garlic_data::{Dataset, data_dir};
use garlic_paper::gaussians::{Gaussians, assign};
use garlic_paper::{Cancel, Config, GaussianIndex, Rows, Search};

/// Rows of the base set that are used.
const POINTS: usize = 3000;
const QUERIES: usize = 40;

/// Distance of one point to one full cell in f64.
fn mahalanobis(model: &Gaussians, x: &[f32], cell: usize) -> f64 {
    let (mean, factor) = (model.mean(cell), model.factor(cell));
    let mut y: Vec<f64> = Vec::with_capacity(x.len());
    for i in 0..x.len() {
        let row = &factor[i * (i + 1) / 2..][..=i];
        let sum: f64 = row.iter().zip(&y).map(|(l, y)| f64::from(*l) * y).sum();
        y.push((f64::from(x[i]) - f64::from(mean[i]) - sum) / f64::from(row[i]));
    }
    y.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn check(name: &str) {
    let path = data_dir().join(format!("{name}.hdf5"));
    if !path.exists() {
        // Straight to standard error: what `eprintln!` says in a test that passes is never shown.
        let message = format!(
            "*** NOT TESTED: {} is absent; set GARLIC_DATA ***\n",
            path.display()
        );
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        return;
    }
    let data = Dataset::open(&path).unwrap();
    let dim = data.train.dim();
    let values = data.train.head(POINTS).unwrap().into_f32();
    let rows = Rows::new(&values, dim).unwrap();
    let mut config = Config::default();
    config.init.initial_cells = 24;
    config.training.epochs = 6;
    config.training.batch = 1500;
    config.training.warmup_epochs = 2;
    // Large steps: the factors must be far from where they started.
    config.training.factor_rate = [1e-3, 2e-2, 2e-2];
    let builder = GaussianIndex::builder().config(config);
    let index = builder.build(rows).unwrap();
    let model = index.model();

    let mut mapped = Vec::new();
    for row in rows.iter() {
        let mut out = vec![0.0; dim];
        index.transform().apply(row, &mut out);
        mapped.extend(out);
    }
    let points = Rows::new(&mapped, dim).unwrap();
    let sample = points.slice(0..400);
    let distances: Vec<Vec<f64>> = sample
        .iter()
        .map(|x| (0..model.len()).map(|c| mahalanobis(model, x, c)).collect())
        .collect();
    let mut smallest: Vec<f64> = distances
        .iter()
        .map(|d| d.iter().copied().fold(f64::INFINITY, f64::min))
        .collect();
    smallest.sort_by(f64::total_cmp);
    let tau = smallest[300];
    let assignment = assign(sample, model, tau as f32, &Cancel::default()).unwrap();
    let mut covered = 0;
    for (p, all) in distances.iter().enumerate() {
        let best = all.iter().copied().fold(f64::INFINITY, f64::min);
        let chosen = all[assignment.nearest[p] as usize];
        assert!(
            chosen <= best * (1.0 + 1e-5),
            "{name} point {p}: {chosen} {best}"
        );
        for (c, distance) in all.iter().enumerate() {
            let is = assignment.covering(p).contains(&(c as u32));
            covered += usize::from(is);
            let clear = (distance - tau).abs() > 1e-5 * tau;
            assert!(
                !clear || is == (*distance <= tau),
                "{name} point {p} cell {c}: {distance} {tau}"
            );
        }
    }
    assert!(covered >= 290, "{name}: {covered}");

    let queries = data.test.unwrap().head(QUERIES).unwrap().into_f32();
    check_routes(name, &index, &queries);
}

/// Routes are in the order of full distances, and cost less than computing those.
fn check_routes(name: &str, index: &GaussianIndex, queries: &[f32]) {
    let (dim, model) = (index.dim(), index.model());
    let (mut spent, mut full) = (0, 0);
    for query in queries.chunks_exact(dim) {
        let mut mapped = vec![0.0; dim];
        index.transform().apply(query, &mut mapped);
        let mut order: Vec<f64> = (0..model.len())
            .map(|c| mahalanobis(model, &mapped, c))
            .collect();
        let by_cell = order.clone();
        order.sort_by(f64::total_cmp);
        for (rank, cell) in index.route(query, 8).unwrap().into_iter().enumerate() {
            let distance = by_cell[cell as usize];
            assert!(
                (distance - order[rank]).abs() <= 1e-5 * distance,
                "{name} rank {rank}"
            );
        }
        let answer = index.search(query, &Search::new(1).probes(1)).unwrap();
        spent += answer.stats.routing_madds;
        full += (model.len() * dim * (dim + 1) / 2) as u64;
    }
    // A query that is equally far from all cells needs all of them, after their bounds.
    assert!(
        spent < full,
        "{name}: routing costs more than no pruning ({spent} of {full})"
    );
}

#[test]
fn fashion_mnist() {
    check("fashion-mnist-784-euclidean");
}

#[test]
fn photosift() {
    check("photosift1m-128-euclidean");
}
