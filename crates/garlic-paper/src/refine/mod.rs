//! Refinement: cells that hold too much are split, cells with many points just outside are cloned, cells that hold
//! nothing are pruned.
//!
//! In: the points with their cells. Out: the changed Gaussians and, for every new cell, the old cell it continues. `split`
//! finds the two halves of a cell (with `dbscan`), `clone` the place of a copy.

mod clone;
mod dbscan;
mod split;

use garlic_core::{Cancel, Lists, Result};
use garlic_linalg::{Matrix, Rows, permutation};
use rayon::prelude::*;

use crate::config::Config;
use crate::gaussians::{Assignment, Factors, Gaussians, raise_diagonal};
use crate::streams;
use crate::training::Refinement;

/// For every new cell, the old cell it continues.
pub(crate) type Origin = Vec<Option<usize>>;

/// What happens to one cell.
enum Plan {
    Keep,
    /// Two children at these centres, their factors scaled by this.
    Split([Vec<f32>; 2], [f32; 2]),
    /// A copy at this centre.
    Clone(Vec<f32>),
}

/// A refinement after an epoch, or of a few cells after a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refiner<'a> {
    pub(crate) points: Rows<'a>,
    /// How many points there are: thresholds are shares of it. More than `points` where only a few cells are refined.
    pub(crate) all: usize,
    /// Whether each cell may be refined, with all that it holds among `points`; none means all cells.
    pub(crate) open: Option<&'a [bool]>,
    /// The cells of the points.
    pub(crate) assignment: &'a Assignment,
    pub(crate) config: &'a Config,
    pub(crate) epoch: usize,
    pub(crate) cancel: &'a Cancel,
}

impl Refiner<'_> {
    /// Splits and clones. `refused` remembers, for every cell, that splitting it makes no sense.
    ///
    /// # Errors
    /// When cancelled.
    pub(crate) fn split_and_clone(
        &self,
        model: &mut Gaussians,
        refused: &mut Vec<bool>,
    ) -> Result<(Refinement, Origin)> {
        let holdings = Lists::group(model.len(), self.assignment.holdings());
        let plan = |cell: usize| {
            self.cancel.check()?;
            match self.open.is_none_or(|open| open[cell]) {
                true => Ok(self.plan(cell, holdings.get(cell), refused[cell])),
                false => Ok((Plan::Keep, false)),
            }
        };
        let plans = (0..model.len()).into_par_iter().map(plan);
        let plans: Vec<(Plan, bool)> = plans.collect::<Result<_>>()?;

        let rules = &self.config.refinement;
        let mut done = Refinement::default();
        let mut origin: Origin = (0..model.len()).map(Some).collect();
        for (cell, (plan, refuse)) in plans.into_iter().enumerate() {
            refused[cell] |= refuse;
            done.refused += usize::from(refuse);
            let room = model.len() < rules.max_cells;
            match plan {
                Plan::Split(centres, scales) if room => {
                    self.replace(model, cell, &centres, scales);
                    origin[cell] = None;
                    done.split += 1;
                }
                Plan::Clone(centre) if room => {
                    let factor = model.factor(cell).to_vec();
                    push(model, &centre, &factor);
                    done.cloned += 1;
                }
                Plan::Keep | Plan::Split(..) | Plan::Clone(_) => continue,
            }
            origin.push(None);
            refused.push(false);
        }
        Ok((done, origin))
    }

    /// Puts two children of a cell, with scaled factors, at its place and at the end.
    fn replace(
        &self,
        model: &mut Gaussians,
        cell: usize,
        [first, second]: &[Vec<f32>; 2],
        scales: [f32; 2],
    ) {
        let floor = self.config.training.diagonal_floor as f32;
        let (covariance, dim) = (model.factors.covariance(), model.dim());
        let [own, other] = scales.map(|scale| {
            let mut factor: Vec<f32> = model.factor(cell).iter().map(|v| v * scale).collect();
            raise_diagonal(&mut factor, covariance, dim, floor);
            factor
        });
        model.means.row_mut(cell).copy_from_slice(first);
        let stride = model.stride();
        model.factors.values_mut()[cell * stride..(cell + 1) * stride].copy_from_slice(&own);
        push(model, second, &other);
    }

    /// What the factors of two children are scaled by. After a training step both shrink a little and training goes on;
    /// where it does not, each is to its half of the points what the cell was to all of them.
    fn scales(&self, held: &[u32], centres: &[Vec<f32>; 2]) -> [f32; 2] {
        if self.open.is_none() {
            return [self.config.refinement.split_scale as f32; 2];
        }
        split::spreads(self.points, held, centres)
    }

    /// What happens to a cell that holds the points `held`, and whether splitting it was tried and made no sense.
    fn plan(&self, cell: usize, held: &[u32], refused: bool) -> (Plan, bool) {
        let (config, rules) = (self.config, &self.config.refinement);
        let all = self.all as f64;
        let size = held.len() as f64;
        // Streams of different refinements and cells never meet: cells stay below 2^20.
        let stream = streams::REFINE + ((self.epoch as u64) << 20) + cell as u64;
        let mut refuse = false;
        if rules.split && size > rules.split_threshold * all && !refused {
            if let Some(centres) = split::centres(self.points, held, config, stream) {
                let scales = self.scales(held, &centres);
                return (Plan::Split(centres, scales), false);
            }
            refuse = true;
        }
        if rules.clone && size > rules.clone_threshold * all {
            let shell = clone::shell(self.assignment, held, cell as u32, config);
            if let Some(shell) = shell {
                let centre = clone::centre(self.points, &shell, config, stream);
                return (Plan::Clone(centre), refuse);
            }
        }
        (Plan::Keep, refuse)
    }
}

