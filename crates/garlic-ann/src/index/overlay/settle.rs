//! Points that are nearer to another cell than to their own, since cells around theirs were split or have moved.
//!
//! They leave when their cell is laid out anew, which every cell is from time to time as it grows: the cells settle as
//! they do between the rounds of a build, a few at a time.

use garlic_linalg::Rows;
use garlic_simd::Estimate;

use super::reshape::Members;
use super::view::View;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::model::{Cells, Lists, by_label};

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
pub(super) fn settle(view: &View<'_>, cell: usize, members: Members) -> Result<Settled> {
    let around = around(view, cell);
    let labels = best_of(view, &around, members.points.as_rows())?;
    let lists = Lists::group(around.len(), by_label(&labels));
    let dim = view.index.space.dim();
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
fn around(view: &View<'_>, cell: usize) -> Vec<u32> {
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
fn best_of(view: &View<'_>, around: &[u32], points: Rows<'_>) -> Result<Vec<u32>> {
    let means: Vec<f32> = around
        .iter()
        .flat_map(|cell| view.mean(*cell as usize))
        .copied()
        .collect();
    let cells = Cells {
        anisotropy: view.body.model.anisotropy,
        rank: view.body.model.rank(),
        means: &means,
        shape: |number: usize| {
            let frame = view.frame(around[number] as usize);
            (frame.axes, frame.variances, frame.residual)
        },
    };
    cells.assign(points, SHORTLIST, &Cancel::default())
}
