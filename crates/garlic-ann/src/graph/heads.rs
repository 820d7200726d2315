//! Fits the heads of codes to points that are near each other.

use super::Nodes;
use super::codes::{QueryBuffers, RowCodes};
use super::links::Links;
use crate::quantize::RowQuery;

/// A search may drop a near point because its head estimates too much. It keeps at least this share.
const KEPT_HEADS: f64 = 0.9;
/// Points, and near neighbours of each, that heads are fitted to.
const FITTED_POINTS: usize = 1000;
const FITTED_NEIGHBOURS: usize = 10;
/// Largest ratio that is used.
const MAX_HEAD_RATIO: f32 = 16.0;

/// Fits what to expect of the rests, and by how much the heads may then estimate too much. `inserted` are the points
/// that have neighbours. Runs in the current rayon pool.
pub(super) fn fit(codes: &mut RowCodes, links: &Links, inserted: &[u32], nodes: &Nodes<'_>) {
    let (mut products, mut squares) = (0.0, 0.0);
    near_estimates(codes, links, inserted, nodes, |near, _, rests| {
        products -= rests.iter().map(|rest| f64::from(*rest)).sum::<f64>();
        let squared = |at: &u32| f64::from(codes.rest_squared(*at));
        squares += near.iter().map(squared).sum::<f64>();
    });
    let share = products / (2.0 * squares.max(f64::MIN_POSITIVE));
    // Rounded, because the last bits depend on the instruction set.
    let share = (share.clamp(0.0, 1.0) * 256.0).round() / 256.0;
    codes.set_rest_share(share as f32);
    let mut errors = Vec::new();
    near_estimates(codes, links, inserted, nodes, |_, heads, rests| {
        if let (Some(head), Some(rest)) = (heads.last(), rests.last()) {
            let limit = (head + rest).max(f32::MIN_POSITIVE);
            errors.extend(rests.iter().map(|rest| -rest / limit));
        }
    });
    errors.sort_unstable_by(f32::total_cmp);
    let kept = (errors.len() as f64 * KEPT_HEADS) as usize;
    let error = errors.get(kept).copied().unwrap_or(MAX_HEAD_RATIO);
    let ratio = (1.0 + error).clamp(1.0, MAX_HEAD_RATIO);
    codes.head_ratio = (ratio * 64.0).ceil() / 64.0;
}

/// Calls `each` with the nearest neighbours of some points, the estimates by their heads, and what the rests add.
fn near_estimates(
    codes: &RowCodes,
    links: &Links,
    inserted: &[u32],
    nodes: &Nodes<'_>,
    mut each: impl FnMut(&[u32], &[f32], &[f32]),
) {
    let (mut query, mut buffers) = (RowQuery::default(), QueryBuffers::default());
    let mut vector = Vec::new();
    // The order of insertion is random.
    for at in inserted.iter().take(FITTED_POINTS) {
        let near = links.get(*at);
        let near = &near[..near.len().min(FITTED_NEIGHBOURS)];
        nodes.vectors.read(nodes.dim, *at as usize, &mut vector);
        codes.rotate_queries(&vector, &mut buffers);
        codes.prepare(0, &mut buffers, &mut query);
        let (mut heads, mut rests) = (vec![0.0; near.len()], vec![0.0; near.len()]);
        query.estimate_heads(codes.heads(), near, &mut heads);
        if let Some(codes) = codes.rests() {
            query.estimate_rests(codes, near, &mut rests);
        }
        each(near, &heads, &rests);
    }
}
