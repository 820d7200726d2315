//! The default preset: tempered cells, learned bins, and the bins of all probed cells in one order.

use garlic_ann::index::LearnedBin;
use garlic_ann::{Index, Search};

use super::canvas::{Drawing, Mark};
use super::example::WINDOW;
use super::frames::{cell, in_frame, outline, squared};
use super::panel::{Panel, Style};
use super::plane::distance;
use super::world::{World, query};
use super::{Missing, Point, overview};
use crate::error::Result;
use crate::plot::palette::{BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION};

const FAINT: &str = "#c4c4c4";
const DOTS: &str = "#8a8a8a";
const CELL: Style = Style::line(BLUE, 1.8);
const OUTLINE: Style = Style::line("#7a7a7a", 0.9).filled("#dddddd", 0.35);
const SKIPPED: Style = Style::line("#8a8a8a", 1.0).filled("#e2e2e2", 0.5);
/// Fills of the probed cells' bins, nearest cell first.
const FILLS: [Style; PROBES] = [
    Style::line("#333333", 1.0).filled(ORANGE, 0.55),
    Style::line("#333333", 1.0).filled(SKY, 0.6),
    Style::line("#333333", 1.0).filled(PURPLE, 0.55),
];
/// Cells that the query visits, the share of their bins that it scans, and how many neighbours it wants.
const PROBES: usize = 3;
pub(super) const BINS: f64 = 0.3;
const K: usize = 5;

/// A bin with its estimate for the query.
pub(super) struct Ranked {
    pub(super) bin: LearnedBin,
    pub(super) estimate: f64,
    /// Place of its cell among those probed.
    pub(super) probe: usize,
}

/// The bins of the probed cells, nearest estimate first; the frames here are all of the plane, so that the
/// estimate of a bin is the squared distance from its centre.
pub(super) fn ranked(index: &Index) -> Result<Vec<Ranked>> {
    let body = index.tempered().missing("no tempered cells")?;
    let probed = index.route(&query(overview::QUERY), PROBES)?;
    let mut all = Vec::new();
    for bin in (0..body.bins()).filter_map(|bin| body.bin(bin)) {
        let Some(probe) = probed.iter().position(|c| *c as usize == bin.cell) else {
            continue;
        };
        let (y, outside) = in_frame(index, bin.cell, overview::QUERY)?;
        all.push(Ranked {
            estimate: squared(&y, &bin.centre) + outside,
            bin,
            probe,
        });
    }
    all.sort_by(|a, b| a.estimate.total_cmp(&b.estimate));
    Ok(all)
}

pub(super) fn draw(world: &World) -> Result<String> {
    const TITLE: &str = "The default preset: tempered cells, learned bins, one order for the bins of all probed cells";
    let index = &world.tempered;
    let body = index.tempered().missing("no tempered cells")?;
    let order = ranked(index)?;
    let budget = (order.len() as f64 * BINS).ceil() as usize;
    let (size, gap) = (432.0, 18.0);
    let mut d = Drawing::new(TITLE, 2.0 * size + 3.0 * gap);

    let left = Panel::new([gap, 34.0], size, WINDOW);
    d.open(
        &left,
        "Cells and bins",
        &format!(
            "{} cells, {} bins of about {} points",
            body.model().len(),
            body.bins(),
            index.config().bin_size
        ),
    );
    d.dots(&left, &world.points, DOTS, 2.4);
    for bin in (0..body.bins()).filter_map(|bin| body.bin(bin)) {
        d.polygon(&left, &outline(world, index, &bin)?.0, OUTLINE);
    }
    for number in 0..body.model().len() {
        d.ellipse(&left, &cell(index, number)?, 2.0, CELL);
    }
    d.query(&left, overview::QUERY);
    d.close();

    let answer = index.search(
        &query(overview::QUERY),
        &Search::new(K).probes(PROBES).bins(BINS),
    )?;
    let reach = order
        .iter()
        .take(budget + 14)
        .map(|r| r.estimate.sqrt())
        .fold(0.0, f64::max)
        * 1.1;
    let [x, y] = overview::QUERY;
    let right = Panel::new(
        [2.0 * gap + size, 34.0],
        size,
        [x - reach, y - reach, x + reach, y + reach],
    );
    d.open(
        &right,
        "A query, nearer",
        &format!(
            "{PROBES} cells probed, {budget} of their {} bins scanned: {} codes",
            order.len(),
            answer.work.codes
        ),
    );
    d.dots(&right, &world.points, FAINT, 3.0);
    let mut labels = Vec::new();
    for (rank, ranked) in order.iter().enumerate().rev() {
        let (corners, middle) = outline(world, index, &ranked.bin)?;
        d.polygon(
            &right,
            &corners,
            if rank < budget {
                FILLS[ranked.probe]
            } else {
                SKIPPED
            },
        );
        labels.push((middle, rank + 1));
    }
    d.dots(&right, &world.points, DOTS, 2.4);
    let hits: Vec<Point> = answer
        .hits
        .iter()
        .filter_map(|h| world.points.get(h.id as usize))
        .copied()
        .collect();
    d.dots(&right, &hits, GREEN, 7.0);
    for (middle, rank) in labels
        .into_iter()
        .filter(|(m, _)| distance(*m, overview::QUERY) > 0.12)
    {
        d.label(&right, middle, [0.0, 0.0], &rank.to_string(), 13.0);
    }
    d.query(&right, overview::QUERY);
    d.close();

    let top = 34.0 + Panel::tall(size, WINDOW) + 24.0;
    strip(&mut d, &order, budget, [gap, top], 2.0 * size + gap);
    let end = d.legend(
        top + 152.0,
        &[
            (Mark::Outline(CELL), "cell at two standard deviations"),
            (Mark::Area(OUTLINE), "bin: the outline of its points"),
            (Mark::Query, "query"),
            (Mark::Area(FILLS[0]), "scanned, bin of the 1st cell"),
            (Mark::Area(FILLS[1]), "of the 2nd"),
            (Mark::Area(FILLS[2]), "of the 3rd"),
            (Mark::Area(SKIPPED), "probed cell, not scanned"),
            (Mark::Dot(GREEN), "neighbour found"),
        ],
    );
    Ok(d.finish(TITLE, end))
}

