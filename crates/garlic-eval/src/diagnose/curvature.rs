//! How far the data are from flat around a point.
//!
//! The curvature of a neighbourhood is the share of its variance that lies outside its first few principal directions: 0
//! when the neighbours lie in a flat piece of that many dimensions, near 1 when they fill many more.

use garlic_linalg::{Rows, symmetric_eigen};
use rayon::prelude::*;
use serde::Serialize;

use super::by_cell::CellCurvatures;
use super::neighbours::Near;
use super::stats::{Group, Summary, by_count};

/// Neighbours of a neighbourhood, the sizes that are looked at.
pub(super) const SIZES: [usize; 5] = [8, 16, 32, 64, 128];
/// The size that coverage is compared with.
const USUAL: usize = 32;

/// Curvature around the points of a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curvature {
    /// Principal directions that count as flat.
    pub flat_directions: usize,
    /// Median distance of a point to its nearest neighbour in the sample, the unit of the radii.
    pub unit: f64,
    /// One entry a size of neighbourhood.
    pub sizes: Vec<SizeCurvature>,
    /// All sizes together.
    pub all: Summary,
    /// Neighbours of the neighbourhoods in `by_coverage`.
    pub coverage_size: usize,
    /// Curvature of points that are covered so many times.
    pub by_coverage: Vec<Group>,
    /// Curvature in each cell, of neighbourhoods of the same size.
    pub by_cell: CellCurvatures,
}

/// Curvature of neighbourhoods of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SizeCurvature {
    /// Neighbours beside the point itself.
    pub neighbours: usize,
    /// Distance of the farthest of them, in units.
    pub radius: Summary,
    /// The curvature.
    pub curvature: Summary,
    /// What points spread evenly over as many directions as they can span would have.
    pub without_structure: f64,
}

/// Curvature around the centres that `near` belongs to, and its relation to how often each is covered. Beside it the
/// curvature of every centre's neighbourhood of the size that coverage is compared with.
pub(super) fn curvature(
    points: Rows<'_>,
    near: &[Near],
    covered: &[usize],
    flat_directions: usize,
) -> (Curvature, Vec<f64>) {
    let unit = Summary::of(
        near.iter()
            .filter_map(|n| n.first())
            .map(|n| f64::from(n.0)),
    )
    .median;
    let unit = if unit > 0.0 { unit } else { 1.0 };
    let most = near.first().map_or(0, Vec::len);
    let sizes: Vec<usize> = SIZES
        .into_iter()
        .filter(|k| *k <= most && *k > flat_directions)
        .collect();
    // A row a centre, a column a size.
    let values: Vec<Vec<f64>> = near
        .par_iter()
        .enumerate()
        .map(|(centre, near)| of_centre(points, centre, near, &sizes, flat_directions))
        .collect();
    let column = |j: usize| values.iter().map(move |row| row[j]);
    let usual = sizes.iter().rposition(|k| *k <= USUAL);
    let of_usual: Vec<f64> = usual.map_or_else(Vec::new, |j| column(j).collect());
    let found = Curvature {
        flat_directions,
        unit,
        all: Summary::of(values.iter().flatten().copied()),
        coverage_size: usual.map_or(0, |j| sizes[j]),
        by_coverage: by_count(&covered[..of_usual.len().min(covered.len())], &of_usual),
        by_cell: CellCurvatures::default(),
        sizes: sizes
            .iter()
            .enumerate()
            .map(|(j, &k)| SizeCurvature {
                neighbours: k,
                radius: Summary::of(near.iter().map(|n| f64::from(n[k - 1].0) / unit)),
                curvature: Summary::of(column(j)),
                without_structure: 1.0
                    - (flat_directions as f64 / k.min(points.dim()) as f64).min(1.0),
            })
            .collect(),
    };
    (found, of_usual)
}

