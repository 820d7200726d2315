//! Trains cells: k-means, then refitting under the shrunk anisotropic score.

use crate::config::Config;
use crate::streams;
use crate::transform::robust;
use garlic_linalg::{Matrix, Rows, kmeans_plus_plus, lloyd, permutation, top_components};

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
        mut labels,
        axes,
    } = match given {
        Some(given) => given_cells(points, &seen, given, config, cancel)?,
        None => train_by_shell(points, &seen, config, cancel, step)?,
    };
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

/// An assignment of points to cells.
struct Assignment {
    cells: usize,
    labels: Vec<u32>,
    axes: AxisCounts,
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
    Ok(Assignment {
        cells,
        labels,
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

/// Trains cells for the bulk of the points, and separate cells for outliers, in proportion to their number. A cell
/// with both would fit neither.
fn train_by_shell(
    points: Rows<'_>,
    seen: &[u32],
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<Assignment> {
    let wanted = match config.partition.cells {
        0 => default_cells(points.len()),
        given => given,
    };
    let shells = robust::shells(points, seen);
    let Some((bulk, outer)) = shells.split_first().filter(|(_, outer)| !outer.is_empty()) else {
        return train_cells(points, seen, wanted, config, cancel, step);
    };
    let share = |shell: &[u32]| {
        let count = wanted as f64 * shell.len() as f64 / seen.len() as f64;
        (count.round() as usize).max(1)
    };
    let mut found = train_cells(points, bulk, share(bulk), config, cancel, step)?;
    let mut labels: Vec<(u32, u32)> = bulk.iter().copied().zip(found.labels).collect();
    for (number, shell) in (1..).zip(outer) {
        cancel.check()?;
        let rows = Matrix::gather(points, shell);
        let seed = config.seed ^ streams::INIT_MEANS ^ number;
        let seeds = kmeans_plus_plus(rows.as_rows(), share(shell).min(shell.len()), seed);
        let mut clustering = lloyd(rows.as_rows(), seeds, LLOYD_ROUNDS);
        let cells = renumber(&mut clustering.labels);
        let numbers = clustering.labels.iter().map(|l| l + found.cells as u32);
        labels.extend(shell.iter().copied().zip(numbers));
        found.cells += cells;
    }
    labels.sort_unstable();
    Ok(Assignment {
        labels: labels.into_iter().map(|(_, label)| label).collect(),
        ..found
    })
}

/// Trains about `cells` k-means cells on a sample, refits them under the anisotropic score and assigns all of `seen`.
fn train_cells(
    points: Rows<'_>,
    seen: &[u32],
    cells: usize,
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<Assignment> {
    let cells = cells.min(seen.len());
    let wanted = (cells * POINTS_PER_CELL).max(MIN_SAMPLE);
    let mut sample: Vec<u32> = permutation(seen.len(), config.seed, streams::TRAIN_SAMPLE)
        .into_iter()
        .take(wanted)
        .map(|i| seen[i as usize])
        .collect();
    sample.sort_unstable();
    let rows = Matrix::gather(points, &sample);
    let ids: Vec<u32> = (0..sample.len() as u32).collect();
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
    // The caller refits these cells to all points assigned to them. Held-out points are assigned later.
    let everyone = trained.assign(points, SCORED_CELLS, cancel)?;
    Ok(Assignment {
        cells: trained.len(),
        labels: seen.iter().map(|i| everyone[*i as usize]).collect(),
        axes,
    })
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
    let anisotropy = config.partition.anisotropy as f32;
    let seed = config.seed ^ streams::FRAMES;
    let shape = FitOptions {
        axes,
        anisotropy,
        seed,
    };
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
fn all_but(n: usize, held: &[u32]) -> Vec<u32> {
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
