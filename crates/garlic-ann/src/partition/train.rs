//! Trains cells: k-means, then refitting under the shrunk anisotropic score.

use crate::config::Config;
use crate::streams;
use crate::transform::{Points, robust};
use garlic_linalg::{
    Matrix, Rows, kmeans_plus_plus, lloyd, nearest_centres, permutation, top_components,
};

use garlic_simd::CodeBits;

use super::balance::balance;
use super::cells::{AnisotropicCells, AxisCounts, FitOptions};
use crate::config::MAX_CELLS;
use garlic_core::Cancel;
use garlic_core::{Error, Lists, Result, by_label};

/// Number of nearest cells, by distance to the mean, that the anisotropic score is computed for.
pub(crate) const SCORED_CELLS: usize = 8;
/// Lloyd iterations before the cells get shapes.
const LLOYD_ROUNDS: usize = 10;
/// Number of training points per cell. The effect of more is smaller than that of another seed.
const POINTS_PER_CELL: usize = 512;
/// Ranks that the default is chosen from.
const RANKS: [usize; 6] = [8, 16, 24, 32, 48, 64];
/// Share of the variance within a cell that a rank below [`DEFAULT_RANK`] has to keep, and the share below which a
/// larger rank is chosen.
const SMALL_RANK_VARIANCE: f64 = 0.9;
const DEFAULT_RANK_VARIANCE: f64 = 0.7;
/// Number of cells that this variance is computed for.
const SAMPLED_CELLS: usize = 16;
/// The rank that suits most data: codes of half a cache line.
const DEFAULT_RANK: usize = 32;
/// Lower limit of the number of training points. They are cheap if there are few cells.
const MIN_SAMPLE: usize = 20_000;
/// Number of outliers that are assigned at a time.
const SHELL_BLOCK: usize = 1 << 16;

/// Default number of cells: a quarter of the square root of the number of points.
///
/// A frame costs rank × dimension multiply-adds per query, a bin costs rank. With few frames and many bins per frame,
/// both costs grow with the square root of the number of points.
pub(crate) fn default_cells(points: usize) -> usize {
    ((points as f64).sqrt() / 4.0).round().max(1.0) as usize
}

/// Number of points above which 8-bit codes of the default rank exceed the cache share of one core.
const MAX_8BIT_POINTS: usize = (8 << 20) / DEFAULT_RANK;

/// The configured code size or, by default, the one that suits this number of points.
///
/// Codes that do not fit into the cache are limited by memory bandwidth. Half the bits for a quarter more axes take
/// fewer bytes and give better estimates.
pub(crate) fn code_bits(config: &Config, points: usize) -> CodeBits {
    match config.storage.code_bits {
        4 => CodeBits::Four,
        0 if points > MAX_8BIT_POINTS => CodeBits::Four,
        _ => CodeBits::Eight,
    }
}

