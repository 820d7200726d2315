//! Tables and collections against a model, in memory, in files and in directories.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use garlic_ann::live::Options;
use garlic_ann::{Config, Index, Rows, Search};
use garlic_any::{AnyBuilder, AnyConfig, AnyIndex, Preset};
use garlic_core::Error;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

const DIM: usize = 3;

fn vector(seed: u64) -> [f32; DIM] {
    let at = |factor: u64| ((seed * factor + 7) % 61) as f32;
    [at(3) + seed as f32 / 64.0, at(11), at(17)]
}

fn vectors(seeds: &[u64]) -> Vec<f32> {
    seeds.iter().flat_map(|seed| vector(*seed)).collect()
}

/// Columns of some points: `year` is the seed, `lang` is missing for every third.
fn columns(seeds: &[u64]) -> RecordBatch {
    let year = Int64Array::from_iter_values(seeds.iter().map(|seed| *seed as i64));
    let lang = seeds.iter().map(|seed| match seed % 3 {
        0 => None,
        1 => Some("en"),
        _ => Some("de"),
    });
    let lang: StringArray = lang.collect();
    let columns: [(&str, ArrayRef); 2] = [("year", Arc::new(year)), ("lang", Arc::new(lang))];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true))).unwrap()
}

fn names(of: &[u64]) -> Ids {
    Ids::names(of.iter().map(|id| format!("p{id}")))
}

/// Identifiers of either kind.
fn ids(of: &[u64], named: bool) -> Ids {
    match named {
        true => names(of),
        false => Ids::Numbers(of.to_vec()),
    }
}

/// Every point with the seed of its vector and its row.
type Model = BTreeMap<u64, (u64, Option<u64>)>;

