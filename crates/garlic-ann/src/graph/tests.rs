use super::*;
use crate::testdata::{rows, uniform};
use garlic_core::vectors::StoredType;

/// Points on a surface of few dimensions in a space of many, in cells of 500.
fn cloud(count: usize, dim: usize, seed: u64) -> Vec<f32> {
    let inner = 6;
    let latent = uniform(count, inner, seed);
    let axes = uniform(dim, inner, 77);
    let noise = uniform(count, dim, seed + 1);
    let value = |i: usize, j: usize| -> f32 {
        let along = latent[i * inner..][..inner].iter();
        let sum: f32 = along.zip(&axes[j * inner..]).map(|(a, b)| a * b).sum();
        sum.tanh() + 0.02 * noise[i * dim + j]
    };
    (0..count * dim)
        .map(|at| value(at / dim, at % dim))
        .collect()
}

const DIM: usize = 48;

fn graph(values: &[f32], threads: usize) -> (StoredVectors, Graph) {
    let count = values.len() / DIM;
    let order: Vec<u32> = (0..count as u32).collect();
    let vectors = StoredVectors::gather(rows(values, DIM), &order, StoredType::F32);
    let cell_of: Vec<u32> = (0..count as u32).map(|at| at / 500).collect();
    let nodes = Nodes {
        vectors: &vectors,
        dim: DIM,
        cell_of: &cell_of,
        cells: count.div_ceil(500),
        seed: 5,
    };
    let pool = garlic_core::pool::thread_pool(threads).unwrap();
    let graph = pool.install(|| Graph::build(&nodes, &Cancel::default(), &|_, _| ()));
    let graph = graph.unwrap();
    (vectors, graph)
}

/// Recall of the candidates of 100 queries, and the work.
fn recall(values: &[f32], graph: &Graph, k: usize, ratio: f32) -> (f64, Expanded) {
    let queries = cloud(100, DIM, 900);
    let mut scratch = Expansion::default();
    let limits = Limits {
        k,
        ratio,
        candidates: 1000,
        unvisited: None,
    };
    let (mut found, mut work) = (0, Expanded::default());
    for query in queries.chunks(DIM) {
        graph.prepare(query, &mut scratch);
        let done = graph.expand(&limits, &AllAdmitted, &mut scratch);
        work.hops += done.hops;
        work.codes += done.codes;
        let mut candidates = Vec::new();
        scratch.copy_to(&AllAdmitted, &mut candidates);
        let pairs = || candidates.windows(2);
        assert!(pairs().all(|pair| pair[0].estimate <= pair[1].estimate));
        let mut near: Vec<(f32, u32)> = values
            .chunks(DIM)
            .zip(0..)
            .map(|(row, at)| (garlic_simd::l2_squared(query, row), at))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        let is_found = |(_, at): &&(f32, u32)| candidates.iter().any(|c| c.at == *at);
        found += near[..k].iter().filter(is_found).count();
    }
    (found as f64 / (100 * k) as f64, work)
}

#[test]
fn expansion_finds_neighbours_and_more_with_a_larger_ratio() {
    let values = cloud(5000, DIM, 1);
    let (_, graph) = graph(&values, 2);
    let (low, little) = recall(&values, &graph, 10, 1.0);
    let (high, more) = recall(&values, &graph, 10, 1.6);
    assert!(high > 0.97 && high >= low, "{low} {high}");
    assert!(little.hops < more.hops && little.codes < more.codes);
    assert!(more.codes < 100 * 2500, "a part of the points: {more:?}");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let values = cloud(2500, DIM, 2);
    assert_eq!(graph(&values, 1).1, graph(&values, 3).1);
}

#[test]
fn any_content_of_the_lists_is_safe() {
    let values = cloud(1500, DIM, 3);
    let (_, sound) = graph(&values, 2);
    let junk = |i: u32| i.wrapping_mul(2_654_435_761) % 4000;
    let graph = Graph {
        neighbours: (0..1500 * DEGREE as u32)
            .map(junk)
            .collect::<Vec<_>>()
            .into(),
        centres: vec![5, NO_NEIGHBOUR, 77_777].into(),
        ..sound
    };
    let (_, work) = recall(&values, &graph, 10, 1.2);
    assert!(work.hops > 0);
}

#[test]
fn candidates_are_limited() {
    let values = vec![0.25; 2000 * DIM];
    let (_, graph) = graph(&values, 2);
    let limits = Limits {
        k: 10,
        ratio: 2.0,
        candidates: 60,
        unvisited: None,
    };
    let mut scratch = Expansion::default();
    graph.prepare(&values[..DIM], &mut scratch);
    let work = graph.expand(&limits, &AllAdmitted, &mut scratch);
    let mut candidates = Vec::new();
    scratch.copy_to(&AllAdmitted, &mut candidates);
    assert!(
        (10..=60).contains(&candidates.len()),
        "{}",
        candidates.len()
    );
    assert!(work.hops <= 200, "{work:?}");
}

/// Admits one point in `0`.
struct Some1(u32);

impl Admission for Some1 {
    const ALL: bool = false;

    fn admits(&self, at: u32) -> bool {
        at.is_multiple_of(self.0)
    }
}

#[test]
fn only_admitted_points_are_found_and_others_lead_to_them() {
    let values = cloud(5000, DIM, 1);
    let (_, graph) = graph(&values, 2);
    let limits = Limits {
        k: 10,
        ratio: 1.4,
        candidates: 4096,
        unvisited: None,
    };
    let mut scratch = Expansion::default();
    for share in [2, 10] {
        let admission = Some1(share);
        let mut found = 0;
        for query in cloud(50, DIM, 900).chunks(DIM) {
            graph.prepare(query, &mut scratch);
            let done = graph.expand(&limits, &admission, &mut scratch);
            assert!(!done.overflowed);
            let mut candidates = Vec::new();
            scratch.copy_to(&admission, &mut candidates);
            assert!(candidates.iter().all(|c| c.at % share == 0));
            assert_eq!(scratch.kth(10), candidates[9].estimate);
            let rows = values.chunks(DIM).zip(0u32..);
            let rows = rows.filter(|(_, at)| at % share == 0);
            let mut near: Vec<(f32, u32)> = rows
                .map(|(row, at)| (garlic_simd::l2_squared(query, row), at))
                .collect();
            near.sort_by(|a, b| a.0.total_cmp(&b.0));
            let is_found = |(_, at): &&(f32, u32)| candidates.iter().any(|c| c.at == *at);
            found += near[..10].iter().filter(is_found).count();
        }
        assert!(found > 480, "{share}: {found} of 500");
    }
}
