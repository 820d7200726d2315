//! Neighbourhoods of some points among all points of the sample.

use garlic_linalg::Rows;
use rayon::prelude::*;

/// Nearest other points of the sample, nearest first, with their distances.
pub(super) type Near = Vec<(f32, u32)>;

/// The `k` nearest other points of each of the first `centres` points, by brute force; ties go to the lower number.
pub(super) fn neighbours(points: Rows<'_>, centres: usize, k: usize) -> Vec<Near> {
    (0..centres.min(points.len()))
        .into_par_iter()
        .map(|centre| {
            let own = points.row(centre);
            let mut near: Near = points
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != centre)
                .map(|(i, row)| (garlic_simd::l2_squared(own, row), i as u32))
                .collect();
            let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
            if k < near.len() {
                near.select_nth_unstable_by(k, order);
                near.truncate(k);
            }
            near.sort_unstable_by(order);
            near.iter_mut().for_each(|n| n.0 = n.0.sqrt());
            near
        })
        .collect()
}

/// One over the distance to the `k`-th nearest other point; infinite where that many coincide, no number where there are
/// fewer.
pub(super) fn densities(near: &[Near], k: usize) -> Vec<f64> {
    let one = |near: &Near| {
        near.get(k.max(1) - 1)
            .map_or(f64::NAN, |n| 1.0 / f64::from(n.0))
    };
    near.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_have_known_neighbours() {
        let data = [0.0, 1.0, 3.0, 7.0, 7.0];
        let near = neighbours(Rows::new(&data, 1).unwrap(), 4, 2);
        assert_eq!(near[0], [(1.0, 1), (3.0, 2)]);
        assert_eq!(near[2], [(2.0, 1), (3.0, 0)]);
        assert_eq!(near[3], [(0.0, 4), (4.0, 2)]);
        let density = densities(&near, 2);
        assert_eq!((density[0], density[3]), (1.0 / 3.0, 0.25));
        assert!(densities(&near, 1)[3].is_infinite() && densities(&near, 9)[0].is_nan());
        assert_eq!(neighbours(Rows::new(&data, 1).unwrap(), 9, 9)[0].len(), 4);
    }
}
