//! Charts of lines, dots, bars and means with their spread.

use garlic_eval::diagnose::Histogram;
use plotters::prelude::*;

use super::{Axis, BLUE, Drawing, Frame, Key, VERMILLION, draw};
use crate::Result;

const HEIGHT: u32 = 620;

/// How a series is drawn.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// A line with a dot at each point.
    Line,
    /// A line alone.
    Plain,
    /// A dashed line alone.
    Dashed,
    /// Faint dots.
    Dots,
    /// Bars from each point to the next: x is a left edge, the last point only closes the last bar.
    Bars,
    /// A dot at each point, and a bar from low to high through it.
    Spread(Vec<(f64, f64)>),
}

/// One series of points.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Name in the key; a series without one is not in it.
    pub(crate) name: String,
    pub(crate) colour: RGBColor,
    pub(crate) mark: Mark,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Series {
    pub(crate) fn new(
        name: impl Into<String>,
        colour: RGBColor,
        mark: Mark,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self {
            name: name.into(),
            colour,
            mark,
            points: points.into_iter().collect(),
        }
    }
}

/// A chart with two axes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

impl Chart {
    pub(crate) fn draw(mut self) -> Result<Drawing> {
        for series in &mut self.series {
            series.keep_numbers();
        }
        let points = || self.series.iter().flat_map(|s| s.points.iter());
        let ends = self.series.iter().flat_map(|s| match &s.mark {
            Mark::Spread(ends) => ends.as_slice(),
            _ => &[],
        });
        let ys = points().map(|p| p.1).chain(ends.flat_map(|e| [e.0, e.1]));
        let x = self.x.over(points().map(|p| p.0));
        let y = self.y.over(ys);
        Ok(Drawing {
            svg: draw(HEIGHT, x, y, |frame| {
                self.series.iter().try_for_each(|s| s.draw(frame))
            })?,
            keys: self.series.iter().filter_map(Series::key).collect(),
            empty: points().next().is_none(),
            ..Drawing::default()
        })
    }
}

impl Series {
    /// Leaves out what no chart can show.
    fn keep_numbers(&mut self) {
        let shown = |p: &(f64, f64)| p.0.is_finite() && p.1.is_finite();
        if let Mark::Spread(ends) = &mut self.mark {
            let mut points = self.points.iter();
            ends.retain(|_| points.next().is_some_and(shown));
        }
        self.points.retain(shown);
    }

    fn key(&self) -> Option<Key> {
        let class = match self.mark {
            Mark::Line | Mark::Plain => "line",
            Mark::Dashed => "dashed",
            Mark::Dots | Mark::Spread(_) => "dot",
            Mark::Bars => "box",
        };
        let named = !self.name.is_empty() && !self.points.is_empty();
        named.then(|| Key::new(&self.name, self.colour, class))
    }

    fn draw(&self, frame: &mut Frame<'_, '_>) -> Result<()> {
        let points = || self.points.iter().copied();
        let stroke = self.colour.filled().stroke_width(4);
        let line = || LineSeries::new(points(), stroke);
        match &self.mark {
            Mark::Line => frame.draw_series(line().point_size(7))?,
            Mark::Plain => frame.draw_series(line())?,
            Mark::Dashed => frame.draw_series(DashedLineSeries::new(points(), 14, 10, stroke))?,
            Mark::Dots => {
                let faint = self.colour.mix(0.35).filled();
                frame.draw_series(points().map(|p| Circle::new(p, 6, faint)))?
            }
            Mark::Bars => {
                let solid = self.colour.mix(0.85).filled();
                let bar = |pair: &[(f64, f64)]| {
                    let mut bar = Rectangle::new([(pair[0].0, 0.0), (pair[1].0, pair[0].1)], solid);
                    bar.set_margin(0, 0, 1, 1);
                    bar
                };
                frame.draw_series(self.points.windows(2).map(bar))?
            }
            Mark::Spread(ends) => frame.draw_series(
                points()
                    .zip(ends)
                    .map(|((x, y), end)| ErrorBar::new_vertical(x, end.0, y, end.1, stroke, 20)),
            )?,
        };
        Ok(())
    }
}

/// Bars of a histogram; a dashed line stands at `mark`, where there is one.
pub(crate) fn bars(
    x: &str,
    y: &str,
    histogram: &Histogram,
    mark: Option<(f64, &str)>,
) -> Result<Drawing> {
    let counts = histogram.counts.iter().map(|c| *c as f64);
    let highest = counts.clone().fold(0.0, f64::max);
    // The last edge closes the last bar.
    let points = histogram.edges.iter().copied().zip(counts.chain([0.0]));
    let mut series = vec![Series::new("", BLUE, Mark::Bars, points)];
    series.extend(mark.map(|(at, name)| {
        let line = [(at, 0.0), (at, highest)];
        Series::new(name, VERMILLION, Mark::Dashed, line)
    }));
    Chart {
        x: if histogram.log {
            Axis::log(x)
        } else {
            Axis::linear(x)
        },
        y: Axis::linear(y).from(0.0),
        series,
    }
    .draw()
}
