//! A quantity over the plane: coloured tiles, points on top.

use garlic_eval::diagnose::Landscape;
use garlic_eval::metrics::quantile;
use plotters::prelude::*;

use super::{Axis, Drawing, GREY, Key, VERMILLION, draw};
use crate::Result;

const HEIGHT: u32 = 780;
/// Colours that values are rounded to: as many as the eye tells apart, and tiles of one colour share a rectangle.
const LEVELS: f64 = 24.0;
/// Share of the tiles at either end that colours do not tell apart.
const EXTREME: f64 = 0.01;
/// Values that span more than this factor are coloured by their logarithm.
const WIDE: f64 = 8.0;

/// Draws a value for each tile, the lowest row first; a tile without one stays blank. Colours begin at 0 or at the least value.
/// A line lies around the tiles whose values are at most that of `outline`. Points of the sample are drawn where no tile is
/// blank.
pub(crate) fn heatmap(
    land: &Landscape,
    values: Vec<Option<f64>>,
    from_zero: bool,
    outline: Option<(f64, &str)>,
) -> Result<Drawing> {
    let blank = values.contains(&None);
    let colours = Colours::of(&values, from_zero);
    let tiles = Tiles { land, values };
    let border = outline.map_or_else(Vec::new, |(limit, _)| tiles.border(limit));
    let axis = |n: u8, [a, b]: [f64; 2]| {
        let axis = Axis::linear(format!("principal component {n}"));
        axis.from(a).to(b).over([a, b].into_iter())
    };
    let svg = draw(HEIGHT, axis(1, land.x), axis(2, land.y), |frame| {
        frame.draw_series(tiles.runs(&colours))?;
        let line = VERMILLION.stroke_width(4);
        frame.draw_series(border.iter().map(|edge| PathElement::new(*edge, line)))?;
        let dot = WHITE.mix(0.7).filled();
        let drawn = land.drawn.iter().filter(|_| !blank);
        frame
            .draw_series(drawn.map(|(x, y)| Circle::new((f64::from(*x), f64::from(*y)), 3, dot)))?;
        Ok(())
    })?;
    let mut keys = vec![match blank {
        true => Key::new("blank: no point of the sample", GREY, "blank"),
        false => Key::new("points of the sample", WHITE, "dot ringed"),
    }];
    if let (Some((_, reach)), false) = (outline, border.is_empty()) {
        keys.push(Key::new(
            format!("border of what is within {reach}"),
            VERMILLION,
            "line",
        ));
    }
    Ok(Drawing {
        svg,
        keys,
        colours: Some([colours.low, colours.high]),
        ..Drawing::default()
    })
}

/// What the first and the last colour stand for.
struct Colours {
    low: f64,
    high: f64,
}

impl Colours {
    fn of(values: &[Option<f64>], from_zero: bool) -> Self {
        let known = values.iter().flatten().copied();
        let mut known: Vec<f64> = known.filter(|v| v.is_finite()).collect();
        known.sort_by(f64::total_cmp);
        let low = if from_zero {
            0.0
        } else {
            quantile(&known, EXTREME)
        };
        let high = quantile(&known, 1.0 - EXTREME);
        // Values that are all the same have the first colour.
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high }
    }

    /// The number of a value's colour.
    fn level(&self, value: &Option<f64>) -> Option<f64> {
        let Self { low, high } = *self;
        let value = value.filter(|v| v.is_finite())?.clamp(low, high);
        let share = match low > 0.0 && high > WIDE * low {
            true => (value / low).ln() / (high / low).ln(),
            false => (value - low) / (high - low),
        };
        Some((share * LEVELS).floor().min(LEVELS - 1.0))
    }
}

struct Tiles<'a> {
    land: &'a Landscape,
    values: Vec<Option<f64>>,
}

impl Tiles<'_> {
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
    fn runs(&self, colours: &Colours) -> Vec<Rectangle<(f64, f64)>> {
        let levels: Vec<Option<f64>> = self.values.iter().map(|v| colours.level(v)).collect();
        let mut found = Vec::new();
        for (row, levels) in levels.chunks(self.land.columns.max(1)).enumerate() {
            let mut end = 0;
            for run in levels.chunk_by(|a, b| a == b) {
                let start = end;
                end += run.len();
                if let Some(level) = run[0] {
                    let colour = ViridisRGB.get_color(level / (LEVELS - 1.0));
                    let corners = [self.corner(start, row), self.corner(end, row + 1)];
                    found.push(Rectangle::new(corners, colour.filled()));
                }
            }
        }
        found
    }

    /// The edges between tiles with values up to `limit` and the others.
    fn border(&self, limit: f64) -> Vec<[(f64, f64); 2]> {
        let (columns, rows) = (self.land.columns, self.rows());
        let inside = |c: usize, r: usize| self.values[r * columns + c].is_some_and(|v| v <= limit);
        let mut edges = Vec::new();
        for (row, column) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let (own, end) = (inside(column, row), self.corner(column + 1, row + 1));
            if column + 1 < columns && own != inside(column + 1, row) {
                edges.push([self.corner(column + 1, row), end]);
            }
            if row + 1 < rows && own != inside(column, row + 1) {
                edges.push([self.corner(column, row + 1), end]);
            }
        }
        edges
    }
}
