//! Tests on a small index that is put together by hand, so that they do not depend on training.

mod damage;

use std::sync::Arc;

use garlic_core::Transform;
use garlic_core::file::FormatError;
use garlic_core::vectors::StoredVectors;
use garlic_linalg::{Matrix, random_stream, uniform_unit};

use crate::GaussianIndex;
use crate::bins::{Bins, Cell, Frame, Grid};
use crate::config::{Config, Covariance};
use crate::gaussians::{Factors, Gaussians};
use crate::index::{Coverage, Parts, Trained};
use crate::route::Router;
use crate::training::{Epoch, History, Refinement};

const COVARIANCES: [Covariance; 3] = [
    Covariance::Full,
    Covariance::Diagonal,
    Covariance::Isotropic,
];

/// A sound index of `points` vectors of dimension 5 in four cells of ranks 0 to 3, the first with the
/// last point only, the last one empty.
fn sample(points: usize, covariance: Covariance, seed: u64) -> GaussianIndex {
    const DIM: usize = 5;
    const CELLS: usize = 4;
    let mut random = random_stream(seed, 1);
    let mut floats = |count: usize, low: f32| -> Vec<f32> {
        (0..count)
            .map(|_| low + uniform_unit(&mut random) as f32)
            .collect()
    };
    let vectors = floats(points * DIM, -0.5);
    // A swap of two coordinates is a rotation whose effect is easy to see.
    let mut axes = Matrix::zeros(DIM, DIM);
    for axis in 0..DIM {
        axes.row_mut(axis)[[1, 0, 2, 3, 4][axis]] = 1.0;
    }
    let transform = Transform {
        mean: floats(DIM, 0.0),
        scale: vec![0.25; DIM],
        rotation: (covariance != Covariance::Diagonal).then_some(axes),
    };
    let stride = Factors::stride(covariance, DIM);
    let model = Gaussians {
        means: Matrix::from_vec(floats(CELLS * DIM, -1.0), DIM).unwrap(),
        factors: Factors::from_values(covariance, floats(CELLS * stride, 0.1)),
    };
    let cells = (0..CELLS)
        .map(|cell| sample_cell(cell, &vectors, &transform))
        .collect();
    let mut config = Config {
        seed,
        ..Config::default()
    };
    config.init.covariance = covariance;
    config.loss.tau = 1.0 / 3.0 + 2.0;
    let trained = Trained {
        router: Router::new(&model),
        model,
        cells,
        coverage: Coverage {
            share: 0.1 + 0.2,
            mean: 4.0 / 3.0,
        },
        history: History {
            points,
            epochs: vec![
                Epoch {
                    epoch: 1,
                    loss: 0.123_456_789_012_345_67,
                    refinement: Some(Refinement::default()),
                    ..Epoch::default()
                },
                Epoch::default(),
            ],
            ..History::default()
        },
    };
    let ids: Vec<u64> = (0..points as u64).map(|id| id * 3 + 1).collect();
    GaussianIndex::from(Parts {
        config,
        embedding: Default::default(),
        transform,
        trained,
        vectors: StoredVectors::F32(vectors.into()),
        ids: ids.into(),
    })
}

/// The cells of a sample.
fn trained(index: &mut GaussianIndex) -> &mut Trained {
    Arc::make_mut(&mut index.trained)
}

fn transform(index: &mut GaussianIndex) -> &mut Transform {
    Arc::make_mut(&mut index.transform)
}

/// Changes the identifiers of a sample.
fn change_ids(index: &mut GaussianIndex, change: impl FnOnce(&mut Vec<u64>)) {
    let mut ids = index.ids.to_vec();
    change(&mut ids);
    index.ids = ids.into();
}

/// Changes the stored vectors of a sample.
fn change_vectors(index: &mut GaussianIndex, change: impl FnOnce(&mut Vec<f32>)) {
    let StoredVectors::F32(values) = &index.vectors else {
        panic!("not f32");
    };
    let mut values = values.to_vec();
    change(&mut values);
    index.vectors = StoredVectors::F32(values.into());
}

