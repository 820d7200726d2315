//! A quantity over the plane: coloured tiles, points on top.

use garlic_eval::diagnose::Landscape;
use garlic_eval::metrics::quantile;
use plotters::prelude::*;

use super::{Axis, Drawing, GREY, Key, VERMILLION, draw};
use crate::Result;
use crate::page::number;

const HEIGHT: u32 = 780;
/// Colours that values are rounded to: as many as the eye tells apart, and tiles of one colour share a rectangle.
const LEVELS: f64 = 24.0;
/// Share of the tiles at either end that colours do not tell apart.
const EXTREME: f64 = 0.01;
/// Values that span more than this factor are coloured by their logarithm.
const WIDE: f64 = 8.0;

/// A quantity on the tiles of a landscape.
pub(crate) struct Heatmap<'a> {
    pub(crate) caption: String,
    pub(crate) land: &'a Landscape,
    /// A value a tile, the lowest row first; a tile without one stays blank.
    pub(crate) values: Vec<Option<f64>>,
    /// Colours begin at 0 instead of the least value.
    pub(crate) from_zero: bool,
    /// Points of the sample are drawn over the tiles.
    pub(crate) points: bool,
    /// A line around the tiles whose values are at most this, with its name.
    pub(crate) outline: Option<(f64, String)>,
}

type Line = [(f64, f64); 2];

impl Heatmap<'_> {
    pub(crate) fn draw(self) -> Result<Drawing> {
        let land = self.land;
        let [low, high] = self.ends();
        let log = low > 0.0 && high > WIDE * low;
        let share = |v: f64| match log {
            true => (v / low).ln() / (high / low).ln(),
            false => (v - low) / (high - low),
        };
        let level = |v: &Option<f64>| {
            let v = v.filter(|v| v.is_finite())?;
            Some(
                (share(v).clamp(0.0, 1.0) * LEVELS)
                    .floor()
                    .min(LEVELS - 1.0),
            )
        };
        let levels: Vec<Option<f64>> = self.values.iter().map(level).collect();
        let border = self.border();
        let axis = |n: u8, [a, b]: [f64; 2]| {
            let axis = Axis::linear(format!("principal component {n}"));
            axis.from(a).to(b).over([a, b].into_iter())
        };
        let svg = draw(HEIGHT, axis(1, land.x), axis(2, land.y), |frame| {
            frame.draw_series(self.tiles(&levels))?;
            let line = VERMILLION.stroke_width(4);
            frame.draw_series(border.iter().map(|edge| PathElement::new(*edge, line)))?;
            let drawn = land.drawn.iter().filter(|_| self.points);
            frame.draw_series(drawn.map(|(x, y)| {
                Circle::new((f64::from(*x), f64::from(*y)), 3, WHITE.mix(0.7).filled())
            }))?;
            Ok(())
        })?;
        let mut keys = Vec::new();
        if self.points {
            keys.push(Key::new("points of the sample", WHITE, "dot ringed"));
        } else if self.values.contains(&None) {
            keys.push(Key::new("blank: no point of the sample", GREY, "blank"));
        }
        if let (Some((_, name)), false) = (&self.outline, border.is_empty()) {
            keys.push(Key::new(name, VERMILLION, "line"));
        }
        Ok(Drawing {
            caption: self.caption,
            svg,
            keys,
            colours: Some([number(low), number(high)]),
        })
    }

    /// What the first and the last colour stand for.
    fn ends(&self) -> [f64; 2] {
        let known = self.values.iter().flatten().copied();
        let mut known: Vec<f64> = known.filter(|v| v.is_finite()).collect();
        known.sort_by(f64::total_cmp);
        let high = quantile(&known, 1.0 - EXTREME);
        match self.from_zero {
            true => [0.0, high.max(1.0)],
            // Values that are all the same have the first colour.
            false => {
                let low = quantile(&known, EXTREME);
                [low, if high > low { high } else { low + 1.0 }]
            }
        }
    }

    fn rows(&self) -> usize {
        self.values.len() / self.land.columns.max(1)
    }

    /// Where the lower left corner of a tile lies.
    fn corner(&self, column: usize, row: usize) -> (f64, f64) {
        let at = |[a, b]: [f64; 2], i: usize, n: usize| a + (b - a) * i as f64 / n.max(1) as f64;
        let land = self.land;
        (
            at(land.x, column, land.columns),
            at(land.y, row, self.rows()),
        )
    }

    /// One rectangle for each run of tiles of one colour.
    fn tiles(&self, levels: &[Option<f64>]) -> Vec<Rectangle<(f64, f64)>> {
        let mut tiles = Vec::new();
        for (row, levels) in levels.chunks(self.land.columns.max(1)).enumerate() {
            let mut column = 0;
            for run in levels.chunk_by(|a, b| a == b) {
                let ends = [
                    self.corner(column, row),
                    self.corner(column + run.len(), row + 1),
                ];
                column += run.len();
                if let Some(level) = run[0] {
                    let colour = ViridisRGB.get_color(level / (LEVELS - 1.0));
                    tiles.push(Rectangle::new(ends, colour.filled()));
                }
            }
        }
        tiles
    }

    /// The edges between tiles inside and outside the outlined values.
    fn border(&self) -> Vec<Line> {
        let Some((limit, _)) = &self.outline else {
            return Vec::new();
        };
        let (columns, rows) = (self.land.columns, self.rows());
        let inside = |c: usize, r: usize| self.values[r * columns + c].is_some_and(|v| v <= *limit);
        let mut edges = Vec::new();
        for row in 0..rows {
            for column in 0..columns {
                let (own, end) = (inside(column, row), self.corner(column + 1, row + 1));
                if column + 1 < columns && own != inside(column + 1, row) {
                    edges.push([self.corner(column + 1, row), end]);
                }
                if row + 1 < rows && own != inside(column, row + 1) {
                    edges.push([self.corner(column, row + 1), end]);
                }
            }
        }
        edges
    }
}
