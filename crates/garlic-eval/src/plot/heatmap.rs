//! A quantity over a rectangle: coloured tiles, a bar that explains the colours, points on top.

use std::fmt::Write;

use super::axis::{Axis, Scale};
use super::chart::{Area, frame, legend};
use super::colour::sequential;
use super::svg::{INK, Svg, Text, escape, text_width};

/// Colours that values are rounded to: as many as the eye tells apart, and tiles of one colour share a path.
const LEVELS: usize = 24;
/// Tiles without a value.
const EMPTY: &str = "#ececec";

/// Values over a rectangle.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// Title above everything.
    pub title: String,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Label of the vertical axis.
    pub y_label: String,
    /// Ends of the horizontal axis.
    pub x: [f64; 2],
    /// Ends of the vertical axis.
    pub y: [f64; 2],
    /// Tiles in a row.
    pub columns: usize,
    /// A value a tile, the lowest row first; tiles without one are grey.
    pub values: Vec<Option<f64>>,
    /// The quantity; its ends, when fixed, are where the colours end.
    pub quantity: Axis,
    /// A line around the tiles whose values are at most this, with its name.
    pub outline: Option<(f64, String)>,
    /// Points drawn over the tiles, and what they are.
    pub points: (Vec<(f64, f64)>, String),
    /// What a grey tile means; empty when there is none.
    pub empty: String,
}

impl Heatmap {
    /// The map as SVG text.
    pub fn svg(&self) -> String {
        const WIDTH: f64 = 720.0;
        const HEIGHT: f64 = 560.0;
        let mut svg = Svg::default();
        svg.text(&text(14.0, 24.0, 16.0, "start", true), &self.title);
        let bottom = self.legend(&mut svg, WIDTH);
        let colours = self.colours();
        let widest = colours
            .ticks
            .iter()
            .map(|t| text_width(&t.label, 12.0))
            .fold(0.0, f64::max);
        let x = Axis::linear("").from(self.x[0]).to(self.x[1]).scale(None);
        let y = Axis::linear("").from(self.y[0]).to(self.y[1]).scale(None);
        let wide = y
            .ticks
            .iter()
            .map(|t| text_width(&t.label, 12.0))
            .fold(0.0, f64::max);
        let area = Area {
            left: 44.0 + wide,
            right: WIDTH - 74.0 - widest,
            top: bottom + 10.0,
            bottom: HEIGHT - 52.0,
        };
        frame(&mut svg, &area, &x, &y, &self.x_label, &self.y_label);
        self.tiles(&mut svg, &area, &colours);
        self.draw_outline(&mut svg, &area);
        self.draw_points(&mut svg, &area, &x, &y);
        self.bar(&mut svg, &area, &colours);
        svg.finish(&self.title, WIDTH, HEIGHT)
    }