/// Checks a collection against the model in every way that it can be read.
fn check(collection: &Collection, model: &Model, named: bool) {
    let snapshot = collection.snapshot().unwrap();
    assert_eq!(snapshot.index().len(), model.len());
    check_table(&snapshot).unwrap();
    let known: Vec<u64> = model.keys().copied().collect();
    let numbers = snapshot.numbers(&ids(&known, named)).unwrap();
    for (number, (id, (seed, _))) in numbers.iter().zip(model) {
        let number = number.unwrap();
        assert_eq!(snapshot.index().get(number).unwrap(), vector(*seed));
        assert_eq!(snapshot.id(number), ids(&[*id], named).get(0));
    }
    let wanted = ["id", "year", "lang"].map(String::from);
    let rows = snapshot.columns(&numbers, &wanted).unwrap();
    let year = rows.column(1).as_primitive::<Int64Type>();
    let lang = rows.column(2).as_string::<i32>();
    for (at, (_, row)) in model.values().enumerate() {
        let expected = row.map(|seed| seed as i64);
        assert_eq!(year.is_valid(at).then(|| year.value(at)), expected);
        let expected = row.and_then(|seed| [None, Some("en"), Some("de")][seed as usize % 3]);
        assert_eq!(lang.is_valid(at).then(|| lang.value(at)), expected);
    }
    for (text, allows) in [
        (
            "lang = 'en'",
            (|row: Option<u64>| row.is_some_and(|seed| seed % 3 == 1)) as fn(_) -> _,
        ),
        ("lang IS NULL", |row| row.is_none_or(|seed| seed % 3 == 0)),
        ("year > 20 AND NOT lang = 'de'", |row| {
            row.is_some_and(|seed| seed > 20 && seed % 3 == 1)
        }),
    ] {
        let filter = snapshot.filter(text).unwrap();
        let search = Search::new(model.len().max(1)).exact(true).filter(filter);
        let answer = snapshot.index().search(&[0.0; DIM], &search).unwrap();
        let mut found: Vec<Id> = answer.hits.iter().map(|hit| snapshot.id(hit.id)).collect();
        found.sort();
        let expected = model.iter().filter(|(_, (_, row))| allows(*row));
        let mut expected: Vec<Id> = expected.map(|(id, _)| ids(&[*id], named).get(0)).collect();
        expected.sort();
        assert_eq!(found, expected, "{text}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Points, and whether they have columns.
    Add(Vec<u64>, bool),
    Upsert(Vec<u64>, bool),
    Update(Vec<u64>),
    Remove(Vec<u64>),
    Compact,
    Retrain,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let some = || prop::collection::btree_set(0_u64..40, 1..6);
    let some = || some().prop_map(|ids| ids.into_iter().collect::<Vec<u64>>());
    prop_oneof![
        4 => (some(), any::<bool>()).prop_map(|(ids, with)| Step::Add(ids, with)),
        3 => (some(), any::<bool>()).prop_map(|(ids, with)| Step::Upsert(ids, with)),
        2 => some().prop_map(Step::Update),
        3 => some().prop_map(Step::Remove),
        1 => Just(Step::Compact),
        1 => Just(Step::Retrain),
        2 => Just(Step::Reopen),
    ]
}

/// Makes the change in both. The model says whether it must be refused.
fn run(collection: &Collection, model: &mut Model, step: &Step, turn: u64, named: bool) {
    let seeds = |of: &[u64]| -> Vec<u64> { of.iter().map(|id| 41 * turn + id).collect() };
    match step {
        Step::Add(of, with) | Step::Upsert(of, with) => {
            let seeds = seeds(of);
            let (data, rows) = (vectors(&seeds), columns(&seeds));
            let data = Rows::new(&data, DIM).unwrap();
            let (own, rows) = (ids(of, named), with.then_some(&rows));
            if let Step::Upsert(..) = step {
                collection.upsert(data, &own, rows).unwrap();
            } else {
                let added = collection.add(data, Some(own.clone()), rows);
                if of.iter().any(|id| model.contains_key(id)) {
                    let error = added.unwrap_err();
                    let is_told =
                        matches!(error, Error::NameExists { .. } | Error::IdExists { .. });
                    assert!(is_told, "{error}");
                    return;
                }
                assert_eq!(added.unwrap(), own);
            }
            for (id, seed) in of.iter().zip(seeds) {
                model.insert(*id, (seed, with.then_some(seed)));
            }
        }
        Step::Update(of) => {
            let seeds = seeds(of);
            let data = vectors(&seeds);
            let done = collection.update(Rows::new(&data, DIM).unwrap(), &ids(of, named));
            if of.iter().any(|id| !model.contains_key(id)) {
                assert!(matches!(
                    done,
                    Err(Error::UnknownName { .. } | Error::UnknownId { .. })
                ));
                return;
            }
            done.unwrap();
            for (id, seed) in of.iter().zip(seeds) {
                if let Some(point) = model.get_mut(id) {
                    point.0 = seed;
                }
            }
        }
        Step::Remove(of) => {
            let before = model.len();
            model.retain(|id, _| !of.contains(id));
            let removed = collection.remove(&ids(of, named)).unwrap();
            assert_eq!(removed, before - model.len());
        }
        Step::Compact => collection.compact().unwrap(),
        Step::Retrain if model.is_empty() => {}
        Step::Retrain => collection.live().unwrap().retrain().unwrap(),
        Step::Reopen => {}
    }
}

fn first(named: bool) -> (AnyIndex, Model) {
    // In another order than that of the numbers.
    let of: Vec<u64> = (0..12).rev().map(|i| 3 * i).collect();
    let data = vectors(&of);
    let rows = FirstRows::new(of.len(), Some(ids(&of, named)), Some(&columns(&of))).unwrap();
    let mut builder = AnyBuilder::new(AnyConfig::new(Preset::Default)).threads(1);
    if let Some(numbers) = rows.numbers() {
        builder = builder.ids(numbers);
    }
    let (index, _) = builder.build(Rows::new(&data, DIM).unwrap()).unwrap();
    let model = of.iter().map(|id| (*id, (*id, Some(*id)))).collect();
    (rows.attach(index), model)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn every_change_keeps_names_and_columns(
        steps in prop::collection::vec(step(), 1..14),
        named: bool,
        begins_empty: bool,
        in_directory: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("index");
        // Most batches make a checkpoint, some stay in the log.
        let options = Options::new().log_limit(4000);
        let (mut index, mut model) = first(named);
        if begins_empty {
            index = Index::empty(DIM, Config::default()).unwrap().into();
            model.clear();
        }
        let mut collection = match in_directory {
            true => Collection::create(&place, &index, &options).unwrap(),
            false => index.into(),
        };
        if begins_empty {
            // The first points decide about names and columns.
            run(&collection, &mut model, &Step::Add(vec![5, 1, 9], true), 90, named);
        }
        check(&collection, &model, named);
        for (turn, step) in (1..).zip(&steps) {
            run(&collection, &mut model, step, turn, named);
            if let Step::Reopen = step {
                let before = collection.index().to_bytes().unwrap();
                drop(collection);
                collection = match in_directory {
                    true => Collection::open(&place, &options).unwrap(),
                    false => {
                        std::fs::write(&place, &before).unwrap();
                        verify(&place).unwrap();
                        match turn % 3 {
                            0 => AnyIndex::open(&place).unwrap().into(),
                            1 => AnyIndex::load(&place).unwrap().into(),
                            _ => AnyIndex::from_bytes(&before).unwrap().into(),
                        }
                    }
                };
            }
            check(&collection, &model, named);
        }
        if in_directory {
            check(&Collection::open_read_only(&place).unwrap(), &model, named);
        }
    }
}

#[test]
fn errors_say_what_the_index_takes() {
    let (index, _) = first(true);
    let collection = Collection::from(index);
    let data = vectors(&[1, 2]);
    let two = Rows::new(&data, DIM).unwrap();
    let error = |ids: Option<Ids>, columns: Option<&RecordBatch>| {
        let before = collection.snapshot().unwrap().index().len();
        let error = collection.add(two, ids, columns).unwrap_err().to_string();
        assert_eq!(collection.snapshot().unwrap().index().len(), before);
        error
    };
    assert!(error(Some(Ids::Numbers(vec![1, 2])), None).contains("have names"));
    assert!(error(None, None).contains("give each a name"));
    assert!(error(Some(Ids::names(["x", "x"])), None).contains("`x` comes twice"));
    assert!(error(Some(Ids::names(["x", ""])), None).contains("row 1 is empty"));
    assert!(error(Some(Ids::names(["x", "p3"])), None).contains("`p3` is there already"));
    assert!(error(Some(Ids::names(["x"])), None).contains("2 vectors but 1 identifiers"));
    let ids = || Some(Ids::names(["x", "y"]));
    assert!(error(ids(), Some(&columns(&[1]))).contains("2 vectors but 1 rows of columns"));
    let one = |name: &str, array: ArrayRef| RecordBatch::try_from_iter([(name, array)]).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let told = error(ids(), Some(&one("title", Arc::clone(&text))));
    assert!(
        told.contains("no column `title`; the columns are: year (int64), lang (text)"),
        "{told}"
    );
    let told = error(ids(), Some(&one("year", text)));
    assert!(
        told.contains("column `year` is int64, the rows that are given have text"),
        "{told}"
    );
    let twice: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let own = FirstRows::new(2, None, Some(&one("id", twice))).unwrap_err();
    assert!(own.to_string().contains("must not be called `id`"), "{own}");

    let snapshot = collection.snapshot().unwrap();
    let told = snapshot.filter("title = 'a'").unwrap_err().to_string();
    assert!(
        told.contains("the columns are: id (text), year (int64), lang (text)"),
        "{told}"
    );
    let told = snapshot
        .columns(&[Some(0)], &["title".into()])
        .unwrap_err()
        .to_string();
    assert!(told.contains("no column `title`"), "{told}");
    assert!(snapshot.filter_ids(&Ids::Numbers(vec![1])).is_err());

    let plain = Collection::from(Index::builder().threads(1).build(two).unwrap());
    assert!(
        plain
            .add(two, ids(), None)
            .unwrap_err()
            .to_string()
            .contains("are numbered")
    );
    let told = plain
        .add(two, None, Some(&columns(&[1, 2])))
        .unwrap_err()
        .to_string();
    assert!(told.contains("has no columns"), "{told}");
    assert_eq!(
        plain.add(two, None, None).unwrap(),
        Ids::Numbers(vec![2, 3])
    );
    assert!(plain.index().attachment().is_none());
}

#[test]
fn an_expression_is_evaluated_once_for_every_state() {
    let (index, _) = first(true);
    let collection = Collection::from(index);
    let one = collection.snapshot().unwrap().filter("year > 3").unwrap();
    let two = collection.snapshot().unwrap().filter("year > 3").unwrap();
    assert!(one == two, "the same filter, with its translations");
    collection.remove(&names(&[0])).unwrap();
    let three = collection.snapshot().unwrap().filter("year > 3").unwrap();
    assert!(one != three);
}

#[test]
fn masks_are_rows_as_they_were_given() {
    let allowed = |snapshot: &Snapshot, mask: &[bool]| -> Result<Vec<Id>, Error> {
        let search = Search::new(50)
            .exact(true)
            .filter(snapshot.filter_mask(mask)?);
        let answer = snapshot.index().search(&[0.0; DIM], &search)?;
        let mut found: Vec<Id> = answer.hits.iter().map(|hit| snapshot.id(hit.id)).collect();
        found.sort();
        Ok(found)
    };
    let pick =
        |rows: &[usize], of: usize| (0..of).map(|i| rows.contains(&i)).collect::<Vec<bool>>();
    for named in [true, false] {
        let (index, _) = first(named);
        let collection = Collection::from(index);
        let snapshot = collection.snapshot().unwrap();
        // Row 0 is point 33, row 11 is point 0.
        let mut expected: Vec<Id> = ids(&[33, 0], named).iter().collect();
        expected.sort();
        assert_eq!(allowed(&snapshot, &pick(&[0, 11], 12)).unwrap(), expected);
        for wrong in [11, 13, 34, 0] {
            let error = allowed(&snapshot, &vec![true; wrong]).unwrap_err();
            assert!(
                matches!(error, Error::MaskLength { rows: 12, .. }),
                "{error}"
            );
        }
        // Rows that were removed keep their entry, and new rows come behind.
        collection.remove(&ids(&[33], named)).unwrap();
        let data = vectors(&[7]);
        collection
            .add(Rows::new(&data, DIM).unwrap(), Some(ids(&[1], named)), None)
            .unwrap();
        let bytes = collection.index().to_bytes().unwrap();
        let reopened = Snapshot::new(AnyIndex::from_bytes(&bytes).unwrap()).unwrap();
        for snapshot in [collection.snapshot().unwrap(), reopened] {
            let mut expected: Vec<Id> = ids(&[0, 1], named).iter().collect();
            expected.sort();
            assert_eq!(
                allowed(&snapshot, &pick(&[0, 11, 12], 13)).unwrap(),
                expected
            );
            assert!(allowed(&snapshot, &[true; 12]).is_err());
        }
    }
    // Without a table, rows are in the order of the numbers.
    let data = vectors(&[1, 2, 3]);
    let build = |numbers: Option<Vec<u64>>| {
        let rows = FirstRows::new(3, numbers.map(Ids::Numbers), None).unwrap();
        let mut builder = AnyBuilder::new(AnyConfig::new(Preset::Default)).threads(1);
        if let Some(numbers) = rows.numbers() {
            builder = builder.ids(numbers);
        }
        let index = builder.build(Rows::new(&data, DIM).unwrap()).unwrap().0;
        Snapshot::new(rows.attach(index)).unwrap()
    };
    let numbers = |of: &[u64]| -> Vec<Id> { of.iter().map(|id| Id::Number(*id)).collect() };
    assert_eq!(
        allowed(&build(None), &[false, true, true]).unwrap(),
        numbers(&[1, 2])
    );
    let own = build(Some(vec![10, 20, 30]));
    assert!(own.table().is_none());
    assert_eq!(
        allowed(&own, &[false, true, true]).unwrap(),
        numbers(&[20, 30])
    );
    assert!(allowed(&own, &[true; 4]).is_err());
    assert_eq!(
        own.index().to_bytes().unwrap().len(),
        build(None).index().to_bytes().unwrap().len()
    );
    let turned = build(Some(vec![2, 0, 1]));
    assert_eq!(
        allowed(&turned, &[true, false, false]).unwrap(),
        numbers(&[2])
    );
}

#[test]
fn an_index_of_the_published_method_has_rows_too() {
    let of: Vec<u64> = (0..60).collect();
    let data = vectors(&of);
    let mut config = AnyConfig::new(Preset::Paper);
    config.set("initial_cells", "2").unwrap();
    config.set("epochs", "2").unwrap();
    let rows = FirstRows::new(60, Some(names(&of)), Some(&columns(&of))).unwrap();
    let (index, _) = AnyBuilder::new(config)
        .threads(1)
        .build(Rows::new(&data, DIM).unwrap())
        .unwrap();
    let index = rows.attach(index);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("paper.garlic");
    index.save(&path).unwrap();
    let summary = verify(&path).unwrap();
    assert_eq!(summary.sections.last().unwrap().kind, "TABLE");
    for opened in [
        AnyIndex::open(&path).unwrap(),
        AnyIndex::load(&path).unwrap(),
    ] {
        assert_eq!(opened, index);
        let snapshot = Snapshot::new(opened).unwrap();
        let filter = snapshot.filter("id = 'p7' OR year = 9").unwrap();
        let search = Search::new(5).exact(true).filter(filter);
        let answer = snapshot.index().search(&vector(7), &search).unwrap();
        let found: Vec<String> = answer
            .hits
            .iter()
            .map(|h| snapshot.id(h.id).to_string())
            .collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], "p7");
    }

    // It is changed by names, with the rows, in memory; a snapshot stays as it was.
    let collection = Collection::from(index);
    let before = collection.snapshot().unwrap();
    let new = vectors(&[60, 61]);
    let (new, given) = (Rows::new(&new, DIM).unwrap(), columns(&[60, 61]));
    let added = collection.add(new, Some(names(&[60, 61])), Some(&given));
    assert_eq!(added.unwrap(), names(&[60, 61]));
    assert_eq!(collection.remove(&names(&[7, 99])).unwrap(), 1);
    let moved = vectors(&[80]);
    collection
        .update(Rows::new(&moved, DIM).unwrap(), &names(&[9]))
        .unwrap();
    let after = collection.snapshot().unwrap();
    assert_eq!((before.index().len(), after.index().len()), (60, 61));
    let late = after.ids_where("year >= 60 OR id = 'p7' OR id = 'p9'");
    assert_eq!(late.unwrap(), names(&[9, 60, 61]));
    let search = Search::new(1).exact(true);
    let hit = after.index().search(&vector(80), &search).unwrap().hits[0];
    assert_eq!(after.id(hit.id).to_string(), "p9");
    check_table(&after).unwrap();
    assert!(matches!(collection.compact(), Err(Error::Unchanging)));
}

