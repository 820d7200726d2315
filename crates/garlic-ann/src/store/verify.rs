//! Checks what opening skips because a search does not rely on it.

mod codes;

use crate::segment::Index;
use garlic_core::file::{Fault, Kind, check_axes, inconsistent};

/// Number of points whose codes are recomputed. Each takes a rotation, so large indexes are checked by sample.
const SAMPLED_POINTS: usize = 2048;

/// Checks identifiers, axes, bins and codes of a loaded index.
pub(super) fn check(index: &Index) -> Result<(), Fault> {
    check_ids(index)?;
    if let Some(rotation) = &index.transform.rotation {
        let axes = rotation.as_slice();
        check_axes(axes, index.transform.dim())
            .map_err(|message| inconsistent(Kind::Space, message))?;
    }
    codes::check(index)
}

/// Distance between two sampled points.
fn sample_step(index: &Index) -> usize {
    index.len().div_ceil(SAMPLED_POINTS).max(1)
}

/// The vector at a position.
fn vector(index: &Index, position: usize) -> Vec<f32> {
    let mut out = Vec::new();
    index
        .segment
        .vectors
        .read(index.transform.dim(), position, &mut out);
    out
}

/// Every identifier occurs once. If points may be stored in two cells, it occurs at most twice with the same vector.
fn check_ids(index: &Index) -> Result<(), Fault> {
    let mut sorted: Vec<(u64, usize)> = index.segment.ids.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let wrong = |message: String| Err(inconsistent(Kind::Ids, message));
    let mut distinct = 0;
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        distinct += 1;
        let id = same[0].0;
        match same {
            [_] => {}
            [_, _] if !index.spills() => {
                return wrong(format!("the identifier {id} is given twice"));
            }
            [(_, first), (_, second)] => {
                if vector(index, *first) != vector(index, *second) {
                    return wrong(format!("the identifier {id} has two vectors"));
                }
            }
            more => return wrong(format!("the identifier {id} is given {} times", more.len())),
        }
    }
    match index.spills() && distinct != index.len() {
        true => wrong(format!("{distinct} identifiers of {} points", index.len())),
        false => Ok(()),
    }
}
