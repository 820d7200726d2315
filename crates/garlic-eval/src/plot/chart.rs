//! Line, scatter and bar charts.

use super::axis::{Axis, Scale};
use super::svg::{GRID, INK, Svg, Text, escape, text_width};

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line with a marker at each point.
    Line,
    /// A line without markers.
    PlainLine,
    /// Faint markers only.
    Dots,
    /// Vertical bars; x is the left edge, the next point's x the right one.
    Bars,
}

/// One series of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Colour, such as `#0072B2`.
    pub colour: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Dashed line.
    pub dashed: bool,
    /// (x, y) in the order in which a line connects them.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A series drawn as a line with markers.
    pub fn line(
        name: impl Into<String>,
        colour: impl Into<String>,
        points: Vec<(f64, f64)>,
    ) -> Self {
        Self {
            name: name.into(),
            colour: colour.into(),
            mark: Mark::Line,
            dashed: false,
            points,
        }
    }

    /// Changes how it is drawn.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.mark = mark;
        self
    }

    /// Draws its line dashed.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }
}

/// A chart with two axes and a legend above the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Title above everything.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn; the n-th series has the n-th marker shape.
    pub series: Vec<Series>,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
}

impl Chart {
    /// An empty chart of the usual size.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            series: Vec::new(),
            width: 720.0,
            height: 440.0,
        }
    }

    /// Adds a series.
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Sets the size in pixels.
    pub fn size(mut self, width: f64, height: f64) -> Self {
        (self.width, self.height) = (width, height);
        self
    }

    /// The chart as SVG text.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        let names: Vec<(&str, usize)> = self
            .series
            .iter()
            .enumerate()
            .filter(|(_, s)| !s.name.is_empty())
            .map(|(i, s)| (s.name.as_str(), i))
            .collect();
        let legend_bottom = legend(&mut svg, &names, 42.0, self.width, |svg, i, x, y| {
            self.sample(svg, i, x, y)
        });
        svg.text(
            &Text {
                x: 14.0,
                y: 24.0,
                size: 16.0,
                anchor: "start",
                bold: true,
            },
            &self.title,
        );

        let visible = |s: &Series| -> Vec<(f64, f64)> {
            s.points
                .iter()
                .copied()
                .filter(|p| self.x.shows(p.0) && self.y.shows(p.1))
                .collect()
        };
        let shown: Vec<Vec<(f64, f64)>> = self.series.iter().map(visible).collect();
        let all = || shown.iter().flatten();
        let x = self.x.scale(span(all().map(|p| p.0)));
        let y = self.y.scale(span(all().map(|p| p.1)));
        let widest = y
            .ticks
            .iter()
            .map(|t| text_width(&t.label, 12.0))
            .fold(0.0, f64::max);
        let area = Area {
            left: 44.0 + widest,
            right: self.width - 24.0,
            top: legend_bottom + 10.0,
            bottom: self.height - 52.0,
        };
        frame(&mut svg, &area, &x, &y, &self.x.label, &self.y.label);
        for ((i, series), points) in self.series.iter().enumerate().zip(&shown) {
            self.draw(&mut svg, i, series, points, &area, &x, &y);
        }
        if all().next().is_none() {
            let (cx, cy) = (
                (area.left + area.right) / 2.0,
                (area.top + area.bottom) / 2.0,
            );
            svg.text(
                &Text {
                    x: cx,
                    y: cy,
                    size: 14.0,
                    anchor: "middle",
                    bold: false,
                },
                "no data",
            );
        }
        svg.finish(&self.title, self.width, self.height)
    }

    #[expect(clippy::too_many_arguments, reason = "a private step of drawing")]
    fn draw(
        &self,
        svg: &mut Svg,
        i: usize,
        series: &Series,
        data: &[(f64, f64)],
        area: &Area,
        x: &Scale,
        y: &Scale,
    ) {
        let colour = escape(&series.colour);
        let points: Vec<(f64, f64)> = data
            .iter()
            .map(|p| area.place(x.at(p.0), y.at(p.1)))
            .collect();
        match series.mark {
            Mark::Bars => {
                for pair in points.windows(2) {
                    let ((x0, y0), (x1, _)) = (pair[0], pair[1]);
                    let height = (area.bottom - y0).max(0.0);
                    svg.raw(format_args!(
                        r#"<rect x="{:.1}" y="{y0:.1}" width="{:.1}" height="{height:.1}" fill="{colour}" fill-opacity="0.8"/>"#,
                        x0 + 0.5,
                        (x1 - x0 - 1.0).max(0.5)
                    ));
                }
            }
            Mark::Dots => {
                for &(px, py) in &points {
                    svg.raw(format_args!(
                        r#"<circle cx="{px:.1}" cy="{py:.1}" r="2.6" fill="{colour}" fill-opacity="0.35"/>"#
                    ));
                }
            }
            Mark::Line | Mark::PlainLine => {
                if points.len() > 1 {
                    let path: Vec<String> = points
                        .iter()
                        .map(|(px, py)| format!("{px:.1},{py:.1}"))
                        .collect();
                    let dash = if series.dashed {
                        r#" stroke-dasharray="7 4""#
                    } else {
                        ""
                    };
                    svg.raw(format_args!(
                        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2.2" stroke-linejoin="round"{dash}/>"#,
                        path.join(" ")
                    ));
                }
                if series.mark == Mark::Line || points.len() == 1 {
                    for &(px, py) in &points {
                        marker(svg, i, px, py, &colour);
                    }
                }
            }
        }
    }

    /// The legend's picture of series `i`.
    fn sample(&self, svg: &mut Svg, i: usize, x: f64, y: f64) {
        let series = &self.series[i];
        let colour = escape(&series.colour);
        match series.mark {
            Mark::Bars => svg.raw(format_args!(
                r#"<rect x="{:.1}" y="{:.1}" width="14" height="10" fill="{colour}" fill-opacity="0.8"/>"#,
                x + 5.0,
                y - 5.0
            )),
            Mark::Dots => svg.raw(format_args!(
                r#"<circle cx="{:.1}" cy="{y:.1}" r="3.5" fill="{colour}" fill-opacity="0.5"/>"#,
                x + 12.0
            )),
            Mark::Line | Mark::PlainLine => {
                let dash = if series.dashed { r#" stroke-dasharray="7 4""# } else { "" };
                svg.raw(format_args!(
                    r#"<line x1="{x:.1}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}" stroke="{colour}" stroke-width="2.2"{dash}/>"#,
                    x + 24.0
                ));
                if series.mark == Mark::Line {
                    marker(svg, i, x + 12.0, y, &colour);
                }
            }
        }
    }
}

