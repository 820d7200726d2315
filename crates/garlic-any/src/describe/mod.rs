//! What there is to say about an index of either kind: facts in words for people, the same as JSON for programs.

mod cells;
mod gaussians;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::AnyIndex;

/// A name and what there is to say.
pub type Fact = (&'static str, String);

/// The facts that the summary of a build tells.
pub fn summary(index: &AnyIndex) -> Vec<Fact> {
    match index {
        AnyIndex::Cells(index) => cells::facts(index),
        AnyIndex::Gaussians(index) => gaussians::summary(index),
    }
}

/// All facts; the spectra of at most `sample` cells are computed where that takes long.
pub fn facts(index: &AnyIndex, sample: usize) -> Vec<Fact> {
    match index {
        AnyIndex::Cells(index) => cells::all_facts(index),
        AnyIndex::Gaussians(index) => gaussians::facts(index, sample),
    }
}

/// The details of an index as JSON, with what [`facts`] tells beside them.
pub fn details(index: &AnyIndex, sample: usize) -> Map<String, Value> {
    let mut about: Map<String, Value> = index
        .details()
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    match index {
        AnyIndex::Cells(index) => cells::add_details(index, &mut about),
        AnyIndex::Gaussians(index) => gaussians::add_details(index, sample, &mut about),
    }
    about
}

/// Smallest, middle, mean and largest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The middle one.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of some numbers; none of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        Some(Self {
            min: *values.first()?,
            median: f64::midpoint(values[(n - 1) / 2], values[n / 2]),
            mean: values.iter().sum::<f64>() / n as f64,
            max: *values.last()?,
        })
    }

    /// In words, with so many digits.
    pub fn in_words(spread: Option<Self>, digits: usize) -> String {
        spread.map_or_else(
            || "none".to_owned(),
            |r| {
                format!(
                    "min {:.digits$}, median {:.digits$}, mean {:.digits$}, max {:.digits$}",
                    r.min, r.median, r.mean, r.max
                )
            },
        )
    }
}

/// Participation ratio of some variances: their number when all are equal, 1 when one outweighs the rest, 0 when there is
/// none.
fn participation(variances: impl IntoIterator<Item = f64>) -> f64 {
    let sums = variances
        .into_iter()
        .fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    match sums {
        (sum, squares) if squares > 0.0 => sum * sum / squares,
        _ => 0.0,
    }
}

/// A value as an entry of JSON.
fn entry(about: &mut Map<String, Value>, key: &str, value: impl Serialize) {
    about.insert(key.to_owned(), json!(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_of_few_numbers() {
        let r = Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((r.min, r.median, r.mean, r.max), (1.0, 2.5, 2.5, 4.0));
        assert_eq!(Spread::of([7.0]).unwrap().median, 7.0);
        assert_eq!(Spread::of([]), None);
        assert_eq!(participation([2.0, 2.0, 2.0]), 3.0);
        assert_eq!(participation([]), 0.0);
    }
}
