//! Real data sets, where this machine has them: shapes, and ground truth that agrees.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use garlic_data::{Dataset, Ids, check_truth, data_dir, list_datasets};

/// Straight to standard error: what `eprintln!` says in a test that passes is never shown.
fn not_tested(path: &Path) {
    let message = format!(
        "*** NOT TESTED: {} is absent; set GARLIC_DATA ***\n",
        path.display()
    );
    std::io::stderr().write_all(message.as_bytes()).unwrap();
}

/// A data set's file; says so loudly when it is absent.
fn dataset_dir(name: &str) -> Option<PathBuf> {
    let path = data_dir().join(format!("{name}.hdf5"));
    if path.is_file() {
        return Some(path);
    }
    not_tested(&path);
    None
}

#[test]
fn truth_of_fashion_mnist_agrees() {
    const QUERIES: usize = 50;
    let Some(path) = dataset_dir("fashion-mnist-784-euclidean") else {
        return;
    };
    let data = Dataset::open(&path).unwrap();
    assert_eq!((data.train.rows(), data.train.dim()), (60_000, 784));
    assert!(data.train.is_mapped());
    let neighbors = data.neighbors.unwrap();
    let head = neighbors.data[..QUERIES * neighbors.cols].to_vec();
    let head = Ids::new(head, neighbors.cols).unwrap();
    let queries = data.test.unwrap().head(QUERIES).unwrap();
    let check = check_truth(&data.train.to_f32(), 784, &queries.to_f32(), &head).unwrap();
    assert_eq!(check.first_disagreement, None);
    assert_eq!(check.agree, QUERIES * 100);
}

#[test]
fn distances_of_every_data_set_are_those_of_its_neighbours() {
    const QUERIES: usize = 20;
    for name in [
        "fashion-mnist-784-euclidean",
        "mnist-784-euclidean",
        "photosift1m-128-euclidean",
    ] {
        let Some(path) = dataset_dir(name) else {
            continue;
        };
        let data = Dataset::open(&path).unwrap();
        let (train, test) = (data.train, data.test.unwrap());
        let (neighbors, distances) = (data.neighbors.unwrap(), data.distances.unwrap());
        let dim = train.dim();
        let (mut a, mut b) = (vec![0.0; dim], vec![0.0; dim]);
        for query in 0..QUERIES {
            test.row_f32(query, &mut a);
            for (id, given) in neighbors.row(query).iter().zip(distances.row(query)) {
                train.row_f32(*id as usize, &mut b);
                let terms = a.iter().zip(&b).map(|(x, y)| f64::from(x - y).powi(2));
                let distance = terms.sum::<f64>().sqrt();
                let gap = (distance - f64::from(*given)).abs();
                assert!(
                    gap <= 1e-4 * distance.max(1.0),
                    "{name}: {distance} and {given}"
                );
            }
        }
    }
}

#[test]
fn the_folder_lists() {
    let folder = data_dir();
    if !folder.is_dir() {
        not_tested(&folder);
        return;
    }
    for entry in list_datasets(&folder).unwrap() {
        if entry.name.ends_with("-euclidean") {
            let info = entry.info.unwrap();
            assert!(info.rows > 0 && info.dim > 0 && info.has_truth, "{info:?}");
        }
    }
}
