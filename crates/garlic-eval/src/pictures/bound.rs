//! Why a bin can be skipped without losing a neighbour: its centre, its radius, and the bound they give.

use garlic_ann::index::LearnedBin;
use garlic_ann::{Index, Search};

use super::canvas::{Drawing, Mark};
use super::example::WINDOW;
use super::frames::{in_frame, outline, squared};
use super::panel::{Panel, Style};
use super::plane::{Back, pair};
use super::world::{World, query};
use super::{Missing, Point, overview};
use crate::error::Result;
use crate::plot::palette::{BLUE, GREEN, ORANGE, SKY, VERMILLION};

const FAINT: &str = "#c4c4c4";
const DOTS: &str = "#333333";
const REACH: Style = Style::line(GREEN, 1.8).dashed();
const RADIUS: Style = Style::line(BLUE, 1.8).filled(SKY, 0.18);
const AXIS: Style = Style::line("#7a7a7a", 1.2).dashed();
const KEPT: Style = Style::line("#8a5f00", 1.0).filled(ORANGE, 0.55);
const SKIPPED: Style = Style::line("#9a9a9a", 1.0).filled("#e2e2e2", 0.5);
/// Neighbours that the query wants.
const K: usize = 5;
/// Recall of the search that an exact one begins with.
const FIRST_RECALL: f64 = 0.9;

/// A query's bound for a bin, in its two parts.
pub(super) struct Bound {
    /// Within the frame: the distance from the bin's circle.
    pub(super) within: f64,
    /// Outside of it: the gap between the query's distance from the frame and those of the points.
    pub(super) gap: f64,
}

impl Bound {
    pub(super) fn of(index: &Index, bin: &LearnedBin, at: Point) -> Result<Self> {
        let (y, outside) = in_frame(index, bin.cell, at)?;
        let [low, high] = bin.outside.map(f64::from);
        let away = outside.sqrt();
        Ok(Self {
            within: (squared(&y, &bin.centre).sqrt() - f64::from(bin.radius)).max(0.0),
            gap: (away - high).max(low - away).max(0.0),
        })
    }

    /// No point of the bin is nearer than this.
    pub(super) fn length(&self) -> f64 {
        self.within.hypot(self.gap)
    }
}

/// The distance that an exact search starts from: that of the last neighbour of an approximate one.
fn radius(index: &Index) -> Result<f64> {
    let first = index.search(
        &query(overview::QUERY),
        &Search::new(K).recall(FIRST_RECALL),
    )?;
    Ok(f64::from(
        first.hits.last().missing("no neighbours")?.distance,
    ))
}

/// All bins of an index.
fn bins(index: &Index) -> Result<Vec<LearnedBin>> {
    let body = index.tempered().missing("no tempered cells")?;
    Ok((0..body.bins()).filter_map(|bin| body.bin(bin)).collect())
}

/// A place of a cell, given by its coordinate along each axis of the frame and, with one axis, across it.
fn place(index: &Index, cell: usize, [along, across]: Point) -> Result<Point> {
    let model = index.tempered().missing("no tempered cells")?.model();
    let mean = pair(model.mean(cell));
    let first = pair(model.axes(cell));
    let second = match model.axes(cell).get(2..) {
        Some(axis @ [_, _]) => pair(axis),
        _ => [-first[1], first[0]],
    };
    let point = [0, 1].map(|i| mean[i] + along * first[i] + across * second[i]);
    Ok(Back::of(index.space()).point(point))
}

pub(super) fn draw(world: &World) -> Result<String> {
    const TITLE: &str = "Skipping without loss: no point of a bin is nearer than its bound";
    let (size, gap) = (414.0, 16.0);
    let mut d = Drawing::new(TITLE, 3.0 * size + 4.0 * gap);
    let (reach, on_line) = (radius(&world.tempered)?, radius(&world.line)?);
    plane(world, &mut d, [gap, 34.0], size, reach)?;
    line(world, &mut d, [2.0 * gap + size, 34.0], size, on_line)?;
    everything(world, &mut d, [3.0 * gap + 2.0 * size, 34.0], size, reach)?;
    let end = d.legend(
        34.0 + Panel::tall(size, [0.0, 0.0, 1.0, 1.0]) + 12.0,
        &[
            (Mark::Query, "query"),
            (
                Mark::Outline(REACH),
                "r: the 5th distance of a first search",
            ),
            (Mark::Area(RADIUS), "where the bin's points can be"),
            (Mark::Dot(DOTS), "point of the bin"),
            (Mark::Arrow(VERMILLION), "the bound"),
            (Mark::Area(KEPT), "bin that may hold a neighbour"),
            (Mark::Area(SKIPPED), "bin skipped"),
        ],
    );
    Ok(d.finish(TITLE, end))
}

