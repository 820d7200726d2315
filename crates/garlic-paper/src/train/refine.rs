//! Refinement: cells that hold too much are split, cells with many points just outside are cloned, cells that
//! hold nothing are pruned.

use garlic_linalg::{Matrix, Rows, kmeans_plus_plus, lloyd, permutation};
use rayon::prelude::*;

use super::dbscan::{NOISE, dbscan};
use super::history::Refinement;
use super::streams;
use crate::cancel::Cancel;
use crate::config::{Config, SplitMethod};
use crate::error::Result;
use crate::model::{Assignment, Factors, Gaussians, Lists};

/// Lloyd steps of a 2-means split.
const TWO_MEANS_STEPS: usize = 10;

/// What happens to one cell.
enum Plan {
    Keep,
    /// Two children at these centres.
    Split([Vec<f32>; 2]),
    /// A copy at this centre.
    Clone(Vec<f32>),
}

/// Splits and clones. `refused` remembers, for every cell, that splitting it makes no sense.
///
/// Returns what was done and, for every new cell, the old cell it continues.
pub(super) fn split_and_clone(
    points: Rows<'_>,
    assignment: &Assignment,
    model: &mut Gaussians,
    refused: &mut Vec<bool>,
    config: &Config,
    epoch: usize,
    cancel: &Cancel,
) -> Result<(Refinement, Vec<Option<usize>>)> {
    let holdings = Lists::group(model.len(), assignment.holdings());
    let plans: Vec<(Plan, bool)> = (0..model.len())
        .into_par_iter()
        .map(|cell| {
            cancel.check()?;
            Ok(plan(
                points,
                assignment,
                holdings.get(cell),
                cell,
                refused[cell],
                config,
                epoch,
            ))
        })
        .collect::<Result<_>>()?;

    let mut done = Refinement::default();
    let mut origin: Vec<Option<usize>> = (0..model.len()).map(Some).collect();
    let scale = config.split_scale as f32;
    for (cell, (plan, refuse)) in plans.into_iter().enumerate() {
        refused[cell] |= refuse;
        done.refused += usize::from(refuse);
        let room = model.len() < config.max_cells;
        match plan {
            Plan::Split([first, second]) if room => {
                let factor: Vec<f32> = model.factor(cell).iter().map(|v| v * scale).collect();
                let factor = floored(factor, model, config);
                model.means.row_mut(cell).copy_from_slice(&first);
                let stride = model.stride();
                model.factors.values_mut()[cell * stride..(cell + 1) * stride]
                    .copy_from_slice(&factor);
                push(model, &second, &factor);
                origin[cell] = None;
                done.split += 1;
            }
            Plan::Clone(centre) if room => {
                let factor = model.factor(cell).to_vec();
                push(model, &centre, &factor);
                done.cloned += 1;
            }
            _ => continue,
        }
        origin.push(None);
        refused.push(false);
    }
    Ok((done, origin))
}

/// Removes cells that hold at most `config.prune_size` points; the fullest cell always stays.
pub(super) fn prune(
    assignment: &Assignment,
    model: &mut Gaussians,
    refused: &mut Vec<bool>,
    config: &Config,
) -> (usize, Vec<Option<usize>>) {
    let holdings = Lists::group(model.len(), assignment.holdings());
    let size = |cell: usize| holdings.get(cell).len();
    let fullest = (0..model.len())
        .max_by_key(|c| (size(*c), std::cmp::Reverse(*c)))
        .unwrap_or(0);
    let kept: Vec<usize> = (0..model.len())
        .filter(|c| size(*c) > config.prune_size || *c == fullest)
        .collect();
    let pruned = model.len() - kept.len();
    if pruned > 0 {
        let ids: Vec<u32> = kept.iter().map(|c| *c as u32).collect();
        let factors = kept
            .iter()
            .flat_map(|c| model.factor(*c).iter().copied())
            .collect();
        let covariance = model.factors.covariance();
        model.means = Matrix::gather(model.means.as_rows(), &ids);
        model.factors = Factors::from_values(covariance, factors);
        *refused = kept.iter().map(|c| refused[*c]).collect();
    }
    (pruned, kept.into_iter().map(Some).collect())
}