/// The rectangle that the data are drawn in.
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// Pixels of a position in the unit square; far outside is clamped so that the text stays small.
    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (x, y) = (x.clamp(-1.0, 2.0), y.clamp(-1.0, 2.0));
        (
            self.left + x * (self.right - self.left),
            self.bottom - y * (self.bottom - self.top),
        )
    }
}

pub(super) fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((a, b)) => Some((f64::min(a, v), f64::max(b, v))),
    })
}

/// Entries in lines that fit the width; returns where the last line ends.
pub(super) fn legend(
    svg: &mut Svg,
    names: &[(&str, usize)],
    top: f64,
    width: f64,
    mut sample: impl FnMut(&mut Svg, usize, f64, f64),
) -> f64 {
    let (mut x, mut y) = (14.0, top);
    for &(name, i) in names {
        let needs = 30.0 + text_width(name, 13.0) + 16.0;
        if x > 14.0 && x + needs > width {
            (x, y) = (14.0, y + 20.0);
        }
        sample(svg, i, x, y);
        svg.text(
            &Text {
                x: x + 30.0,
                y: y + 4.5,
                size: 13.0,
                anchor: "start",
                bold: false,
            },
            name,
        );
        x += needs;
    }
    if names.is_empty() {
        top - 10.0
    } else {
        y + 8.0
    }
}

