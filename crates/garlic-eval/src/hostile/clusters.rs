//! Rows in clusters of different sizes, scales and nesting.

use super::Kind;
use super::stream::{SHAPE, Stream, normalise, rows};

const DIM: usize = 48;
/// Dimension of the rows that look like embeddings.
const EMBEDDED: usize = 384;
/// Dimension of each cluster of those.
const LOCAL: usize = 16;

pub(super) const KINDS: [Kind; 7] = [
    Kind {
        name: "clustered",
        about: "500 tight clusters of equal weight",
        dim: DIM,
        draw: |n, seed| clustered(n, seed, DIM, 500, |_| 1.0),
    },
    Kind {
        name: "clustered-power-law",
        about: "500 tight clusters whose weights fall as one over their rank",
        dim: DIM,
        draw: |n, seed| clustered(n, seed, DIM, 500, |rank| 1.0 / (rank + 1) as f64),
    },
    Kind {
        name: "clustered-2d",
        about: "60 tight clusters in the plane",
        dim: 2,
        draw: |n, seed| clustered(n, seed, 2, 60, |_| 1.0),
    },
    Kind {
        name: "nested-clusters",
        about: "clusters of clusters at the scales 10,000, 100 and 1",
        dim: 32,
        draw: nested,
    },
    Kind {
        name: "cluster-scales",
        about: "100 clusters, each with its own scale from 0.001 to 1,000",
        dim: 32,
        draw: cluster_scales,
    },
    Kind {
        name: "hubs",
        about: "Gaussian; one row in a hundred is near the centre and so a neighbour of most others",
        dim: 128,
        draw: hubs,
    },
    Kind {
        name: "embeddings",
        about: "unit vectors of a mixture of 200 clusters of local dimension 16",
        dim: EMBEDDED,
        draw: embeddings,
    },
];

/// Clusters of standard deviation 0.05 around centres of standard deviation 1.
fn clustered(
    n: usize,
    seed: u64,
    dim: usize,
    count: usize,
    weight: fn(usize) -> f64,
) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let centres: Vec<Vec<f64>> = (0..count).map(|_| shape.normals(dim)).collect();
    let mut total = 0.0;
    let sums = (0..count).map(|rank| {
        total += weight(rank);
        total
    });
    let cumulative: Vec<f64> = sums.collect();
    rows(n, dim, seed, |s, row| {
        let centre = &centres[s.weighted(&cumulative)];
        for (v, c) in row.iter_mut().zip(centre) {
            *v = (c + 0.05 * s.normal()) as f32;
        }
    })
}

/// Ten clusters in each of ten clusters.
fn nested(n: usize, seed: u64) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let outer: Vec<Vec<f64>> = (0..10).map(|_| shape.normals(32)).collect();
    let inner: Vec<Vec<f64>> = (0..100).map(|_| shape.normals(32)).collect();
    rows(n, 32, seed, |s, row| {
        let leaf = s.below(100);
        let (far, near) = (&outer[leaf / 10], &inner[leaf]);
        for ((v, far), near) in row.iter_mut().zip(far).zip(near) {
            *v = (1e4 * far + 1e2 * near + s.normal()) as f32;
        }
    })
}

fn cluster_scales(n: usize, seed: u64) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let clusters: Vec<(Vec<f64>, f64)> = (0..100)
        .map(|_| {
            let centre = shape.normals(32).into_iter().map(|c| 10.0 * c).collect();
            (centre, shape.log_uniform(1e-3, 1e3))
        })
        .collect();
    rows(n, 32, seed, |s, row| {
        let (centre, scale) = &clusters[s.below(clusters.len())];
        for (v, c) in row.iter_mut().zip(centre) {
            *v = (c + scale * s.normal()) as f32;
        }
    })
}

fn hubs(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, 128, seed, |s, row| {
        let scale = if s.unit() < 0.01 { 0.1 } else { 1.0 };
        row.iter_mut()
            .for_each(|v| *v = (scale * s.normal()) as f32);
    })
}

fn embeddings(n: usize, seed: u64) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let clusters: Vec<Vec<Vec<f64>>> = (0..200)
        .map(|_| (0..=LOCAL).map(|_| shape.normals(EMBEDDED)).collect())
        .collect();
    rows(n, EMBEDDED, seed, |s, row| {
        let cluster = &clusters[s.below(clusters.len())];
        let mut point = cluster[0].clone();
        for axis in &cluster[1..] {
            let t = 0.25 * s.normal();
            point.iter_mut().zip(axis).for_each(|(p, a)| *p += t * a);
        }
        for (v, p) in row.iter_mut().zip(point) {
            *v = (p + 0.02 * s.normal()) as f32;
        }
        normalise(row);
    })
}
