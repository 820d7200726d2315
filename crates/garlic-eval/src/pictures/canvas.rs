//! Panels side by side on one drawing: maps of a part of the plane with dots, outlines, arrows and words.

use crate::plot::svg::{GRID, INK, Svg, Text, escape, text_width};

use super::Point;
use super::panel::{Panel, Style};
use crate::plot::Ellipse;

/// What a legend explains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    Dot(&'static str),
    Outline(Style),
    Area(Style),
    Arrow(&'static str),
    Query,
}

/// A drawing of panels.
pub(super) struct Drawing {
    svg: Svg,
    width: f64,
    panels: usize,
    /// Wide drawings are shown smaller: their words are larger.
    zoom: f64,
}

impl Drawing {
    /// An empty drawing with its title.
    pub(super) fn new(title: &str, width: f64) -> Self {
        let mut drawing = Self {
            svg: Svg::default(),
            width,
            panels: 0,
            zoom: (width / 918.0).clamp(1.0, 1.25),
        };
        drawing.text([14.0, 24.0], title, 16.0 * drawing.zoom, "start", true);
        drawing
    }

    /// Words at a pixel.
    pub(super) fn text(&mut self, [x, y]: Point, words: &str, size: f64, anchor: &str, bold: bool) {
        self.svg.text(
            &Text {
                x,
                y,
                size,
                anchor,
                bold,
            },
            words,
        );
    }

    /// Begins a panel: heading, what it shows in a line, frame; what follows is cut off at the frame.
    pub(super) fn open(&mut self, panel: &Panel, heading: &str, line: &str) {
        self.text(
            [panel.left, panel.top - 9.0 - 16.5 * self.zoom],
            heading,
            14.0 * self.zoom,
            "start",
            true,
        );
        self.text(
            [panel.left, panel.top - 9.0],
            line,
            12.0 * self.zoom,
            "start",
            false,
        );
        let number = self.panels;
        self.panels += 1;
        let Panel {
            left,
            top,
            width,
            height,
            ..
        } = *panel;
        let place =
            format!(r#"x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}""#);
        self.svg.raw(format_args!(
            r##"<rect {place} fill="#ffffff" stroke="{GRID}"/>"##
        ));
        self.svg.raw(format_args!(
            r#"<clipPath id="panel{number}"><rect {place}/></clipPath><g clip-path="url(#panel{number})">"#
        ));
    }

    /// Ends a panel.
    pub(super) fn close(&mut self) {
        self.svg.raw(format_args!("</g>"));
    }

    /// Dots, as one path: a circle each would make large files.
    pub(super) fn dots<'a>(
        &mut self,
        panel: &Panel,
        points: impl IntoIterator<Item = &'a Point>,
        colour: &str,
        size: f64,
    ) {
        let path = path_of(panel, points);
        if !path.is_empty() {
            self.svg.raw(format_args!(
                r#"<path d="{path}" stroke="{colour}" stroke-width="{size}" stroke-linecap="round"/>"#
            ));
        }
    }

    /// Keeps dots to be drawn in several panels of one scale.
    pub(super) fn define(&mut self, panel: &Panel, points: &[Point]) {
        let at_home = panel.at_origin();
        let path = path_of(&at_home, points);
        self.svg.raw(format_args!(
            r#"<defs><path id="cloud" d="{path}" stroke-linecap="round"/></defs>"#
        ));
    }

    /// Draws the dots that were kept.
    pub(super) fn cloud(&mut self, panel: &Panel, colour: &str, size: f64) {
        self.svg.raw(format_args!(
            r##"<use href="#cloud" x="{:.1}" y="{:.1}" stroke="{colour}" stroke-width="{size}"/>"##,
            panel.left, panel.top
        ));
    }

    /// A cell at a Mahalanobis radius.
    pub(super) fn ellipse(&mut self, panel: &Panel, cell: &Ellipse, radius: f64, style: Style) {
        let (long, short, angle) = cell.axes();
        let [x, y] = panel.at([cell.centre.0, cell.centre.1]);
        let (rx, ry) = (panel.pixels(long * radius), panel.pixels(short * radius));
        self.svg.raw(format_args!(
            r#"<ellipse cx="{x:.1}" cy="{y:.1}" rx="{rx:.1}" ry="{ry:.1}" transform="rotate({:.1} {x:.1} {y:.1})" {}/>"#,
            -angle.to_degrees(),
            style.attributes()
        ));
    }

