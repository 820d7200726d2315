//! Drawings: SVG text by `plotters`, in colours that colour-blind readers tell apart.
//!
//! A drawing has axes and marks only. Its caption and the key to its marks are HTML beside it, which wraps on a narrow
//! screen where text inside a drawing would shrink.

mod axis;
mod cells;
mod chart;
mod heatmap;

pub(crate) use axis::Axis;
pub(crate) use cells::cells;
pub(crate) use chart::{Chart, Mark, Series, bars};
pub(crate) use heatmap::heatmap;

use minijinja::Value;
use minijinja::value::Serde;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;
use serde::Serialize;

use self::axis::Scale;
use crate::Result;

/// Units across a drawing. A unit is half a pixel of a column on a wide screen, for `plotters` rounds to whole units.
const WIDTH: u32 = 960;
/// Height of the letters, in units: they stay readable when a phone shows the drawing at a third of its size.
const LETTERS: u32 = 34;
/// Most ticks of an axis.
const TICKS: usize = 6;

/// Drawn in the colour of the page's text, which is another one on a dark screen.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x23);
// The Okabe-Ito palette without its yellow, which is too light on white.
pub(crate) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xB2);
pub(crate) const VERMILLION: RGBColor = RGBColor(0xD5, 0x5E, 0x00);
pub(crate) const GREEN: RGBColor = RGBColor(0x00, 0x9E, 0x73);
pub(crate) const ORANGE: RGBColor = RGBColor(0xE6, 0x9F, 0x00);
pub(crate) const PURPLE: RGBColor = RGBColor(0xCC, 0x79, 0xA7);
pub(crate) const SKY: RGBColor = RGBColor(0x56, 0xB4, 0xE9);
pub(crate) const GREY: RGBColor = RGBColor(0x88, 0x88, 0x88);

/// A drawing for a page.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Drawing {
    pub(crate) svg: String,
    pub(crate) keys: Vec<Key>,
    /// What the darkest and the brightest colour of a map stand for.
    pub(crate) colours: Option<[f64; 2]>,
    /// There was nothing to draw.
    pub(crate) empty: bool,
}

impl From<Drawing> for Value {
    fn from(drawing: Drawing) -> Self {
        Serde(drawing).into()
    }
}

/// What a mark stands for.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Key {
    name: String,
    colour: String,
    /// Class of the style sheet that draws the mark.
    class: &'static str,
}

impl Key {
    fn new(name: impl Into<String>, colour: RGBColor, class: &'static str) -> Self {
        Self {
            name: name.into(),
            colour: css(colour),
            class,
        }
    }
}

/// A chart that is being drawn.
type Frame<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// Draws axes and what `paint` adds.
fn draw(
    height: u32,
    x: Scale,
    y: Scale,
    paint: impl FnOnce(&mut Frame<'_, '_>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let (x_label, y_label) = (x.label.clone(), y.label.clone());
        let letters = ("sans-serif", LETTERS).into_font().color(&INK);
        let mut frame = ChartBuilder::on(&area)
            .margin(12)
            .margin_right(28)
            .x_label_area_size(LETTERS * 5 / 2)
            .y_label_area_size(LETTERS * (4 + y.longest_label() as u32) / 2)
            .build_cartesian_2d(x, y)?;
        frame
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(INK.mix(0.12))
            .axis_style(INK.mix(0.5))
            .x_labels(TICKS)
            .y_labels(TICKS)
            .x_desc(x_label)
            .y_desc(y_label)
            .label_style(letters.clone())
            .axis_desc_style(letters)
            .draw()?;
        paint(&mut frame)?;
        area.present()?;
    }
    Ok(svg.replace(&hex(INK), "currentColor"))
}

/// The colour as `plotters` writes it.
fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

fn css(colour: RGBColor) -> String {
    match colour {
        INK => "currentColor".to_owned(),
        _ => hex(colour),
    }
}
