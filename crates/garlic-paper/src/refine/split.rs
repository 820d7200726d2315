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

/// Root mean squared deviation of the points nearest to each centre, over that of all of them.
pub(super) fn spreads(points: Rows<'_>, held: &[u32], centres: &[Vec<f32>; 2]) -> [f32; 2] {
    let second = |p: &u32| {
        let [a, b] = [0, 1].map(|c| garlic_simd::l2_squared(points.row(*p as usize), &centres[c]));
        b < a
    };
    let (far, near): (Vec<u32>, Vec<u32>) = held.iter().partition(|p| second(p));
    let all = variance(points, held);
    [near, far].map(|side| match (all > 0.0, variance(points, &side)) {
        (true, own) if own > 0.0 => (own / all).sqrt().min(1.0) as f32,
        _ => 1.0,
    })
}

/// Mean squared distance of some points from their mean.
fn variance(points: Rows<'_>, held: &[u32]) -> f64 {
    let count = held.len().max(1) as f64;
    let mut mean = vec![0.0f64; points.dim()];
    for p in held {
        let row = mean.iter_mut().zip(points.row(*p as usize));
        row.for_each(|(m, x)| *m += f64::from(*x) / count);
    }
    let squared = |p: &u32| -> f64 {
        let pairs = points.row(*p as usize).iter().zip(&mean);
        pairs.map(|(x, m)| (f64::from(*x) - m).powi(2)).sum()
    };
    held.iter().map(squared).sum::<f64>() / count
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_as_wide_as_their_points() {
        let data = [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 8.0, 0.0, 12.0, 0.0];
        let points = Rows::new(&data, 2).unwrap();
        let centres = [vec![0.0, 0.0], vec![10.0, 0.0]];
        // The mean of all is 4; squares 25, 16, 9, 16, 64: variance 26. Sides: 2/3 and 4.
        let [near, far] = spreads(points, &[0, 1, 2, 3, 4], &centres);
        assert!((f64::from(near) - (2.0 / 3.0 / 26.0f64).sqrt()).abs() < 1e-6);
        assert!((f64::from(far) - (4.0 / 26.0f64).sqrt()).abs() < 1e-6);
        assert_eq!(spreads(points, &[0, 4], &centres), [1.0, 1.0]);
    }
}
