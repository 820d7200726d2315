//! Points that come and go: searches stay exact where everything is probed, and cells follow their points.

use std::collections::BTreeMap;

use crate::common::{build, config, pairs, sheet, short};
use garlic_linalg::{random_stream, uniform_below, uniform_unit};
use garlic_paper::{Config, Error, Filter, GaussianIndex, Metric, NeighborIndex, Rows, Search};

const DIM: usize = 6;

fn rows(values: &[f32]) -> Rows<'_> {
    Rows::new(values, DIM).unwrap()
}

/// What an index must hold: the vector of every identifier.
type Points = BTreeMap<u64, Vec<f32>>;

/// Everything that can be said about an index and its points without knowing how it came to be.
fn check(index: &GaussianIndex, points: &Points, label: &str) {
    assert_eq!(index.len(), points.len(), "{label}");
    let mut ids = index.ids();
    ids.sort_unstable();
    assert!(ids.iter().eq(points.keys()), "{label}");
    let everything = |k: usize| Search::new(k).probes(index.cells()).bins(1.0);
    for (id, vector) in points.iter().step_by(17) {
        assert_eq!(index.get(*id).as_ref(), Some(vector), "{label}");
        let mut expected: Vec<(f32, u64)> = (points.iter())
            .map(|(id, row)| (garlic_simd::l2_squared(vector, row).sqrt(), *id))
            .collect();
        expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let answer = index.search(vector, &everything(9)).unwrap();
        assert_eq!(
            pairs(&answer.hits),
            expected[..9.min(expected.len())],
            "{label}"
        );
        // A point that several cells list counts once.
        assert_eq!(answer.stats.candidates, points.len() as u64, "{label}");
        let odd = everything(3).filter(Filter::predicate(|id| id % 2 == 1));
        let found = index.search(vector, &odd).unwrap().hits;
        expected.retain(|(_, id)| id % 2 == 1);
        assert_eq!(pairs(&found), expected[..3.min(expected.len())], "{label}");
        for rho in [0.1, 0.4] {
            let few = Search::new(1).probes(1).bins(rho);
            let cell = index.route(vector, 1).unwrap()[0] as usize;
            let bins = &index.cell(cell).bins;
            let budget = bins.budget(rho as f32, index.config().search.bin_budget);
            let most: usize = {
                let mut sizes: Vec<usize> = (0..bins.occupied().len())
                    .map(|b| bins.members_of(b).len())
                    .collect();
                sizes.sort_unstable_by(|a, b| b.cmp(a));
                sizes.iter().take(budget).sum()
            };
            let candidates = index.search(vector, &few).unwrap().stats.candidates;
            assert!(
                candidates as usize <= most,
                "{label}: {candidates} of {most}"
            );
        }
    }
    let members: usize = (0..index.cells())
        .map(|c| index.cell(c).bins.members().len())
        .sum();
    let coverage = index.coverage();
    assert!(
        (coverage.mean - members as f64 / points.len() as f64).abs() < 1e-12,
        "{label}"
    );
    assert!((0.0..=1.0).contains(&coverage.share), "{label}");
}

/// Twelve changes of all sorts and sizes, the same for the same seed.
fn change_at_random(index: &mut GaussianIndex, points: &mut Points, seed: u64) {
    let mut random = random_stream(seed, 77);
    for step in 0..12 {
        let count = [1, 3, 40][uniform_below(&mut random, 3)];
        let shift = [0.0, 0.0, 90.0][uniform_below(&mut random, 3)];
        let fresh: Vec<f32> = (sheet(count, DIM, seed * 100 + step).iter())
            .map(|v| v + shift)
            .collect();
        let known: Vec<u64> = points.keys().copied().collect();
        let mut some: Vec<u64> = (0..count)
            .map(|_| known[uniform_below(&mut random, known.len())])
            .collect();
        some.sort_unstable();
        some.dedup();
        let next = index.next_id();
        let new: Vec<u64> = (next..).take(count).collect();
        match uniform_below(&mut random, 4) {
            0 => index.add(rows(&fresh), &new).unwrap(),
            1 => {
                some.truncate(points.len() - 1);
                assert_eq!(index.remove(&some).unwrap(), some.len());
                some.iter().for_each(|id| drop(points.remove(id)));
                continue;
            }
            2 => index
                .update(rows(&fresh).slice(0..some.len()), &some)
                .unwrap(),
            _ => {
                let mixed = [&some[..some.len().div_ceil(2)], &new].concat();
                index.upsert(rows(&fresh), &mixed[..count]).unwrap();
                let given = mixed[..count].iter().zip(fresh.chunks(DIM));
                points.extend(given.map(|(id, v)| (*id, v.to_vec())));
                continue;
            }
        }
        let given = match points.contains_key(&new[0]) || index.contains(new[0]) {
            true => new,
            false => some,
        };
        points.extend(
            given
                .into_iter()
                .zip(fresh.chunks(DIM).map(<[f32]>::to_vec)),
        );
    }
}

