//! Every kind keeps to its shape, its seed and its name.

use std::collections::HashSet;

use super::{Kind, kinds};

const ROWS: usize = 2000;

/// What the name of a kind says, as an assertion about 2,000 rows.
type Claim = fn(&[f32], usize) -> bool;

#[test]
fn shapes_seeds_and_values() {
    let mut names = HashSet::new();
    for kind in kinds() {
        assert!(names.insert(kind.name), "{} comes twice", kind.name);
        let (values, dim) = (kind.draw)(300, 7);
        assert_eq!(dim, kind.dim, "{}", kind.name);
        assert_eq!(values.len(), 300 * dim, "{}", kind.name);
        let sound = |v: &f32| v.is_finite() && v.abs() <= 1e15;
        assert!(values.iter().all(sound), "{}", kind.name);
        assert_eq!((kind.draw)(300, 7).0, values, "{}", kind.name);
        assert_ne!((kind.draw)(300, 8).0, values, "{}", kind.name);
    }
}

#[test]
fn queries_are_the_last_rows() {
    for kind in kinds() {
        let sample = kind.sample(80, 20, 3);
        let (all, dim) = (kind.draw)(100, 3);
        assert_eq!(sample.dim, dim);
        assert_eq!(sample.base, all[..80 * dim], "{}", kind.name);
        assert_eq!(sample.queries, all[80 * dim..], "{}", kind.name);
    }
}

#[test]
fn kinds_are_what_their_names_say() {
    let is_broken = |kind: &&Kind| {
        let claim = claim(kind).unwrap_or_else(|| panic!("nothing is claimed of {}", kind.name));
        let (values, dim) = (kind.draw)(ROWS, 5);
        !claim(&values, dim)
    };
    let broken: Vec<&str> = kinds().iter().filter(is_broken).map(|k| k.name).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

fn claim(kind: &Kind) -> Option<Claim> {
    let claim: Claim = match kind.name {
        "gaussian-64" | "gaussian-8" | "space" => {
            |v, _| mean(v).abs() < 0.05 && near(spread(v), 1.0)
        }
        "uniform" | "line" | "plane" => |v, _| within(v, 0.0, 1.0) && near(mean(v), 0.5),
        "two-gaussians" => |v, d| near(share(v, d, |row| row[0] > 5e3), 0.5),
        "outliers-10" => |v, d| far_rows(v, d, 30.0) == 20,
        "outliers-100" => |v, d| far_rows(v, d, 300.0) == 20,
        "outliers-1e4" => |v, d| far_rows(v, d, 3e4) == 20,
        "outlier-1e9" => |v, d| far_rows(v, d, 1e9) == 1,
        "offset" => |v, _| near(mean(v), 1e6) && within(v, 1e6 - 10.0, 1e6 + 10.0),
        "offset-scaled" => |v, d| deviations(v, d).1 > 100.0 * deviations(v, d).0,
        "anisotropic" => |v, d| deviations(v, d).1 > 1e5 * deviations(v, d).0,
        "tiny" => |v, _| within(v, -1e-9, 1e-9) && spread(v) > 0.0,
        "constant-coordinates" => |v, d| deviations(v, d).0 == 0.0 && deviations(v, d).1 > 0.9,
        "sphere" | "embeddings" => |v, d| v.chunks(d).all(|row| near(length(row), 1.0)),
        "bulk-and-noise" => |v, d| (0.05..0.15).contains(&share(v, d, |row| length(row) > 5.0)),
        "far-group" => |v, d| (0.002..0.03).contains(&share(v, d, |row| row[0] > 500.0)),
        "log-normal" => |v, _| v.iter().all(|v| *v > 0.0) && largest(v) > 1e4,
        "log-normal-lengths" => |v, d| length_ratio(v, d) > 100.0,
        "student-32" | "student-128" | "student-lengths" => |v, _| largest(v) > 100.0 * middle(v),
        "cauchy" => |v, _| largest(v) > 1e3 && near(middle(v), 1.0),
        "clustered" | "clustered-2d" => |v, d| nearest_of_first(v, d) < 0.9,
        "clustered-power-law" => |v, d| largest_crowd(v, d, 1.0) > 200,
        "nested-clusters" => |v, d| spread(v) > 5e3 && nearest_of_first(v, d) < 30.0,
        "cluster-scales" => |v, d| length_ratio(v, d) > 20.0,
        "hubs" => |v, d| (0.002..0.03).contains(&share(v, d, |row| length(row) < 3.0)),
        "zipf-counts" => |v, _| whole(v) && largest(v) > 1e3 && middle(v) <= 2.0,
        "sparse-floats" => |v, d| near(50.0 * share(v, 1, |x| x[0] != 0.0), 1.0) && d == 512,
        "bag-of-words" => |v, d| whole(v) && v.chunks(d).all(|row| row.iter().sum::<f32>() >= 10.0),
        "binary-64" | "binary-256" => |v, _| v.iter().all(|v| *v == 0.0 || *v == 1.0),
        "one-hot" => |v, d| {
            v.chunks(d)
                .all(|row| row.iter().filter(|v| **v > 0.5).count() == 1)
        },
        "bytes" => |v, _| whole(v) && within(v, 0.0, 255.0) && spread(v) > 20.0,
        "duplicates" => |v, d| distinct(v, d) == 100,
        "half-duplicates" => |v, d| (900..1300).contains(&distinct(v, d)),
        "repeated-point" => |v, d| (900..1100).contains(&distinct(v, d)),
        "lattice" => |v, d| whole(v) && within(v, 0.0, 7.0) && d == 6,
        "quantised" => |v, _| v.iter().all(|v| (2.0 * v).fract() == 0.0),
        "curved" => |v, d| within(v, -1.0, 1.0) && nearest_of_first(v, d) < 2.5,
        "intrinsic-5" => |v, d| (0.5..8.0).contains(&nearest_of_first(v, d)),
        "intrinsic-10" => |v, d| (8.0..30.0).contains(&nearest_of_first(v, d)),
        "intrinsic-20" => |v, d| (20.0..60.0).contains(&nearest_of_first(v, d)),
        "intrinsic-40" => |v, d| (50.0..110.0).contains(&nearest_of_first(v, d)),
        "random-walks" => |v, d| deviations(v, d).1 > 8.0 * deviations(v, d).0,
        _ => return None,
    };
    Some(claim)
}

fn near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= 0.1 * wanted.abs()
}