    fn rows(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    /// Where a value lies between the first and the last colour.
    fn colours(&self) -> Scale {
        let shown = || {
            self.values
                .iter()
                .flatten()
                .copied()
                .filter(|v| self.quantity.shows(*v))
        };
        // Ends that a logarithmic axis can show, too.
        let low = shown().reduce(f64::min).unwrap_or(1.0);
        let high = shown().reduce(f64::max).unwrap_or(10.0);
        let fixed = self.quantity.clone();
        let fixed = if fixed.min.is_none() {
            fixed.from(low)
        } else {
            fixed
        };
        let fixed = if fixed.max.is_none() {
            fixed.to(high)
        } else {
            fixed
        };
        fixed.scale(Some((low, high)))
    }

    fn level(&self, colours: &Scale, value: Option<f64>) -> Option<usize> {
        let value = value.filter(|v| self.quantity.shows(*v))?;
        let at = (colours.at(value) * LEVELS as f64).floor();
        Some(at.clamp(0.0, LEVELS as f64 - 1.0) as usize)
    }

    /// Runs of tiles of one colour, one path a colour, on a grid of whole numbers that is stretched over the area.
    fn tiles(&self, svg: &mut Svg, area: &Area, colours: &Scale) {
        let mut paths = vec![String::new(); LEVELS + 1];
        let rows = self.rows();
        for row in 0..rows {
            let values = &self.values[row * self.columns..(row + 1) * self.columns];
            let levels: Vec<Option<usize>> =
                values.iter().map(|v| self.level(colours, *v)).collect();
            let mut column = 0;
            for run in levels.chunk_by(|a, b| a == b) {
                let path = &mut paths[run[0].unwrap_or(LEVELS)];
                let (n, top) = (run.len(), rows - 1 - row);
                // Writing to a string cannot fail.
                let _ = write!(path, "M{column} {top}h{n}v1h-{n}z");
                column += n;
            }
        }
        svg.raw(format_args!(
            r#"<g shape-rendering="crispEdges" {}>"#,
            self.stretch(area)
        ));
        for (level, path) in paths.iter().enumerate().filter(|p| !p.1.is_empty()) {
            let colour = match level {
                LEVELS => EMPTY.to_owned(),
                level => sequential(level as f64 / (LEVELS - 1) as f64),
            };
            svg.raw(format_args!(r#"<path fill="{colour}" d="{path}"/>"#));
        }
        svg.raw(format_args!("</g>"));
    }

    fn stretch(&self, area: &Area) -> String {
        format!(
            r#"transform="translate({:.2} {:.2}) scale({:.4} {:.4})""#,
            area.left,
            area.top,
            (area.right - area.left) / self.columns.max(1) as f64,
            (area.bottom - area.top) / self.rows().max(1) as f64
        )
    }

    /// The edges between tiles inside and outside the outlined values.
    fn draw_outline(&self, svg: &mut Svg, area: &Area) {
        let Some((limit, _)) = &self.outline else {
            return;
        };
        let (columns, rows) = (self.columns, self.rows());
        let inside = |column: usize, row: usize| {
            self.values[row * columns + column].is_some_and(|v| v <= *limit)
        };
        // In pixels, not on the stretched grid: not every renderer keeps the width of a stretched line.
        let (wide, high) = (
            (area.right - area.left) / columns.max(1) as f64,
            (area.bottom - area.top) / rows.max(1) as f64,
        );
        let x = |column: usize| area.left + wide * column as f64;
        let y = |row: usize| area.bottom - high * row as f64;
        let mut path = String::new();
        for row in 0..rows {
            for column in 0..columns {
                let own = inside(column, row);
                if column + 1 < columns && own != inside(column + 1, row) {
                    let _ = write!(path, "M{:.1} {:.1}v-{high:.1}", x(column + 1), y(row));
                }
                if row + 1 < rows && own != inside(column, row + 1) {
                    let _ = write!(path, "M{:.1} {:.1}h{wide:.1}", x(column), y(row + 1));
                }
            }
        }
        for (colour, width) in [("#ffffff", 3.4), (INK, 1.6)] {
            svg.raw(format_args!(
                r#"<path fill="none" stroke="{colour}" stroke-width="{width}" stroke-linecap="square" d="{path}"/>"#
            ));
        }
    }

    /// All points in one path: lines of no length with round ends.
    fn draw_points(&self, svg: &mut Svg, area: &Area, x: &Scale, y: &Scale) {
        let mut path = String::new();
        for (px, py) in &self.points.0 {
            let (px, py) = (x.at(*px), y.at(*py));
            if (0.0..=1.0).contains(&px) && (0.0..=1.0).contains(&py) {
                let (px, py) = area.place(px, py);
                let _ = write!(path, "M{px:.1} {py:.1}h0");
            }
        }
        if !path.is_empty() {
            dots(svg, &path);
        }
    }

    fn legend(&self, svg: &mut Svg, width: f64) -> f64 {
        let outline = self.outline.as_ref().map_or("", |o| o.1.as_str());
        let points = if self.points.0.is_empty() {
            ""
        } else {
            self.points.1.as_str()
        };
        let names: Vec<(&str, usize)> = [points, outline, &self.empty]
            .into_iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
            .map(|(i, name)| (name, i))
            .collect();
        legend(svg, &names, 42.0, width, |svg, i, x, y| {
            match i {
            0 => dots(svg, &format!("M{:.1} {y:.1}h0", x + 12.0)),
            1 => svg.line((x, y), (x + 24.0, y), INK, 1.6),
            _ => svg.raw(format_args!(
                r#"<rect x="{:.1}" y="{:.1}" width="14" height="10" fill="{EMPTY}" stroke="{INK}" stroke-width="0.5"/>"#,
                x + 5.0,
                y - 5.0
            )),
        }
        })
    }

    /// What the colours mean.
    fn bar(&self, svg: &mut Svg, area: &Area, colours: &Scale) {
        let left = area.right + 18.0;
        let step = (area.bottom - area.top) / LEVELS as f64;
        for level in 0..LEVELS {
            svg.raw(format_args!(
                r#"<rect x="{left:.1}" y="{:.2}" width="16" height="{:.2}" fill="{}"/>"#,
                area.bottom - step * (level + 1) as f64,
                // A hair more, so that no white shows between two colours.
                step + 0.3,
                sequential(level as f64 / (LEVELS - 1) as f64)
            ));
        }
        for tick in &colours.ticks {
            let at = colours.at(tick.value);
            if !(-1e-6..=1.0 + 1e-6).contains(&at) {
                continue;
            }
            let (_, y) = area.place(0.0, at);
            svg.line((left + 16.0, y), (left + 20.0, y), INK, 1.0);
            svg.text(
                &text(left + 24.0, y + 4.0, 12.0, "start", false),
                &tick.label,
            );
        }
        let widest = colours
            .ticks
            .iter()
            .map(|t| text_width(&t.label, 12.0))
            .fold(0.0, f64::max);
        let (x, y) = (left + 38.0 + widest, (area.top + area.bottom) / 2.0);
        svg.raw(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="13" text-anchor="middle" fill="{INK}" transform="rotate(-90 {x:.1} {y:.1})">{}</text>"#,
            escape(&self.quantity.label)
        ));
    }
}

fn dots(svg: &mut Svg, path: &str) {
    for (colour, width) in [("#000000", 3.6), ("#ffffff", 2.2)] {
        svg.raw(format_args!(
            r#"<path fill="none" stroke="{colour}" stroke-width="{width}" stroke-opacity="0.75" stroke-linecap="round" d="{path}"/>"#
        ));
    }
}

fn text(x: f64, y: f64, size: f64, anchor: &str, bold: bool) -> Text<'_> {
    Text {
        x,
        y,
        size,
        anchor,
        bold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::svg::well_formed;

    fn map(values: Vec<Option<f64>>, quantity: Axis) -> Heatmap {
        Heatmap {
            title: "t & u".into(),
            x_label: "first".into(),
            y_label: "second".into(),
            x: [-1.0, 1.0],
            y: [0.0, 2.0],
            columns: 3,
            values,
            quantity,
            outline: Some((2.0, "at most <2>".into())),
            points: (vec![(0.0, 1.0), (5.0, 5.0)], "points".into()),
            empty: "nothing here".into(),
        }
    }

    #[test]
    fn tiles_of_one_colour_share_a_path_and_the_line_lies_between() {
        let values = [1.0, 1.0, 9.0, 1.0, 1.0, 9.0].map(Some).to_vec();
        let svg = map(values, Axis::linear("value")).svg();
        assert_eq!(well_formed(&svg), Ok(()));
        assert!(
            svg.contains(r##"<path fill="#440154" d="M0 1h2v1h-2zM0 0h2v1h-2z"/>"##),
            "{svg}"
        );
        assert!(svg.contains(r##"<path fill="#fde725" d="M2 1h1v1h-1zM2 0h1v1h-1z"/>"##));
        // Two edges, one a row, drawn twice: a white line below a dark one.
        let lines: Vec<&str> = svg.lines().filter(|l| l.contains("square")).collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines
                .iter()
                .all(|l| l.matches("v-").count() == 2 && l.matches('M').count() == 2)
        );
        // The point outside the rectangle is not drawn.
        assert!(svg.matches("h0").count() == 2 * 2, "{svg}");
    }

    #[test]
    fn maps_without_numbers_are_still_maps() {
        for values in [
            vec![None; 6],
            vec![Some(f64::INFINITY); 6],
            vec![Some(2.0); 6],
            Vec::new(),
        ] {
            for quantity in [
                Axis::linear("v"),
                Axis::log("v"),
                Axis::linear("v").from(0.0),
            ] {
                let svg = map(values.clone(), quantity).svg();
                assert_eq!(well_formed(&svg), Ok(()));
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }
}
