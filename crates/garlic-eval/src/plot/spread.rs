//! Means with their spread: a marker and a bar from low to high at each place.

use super::axis::{Axis, Scale, Tick};
use super::chart::{Area, frame, legend, span};
use super::svg::{Svg, Text, escape, text_width};

/// A mean and what lies around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Place on the horizontal axis.
    pub x: f64,
    /// The mean.
    pub mean: f64,
    /// Lower end of the bar.
    pub low: f64,
    /// Upper end of the bar.
    pub high: f64,
}

/// A chart of means with bars, and perhaps a dashed line to compare them with.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Title above everything.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Names of the places 0, 1, 2 and so on, for an axis of kinds instead of numbers.
    pub kinds: Vec<String>,
    /// The means and what they are.
    pub spots: (Vec<Spot>, String),
    /// Colour of the means.
    pub colour: String,
    /// What the means are compared with, and its name; may be empty.
    pub compared: (Vec<(f64, f64)>, String),
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
}

impl Spread {
    /// The chart as SVG text.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        let text = |x, y, size, anchor, bold| Text {
            x,
            y,
            size,
            anchor,
            bold,
        };
        svg.text(&text(14.0, 24.0, 16.0, "start", true), &self.title);
        let bottom = self.legend(&mut svg);
        let spots: Vec<Spot> = self
            .spots
            .0
            .iter()
            .copied()
            .filter(|s| self.shows(s))
            .collect();
        let compared = || {
            self.compared
                .0
                .iter()
                .filter(|p| self.x.shows(p.0) && self.y.shows(p.1))
        };
        let xs = spots.iter().map(|s| s.x).chain(compared().map(|p| p.0));
        let ys = spots
            .iter()
            .flat_map(|s| [s.mean, s.low, s.high])
            .chain(compared().map(|p| p.1));
        let x = self.horizontal(span(xs));
        let y = self.y.scale(span(ys.filter(|v| self.y.shows(*v))));
        let widest = y
            .ticks
            .iter()
            .map(|t| text_width(&t.label, 12.0))
            .fold(0.0, f64::max);
        let area = Area {
            left: 44.0 + widest,
            right: self.width - 24.0,
            top: bottom + 10.0,
            bottom: self.height - 52.0,
        };
        frame(&mut svg, &area, &x, &y, &self.x.label, &self.y.label);
        let line: Vec<(f64, f64)> = compared()
            .map(|p| area.place(x.at(p.0), y.at(p.1)))
            .collect();
        dashed(&mut svg, &line);
        self.draw(&mut svg, &spots, &area, &x, &y);
        if spots.is_empty() {
            let (cx, cy) = (
                (area.left + area.right) / 2.0,
                (area.top + area.bottom) / 2.0,
            );
            svg.text(&text(cx, cy, 14.0, "middle", false), "no data");
        }
        svg.finish(&self.title, self.width, self.height)
    }

    fn shows(&self, spot: &Spot) -> bool {
        self.x.shows(spot.x) && self.y.shows(spot.mean)
    }

    fn horizontal(&self, data: Option<(f64, f64)>) -> Scale {
        if self.kinds.is_empty() {
            return self.x.scale(data);
        }
        let last = self.kinds.len() as f64 - 0.5;
        let mut scale = Axis::linear("").from(-0.5).to(last).scale(None);
        let tick = |(i, label): (usize, &String)| Tick {
            value: i as f64,
            label: label.clone(),
        };
        scale.ticks = self.kinds.iter().enumerate().map(tick).collect();
        scale
    }

    fn draw(&self, svg: &mut Svg, spots: &[Spot], area: &Area, x: &Scale, y: &Scale) {
        let colour = escape(&self.colour);
        let at = |sx: f64, v: f64| {
            let (px, py) = area.place(x.at(sx), y.at(v));
            (px, py.clamp(area.top, area.bottom))
        };
        let path: Vec<String> = spots
            .iter()
            .map(|s| at(s.x, s.mean))
            .map(|(px, py)| format!("{px:.1},{py:.1}"))
            .collect();
        // Kinds have no values between them that a line could show.
        if path.len() > 1 && self.kinds.is_empty() {
            svg.raw(format_args!(
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
                path.join(" ")
            ));
        }
        for spot in spots {
            // A bar that a logarithmic axis cannot show ends at its edge.
            let (px, low) = at(spot.x, spot.low);
            let (_, high) = at(spot.x, spot.high);
            svg.line((px, low), (px, high), &colour, 1.6);
            for end in [low, high] {
                svg.line((px - 5.0, end), (px + 5.0, end), &colour, 1.6);
            }
            let (px, py) = at(spot.x, spot.mean);
            circle(svg, px, py, &colour);
        }
    }

    fn legend(&self, svg: &mut Svg) -> f64 {
        let compared = if self.compared.0.is_empty() {
            ""
        } else {
            self.compared.1.as_str()
        };
        let names: Vec<(&str, usize)> = [(self.spots.1.as_str(), 0), (compared, 1)]
            .into_iter()
            .filter(|n| !n.0.is_empty())
            .collect();
        let colour = escape(&self.colour);
        legend(svg, &names, 42.0, self.width, |svg, i, x, y| {
            if i == 0 {
                svg.line((x + 12.0, y - 7.0), (x + 12.0, y + 7.0), &colour, 1.6);
                circle(svg, x + 12.0, y, &colour);
            } else {
                dashed(svg, &[(x, y), (x + 24.0, y)]);
            }
        })
    }
}

fn circle(svg: &mut Svg, x: f64, y: f64, colour: &str) {
    svg.raw(format_args!(
        r##"<circle cx="{x:.1}" cy="{y:.1}" r="4.2" fill="{colour}" stroke="#ffffff" stroke-width="0.8"/>"##
    ));
}

fn dashed(svg: &mut Svg, points: &[(f64, f64)]) {
    if points.len() > 1 {
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        svg.raw(format_args!(
            r##"<polyline points="{}" fill="none" stroke="#666666" stroke-width="1.6" stroke-dasharray="6 4"/>"##,
            path.join(" ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::svg::well_formed;

    fn chart(spots: Vec<Spot>, kinds: Vec<String>, y: Axis) -> Spread {
        Spread {
            title: "a < b".into(),
            x: Axis::linear("x"),
            y,
            kinds,
            spots: (spots, "mean & spread".into()),
            colour: "#0072B2".into(),
            compared: (vec![(0.0, 1.0), (2.0, 2.0)], "without".into()),
            width: 600.0,
            height: 300.0,
        }
    }

    #[test]
    fn every_mean_has_a_bar_and_every_kind_a_name() {
        let spot = |x: f64| Spot {
            x,
            mean: 2.0,
            low: 1.0 - x,
            high: 3.0,
        };
        let kinds = ["none".to_owned(), "3-4".to_owned()];
        for kinds in [Vec::new(), kinds.to_vec()] {
            for y in [Axis::linear("y"), Axis::log("y")] {
                let svg = chart(vec![spot(0.0), spot(1.0)], kinds.clone(), y).svg();
                assert_eq!(well_formed(&svg), Ok(()));
                // One in the legend.
                assert_eq!(svg.matches("<circle").count(), 3);
                assert!(kinds.iter().all(|k| svg.contains(&format!(">{k}<"))));
            }
        }
    }

    #[test]
    fn no_means_are_said_to_be_none() {
        let mut empty = chart(Vec::new(), Vec::new(), Axis::linear("y"));
        empty.compared.0.clear();
        let svg = empty.svg();
        assert!(svg.contains("no data") && well_formed(&svg).is_ok());
    }
}
