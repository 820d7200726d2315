//! Density-based clustering of the few hundred points of one cell.

use garlic_linalg::Rows;

/// Neighbours (the point itself not counted) that make a point a core point.
const NEIGHBOURS: usize = 4;
/// Share of the points that are core points: the radius is this quantile of the distances to the
/// `NEIGHBOURS`-th neighbour, so that it follows the cell's own density.
const CORE_SHARE: f64 = 0.9;

/// A point in no cluster.
pub(super) const NOISE: u32 = u32::MAX;

/// Cluster of each row (numbered in the order of their first core point), and the number of clusters.
pub(super) fn dbscan(rows: Rows<'_>) -> (Vec<u32>, usize) {
    let n = rows.len();
    if n <= NEIGHBOURS {
        return (vec![NOISE; n], 0);
    }
    let mut squared = vec![0.0f32; n * n];
    for i in 0..n {
        for j in 0..i {
            let d = garlic_simd::l2_squared(rows.row(i), rows.row(j));
            squared[i * n + j] = d;
            squared[j * n + i] = d;
        }
    }
    let reach: Vec<f32> = squared
        .chunks_exact(n)
        .map(|row| {
            let mut row = row.to_vec();
            // The point itself is among the values, at distance zero.
            *row.select_nth_unstable_by(NEIGHBOURS, f32::total_cmp).1
        })
        .collect();
    let radius = {
        let mut sorted = reach.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        sorted[((n - 1) as f64 * CORE_SHARE) as usize]
    };
    let core = |i: usize| reach[i] <= radius;

    let mut labels = vec![NOISE; n];
    let mut clusters = 0;
    let mut open = Vec::new();
    for start in 0..n {
        if labels[start] != NOISE || !core(start) {
            continue;
        }
        labels[start] = clusters;
        open.push(start);
        while let Some(i) = open.pop() {
            for j in 0..n {
                if labels[j] == NOISE && squared[i * n + j] <= radius {
                    labels[j] = clusters;
                    if core(j) {
                        open.push(j);
                    }
                }
            }
        }
        clusters += 1;
    }
    (labels, clusters as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_separate_groups_are_two_clusters_and_a_stray_point_is_noise() {
        let mut data: Vec<f32> = (0..20).map(|i| i as f32 * 0.1).collect();
        data.extend((0..30).map(|i| 100.0 + i as f32 * 0.1));
        data.push(50.0);
        let (labels, clusters) = dbscan(Rows::new(&data, 1).unwrap());
        assert_eq!(clusters, 2);
        assert!(labels[..20].iter().all(|l| *l == 0));
        assert!(labels[20..50].iter().all(|l| *l == 1));
        assert_eq!(labels[50], NOISE);
    }

    #[test]
    fn a_line_is_one_cluster_and_identical_points_too() {
        let data: Vec<f32> = (0..50).map(|i| i as f32).collect();
        assert_eq!(dbscan(Rows::new(&data, 1).unwrap()).1, 1);
        assert_eq!(dbscan(Rows::new(&[7.0; 40], 2).unwrap()).1, 1);
        assert_eq!(dbscan(Rows::new(&[1.0, 2.0], 1).unwrap()).1, 0);
    }
}