/// Every bin of the probed cells as a bar: its place in the order, and the estimated distance.
fn strip(d: &mut Drawing, order: &[Ranked], budget: usize, [left, top]: Point, width: f64) {
    const HIGH: f64 = 96.0;
    d.text([left, top], "The order", 14.0, "start", true);
    d.text(
        [left + 80.0, top],
        "one bar a bin, its height the estimated distance of its points",
        12.0,
        "start",
        false,
    );
    let highest = order.last().map_or(1.0, |r| r.estimate.sqrt());
    let step = width / order.len().max(1) as f64;
    let bottom = top + 16.0 + HIGH;
    for (rank, ranked) in order.iter().enumerate() {
        let high = (ranked.estimate.sqrt() / highest * HIGH).max(1.0);
        let fill = FILLS[ranked.probe];
        let style = if rank < budget {
            fill
        } else {
            Style {
                opacity: 0.15,
                ..fill
            }
        };
        let x = left + rank as f64 * step;
        d.bar([x + 1.0, bottom - high], [step - 2.0, high], style);
        if rank % 2 == 0 || order.len() <= 24 {
            d.text(
                [x + step / 2.0, bottom + 15.0],
                &(rank + 1).to_string(),
                11.0,
                "middle",
                false,
            );
        }
    }
    let cut = left + budget as f64 * step;
    d.bar(
        [cut - 1.0, top + 8.0],
        [2.0, HIGH + 10.0],
        Style::line("none", 0.0).filled(VERMILLION, 1.0),
    );
    let words = format!("{} bins are not scanned", order.len() - budget);
    d.text([cut + 8.0, top + 22.0], &words, 13.0, "start", false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::tests::page_says;

    /// The bins that are drawn as scanned hold as many points as the search scanned codes.
    #[test]
    fn the_picture_counts_as_the_search_does() {
        let world = World::shared();
        let index = &world.tempered;
        let order = ranked(index).unwrap();
        let budget = (order.len() as f64 * BINS).ceil() as usize;
        let drawn: usize = order[..budget].iter().map(|r| r.bin.positions.len()).sum();
        let search = Search::new(K).probes(PROBES).bins(BINS);
        let answer = index.search(&query(overview::QUERY), &search).unwrap();
        assert_eq!(drawn as u64, answer.work.codes);
        assert_eq!(order.len() as u64, answer.work.bins_ordered);
        page_says(&format!("have {} bins", order.len()));
        page_says(&format!(
            "ceil(0.3 x {}) = {budget} are scanned",
            order.len()
        ));
        page_says(&format!("({drawn} codes here)"));
        let probes: std::collections::BTreeSet<usize> =
            order[..budget].iter().map(|r| r.probe).collect();
        assert!(
            probes.len() > 1,
            "bins of one cell only: the picture shows nothing"
        );
    }
}