    /// A circle.
    pub(super) fn circle(&mut self, panel: &Panel, centre: Point, radius: f64, style: Style) {
        let [x, y] = panel.at(centre);
        self.svg.raw(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{:.1}" {}/>"#,
            panel.pixels(radius),
            style.attributes()
        ));
    }

    /// A closed outline.
    pub(super) fn polygon(&mut self, panel: &Panel, corners: &[Point], style: Style) {
        let corners: Vec<String> = corners
            .iter()
            .map(|c| panel.at(*c))
            .map(|[x, y]| format!("{x:.1},{y:.1}"))
            .collect();
        self.svg.raw(format_args!(
            r#"<polygon points="{}" {}/>"#,
            corners.join(" "),
            style.attributes()
        ));
    }

    /// A straight line between two points.
    pub(super) fn line(&mut self, panel: &Panel, from: Point, to: Point, style: Style) {
        let ([x1, y1], [x2, y2]) = (panel.at(from), panel.at(to));
        self.svg.raw(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" {}/>"#,
            style.attributes()
        ));
    }

    /// A line with a head at its end; one that is too short for a head is a dot.
    pub(super) fn arrow(&mut self, panel: &Panel, from: Point, to: Point, colour: &str) {
        self.pixel_arrow(panel.at(from), panel.at(to), colour);
    }

    fn pixel_arrow(&mut self, [x1, y1]: Point, [x2, y2]: Point, colour: &str) {
        let length = (x2 - x1).hypot(y2 - y1);
        if length < 2.0 {
            self.svg.raw(format_args!(
                r#"<circle cx="{x1:.1}" cy="{y1:.1}" r="2" fill="{colour}"/>"#
            ));
            return;
        }
        let (ux, uy) = ((x2 - x1) / length, (y2 - y1) / length);
        let head = length.min(8.0);
        let (bx, by) = (x2 - head * ux, y2 - head * uy);
        let (sx, sy) = (-uy * head * 0.45, ux * head * 0.45);
        self.svg.raw(format_args!(
            concat!(
                r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{}" stroke-width="2"/>"#,
                r#"<polygon points="{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}" fill="{}"/>"#
            ),
            x1, y1, bx, by, colour, x2, y2, bx + sx, by + sy, bx - sx, by - sy, colour
        ));
    }

    /// A query: a cross in a white ring, so that it is seen on everything.
    pub(super) fn query(&mut self, panel: &Panel, at: Point) {
        self.cross(panel.at(at));
    }

    fn cross(&mut self, [x, y]: Point) {
        let path = format!(
            "M{:.1} {:.1}l12 12M{:.1} {:.1}l12 -12",
            x - 6.0,
            y - 6.0,
            x - 6.0,
            y + 6.0
        );
        for (colour, width) in [("#ffffff", 6.0), ("#000000", 2.6)] {
            self.svg.raw(format_args!(
                r#"<path d="{path}" stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>"#
            ));
        }
    }

    /// Words at a point, on a white outline so that they are read on everything.
    pub(super) fn label(
        &mut self,
        panel: &Panel,
        at: Point,
        [dx, dy]: Point,
        words: &str,
        size: f64,
    ) {
        let [x, y] = panel.at(at);
        let place = format!(
            r#"x="{:.1}" y="{:.1}" font-size="{size}" text-anchor="middle""#,
            x + dx,
            y + dy + size * 0.35
        );
        // Two texts: not every viewer knows how to paint a stroke below the fill of one.
        let words = escape(words);
        self.svg.raw(format_args!(
            r##"<text {place} stroke="#ffffff" stroke-width="3.5" stroke-linejoin="round">{words}</text>"##
        ));
        self.svg
            .raw(format_args!(r#"<text {place} fill="{INK}">{words}</text>"#));
    }

    /// A filled bar in pixels.
    pub(super) fn bar(&mut self, [x, y]: Point, [width, height]: Point, style: Style) {
        self.svg.raw(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" {}/>"#,
            style.attributes()
        ));
    }

    /// What the marks mean, from `top` on in as many lines as it takes; returns where it ends.
    pub(super) fn legend(&mut self, top: f64, entries: &[(Mark, &str)]) -> f64 {
        let (mut x, mut y) = (16.0, top + 12.0);
        for (mark, words) in entries {
            let size = 13.0 * self.zoom;
            let wide = 34.0 + text_width(words, size) + 16.0;
            if x + wide > self.width && x > 16.0 {
                (x, y) = (16.0, y + 22.0);
            }
            self.mark([x + 13.0, y], *mark);
            self.text([x + 32.0, y + 4.5], words, size, "start", false);
            x += wide;
        }
        y + 16.0
    }

    fn mark(&mut self, [x, y]: Point, mark: Mark) {
        match mark {
            Mark::Dot(colour) => self.svg.raw(format_args!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{colour}"/>"#
            )),
            Mark::Outline(style) => self.svg.raw(format_args!(
                r#"<ellipse cx="{x:.1}" cy="{y:.1}" rx="13" ry="6" {}/>"#,
                style.attributes()
            )),
            Mark::Area(style) => self.bar([x - 11.0, y - 6.0], [22.0, 12.0], style),
            Mark::Arrow(colour) => self.pixel_arrow([x - 12.0, y], [x + 12.0, y], colour),
            Mark::Query => self.cross([x, y]),
        }
    }

    /// The finished drawing.
    pub(super) fn finish(self, title: &str, height: f64) -> String {
        self.svg.finish(title, self.width, height)
    }
}

/// Dots as strokes without length.
fn path_of<'a>(panel: &Panel, points: impl IntoIterator<Item = &'a Point>) -> String {
    points
        .into_iter()
        .filter(|p| panel.shows(**p))
        .map(|p| panel.at(*p))
        .map(|[x, y]| format!("M{x:.1} {y:.1}h0"))
        .collect()
}
