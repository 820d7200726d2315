//! One cell that is split and one that is cloned, by a refinement after the first step.

use garlic_ann::Index;
use garlic_ann::model::{Assignment, Gaussians};

use super::canvas::{Drawing, Mark};
use super::panel::{Panel, Style};
use super::plane::Back;
use super::world::{World, gaussians};
use super::{Missing, Point};
use crate::error::Result;
use crate::plot::palette::{BLUE, GREEN, ORANGE, VERMILLION};

const FAINT: &str = "#c9c9c9";
const CELL: Style = Style::line(BLUE, 2.0);
const NEW: Style = Style::line(VERMILLION, 2.0);
const SHELL: Style = Style::line(ORANGE, 1.6).dashed();
const OTHER: Style = Style::line("#b4b4b4", 1.0);

/// A cell of the old model and the new cell that it brought forth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) parent: usize,
    pub(super) child: usize,
    pub(super) split: bool,
}

/// What a refinement did, told from the models before and after it.
///
/// New cells are appended in the order of their parents. The two halves of a split share a factor that is not the
/// parent's; a clone has its parent's.
pub(super) fn changes(before: &Gaussians, after: &Gaussians) -> Vec<Change> {
    let mut found = Vec::new();
    for parent in 0..before.len() {
        let child = before.len() + found.len();
        if child >= after.len() {
            break;
        }
        let split = before.mean(parent) != after.mean(parent);
        if split || before.factor(parent) == after.factor(child) {
            found.push(Change {
                parent,
                child,
                split,
            });
        }
    }
    found
}

/// Points that a cell holds for a refinement: those within tau of it, and those outside of all that are nearest to it.
pub(super) struct Held {
    pub(super) inside: Vec<usize>,
    /// Nearest to it, farther than tau but not than e tau.
    pub(super) shell: Vec<usize>,
    pub(super) beyond: Vec<usize>,
}

pub(super) fn held(assignment: &Assignment, index: &Index, cell: usize) -> Held {
    let outer = index.config().tau * index.config().clone_shell;
    let mut held = Held {
        inside: Vec::new(),
        shell: Vec::new(),
        beyond: Vec::new(),
    };
    for point in 0..assignment.nearest.len() {
        if assignment.covering(point).contains(&(cell as u32)) {
            held.inside.push(point);
        } else if assignment.nearest[point] as usize == cell {
            let far = f64::from(assignment.distance[point]) >= outer;
            if far {
                &mut held.beyond
            } else {
                &mut held.shell
            }
            .push(point);
        }
    }
    held
}

pub(super) fn draw(world: &World) -> Result<String> {
    const TITLE: &str = "Refinement: split what holds too much, clone what leaves much outside";
    let (before, after) = (gaussians(&world.first)?, gaussians(&world.refined)?);
    let back = Back::of(world.first.space());
    let assignment = world.assignment(&world.first)?;
    let all = changes(before, after);
    let kept = |c: &&Change| held(&assignment, &world.first, c.parent);
    // Of small cells: a large one shows nothing but itself. Cells that began at the same width are equally small.
    let small = |c: &&Change| back.cell(before, c.parent).axes().0 < 0.3;
    let split = all
        .iter()
        .filter(|c| c.split)
        .filter(small)
        .max_by_key(|c| kept(c).inside.len());
    let clone = all
        .iter()
        .filter(|c| !c.split)
        .filter(small)
        .max_by_key(|c| kept(c).shell.len());
    let (split, clone) = (split.missing("no split")?, clone.missing("no clone")?);

    let (size, gap) = (432.0, 18.0);
    let mut d = Drawing::new(TITLE, 2.0 * size + 3.0 * gap);
    let config = world.first.config();
    let count = world.points.len() as f64;
    let mut top = 34.0;
    for (change, name) in [(split, "Split"), (clone, "Clone")] {
        let held = held(&assignment, &world.first, change.parent);
        let own = held.inside.len() + held.shell.len() + held.beyond.len();
        let window = window(world, &held);
        let (first, second) = match change.split {
            true => (
                format!(
                    "it holds {own} points, more than gamma n = {:.0}",
                    config.split_threshold * count
                ),
                format!(
                    "two cells at the centres of two clusters, L scaled by {}",
                    config.split_scale
                ),
            ),
            false => (
                format!(
                    "{} points in the shell, more than {} x {} inside",
                    held.shell.len(),
                    config.clone_ratio,
                    held.inside.len()
                ),
                "a copy in the densest place of a sample of the shell".to_owned(),
            ),
        };
        for (column, line) in [first, second].iter().enumerate() {
            let panel = Panel::new([gap + column as f64 * (size + gap), top], size, window);
            let when = if column == 0 { "before" } else { "after" };
            d.open(&panel, &format!("{name}, {when}"), line);
            let points = |rows: &[usize]| {
                rows.iter()
                    .map(|r| world.points[*r])
                    .collect::<Vec<Point>>()
            };
            d.dots(&panel, &world.points, FAINT, 4.0);
            d.dots(&panel, &points(&held.inside), BLUE, 4.0);
            d.dots(
                &panel,
                &points(&held.shell),
                if change.split { BLUE } else { ORANGE },
                4.0,
            );
            d.dots(
                &panel,
                &points(&held.beyond),
                if change.split { BLUE } else { FAINT },
                4.0,
            );
            for other in (0..before.len()).filter(|c| *c != change.parent) {
                d.ellipse(&panel, &back.cell(before, other), config.tau, OTHER);
            }
            let parent = back.cell(before, change.parent);
            if column == 0 {
                d.ellipse(&panel, &parent, config.tau, CELL);
                if !change.split {
                    d.ellipse(&panel, &parent, config.tau * config.clone_shell, SHELL);
                }
            } else {
                let kept = if change.split { NEW } else { CELL };
                for (cell, style) in [(change.parent, kept), (change.child, NEW)] {
                    let shape = back.cell(after, cell);
                    d.ellipse(&panel, &shape, config.tau, style);
                    d.dots(&panel, &[[shape.centre.0, shape.centre.1]], GREEN, 8.0);
                }
            }
            d.close();
        }
        top += Panel::tall(size, window) + 10.0;
    }
    let end = d.legend(
        top,
        &[
            (Mark::Outline(CELL), "the cell at tau"),
            (Mark::Outline(NEW), "new cell"),
            (Mark::Outline(OTHER), "other cells, before"),
            (Mark::Outline(SHELL), "the cell at e tau, e = 2.2"),
            (Mark::Dot(BLUE), "points it holds (below: inside tau)"),
            (Mark::Dot(ORANGE), "points in its shell"),
            (Mark::Dot(GREEN), "means afterwards"),
        ],
    );
    Ok(d.finish(TITLE, end))
}

