//! Training of the default preset: k-means cells, refitted under the tempered score.

use crate::config::Config;
use crate::streams;
use crate::transform::robust;
use garlic_linalg::{Matrix, Rows, kmeans_plus_plus, lloyd, permutation, top_components};

use garlic_simd::CodeBits;

use super::balance::balance;
use super::cells::{AnisotropicCells, Axes, FitOptions};
use crate::config::MAX_CELLS;
use garlic_core::Cancel;
use garlic_core::{Error, Lists, Result, by_label};

/// Nearest cells by plain distance among which the score decides.
pub(crate) const SHORTLIST: usize = 8;
/// Lloyd rounds before the cells get shapes.
const LLOYD_ROUNDS: usize = 10;
/// Training points for each cell: more change the cells by less than the seed does.
const POINTS_PER_CELL: usize = 512;
/// Ranks that the default chooses from.
const RANKS: [usize; 6] = [8, 16, 24, 32, 48, 64];
/// Share of the variance within a cell that makes a smaller rank than [`USUAL_RANK`] do, and the share that the
/// usual one has to keep, else a larger rank is taken.
const PLENTY: f64 = 0.9;
const ENOUGH: f64 = 0.7;
/// Cells whose variance is looked at for that.
const LOOKED_AT: usize = 16;
/// The rank that serves most data: codes of half a cache line.
const USUAL_RANK: usize = 32;
/// Training points at least: with few cells they cost nothing.
const MIN_SAMPLE: usize = 20_000;

/// Cells for `points` by default: the square root of their number over four.
///
/// A frame costs rank x dimension multiply-adds a query, a bin costs rank: few frames with many bins each keep
/// both small, and both then grow with the square root of the number of points.
pub(crate) fn default_cells(points: usize) -> usize {
    ((points as f64).sqrt() / 4.0).round().max(1.0) as usize
}

/// Points from which on the usual codes of 8 bits are more than one core can count on of a cache of today. (At 250,000
/// points of photosift1m neither size is faster at every recall, at a million 4 bits are.)
const MANY: usize = (8 << 20) / USUAL_RANK;

/// The size of codes that was asked for, or that serves so many points.
///
/// Codes that no cache holds are read from memory, as fast as that is: half the bits for a quarter more axes are
/// fewer bytes and better estimates.
pub(crate) fn code_bits(config: &Config, points: usize) -> CodeBits {
    match config.storage.code_bits {
        4 => CodeBits::Four,
        0 if points > MANY => CodeBits::Four,
        _ => CodeBits::Eight,
    }
}

