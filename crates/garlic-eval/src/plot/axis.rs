//! Axes: ranges, scales and ticks at round numbers.

use super::svg::thousands;

/// One axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Logarithmic; values that are not positive are left out.
    pub log: bool,
    /// Fixed lower end; from the data when not given.
    pub min: Option<f64>,
    /// Fixed upper end; from the data when not given.
    pub max: Option<f64>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            log: false,
            min: None,
            max: None,
        }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            log: true,
            ..Self::linear(label)
        }
    }

    /// Fixes the lower end.
    pub fn from(mut self, min: f64) -> Self {
        self.min = Some(min);
        self
    }

    /// Fixes the upper end.
    pub fn to(mut self, max: f64) -> Self {
        self.max = Some(max);
        self
    }

    /// Whether a value can be shown.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    /// Position of values between 0 and 1 and ticks, for data that span `low..=high`.
    pub(super) fn scale(&self, data: Option<(f64, f64)>) -> Scale {
        let (low, high) = data.unwrap_or((1.0, 10.0));
        let forward = |v: f64| if self.log { v.ln() } else { v };
        let usable = |v: &f64| self.shows(*v);
        let (mut a, mut b) = (
            forward(self.min.filter(usable).unwrap_or(low)),
            forward(self.max.filter(usable).unwrap_or(high)),
        );
        if b < a {
            std::mem::swap(&mut a, &mut b);
        }
        // A little air, so that markers at the ends are not cut; none where the caller fixed the end.
        let span = if b > a { b - a } else { 1.0 };
        let air = if b > a { 0.04 } else { 0.5 };
        if self.min.is_none() {
            a -= span * air;
        }
        if self.max.is_none() || b <= a {
            b += span * air;
        }
        let ticks = if self.log {
            log_ticks(a.exp(), b.exp())
        } else {
            linear_ticks(a, b)
        };
        Scale {
            log: self.log,
            a,
            b,
            ticks,
        }
    }
}

/// A tick: value and label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// An axis with its range settled.
pub(super) struct Scale {
    log: bool,
    a: f64,
    b: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Scale {
    /// Where `value` lies, 0 at the lower end, 1 at the upper.
    pub(super) fn at(&self, value: f64) -> f64 {
        let v = if self.log {
            value.max(f64::MIN_POSITIVE).ln()
        } else {
            value
        };
        (v - self.a) / (self.b - self.a)
    }
}

fn linear_ticks(a: f64, b: f64) -> Vec<Tick> {
    let raw = (b - a) / 6.0;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= raw * 0.999)
        .unwrap_or(10.0 * power);
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let (first, last) = (
        (a / step - 1e-6).ceil() as i64,
        (b / step + 1e-6).floor() as i64,
    );
    (first..=last)
        .take(50)
        .map(|i| {
            let value = i as f64 * step;
            let label = if decimals == 0 {
                thousands(value)
            } else {
                format!("{value:.decimals$}")
            };
            Tick { value, label }
        })
        .collect()
}

fn log_ticks(a: f64, b: f64) -> Vec<Tick> {
    let (low, high) = (a.log10().floor() as i32, b.log10().ceil() as i32);
    let with = |multiples: &[f64]| -> Vec<f64> {
        (low..=high)
            .flat_map(|p| multiples.iter().map(move |m| m * 10_f64.powi(p)))
            .filter(|v| *v >= a * (1.0 - 1e-9) && *v <= b * (1.0 + 1e-9))
            .collect()
    };
    let all: [&[f64]; 3] = [
        &[1.0],
        &[1.0, 2.0, 5.0],
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
    ];
    let values = all
        .iter()
        .map(|m| with(m))
        .find(|t| t.len() >= 4)
        .unwrap_or_else(|| with(all[2]));
    // Many decades: every second (third ...) is enough.
    let every = values.len().div_ceil(9).max(1);
    values
        .into_iter()
        .step_by(every)
        .map(|value| Tick {
            value,
            label: plain(value),
        })
        .collect()
}

/// A number without exponent, as short as it can be.
fn plain(value: f64) -> String {
    if !(1e-4..1e7).contains(&value) {
        format!("{value:.0e}")
    } else if value >= 10.0 {
        thousands(value)
    } else {
        let text = format!("{value:.5}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|t| t.label.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_inside() {
        assert_eq!(
            labels(&linear_ticks(0.0, 1.0)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&linear_ticks(0.0, 3000.0)),
            ["0", "500", "1,000", "1,500", "2,000", "2,500", "3,000"]
        );
        for (a, b) in [(0.731, 0.99), (-5.0, 7.0), (1e6, 1.1e6), (0.0, 1e-6)] {
            let t = linear_ticks(a, b);
            assert!((3..=10).contains(&t.len()), "{a} {b} {t:?}");
            assert!(t.iter().all(|t| t.value >= a - 1e-9 && t.value <= b + 1e-9));
        }
    }

    #[test]
    fn log_ticks_are_decades_or_simple_multiples() {
        assert_eq!(labels(&log_ticks(1.0, 1000.0)), ["1", "10", "100", "1,000"]);
        assert_eq!(
            labels(&log_ticks(90.0, 2100.0)),
            ["100", "200", "500", "1,000", "2,000"]
        );
        assert!(log_ticks(1.0, 1e20).len() <= 9);
        assert!(log_ticks(300.0, 700.0).len() >= 4);
    }

    #[test]
    fn degenerate_ranges_still_scale() {
        for axis in [
            Axis::linear("x"),
            Axis::log("x"),
            Axis::linear("x").from(2.0).to(2.0),
        ] {
            for data in [None, Some((2.0, 2.0))] {
                let s = axis.scale(data);
                assert!(s.at(2.0).is_finite());
            }
        }
        assert!(
            !Axis::log("x").shows(0.0)
                && Axis::linear("x").shows(0.0)
                && !Axis::linear("x").shows(f64::NAN)
        );
    }
}
