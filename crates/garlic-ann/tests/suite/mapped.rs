//! An index that is opened where it lies is the index that was saved, and the file is never touched.

use std::fs;

use crate::testdata::small;
use garlic_ann::{Index, Search};

#[test]
fn mapped_and_loaded_answer_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    for (kind, index) in small::indexes() {
        index.save(&path).unwrap();
        let (opened, loaded) = (Index::open(&path).unwrap(), Index::load(&path).unwrap());
        assert_eq!(opened, index, "{kind}");
        assert_eq!(loaded, index, "{kind}");
        assert_eq!(opened.to_bytes().unwrap(), fs::read(&path).unwrap());
        let expected = small::search_all(&index);
        assert_eq!(small::search_all(&opened), expected, "{kind}");
        assert_eq!(small::search_all(&loaded), expected, "{kind}");

        let (mapped, read) = (opened.memory(), loaded.memory());
        assert_eq!(loaded.mapped_bytes(), 0);
        assert!(opened.mapped_bytes() >= mapped.vectors + mapped.ids + mapped.codes);
        assert_eq!((mapped.vectors, mapped.ids), (read.vectors, read.ids));
        // Nothing but the change of coordinates and what searches derive is kept in memory.
        let fresh = Index::open(&path).unwrap();
        let memory = fresh.memory();
        let kept = memory.total - fresh.mapped_bytes();
        assert_eq!(kept, memory.rotation, "{kind}");
    }
}

#[test]
fn saving_never_touches_a_mapped_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let kinds = small::indexes();
    for ((_, old), (_, new)) in kinds.iter().zip(kinds.iter().rev()) {
        let answers = small::search_all(old);
        old.save(&path).unwrap();
        let opened = Index::open(&path).unwrap();
        // Before anything of it was read.
        let clone = opened.clone();
        new.save(&path).unwrap();
        assert_eq!(small::search_all(&opened), answers);
        assert_eq!(opened, *old);
        assert_eq!(Index::open(&path).unwrap(), *new);
        // Over the file that replaced its own, then without any file.
        opened.save(&path).unwrap();
        assert_eq!(Index::verify(&path).unwrap().points, old.len());
        let again = Index::open(&path).unwrap();
        again.save(&path).unwrap();
        fs::remove_file(&path).unwrap();
        drop(opened);
        assert_eq!(small::search_all(&clone), answers);
        assert_eq!(again, *old);
    }
}

#[test]
fn threads_share_a_mapped_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = small::plain("u8", "8");
    index.save(&path).unwrap();
    let opened = Index::open(&path).unwrap();
    // What is derived at the first search is derived by whoever comes first.
    let search = Search::new(5).exact(true);
    let expected = index.search(&[80.0, 90.0, 99.0], &search).unwrap().hits;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let found = opened.clone().search(&[80.0, 90.0, 99.0], &search).unwrap();
                assert_eq!(found.hits, expected);
                small::search_all(&opened);
            });
        }
    });
}