/// Fits the cells to all points but those in `held` (in order) and assigns every point to one of them. The cells are
/// those of `given`, a number for each point, or else found here.
pub(crate) fn fit(
    points: Rows<'_>,
    held: &[u32],
    given: Option<&[u32]>,
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(AnisotropicCells, Vec<u32>)> {
    let seen = all_but(points.len(), held);
    let Found {
        cells,
        mut labels,
        axes,
    } = match given {
        Some(given) => take(points, &seen, given, config, cancel)?,
        None => find_by_shell(points, &seen, config, cancel, step)?,
    };
    let model = shape(points, &seen, &mut labels, cells, axes, config, cancel)?;
    let others = Matrix::gather(points, held);
    let theirs = model.assign(others.as_rows(), SHORTLIST, cancel)?;
    let mut all = vec![0; points.len()];
    for (i, label) in seen.iter().zip(labels).chain(held.iter().zip(theirs)) {
        all[*i as usize] = label;
    }
    let total = config.partition.rounds + 1;
    step(total, total);
    Ok((model, all))
}

/// Cells that points have been grouped into.
struct Found {
    cells: usize,
    labels: Vec<u32>,
    axes: Axes,
}

/// The cells that somebody else has found, numbered from 0 on.
fn take(
    points: Rows<'_>,
    seen: &[u32],
    given: &[u32],
    config: &Config,
    cancel: &Cancel,
) -> Result<Found> {
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
    Ok(Found {
        cells,
        labels,
        axes: Axes::new(rank, seen.len(), cells),
    })
}

/// Numbers from 0 on in the place of those that there are; returns how many.
fn renumber(labels: &mut [u32]) -> usize {
    let mut numbers = labels.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    for label in labels {
        *label = numbers.partition_point(|n| *n < *label) as u32;
    }
    numbers.len()
}

/// Cells for the bulk of the points, and for outliers cells of their own, in proportion to their number: cells that hold
/// both would fit neither.
fn find_by_shell(
    points: Rows<'_>,
    seen: &[u32],
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<Found> {
    let wanted = match config.partition.cells {
        0 => default_cells(points.len()),
        given => given,
    };
    let shells = robust::shells(points, seen);
    let Some((bulk, outer)) = shells.split_first().filter(|(_, outer)| !outer.is_empty()) else {
        return find(points, seen, wanted, config, cancel, step);
    };
    let share = |shell: &[u32]| {
        let count = wanted as f64 * shell.len() as f64 / seen.len() as f64;
        (count.round() as usize).max(1)
    };
    let mut found = find(points, bulk, share(bulk), config, cancel, step)?;
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
    Ok(Found {
        labels: labels.into_iter().map(|(_, label)| label).collect(),
        ..found
    })
}

/// About `cells` k-means cells of a sample, refitted under the tempered score; all of `seen` are then given to them.
fn find(
    points: Rows<'_>,
    seen: &[u32],
    cells: usize,
    config: &Config,
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<Found> {
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
    let axes = Axes::new(rank, seen.len(), cells);

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
    let mut model = refit(&mut labels, count)?;
    for round in 0..config.partition.rounds {
        let next = model.assign(rows.as_rows(), SHORTLIST, cancel)?;
        if next == labels {
            break;
        }
        labels = next;
        // The last rounds only settle.
        let count = match round < config.partition.rounds / 2 {
            true => balance(rows.as_rows(), &mut labels, model.len(), config.seed),
            false => model.len(),
        };
        model = refit(&mut labels, count)?;
        step(round + 1, total);
    }
    // The sample's cells will be refitted to all points that fall into them; those held out follow.
    let everyone = model.assign(points, SHORTLIST, cancel)?;
    Ok(Found {
        cells: model.len(),
        labels: seen.iter().map(|i| everyone[*i as usize]).collect(),
        axes,
    })
}

fn shape(
    points: Rows<'_>,
    ids: &[u32],
    labels: &mut [u32],
    cells: usize,
    axes: Axes,
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

/// Axes of a cell: as many as were asked for, else from the variance within some cells, whose `members` are rows; `points`
/// is how many there are in all.
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

/// Axes by default, from the variance within some cells.
fn default_rank(rows: Rows<'_>, members: &Lists, seed: u64, cancel: &Cancel) -> Result<usize> {
    let count = members.len();
    let most = RANKS[RANKS.len() - 1];
    let mut kept = [0.0f64; RANKS.len()];
    let mut looked_at = 0;
    for i in 0..LOOKED_AT.min(count) {
        cancel.check()?;
        // Cells that span fewer directions than a frame could have would all look flat.
        let members = members.get(i * count / LOOKED_AT.min(count));
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
        looked_at += 1;
        for (kept, rank) in kept.iter_mut().zip(RANKS) {
            *kept += f64::from(found.values.iter().take(rank).sum::<f32>() / total);
        }
    }
    if looked_at == 0 {
        return Ok(USUAL_RANK);
    }
    let enough = kept.iter().zip(RANKS).find(|(kept, rank)| {
        let share = if *rank < USUAL_RANK { PLENTY } else { ENOUGH };
        **kept >= share * f64::from(looked_at)
    });
    Ok(enough.map_or(most, |(_, rank)| rank))
}

/// The numbers below `n` that are not in `held`, which is in order.
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
        let taken = take(
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
