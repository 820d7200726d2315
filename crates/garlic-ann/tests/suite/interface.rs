//! The index behind the trait that programs use for every kind of index.

use crate::testdata::truth::{nearest_rows, pairs};
use crate::testdata::{config, rows, sheet};
use garlic_ann::{Index, NeighborIndex, RangeSearch, Search};
use serde_json::Value;

#[test]
fn the_trait_tells_and_finds_what_the_index_does() {
    let values = sheet(1500, 12, 1);
    let base = rows(&values, 12);
    let config = config(&[("cells", "9"), ("code_bits", "4"), ("recall", "0.9")]);
    let mut index = Index::builder().config(config).build(base).unwrap();
    index.remove(&[3, 4]).unwrap();
    index.add(base.slice(3..4), &[5000]).unwrap();
    let any: &dyn NeighborIndex = &index;
    assert_eq!((any.dim(), any.len(), any.cells()), (12, 1499, 9));
    assert!(!any.is_empty() && any.takes_recall() && any.preset() == "default");
    assert_eq!(any.cell_sizes().iter().sum::<usize>(), 1499);
    assert_eq!((any.next_id(), any.ids().len()), (5001, 1499));
    assert!(any.contains(5000) && !any.contains(3));
    assert_eq!(any.get(5000).as_deref(), Some(base.row(3)));
    assert_eq!(any.to_bytes().unwrap(), index.to_bytes().unwrap());

    let parameters = any.parameters();
    let parameter = |key: &str| parameters.iter().find(|(name, _)| *name == key);
    assert_eq!(parameter("cells").unwrap().1, 9);
    assert_eq!(parameter("recall").unwrap().1, 0.9);
    let details = any.details();
    let detail = |key: &str| -> &Value { &details.iter().find(|d| d.0 == key).unwrap().1 };
    assert_eq!(
        (detail("code_bits"), detail("bins")),
        (&4.into(), &index.bins().into())
    );
    assert_eq!(detail("reads_everything"), true);
    assert!(
        detail("exhaustive")[0]["why"]
            .as_str()
            .unwrap()
            .contains("points")
    );

    let queries = base.slice(10..30);
    for search in [Search::new(5), Search::new(5).exact(true)] {
        let answers = any.search_batch(queries, &search).unwrap();
        for (query, answer) in queries.iter().zip(&answers) {
            assert_eq!(any.search(query, &search).unwrap(), *answer);
        }
        assert_eq!(answers, index.search_batch(queries, &search).unwrap());
    }
    let radius = nearest_rows(base, queries.row(0), 8)[7].0;
    let ranged = any.range_batch(queries, &RangeSearch::new(radius)).unwrap();
    assert!(pairs(&ranged[0]).len() >= 6);
    assert_eq!(any.route(queries.row(0), 2).unwrap().len(), 2);
    let shapes = any.shapes();
    assert_eq!((shapes.len(), shapes.dim()), (9, any.transform().out_dim()));
}
