//! `garlic build --memory`: the same index as without it, below the limit, whole or not at all.

use std::fs::{self, File};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Lab, Ran, clusters};
use arrow_array::builder::{Float32Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

/// Short calibration, so that tests are short.
const SHORT: [&str; 4] = ["--set", "calibration_queries=100", "--set", "graph=off"];

fn build(lab: &Lab, data: &str, output: &str, more: &[&str]) -> Ran {
    let base = ["build", data, "-o", output, "--json"];
    lab.run(&[&base, &SHORT[..], more].concat())
}

fn read(lab: &Lab, name: &str) -> Vec<u8> {
    fs::read(lab.path(name)).unwrap()
}

/// Writes lists as a Parquet file with names and years.
fn write_parquet(lab: &Lab, name: &str, first: usize, lists: &[Option<&[f32]>]) {
    let mut vectors = ListBuilder::new(Float32Builder::new());
    for list in lists {
        if let Some(list) = list {
            vectors.values().append_slice(list);
        }
        vectors.append(list.is_some());
    }
    let numbers = first..first + lists.len();
    let names: StringArray = numbers
        .clone()
        .map(|i| Some(format!("point {i}")))
        .collect();
    let years: Int64Array = numbers.map(|i| Some(1900 + i as i64 % 100)).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("embedding", Arc::new(vectors.finish())),
        ("name", Arc::new(names)),
        ("year", Arc::new(years)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    fs::create_dir_all(lab.path(name).parent().unwrap()).unwrap();
    let file = File::create(lab.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The limit that an error asks for, in MiB.
fn asked_for(ran: &Ran) -> u64 {
    let (_, rest) = ran.stderr.split_once("give at least ").expect(&ran.stderr);
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_index_is_the_same_and_memory_stays_below_the_limit() {
    let lab = Lab::new();
    let (rows, dim) = (90_000, 48);
    garlic_data::write_fbin(lab.path("large.fbin"), &clusters(rows, dim, 5), dim).unwrap();
    let plain = build(&lab, "large.fbin", "plain.garlic", &[])
        .expect(0)
        .json();
    let refused = build(&lab, "large.fbin", "small.garlic", &["--memory", "1MiB"]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(
        refused.stderr.contains("90000 vectors of dimension 48"),
        "{refused:#?}"
    );
    assert!(!lab.path("small.garlic").exists() && !lab.path("small.garlic.parts").exists());

    let limit = asked_for(&refused);
    let memory = format!("{limit}MiB");
    let more = ["--memory", &memory];
    let streamed = build(&lab, "large.fbin", "small.garlic", &more)
        .expect(0)
        .json();
    assert_eq!(read(&lab, "small.garlic"), read(&lab, "plain.garlic"));
    assert!(!lab.path("small.garlic.parts").exists());
    let peak = |about: &serde_json::Value| about["peak_rss_bytes"].as_u64();
    if let (Some(plain), Some(streamed)) = (peak(&plain[0]), peak(&streamed[0])) {
        assert!(streamed <= limit << 20, "{streamed} of {}", limit << 20);
        assert!(streamed < plain, "{streamed}, in memory {plain}");
    }
}

#[test]
fn tables_keep_their_names_and_columns() {
    let lab = Lab::new();
    let values = clusters(6000, 8, 5);
    let lists: Vec<Option<&[f32]>> = values.chunks_exact(8).map(Some).collect();
    write_parquet(&lab, "folder/a.parquet", 0, &lists[..3500]);
    write_parquet(&lab, "folder/b.parquet", 3500, &lists[3500..]);
    let columns = ["--ids", "name", "--columns", "year", "--metric", "cosine"];
    build(&lab, "folder", "plain.garlic", &columns).expect(0);
    let more = [&columns[..], &["--memory", "1GiB"]].concat();
    build(&lab, "folder", "streamed.garlic", &more).expect(0);
    assert_eq!(read(&lab, "streamed.garlic"), read(&lab, "plain.garlic"));
    for format in ["npy", "fvecs", "u8bin"] {
        let (data, plain) = (format!("data.{format}"), format!("{format}.garlic"));
        let whole: Vec<u8> = values.iter().map(|v| *v as u8).collect();
        match format {
            "npy" => garlic_data::write_npy_f32(lab.path(&data), &values, 8).unwrap(),
            "fvecs" => garlic_data::write_fvecs(lab.path(&data), &values, 8).unwrap(),
            _ => garlic_data::write_u8bin(lab.path(&data), &whole, 8).unwrap(),
        }
        build(&lab, &data, &plain, &[]).expect(0);
        build(&lab, &data, "streamed.garlic", &["--memory", "1GiB"]).expect(0);
        assert_eq!(
            read(&lab, "streamed.garlic"),
            read(&lab, &plain),
            "{format}"
        );
    }
}

#[test]
fn bad_rows_are_named_and_nothing_is_left() {
    let lab = Lab::new();
    let values = clusters(600, 8, 5);
    let good: Vec<Option<&[f32]>> = values.chunks_exact(8).map(Some).collect();
    for (number, (bad, told)) in [
        (vec![Some(&values[..7])], "row 0"),
        (vec![good[0], Some(&values[..7])], "row 1"),
        (vec![good[0], good[1], None], "row 2"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = format!("bad{number}");
        write_parquet(&lab, &format!("{folder}/a.parquet"), 0, &good);
        write_parquet(&lab, &format!("{folder}/b.parquet"), 600, &bad);
        let ran = build(&lab, &folder, "bad.garlic", &["--memory", "1GiB"]);
        ran.expect_error(3, &["b.parquet", told]);
        assert!(!lab.path("bad.garlic").exists() && !lab.path("bad.garlic.parts").exists());
    }
}

/// Begins a build and kills it when it has read all vectors.
fn kill_after_reading(lab: &Lab, data: &str, output: &str, more: &[&str]) {
    let base = ["build", data, "-o", output, "--memory", "1GiB", "--quiet"];
    let mut child = crate::common::command([&base, &SHORT[..], more].concat())
        .current_dir(lab.folder())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // All vectors were read when there is a journal.
    let journal = lab.path(&format!("{output}.parts")).join("journal.json");
    while !journal.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(journal.exists() && !lab.path(output).exists());
}

/// A killed build leaves no index, and goes on where it was.
#[test]
fn a_killed_build_goes_on() {
    let lab = Lab::new();
    let (rows, dim) = (20_000, 24);
    garlic_data::write_npy_f32(lab.path("large.npy"), &clusters(rows, dim, 5), dim).unwrap();
    build(&lab, "large.npy", "plain.garlic", &[]).expect(0);
    kill_after_reading(&lab, "large.npy", "new.garlic", &[]);

    let again = build(&lab, "large.npy", "new.garlic", &["--memory", "1GiB"]);
    again.expect_error(2, &["was stopped", "--resume"]);
    let other = ["--memory", "1GiB", "--resume", "--seed", "9"];
    build(&lab, "large.npy", "new.garlic", &other).expect_error(2, &["another build"]);
    let resume = ["--memory", "1GiB", "--resume"];
    build(&lab, "large.npy", "new.garlic", &resume).expect(0);
    assert_eq!(read(&lab, "new.garlic"), read(&lab, "plain.garlic"));
}

/// What is beside the vectors is read again, from wherever it comes.
#[test]
fn a_build_that_goes_on_keeps_its_names_and_columns() {
    let lab = Lab::new();
    let values = clusters(12_000, 16, 5);
    let lists: Vec<Option<&[f32]>> = values.chunks_exact(16).map(Some).collect();
    write_parquet(&lab, "a.parquet", 0, &lists);
    let lines = (0..lists.len()).map(|row| format!("{}\n", row % 7));
    let text = format!("group\n{}", lines.collect::<String>());
    fs::write(lab.path("groups.csv"), text).unwrap();
    for (number, more) in [
        &["--ids", "name", "--columns-from", "groups.csv"][..],
        &["--columns", "year"],
    ]
    .into_iter()
    .enumerate()
    {
        let output = format!("{number}.garlic");
        build(&lab, "a.parquet", "plain.garlic", more).expect(0);
        kill_after_reading(&lab, "a.parquet", &output, more);
        let more = [more, &["--memory", "1GiB", "--resume"]].concat();
        build(&lab, "a.parquet", &output, &more).expect(0);
        assert_eq!(read(&lab, &output), read(&lab, "plain.garlic"), "{more:?}");
    }
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let lab = Lab::new();
    for (more, told) in [
        (&["--memory", "much"][..], "number of bytes"),
        (&["--resume"][..], "--memory"),
        (&["--memory", "1GiB", "--live"][..], "--live"),
        (
            &["--memory", "1GiB", "--preset", "paper"][..],
            "preset default",
        ),
        (&["--memory", "1GiB", "--set", "spill=1.2"][..], "spill"),
    ] {
        let base = ["build", "points.npy", "-o", "x.garlic"];
        lab.run(&[&base, more].concat()).expect_error(2, &[told]);
    }
    let limited = ["--memory", "200MiB", "--set", "graph=on"];
    let values = clusters(200_000, 4, 5);
    garlic_data::write_npy_f32(lab.path("large.npy"), &values, 4).unwrap();
    let base = ["build", "large.npy", "-o", "x.garlic"];
    let ran = lab.run(&[&base, &limited[..]].concat());
    ran.expect_error(2, &["neighbour graph of 200000 vectors", "MiB"]);
}
