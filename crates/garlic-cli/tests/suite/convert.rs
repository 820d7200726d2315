//! `garlic convert`, `build --live` and `build --ids`.

use crate::common::{DIM, Lab, MANY, POINTS, WIDE, assert_keys, clusters};
use garlic_data::Element;

#[test]
fn vectors_go_from_format_to_format() {
    let lab = Lab::new();
    let values = clusters(POINTS, DIM, 1);
    let mut from = "points.npy".to_owned();
    for to in ["a.fbin", "a.parquet", "a.fvecs", "a.npy"] {
        let told = &lab.run(&["convert", &from, to, "--json"]).expect(0).json()[0];
        assert_keys(told, &["output", "bytes"]);
        assert_eq!((&told["rows"], &told["dim"]), (&POINTS.into(), &DIM.into()));
        assert_eq!(
            (&told["kind"], &told["type"]),
            (&"vectors".into(), &"f32".into())
        );
        let read = garlic_data::read_vectors(lab.path(to)).unwrap();
        assert_eq!(*read.to_f32(), values);
        from = to.to_owned();
    }
    let text = lab
        .run(&["convert", "points.npy", "head.npy", "--limit", "7"])
        .expect(0)
        .stdout;
    assert!(text.contains("7 of dimension 6"), "{text}");
    let head = garlic_data::read_vectors(lab.path("head.npy")).unwrap();
    assert_eq!(*head.to_f32(), values[..7 * DIM]);

    // Whole numbers become bytes and come back.
    let whole: Vec<f32> = values.iter().map(|v| v.floor()).collect();
    garlic_data::write_fvecs(lab.path("whole.fvecs"), &whole, DIM).unwrap();
    for to in ["w.u8bin", "w.bvecs"] {
        lab.run(&["convert", "whole.fvecs", to, "-q"]).expect(0);
        let read = garlic_data::read_vectors(lab.path(to)).unwrap();
        assert_eq!(read.element(), Element::U8);
        lab.run(&["convert", to, "back.fvecs", "-q"]).expect(0);
        let back = garlic_data::read_vectors(lab.path("back.fvecs")).unwrap();
        assert_eq!(
            (back.element(), &*back.to_f32()),
            (Element::F32, &whole[..])
        );
    }
    lab.run(&["convert", "points.npy", "p.u8bin"])
        .expect_error(3, &["points.npy", "vector 0", "whole number"]);
    assert!(!lab.path("p.u8bin").exists());
}