fn push(model: &mut Gaussians, mean: &[f32], factor: &[f32]) {
    model.means.push_row(mean);
    model.factors.values_mut().extend_from_slice(factor);
}

/// Keeps the diagonal of a scaled factor at or above the floor.
fn floored(mut factor: Vec<f32>, model: &Gaussians, config: &Config) -> Vec<f32> {
    let floor = config.diagonal_floor as f32;
    match model.factors {
        Factors::Full(_) => (0..model.dim()).for_each(|i| {
            let diagonal = &mut factor[i * (i + 1) / 2 + i];
            *diagonal = diagonal.max(floor);
        }),
        _ => factor.iter_mut().for_each(|v| *v = v.max(floor)),
    }
    factor
}

/// What happens to a cell, and whether splitting it was tried and made no sense.
fn plan(
    points: Rows<'_>,
    assignment: &Assignment,
    held: &[u32],
    cell: usize,
    refused: bool,
    config: &Config,
    epoch: usize,
) -> (Plan, bool) {
    let all = points.len() as f64;
    let size = held.len() as f64;
    // Streams of different refinements and cells never meet: cells stay below 2^20.
    let stream = streams::REFINE + ((epoch as u64) << 20) + cell as u64;
    let mut refuse = false;
    if config.split && size > config.split_threshold * all && !refused {
        if let Some(centres) = split_centres(points, held, config, stream) {
            return (Plan::Split(centres), false);
        }
        refuse = true;
    }
    if config.clone && size > config.clone_threshold * all {
        let tau = config.tau as f32;
        let outer = (config.clone_shell * config.tau) as f32;
        let shell: Vec<u32> = held
            .iter()
            .copied()
            .filter(|p| {
                let distance = assignment.distance[*p as usize];
                assignment.nearest[*p as usize] == cell as u32 && distance > tau && distance < outer
            })
            .collect();
        let inside = held
            .iter()
            .filter(|p| assignment.covering(**p as usize).contains(&(cell as u32)))
            .count();
        if !shell.is_empty() && shell.len() as f64 > config.clone_ratio * inside as f64 {
            return (
                Plan::Clone(clone_centre(points, &shell, config, stream)),
                refuse,
            );
        }
    }
    (Plan::Keep, refuse)
}

/// At most `count` of `ids`, drawn without replacement, in ascending order.
fn sample(ids: &[u32], count: usize, config: &Config, stream: u64) -> Vec<u32> {
    if ids.len() <= count {
        return ids.to_vec();
    }
    let mut order = permutation(ids.len(), config.seed, stream);
    order.truncate(count);
    order.sort_unstable();
    order.into_iter().map(|i| ids[i as usize]).collect()
}

/// Centres of the two halves of a cell, or nothing when it has no two halves.
fn split_centres(
    points: Rows<'_>,
    held: &[u32],
    config: &Config,
    stream: u64,
) -> Option<[Vec<f32>; 2]> {
    let gathered = Matrix::gather(points, &sample(held, config.split_sample, config, stream));
    let rows = gathered.as_rows();
    if config.split_method == SplitMethod::Dbscan {
        let (labels, clusters) = dbscan(rows);
        if clusters >= 2 {
            let mut sizes = vec![0usize; clusters];
            labels
                .iter()
                .filter(|l| **l != NOISE)
                .for_each(|l| sizes[*l as usize] += 1);
            let mut order: Vec<usize> = (0..clusters).collect();
            order.sort_by_key(|c| (std::cmp::Reverse(sizes[*c]), *c));
            let (first, second) = (order[0], order[1]);
            if balanced(sizes[first], sizes[second], config) {
                return Some([
                    mean_of(rows, &labels, first),
                    mean_of(rows, &labels, second),
                ]);
            }
        }
    }
    let clustering = lloyd(
        rows,
        kmeans_plus_plus(rows, 2, config.seed ^ stream),
        TWO_MEANS_STEPS,
    );
    let [first, second] = clustering.sizes[..] else {
        return None;
    };
    balanced(first as usize, second as usize, config).then(|| {
        [
            clustering.centres.row(0).to_vec(),
            clustering.centres.row(1).to_vec(),
        ]
    })
}