#[test]
fn everything_probed_is_exact_after_any_changes() {
    for (seed, covariance) in [(1, "full"), (2, "diagonal"), (3, "isotropic"), (4, "full")] {
        let mut settings: Config = short();
        garlic_paper::config::Configuration::set(&mut settings, "covariance", covariance).unwrap();
        let data = sheet(300, DIM, seed);
        let mut index = build(settings, &data, DIM);
        let mut points: Points = (0..).zip(data.chunks(DIM).map(<[f32]>::to_vec)).collect();
        check(&index, &points, "built");
        change_at_random(&mut index, &mut points, seed);
        check(&index, &points, covariance);

        // A changed index is written and read like any other.
        let bytes = index.to_bytes().unwrap();
        let mut again = GaussianIndex::from_bytes(&bytes).unwrap();
        assert_eq!(again, index);
        change_at_random(&mut index, &mut points.clone(), seed + 10);
        change_at_random(&mut again, &mut points, seed + 10);
        assert_eq!(again.to_bytes().unwrap(), index.to_bytes().unwrap());
        check(&again, &points, "read and changed");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changed.garlic");
        again.save(&path).unwrap();
        assert_eq!(GaussianIndex::verify(&path).unwrap().points, points.len());
        let mut mapped = GaussianIndex::open(&path).unwrap();
        mapped.remove(&[*points.keys().next().unwrap()]).unwrap();
        assert_eq!(mapped.len(), points.len() - 1);
    }
}

/// Recall@1 over the queries and mean candidates.
fn measure(index: &GaussianIndex, data: &[f32], queries: &[f32], probes: usize) -> (f64, f64) {
    let search = Search::new(1).probes(probes).bins(0.5);
    let (mut found, mut candidates, mut count) = (0.0, 0.0, 0.0);
    for query in queries.chunks(DIM) {
        let answer = index.search(query, &search).unwrap();
        let best = crate::common::brute_force(data, query, 1)[0].0;
        found += f64::from(u8::from(
            answer.hits.first().is_some_and(|h| h.distance <= best),
        ));
        candidates += answer.stats.candidates as f64;
        count += 1.0;
    }
    (found / count, candidates / count)
}

/// The recall of a curve of (recall, candidates) at some number of candidates, between its points.
fn at(curve: &[(f64, f64)], candidates: f64) -> f64 {
    let after = curve.iter().position(|(_, c)| *c >= candidates);
    match after {
        Some(0) => curve[0].0 * candidates / curve[0].1,
        None => curve[curve.len() - 1].0,
        Some(i) => {
            let ((r0, c0), (r1, c1)) = (curve[i - 1], curve[i]);
            r0 + (r1 - r0) * (candidates - c0) / (c1 - c0)
        }
    }
}

#[test]
fn half_added_online_is_nearly_as_good_as_built_from_all() {
    let data = sheet(1600, DIM, 8);
    let queries = sheet(200, DIM, 9);
    let settings = [
        ("initial_cells", "20"),
        ("epochs", "30"),
        ("batch", "400"),
        ("warmup_epochs", "6"),
        ("refine_every", "12"),
        ("split_threshold", "0.04"),
    ];
    let whole = build(config(&settings), &data, DIM);
    let half = data.len() / 2;
    let mut online = build(config(&settings), &data[..half], DIM);
    let before = online.cells();
    for (number, part) in data[half..].chunks(200 * DIM).enumerate() {
        let first = (half / DIM + number * 200) as u64;
        let ids: Vec<u64> = (first..first + (part.len() / DIM) as u64).collect();
        online.add(rows(part), &ids).unwrap();
    }
    assert!(online.cells() >= before);
    let curve = |index: &GaussianIndex| -> Vec<(f64, f64)> {
        (1..=12)
            .map(|probes| measure(index, &data, &queries, probes))
            .collect()
    };
    let (built, grown) = (curve(&whole), curve(&online));
    for candidates in [40.0, 80.0, 160.0] {
        let (a, b) = (at(&built, candidates), at(&grown, candidates));
        assert!(
            b > a - 0.04,
            "{b} against {a} at {candidates} candidates\n{built:?}\n{grown:?}"
        );
    }
}