/// A bin whose frame is all of the plane: a circle.
fn plane(world: &World, d: &mut Drawing, corner: Point, size: f64, reach: f64) -> Result<()> {
    let index = &world.tempered;
    let mut found: Option<(f64, LearnedBin)> = None;
    for bin in bins(index)?
        .into_iter()
        .filter(|bin| bin.positions.len() > 12)
    {
        let bound = Bound::of(index, &bin, overview::QUERY)?.length();
        if bound > 2.0 * reach && found.as_ref().is_none_or(|(least, _)| bound < *least) {
            found = Some((bound, bin));
        }
    }
    let (bound, bin) = found.missing("no bin to skip")?;
    let centre = place(index, bin.cell, pair(&bin.centre))?;
    let panel = Panel::new(
        corner,
        size,
        around(&[overview::QUERY, centre], 1.2 * f64::from(bin.radius)),
    );
    let words = format!("bound = |y - c| - R = {bound:.2}, r = {reach:.2}: skipped");
    d.open(&panel, "A frame of two axes", &words);
    d.dots(&panel, &world.points, FAINT, 3.0);
    d.circle(&panel, centre, f64::from(bin.radius), RADIUS);
    d.circle(&panel, overview::QUERY, reach, REACH);
    draw_members(world, d, &panel, index, &bin)?;
    let [dx, dy] = [
        centre[0] - overview::QUERY[0],
        centre[1] - overview::QUERY[1],
    ];
    let share = bound / dx.hypot(dy);
    let edge = [
        overview::QUERY[0] + share * dx,
        overview::QUERY[1] + share * dy,
    ];
    d.line(&panel, edge, centre, AXIS);
    d.arrow(&panel, overview::QUERY, edge, VERMILLION);
    d.query(&panel, overview::QUERY);
    d.dots(&panel, &[centre], BLUE, 8.0);
    d.label(&panel, centre, [12.0, -8.0], "c", 15.0);
    d.label(
        &panel,
        [(edge[0] + centre[0]) / 2.0, (edge[1] + centre[1]) / 2.0],
        [12.0, 10.0],
        "R",
        15.0,
    );
    d.close();
    Ok(())
}

/// A bin whose frame is a line: an interval of it, and a range of distances from it.
fn line(world: &World, d: &mut Drawing, corner: Point, size: f64, reach: f64) -> Result<()> {
    let index = &world.line;
    let mut found: Option<(f64, LearnedBin)> = None;
    for bin in bins(index)?
        .into_iter()
        .filter(|bin| bin.positions.len() > 12)
    {
        let bound = Bound::of(index, &bin, overview::QUERY)?;
        let both = bound.within.min(bound.gap);
        if bound.length() < 5.0 * reach && found.as_ref().is_none_or(|(most, _)| both > *most) {
            found = Some((both, bin));
        }
    }
    let (_, bin) = found.missing("no bin with a gap")?;
    let bound = Bound::of(index, &bin, overview::QUERY)?;
    let (y, outside) = in_frame(index, bin.cell, overview::QUERY)?;
    let along = *y.first().missing("no axis")?;
    let (centre, radius) = (pair(&bin.centre)[0], f64::from(bin.radius));
    let [low, high] = bin.outside.map(f64::from);
    let at = |along: f64, across: f64| place(index, bin.cell, [along, across]);
    // The side of the line that the query is on.
    let side = {
        let (there, back) = (at(along, outside.sqrt())?, at(along, -outside.sqrt())?);
        let far = |p: Point| (p[0] - overview::QUERY[0]).hypot(p[1] - overview::QUERY[1]);
        if far(there) <= far(back) { 1.0 } else { -1.0 }
    };
    let mut corners = vec![overview::QUERY];
    for along in [centre - radius, centre + radius] {
        corners.extend([at(along, high)?, at(along, -high)?]);
    }
    let panel = Panel::new(corner, size, around(&corners, 0.4));
    let words = format!(
        "bound = hypot({:.2}, gap {:.2}) = {:.2}, r = {reach:.2}",
        bound.within,
        bound.gap,
        bound.length()
    );
    d.open(&panel, "A frame of one axis, and the gap", &words);
    d.dots(&panel, &world.points, FAINT, 3.0);
    d.line(&panel, at(-20.0, 0.0)?, at(20.0, 0.0)?, AXIS);
    for side in [1.0, -1.0] {
        let corners = [
            at(centre - radius, side * low)?,
            at(centre + radius, side * low)?,
            at(centre + radius, side * high)?,
            at(centre - radius, side * high)?,
        ];
        d.polygon(&panel, &corners, RADIUS);
    }
    d.circle(&panel, overview::QUERY, reach, REACH);
    draw_members(world, d, &panel, index, &bin)?;
    let foot = at(along, 0.0)?;
    d.line(&panel, overview::QUERY, foot, AXIS);
    let nearest = at(
        along.clamp(centre - radius, centre + radius),
        side * outside.sqrt().clamp(low, high),
    )?;
    d.arrow(&panel, overview::QUERY, nearest, VERMILLION);
    d.query(&panel, overview::QUERY);
    d.dots(&panel, &[foot, at(centre, 0.0)?], BLUE, 8.0);
    d.label(&panel, foot, [14.0, 0.0], "y", 15.0);
    d.label(&panel, at(centre, 0.0)?, [12.0, -10.0], "c", 15.0);
    d.close();
    Ok(())
}

