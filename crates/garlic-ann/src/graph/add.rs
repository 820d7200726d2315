//! Adds points to neighbour lists that are finished.

use garlic_core::{Cancel, Result};
use garlic_linalg::permutation;

use super::bytes::ByteTable;
use super::links::{Full, Links, add_back, for_all, raise_incoming};
use crate::streams;

/// Points that are added to a graph at once. They are compared with each other.
const ADD_ROUND: usize = 1000;
/// Points of the first step of such a round.
const ADD_FIRST: usize = 16;
/// Candidates that an added point keeps.
const ADD_CANDIDATES: usize = 48;

/// Inserts the last points of the table, which have no lists yet. A search starts from `starts` and from the other
/// points of its round.
pub(super) fn add(table: &ByteTable, links: &mut Links, starts: &[u32]) -> Result<()> {
    let first = (links.neighbours.len() / links.degree) as u32;
    let new: Vec<u32> = (first..table.len() as u32).collect();
    links.grow(table.len());
    for (number, round) in new.chunks(ADD_ROUND).enumerate() {
        // In doubling steps, as in a build: the first points find neighbours among those that were there, so that points
        // that are near each other and far from all others are not cut off.
        let order = permutation(round.len(), number as u64, streams::GRAPH);
        let round: Vec<u32> = order.into_iter().map(|i| round[i as usize]).collect();
        let mut done = 0;
        while done < round.len() {
            let end = (2 * done).max(ADD_FIRST).min(round.len());
            add_step(
                table,
                links,
                &round[done..end],
                &[starts, &round[..end]].concat(),
            )?;
            done = end;
        }
    }
    Ok(())
}

/// Inserts points that do not see each other unless they are in `starts`.
fn add_step(table: &ByteTable, links: &mut Links, new: &[u32], starts: &[u32]) -> Result<()> {
    let (degree, cancel) = (links.degree, Cancel::default());
    let chosen = for_all(new, &cancel, |at, walk| {
        walk.search(table, links, at, starts, ADD_CANDIDATES, usize::MAX);
        walk.choose(table, degree)
    })?;
    for (at, list) in &chosen {
        links.set(*at, list);
    }
    add_back(table, links, &chosen, Full::Joined, &cancel)?;
    raise_incoming(links, &chosen);
    Ok(())
}
