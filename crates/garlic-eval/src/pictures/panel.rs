//! Maps of a part of the plane, and how shapes are drawn on them.

use super::Point;

/// Pixels above a panel, for its title and the line under it.
const HEAD: f64 = 46.0;

/// A map of a part of the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Panel {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Coordinates of the lower left corner, and pixels a unit.
    corner: Point,
    unit: f64,
}

impl Panel {
    /// A panel whose upper left pixel is (`left`, `top`), heading included, for this window of the plane.
    pub(super) fn new([left, top]: Point, width: f64, window: [f64; 4]) -> Self {
        let unit = width / (window[2] - window[0]);
        Self {
            left,
            top: top + HEAD,
            width,
            height: (window[3] - window[1]) * unit,
            corner: [window[0], window[1]],
            unit,
        }
    }

    /// Pixels that a panel of this width and window takes from top to bottom.
    pub(super) fn tall(width: f64, window: [f64; 4]) -> f64 {
        HEAD + width * (window[3] - window[1]) / (window[2] - window[0])
    }

    /// The pixel of a point.
    pub(super) fn at(&self, [x, y]: Point) -> Point {
        [
            self.left + (x - self.corner[0]) * self.unit,
            self.top + self.height - (y - self.corner[1]) * self.unit,
        ]
    }

    /// Pixels of a length.
    pub(super) fn pixels(&self, length: f64) -> f64 {
        length * self.unit
    }

    /// The same panel with its upper left pixel at the origin.
    pub(super) fn at_origin(&self) -> Self {
        Self {
            left: 0.0,
            top: 0.0,
            ..*self
        }
    }

    /// Whether a point is on the map.
    pub(super) fn shows(&self, point: Point) -> bool {
        let [x, y] = self.at(point);
        let inside = |v: f64, from: f64, size: f64| v >= from && v <= from + size;
        inside(x, self.left, self.width) && inside(y, self.top, self.height)
    }
}

/// How a shape is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) stroke: &'static str,
    pub(super) width: f64,
    pub(super) dash: &'static str,
    pub(super) fill: &'static str,
    /// Opacity of the fill.
    pub(super) opacity: f64,
}

impl Style {
    /// An outline.
    pub(super) const fn line(stroke: &'static str, width: f64) -> Self {
        Self {
            stroke,
            width,
            dash: "",
            fill: "none",
            opacity: 1.0,
        }
    }

    /// The same with a dashed line.
    pub(super) const fn dashed(self) -> Self {
        Self {
            dash: "5 4",
            ..self
        }
    }

    /// The same, filled.
    pub(super) const fn filled(self, fill: &'static str, opacity: f64) -> Self {
        Self {
            fill,
            opacity,
            ..self
        }
    }

    /// The attributes of an element drawn in this style.
    pub(super) fn attributes(&self) -> String {
        let dash = match self.dash {
            "" => String::new(),
            dash => format!(r#" stroke-dasharray="{dash}""#),
        };
        let opacity = match self.fill {
            "none" => String::new(),
            _ => format!(r#" fill-opacity="{}""#, self.opacity),
        };
        format!(
            r#"fill="{}"{opacity} stroke="{}" stroke-width="{}"{dash}"#,
            self.fill, self.stroke, self.width
        )
    }
}