fn within(values: &[f32], low: f32, high: f32) -> bool {
    values.iter().all(|v| (low..=high).contains(v))
}

fn whole(values: &[f32]) -> bool {
    values.iter().all(|v| v.fract() == 0.0)
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64
}

fn spread(values: &[f32]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|v| (f64::from(*v) - mean).powi(2));
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}

fn length(row: &[f32]) -> f64 {
    row.iter()
        .map(|v| f64::from(*v).powi(2))
        .sum::<f64>()
        .sqrt()
}

fn largest(values: &[f32]) -> f64 {
    values.iter().fold(0.0, |m, v| f64::from(v.abs()).max(m))
}

/// The median magnitude.
fn middle(values: &[f32]) -> f64 {
    let mut sizes: Vec<f32> = values.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f32::total_cmp);
    f64::from(sizes[sizes.len() / 2])
}

fn share(values: &[f32], dim: usize, is_counted: fn(&[f32]) -> bool) -> f64 {
    let rows = values.chunks(dim);
    rows.filter(|row| is_counted(row)).count() as f64 / (values.len() / dim) as f64
}

fn far_rows(values: &[f32], dim: usize, least: f64) -> usize {
    values.chunks(dim).filter(|row| length(row) > least).count()
}

/// The longest row over the median one.
fn length_ratio(values: &[f32], dim: usize) -> f64 {
    let lengths: Vec<f32> = values.chunks(dim).map(|row| length(row) as f32).collect();
    largest(&lengths) / middle(&lengths)
}

/// Smallest and largest standard deviation of a coordinate.
fn deviations(values: &[f32], dim: usize) -> (f64, f64) {
    let column = |i: usize| {
        values
            .iter()
            .skip(i)
            .step_by(dim)
            .copied()
            .collect::<Vec<f32>>()
    };
    let all = (0..dim).map(|i| spread(&column(i)));
    all.fold((f64::INFINITY, 0.0), |(low, high), s| {
        (low.min(s), high.max(s))
    })
}

fn distances_of_first(values: &[f32], dim: usize) -> Vec<f64> {
    let (first, rest) = values.split_at(dim);
    let distance = |row: &[f32]| {
        let difference: Vec<f32> = row.iter().zip(first).map(|(a, b)| a - b).collect();
        length(&difference)
    };
    rest.chunks(dim).map(distance).collect()
}

/// Most rows within a radius of one of the first 40.
fn largest_crowd(values: &[f32], dim: usize, radius: f64) -> usize {
    let crowd = |first: usize| {
        let distances = distances_of_first(&values[first * dim..], dim);
        distances.into_iter().filter(|d| *d < radius).count()
    };
    (0..40).map(crowd).max().unwrap_or(0)
}

fn nearest_of_first(values: &[f32], dim: usize) -> f64 {
    let distances = distances_of_first(values, dim);
    distances.into_iter().fold(f64::INFINITY, f64::min)
}

fn distinct(values: &[f32], dim: usize) -> usize {
    let rows = values.chunks(dim);
    let bits = rows.map(|row| row.iter().map(|v| v.to_bits()).collect::<Vec<u32>>());
    bits.collect::<HashSet<_>>().len()
}
