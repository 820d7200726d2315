//! The hyperspherical bins of one cell, in the order in which a query visits them.

use garlic_ann::cell::Cell;

use super::canvas::{Drawing, Mark};
use super::panel::{Panel, Style};
use super::plane::{Back, middle, pair, sector};
use super::world::{World, gaussians, query};
use super::{Missing, Point, overview};
use crate::error::Result;
use crate::plot::palette::{BLUE, ORANGE, VERMILLION};

const FAINT: &str = "#c9c9c9";
const DOTS: &str = "#6a6a6a";
const CELL: Style = Style::line(BLUE, 1.8);
const SCANNED: Style = Style::line("#8a5f00", 1.0).filled(ORANGE, 0.45);
const LEFT: Style = Style::line("#9a9a9a", 1.0).filled("#d9d9d9", 0.6);
const EMPTY: Style = Style::line("#dddddd", 1.0);

/// The order of a cell's bins for a query: where it lies in the frame, and indices of occupied bins, nearest first.
pub(super) fn order(cell: &Cell, rotated: &[f32]) -> (Vec<f32>, Vec<u32>) {
    let (mut centred, mut y) = (Vec::new(), Vec::new());
    cell.frame.project(rotated, &mut centred, &mut y);
    let mut scratch = Default::default();
    let order = cell.bins.nearest(&y, 1.0, &mut scratch).to_vec();
    (y, order)
}

pub(super) fn draw(world: &World) -> Result<String> {
    const TITLE: &str = "The bins of one cell, and the order in which a query visits them";
    let index = &world.trained;
    let (model, back) = (gaussians(index)?, Back::of(index.space()));
    let nearest = index.route(&query(overview::QUERY), 1)?;
    let number = *nearest.first().missing("no cell")? as usize;
    let cell = index.published().missing("no Gaussians")?.cell(number);
    let mut rotated = [0.0; 2];
    index.space().apply(&query(overview::QUERY), &mut rotated);
    let (y, order) = order(cell, &rotated);
    let budget = cell.bins.budget(overview::BINS as f32);
    let grid = cell.bins.grid();

    let members: Vec<Point> = cell
        .bins
        .members()
        .iter()
        .map(|p| world.at(index, *p as usize))
        .collect::<Result<_>>()?;
    let (size, gap) = (432.0, 18.0);
    let mut d = Drawing::new(TITLE, 2.0 * size + 3.0 * gap);
    let shape = back.cell(model, number);
    let reach = shape.axes().0 * index.config().tau * 1.15;
    let (cx, cy) = shape.centre;
    let left = Panel::new(
        [gap, 34.0],
        size,
        [cx - reach, cy - reach, cx + reach, cy + reach],
    );
    d.open(
        &left,
        "The cell in the plane",
        &format!("{} members; its frame: their principal axes", members.len()),
    );
    d.dots(&left, &world.points, FAINT, 3.4);
    d.dots(&left, &members, DOTS, 3.6);
    d.ellipse(&left, &shape, index.config().tau, CELL);
    let origin = back.out_of_frame(&cell.frame, [0.0, 0.0]);
    let arm = grid.steps().next().missing("no radius")?.hi;
    for axis in [[arm, 0.0], [0.0, 0.4 * arm]] {
        d.arrow(
            &left,
            origin,
            back.out_of_frame(&cell.frame, axis),
            VERMILLION,
        );
    }
    d.query(&left, overview::QUERY);
    d.close();

    let wide = arm * 1.12;
    let right = Panel::new([2.0 * gap + size, 34.0], size, [-wide, -wide, wide, wide]);
    let line = format!(
        "{} of {} bins hold points; the first {budget} are scanned (rho = {})",
        order.len(),
        grid.bins(),
        overview::BINS
    );
    d.open(&right, "Its bins in the frame: radius x angle", &line);
    for bin in 0..grid.bins() as u32 {
        d.polygon(&right, &sector(&grid.region(bin)), EMPTY);
    }
    for (rank, bin) in order.iter().enumerate() {
        let region = grid.region(cell.bins.occupied()[*bin as usize]);
        d.polygon(
            &right,
            &sector(&region),
            if rank < budget { SCANNED } else { LEFT },
        );
    }
    let own: Vec<Point> = cell
        .bins
        .members()
        .iter()
        .map(|p| {
            let (mut inside, mut centred, mut y) = ([0.0; 2], Vec::new(), Vec::new());
            index
                .space()
                .apply(&query(world.at(index, *p as usize)?), &mut inside);
            cell.frame.project(&inside, &mut centred, &mut y);
            Ok(pair(&y))
        })
        .collect::<Result<_>>()?;
    d.dots(&right, &own, DOTS, 2.6);
    for (rank, bin) in order.iter().enumerate() {
        let region = grid.region(cell.bins.occupied()[*bin as usize]);
        d.label(
            &right,
            middle(&region),
            [0.0, 0.0],
            &format!("{}", rank + 1),
            13.0,
        );
    }
    d.query(&right, pair(&y));
    d.close();

    let mut marks = vec![
        (Mark::Outline(CELL), "cell at its radius tau = 3"),
        (Mark::Arrow(VERMILLION), "axes of the frame"),
        (Mark::Query, "query"),
        (Mark::Area(SCANNED), "bin scanned"),
        (Mark::Area(LEFT), "bin not scanned"),
        (Mark::Dot(DOTS), "member of the cell"),
    ];
    if order.len() < grid.bins() {
        marks.push((Mark::Area(EMPTY), "empty bin"));
    }
    let end = d.legend(
        34.0 + Panel::tall(size, [0.0, 0.0, 1.0, 1.0]) + 10.0,
        &marks,
    );
    Ok(d.finish(TITLE, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::tests::page_says;
    use garlic_ann::cell::sphere::distance_to_bin;

    #[test]
    fn bins_are_numbered_by_their_distance() {
        let world = World::shared();
        let index = &world.trained;
        let mut rotated = [0.0; 2];
        index.space().apply(&query(overview::QUERY), &mut rotated);
        let nearest = index.route(&query(overview::QUERY), 1).unwrap()[0];
        let cell = index.published().unwrap().cell(nearest as usize);
        let (y, order) = order(cell, &rotated);
        let occupied = cell.bins.occupied();
        let distances: Vec<f64> = order
            .iter()
            .map(|bin| distance_to_bin(&y, &cell.bins.grid().region(occupied[*bin as usize])))
            .collect();
        assert_eq!(order.len(), occupied.len());
        let (bins, budget) = (order.len(), cell.bins.budget(overview::BINS as f32));
        page_says(&format!("ceil(0.3 x {bins}) = {budget} bins"));
        assert!(
            distances.windows(2).all(|pair| pair[0] <= pair[1] + 1e-6),
            "{distances:?}"
        );
    }
}