/// Number of points that every cell holds.
pub(crate) fn sizes(assignment: &Assignment, cells: usize) -> Vec<usize> {
    let mut sizes = vec![0; cells];
    let held = assignment.holdings();
    held.for_each(|(cell, _)| sizes[cell as usize] += 1);
    sizes
}

/// Removes cells that hold at most `most` points by their `sizes`; the fullest cell always stays.
pub(crate) fn prune(
    sizes: &[usize],
    model: &mut Gaussians,
    refused: &mut Vec<bool>,
    most: usize,
) -> Origin {
    let fullest = (0..model.len())
        .max_by_key(|c| (sizes[*c], std::cmp::Reverse(*c)))
        .unwrap_or(0);
    let kept: Vec<usize> = (0..model.len())
        .filter(|c| sizes[*c] > most || *c == fullest)
        .collect();
    if kept.len() < model.len() {
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
    kept.into_iter().map(Some).collect()
}

fn push(model: &mut Gaussians, mean: &[f32], factor: &[f32]) {
    model.means.push_row(mean);
    model.factors.values_mut().extend_from_slice(factor);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ShellEnd, SplitMethod};
    use crate::gaussians::assign;

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
        let assignment = assign(points, model, config.loss.tau as f32, &cancel).unwrap();
        let refiner = Refiner {
            points,
            all: points.len(),
            open: None,
            assignment: &assignment,
            config,
            epoch: 35,
            cancel: &cancel,
        };
        let (done, origin) = refiner.split_and_clone(model, refused).unwrap();
        assert_eq!(origin.len(), model.len());
        assert_eq!(refused.len(), model.len());
        done
    }

    #[test]
    fn a_cell_over_two_groups_is_split_between_them() {
        let data = [disc([0.0, 0.0], 1.0, 80), disc([10.0, 0.0], 1.0, 40)].concat();
        for split_method in [SplitMethod::Dbscan, SplitMethod::TwoMeans] {
            let mut config = Config::default();
            config.refinement.split_method = split_method;
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
        let mut config = Config::default();
        config.refinement.clone = false;
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
        let mut config = Config::default();
        config.refinement.split = false;
        let mut refused = vec![false];
        assert_eq!(refine(&data, &mut model, &mut refused, &config).cloned, 1);
        assert!((model.mean(1)[0] - 4.5).abs() < 0.41 && model.mean(1)[1].abs() < 0.41);
        assert_eq!(model.factor(0), model.factor(1));

        // Beyond e tau = 6.6 they are no longer in the shell, unless it ends at (1 + e) tau = 9.6.
        let data = [disc([0.0, 0.0], 0.5, 10), disc([9.0, 0.0], 0.4, 30)].concat();
        for (end, cloned) in [(ShellEnd::ETau, 0), (ShellEnd::OnePlusETau, 1)] {
            config.refinement.clone_shell_end = end;
            let mut model = cells(&[[0.0, 0.0]], 1.0);
            let done = refine(&data, &mut model, &mut vec![false], &config);
            assert_eq!(done.cloned, cloned, "{end:?}");
        }
    }

    #[test]
    fn a_clone_looks_at_no_more_points_than_allowed() {
        // The densest of 30 points is in the middle of them; of a single one there is no choice.
        let data = [disc([0.0, 0.0], 0.5, 10), disc([4.5, 0.0], 0.4, 30)].concat();
        let mut config = Config::default();
        config.refinement.split = false;
        let mut centres = Vec::new();
        for most in [1, 20_000] {
            config.refinement.clone_sample_most = most;
            let mut model = cells(&[[0.0, 0.0]], 1.0);
            assert_eq!(
                refine(&data, &mut model, &mut vec![false], &config).cloned,
                1
            );
            centres.push(model.mean(1).to_vec());
        }
        assert_ne!(centres[0], centres[1]);
    }

    #[test]
    fn the_cap_on_cells_holds() {
        let data = [disc([0.0, 0.0], 1.0, 80), disc([10.0, 0.0], 1.0, 80)].concat();
        let mut config = Config::default();
        (config.refinement.max_cells, config.init.initial_cells) = (2, 2);
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
        let mut model = cells(&[[90.0, 0.0], [0.0, 0.0], [0.0, 90.0]], 1.0);
        let mut refused = vec![true, false, true];
        let assignment = assign(points, &model, 3.0, &Cancel::default()).unwrap();
        let held = sizes(&assignment, model.len());
        let origin = prune(&held, &mut model, &mut refused, 1);
        assert_eq!((origin, refused), (vec![Some(1)], vec![false]));
        assert_eq!((model.len(), model.mean(0)), (1, &[0.0, 0.0][..]));

        let one = Rows::new(&data[..2], 2).unwrap();
        let assignment = assign(one, &model, 3.0, &Cancel::default()).unwrap();
        let held = sizes(&assignment, model.len());
        let origin = prune(&held, &mut model, &mut vec![false], 1);
        assert_eq!(origin, [Some(0)]);
        assert_eq!(model.len(), 1);
    }
}