#[test]
fn points_that_come_to_a_new_place_get_cells_of_their_own() {
    let data = sheet(400, DIM, 10);
    let few = config(&[
        ("initial_cells", "12"),
        ("epochs", "4"),
        ("split_threshold", "0.05"),
    ]);
    let mut index = build(few, &data, DIM);
    let far: Vec<f32> = sheet(400, DIM, 11).iter().map(|v| v + 400.0).collect();
    let ids: Vec<u64> = (400..800).collect();
    let one = Search::new(1).probes(1).bins(1.0);
    let candidates = |index: &GaussianIndex, values: &[f32]| -> f64 {
        let queries = values.chunks(DIM).map(|q| index.search(q, &one).unwrap());
        let all: u64 = queries.map(|answer| answer.stats.candidates).sum();
        all as f64 / (values.len() / DIM) as f64
    };
    let (before, usual) = (index.cells(), candidates(&index, &data));
    index.add(rows(&far), &ids).unwrap();
    assert!(index.cells() > before, "{before} cells");
    // The cells of the old points stay as they are, and none of them lies with the new ones.
    assert_eq!(candidates(&index, &data), usual);
    assert!(candidates(&index, &far) <= 400.0);
    let cell = index.route(&far[..DIM], 1).unwrap()[0] as usize;
    let members = index.cell(cell).bins.members().iter();
    assert!(
        members
            .clone()
            .all(|m| index.id_at(*m as usize).unwrap() >= 400)
    );
    // When they go, so do their cells.
    let most = index.cells();
    assert_eq!(index.remove(&ids).unwrap(), 400);
    assert!(index.cells() < most, "{} of {most} cells", index.cells());
    let points: Points = (0..).zip(data.chunks(DIM).map(<[f32]>::to_vec)).collect();
    check(&index, &points, "without them");
}

#[test]
fn what_is_not_touched_stays() {
    let data = sheet(600, DIM, 12);
    let index = build(short(), &data, DIM);
    let mut next = index.clone();
    next.add(rows(&data[..DIM]), &[1000]).unwrap();
    assert_eq!((index.len(), next.len()), (600, 601));
    let same = (0..index.cells().min(next.cells()))
        .filter(|c| index.model().mean(*c) == next.model().mean(*c))
        .count();
    assert!(same + 6 >= index.cells() && next.model() != index.model());
    // What came goes again: the cells are nearly where they were. Some points may have changed their cells meanwhile.
    assert_eq!(next.remove(&[1000]).unwrap(), 1);
    assert_eq!(next.cells(), index.cells());
    let means = next
        .model()
        .means
        .as_slice()
        .iter()
        .zip(index.model().means.as_slice());
    assert!(means.clone().all(|(a, b)| (a - b).abs() < 0.05));
    assert!((next.coverage().share - index.coverage().share).abs() < 0.01);
}

#[test]
fn changes_that_cannot_be_made_change_nothing() {
    let data = sheet(60, DIM, 13);
    let mut index = build(short(), &data, DIM);
    let before = index.clone();
    let one = rows(&data[..DIM]);
    assert!(matches!(
        index.add(one, &[7]),
        Err(Error::IdExists { id: 7 })
    ));
    assert!(matches!(
        index.update(one, &[70]),
        Err(Error::UnknownId { id: 70 })
    ));
    assert!(matches!(
        index.add(one, &[70, 71]),
        Err(Error::IdCount { .. })
    ));
    assert!(matches!(
        index.upsert(one, &[1 << 63]),
        Err(Error::IdTooLarge { .. })
    ));
    let flat = Rows::new(&data[..4], 2).unwrap();
    assert!(matches!(
        index.add(flat, &[70, 71]),
        Err(Error::VectorDimension { .. })
    ));
    let bad = [f32::NAN; DIM];
    assert!(matches!(
        index.add(rows(&bad), &[70]),
        Err(Error::NotFinite { .. })
    ));
    let all: Vec<u64> = (0..60).collect();
    assert!(matches!(index.remove(&all), Err(Error::LastPoints)));
    assert_eq!(index.remove(&[]).unwrap(), 0);
    assert_eq!(index.remove(&[99]).unwrap(), 0);
    index.add(rows(&[]), &[]).unwrap();
    assert_eq!(index, before);
    assert_eq!(index.remove(&all[1..]).unwrap(), 59);
    assert_eq!((index.len(), index.ids()), (1, vec![0]));
    index.add(rows(&data[DIM..]), &all[1..]).unwrap();
    assert_eq!(index.len(), 60);
}

#[test]
fn other_metrics_take_points_too() {
    let data = sheet(200, DIM, 14);
    let mut random = random_stream(15, 1);
    let fresh: Vec<f32> = (0..20 * DIM)
        .map(|_| uniform_unit(&mut random) as f32)
        .collect();
    let ids: Vec<u64> = (200..220).collect();
    for metric in [Metric::Cosine, Metric::InnerProduct] {
        let builder = GaussianIndex::builder()
            .config(short())
            .metric(metric)
            .threads(1);
        let mut index = builder.build(rows(&data)).unwrap();
        index.add(rows(&fresh), &ids).unwrap();
        let everything = Search::new(5).probes(index.cells()).bins(1.0);
        for query in fresh.chunks(DIM).take(5) {
            let expected = index
                .search(query, &Search::new(5).exact(true))
                .unwrap()
                .hits;
            assert_eq!(index.search(query, &everything).unwrap().hits, expected);
        }
        if metric == Metric::InnerProduct {
            let long = [1e4; DIM];
            assert!(matches!(
                index.add(rows(&long), &[900]),
                Err(Error::TooLong { .. })
            ));
        }
    }
}
