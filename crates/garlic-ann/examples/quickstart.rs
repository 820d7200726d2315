//! Build an index, search it, search among some of its points, change it, save it and open it again.
//!
//! `cargo run --release -p garlic-ann --example quickstart`; docs/guide/quickstart.md shows its lines beside others that do
//! the same.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use garlic_ann::{Error, Filter, Index, Rows, Search};

const DIM: usize = 16;

fn main() -> Result<(), Error> {
    // Ten thousand vectors on a winding curve; yours come from a file or a model.
    let data = curve(0..10_000);
    let more = curve(10_000..10_100);
    let ids: Vec<u64> = (10_000..10_100).collect();
    let path = std::env::temp_dir().join("quickstart.garlic");

    let vectors = Rows::new(&data, DIM)?;
    let mut index = Index::builder().seed(1).build(vectors)?;

    let query = vectors.row(1234);
    let answer = index.search(query, &Search::new(10).recall(0.95))?;
    for hit in &answer.hits {
        println!("{} at {}", hit.id, hit.distance);
    }
    let proved = index.search(query, &Search::new(10).exact(true))?;
    println!("{} distances", proved.stats.candidates);

    let even = Filter::predicate(|id| id % 2 == 0);
    let answer = index.search(query, &Search::new(10).filter(even))?;
    assert!(answer.hits.iter().all(|hit| hit.id % 2 == 0));

    index.add(Rows::new(&more, DIM)?, &ids)?;
    index.remove(&[17, 99])?;
    assert_eq!(index.len(), 10_098);

    index.save(&path)?;
    let index = Index::open(&path)?;
    assert!(index.contains(10_000) && !index.contains(17));
    Ok(())
}

fn curve(steps: std::ops::Range<u32>) -> Vec<f32> {
    steps
        .flat_map(|i| (0..DIM).map(move |j| (i as f32 * 0.001 * (j + 1) as f32).sin()))
        .collect()
}

#[test]
fn it_runs() {
    main().unwrap();
}
