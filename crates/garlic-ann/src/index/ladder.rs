//! The search for the cheapest setting that meets a recall target.
//!
//! Settings are run as a search runs them, on held-out points. Whichever parameter gains most recall for its price is
//! raised until the target is met; then whatever can be lowered again, or be traded for more of another, is. How far
//! estimates are trusted needs no runs of its own: one that trusts none tells for every trust where it would have
//! stopped.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::calibrate::price;
use super::{Index, TemperedBody, View};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::search::{Best, Plan, Reranked, TemperedScratch, Work};

/// Queries that one task runs.
const CHUNK: usize = 32;
/// Relative tolerance when distances are compared, as in every recall of this project.
const TOLERANCE: f32 = 1e-6;
/// How far beyond the worst candidate a bin may be estimated.
const SLACKS: [f32; 16] = [
    1.0, 1.04, 1.08, 1.12, 1.16, 1.2, 1.25, 1.3, 1.35, 1.42, 1.5, 1.6, 1.75, 2.0, 2.5, 3.0,
];
/// How far beyond the k-th distance a candidate may be estimated, from much trust in estimates to none at all.
const TRUSTS: [f32; 10] = [1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, f32::MAX];

/// A point that was held out: its position, and the squared distance of its k-th neighbour for every k.
pub(super) struct Query {
    pub(super) position: usize,
    pub(super) radii: Vec<f32>,
}

/// The parameters that have a scale.
const PROBES: usize = 0;
const RERANK: usize = 1;
const SLACK: usize = 2;

/// A place on the scale of every parameter.
pub(super) type Place = [usize; 3];

/// Steps of a climb, and those that are tried around a place that has been reached.
const STRIDE: isize = 2;
const STEPS: [isize; 2] = [1, 3];
/// What is worth another round: a setting that costs less than this share of the best so far.
const WORTH: f64 = 0.99;

/// The settings of one k in steps, each parameter on a scale of its own.
pub(super) struct Ladder<'a> {
    index: &'a Index,
    body: &'a TemperedBody,
    queries: &'a [Query],
    /// Place of k in the queries' radii.
    at: usize,
    k: usize,
    probes: Vec<usize>,
    reranks: Vec<usize>,
    known: HashMap<(Place, Share), Arc<[Measured; TRUSTS.len()]>>,
}

/// A setting that meets a target.
pub(super) struct Reached {
    pub(super) place: Place,
    pub(super) plan: Plan,
    /// What it measured: mean recall less its standard error.
    pub(super) recall: f64,
}

/// How many of the queries a setting is tried on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Share {
    /// A quarter, to see which settings are worth more.
    Some,
    All,
}

/// What one setting did.
#[derive(Clone, Copy, Default)]
struct Measured {
    /// Mean recall less its standard error.
    recall: f64,
    error: f64,
    price: f64,
}

/// The first, and so the cheapest, trust that meets the target.
fn enough(measured: &[Measured], target: f64) -> Option<usize> {
    measured.iter().position(|m| m.recall >= target)
}

/// A measurement that trusts no estimate.
fn distrustful(measured: &[Measured; TRUSTS.len()]) -> Measured {
    measured[TRUSTS.len() - 1]
}

impl<'a> Ladder<'a> {
    pub(super) fn new(
        index: &'a Index,
        body: &'a TemperedBody,
        queries: &'a [Query],
        at: usize,
        k: usize,
    ) -> Self {
        let scale = |first: usize, last: usize, grow: fn(usize) -> usize| {
            let mut scale = vec![first.min(last)];
            while scale[scale.len() - 1] < last {
                scale.push(grow(scale[scale.len() - 1]).min(last));
            }
            scale
        };
        Self {
            index,
            body,
            queries,
            at,
            k,
            probes: scale(1, index.cells(), |p| (p * 5).div_ceil(4)),
            reranks: scale(
                (k + k / 8).max(2),
                (64 * k).max(300).min(index.len()),
                |r| (r * 9).div_ceil(8),
            ),
            known: HashMap::new(),
        }
    }

