//! `garlic add`, `remove` and `compact`, on files and on directories.

use crate::common::{DIM, Lab, MANY, MORE, POINTS, WIDE, assert_keys, clusters};
use serde_json::json;

#[test]
fn points_are_added_updated_and_removed_in_files_and_directories() {
    let lab = Lab::with_live_index();
    let numbers: String = (0..MORE).map(|i| format!("{}\n", 9000 + i)).collect();
    lab.write("more.txt", &numbers);
    for index in ["many.garlic", "live"] {
        assert!(lab.nearest(index).1 > 0.0);
        let add = ["add", index, "more.npy", "--batch", "200"];
        let told = &lab.run(&[&add[..], &["--json"]].concat()).expect(0).json()[0];
        assert_keys(told, &["index", "seconds", "per_second", "drift.rebuild"]);
        assert_eq!(told["added"], MORE);
        assert_eq!(told["updated"], 0);
        assert_eq!(told["first_id"], MANY);
        assert_eq!(told["points"], MANY + MORE);
        assert_eq!(told["dim"], WIDE);
        assert_eq!(told["batches"], 3);
        assert_eq!(told["drift"]["added"], MORE);
        assert_eq!(lab.nearest(index), (MANY as u64, 0.0));

        let named = [&add[..], &["--ids", "more.txt"]].concat();
        let ran = lab.run(&named).expect(0);
        for word in ["added", "500 in", "a second", "points", "7,000"] {
            assert!(ran.stdout.contains(word), "{}", ran.stdout);
        }
        lab.run(&named)
            .expect_error(3, &[index, "9000 is there already"]);
        let update = [&named[..], &["--update", "--json"]].concat();
        let told = &lab.run(&update).expect(0).json()[0];
        assert_eq!(
            (&told["added"], &told["updated"]),
            (&0.into(), &MORE.into())
        );
        assert_eq!(told["points"], MANY + 2 * MORE);
        assert!(told["first_id"].is_null());

        let upsert = ["upsert", index, "more.npy", "--ids", "more.txt", "--json"];
        let told = &lab.run(&upsert).expect(0).json()[0];
        assert_eq!(
            (&told["added"], &told["updated"]),
            (&0.into(), &MORE.into())
        );
        assert_eq!(told["points"], MANY + 2 * MORE);

        let told = &lab
            .run(&["remove", index, "6000", "6000", "77777", "--json"])
            .expect(0)
            .json()[0];
        assert_keys(told, &["index", "seconds", "drift.removed"]);
        assert_eq!((&told["asked"], &told["removed"]), (&2.into(), &1.into()));
        assert_eq!(told["points"], MANY + 2 * MORE - 1);
        assert_eq!(lab.nearest(index), (9000, 0.0));
        let ran = lab.run(&["remove", index, "--ids", "more.txt"]).expect(0);
        assert!(ran.stdout.contains("500 of 500"), "{}", ran.stdout);
        assert!(lab.nearest(index).1 > 0.0);
        lab.run(&["verify", index]).expect(0);
    }
    // The same changes give the same index, wherever it is kept.
    lab.run(&["convert", "live", "flat.garlic", "--quiet"])
        .expect(0);
    let read = |name: &str| garlic_ann::Index::load(lab.path(name)).unwrap();
    let (file, flat) = (read("many.garlic"), read("flat.garlic"));
    let sorted = |index: &garlic_ann::Index| {
        let mut ids = index.ids();
        ids.sort_unstable();
        ids
    };
    assert_eq!(sorted(&file), sorted(&flat));
    for id in sorted(&file) {
        assert_eq!(file.get(id), flat.get(id));
    }
}

#[test]
fn all_points_may_go_and_others_come() {
    let lab = Lab::with_live_index();
    let all: String = (0..MANY).map(|i| format!("{i}\n")).collect();
    lab.write("all.txt", &all);
    for index in ["many.garlic", "live"] {
        let told = &lab
            .run(&["remove", index, "--ids", "all.txt", "--json"])
            .expect(0)
            .json()[0];
        assert_eq!(
            (&told["removed"], &told["points"]),
            (&MANY.into(), &0.into())
        );
        lab.run(&["verify", index]).expect(0);
        lab.run(&["inspect", index]).expect(0);
        let told = &lab.run(&["remove", index, "5", "--json"]).expect(0).json()[0];
        assert_eq!(told["removed"], 0);
        lab.run(&["add", index, "more.npy", "--quiet"]).expect(0);
        assert_eq!(lab.nearest(index).1, 0.0);
    }
}

