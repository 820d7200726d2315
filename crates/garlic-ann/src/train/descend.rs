//! The published objective as a further refinement of tempered cells.
//!
//! Every cell becomes a Gaussian that covers most of its points; the three losses are descended, cells are split, cloned
//! and pruned as in the published method, and each point goes to the nearest Gaussian. Unless `select_queries` is 0, the
//! trainer judges its models by what they cost points that it holds out, the one it started from among them (which had been
//! fitted to these as well): what makes retrieval dearer is not kept.

use garlic_linalg::{Matrix, Rows};

use super::backend::Backend;
use super::cpu::Cpu;
use super::fitted::gaussians;
use super::trainer::train_from;
use crate::cancel::Cancel;
use crate::config::{Config, Covariance};
use crate::error::Result;

/// Epochs between the trainer's checks of what retrieval costs, unless told otherwise.
const SELECT_EVERY: usize = 5;
/// A cell of this many times the mean number of points is split.
const LARGE: f64 = 2.0;

/// Moves points between cells by descending the published objective: takes their cells and gives new ones, not all of
/// which need have points. `step` is told every epoch.
pub(super) fn descend(
    points: Rows<'_>,
    labels: &[u32],
    cells: usize,
    config: &Config,
    cancel: &Cancel,
    step: &mut dyn FnMut(usize),
) -> Result<Vec<u32>> {
    // Learning rates are made for data of unit variance.
    let squares: f64 = points.data().iter().map(|x| f64::from(*x).powi(2)).sum();
    let scale = (squares / points.data().len().max(1) as f64).sqrt();
    if scale == 0.0 {
        return Ok(labels.to_vec());
    }
    let scaled = points.data().iter().map(|x| (f64::from(*x) / scale) as f32);
    let scaled = Matrix::from_vec(scaled.collect(), points.dim())?;
    let share = 1.0 / cells as f64;
    let config = Config {
        covariance: Covariance::Full,
        epochs: config.gradient_epochs,
        warmup_epochs: config.warmup_epochs.min(config.gradient_epochs / 5),
        select_every: match config.select_every {
            0 => SELECT_EVERY,
            every => every,
        },
        split_threshold: (LARGE * share).min(1.0),
        clone_threshold: config.clone_threshold.max(share).min(1.0),
        max_cells: config.max_cells.max(cells),
        ..config.clone()
    };
    let start = gaussians(scaled.as_rows(), labels, cells, &config, cancel)?;
    let backend = Cpu::new(cancel.clone());
    let (model, _) = train_from(
        start,
        scaled.as_rows(),
        &config,
        &backend,
        cancel,
        &mut |epoch| step(epoch.epoch),
    )?;
    let assignment = backend.assign(scaled.as_rows(), &model, config.tau as f32)?;
    Ok(assignment.nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use garlic_linalg::{random_stream, uniform_unit};

    /// Eight long clusters, and cells that mix them up: a third of the points is with those of another cluster.
    fn mixed_up() -> (Matrix, Vec<u32>, Vec<u32>) {
        let mut random = random_stream(3, 4);
        let (mut values, mut right, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..4000u32 {
            let cluster = i % 8;
            let mut noise = || uniform_unit(&mut random) as f32 - 0.5;
            let (along, across) = (3.0 * noise(), 0.5 * noise());
            let place = |bit: u32| 4.0 * (cluster >> bit & 1) as f32;
            values.extend([along + place(0), across + place(1), noise() + place(2)]);
            right.push(cluster);
            let stray = noise() > 0.2;
            wrong.push(if stray { (cluster + 3) % 8 } else { cluster });
        }
        (Matrix::from_vec(values, 3).unwrap(), right, wrong)
    }

    fn agreement(a: &[u32], b: &[u32]) -> f64 {
        let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
        same as f64 / a.len() as f64
    }

    #[test]
    fn points_move_to_the_cells_they_belong_to() {
        let (points, right, wrong) = mixed_up();
        let config = Config {
            gradient_epochs: 60,
            batch: 200,
            clone: false,
            ..Config::default()
        };
        let mut epochs = 0;
        let found = descend(
            points.as_rows(),
            &wrong,
            8,
            &config,
            &Cancel::default(),
            &mut |_| epochs += 1,
        )
        .unwrap();
        assert!(epochs > 0 && epochs <= 60);
        let (before, after) = (agreement(&wrong, &right), agreement(&found, &right));
        assert!(before < 0.75 && after > 0.95, "{before} {after}");
    }

    #[test]
    fn what_makes_retrieval_dearer_is_not_kept() {
        let (points, right, _) = mixed_up();
        let config = Config {
            gradient_epochs: 10,
            batch: 200,
            // Steps as long as clusters are far apart.
            mean_rate: [5.0; 3],
            ..Config::default()
        };
        let mut step = |_| ();
        let cancel = Cancel::default();
        let found = descend(points.as_rows(), &right, 8, &config, &cancel, &mut step).unwrap();
        assert!(agreement(&found, &right) > 0.95);
    }

    #[test]
    fn an_index_can_be_refined_so() {
        let (points, ..) = mixed_up();
        let build = |epochs: &str, threads: usize| {
            let builder = crate::Index::builder()
                .set("gradient_epochs", epochs)
                .unwrap();
            builder.threads(threads).build(points.as_rows()).unwrap()
        };
        let refined = build("12", 1);
        assert_eq!(
            refined.to_bytes(),
            build("12", 3).to_bytes(),
            "threads do not matter"
        );
        assert_ne!(refined.to_bytes(), build("0", 1).to_bytes());
        let search = crate::Search::new(10).recall(0.9);
        let exact = crate::Search::new(10).exact(true);
        let (mut found, mut count) = (0, 0);
        for query in points.as_rows().iter().step_by(40) {
            let near = refined.search(query, &exact).unwrap().hits;
            let hits = refined.search(query, &search).unwrap().hits;
            let farthest = near[9].distance;
            found += hits.iter().filter(|h| h.distance <= farthest).count();
            count += 10;
        }
        assert!(
            found as f64 >= 0.85 * f64::from(count),
            "{found} of {count}"
        );
    }

    #[test]
    fn copies_of_one_point_are_left_alone() {
        let points = Matrix::from_vec(vec![0.0; 60], 3).unwrap();
        let labels = vec![0; 20];
        let config = Config::default();
        let mut step = |_| ();
        let found = descend(
            points.as_rows(),
            &labels,
            1,
            &config,
            &Cancel::default(),
            &mut step,
        );
        assert_eq!(found.unwrap(), labels);
    }
}
