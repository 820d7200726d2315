//! Takes points out of the lists, and finds what no list leads to.

use super::bytes::ByteTable;
use super::links::{Chosen, Links, MERGED_CANDIDATES, for_all, nears, refine};
use super::prune::{Near, prune};
use garlic_core::{Cancel, Result};
use rayon::prelude::*;

/// Takes the points that are `gone` out of all lists. A list that loses points gets the neighbours of these as
/// candidates, so that no point is cut off, and the point then chooses again. Returns the lists of the points that are
/// gone, which are empty now.
pub(super) fn detach(
    table: &ByteTable,
    links: &mut Links,
    gone: &[bool],
    cancel: &Cancel,
) -> Result<Vec<Chosen>> {
    let is_gone = |at: &u32| gone[*at as usize];
    let all = (0..table.len() as u32).into_par_iter();
    let loses = |at: &u32| is_gone(at) || links.get(*at).iter().any(is_gone);
    let losing: Vec<u32> = all.filter(loses).collect();
    let degree = links.degree;
    let repaired = for_all(&losing, cancel, |at, walk| {
        let (behind, mut candidates): (Vec<u32>, Vec<u32>) =
            links.get(at).iter().partition(|n| is_gone(n));
        let behind = behind.iter().flat_map(|n| links.get(*n));
        candidates.extend(behind.filter(|n| !is_gone(n) && **n != at));
        candidates.sort_unstable();
        candidates.dedup();
        table.centre(at, &mut walk.centre);
        table.distances(&walk.centre, &candidates, &mut walk.distances);
        let mut near: Vec<Near> = nears(&walk.distances, &candidates).collect();
        near.sort_unstable();
        near.truncate(MERGED_CANDIDATES);
        prune(table, &near, degree, &mut walk.prune)
    })?;
    let (gone, left): (Vec<Chosen>, Vec<Chosen>) =
        repaired.into_iter().partition(|(at, _)| is_gone(at));
    gone.iter().for_each(|(at, _)| links.set(*at, &[]));
    left.iter().for_each(|(at, list)| links.set(*at, list));
    let left: Vec<u32> = left.iter().map(|(at, _)| *at).collect();
    refine(table, links, &left, cancel)?;
    Ok(gone)
}

/// Points, one of each part of the graph, that no list leads to from `starts`. Points that are `gone` do not count.
pub(super) fn unreached(
    links: &Links,
    starts: impl Iterator<Item = u32>,
    gone: &[bool],
) -> Vec<u32> {
    let mut reached = gone.to_vec();
    let mut next: Vec<u32> = starts.filter(|at| (*at as usize) < gone.len()).collect();
    let mut found = Vec::new();
    let mut all = 0..gone.len() as u32;
    loop {
        // Points that are gone lead on if a search starts from them.
        while let Some(at) = next.pop() {
            reached[at as usize] = true;
            let list = links.get(at).iter();
            next.extend(list.filter(|to| !std::mem::replace(&mut reached[**to as usize], true)));
        }
        match all.find(|at| !reached[*at as usize]) {
            Some(at) => {
                found.push(at);
                next.push(at);
            }
            None => return found,
        }
    }
}

/// The points from `first` on that lists of others lead to, as `unreached` needs them: those before count as reached.
pub(super) fn unreached_since(links: &Links, first: u32) -> Vec<u32> {
    let points = links.neighbours.len() / links.degree;
    let old: Vec<bool> = (0..points as u32).map(|at| at < first).collect();
    let changed = links.changed.iter().filter(|at| **at < first);
    let starts = changed.flat_map(|at| links.get(*at));
    unreached(links, starts.copied().filter(|at| *at >= first), &old)
}