/// Grid, ticks, axis lines and labels.
pub(super) fn frame(
    svg: &mut Svg,
    area: &Area,
    x: &Scale,
    y: &Scale,
    x_label: &str,
    y_label: &str,
) {
    let inside = |at: f64| (-1e-6..=1.0 + 1e-6).contains(&at);
    let mut last_end = f64::NEG_INFINITY;
    for tick in x.ticks.iter().filter(|t| inside(x.at(t.value))) {
        let (px, _) = area.place(x.at(tick.value), 0.0);
        svg.line((px, area.top), (px, area.bottom), GRID, 1.0);
        svg.line((px, area.bottom), (px, area.bottom + 5.0), INK, 1.0);
        let half = text_width(&tick.label, 12.0) / 2.0;
        // A label that would touch the one before it is left out; its tick stays.
        if px - half > last_end + 4.0 {
            svg.text(
                &Text {
                    x: px,
                    y: area.bottom + 19.0,
                    size: 12.0,
                    anchor: "middle",
                    bold: false,
                },
                &tick.label,
            );
            last_end = px + half;
        }
    }
    for tick in y.ticks.iter().filter(|t| inside(y.at(t.value))) {
        let (_, py) = area.place(0.0, y.at(tick.value));
        svg.line((area.left, py), (area.right, py), GRID, 1.0);
        svg.line((area.left - 5.0, py), (area.left, py), INK, 1.0);
        svg.text(
            &Text {
                x: area.left - 8.0,
                y: py + 4.0,
                size: 12.0,
                anchor: "end",
                bold: false,
            },
            &tick.label,
        );
    }
    svg.line(
        (area.left, area.bottom),
        (area.right, area.bottom),
        INK,
        1.2,
    );
    svg.line((area.left, area.top), (area.left, area.bottom), INK, 1.2);
    let (cx, cy) = (
        (area.left + area.right) / 2.0,
        (area.top + area.bottom) / 2.0,
    );
    svg.text(
        &Text {
            x: cx,
            y: area.bottom + 42.0,
            size: 13.0,
            anchor: "middle",
            bold: false,
        },
        x_label,
    );
    svg.raw(format_args!(
        r#"<text x="16" y="{cy:.1}" font-size="13" text-anchor="middle" fill="{INK}" transform="rotate(-90 16 {cy:.1})">{}</text>"#,
        escape(y_label)
    ));
}

fn marker(svg: &mut Svg, shape: usize, x: f64, y: f64, colour: &str) {
    let outline = r##"stroke="#ffffff" stroke-width="0.8""##;
    match shape % 4 {
        0 => svg.raw(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="4.2" fill="{colour}" {outline}/>"#
        )),
        1 => svg.raw(format_args!(
            r#"<rect x="{:.1}" y="{:.1}" width="8" height="8" fill="{colour}" {outline}/>"#,
            x - 4.0,
            y - 4.0
        )),
        2 => polygon(
            svg,
            &[(x, y - 5.2), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)],
            colour,
            outline,
        ),
        _ => polygon(
            svg,
            &[(x, y - 5.6), (x + 5.6, y), (x, y + 5.6), (x - 5.6, y)],
            colour,
            outline,
        ),
    }
}

fn polygon(svg: &mut Svg, corners: &[(f64, f64)], colour: &str, outline: &str) {
    let corners: Vec<String> = corners
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    svg.raw(format_args!(
        r#"<polygon points="{}" fill="{colour}" {outline}/>"#,
        corners.join(" ")
    ));
}

#[cfg(test)]
mod tests {
    use super::super::svg::well_formed;
    use super::*;

    #[test]
    fn charts_are_well_formed_whatever_the_data() {
        let nasty = vec![
            (0.0, f64::NAN),
            (-1.0, 3.0),
            (1e300, 2.0),
            (f64::INFINITY, 1.0),
        ];
        for axis in [Axis::linear("a < b & \"c\""), Axis::log("x")] {
            for points in [
                vec![],
                vec![(5.0, 5.0)],
                vec![(1.0, 2.0), (10.0, 3.0)],
                nasty.clone(),
            ] {
                for mark in [Mark::Line, Mark::PlainLine, Mark::Dots, Mark::Bars] {
                    let chart = Chart::new("T <&>", axis.clone(), Axis::linear("y"))
                        .with(Series::line("s & t", "#123456", points.clone()).mark(mark))
                        .with(Series::line("u", "\"/>", points.clone()).dashed());
                    let svg = chart.svg();
                    assert_eq!(well_formed(&svg), Ok(()), "{svg}");
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                }
            }
        }
    }

    #[test]
    fn every_point_has_a_marker() {
        let points: Vec<(f64, f64)> = (1..=9).map(|i| (f64::from(i), f64::from(i * i))).collect();
        let chart = Chart::new("t", Axis::linear("x"), Axis::linear("y"))
            .with(Series::line("", "#000", points));
        // The title says nothing of series without a name, so all circles are points.
        assert_eq!(chart.svg().matches("<circle").count(), 9);
    }

    #[test]
    fn larger_values_lie_right_and_up() {
        let chart = Chart::new("t", Axis::log("x"), Axis::linear("y").from(0.0).to(1.0))
            .with(Series::line("", "#000", vec![(10.0, 0.2), (1000.0, 0.9)]));
        let svg = chart.svg();
        let numbers: Vec<f64> = svg
            .split("points=\"")
            .nth(1)
            .and_then(|s| s.split('"').next())
            .unwrap()
            .split([' ', ','])
            .map(|v| v.parse().unwrap())
            .collect();
        assert!(
            numbers[0] < numbers[2] && numbers[1] > numbers[3],
            "{numbers:?}"
        );
    }
}
