//! Build an index, save it, open it again, search it.
//!
//! `cargo run --release -p garlic-ann --example quickstart`

use garlic_ann::{Error, Index, Rows, Search};

const DIM: usize = 16;

fn main() -> Result<(), Error> {
    // Ten thousand vectors on a winding curve; yours come from a file or a model.
    let data: Vec<f32> = (0..10_000)
        .flat_map(|i| (0..DIM).map(move |j| (i as f32 * 0.001 * (j + 1) as f32).sin()))
        .collect();
    let vectors = Rows::new(&data, DIM)?;

    let index = Index::builder().seed(1).build(vectors)?;

    let path = std::env::temp_dir().join("quickstart.garlic");
    index.save(&path)?;
    let index = Index::open(&path)?;

    let query = vectors.row(1234);
    let answer = index.search(query, &Search::new(5).recall(0.95))?;
    show(&answer);
    // The true neighbours, with proof.
    let exact = index.search(query, &Search::new(5).exact(true))?;
    show(&exact);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
fn show(answer: &garlic_ann::Answer) {
    for hit in &answer.hits {
        println!("{:6} at {:.4}", hit.id, hit.distance);
    }
    println!("{} exact distances were computed", answer.work.candidates);
}
