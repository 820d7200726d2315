//! Moves points to a nearer cell after the cells around theirs were split or refitted.
//!
//! Points leave when their cell is rewritten, which happens to every growing cell from time to time. Assignments
//! therefore converge as in the rounds of a build, a few cells at a time.

use garlic_linalg::Rows;
use garlic_simd::Estimate;

use super::rebuild::Members;
use crate::partition::Cells;
use crate::segment::Snapshot;
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::{Lists, by_label};

/// Number of nearest cells that a point may move to, including its own.
const NEAR_CELLS: usize = 16;
/// Number of nearest cells, by distance to the mean, that the anisotropic score is computed for.
const SCORED_CELLS: usize = 3;

/// The points that stay in a cell, and those that move to other cells.
pub(super) struct Reassigned {
    pub(super) staying: Members,
    pub(super) leaving: Vec<(usize, Members)>,
}

/// Assigns the points of a cell to it or to the cells around it.
pub(super) fn reassign(
    snapshot: &Snapshot<'_>,
    cell: usize,
    members: Members,
) -> Result<Reassigned> {
    let around = around(snapshot, cell);
    let labels = best_of(snapshot, &around, members.points.as_rows())?;
    let lists = Lists::group(around.len(), by_label(&labels));
    let dim = snapshot.index.transform.dim();
    // The cell is nearest to itself, but another cell may have the same mean.
    let own = around.iter().position(|c| *c as usize == cell);
    let mut reassigned = Reassigned {
        staying: members.pick(dim, own.map_or(&[], |own| lists.get(own))),
        leaving: Vec::new(),
    };
    for (number, other) in around.iter().enumerate() {
        let rows = lists.get(number);
        if *other as usize != cell && !rows.is_empty() {
            let leaving = members.pick(dim, rows);
            reassigned.leaving.push((*other as usize, leaving));
        }
    }
    Ok(reassigned)
}

/// The cells nearest to one cell, including itself, in ascending order.
fn around(snapshot: &Snapshot<'_>, cell: usize) -> Vec<u32> {
    let mut distances = vec![0.0; snapshot.cells()];
    garlic_simd::l2_squared_rows(snapshot.means(), snapshot.mean(cell), &mut distances);
    // Rounding must not put another cell first.
    distances[cell] = 0.0;
    let numbered = (0..).zip(&distances).filter(|(_, d)| d.is_finite());
    let mut cells: Vec<Estimate> = numbered
        .map(|(at, d)| Estimate { at, estimate: *d })
        .collect();
    if cells.len() > NEAR_CELLS {
        garlic_simd::keep_smallest(&mut cells, NEAR_CELLS);
    }
    let mut around: Vec<u32> = cells.iter().map(|c| c.at).collect();
    if !around.contains(&(cell as u32)) {
        around.push(cell as u32);
        around.sort_unstable();
    }
    around
}

/// The best of the `around` cells for each point, as an index into `around`.
fn best_of(snapshot: &Snapshot<'_>, around: &[u32], points: Rows<'_>) -> Result<Vec<u32>> {
    let means: Vec<f32> = around
        .iter()
        .flat_map(|cell| snapshot.mean(*cell as usize))
        .copied()
        .collect();
    let cells = Cells {
        anisotropy: snapshot.segment.cells.anisotropy,
        rank: snapshot.segment.cells.rank(),
        means: &means,
        shape: |number: usize| {
            let frame = snapshot.frame(around[number] as usize);
            (
                frame.shape.axes,
                frame.shape.variances,
                frame.shape.residual_variance,
            )
        },
    };
    cells.assign(points, SCORED_CELLS, &Cancel::default())
}

#[cfg(test)]
mod tests {
    use crate::Index;
    use crate::testdata::{ids, rows, uniform};

    const DIM: usize = 4;

    fn cloud(count: usize, centre: f32, seed: u64) -> Vec<f32> {
        let mut values = uniform(count, DIM, seed);
        values.iter_mut().step_by(DIM).for_each(|v| *v += centre);
        values
    }

    /// Two clouds of 300 points, one cell each. Some points of the second cloud are in the first cell.
    fn mixed(strays: usize) -> Index {
        let values = [cloud(300, 0.0, 1), cloud(300, 9.0, 2)].concat();
        let cells: Vec<u32> = (0..600).map(|i| u32::from(i >= 300 + strays)).collect();
        let builder = Index::builder().set("calibration_queries", "0").unwrap();
        builder.partition(cells).build(rows(&values, DIM)).unwrap()
    }

    fn sizes(index: &Index) -> Vec<usize> {
        let snapshot = index.snapshot();
        (0..snapshot.cells())
            .map(|cell| snapshot.points_in(cell))
            .collect()
    }

    fn grown(index: &Index, count: usize, centre: f32) -> Index {
        let mut index = index.clone();
        let more = cloud(count, centre, 3);
        let new = ids(1000..1000 + count as u64);
        index.add(rows(&more, DIM), &new).unwrap();
        index
    }

    #[test]
    fn points_leave_when_their_cell_is_rewritten() {
        let index = mixed(40);
        assert_eq!(sizes(&index), [340, 260]);
        assert_eq!(
            sizes(&grown(&index, 20, 0.0)),
            [360, 260],
            "not for a few that come"
        );
        let mut grown = grown(&index, 150, 0.0);
        assert_eq!(sizes(&grown), [450, 300], "the strays have left");
        assert_eq!(grown.len(), 750);
        let mut ids = grown.ids();
        ids.sort_unstable();
        let expected: Vec<u64> = (0..600).chain(1000..1150).collect();
        assert_eq!(ids, expected);
        // A moved point can be read, replaced, found and removed like any other.
        let moved = grown.get(310).unwrap();
        assert_eq!(moved, index.get(310).unwrap());
        let hits = grown.search(&moved, &crate::Search::new(1)).unwrap().hits;
        assert_eq!((hits[0].id, hits[0].distance), (310, 0.0));
        grown.update(rows(&cloud(1, 0.0, 9), DIM), &[310]).unwrap();
        assert_eq!(sizes(&grown).iter().sum::<usize>(), 750);
        assert_eq!(grown.remove(&[310, 311, 312]).unwrap(), 3);
        assert!(!grown.contains(311) && grown.contains(313));
        assert_eq!((grown.len(), sizes(&grown).iter().sum()), (747, 747));
        grown.compact().unwrap();
        assert_eq!((grown.len(), sizes(&grown).iter().sum()), (747, 747));
    }

    #[test]
    fn many_moved_points_rewrite_their_new_cell() {
        let grown = grown(&mixed(150), 150, 0.0);
        assert_eq!(sizes(&grown), [450, 300]);
        let snapshot = grown.snapshot();
        assert!(snapshot.cell_state(1).appended.is_none(), "rewritten");
    }

    #[test]
    fn cells_at_one_place_lose_nothing() {
        let values = [cloud(200, 0.0, 1), cloud(200, 0.0, 1)].concat();
        let cells: Vec<u32> = (0..400).map(|i| u32::from(i >= 200)).collect();
        let builder = Index::builder().set("calibration_queries", "0").unwrap();
        let index = builder.partition(cells).build(rows(&values, DIM)).unwrap();
        let grown = grown(&index, 300, 0.0);
        assert_eq!((grown.len(), sizes(&grown).iter().sum()), (700, 700));
        let mut ids = grown.ids();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 700);
    }
}
