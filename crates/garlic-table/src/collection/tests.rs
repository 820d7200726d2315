//! Changes that wait for each other.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array};

use super::*;

fn years(of: &[i64]) -> RecordBatch {
    let years: ArrayRef = Arc::new(Int64Array::from(of.to_vec()));
    RecordBatch::try_from_iter([("year", years)]).unwrap()
}

fn collection() -> Collection {
    let config = garlic_ann::Config::default();
    let collection = Collection::from(Index::empty(2, config).unwrap());
    let rows = Rows::new(&[0.0, 1.0, 2.0, 3.0], 2).unwrap();
    let ids = Ids::names(["a", "b"]);
    collection
        .add(rows, Some(ids), Some(&years(&[1, 2])))
        .unwrap();
    collection
}

/// Time in which a change that does not wait for its turn would have gone too far.
const LONG: Duration = Duration::from_millis(50);

#[test]
fn a_removal_by_an_expression_sees_the_changes_before_its_turn() {
    let collection = collection();
    thread::scope(|scope| {
        let turn = collection.turn().unwrap();
        let removed = scope.spawn(|| collection.remove_where("year < 5").unwrap());
        thread::sleep(LONG);
        // `a` is replaced, and stays. This is what `upsert` does in its turn.
        let (ids, rows) = (Ids::names(["a"]), Rows::new(&[4.0, 5.0], 2).unwrap());
        let columns = years(&[9]);
        let index = collection.index();
        let change = Change::put(&index, 1, Some(&ids), Some(&columns), true).unwrap();
        collection.apply(Kind::Upsert, rows, &change).unwrap();
        drop(turn);
        assert_eq!(removed.join().unwrap(), 1);
    });
    let left = collection.snapshot().unwrap().ids();
    assert_eq!(left, Ids::names(["a"]));
    assert!(collection.remove_where("month = 1").is_err());
}

#[test]
fn a_change_that_is_cancelled_while_it_waits_is_not_made() {
    let collection = collection();
    let flag = Arc::new(AtomicBool::new(false));
    let ids = Ids::names(["a"]);
    let rows = || Rows::new(&[7.0, 7.0], 2).unwrap();
    let changes: [&(dyn Fn() -> Result<()> + Sync); 4] = [
        &|| collection.upsert(rows(), &ids, None),
        &|| collection.update(rows(), &ids),
        &|| collection.remove(&ids).map(drop),
        &|| collection.remove_where("id = 'a'").map(drop),
    ];
    thread::scope(|scope| {
        let turn = collection.turn().unwrap();
        let waiting = changes.map(|change| {
            let cancel = Cancel::new(Arc::clone(&flag));
            scope.spawn(move || cancel.scope(change))
        });
        thread::sleep(LONG);
        flag.store(true, Relaxed);
        drop(turn);
        for change in waiting {
            assert!(matches!(change.join().unwrap(), Err(Error::Cancelled)));
        }
    });
    let index = collection.index();
    assert_eq!((index.len(), index.get(0)), (2, Some(vec![0.0, 1.0])));
}