fn balanced(first: usize, second: usize, config: &Config) -> bool {
    first.max(second) as f64 <= config.split_refusal * (first + second) as f64
}

fn mean_of(rows: Rows<'_>, labels: &[u32], cluster: usize) -> Vec<f32> {
    let mut sum = vec![0.0f64; rows.dim()];
    let mut count = 0.0;
    for (row, _) in rows
        .iter()
        .zip(labels)
        .filter(|(_, l)| **l as usize == cluster)
    {
        sum.iter_mut()
            .zip(row)
            .for_each(|(s, x)| *s += f64::from(*x));
        count += 1.0;
    }
    sum.into_iter().map(|s| (s / count) as f32).collect()
}

/// The sampled shell point in the densest place: the smallest mean distance to its nearest sampled others.
fn clone_centre(points: Rows<'_>, shell: &[u32], config: &Config, stream: u64) -> Vec<f32> {
    let share = (shell.len() as f64 * config.clone_sample).ceil() as usize;
    let sampled = sample(shell, share.clamp(1, config.split_sample), config, stream);
    let gathered = Matrix::gather(points, &sampled);
    let rows = gathered.as_rows();
    let spread = |i: usize| {
        let mut others: Vec<f32> = (0..rows.len())
            .filter(|j| *j != i)
            .map(|j| garlic_simd::l2_squared(rows.row(i), rows.row(j)))
            .collect();
        let near = config.clone_neighbours.min(others.len());
        if near > 0 {
            others.select_nth_unstable_by(near - 1, f32::total_cmp);
        }
        others[..near].iter().map(|d| d.sqrt()).sum::<f32>()
    };
    let densest = (0..rows.len())
        .map(|i| (spread(i), i))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    rows.row(densest.map_or(0, |(_, i)| i)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;
    use crate::model::assign;

    /// Round isotropic cells at `means`, stored as full factors.
    fn cells(means: &[[f32; 2]], scale: f32) -> Gaussians {
        Gaussians {
            means: Matrix::from_vec(means.concat(), 2).unwrap(),
            factors: Factors::Full([scale, 0.0, scale].repeat(means.len())),
        }
    }

    /// A disc of points: `count` on a spiral around `centre`.
    fn disc(centre: [f32; 2], radius: f32, count: usize) -> Vec<f32> {
        (0..count)
            .flat_map(|i| {
                let r = radius * ((i as f32 + 0.5) / count as f32).sqrt();
                let angle = 2.4 * i as f32;
                [centre[0] + r * angle.cos(), centre[1] + r * angle.sin()]
            })
            .collect()
    }

    fn refine(
        data: &[f32],
        model: &mut Gaussians,
        refused: &mut Vec<bool>,
        config: &Config,
    ) -> Refinement {
        let points = Rows::new(data, 2).unwrap();
        let cancel = Cancel::default();
        let assignment = assign(points, model, config.tau as f32, &cancel).unwrap();
        let (done, origin) =
            split_and_clone(points, &assignment, model, refused, config, 35, &cancel).unwrap();
        assert_eq!(origin.len(), model.len());
        assert_eq!(refused.len(), model.len());
        done
    }

    #[test]
    fn a_cell_over_two_groups_is_split_between_them() {
        let data = [disc([0.0, 0.0], 1.0, 80), disc([10.0, 0.0], 1.0, 40)].concat();
        for split_method in [SplitMethod::Dbscan, SplitMethod::TwoMeans] {
            let config = Config {
                split_method,
                ..Config::preset(Preset::Paper)
            };
            let mut model = cells(&[[4.0, 0.0]], 5.0);
            let mut refused = vec![false];
            let done = refine(&data, &mut model, &mut refused, &config);
            assert_eq!(
                done,
                Refinement {
                    split: 1,
                    ..Refinement::default()
                }
            );
            let mut found: Vec<f32> = (0..2).map(|c| model.mean(c)[0]).collect();
            found.sort_by(f32::total_cmp);
            assert!(
                (found[0] - 0.0).abs() < 0.2 && (found[1] - 10.0).abs() < 0.2,
                "{found:?}"
            );
            for cell in 0..2 {
                assert!((model.factor(cell)[0] - 4.5).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn splitting_a_point_mass_is_refused_once_and_for_all() {
        let data = [1.0, 2.0].repeat(100);
        let mut model = cells(&[[1.0, 2.0]], 1.0);
        let mut refused = vec![false];
        let config = Config {
            clone: false,
            ..Config::preset(Preset::Paper)
        };
        assert_eq!(refine(&data, &mut model, &mut refused, &config).refused, 1);
        assert_eq!((model.len(), refused.as_slice()), (1, &[true][..]));
        assert_eq!(
            refine(&data, &mut model, &mut refused, &config),
            Refinement::default()
        );
    }

    #[test]
    fn many_points_in_the_shell_make_a_clone_in_their_midst() {
        // 10 points inside tau = 3; 30 in a dense group at distance 4 to 5, inside the shell; none elsewhere.
        let data = [disc([0.0, 0.0], 0.5, 10), disc([4.5, 0.0], 0.4, 30)].concat();
        let mut model = cells(&[[0.0, 0.0]], 1.0);
        let config = Config {
            split: false,
            ..Config::preset(Preset::Paper)
        };
        let mut refused = vec![false];
        assert_eq!(refine(&data, &mut model, &mut refused, &config).cloned, 1);
        assert!((model.mean(1)[0] - 4.5).abs() < 0.41 && model.mean(1)[1].abs() < 0.41);
        assert_eq!(model.factor(0), model.factor(1));

        // Beyond e tau = 6.6 they are no longer in the shell.
        let data = [disc([0.0, 0.0], 0.5, 10), disc([9.0, 0.0], 0.4, 30)].concat();
        let mut model = cells(&[[0.0, 0.0]], 1.0);
        assert_eq!(
            refine(&data, &mut model, &mut vec![false], &config),
            Refinement::default()
        );
    }

    #[test]
    fn the_cap_on_cells_holds() {
        let data = [disc([0.0, 0.0], 1.0, 80), disc([10.0, 0.0], 1.0, 80)].concat();
        let config = Config {
            max_cells: 2,
            initial_cells: 2,
            ..Config::preset(Preset::Paper)
        };
        let mut model = cells(&[[5.0, 0.0], [5.0, 1.0]], 5.0);
        assert_eq!(
            refine(&data, &mut model, &mut vec![false; 2], &config),
            Refinement::default()
        );
        assert_eq!(model.len(), 2);
    }

    #[test]
    fn empty_cells_are_pruned_but_never_the_last() {
        let data = disc([0.0, 0.0], 1.0, 20);
        let points = Rows::new(&data, 2).unwrap();
        let config = Config::preset(Preset::Paper);
        let mut model = cells(&[[90.0, 0.0], [0.0, 0.0], [0.0, 90.0]], 1.0);
        let mut refused = vec![true, false, true];
        let assignment = assign(points, &model, 3.0, &Cancel::default()).unwrap();
        let (pruned, origin) = prune(&assignment, &mut model, &mut refused, &config);
        assert_eq!(
            (pruned, origin, refused.as_slice()),
            (2, vec![Some(1)], &[false][..])
        );
        assert_eq!((model.len(), model.mean(0)), (1, &[0.0, 0.0][..]));

        let one = Rows::new(&data[..2], 2).unwrap();
        let assignment = assign(one, &model, 3.0, &Cancel::default()).unwrap();
        assert_eq!(
            prune(&assignment, &mut model, &mut vec![false], &config).0,
            0
        );
        assert_eq!(model.len(), 1);
    }
}
