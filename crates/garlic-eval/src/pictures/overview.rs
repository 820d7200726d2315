//! Data, first cells, trained cells, and a query among them.

use garlic_ann::{Index, Search};

use super::canvas::{Drawing, Mark};
use super::example::WINDOW;
use super::panel::{Panel, Style};
use super::plane::{Back, sector};
use super::world::{World, gaussians, query};
use super::{Missing, Point};
use crate::error::Result;
use crate::plot::palette::{BLUE, GREEN, ORANGE, VERMILLION};

const FAINT: &str = "#c4c4c4";
const DOTS: &str = "#7a7a7a";
const CELL: Style = Style::line(BLUE, 1.8);
const OTHER: Style = Style::line("#a8a8a8", 1.1);
const BIN: Style = Style::line(ORANGE, 1.0).filled(ORANGE, 0.35);
/// Where the query lies, how many cells and what share of their bins it looks at, and how many it wants.
pub(super) const QUERY: Point = [5.1, 5.0];
pub(super) const PROBES: usize = 2;
pub(super) const BINS: f64 = 0.3;
const K: usize = 5;

/// What a query of preset `paper` looks at.
pub(super) struct Visit {
    pub(super) cells: Vec<u32>,
    /// Corners of the bins that are scanned.
    pub(super) bins: Vec<Vec<Point>>,
    /// Rows of the candidates, ascending.
    pub(super) candidates: Vec<usize>,
}

/// Follows a query through the cells of preset `paper`.
pub(super) fn visit(world: &World, index: &Index) -> Result<Visit> {
    let body = index.published().missing("no Gaussians")?;
    let back = Back::of(index.space());
    let cells = index.route(&query(QUERY), PROBES)?;
    let mut rotated = [0.0; 2];
    index.space().apply(&query(QUERY), &mut rotated);
    let (mut bins, mut candidates) = (Vec::new(), Vec::new());
    for number in &cells {
        let cell = body.cell(*number as usize);
        let (mut centred, mut y) = (Vec::new(), Vec::new());
        cell.frame.project(&rotated, &mut centred, &mut y);
        let mut scratch = Default::default();
        for bin in cell.bins.nearest(&y, BINS as f32, &mut scratch) {
            let number = cell.bins.occupied()[*bin as usize];
            let corners = sector(&cell.bins.grid().region(number));
            bins.push(
                corners
                    .into_iter()
                    .map(|c| back.out_of_frame(&cell.frame, c))
                    .collect(),
            );
            let members = cell.bins.members_of(*bin as usize).iter();
            candidates.extend(
                members
                    .filter_map(|p| index.id_at(*p as usize))
                    .map(|id| id as usize),
            );
        }
    }
    candidates.sort_unstable();
    candidates.dedup();
    candidates.retain(|row| *row < world.points.len());
    Ok(Visit {
        cells,
        bins,
        candidates,
    })
}

pub(super) fn draw(world: &World) -> Result<String> {
    const TITLE: &str = "From points to candidates: preset paper in the plane";
    let (size, gap) = (432.0, 18.0);
    let tall = Panel::tall(size, WINDOW);
    let mut d = Drawing::new(TITLE, 2.0 * size + 3.0 * gap);
    let panel = |column: f64, row: f64| {
        Panel::new(
            [gap + column * (size + gap), 34.0 + row * (tall + 8.0)],
            size,
            WINDOW,
        )
    };
    let panels = [
        panel(0.0, 0.0),
        panel(1.0, 0.0),
        panel(0.0, 1.0),
        panel(1.0, 1.0),
    ];
    d.define(&panels[0], &world.points);

    d.open(
        &panels[0],
        "1. Data",
        &format!(
            "{} points: two crossing arms, a blob, a few scattered",
            world.points.len()
        ),
    );
    d.cloud(&panels[0], DOTS, 3.0);
    d.close();

    let history = world.trained.published().missing("no Gaussians")?.history();
    let done = history
        .epochs
        .iter()
        .filter_map(|epoch| epoch.refinement.as_ref());
    let (split, cloned, pruned) = done.fold((0, 0, 0), |(s, c, p), r| {
        (s + r.split, c + r.cloned, p + r.pruned)
    });
    let stages = [
        (
            &world.start,
            "2. First cells",
            "centres of k-means, round".to_owned(),
        ),
        (
            &world.trained,
            "3. Trained cells",
            format!(
                "after {} epochs, {split} splits, {cloned} clones, {pruned} pruned",
                history.epochs.len()
            ),
        ),
    ];
    for (panel, (index, heading, line)) in panels[1..].iter().zip(stages) {
        let (model, back) = (gaussians(index)?, Back::of(index.space()));
        d.open(panel, heading, &format!("{} cells: {line}", model.len()));
        d.cloud(panel, FAINT, 3.0);
        for cell in 0..model.len() {
            d.ellipse(panel, &back.cell(model, cell), index.config().tau, CELL);
        }
        d.close();
    }

    let (index, panel) = (&world.trained, &panels[3]);
    let (model, back) = (gaussians(index)?, Back::of(index.space()));
    let seen = visit(world, index)?;
    let answer = index.search(&query(QUERY), &Search::new(K).probes(PROBES).bins(BINS))?;
    let line = format!(
        "{PROBES} of {} cells probed, {} bins scanned, {} candidates of {}",
        model.len(),
        seen.bins.len(),
        answer.work.candidates,
        world.points.len()
    );
    d.open(panel, "4. A query", &line);
    d.cloud(panel, FAINT, 3.0);
    seen.bins.iter().for_each(|bin| d.polygon(panel, bin, BIN));
    for cell in 0..model.len() {
        let style = if seen.cells.contains(&(cell as u32)) {
            CELL
        } else {
            OTHER
        };
        d.ellipse(panel, &back.cell(model, cell), index.config().tau, style);
    }
    d.dots(
        panel,
        seen.candidates.iter().map(|row| &world.points[*row]),
        VERMILLION,
        3.6,
    );
    let hits: Vec<Point> = answer
        .hits
        .iter()
        .filter_map(|h| world.points.get(h.id as usize))
        .copied()
        .collect();
    d.dots(panel, &hits, GREEN, 6.5);
    d.query(panel, QUERY);
    d.close();

    let end = d.legend(
        34.0 + 2.0 * tall + 20.0,
        &[
            (Mark::Dot(DOTS), "point"),
            (Mark::Outline(CELL), "cell at its radius tau = 3"),
            (Mark::Outline(OTHER), "cell not probed"),
            (Mark::Query, "query"),
            (Mark::Area(BIN), "bin scanned"),
            (Mark::Dot(VERMILLION), "candidate"),
            (Mark::Dot(GREEN), "neighbour found"),
        ],
    );
    Ok(d.finish(TITLE, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::tests::page_says;

    /// What is drawn is what the search does: the same number of candidates, and the hits among them.
    #[test]
    fn the_picture_counts_as_the_search_does() {
        let world = World::shared();
        let index = &world.trained;
        let seen = visit(world, index).unwrap();
        let answer = index
            .search(&query(QUERY), &Search::new(K).probes(PROBES).bins(BINS))
            .unwrap();
        assert_eq!(seen.candidates.len() as u64, answer.work.candidates);
        page_says(&format!("{} candidates of 1,600", seen.candidates.len()));
        page_says(&format!(
            "from {} to {} cells",
            world.start.cells(),
            index.cells()
        ));
        assert!(
            answer
                .hits
                .iter()
                .all(|h| seen.candidates.contains(&(h.id as usize)))
        );
    }
}