/// Rank = number of the cell; every point is in cell 1 + position % 2, and the last one in cell 0 as well.
fn sample_cell(cell: usize, vectors: &[f32], transform: &Transform) -> Cell {
    let dim = transform.dim();
    let points = vectors.len() / dim;
    let rank = cell;
    let members: Vec<u32> = (0..points as u32)
        .filter(|position| match cell {
            0 => *position as usize == points - 1,
            1 | 2 => *position as usize % 2 == cell - 1,
            _ => false,
        })
        .collect();
    let mut basis = Matrix::zeros(rank, dim);
    for axis in 0..rank {
        basis.row_mut(axis)[axis + 1] = 1.0;
    }
    let centre = vec![0.125; dim];
    let mut local = Vec::new();
    let mut mapped = vec![0.0; dim];
    for position in &members {
        let at = *position as usize * dim;
        transform.apply(&vectors[at..at + dim], &mut mapped);
        local.extend((1..=rank).map(|axis| mapped[axis] - centre[axis]));
    }
    let grid = Grid::fit(&local, rank, 6, 4).unwrap();
    Cell {
        frame: Frame { centre, basis },
        bins: Bins::build(grid, &local, &members).unwrap(),
    }
}

/// Fails unless the error is an inconsistency of `section` that says `words`.
#[track_caller]
fn assert_inconsistent(error: &FormatError, expected: &str, words: &str) {
    match error {
        FormatError::Inconsistent { section, message } => {
            assert_eq!(*section, expected, "{message}");
            assert!(
                message.contains(words),
                "`{message}` does not say `{words}`"
            );
        }
        other => panic!("{other:?} is no inconsistency"),
    }
}

#[test]
fn bytes_round_trip() {
    for covariance in COVARIANCES {
        for points in [1, 2, 33, 500] {
            let index = sample(points, covariance, points as u64);
            let bytes = index.to_bytes().unwrap();
            assert_eq!(GaussianIndex::from_bytes(&bytes).unwrap(), index);
            assert_eq!(
                GaussianIndex::from_bytes(&bytes)
                    .unwrap()
                    .to_bytes()
                    .unwrap(),
                bytes
            );
        }
    }
}

#[test]
fn arrays_longer_than_a_chunk_round_trip() {
    let index = sample(40_001, Covariance::Full, 2);
    assert_eq!(
        GaussianIndex::from_bytes(&index.to_bytes().unwrap()).unwrap(),
        index
    );
}

#[test]
fn files_round_trip_and_are_the_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.garlic");
    let index = sample(50, Covariance::Full, 3);
    index.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), index.to_bytes().unwrap());
    assert_eq!(GaussianIndex::open(&path).unwrap(), index);
}

#[test]
fn every_section_is_aligned_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.garlic");
    let index = sample(50, Covariance::Full, 3);
    index.save(&path).unwrap();
    let summary = GaussianIndex::verify(&path).unwrap();
    assert_eq!(summary.version, 2);
    assert_eq!(summary.file_bytes, index.to_bytes().unwrap().len() as u64);
    assert_eq!((summary.dim, summary.points, summary.cells), (5, 50, 4));
    let names: Vec<_> = summary
        .sections
        .iter()
        .map(|section| section.kind)
        .collect();
    assert_eq!(
        names,
        [
            "META", "SPACE", "MEANS", "FACTORS", "FRAMES", "BINS", "VECTORS", "IDS"
        ]
    );
    for section in &summary.sections {
        assert_eq!(section.offset % 64, 0);
    }
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["sections"][7]["length"], 400);
    assert_eq!(json["sections"][6]["length"], 1000);
}

#[test]
fn a_number_that_json_has_not_is_refused_when_saving() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nan.garlic");
    let mut index = sample(5, Covariance::Full, 3);
    trained(&mut index).history.epochs[0].loss = f64::NAN;
    let error = index.save(&path).unwrap_err().to_string();
    assert!(
        error.contains("not finite") && error.contains("nan.garlic"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
