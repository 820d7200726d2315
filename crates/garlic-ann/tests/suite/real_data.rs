//! Recall and exactness on real vectors and their own queries.
//!
//! These tests need data sets and are ignored unless asked for; without the files they fail.
//!
//!     cargo test --release -p garlic-ann --test suite real_data:: -- --ignored

use crate::testdata::truth::{Recall, nearest_rows, pairs};
use garlic_ann::{Index, Rows, Search};
use garlic_data::{Dataset, data_dir};

/// Rows of the base set that are used.
const POINTS: usize = 20_000;
const QUERIES: usize = 300;

fn check(name: &str) {
    let path = data_dir().join(format!("{name}.hdf5"));
    let absent = format!("{} is absent; set GARLIC_DATA", path.display());
    assert!(path.exists(), "{absent}");
    let data = Dataset::open(&path).unwrap();
    let dim = data.train.dim();
    let values = data.train.head(POINTS).unwrap().into_f32();
    let asked = data.test.unwrap().head(QUERIES).unwrap().into_f32();
    let (base, queries) = (
        Rows::new(&values, dim).unwrap(),
        Rows::new(&asked, dim).unwrap(),
    );
    let index = Index::builder().seed(1).build(base).unwrap();
    for query in queries.slice(0..50).iter() {
        let answer = index.search(query, &Search::new(10).exact(true)).unwrap();
        assert_eq!(pairs(&answer), nearest_rows(base, query, 10), "{name}");
    }
    for target in [0.8, 0.9, 0.95, 0.99] {
        let search = Search::new(10).recall(target);
        assert!(!index.reads_everything(10, target), "{name} {target}");
        let recall = Recall::of_rows(&index, base, queries, &search);
        recall.assert_meets(target, name);
    }
}

#[test]
#[ignore = "needs the data set fashion-mnist-784-euclidean"]
fn fashion_mnist() {
    check("fashion-mnist-784-euclidean");
}

#[test]
#[ignore = "needs the data set photosift1m-128-euclidean"]
fn photosift() {
    check("photosift1m-128-euclidean");
}
