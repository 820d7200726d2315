//! Reports which recall targets need reading everything, and why.

use crate::plan::EXHAUSTIVE_POINTS;
use std::fmt;

use crate::segment::Index;
use serde::Serialize;

/// Resolution of targets, as a share of misses.
const MIN_MISS_SHARE: f64 = 1e-6;

/// Recall targets for `k` neighbours that a search meets by reading every point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Exhaustive {
    /// Number of neighbours.
    pub k: usize,
    /// Targets above this one need reading everything. 0 if all targets do.
    pub above: f64,
    /// The reason.
    pub cause: Cause,
}

/// Why a recall target needs reading everything.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// There are at most [`EXHAUSTIVE_POINTS`] points.
    FewPoints,
    /// A check after changes found targets missed at every setting. The next training ends this state.
    Missed,
    /// The targets were not measured: the index is not trained yet, or it was built without calibration.
    Unmeasured,
    /// No setting met this target for less than the cost of reading everything.
    Cost {
        /// The target.
        recall: f64,
    },
    /// The calibration covers targets only up to this one.
    Beyond {
        /// The highest measured target.
        recall: f64,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewPoints => f.write_str("4,096 points or fewer are read whole"),
            Self::Missed => f.write_str(
                "targets were missed since the index changed; it reads everything until the next training",
            ),
            Self::Unmeasured => f.write_str("what recall targets take has not been measured"),
            Self::Cost { recall } => write!(
                f,
                "no setting reached {recall} for less than reading everything costs"
            ),
            Self::Beyond { recall } => write!(f, "no target above {recall} was measured"),
        }
    }
}

impl Index {
    /// Whether a search for `k` neighbours with this recall target currently reads everything.
    pub fn reads_everything(&self, k: usize, recall: f64) -> bool {
        self.snapshot().plan(k, recall).all
    }

    /// [`Index::exhaustive`] for every measured number of neighbours, or for ten if none was measured.
    pub fn exhaustive_targets(&self) -> Vec<Exhaustive> {
        let settings = self.calibration.settings.iter();
        let mut measured: Vec<usize> = settings.map(|s| s.k).collect();
        measured.dedup();
        if measured.is_empty() {
            measured.push(10);
        }
        measured
            .into_iter()
            .filter_map(|k| self.exhaustive(k))
            .collect()
    }

    /// The recall targets for `k` neighbours that currently need reading everything, or `None` if there are none.
    pub fn exhaustive(&self, k: usize) -> Option<Exhaustive> {
        let is_exhaustive = |recall: f64| self.reads_everything(k, recall);
        if !is_exhaustive(1.0 - MIN_MISS_SHARE) {
            return None;
        }
        // Bisect on a logarithmic scale of misses. Higher targets never need less work.
        let (mut below, mut from) = (1.0, MIN_MISS_SHARE);
        while below / from > 1.0 + 1e-4 {
            let middle = f64::sqrt(below * from);
            match is_exhaustive(1.0 - middle) {
                true => from = middle,
                false => below = middle,
            }
        }
        let is_all = 1.0 - below < 1e-3;
        Some(Exhaustive {
            k,
            above: if is_all { 0.0 } else { 1.0 - below },
            cause: self.cause(k),
        })
    }

    fn cause(&self, k: usize) -> Cause {
        let calibration = &self.calibration;
        if self.len() <= EXHAUSTIVE_POINTS {
            return Cause::FewPoints;
        }
        if calibration.stale {
            return Cause::Missed;
        }
        let mut settings = calibration.measured_for(k).peekable();
        if settings.peek().is_none() {
            return Cause::Unmeasured;
        }
        let mut highest = 0.0;
        for setting in settings {
            if setting.everything {
                return Cause::Cost {
                    recall: setting.recall,
                };
            }
            highest = setting.recall;
        }
        Cause::Beyond { recall: highest }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::{Calibration, Setting};
    use crate::testdata::{rows, uniform};

    fn index(points: usize, change: impl FnOnce(&mut Calibration)) -> Index {
        let values = uniform(points, 2, 1);
        let builder = Index::builder().threads(1);
        let builder = builder.set("calibration_queries", "0").unwrap();
        let mut index = builder.build(rows(&values, 2)).unwrap();
        let setting = |recall: f64, everything: bool| Setting {
            k: 10,
            recall,
            measured: if everything { 1.0 } else { recall },
            probes: 1,
            bins: 1.0,
            rerank: 10,
            bin_prune_ratio: 1.0,
            rerank_prune_ratio: 1.0,
            expand_ratio: 0.0,
            everything,
        };
        let mut calibration = Calibration {
            points: index.len(),
            settings: vec![
                setting(0.9, false),
                setting(0.95, false),
                setting(0.99, true),
            ],
            ..Calibration::default()
        };
        change(&mut calibration);
        index.calibration = Arc::new(calibration);
        index
    }

    #[test]
    fn every_cause_is_told_with_its_limit() {
        let exhaustive = |index: &Index| index.exhaustive(10).unwrap();
        let cost = exhaustive(&index(5000, |_| {}));
        assert_eq!(cost.cause, Cause::Cost { recall: 0.99 });
        assert!((0.9499..0.9501).contains(&cost.above), "{cost:?}");
        assert!(cost.cause.to_string().contains("no setting reached 0.99"));
        let dear = index(5000, |_| {});
        assert!(!dear.reads_everything(10, 0.95) && dear.reads_everything(10, 0.951));
        assert_eq!(dear.exhaustive_targets(), [cost]);

        let beyond = exhaustive(&index(5000, |c| c.settings.truncate(2)));
        assert_eq!(beyond.cause, Cause::Beyond { recall: 0.95 });
        assert!((0.9874..0.9876).contains(&beyond.above), "{beyond:?}");

        let corrected = exhaustive(&index(5000, |c| c.correction = 2.0));
        assert!((0.8999..0.9001).contains(&corrected.above), "{corrected:?}");

        for (index, cause) in [
            (index(4096, |_| {}), Cause::FewPoints),
            (index(5000, |c| c.stale = true), Cause::Missed),
            (index(5000, |c| c.settings.clear()), Cause::Unmeasured),
        ] {
            let all = exhaustive(&index);
            assert_eq!((all.cause, all.above), (cause, 0.0));
        }
        let cheap = index(5000, |c| c.settings[2].everything = false);
        assert_eq!(cheap.exhaustive(10), None, "nothing was missed");
    }

    #[test]
    fn an_index_tells_when_it_trains_itself() {
        assert_eq!(index(5000, |_| {}).trains_at(), Some(10_000));
        assert_eq!(index(5000, |c| c.stale = true).trains_at(), Some(7500));
        assert_eq!(index(100, |_| {}).trains_at(), Some(4097));
        let empty = Index::empty(3, Default::default()).unwrap();
        assert_eq!(empty.trains_at(), Some(4097));
    }
}
