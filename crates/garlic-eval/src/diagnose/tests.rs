//! The whole diagnosis, of small indexes of either preset.

use garlic_ann::Index;
use garlic_linalg::{Rows, random_stream, uniform_unit};
use garlic_paper::GaussianIndex;

use super::*;

const DIM: usize = 6;

/// Three stretched clouds.
fn data() -> Vec<f32> {
    let mut rng = random_stream(8, 8);
    (0..1500 * DIM)
        .map(|i| {
            let (row, column) = (i / DIM, i % DIM);
            let spread = if column == row % 3 { 6.0 } else { 1.0 };
            ((row % 3 * 10) as f64 + spread * (uniform_unit(&mut rng) - 0.5)) as f32
        })
        .collect()
}

/// A small index of three stretched clouds.
pub(super) fn index() -> Index {
    let builder = Index::builder().seed(1).threads(1);
    builder.build(Rows::new(&data(), DIM).unwrap()).unwrap()
}

fn published() -> GaussianIndex {
    let mut builder = GaussianIndex::builder().seed(1).threads(1);
    for (key, value) in [("initial_cells", "8"), ("epochs", "6"), ("batch", "500")] {
        builder = builder.set(key, value).unwrap();
    }
    builder.build(Rows::new(&data(), DIM).unwrap()).unwrap()
}

fn options() -> Options {
    Options {
        points: 900,
        centres: 120,
        tiles: 16,
        ..Options::default()
    }
}

#[test]
fn either_preset_has_every_section() {
    let (paper, default) = (published(), index());
    let both: [(&dyn NeighborIndex, &str); 2] = [(&paper, "paper"), (&default, "default")];
    for (index, name) in both {
        let found = diagnose(index, &options()).unwrap();
        assert_eq!((found.subject.preset, found.subject.sampled), (name, 900));
        assert_eq!(found.coverage.counts.counts.iter().sum::<usize>(), 900);
        assert_eq!(
            found
                .density
                .covered
                .iter()
                .map(|g| g.values.count)
                .sum::<usize>(),
            120
        );
        assert_eq!(found.curvature.sizes.len(), curvature::SIZES.len());
        let by_cell = &found.curvature.by_cell.cells;
        let centres: usize = by_cell.iter().map(|cell| cell.centres).sum();
        assert_eq!(centres, found.subject.centres);
        assert!(by_cell.is_sorted_by(|a, b| a.cell < b.cell));
        assert!(found.curvature.all.min >= 0.0 && found.curvature.all.max <= 1.0);
        assert!(found.anisotropy.ratio.summary.min >= 1.0);
        assert_eq!(found.landscape.nearest.len(), 256);
    }
}

#[test]
fn the_radius_is_tau_or_says_what_it_is() {
    let found = diagnose(&published(), &options()).unwrap();
    assert_eq!((found.radius.value, found.radius.over_tau), (3.0, 1.0));
    assert_eq!(found.coverage.share, found.coverage.share_within_tau);
    let found = diagnose(&index(), &options()).unwrap();
    let dim = found.subject.model_dim as f64;
    let expected = (dim + 3.0 * (2.0 * dim).sqrt()).sqrt();
    assert!(
        (found.radius.value - expected).abs() < 1e-12 && found.radius.reason.contains("no tau")
    );
    assert!(found.coverage.share >= found.coverage.share_within_tau);
    // Nearly all points are where a cell fitted to them says they are.
    assert!(found.coverage.share > 0.9, "{}", found.coverage.share);
}

#[test]
fn coverage_of_all_points_is_that_of_the_index() {
    let index = published();
    let all = Options {
        points: 1500,
        ..options()
    };
    let found = diagnose(&index, &all).unwrap();
    let known = index.coverage();
    assert!(
        (found.coverage.share - known.share).abs() < 2e-3,
        "{} {}",
        found.coverage.share,
        known.share
    );
    let sizes: usize = found.cell_sizes.sizes.iter().sum();
    assert!((sizes as f64 / 1500.0 - known.mean).abs() < 1e-9);
}

#[test]
fn numbers_do_not_depend_on_threads_but_on_the_seed() {
    let index = index();
    let on = |threads: usize, options: Options| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| diagnose(&index, &options)).unwrap()
    };
    let text = |d: &Diagnosis| serde_json::to_string(d).unwrap();
    let one = on(1, options());
    assert_eq!(text(&one), text(&on(3, options())));
    let other = on(
        1,
        Options {
            seed: 2,
            ..options()
        },
    );
    assert_ne!(text(&one), text(&other));
}

#[test]
fn very_small_indexes_are_no_problem() {
    for (n, dim) in [(1, 1), (2, 3), (5, 2), (40, 1)] {
        let data: Vec<f32> = (0..n * dim).map(|i| (i * 7 % 11) as f32).collect();
        let index = Index::builder()
            .threads(1)
            .build(Rows::new(&data, dim).unwrap())
            .unwrap();
        let found = diagnose(&index, &options()).unwrap();
        assert_eq!(found.subject.sampled, n);
        assert!(
            found.landscape.nearest.iter().all(|v| v.is_finite()),
            "{n} {dim}"
        );
    }
}

#[test]
fn nothing_is_not_accepted() {
    let index = index();
    let none = Options {
        tiles: 0,
        ..options()
    };
    let error = diagnose(&index, &none).unwrap_err().to_string();
    assert!(error.contains("`tiles` is 0"), "{error}");
}
