//! One thread and several give the same bits.

use crate::reference::{blobs, random};
use crate::{
    Rows, Wanted, covariance, farthest_points, kmeans_plus_plus, leading_components, lloyd,
    nearest_centres, pca, random_rows, top_components,
};

/// Every bulk result for one data set, as bits.
fn everything(rows: Rows<'_>) -> Vec<u64> {
    let single = |v: &[f32]| v.iter().map(|x| u64::from(x.to_bits())).collect::<Vec<_>>();
    let double = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let mut bits = Vec::new();
    let (mean, cov) = covariance(rows);
    bits.extend(double(&mean));
    bits.extend(double(&cov));
    let wanted = Wanted {
        least: 3,
        most: 40,
        share: 0.9,
    };
    let leading = leading_components(rows, wanted, 3, &|| false).unwrap();
    bits.push(leading.total.to_bits());
    for found in [pca(rows), top_components(rows, 5, 3), leading.pca] {
        bits.extend(single(found.basis.as_slice()));
        bits.extend(single(&found.values));
        bits.extend(single(&found.mean));
    }
    for start in [
        kmeans_plus_plus(rows, 25, 4),
        farthest_points(rows, 25, 4),
        random_rows(rows, 25, 4),
    ] {
        bits.extend(single(&nearest_centres(rows, start.as_rows()).1));
        let found = lloyd(rows, start, 4);
        bits.extend(single(found.centres.as_slice()));
        bits.extend(found.labels.iter().map(|&l| u64::from(l)));
    }
    bits
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    // More rows than one chunk of every kind, and one case where the components are iterated.
    let mut decaying = random(1500 * 270, 2);
    for row in decaying.chunks_exact_mut(270) {
        row.iter_mut()
            .enumerate()
            .for_each(|(j, x)| *x *= 0.9f32.powi(j as i32));
    }
    for (values, d) in [(blobs(2600, 20, 7, 1), 20), (decaying, 270)] {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| everything(Rows::new(&values, d).unwrap()))
        };
        let one = run(1);
        assert!(one == run(2));
        assert!(one == run(3));
    }
}