#[test]
fn damaged_tables_are_errors() {
    let (index, _) = first(true);
    let bytes = index.to_bytes().unwrap();
    let at = bytes.windows(3).position(|w| w == b"p33").unwrap();
    for (from, to) in [(at, b'q'), (at, 0xff)] {
        let mut wrong = bytes.clone();
        wrong[from] = to;
        assert!(
            AnyIndex::from_bytes(&wrong).is_err(),
            "the checksum sees it"
        );
    }
    // A mapped file is not checked as a whole: what Arrow finds wrong is an error, nothing panics.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.garlic");
    let start = bytes.len() - index.attachment().blocks().unwrap()[0].len();
    for at in (start..bytes.len()).step_by(7) {
        for to in [0, 0x7f, 0xff] {
            let mut wrong = bytes.clone();
            wrong[at] = to;
            std::fs::write(&path, &wrong).unwrap();
            let Ok(opened) = AnyIndex::open(&path) else {
                continue;
            };
            let Ok(snapshot) = Snapshot::new(opened) else {
                continue;
            };
            let _ = snapshot.ids();
            let _ = snapshot.filter("year > 3 AND lang = 'en'");
            let _ = snapshot.columns(&[Some(0), None], &["lang".into()]);
        }
    }
}

#[test]
fn filters_by_columns_reach_the_recall_of_filters_by_numbers() {
    let count = 6000;
    let stream = |seed: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / 16_777_216.0;
    let data: Vec<f32> = (0..count * 8).map(stream).collect();
    let rows = Rows::new(&data, 8).unwrap();
    let of: Vec<u64> = (0..count).collect();
    let first = FirstRows::new(rows.len(), Some(names(&of)), Some(&columns(&of))).unwrap();
    let (index, _) = AnyBuilder::new(AnyConfig::new(Preset::Default))
        .threads(1)
        .build(rows)
        .unwrap();
    let snapshot = Snapshot::new(first.attach(index)).unwrap();
    let by_columns = snapshot.filter("lang = 'en'").unwrap();
    let numbers: Vec<u64> = of.iter().copied().filter(|id| id % 3 == 1).collect();
    let by_numbers = garlic_core::Filter::ids(numbers);
    for query in (0..count as usize).step_by(300) {
        let search = |filter: &garlic_core::Filter| {
            let search = Search::new(10).recall(0.9).filter(filter.clone());
            snapshot.index().search(rows.row(query), &search).unwrap()
        };
        assert_eq!(search(&by_columns).hits, search(&by_numbers).hits);
    }
}
