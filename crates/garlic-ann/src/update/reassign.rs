//! Points that are nearer to another cell than to their own, since cells around theirs were split or have moved.
//!
//! They leave when their cell is laid out anew because it has grown, which every cell that grows is from time to time: the
//! cells settle as they do between the rounds of a build, a few at a time.

use garlic_linalg::Rows;
use garlic_simd::Estimate;

use super::reshape::Members;
use crate::partition::Cells;
use crate::segment::Snapshot;
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::{Lists, by_label};

/// Cells that points may leave for: the nearest of their own.
const AROUND: usize = 16;
/// Nearest of them by plain distance among which the score decides.
const SHORTLIST: usize = 3;

/// Points of a cell that stay, and those that leave for other cells.
pub(super) struct Settled {
    pub(super) staying: Members,
    pub(super) leaving: Vec<(usize, Members)>,
}

/// Tells which of a cell's points stay.
pub(super) fn settle(view: &Snapshot<'_>, cell: usize, members: Members) -> Result<Settled> {
    let around = around(view, cell);
    let labels = best_of(view, &around, members.points.as_rows())?;
    let lists = Lists::group(around.len(), by_label(&labels));
    let dim = view.index.transform.dim();
    // The cell itself is the nearest of all to itself, but may have a twin.
    let own = around.iter().position(|c| *c as usize == cell);
    let mut settled = Settled {
        staying: members.pick(dim, own.map_or(&[], |own| lists.get(own))),
        leaving: Vec::new(),
    };
    for (number, other) in around.iter().enumerate() {
        let rows = lists.get(number);
        if *other as usize != cell && !rows.is_empty() {
            let leaving = members.pick(dim, rows);
            settled.leaving.push((*other as usize, leaving));
        }
    }
    Ok(settled)
}

/// The cells nearest to one, itself among them, in the order of their numbers.
fn around(view: &Snapshot<'_>, cell: usize) -> Vec<u32> {
    let mut distances = vec![0.0; view.cells()];
    garlic_simd::l2_squared_rows(view.means(), view.mean(cell), &mut distances);
    // Nothing comes before the cell itself.
    distances[cell] = 0.0;
    let numbered = (0..).zip(&distances).filter(|(_, d)| d.is_finite());
    let mut cells: Vec<Estimate> = numbered
        .map(|(at, d)| Estimate { at, estimate: *d })
        .collect();
    if cells.len() > AROUND {
        garlic_simd::keep_smallest(&mut cells, AROUND);
    }
    let mut around: Vec<u32> = cells.iter().map(|c| c.at).collect();
    if !around.contains(&(cell as u32)) {
        around.push(cell as u32);
        around.sort_unstable();
    }
    around
}

/// Which of some cells each point belongs to, by its place in `around`.
fn best_of(view: &Snapshot<'_>, around: &[u32], points: Rows<'_>) -> Result<Vec<u32>> {
    let means: Vec<f32> = around
        .iter()
        .flat_map(|cell| view.mean(*cell as usize))
        .copied()
        .collect();
    let cells = Cells {
        anisotropy: view.segment.cells.anisotropy,
        rank: view.segment.cells.rank(),
        means: &means,
        shape: |number: usize| {
            let frame = view.frame(around[number] as usize);
            (frame.axes, frame.variances, frame.residual)
        },
    };
    cells.assign(points, SHORTLIST, &Cancel::default())
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

    /// Two clouds of 300 points, a cell each; some points of the second are with the first.
    fn mixed(strays: usize) -> Index {
        let values = [cloud(300, 0.0, 1), cloud(300, 9.0, 2)].concat();
        let cells: Vec<u32> = (0..600).map(|i| u32::from(i >= 300 + strays)).collect();
        let builder = Index::builder().set("calibration_queries", "0").unwrap();
        builder.partition(cells).build(rows(&values, DIM)).unwrap()
    }

    fn sizes(index: &Index) -> Vec<usize> {
        let view = index.snapshot();
        (0..view.cells()).map(|cell| view.points_in(cell)).collect()
    }

    fn grown(index: &Index, count: usize, centre: f32) -> Index {
        let mut index = index.clone();
        let more = cloud(count, centre, 3);
        let new = ids(1000..1000 + count as u64);
        index.add(rows(&more, DIM), &new).unwrap();
        index
    }

    #[test]
    fn points_leave_when_their_cell_is_laid_out_anew() {
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
        // One of those that have left can be had, replaced, found and removed like any other.
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
    fn many_that_leave_are_too_many_for_a_tail() {
        let grown = grown(&mixed(150), 150, 0.0);
        assert_eq!(sizes(&grown), [450, 300]);
        let view = grown.snapshot();
        assert!(view.live_cell(1).tail.is_none(), "laid out anew");
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
