//! Chooses the neighbours of a point among candidates.

use super::bytes::{ByteTable, Centre};

/// A candidate, ordered by (distance, position).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Near {
    pub(super) distance: i32,
    pub(super) at: u32,
}

/// A candidate is occluded by a chosen neighbour that is nearer to it than the point itself is, by these factors on
/// squared distances. Later rounds allow more.
const OCCLUSION_RATIOS: [f32; 3] = [1.0, 1.2, 1.44];
/// Number of chosen neighbours that a candidate is compared with at once.
const CHOSEN_AT_ONCE: usize = 4;

/// Buffers of [`prune`].
#[derive(Default)]
pub(super) struct PruneScratch {
    centre: Centre,
    distances: Vec<i32>,
    compared: Vec<Compared>,
    chosen: Vec<u32>,
}

/// What is known of a candidate.
#[derive(Clone, Copy)]
struct Compared {
    /// Number of chosen neighbours that the candidate was compared with.
    with: usize,
    /// The smallest of the distances from these.
    smallest: i32,
    is_chosen: bool,
}

impl Compared {
    /// Whether one of the chosen neighbours occludes a candidate at this distance.
    fn is_occluded(&self, distance: i32, ratio: f32) -> bool {
        distance as f32 / self.smallest.max(1) as f32 > ratio
    }
}

/// Chooses up to `degree` of the sorted candidates: in the first round those that no other occludes, then with growing
/// tolerance, then the nearest. The result is sorted.
pub(super) fn prune(
    table: &ByteTable,
    candidates: &[Near],
    degree: usize,
    scratch: &mut PruneScratch,
) -> Vec<Near> {
    if candidates.len() <= degree {
        return candidates.to_vec();
    }
    let PruneScratch {
        centre,
        distances,
        compared,
        chosen,
    } = scratch;
    let unknown = Compared {
        with: 0,
        smallest: i32::MAX,
        is_chosen: false,
    };
    compared.clear();
    compared.resize(candidates.len(), unknown);
    chosen.clear();
    'rounds: for ratio in OCCLUSION_RATIOS {
        for (candidate, known) in candidates.iter().zip(compared.iter_mut()) {
            if chosen.len() == degree {
                break 'rounds;
            }
            if known.is_chosen || known.is_occluded(candidate.distance, ratio) {
                continue;
            }
            if known.with < chosen.len() {
                table.centre(candidate.at, centre);
            }
            while known.with < chosen.len() && !known.is_occluded(candidate.distance, ratio) {
                let to = (known.with + CHOSEN_AT_ONCE).min(chosen.len());
                table.distances(centre, &chosen[known.with..to], distances);
                let smallest = distances.iter().copied().min();
                known.smallest = known.smallest.min(smallest.unwrap_or(i32::MAX));
                known.with = to;
            }
            if !known.is_occluded(candidate.distance, ratio) {
                chosen.push(candidate.at);
                known.is_chosen = true;
            }
        }
    }
    let mut left = degree - chosen.len();
    let mut kept = Vec::with_capacity(degree);
    for (candidate, known) in candidates.iter().zip(compared.iter()) {
        let fills = !known.is_chosen && left > 0;
        left -= usize::from(fills);
        if known.is_chosen || fills {
            kept.push(*candidate);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::rows;

    /// Candidates around the point 0 of a table on a plane.
    fn candidates(points: &[[f32; 2]]) -> (ByteTable, Vec<Near>) {
        let values: Vec<f32> = points.iter().flatten().copied().collect();
        let table = ByteTable::of(rows(&values, 2));
        let others: Vec<u32> = (1..points.len() as u32).collect();
        let (mut centre, mut distances) = (Centre::default(), Vec::new());
        table.centre(0, &mut centre);
        table.distances(&centre, &others, &mut distances);
        let near = others.into_iter().zip(distances);
        let mut near: Vec<Near> = near.map(|(at, distance)| Near { distance, at }).collect();
        near.sort_unstable();
        (table, near)
    }

    fn chosen(points: &[[f32; 2]], degree: usize) -> Vec<u32> {
        let (table, near) = candidates(points);
        let kept = prune(&table, &near, degree, &mut PruneScratch::default());
        kept.into_iter().map(|near| near.at).collect()
    }

    #[test]
    fn a_point_behind_a_nearer_neighbour_is_left_out() {
        let points = [
            [0.0, 0.0],
            [10.0, 0.0],
            [20.0, 1.0],
            [0.0, 30.0],
            [-40.0, 0.0],
        ];
        assert_eq!(chosen(&points, 3), [1, 3, 4]);
        assert_eq!(chosen(&points, 1), [1]);
    }

    #[test]
    fn with_room_the_nearest_of_the_others_fill_it() {
        let points = [
            [0.0, 0.0],
            [10.0, 0.0],
            [11.0, 0.0],
            [12.0, 0.0],
            [0.0, 30.0],
        ];
        assert_eq!(chosen(&points, 3), [1, 2, 4]);
        assert_eq!(chosen(&points, 4), [1, 2, 3, 4]);
    }

    #[test]
    fn equal_points_are_chosen_like_any_others() {
        let points = [[0.0, 0.0]; 9];
        assert_eq!(chosen(&points, 4).len(), 4);
    }
}
