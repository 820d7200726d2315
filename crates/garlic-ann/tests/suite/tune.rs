//! Recall targets hold for queries that do not resemble the points, if a sample of such queries is given.

use garlic_ann::{Error, Index, Metric, Rows, Search};

const DIM: usize = 24;
const POINTS: usize = 9000;

/// Numbers in [-1, 1) that depend on their argument only.
fn noise(n: u64) -> f32 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// Points in 60 narrow clusters.
fn points() -> Vec<f32> {
    let value = |row: usize, axis: usize| {
        let centre = noise((row % 60 * DIM + axis) as u64);
        centre + 0.15 * noise((1_000_000 + row * DIM + axis) as u64) + 0.3
    };
    (0..POINTS)
        .flat_map(|row| (0..DIM).map(move |axis| value(row, axis)))
        .collect()
}

/// Queries between all clusters, where no point is.
fn queries(first: usize, count: usize) -> Vec<f32> {
    (first * DIM..(first + count) * DIM)
        .map(|n| 0.6 * noise(50_000_000 + n as u64) + 0.3)
        .collect()
}

fn rows(values: &[f32]) -> Rows<'_> {
    Rows::new(values, DIM).unwrap()
}

fn recall(index: &Index, queries: &[f32], k: usize, target: f64) -> f64 {
    let (mut found, mut wanted) = (0, 0);
    for query in rows(queries).iter() {
        let truth = index.search(query, &Search::new(k).exact(true)).unwrap();
        let answer = index.search(query, &Search::new(k).recall(target)).unwrap();
        let limit = truth.hits[k - 1].distance;
        let limit = limit + 1e-6 * limit.abs();
        found += answer.hits.iter().filter(|h| h.distance <= limit).count();
        wanted += k;
    }
    found as f64 / wanted as f64
}

#[test]
fn targets_are_met_for_a_sample_and_stay_met_after_a_training() {
    let (points, sample, asked) = (points(), queries(0, 500), queries(500, 500));
    for metric in [Metric::Euclidean, Metric::Cosine, Metric::InnerProduct] {
        let builder = || Index::builder().metric(metric).seed(1);
        let plain = builder().build(rows(&points)).unwrap();
        let mut tuned = plain.clone();
        tuned.tune(rows(&sample)).unwrap();
        let built = builder().queries_like(rows(&sample));
        let built = built.build(rows(&points)).unwrap();
        for target in [0.9, 0.95, 0.99] {
            for (index, how) in [(&tuned, "tuned"), (&built, "built")] {
                let met = recall(index, &asked, 10, target);
                assert!(met >= target - 0.01, "{metric} {how} {target}: {met}");
            }
        }
        let factor = tuned.calibration().sample_correction;
        if metric == Metric::Euclidean {
            let missed = recall(&plain, &asked, 10, 0.95);
            assert!(missed < 0.93, "these queries are not hard: {missed}");
            assert!(!tuned.reads_everything(10, 0.95), "that would be easy");
            assert!(factor > 1.5, "{factor}");
        }
        assert_eq!(plain.calibration().sample_correction, 1.0);

        // A training has no sample. It keeps aiming higher.
        let mut trained = tuned.clone();
        trained.retrain().unwrap();
        assert_eq!(trained.calibration().sample_correction, factor);
        assert_eq!(trained.calibration().correction, factor);
        let met = recall(&trained, &asked, 10, 0.95);
        assert!(met >= 0.93, "{metric} trained: {met}");
        trained.recalibrate().unwrap();
        assert_eq!(trained.calibration().correction, factor);
        let kept = Index::from_bytes(&trained.to_bytes().unwrap()).unwrap();
        assert_eq!(kept.calibration(), trained.calibration());
    }
}

#[test]
fn tables_for_a_sample_do_not_depend_on_threads() {
    let (points, sample) = (points(), queries(0, 300));
    let table = |threads: usize| {
        let builder = Index::builder().threads(threads).seed(3);
        let index = builder.queries_like(rows(&sample)).build(rows(&points));
        index.unwrap().to_bytes().unwrap()
    };
    let one = table(1);
    assert!(one == table(2) && one == table(5));
}

#[test]
fn samples_that_cannot_be_used_are_refused() {
    let points = points();
    let mut index = Index::builder().build(rows(&points)).unwrap();
    let before = index.calibration().clone();
    let few = queries(0, 99);
    let error = index.tune(rows(&few)).unwrap_err().to_string();
    assert!(error.contains("at least 100"), "{error}");
    let wide = vec![0.5; 200 * (DIM + 1)];
    let error = index.tune(Rows::new(&wide, DIM + 1).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Dimension { .. }), "{error}");
    let mut broken = queries(0, 200);
    broken[70 * DIM + 3] = f32::NAN;
    let error = index.tune(rows(&broken)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::QueryNotFinite {
                row: 70,
                column: 3,
                ..
            }
        ),
        "{error}"
    );
    let builder = Index::builder().queries_like(rows(&broken));
    let error = builder.build(rows(&points)).unwrap_err();
    assert!(
        matches!(error, Error::QueryNotFinite { row: 70, .. }),
        "{error}"
    );
    assert_eq!(*index.calibration(), before, "nothing has changed");
    let mut empty = Index::empty(DIM, Default::default()).unwrap();
    let sample = queries(0, 200);
    assert!(matches!(empty.tune(rows(&sample)), Err(Error::NoVectors)));
}
