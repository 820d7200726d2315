//! Range search: all points within a radius, or the share of them that was asked for.

use crate::testdata::truth::Recall;
use crate::testdata::{rows, uniform};
use garlic_ann::{Index, RangeSearch, Search};

/// Near and at the distance of neighbours, where estimates are as large as the radius.
#[test]
fn a_likely_range_finds_its_share_at_small_radii() {
    let dim = 24;
    let mut data = uniform(5000, dim, 8);
    for (i, value) in data.iter_mut().enumerate() {
        *value += (i / dim % 9) as f32;
    }
    let rows = rows(&data, dim);
    let index = Index::builder().seed(2).build(rows).unwrap();
    for neighbours in [1, 2, 10, 100] {
        let mut recall = Recall::default();
        for query in (0..5000).step_by(25).map(|row| rows.row(row)) {
            let exact = Search::new(neighbours).exact(true);
            let nearest = index.search(query, &exact).unwrap().hits;
            let radius = nearest[neighbours - 1].distance;
            let exact = index.range(query, &RangeSearch::new(radius)).unwrap();
            let likely = index
                .range(query, &RangeSearch::new(radius).recall(0.95))
                .unwrap();
            assert!(exact.exact && !likely.exact);
            assert!(exact.hits.len() >= neighbours);
            assert!(likely.hits.iter().all(|hit| exact.hits.contains(hit)));
            let share = likely.hits.len() as f64 / exact.hits.len() as f64;
            recall.0.push(share);
        }
        recall.assert_meets(0.95, &format!("within the distance of {neighbours}"));
    }
}
