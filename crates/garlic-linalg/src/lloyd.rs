//! Lloyd's iteration.

use rayon::prelude::*;

use crate::{Matrix, Rows, nearest_centres};

/// Rows grouped around centres; no group is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// One centre a row.
    pub centres: Matrix,
    /// For every input row the index of its nearest centre.
    pub labels: Vec<u32>,
    /// Number of rows of each centre.
    pub sizes: Vec<u32>,
}

/// Improves `centres` by at most `iterations` rounds of Lloyd's iteration and labels every row.
///
/// Each round assigns the rows and moves every centre to the mean of its rows. A centre left without rows is
/// moved to the row of the largest cluster that lies farthest from its centre. Rounds end early when no label
/// changes. The labels returned belong to the centres returned; centres without rows are dropped, so fewer may
/// come back than went in. Without any centre there are no labels either.
pub fn lloyd(rows: Rows<'_>, mut centres: Matrix, iterations: usize) -> Clustering {
    let (mut labels, mut distances) = nearest_centres(rows, centres.as_rows());
    if centres.rows() == 0 {
        return Clustering {
            centres,
            labels: Vec::new(),
            sizes: Vec::new(),
        };
    }
    for _ in 0..iterations {
        let mut sizes = count(&labels, centres.rows());
        reseed_empty(&mut labels, &mut distances, &mut sizes);
        move_to_means(rows, &mut centres, &labels, &sizes);
        let (next, next_distances) = nearest_centres(rows, centres.as_rows());
        distances = next_distances;
        if next == labels {
            break;
        }
        labels = next;
    }
    drop_empty(centres, labels)
}

fn count(labels: &[u32], k: usize) -> Vec<u32> {
    let mut sizes = vec![0; k];
    for &label in labels {
        sizes[label as usize] += 1;
    }
    sizes
}

/// Gives every empty cluster one row: the farthest of the largest cluster, while that one has rows apart.
fn reseed_empty(labels: &mut [u32], distances: &mut [f32], sizes: &mut [u32]) {
    for empty in 0..sizes.len() {
        if sizes[empty] > 0 {
            continue;
        }
        let mut largest = 0;
        for (cluster, &size) in sizes.iter().enumerate() {
            if size > sizes[largest] {
                largest = cluster;
            }
        }
        // Taking the only row of a cluster would empty that one instead.
        if sizes[largest] < 2 {
            return;
        }
        let mut farthest: Option<usize> = None;
        for (i, &label) in labels.iter().enumerate() {
            let beyond = farthest.map_or(0.0, |f| distances[f]);
            if label as usize == largest && distances[i] > beyond {
                farthest = Some(i);
            }
        }
        let Some(row) = farthest else { continue };
        labels[row] = empty as u32;
        distances[row] = 0.0;
        sizes[largest] -= 1;
        sizes[empty] = 1;
    }
}

/// Moves every centre that has rows to their mean; each sum runs over its rows in order, in double precision.
fn move_to_means(rows: Rows<'_>, centres: &mut Matrix, labels: &[u32], sizes: &[u32]) {
    let mut starts = Vec::with_capacity(sizes.len() + 1);
    starts.push(0usize);
    for &size in sizes {
        starts.push(starts[starts.len() - 1] + size as usize);
    }
    let mut cursor = starts.clone();
    let mut members = vec![0u32; labels.len()];
    for (i, &label) in labels.iter().enumerate() {
        let slot = &mut cursor[label as usize];
        members[*slot] = i as u32;
        *slot += 1;
    }
    let dim = centres.cols();
    centres
        .as_mut_slice()
        .par_chunks_mut(dim)
        .zip(starts.par_windows(2))
        .for_each(|(centre, range)| {
            let members = &members[range[0]..range[1]];
            if members.is_empty() {
                return;
            }
            let mut sum = vec![0.0f64; dim];
            for &i in members {
                for (s, &x) in sum.iter_mut().zip(rows.row(i as usize)) {
                    *s += f64::from(x);
                }
            }
            let weight = 1.0 / members.len() as f64;
            for (c, s) in centre.iter_mut().zip(sum) {
                *c = (s * weight) as f32;
            }
        });
}

fn drop_empty(centres: Matrix, mut labels: Vec<u32>) -> Clustering {
    let sizes = count(&labels, centres.rows());
    let mut renamed = Vec::with_capacity(sizes.len());
    let mut kept = Matrix::zeros(0, centres.cols());
    for (i, &size) in sizes.iter().enumerate() {
        renamed.push(kept.rows() as u32);
        if size > 0 {
            kept.push_row(centres.row(i));
        }
    }
    for label in &mut labels {
        *label = renamed[*label as usize];
    }
    Clustering {
        centres: kept,
        labels,
        sizes: sizes.into_iter().filter(|&s| s > 0).collect(),
    }
}