    /// Where to start.
    pub(super) fn bottom(&self) -> Place {
        [1.min(self.top(PROBES)), 0, 2]
    }

    fn top(&self, scale: usize) -> usize {
        match scale {
            PROBES => self.probes.len() - 1,
            RERANK => self.reranks.len() - 1,
            _ => SLACKS.len() - 1,
        }
    }

    fn plan(&self, place: Place, trust: usize) -> Plan {
        Plan {
            probes: self.probes[place[PROBES]],
            rerank: self.reranks[place[RERANK]],
            slack: SLACKS[place[SLACK]],
            trust: TRUSTS[trust],
            grouped: self.body.groups().is_some(),
            ..Plan::everything(self.k)
        }
    }

    /// The cheapest setting found that meets the target, starting at `place`; none when none does.
    pub(super) fn reach(
        &mut self,
        mut place: Place,
        target: f64,
        cancel: &Cancel,
    ) -> Result<Option<Reached>> {
        let (mut trust, mut measured) = loop {
            let all = self.measure(place, Share::All, cancel)?;
            if let Some(trust) = enough(&*all, target) {
                break (trust, all[trust]);
            }
            match self.climb(place, cancel)? {
                Some(next) => place = next,
                None => return Ok(None),
            }
        };
        while let Some(next) = self.cheaper(place, target, measured.price * WORTH, cancel)? {
            (place, trust, measured) = next;
        }
        Ok(Some(Reached {
            place,
            plan: self.plan(place, trust),
            recall: measured.recall,
        }))
    }

