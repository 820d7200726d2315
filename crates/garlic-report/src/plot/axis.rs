//! Axes: ranges, scales and the numbers at their ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use crate::page::thousands;

/// Values that span less than this factor have no decade to mark: a linear axis shows them better.
const DECADE: f64 = 10.0;
/// Room between the data and the end of an axis that is not fixed, as a share of its length.
const ROOM: f64 = 0.04;

/// One axis of a chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axis {
    label: String,
    log: bool,
    low: Option<f64>,
    high: Option<f64>,
}

impl Axis {
    /// A linear axis; the label says what it shows, with its unit.
    pub(crate) fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// An axis that is logarithmic where the values are positive and span more than a decade.
    pub(crate) fn log(label: impl Into<String>) -> Self {
        Self {
            log: true,
            ..Self::linear(label)
        }
    }

    /// Fixes the lower end.
    pub(crate) fn from(mut self, low: f64) -> Self {
        self.low = Some(low);
        self
    }

    /// Fixes the upper end.
    pub(crate) fn to(mut self, high: f64) -> Self {
        self.high = Some(high);
        self
    }

    /// The axis over these values.
    pub(crate) fn over(self, values: impl Iterator<Item = f64>) -> Scale {
        let data = values.filter(|v| v.is_finite()).fold(None, |ends, v| {
            let (low, high) = ends.unwrap_or((v, v));
            Some((v.min(low), v.max(high)))
        });
        let (low, high) = data.unwrap_or((0.0, 1.0));
        let log = self.log && low > 0.0 && high > DECADE * low;
        let forward = |v: f64| if log { v.ln() } else { v };
        let (mut a, mut b) = (
            forward(self.low.unwrap_or(low)),
            forward(self.high.unwrap_or(high)),
        );
        // Values that are all the same still need an axis of some length.
        let room = if b > a { ROOM * (b - a) } else { 0.5 };
        if self.low.is_none() {
            a -= room;
        }
        if self.high.is_none() || b <= a {
            b += room;
        }
        Scale {
            label: self.label,
            log,
            ends: a..b,
        }
    }
}

/// An axis whose ends are settled; the ends of a logarithmic one are logarithms.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(super) label: String,
    log: bool,
    ends: Range<f64>,
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    /// Values beyond an end are drawn at that end: nothing leaves the frame.
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let value = match self.log {
            true if *value <= 0.0 => self.ends.start,
            true => value.ln(),
            false => *value,
        };
        let inside = value.clamp(self.ends.start, self.ends.end);
        RangedCoordf64::from(self.ends.clone()).map(&inside, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if !self.log {
            return RangedCoordf64::from(self.ends.clone()).key_points(hint);
        }
        let decades = (self.ends.end - self.ends.start) / DECADE.ln();
        let steps: &[f64] = if decades < 2.5 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let powers = (self.ends.start / DECADE.ln()).floor() as i32
            ..=(self.ends.end / DECADE.ln()).ceil() as i32;
        powers
            .flat_map(|p| steps.iter().map(move |s| s * DECADE.powi(p)))
            .filter(|v| self.ends.contains(&v.ln()))
            .collect()
    }

    fn range(&self) -> Range<f64> {
        match self.log {
            true => self.ends.start.exp()..self.ends.end.exp(),
            false => self.ends.clone(),
        }
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        tick(*value)
    }
}

impl Scale {
    /// Letters of the longest tick label.
    pub(super) fn longest_label(&self) -> usize {
        let ticks = self.key_points(super::TICKS);
        let lengths = ticks.iter().map(|v| self.format_ext(v).len());
        lengths.max().unwrap_or(0)
    }
}

/// As many digits as a tick has: ticks are round, what follows is a rounding error.
fn tick(value: f64) -> String {
    if value.abs() >= 1000.0 {
        return thousands(value);
    }
    if value != 0.0 && value.abs() < 1e-3 {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis, values: [f64; 2]) -> Vec<String> {
        let scale = axis.over(values.into_iter());
        let ticks = scale.key_points(6);
        ticks.iter().map(|v| scale.format_ext(v)).collect()
    }

    #[test]
    fn ticks_are_round_numbers_inside_the_range() {
        let linear = || Axis::linear("x");
        let fixed = labels(linear().from(0.0).to(1.0), [0.3, 0.4]);
        assert_eq!(fixed, ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        let log = || Axis::log("x");
        assert_eq!(
            labels(log(), [90.0, 2100.0]),
            ["100", "200", "500", "1,000", "2,000"]
        );
        assert_eq!(labels(log(), [0.9, 1e6]).len(), 7);
        // Less than a decade, or nothing positive: linear.
        assert_eq!(
            labels(log().from(300.0).to(700.0), [300.0, 700.0])[0],
            "300"
        );
        assert!(labels(log().from(0.0), [0.0, 100.0]).contains(&"40".to_owned()));
    }

    #[test]
    fn values_are_drawn_in_their_order_and_inside() {
        for axis in [Axis::linear("x"), Axis::log("x")] {
            let scale = axis.over([1.0, 1000.0].into_iter());
            let at = |v: f64| scale.map(&v, (0, 900));
            assert!(at(1.0) < at(30.0) && at(30.0) < at(1000.0));
            assert_eq!((at(-1e9), at(1e9)), (0, 900));
        }
        // No values, or all the same.
        for values in [vec![], vec![2.0, 2.0], vec![f64::NAN]] {
            let scale = Axis::log("x").over(values.into_iter());
            assert!(scale.ends.start < scale.ends.end);
        }
    }
}