#[test]
fn compacting_empties_the_log() {
    let lab = Lab::with_live_index();
    lab.run(&["add", "live", "more.npy", "--quiet"]).expect(0);
    lab.run(&["remove", "live", "1", "2", "3", "--quiet"])
        .expect(0);
    let before = lab.nearest("live");
    let about = &lab.run(&["inspect", "live", "--json"]).expect(0).json()[0];
    assert_eq!(about["directory"]["generation"], 1);
    assert!(about["directory"]["log_bytes"].as_u64().unwrap() > 32);

    let told = &lab.run(&["compact", "live", "--json"]).expect(0).json()[0];
    assert_keys(
        told,
        &["index", "bytes_before", "bytes", "seconds", "drift"],
    );
    assert_eq!(told["points"], MANY + MORE - 3);
    let about = &lab.run(&["inspect", "live", "--json"]).expect(0).json()[0];
    assert_eq!(about["directory"]["generation"], 2);
    assert_eq!(about["directory"]["log_bytes"], 32);
    assert_eq!(about["changes"], MORE + 3);
    assert_eq!(lab.nearest("live"), before);
    let text = lab.run(&["compact", "live"]).expect(0).stdout;
    assert!(text.contains("points") && text.contains("was"), "{text}");

    // A file has nothing to compact and stays as it is.
    let bytes = std::fs::read(lab.path("many.garlic")).unwrap();
    lab.run(&["compact", "many.garlic"]).expect(0);
    assert_eq!(std::fs::read(lab.path("many.garlic")).unwrap(), bytes);
    lab.run(&["compact", "nothing"])
        .expect_error(3, &["nothing"]);
}

#[test]
fn data_that_have_moved_are_told_in_one_line() {
    let lab = Lab::with_live_index();
    // Not so many that the index would train itself.
    let far: Vec<f32> = (clusters(MANY / 4, WIDE, 9).iter().enumerate())
        .map(|(i, v)| 40.0 * v * (i % 7) as f32)
        .collect();
    garlic_data::write_npy_f32(lab.path("far.npy"), &far, WIDE).unwrap();
    let quiet = lab.run(&["add", "live", "more.npy"]).expect(0).stdout;
    assert!(!quiet.contains("rebuild"), "{quiet}");
    let told = lab.run(&["add", "live", "far.npy"]).expect(0).stdout;
    let lines = told.lines().filter(|l| l.contains("a rebuild would pay"));
    assert_eq!(lines.count(), 1, "{told}");
    let about = lab.run(&["inspect", "live"]).expect(0).stdout;
    assert!(about.contains("a rebuild would pay"), "{about}");
}

#[test]
fn identifiers_come_from_standard_input_and_tables() {
    let lab = Lab::with_live_index();
    std::fs::write(lab.path("in.txt"), "5\n6\n").unwrap();
    let mut command = crate::common::command(["remove", "live", "--ids", "-", "--json"]);
    let input = std::fs::File::open(lab.path("in.txt")).unwrap();
    let ran = crate::common::finish(command.current_dir(lab.folder()).stdin(input));
    assert_eq!(ran.expect(0).json()[0]["removed"], 2);
    let table = garlic_data::Ids::new(vec![7, 8, 9, 5], 2).unwrap();
    for name in ["t.ivecs", "t.ibin", "t.npy"] {
        garlic_data::write_ids(lab.path(name), &table).unwrap();
        let args = ["remove", "live", "10", "--ids", name, "--json"];
        let told = &lab.run(&args).expect(0).json()[0];
        let removed = if name == "t.ivecs" { 4 } else { 0 };
        assert_eq!(
            (&told["asked"], &told["removed"]),
            (&5.into(), &removed.into())
        );
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_an_index_stays_one() {
    let lab = Lab::with_live_index();
    std::fs::create_dir(lab.path("elsewhere")).unwrap();
    std::fs::rename(lab.path("many.garlic"), lab.path("elsewhere/i")).unwrap();
    std::os::unix::fs::symlink("elsewhere/i", lab.path("link")).unwrap();
    lab.run(&["remove", "link", "3", "-q"]).expect(0);
    assert!(lab.path("link").symlink_metadata().unwrap().is_symlink());
    let about = &lab
        .run(&["inspect", "elsewhere/i", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(about["points"], MANY - 1);
}

#[test]
fn the_published_method_takes_changes_in_its_file() {
    let lab = Lab::with_index();
    let more = clusters(80, DIM, 9);
    garlic_data::write_npy_f32(lab.path("new.npy"), &more, DIM).unwrap();
    let done = lab.run(&["add", "points.garlic", "new.npy", "--batch", "50", "--json"]);
    let told = &done.expect(0).json()[0];
    assert_eq!(
        (&told["added"], &told["first_id"]),
        (&json!(80), &json!(POINTS))
    );
    assert_eq!(
        (&told["points"], &told["drift"]),
        (&json!(POINTS + 80), &json!(null))
    );
    lab.run(&["add", "points.garlic", "new.npy"]).expect(0);
    lab.write(
        "some.txt",
        &(370..450).map(|i| format!("{i}\n")).collect::<String>(),
    );
    let done = lab.run(&[
        "upsert",
        "points.garlic",
        "new.npy",
        "--ids",
        "some.txt",
        "--json",
    ]);
    assert_eq!(done.expect(0).json()[0]["updated"], 80);
    let done = lab.run(&["remove", "points.garlic", "0", "1", "9999", "--json"]);
    assert_eq!(done.expect(0).json()[0]["removed"], 2);
    lab.run(&["verify", "points.garlic"]).expect(0);
    let about = &lab
        .run(&["inspect", "points.garlic", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(about["points"], POINTS + 158);
    let search = ["search", "points.garlic", "new.npy", "-k", "1", "--exact"];
    let found = lab.run(&[&search[..], &["-o", "-", "--json"]].concat());
    for line in found.expect(0).json() {
        assert_eq!(line["distances"][0], 0.0, "{line}");
    }
}