    /// The place above this one that gains most for its price.
    fn climb(&mut self, place: Place, cancel: &Cancel) -> Result<Option<Place>> {
        let here = distrustful(&*self.measure(place, Share::Some, cancel)?);
        let mut best: Option<(f64, Place)> = None;
        for next in self.moves(place, STRIDE) {
            let there = distrustful(&*self.measure(next, Share::Some, cancel)?);
            let gain = (there.recall - here.recall) / (there.price - here.price).max(1.0);
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, next));
            }
        }
        Ok(best.map(|(gain, next)| match gain > 0.0 {
            true => next,
            // Raising one limit brings nothing while another one binds.
            false => [PROBES, RERANK, SLACK].map(|s| (place[s] + 1).min(self.top(s))),
        }))
    }

    /// The cheapest setting around `place` that meets the target for less than `least`.
    fn cheaper(
        &mut self,
        place: Place,
        target: f64,
        mut least: f64,
        cancel: &Cancel,
    ) -> Result<Option<(Place, usize, Measured)>> {
        let mut found = None;
        let mut tries: Vec<Place> = Vec::new();
        for down in STEPS.iter().flat_map(|steps| self.moves(place, -steps)) {
            tries.push(down);
            tries.extend(STEPS.iter().flat_map(|steps| self.moves(down, *steps)));
        }
        for next in tries {
            if self.is_settled(next, target, least) {
                continue;
            }
            let rough = self.measure(next, Share::Some, cancel)?;
            let may_do = |m: &&Measured| m.recall + 3.0 * m.error >= target;
            if rough
                .iter()
                .find(may_do)
                .is_none_or(|m| m.price > least * 1.03)
            {
                continue;
            }
            let there = self.measure(next, Share::All, cancel)?;
            if let Some(trust) = enough(&*there, target)
                && there[trust].price < least
            {
                least = there[trust].price;
                found = Some((next, trust, there[trust]));
            }
        }
        Ok(found)
    }

    /// Whether what is known of others settles that `place` misses the target or costs as much as `least`: with more of
    /// everything a search finds no less and costs no less.
    fn is_settled(&self, place: Place, target: f64, least: f64) -> bool {
        let within = |a: &Place, b: &Place| a.iter().zip(b).all(|(a, b)| a <= b);
        self.known.iter().any(|((other, share), measured)| {
            *share == Share::All
                && (within(&place, other) && distrustful(measured).recall < target
                    || within(other, &place) && measured[0].price >= least)
        })
    }

    /// The places some steps away in one direction.
    fn moves(&self, place: Place, steps: isize) -> Vec<Place> {
        [PROBES, RERANK, SLACK]
            .into_iter()
            .filter_map(|scale| {
                let mut next = place;
                next[scale] = place[scale].checked_add_signed(steps)?.min(self.top(scale));
                (next != place).then_some(next)
            })
            .collect()
    }

    /// What a place does with every trust.
    fn measure(
        &mut self,
        place: Place,
        share: Share,
        cancel: &Cancel,
    ) -> Result<Arc<[Measured; TRUSTS.len()]>> {
        if let Some(known) = self.known.get(&(place, share)) {
            return Ok(Arc::clone(known));
        }
        cancel.check()?;
        let plan = self.plan(place, TRUSTS.len() - 1);
        let queries = match share {
            Share::Some => &self.queries[..self.queries.len().div_ceil(4)],
            Share::All => self.queries,
        };
        let measured = Arc::new(self.run_all(queries, &plan, TRUSTS));
        self.known.insert((place, share), Arc::clone(&measured));
        Ok(measured)
    }

    /// What any plan does: mean recall less its standard error.
    pub(super) fn recall_of(&self, plan: &Plan, cancel: &Cancel) -> Result<f64> {
        cancel.check()?;
        let distrustful = Plan {
            trust: f32::MAX,
            ..*plan
        };
        let [measured] = self.run_all(self.queries, &distrustful, [plan.trust]);
        Ok(measured.recall)
    }

    /// Runs a plan that trusts no estimate; tells what it does with each of some trusts, which ascend.
    fn run_all<const N: usize>(
        &self,
        queries: &[Query],
        plan: &Plan,
        trusts: [f32; N],
    ) -> [Measured; N] {
        let parts: Vec<Sums<N>> = queries
            .par_chunks(CHUNK)
            .map(|queries| run(self.index, self.body, queries, self.at, plan, trusts))
            .collect();
        let mut sums = Sums::new();
        for part in parts {
            sums.work += part.work;
            for (all, one) in sums.trusting.iter_mut().zip(part.trusting) {
                all.found += one.found;
                all.squares += one.squares;
                all.candidates += one.candidates;
            }
        }
        let (n, k) = (queries.len() as f64, self.k as f64);
        sums.trusting.map(|s| {
            let mean = s.found as f64 / (n * k);
            let variance = (s.squares as f64 / (n * k * k) - mean * mean).max(0.0);
            let error = (variance / n).sqrt();
            let work = Work {
                candidates: s.candidates,
                ..sums.work
            };
            Measured {
                recall: mean - error,
                error,
                price: price(self.index, self.body, &work) / n,
            }
        })
    }
}

/// Sums over queries: whole numbers, so that they do not depend on how threads share the queries.
struct Sums<const N: usize> {
    work: Work,
    trusting: [Trusting; N],
}

impl<const N: usize> Sums<N> {
    fn new() -> Self {
        Self {
            work: Work::default(),
            trusting: [Trusting::default(); N],
        }
    }
}

/// What comes out with one trust.
#[derive(Clone, Copy, Default)]
struct Trusting {
    found: u64,
    squares: u64,
    candidates: u64,
}