/// The part of the plane around what a cell holds: twice as wide as high.
fn window(world: &World, held: &Held) -> [f64; 4] {
    let rows = held.inside.iter().chain(&held.shell);
    let fold = |range: [f64; 2], v: f64| [range[0].min(v), range[1].max(v)];
    let (mut x, mut y) = (
        [f64::INFINITY, f64::NEG_INFINITY],
        [f64::INFINITY, f64::NEG_INFINITY],
    );
    for row in rows {
        let [px, py] = world.points[*row];
        (x, y) = (fold(x, px), fold(y, py));
    }
    let high = ((y[1] - y[0]) * 1.3)
        .max((x[1] - x[0]) * 1.3 * 0.75)
        .max(1.0);
    let (cx, cy, wide) = ((x[0] + x[1]) / 2.0, (y[0] + y[1]) / 2.0, high / 0.75);
    [
        cx - wide / 2.0,
        cy - high / 2.0,
        cx + wide / 2.0,
        cy + high / 2.0,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_pictures_show_is_what_the_training_did() {
        let world = World::shared();
        let (before, after) = (
            gaussians(&world.first).unwrap(),
            gaussians(&world.refined).unwrap(),
        );
        let all = changes(before, after);
        let history = world.refined.published().unwrap().history();
        let done = history.epochs.last().unwrap().refinement.unwrap();
        assert_eq!(all.iter().filter(|c| c.split).count(), done.split);
        assert_eq!(all.iter().filter(|c| !c.split).count(), done.cloned);
        assert!(done.split > 0 && done.cloned > 0);
        let trained = world.trained.published().unwrap().history();
        let mut refinements = trained.epochs.iter().filter_map(|e| e.refinement);
        assert!(
            refinements.all(|r| r.cloned == 0),
            "the page says that there is no clone"
        );
        // The two runs are one up to the refinement: cells that were not split are the same, bit by bit.
        let split = |cell: usize| all.iter().any(|c| c.split && c.parent == cell);
        for cell in (0..before.len()).filter(|c| !split(*c)) {
            assert_eq!(before.mean(cell), after.mean(cell));
            assert_eq!(before.factor(cell), after.factor(cell));
        }
        let (assignment, config) = (
            world.assignment(&world.first).unwrap(),
            world.first.config(),
        );
        for change in all {
            let held = held(&assignment, &world.first, change.parent);
            let size = (held.inside.len() + held.shell.len() + held.beyond.len()) as f64;
            if change.split {
                assert!(size > config.split_threshold * world.points.len() as f64);
            } else {
                assert!(held.shell.len() as f64 > config.clone_ratio * held.inside.len() as f64);
            }
        }
    }
}
