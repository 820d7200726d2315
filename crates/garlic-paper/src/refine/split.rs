//! Splitting: the two halves of a cell that holds more than the share gamma of the points.

use garlic_linalg::{Matrix, Rows, kmeans_plus_plus, lloyd};

use super::dbscan::{NOISE, dbscan};
use super::sample;
use crate::config::{Config, SplitMethod};

/// Lloyd steps of a 2-means split.
const TWO_MEANS_STEPS: usize = 10;

/// Centres of the two halves of a cell, or nothing when it has no two halves.
pub(super) fn centres(
    points: Rows<'_>,
    held: &[u32],
    config: &Config,
    stream: u64,
) -> Option<[Vec<f32>; 2]> {
    let gathered = Matrix::gather(
        points,
        &sample(held, config.refinement.split_sample, config, stream),
    );
    let rows = gathered.as_rows();
    if config.refinement.split_method == SplitMethod::Dbscan {
        let (labels, clusters) = dbscan(rows);
        if clusters >= 2 {
            let mut sizes = vec![0usize; clusters];
            labels
                .iter()
                .filter(|l| **l != NOISE)
                .for_each(|l| sizes[*l as usize] += 1);
            let mut order: Vec<usize> = (0..clusters).collect();
            order.sort_by_key(|c| (std::cmp::Reverse(sizes[*c]), *c));
            let (first, second) = (order[0], order[1]);
            if balanced(sizes[first], sizes[second], config) {
                return Some([
                    mean_of(rows, &labels, first),
                    mean_of(rows, &labels, second),
                ]);
            }
        }
    }
    let clustering = lloyd(
        rows,
        kmeans_plus_plus(rows, 2, config.seed ^ stream),
        TWO_MEANS_STEPS,
    );
    let [first, second] = clustering.sizes[..] else {
        return None;
    };
    balanced(first as usize, second as usize, config).then(|| {
        [
            clustering.centres.row(0).to_vec(),
            clustering.centres.row(1).to_vec(),
        ]
    })
}

fn balanced(first: usize, second: usize, config: &Config) -> bool {
    first.max(second) as f64 <= config.refinement.split_refusal * (first + second) as f64
}

fn mean_of(rows: Rows<'_>, labels: &[u32], cluster: usize) -> Vec<f32> {
    let mut sum = vec![0.0f64; rows.dim()];
    let mut count = 0.0;
    for (row, _) in rows
        .iter()
        .zip(labels)
        .filter(|(_, l)| **l as usize == cluster)
    {
        sum.iter_mut()
            .zip(row)
            .for_each(|(s, x)| *s += f64::from(*x));
        count += 1.0;
    }
    sum.into_iter().map(|s| (s / count) as f32).collect()
}
