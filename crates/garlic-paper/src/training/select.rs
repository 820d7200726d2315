//! Choosing the model by what retrieval costs, not by the loss.
//!
//! The published losses do not know what a search costs: trained on, they may let one cell swallow the points of
//! the others. Every so many epochs some points that training does not see are used as queries: how many
//! candidates have to be looked at so that a given share of them finds its nearest training point. The model
//! with the fewest is the one that is kept.

use garlic_linalg::{Matrix, Rows, nearest_centres, permutation};

use crate::config::Config;
use crate::gaussians::{Assignment, Gaussians};
use crate::route::Router;
use crate::streams;

/// Cells that a query may visit; a model that needs more has lost anyway.
const MOST_PROBES: usize = 64;
/// Checks without improvement after which training ends.
const PATIENCE: usize = 4;

/// Held-out queries and the best model so far.
#[derive(Debug)]
pub(super) struct Selection {
    queries: Matrix,
    /// Nearest training point of each query.
    nearest: Vec<u32>,
    every: usize,
    recall: f64,
    best: Option<(f64, usize, Gaussians)>,
    /// Checks since the best one.
    waited: usize,
}

/// Splits the points into those that training sees and those that it is judged by.
pub(super) fn hold_out(points: Rows<'_>, config: &Config) -> Option<(Matrix, Selection)> {
    let rules = &config.selection;
    let count = rules.select_queries.min(points.len() / 5);
    if rules.select_every == 0 || count == 0 {
        return None;
    }
    let mut order = permutation(points.len(), config.seed, streams::SELECTION);
    let mut seen = order.split_off(count);
    seen.sort_unstable();
    let (queries, seen) = (
        Matrix::gather(points, &order),
        Matrix::gather(points, &seen),
    );
    let (nearest, _) = nearest_centres(queries.as_rows(), seen.as_rows());
    let selection = Selection {
        queries,
        nearest,
        every: rules.select_every,
        recall: rules.select_recall,
        best: None,
        waited: 0,
    };
    Some((seen, selection))
}

impl Selection {
    pub(super) fn due(&self, epoch: usize, last: usize) -> bool {
        epoch.is_multiple_of(self.every) || epoch == last
    }

    /// Judges the model after an epoch; `assignment` is that of the training points. Returns its candidates.
    pub(super) fn judge(
        &mut self,
        epoch: usize,
        model: &Gaussians,
        assignment: &Assignment,
    ) -> f64 {
        let cost = self.candidates(model, assignment);
        if self.best.as_ref().is_none_or(|(least, _, _)| cost < *least) {
            self.best = Some((cost, epoch, model.clone()));
            self.waited = 0;
        } else {
            self.waited += 1;
        }
        cost
    }

    /// New cells were made: they need time to settle before not having become better says anything.
    pub(super) fn refined(&mut self) {
        self.waited = 0;
    }

    /// Whether the model has not become better for long.
    pub(super) fn tired(&self) -> bool {
        self.waited >= PATIENCE
    }

    /// The best model and its epoch.
    pub(super) fn into_best(self) -> Option<(usize, Gaussians)> {
        self.best.map(|(_, epoch, model)| (epoch, model))
    }

    /// Mean candidates of the fewest probes with which enough queries find their nearest training point;
    /// infinite when no number of probes is enough.
    fn candidates(&self, model: &Gaussians, assignment: &Assignment) -> f64 {
        let mut sizes = vec![0u64; model.len()];
        for (cell, _) in assignment.memberships() {
            sizes[cell as usize] += 1;
        }
        let most = MOST_PROBES.min(model.len());
        let mut found = vec![0u64; most];
        let mut looked_at = vec![0u64; most];
        let router = Router::new(model);
        for (query, nearest) in self.queries.as_rows().iter().zip(&self.nearest) {
            let at = *nearest as usize;
            let covering = assignment.covering(at);
            let holds = |cell: u32| match covering.is_empty() {
                true => assignment.nearest[at] == cell,
                false => covering.contains(&cell),
            };
            let route = router.order(model, query, most);
            let (mut total, mut hit) = (0, false);
            for (probe, cell) in route.into_iter().enumerate() {
                total += sizes[cell as usize];
                hit |= holds(cell);
                looked_at[probe] += total;
                found[probe] += u64::from(hit);
            }
        }
        let queries = self.queries.rows() as f64;
        let enough = found
            .iter()
            .position(|f| *f as f64 >= self.recall * queries);
        enough.map_or(f64::INFINITY, |probe| looked_at[probe] as f64 / queries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Covariance;
    use crate::gaussians::{Factors, assign};
    use garlic_core::Cancel;

    /// Two far groups of points; cells that tell them apart need half the candidates of one that holds all.
    #[test]
    fn cells_that_tell_points_apart_cost_less() {
        let data: Vec<f32> = (0..400)
            .flat_map(|i| {
                let group = if i % 2 == 0 { 0.0 } else { 100.0 };
                [group + (i % 7) as f32, (i % 11) as f32]
            })
            .collect();
        let points = Rows::new(&data, 2).unwrap();
        let mut config = Config::default();
        config.selection.select_every = 2;
        config.selection.select_queries = 50;
        let (seen, mut selection) = hold_out(points, &config).unwrap();
        assert_eq!((seen.rows(), selection.queries.rows()), (350, 50));
        let model = |means: Vec<f32>, scale: f32| Gaussians {
            factors: Factors::from_values(Covariance::Isotropic, vec![scale; means.len() / 2]),
            means: Matrix::from_vec(means, 2).unwrap(),
        };
        let mut judge = |epoch, model: &Gaussians| {
            let assignment = assign(seen.as_rows(), model, 3.0, &Cancel::default()).unwrap();
            selection.judge(epoch, model, &assignment)
        };
        let apart = model(vec![3.0, 5.0, 103.0, 5.0], 4.0);
        let one = model(vec![53.0, 5.0], 80.0);
        assert_eq!(judge(2, &one), 350.0);
        let half = judge(4, &apart);
        assert!((150.0..200.0).contains(&half), "{half}");
        // A cell that has swallowed its neighbour's points is found out.
        let swallowed = model(vec![3.0, 5.0, 103.0, 5.0], 60.0);
        assert!(judge(6, &swallowed) > 300.0);
        for epoch in [8, 10, 12] {
            judge(epoch, &swallowed);
        }
        assert!(selection.tired());
        // After a refinement the count begins anew.
        selection.refined();
        assert!(!selection.tired());
        let (epoch, best) = selection.into_best().unwrap();
        assert_eq!((epoch, best), (4, apart));
    }
}
