//! Curvature of the data in each cell, beside the radius of the cell and the points that it holds.

use garlic_core::{CellShapes, NeighborIndex};
use garlic_linalg::Rows;
use rayon::prelude::*;
use serde::Serialize;

use super::stats::rank_correlation;
use crate::error::Result;

/// Curvature by cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellCurvatures {
    /// Cells that are nearest to a point whose neighbourhood was looked at, by their numbers.
    pub cells: Vec<CellCurvature>,
    /// Rank correlation of curvature and radius over these cells; null when one of them is constant.
    pub radius_correlation: Option<f64>,
    /// Rank correlation of curvature and the share of the points.
    pub share_correlation: Option<f64>,
}

/// Curvature in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CellCurvature {
    /// Number of the cell.
    pub cell: u32,
    /// Points behind the curvature.
    pub centres: usize,
    /// Mean curvature of their neighbourhoods.
    pub curvature: f64,
    /// Square root of the trace of the cell's covariance, in the space of the cells.
    pub radius: f64,
    /// Share of all points that the cell holds.
    pub share: f64,
}

/// Groups the curvature of the first points of `vectors` by the cell that a search for them visits first.
pub(super) fn by_cell(
    index: &dyn NeighborIndex,
    shapes: &dyn CellShapes,
    vectors: Rows<'_>,
    curvatures: &[f64],
) -> Result<CellCurvatures> {
    let homes: Vec<u32> = (0..curvatures.len())
        .into_par_iter()
        .map(|centre| Ok(index.route(vectors.row(centre), 1)?.first().copied()))
        .collect::<Result<Vec<Option<u32>>>>()?
        .into_iter()
        .map(|home| home.unwrap_or(u32::MAX))
        .collect();
    let known = homes.iter().zip(curvatures).filter(|(_, c)| c.is_finite());
    let mut pairs: Vec<(u32, f64)> = known.map(|(home, c)| (*home, *c)).collect();
    // Sums are taken in the order of the centres.
    pairs.sort_by_key(|(home, _)| *home);
    let sizes = index.cell_sizes();
    let groups: Vec<&[(u32, f64)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
    let cells = groups.into_par_iter().filter_map(|group| {
        let cell = group[0].0;
        let size = *sizes.get(cell as usize)?;
        let (dim, covariance) = (shapes.dim(), shapes.covariance(cell as usize));
        let trace: f64 = covariance.iter().step_by(dim + 1).sum();
        Some(CellCurvature {
            cell,
            centres: group.len(),
            curvature: group.iter().map(|(_, c)| c).sum::<f64>() / group.len() as f64,
            radius: trace.sqrt(),
            share: size as f64 / index.len().max(1) as f64,
        })
    });
    let cells: Vec<CellCurvature> = cells.collect();
    let column = |of: fn(&CellCurvature) -> f64| cells.iter().map(of).collect::<Vec<f64>>();
    let curvature = column(|c| c.curvature);
    Ok(CellCurvatures {
        radius_correlation: rank_correlation(&column(|c| c.radius), &curvature),
        share_correlation: rank_correlation(&column(|c| c.share), &curvature),
        cells,
    })
}

#[cfg(test)]
mod tests {
    use garlic_linalg::{random_stream, uniform_unit};
    use garlic_paper::GaussianIndex;

    use super::*;

    #[test]
    fn curvature_is_averaged_over_the_points_of_a_cell() {
        // Two clumps, the second three times as wide and with twice the points.
        let mut random = random_stream(1, 2);
        let mut data = Vec::new();
        let mut labels = Vec::new();
        for i in 0..300u32 {
            let second = i % 3 > 0;
            let (at, wide) = if second { (50.0, 3.0) } else { (0.0, 1.0) };
            data.extend((0..4).map(|_| at + wide * uniform_unit(&mut random) as f32));
            labels.push(u32::from(second));
        }
        let rows = Rows::new(&data, 4).unwrap();
        let builder = GaussianIndex::builder().partition(labels).threads(1);
        let index = builder.build(rows).unwrap();
        // Points 0, 3, 6 are of the first cell; one of them has no curvature.
        let curvatures = [0.2, 0.5, 0.7, 0.4, 0.6, 0.6, f64::NAN];
        let shapes = NeighborIndex::shapes(&index);
        let found = by_cell(&index, &*shapes, rows, &curvatures).unwrap();
        let told: Vec<(u32, usize, f64)> = (found.cells.iter())
            .map(|c| (c.cell, c.centres, c.share))
            .collect();
        assert_eq!(told, [(0, 2, 1.0 / 3.0), (1, 4, 2.0 / 3.0)]);
        assert!((found.cells[0].curvature - 0.3).abs() < 1e-12);
        assert!((found.cells[1].curvature - 0.6).abs() < 1e-12);
        assert!(found.cells[1].radius > 2.0 * found.cells[0].radius);
        assert_eq!(found.radius_correlation, Some(1.0));
        assert_eq!(found.share_correlation, Some(1.0));
    }
}