/// Fits cells to all points except those in `held`, which is sorted, and assigns every point to a cell. `given` holds
/// the cell of each point if the caller chose the cells.
pub(crate) fn fit(
    points: Rows<'_>,
    held: &[u32],
    given: Option<&[u32]>,
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(AnisotropicCells, Vec<u32>)> {
    let seen = all_but(points.len(), held);
    let Assignment {
        cells,
        labels,
        axes,
    } = match given {
        Some(given) => given_cells(points, &seen, given, config, cancel)?,
        None => assign(&points, held, config, cancel, step)?,
    };
    let mut labels: Vec<u32> = seen.iter().map(|i| labels[*i as usize]).collect();
    let trained = shape(points, &seen, &mut labels, cells, axes, config, cancel)?;
    let others = Matrix::gather(points, held);
    let theirs = trained.assign(others.as_rows(), SCORED_CELLS, cancel)?;
    let mut all = vec![0; points.len()];
    for (i, label) in seen.iter().zip(labels).chain(held.iter().zip(theirs)) {
        all[*i as usize] = label;
    }
    let total = config.partition.rounds + 1;
    step(total, total);
    Ok((trained, all))
}

/// An assignment of points to cells, which are yet to be fitted to these points.
pub(crate) struct Assignment {
    pub(crate) cells: usize,
    /// The cell of every point. Those of held-out points mean nothing.
    pub(crate) labels: Vec<u32>,
    pub(crate) axes: AxisCounts,
}

/// Takes over the cells that the caller chose and renumbers them from 0 on.
fn given_cells(
    points: Rows<'_>,
    seen: &[u32],
    given: &[u32],
    config: &Config,
    cancel: &Cancel,
) -> Result<Assignment> {
    let mut labels: Vec<u32> = seen.iter().map(|i| given[*i as usize]).collect();
    let cells = renumber(&mut labels);
    if cells > MAX_CELLS {
        return Err(Error::Config {
            key: "partition".into(),
            message: format!("has {cells} cells; at most {MAX_CELLS} can be"),
        });
    }
    let members = Lists::group(cells, labels.iter().copied().zip(seen.iter().copied()));
    let rank = rank(points, &members, config, points.len(), cancel)?;
    let mut all = vec![0; points.len()];
    for (i, label) in seen.iter().zip(labels) {
        all[*i as usize] = label;
    }
    Ok(Assignment {
        cells,
        labels: all,
        axes: AxisCounts::new(rank, seen.len(), cells),
    })
}

/// Renumbers labels from 0 on. Returns the number of different labels.
fn renumber(labels: &mut [u32]) -> usize {
    let mut numbers = labels.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    for label in labels {
        *label = numbers.partition_point(|n| *n < *label) as u32;
    }
    numbers.len()
}

/// Trains cells on a sample of all points but `held`, which is sorted, and assigns the points to them.
///
/// The bulk of the points and outliers get separate cells, in proportion to their number. A cell with both would fit
/// neither.
pub(crate) fn assign(
    points: &impl Points,
    held: &[u32],
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<Assignment> {
    let wanted = match config.partition.cells {
        0 => default_cells(points.len()),
        given => given,
    };
    let seen = points.len() - held.len();
    let mut shells = robust::shells(points, all_but(points.len(), held))?.into_iter();
    let bulk = shells.next().unwrap_or_default();
    let share = |shell: &[u32]| {
        let count = wanted as f64 * shell.len() as f64 / seen as f64;
        (count.round() as usize).max(1)
    };
    let bulk_cells = match shells.len() {
        0 => wanted,
        _ => share(&bulk),
    };
    let (trained, axes) = train_cells(points, &bulk, bulk_cells, config, cancel, step)?;
    drop(bulk);
    // The caller refits these cells to all points assigned to them.
    let mut labels = Vec::with_capacity(points.len());
    points.for_each_block(&mut |_, block| {
        labels.extend(trained.assign(block, SCORED_CELLS, cancel)?);
        Ok(())
    })?;
    let mut cells = trained.len();
    for (number, shell) in (1..).zip(shells) {
        cancel.check()?;
        let seed = config.seed ^ streams::INIT_MEANS ^ number;
        let (count, theirs) = cluster(points, &shell, share(&shell), seed)?;
        for (i, label) in shell.iter().zip(theirs) {
            labels[*i as usize] = label + cells as u32;
        }
        cells += count;
    }
    Ok(Assignment {
        cells,
        labels,
        axes,
    })
}

/// Number of training points for so many cells.
pub(crate) fn sample_size(cells: usize) -> usize {
    (cells * POINTS_PER_CELL).max(MIN_SAMPLE)
}

/// Some of the rows `of`, in order: at most `count`.
fn sample(of: &[u32], count: usize, seed: u64) -> Vec<u32> {
    let order = permutation(of.len(), seed, streams::TRAIN_SAMPLE);
    let mut sample: Vec<u32> = order
        .into_iter()
        .take(count)
        .map(|i| of[i as usize])
        .collect();
    sample.sort_unstable();
    sample
}

/// Clusters the rows of a shell by k-means, a sample of them if they are many. Returns the number of clusters, and the
/// cluster of each row.
fn cluster(
    points: &impl Points,
    shell: &[u32],
    clusters: usize,
    seed: u64,
) -> Result<(usize, Vec<u32>)> {
    let chosen = sample(shell, sample_size(clusters), seed);
    let rows = points.gather(&chosen)?;
    let seeds = kmeans_plus_plus(rows.as_rows(), clusters.min(chosen.len()), seed);
    let mut found = lloyd(rows.as_rows(), seeds, LLOYD_ROUNDS);
    if chosen.len() == shell.len() {
        return Ok((renumber(&mut found.labels), found.labels));
    }
    let mut labels = Vec::with_capacity(shell.len());
    for part in shell.chunks(SHELL_BLOCK) {
        let rows = points.gather(part)?;
        labels.extend(nearest_centres(rows.as_rows(), found.centres.as_rows()).0);
    }
    Ok((found.centres.rows(), labels))
}

/// Trains about `cells` k-means cells on a sample of the rows `seen` and refits them under the anisotropic score.
fn train_cells(
    points: &impl Points,
    seen: &[u32],
    cells: usize,
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(AnisotropicCells, AxisCounts)> {
    let cells = cells.min(seen.len());
    let rows = points.gather(&sample(seen, sample_size(cells), config.seed))?;
    let ids: Vec<u32> = (0..rows.rows() as u32).collect();
    let seeds = kmeans_plus_plus(rows.as_rows(), cells, config.seed ^ streams::INIT_MEANS);
    cancel.check()?;
    let started = lloyd(rows.as_rows(), seeds, LLOYD_ROUNDS);
    let mut labels = started.labels;
    let members = Lists::group(started.centres.rows(), by_label(&labels));
    let rank = rank(rows.as_rows(), &members, config, points.len(), cancel)?;
    let axes = AxisCounts::new(rank, seen.len(), cells);

    let count = balance(
        rows.as_rows(),
        &mut labels,
        started.centres.rows(),
        config.seed,
    );
    let total = config.partition.rounds + 1;
    step(0, total);
    let refit = |labels: &mut [u32], count: usize| {
        shape(rows.as_rows(), &ids, labels, count, axes, config, cancel)
    };
    let mut trained = refit(&mut labels, count)?;
    for round in 0..config.partition.rounds {
        let next = trained.assign(rows.as_rows(), SCORED_CELLS, cancel)?;
        if next == labels {
            break;
        }
        labels = next;
        // Only the first rounds change the number of cells.
        let count = match round < config.partition.rounds / 2 {
            true => balance(rows.as_rows(), &mut labels, trained.len(), config.seed),
            false => trained.len(),
        };
        trained = refit(&mut labels, count)?;
        step(round + 1, total);
    }
    Ok((trained, axes))
}

/// How cells are fitted to their points.
pub(crate) fn fit_options(config: &Config, axes: AxisCounts) -> FitOptions {
    FitOptions {
        axes,
        anisotropy: config.partition.anisotropy as f32,
        seed: config.seed ^ streams::FRAMES,
    }
}

fn shape(
    points: Rows<'_>,
    ids: &[u32],
    labels: &mut [u32],
    cells: usize,
    axes: AxisCounts,
    config: &Config,
    cancel: &Cancel,
) -> Result<AnisotropicCells> {
    let shape = fit_options(config, axes);
    AnisotropicCells::fit(points, ids, labels, cells, shape, cancel)
}

/// Number of axes per cell: as configured, or else from the variance within some cells. `members` are row numbers,
/// `points` is the total number of points.
fn rank(
    rows: Rows<'_>,
    members: &Lists,
    config: &Config,
    points: usize,
    cancel: &Cancel,
) -> Result<usize> {
    if config.partition.axes > 0 {
        return Ok(config.partition.axes.min(rows.dim()));
    }
    let rank = default_rank(rows, members, config.seed, cancel)?;
    let has_fewer_bits =
        config.storage.code_bits == 0 && code_bits(config, points) == CodeBits::Four;
    let rank = match has_fewer_bits {
        true => (rank * 5 / 4).next_multiple_of(8),
        false => rank,
    };
    Ok(rank.min(rows.dim()))
}

/// Default number of axes, from the variance within some cells.
fn default_rank(rows: Rows<'_>, members: &Lists, seed: u64, cancel: &Cancel) -> Result<usize> {
    let count = members.len();
    let most = RANKS[RANKS.len() - 1];
    let mut kept = [0.0f64; RANKS.len()];
    let mut sampled = 0;
    for i in 0..SAMPLED_CELLS.min(count) {
        cancel.check()?;
        // Cells with fewer points than a frame has directions would all look flat.
        let members = members.get(i * count / SAMPLED_CELLS.min(count));
        if members.len() < 2 * most.min(rows.dim()) {
            continue;
        }
        let rows = Matrix::gather(rows, members);
        let found = top_components(rows.as_rows(), most, seed);
        let total: f32 = rows
            .as_rows()
            .iter()
            .map(|r| garlic_simd::l2_squared(r, &found.mean))
            .sum::<f32>()
            / members.len() as f32;
        if total <= 0.0 {
            continue;
        }
        sampled += 1;
        for (kept, rank) in kept.iter_mut().zip(RANKS) {
            *kept += f64::from(found.values.iter().take(rank).sum::<f32>() / total);
        }
    }
    if sampled == 0 {
        return Ok(DEFAULT_RANK);
    }
    let enough = kept.iter().zip(RANKS).find(|(kept, rank)| {
        let share = if *rank < DEFAULT_RANK {
            SMALL_RANK_VARIANCE
        } else {
            DEFAULT_RANK_VARIANCE
        };
        **kept >= share * f64::from(sampled)
    });
    Ok(enough.map_or(most, |(_, rank)| rank))
}

/// The numbers below `n` that are not in `held`, which is sorted.
pub(crate) fn all_but(n: usize, held: &[u32]) -> Vec<u32> {
    let mut held = held.iter().copied().peekable();
    (0..n as u32)
        .filter(|i| held.next_if_eq(i).is_none())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::config;

    #[test]
    fn more_cells_than_a_file_may_have_are_refused() {
        let count = MAX_CELLS + 1;
        let values = vec![0.0; count];
        let given: Vec<u32> = (0..count as u32).collect();
        let points = Rows::new(&values, 1).unwrap();
        let taken = given_cells(
            points,
            &given,
            &given,
            &Config::default(),
            &Cancel::default(),
        );
        let error = taken.err().unwrap().to_string();
        assert!(error.contains("1048577 cells"), "{error}");
    }

    #[test]
    fn codes_of_many_points_are_small_unless_told_otherwise() {
        let chosen = Config::default();
        assert_eq!(code_bits(&chosen, 60_000), CodeBits::Eight);
        assert_eq!(code_bits(&chosen, 1_000_000), CodeBits::Four);
        for (given, bits) in [(8, CodeBits::Eight), (4, CodeBits::Four)] {
            let config = config(&[("code_bits", given)]);
            assert_eq!(code_bits(&config, 100), bits);
            assert_eq!(code_bits(&config, 1_000_000), bits);
        }
    }
}
