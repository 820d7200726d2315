//! Ground truth: the true neighbours of held-out points, by brute force.

use rayon::prelude::*;

use super::measure::{Query, RankingDistance};
use crate::segment::Snapshot;
use garlic_core::Cancel;
use garlic_core::Result;

/// Number of vectors per block. Their distances to all queries are computed while they are in cache.
const BLOCK_VECTORS: usize = 1024;

/// Queries at positions of an index, with the distances and positions of their true neighbours. There must be more
/// points than the largest k.
pub(super) fn ground_truth(
    snapshot: &Snapshot<'_>,
    held: &[u32],
    ks: &[usize],
    cancel: &Cancel,
) -> Result<Vec<Query>> {
    let points: Vec<u32> = match snapshot.index.spills() {
        true => snapshot.index.first_positions(),
        false => snapshot.admitted().collect(),
    };
    let tasks = 2 * rayon::current_num_threads().max(1);
    held.par_chunks(held.len().div_ceil(tasks).max(1))
        .map(|held| ground_truth_of(snapshot, &points, held, ks, cancel))
        .collect::<Result<Vec<Vec<Query>>>>()
        .map(|parts| parts.into_iter().flatten().collect())
}

/// The work of one task.
fn ground_truth_of(
    snapshot: &Snapshot<'_>,
    points: &[u32],
    held: &[u32],
    ks: &[usize],
    cancel: &Cancel,
) -> Result<Vec<Query>> {
    let most = ks.iter().copied().max().unwrap_or(1);
    let new = |position: &u32| Query {
        position: *position,
        radii: Vec::new(),
        ranking_radii: Vec::new(),
        neighbours: Vec::new(),
    };
    let mut queries: Vec<Query> = held.iter().map(new).collect();
    let mut vectors = vec![Vec::new(); held.len()];
    for (query, vector) in queries.iter().zip(&mut vectors) {
        query.read(snapshot, vector);
    }
    let mut bytes = vec![Vec::new(); held.len()];
    let pairs = vectors.iter().zip(&mut bytes);
    let prepared: Vec<_> = pairs
        .map(|(vector, bytes)| snapshot.index.segment.vectors.prepare(vector, bytes))
        .collect();
    let mut lists: Vec<Vec<(f32, u32)>> = vec![Vec::new(); held.len()];
    let nearer = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let mut ranking = RankingDistance::new(*snapshot);
    for block in points.chunks(BLOCK_VECTORS) {
        cancel.check()?;
        for (number, list) in lists.iter_mut().enumerate() {
            let (query, vector) = (&prepared[number], &vectors[number]);
            let others = block.iter().filter(|p| **p != held[number]);
            list.extend(others.map(|p| {
                let squared = snapshot.distance(*p, query);
                (ranking.of(vector, *p, squared), *p)
            }));
            if list.len() > most {
                list.select_nth_unstable_by(most - 1, nearer);
                list.truncate(most);
            }
        }
    }
    for ((query, prepared), mut list) in queries.iter_mut().zip(&prepared).zip(lists) {
        list.sort_unstable_by(nearer);
        let farthest = ks.iter().map(|k| list[k - 1]);
        query.ranking_radii = farthest
            .clone()
            .map(|(ranking_radii, _)| ranking_radii)
            .collect();
        query.radii = farthest
            .map(|(_, p)| snapshot.distance(p, prepared))
            .collect();
        query.neighbours = list.into_iter().map(|(_, position)| position).collect();
    }
    Ok(queries)
}