/// Curvature of the neighbourhoods of one point; no number where all points coincide.
fn of_centre(
    points: Rows<'_>,
    centre: usize,
    near: &Near,
    sizes: &[usize],
    flat: usize,
) -> Vec<f64> {
    let own = points.row(centre);
    let largest = sizes.last().copied().unwrap_or(0);
    // Differences from the centre keep the digits that large coordinates would cost.
    let rows: Vec<Vec<f32>> = std::iter::once(centre)
        .chain(near.iter().take(largest).map(|n| n.1 as usize))
        .map(|i| points.row(i).iter().zip(own).map(|(x, c)| x - c).collect())
        .collect();
    let n = rows.len();
    let mut products = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let product = f64::from(garlic_simd::dot(&rows[i], &rows[j]));
            (products[i * n + j], products[j * n + i]) = (product, product);
        }
    }
    // Neighbourhoods are nested: the products of a smaller one are a corner of those of the largest.
    let corner = |k: usize| -> Vec<f64> {
        (0..=k)
            .flat_map(|i| products[i * n..=i * n + k].to_vec())
            .collect()
    };
    sizes
        .iter()
        .map(|&k| outside(corner(k), k + 1, flat))
        .collect()
}

/// Share of the variance outside the first `flat` principal directions, from the products of `n` points.
fn outside(mut products: Vec<f64>, n: usize, flat: usize) -> f64 {
    let means: Vec<f64> = products
        .chunks_exact(n)
        .map(|row| row.iter().sum::<f64>() / n as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    for (i, row) in products.chunks_exact_mut(n).enumerate() {
        row.iter_mut()
            .zip(&means)
            .for_each(|(p, m)| *p += mean - m - means[i]);
    }
    let total: f64 = (0..n).map(|i| products[i * n + i]).sum();
    let kept: f64 = symmetric_eigen(&products, n).values.iter().take(flat).sum();
    if total > 0.0 {
        (1.0 - kept / total).clamp(0.0, 1.0)
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use garlic_linalg::{random_stream, uniform_unit};

    use super::super::neighbours::neighbours;
    use super::*;

    /// `n` points of a sheet of two dimensions in five, bent by `bend`.
    fn sheet(n: usize, bend: f64) -> Vec<f32> {
        let mut rng = random_stream(4, 4);
        (0..n)
            .flat_map(|_| {
                let (u, v) = (uniform_unit(&mut rng), uniform_unit(&mut rng));
                let up = bend * (u * u + v * v);
                [u, v, 100.0 + u + v, 2.0 * u - v, up].map(|x| x as f32)
            })
            .collect()
    }

    #[test]
    fn a_plane_is_flat_and_a_bent_sheet_is_not() {
        let of = |bend, flat| {
            let data = sheet(600, bend);
            let points = Rows::new(&data, 5).unwrap();
            let near = neighbours(points, 40, 128);
            curvature(points, &near, &[1; 40], flat).0
        };
        let plane = of(0.0, 2);
        assert_eq!(plane.sizes.len(), SIZES.len());
        assert!(plane.all.max < 1e-4, "{:?}", plane.all);
        let bent = of(3.0, 2);
        // A larger neighbourhood of a bent sheet is less flat.
        let means: Vec<f64> = bent.sizes.iter().map(|s| s.curvature.mean).collect();
        assert!(
            means.is_sorted() && means[4] > 10.0 * plane.all.max,
            "{means:?}"
        );
        assert!(of(0.0, 1).all.mean > 0.1);
        let radii: Vec<f64> = bent.sizes.iter().map(|s| s.radius.mean).collect();
        assert!(radii.is_sorted() && radii[0] > 1.0);
        assert_eq!(bent.by_coverage.len(), 1);
        assert_eq!(
            (bent.coverage_size, bent.by_coverage[0].values.count),
            (32, 40)
        );
    }

    #[test]
    fn a_cross_has_its_variance_in_known_shares() {
        // Four points on two orthogonal lines: variances 8 and 2 of 10.
        let rows = [[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]];
        let products = |k: usize| -> Vec<f64> {
            let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
            (0..k * k).map(|i| dot(rows[i / k], rows[i % k])).collect()
        };
        assert!((outside(products(4), 4, 1) - 0.2).abs() < 1e-12);
        assert!(outside(products(4), 4, 2) < 1e-12);
        assert!(outside(vec![0.0; 9], 3, 1).is_nan());
    }

    #[test]
    fn few_points_have_no_curvature() {
        let data = sheet(5, 0.0);
        let points = Rows::new(&data, 5).unwrap();
        let near = neighbours(points, 5, 128);
        let (found, values) = curvature(points, &near, &[0; 5], 3);
        assert!(values.is_empty());
        assert!(found.sizes.is_empty() && found.by_coverage.is_empty());
    }
}