/// All bins: those that cannot be ruled out, and the others.
fn everything(world: &World, d: &mut Drawing, corner: Point, size: f64, reach: f64) -> Result<()> {
    let index = &world.tempered;
    let panel = Panel::new(corner, size, WINDOW);
    let all = bins(index)?;
    let mut kept = (0, 0);
    let mut shapes = Vec::new();
    for bin in &all {
        let near = Bound::of(index, bin, overview::QUERY)?.length() <= reach;
        if near {
            kept = (kept.0 + 1, kept.1 + bin.positions.len());
        }
        shapes.push((
            outline(world, index, bin)?.0,
            if near { KEPT } else { SKIPPED },
        ));
    }
    let words = format!(
        "{} of {} bins, {} of {} points are left",
        kept.0,
        all.len(),
        kept.1,
        world.points.len()
    );
    d.open(&panel, "All bins of the index", &words);
    shapes
        .iter()
        .for_each(|(corners, style)| d.polygon(&panel, corners, *style));
    d.dots(&panel, &world.points, "#8a8a8a", 1.8);
    d.circle(&panel, overview::QUERY, reach, REACH);
    d.query(&panel, overview::QUERY);
    d.close();
    Ok(())
}

fn draw_members(
    world: &World,
    d: &mut Drawing,
    panel: &Panel,
    index: &Index,
    bin: &LearnedBin,
) -> Result<()> {
    let members: Vec<Point> = bin
        .positions
        .clone()
        .map(|p| world.at(index, p))
        .collect::<Result<_>>()?;
    d.dots(panel, &members, DOTS, 5.0);
    Ok(())
}

/// A square window around some points.
fn around(points: &[Point], margin: f64) -> [f64; 4] {
    let range = |i: usize| {
        let values = points.iter().map(|p| p[i]);
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| {
            [low.min(v), high.max(v)]
        })
    };
    let ([left, right], [bottom, top]) = (range(0), range(1));
    let half = (right - left).max(top - bottom) / 2.0 + margin;
    let (x, y) = ((left + right) / 2.0, (bottom + top) / 2.0);
    [x - half, y - half, x + half, y + half]
}

#[cfg(test)]
mod tests {
    use garlic_ann::Range;

    use super::*;
    use crate::pictures::plane::distance;
    use crate::pictures::tests::page_says;

    /// No point is nearer than the bound of its bin, and the true neighbours lie in bins that are kept.
    #[test]
    fn bounds_lose_nothing() {
        let world = World::shared();
        for index in [&world.tempered, &world.line] {
            let answer = index
                .search(&query(overview::QUERY), &Search::new(K).exact(true))
                .unwrap();
            assert!(answer.exact);
            let reach = radius(index).unwrap();
            let (mut kept, mut skipped) = (Vec::new(), 0);
            for bin in bins(index).unwrap() {
                let bound = Bound::of(index, &bin, overview::QUERY).unwrap().length();
                let points: Vec<Point> = bin
                    .positions
                    .clone()
                    .map(|p| world.at(index, p).unwrap())
                    .collect();
                for point in &points {
                    assert!(distance(*point, overview::QUERY) >= bound - 1e-4);
                }
                if bound <= reach + 1e-6 {
                    kept.extend(bin.positions.clone().filter_map(|p| index.id_at(p)));
                } else {
                    skipped += 1;
                }
            }
            assert!(answer.hits.iter().all(|hit| kept.contains(&hit.id)));
            // The codes of the bins that are kept are scanned, and before the proof some in a first search.
            let within = Range::new(reach as f32);
            let within = index.range(&query(overview::QUERY), &within).unwrap();
            assert!(within.exact && within.hits == answer.hits);
            assert_eq!(within.work.codes, kept.len() as u64);
            let first = answer.work.codes - within.work.codes;
            assert!(first > 0 && first < index.len() as u64, "{first}");
            if index.config() == world.tempered.config() {
                let (bins, kept) = (index.tempered().unwrap().bins(), kept.len());
                page_says(&format!(
                    "{} of {bins} bins with {kept} points",
                    bins - skipped
                ));
            }
            assert!(skipped > 0);
        }
    }
}
