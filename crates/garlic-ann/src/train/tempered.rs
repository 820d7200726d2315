//! Training of the default preset: k-means cells, refitted under the tempered score.

use garlic_linalg::{Matrix, Rows, kmeans_plus_plus, lloyd, permutation};

use super::streams;
use crate::cancel::Cancel;
use crate::config::Config;
use crate::error::Result;
use crate::model::Tempered;

/// Nearest cells by plain distance among which the score decides.
const SHORTLIST: usize = 8;
/// Lloyd rounds before the cells get shapes.
const LLOYD_ROUNDS: usize = 10;
/// Training points for each cell: more change the cells by less than the seed does.
const POINTS_PER_CELL: usize = 512;
/// Training points at least: with few cells they cost nothing.
const MIN_SAMPLE: usize = 20_000;

/// Cells for `points` by default: the square root of their number over four.
///
/// A frame costs rank x dimension multiply-adds a query, a bin costs rank: few frames with many bins each keep
/// both small, and both then grow with the square root of the number of points.
pub(crate) fn default_cells(points: usize) -> usize {
    ((points as f64).sqrt() / 4.0).round().max(1.0) as usize
}

/// Fits the cells to all points but those in `held` (in order) and assigns every point to one of them.
pub(crate) fn fit(
    points: Rows<'_>,
    held: &[u32],
    rank: usize,
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(Tempered, Vec<u32>)> {
    let seen = all_but(points.len(), held);
    let cells = match config.cells {
        0 => default_cells(points.len()),
        given => given,
    }
    .min(seen.len());
    let wanted = (cells * POINTS_PER_CELL).max(MIN_SAMPLE);
    let mut sample: Vec<u32> = permutation(seen.len(), config.seed, streams::TRAIN_SAMPLE)
        .into_iter()
        .take(wanted)
        .map(|i| seen[i as usize])
        .collect();
    sample.sort_unstable();
    let rows = Matrix::gather(points, &sample);
    let ids: Vec<u32> = (0..sample.len() as u32).collect();
    let shape = |points: Rows<'_>, ids: &[u32], labels: &mut [u32], cells: usize| {
        let anisotropy = config.anisotropy as f32;
        let seed = config.seed ^ streams::FRAMES;
        Tempered::fit(points, ids, labels, cells, rank, anisotropy, seed, cancel)
    };

    let seeds = kmeans_plus_plus(rows.as_rows(), cells, config.seed ^ streams::INIT_MEANS);
    cancel.check()?;
    let started = lloyd(rows.as_rows(), seeds, LLOYD_ROUNDS);
    let mut labels = started.labels;
    let total = config.rounds + 1;
    step(0, total);
    let mut model = shape(rows.as_rows(), &ids, &mut labels, started.centres.rows())?;
    for round in 0..config.rounds {
        let next = model.assign(rows.as_rows(), SHORTLIST, cancel)?;
        if next == labels {
            break;
        }
        labels = next;
        model = shape(rows.as_rows(), &ids, &mut labels, model.len())?;
        step(round + 1, total);
    }
    drop(rows);
    // The sample's cells, refitted to all points that fall into them; those held out follow.
    let everyone = model.assign(points, SHORTLIST, cancel)?;
    let mut labels: Vec<u32> = seen.iter().map(|i| everyone[*i as usize]).collect();
    let model = shape(points, &seen, &mut labels, model.len())?;
    let others = Matrix::gather(points, held);
    let theirs = model.assign(others.as_rows(), SHORTLIST, cancel)?;
    let mut all = vec![0; points.len()];
    for (i, label) in seen.iter().zip(labels).chain(held.iter().zip(theirs)) {
        all[*i as usize] = label;
    }
    step(total, total);
    Ok((model, all))
}

/// The numbers below `n` that are not in `held`, which is in order.
fn all_but(n: usize, held: &[u32]) -> Vec<u32> {
    let mut held = held.iter().copied().peekable();
    (0..n as u32)
        .filter(|i| held.next_if_eq(i).is_none())
        .collect()
}