#[test]
fn an_index_goes_between_file_and_directory() {
    let lab = Lab::with_default_index();
    let told = &lab
        .run(&["convert", "many.garlic", "live", "--live", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(told["kind"], "index directory");
    assert_eq!((&told["rows"], &told["dim"]), (&MANY.into(), &WIDE.into()));
    lab.run(&["convert", "live", "again.garlic"]).expect(0);
    let read = |name: &str| std::fs::read(lab.path(name)).unwrap();
    assert_eq!(read("many.garlic"), read("again.garlic"));
    // Also in place, which is how an old format becomes the newest.
    lab.run(&["convert", "again.garlic", "again.garlic", "-q"])
        .expect(0);
    assert_eq!(read("many.garlic"), read("again.garlic"));
    lab.run(&["convert", "live", "copy", "--live", "-q"])
        .expect(0);
    lab.run(&["verify", "copy"]).expect(0);

    lab.run(&["convert", "many.garlic", "live", "--live"])
        .expect_error(1, &["live", "already"]);
    lab.run(&["convert", "many.garlic", "live"])
        .expect_error(1, &["live", "directory"]);
    lab.run(&["convert", "many.garlic", "many.npy", "--live"])
        .expect_error(2, &["many.npy", "many.garlic"]);
    lab.run(&["convert", "many.garlic", "x.garlic", "--limit", "3"])
        .expect_error(2, &["--limit"]);
    lab.run(&["convert", "many.garlic", "missing/x"])
        .expect_error(1, &["missing"]);
    lab.run(&["convert", "many.npy", "x", "--live"])
        .expect_error(2, &["garlic build --live"]);
    lab.run(&["convert", "many.npy", "x.garlic"])
        .expect_error(2, &["x.garlic", ".fbin"]);
    lab.run(&["convert", "many.npy", "many.npy"])
        .expect_error(2, &["also read"]);
    lab.run(&["convert", "nothing", "x.npy"])
        .expect_error(3, &["nothing"]);
    lab.run(&["convert", ".", "x.garlic"])
        .expect_error(3, &["no index directory"]);
    lab.run(&["convert", "many.npy", "x.npy", "--limit", "0"])
        .expect_error(2, &["at least 1"]);
}

#[test]
fn files_of_every_format_version_become_the_newest() {
    let lab = Lab::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../garlic-ann/tests/fixtures");
    let mut count = 0;
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let old = entry.unwrap().path();
        if old.extension().is_none_or(|e| e != "index") {
            continue;
        }
        count += 1;
        let out = format!("{count}.garlic");
        lab.run(&["convert", old.to_str().unwrap(), &out, "-q"])
            .expect(0);
        let told = &lab.run(&["verify", &out, "--json"]).expect(0).json()[0];
        assert_eq!(told["version"], garlic_ann::store::FORMAT_VERSION);
        let (old, new) = (
            garlic_ann::Index::load(old).unwrap(),
            garlic_ann::Index::load(lab.path(&out)).unwrap(),
        );
        assert_eq!(old, new);
    }
    assert!(count > 2);
}

#[test]
fn a_build_makes_a_directory_and_takes_identifiers() {
    let lab = Lab::new();
    let ids: Vec<i64> = (0..POINTS as i64)
        .map(|i| 1_000_000_000_000 + 3 * i)
        .collect();
    let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
    std::fs::write(lab.path("ids.txt"), text).unwrap();
    let table = garlic_data::Ids::new(ids.clone(), 1).unwrap();
    garlic_data::write_npy_i64(lab.path("ids.npy"), &table).unwrap();
    for (list, out) in [("ids.txt", "a"), ("ids.npy", "b")] {
        let args = [
            "build",
            "points.npy",
            "-o",
            out,
            "--live",
            "--ids",
            list,
            "--json",
        ];
        let told = &lab.run(&args).expect(0).json()[0];
        assert_eq!(told["points"], POINTS);
        assert!(told["bytes"].as_u64().unwrap() > (POINTS * DIM) as u64);
        assert!(lab.path(out).join("CURRENT").is_file());
        let search = [
            "search",
            out,
            "points.npy",
            "-k",
            "1",
            "--exact",
            "-o",
            "hits.npy",
            "-q",
        ];
        lab.run(&search).expect(0);
        assert_eq!(
            garlic_data::read_ids(lab.path("hits.npy")).unwrap().data,
            ids
        );
        let eval = [
            "eval",
            out,
            "points.npy",
            "--query-file",
            "queries.fvecs",
            "--exact",
        ];
        let row = &lab
            .run(&[&eval[..], &["--json", "-q"]].concat())
            .expect(0)
            .json()[0];
        assert_eq!(row["recall_at_10"], 1.0);
    }
    let build = |more: &[&str]| lab.run(&[&["build", "points.npy", "-o"], more].concat());
    build(&["a", "--live"]).expect_error(1, &["a: ", "already"]);
    build(&["a"]).expect_error(1, &["directory"]);
    build(&["points.npy", "--live"]).expect_error(1, &["is a file"]);
    build(&["missing/x", "--live"]).expect_error(1, &["missing"]);
    std::fs::write(lab.path("few.txt"), "1\n2\n").unwrap();
    build(&["x", "--ids", "few.txt"]).expect_error(3, &["few.txt", "2", "300"]);
    std::fs::write(lab.path("same.txt"), "1\n".repeat(POINTS)).unwrap();
    build(&["x", "--ids", "same.txt"]).expect_error(3, &["1 comes twice"]);
    assert!(!lab.path("x").exists());
}