/// Runs one plan, which trusts no estimate, on some queries; `at` is the place of its k in the radii. Trusts ascend.
fn run<const N: usize>(
    index: &Index,
    body: &TemperedBody,
    queries: &[Query],
    at: usize,
    plan: &Plan,
    trusts: [f32; N],
) -> Sums<N> {
    let mut sums = Sums::new();
    // One more, for the query finds itself.
    let wider = Plan {
        k: plan.k + 1,
        rerank: plan.rerank + 1,
        ..*plan
    };
    let (mut scratch, mut best) = (TemperedScratch::default(), Best::default());
    let mut vector = Vec::new();
    for query in queries {
        index
            .vectors
            .read(index.space.dim(), query.position, &mut vector);
        index.embedding.as_query(&mut vector);
        let own = index.ids[query.position];
        let radius = query.radii[at].sqrt() * (1.0 + TOLERANCE);
        // Candidates come in the same order whatever the trust: the less, the sooner it stops.
        let (mut found, mut candidates, mut stopped) = (0, 0, 0);
        let mut ends = [None; N];
        let watch = |c: Reranked| {
            while stopped < N && c.estimate > trusts[stopped] * c.worst {
                ends[stopped] = Some((found, candidates));
                stopped += 1;
            }
            candidates += 1;
            found +=
                u64::from(c.new && index.ids[c.at as usize] != own && c.squared.sqrt() <= radius);
        };
        let view = View::new(index, body);
        sums.work += view.search_watched(&vector, &wider, &mut scratch, &mut best, watch);
        for (sums, end) in sums.trusting.iter_mut().zip(ends) {
            let (found, candidates) = end.unwrap_or((found, candidates));
            let found = found.min(plan.k as u64);
            sums.found += found;
            sums.squares += found * found;
            sums.candidates += candidates;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Body;
    use garlic_linalg::{Rows, random_stream, uniform_unit};

    #[test]
    fn one_run_tells_what_every_trust_would_have_found() {
        let (dim, count) = (24, 3000);
        let mut random = random_stream(5, 6);
        let value = |i| uniform_unit(&mut random) as f32 / (1 + i % dim) as f32;
        let values: Vec<f32> = (0..count * dim).map(value).collect();
        let rows = Rows::new(&values, dim).unwrap();
        let builder = Index::builder().set("calibration_queries", "0").unwrap();
        let index = builder.build(rows).unwrap();
        let Body::Tempered(body) = &index.body else {
            unreachable!("the default preset");
        };
        let k = 10;
        let queries: Vec<Query> = (0..200)
            .map(|position| {
                let mut own = Vec::new();
                index.vectors.read(dim, position, &mut own);
                let mut distances: Vec<f32> = (0..count)
                    .filter(|other| *other != position)
                    .map(|other| {
                        let mut vector = Vec::new();
                        index.vectors.read(dim, other, &mut vector);
                        garlic_simd::l2_squared(&own, &vector)
                    })
                    .collect();
                distances.sort_unstable_by(f32::total_cmp);
                let radii = vec![distances[k - 1]];
                Query { position, radii }
            })
            .collect();
        let ladder = Ladder::new(&index, body, &queries, 0, k);
        let mut place = ladder.bottom();
        place[RERANK] = ladder.top(RERANK) / 2;
        let plan = ladder.plan(place, TRUSTS.len() - 1);
        let told = run(&index, body, &queries, 0, &plan, TRUSTS);
        for (trust, told) in told.trusting.into_iter().enumerate() {
            let plan = ladder.plan(place, trust);
            let plan = Plan {
                k: k + 1,
                rerank: plan.rerank + 1,
                ..plan
            };
            let (mut found, mut candidates) = (0, 0);
            let (mut scratch, mut best) = (TemperedScratch::default(), Best::default());
            for query in &queries {
                let mut vector = Vec::new();
                index.vectors.read(dim, query.position, &mut vector);
                let view = View::new(&index, body);
                candidates += view
                    .search(&vector, &plan, &mut scratch, &mut best)
                    .candidates;
                let radius = query.radii[0].sqrt() * (1.0 + TOLERANCE);
                let near = best.found().filter(|f| f.squared.sqrt() <= radius);
                let others = near.filter(|f| f.position as usize != query.position);
                found += others.count().min(k) as u64;
            }
            let told = (told.found, told.candidates);
            assert_eq!(told, (found, candidates), "trust {}", TRUSTS[trust]);
        }
        let first = told.trusting[0];
        let last = told.trusting[TRUSTS.len() - 1];
        assert!(first.candidates < last.candidates && first.found <= last.found);
    }
}
