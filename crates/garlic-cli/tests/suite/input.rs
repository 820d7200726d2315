//! Vectors as people have them: Parquet, Arrow, archives, text, folders and standard input give the same index.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;

use crate::common::{DIM, Lab, POINTS, Ran};
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

/// The points of a lab and their identifiers, from 1000 on.
fn table(lab: &Lab) -> RecordBatch {
    let points = garlic_data::read_vectors(lab.path("points.npy")).unwrap();
    let values = points.to_f32();
    let row = |row: &[f32]| Some(row.iter().map(|v| Some(f64::from(*v))).collect::<Vec<_>>());
    let vectors = values.chunks(DIM).map(row);
    let ids: Vec<i64> = (1000..).take(POINTS).collect();
    let names: Vec<String> = ids.iter().map(|id| format!("n{id}")).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from(ids))),
        ("name", Arc::new(StringArray::from(names))),
        (
            "embedding",
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(vectors)),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(table: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), None).unwrap();
    writer.write(table).unwrap();
    writer.close().unwrap();
    bytes
}

/// Runs the program with these bytes on its standard input.
fn run_with(lab: &Lab, args: &[&str], input: &[u8]) -> Ran {
    let mut child = crate::common::command(args)
        .current_dir(lab.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that refuses its arguments reads nothing.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[test]
fn every_format_builds_the_same_index() {
    let lab = Lab::new();
    let table = table(&lab);
    let build = |args: &[&str], out: &str| {
        lab.run(&[&["build", "-o", out, "-q"], args].concat())
            .expect(0);
        std::fs::read(lab.path(out)).unwrap()
    };
    let wanted = build(&["points.npy"], "a.garlic");
    std::fs::write(lab.path("points.parquet"), parquet(&table)).unwrap();
    assert!(build(&["points.parquet"], "b.garlic") == wanted);

    std::fs::create_dir(lab.path("parts")).unwrap();
    for (number, first) in [(0, 0), (1, 100), (2, 200)] {
        let name = format!("parts/part-{number}.parquet");
        std::fs::write(lab.path(&name), parquet(&table.slice(first, 100))).unwrap();
    }
    assert!(build(&["parts", "--vectors", "embedding"], "c.garlic") == wanted);

    let points = garlic_data::read_vectors(lab.path("points.npy")).unwrap();
    let line = |row: &[f32]| row.iter().map(f32::to_string).collect::<Vec<_>>().join(";");
    let text = points
        .to_f32()
        .chunks(DIM)
        .map(line)
        .collect::<Vec<_>>()
        .join("\n");
    lab.write("points.csv", &text);
    assert!(build(&["points.csv"], "d.garlic") == wanted);
    assert!(build(&["points.csv", "--delimiter", ";"], "e.garlic") == wanted);

    let npy = std::fs::read(lab.path("points.npy")).unwrap();
    for (bytes, more) in [
        (&npy[..], &[][..]),
        (text.as_bytes(), &["--format", "csv"]),
        (&parquet(&table), &["--vectors", "embedding"]),
    ] {
        let args = [&["build", "-", "-o", "f.garlic", "-q"], more].concat();
        run_with(&lab, &args, bytes).expect(0);
        assert!(std::fs::read(lab.path("f.garlic")).unwrap() == wanted);
    }
    let told = lab
        .run(&["convert", "points.parquet", "back.npy", "--json"])
        .expect(0);
    assert_eq!(told.json()[0]["rows"], POINTS);
    assert_eq!(
        garlic_data::read_vectors(lab.path("back.npy")).unwrap(),
        points
    );
}

#[test]
fn identifiers_come_from_a_column_or_a_file() {
    let lab = Lab::new();
    let table = table(&lab);
    std::fs::write(lab.path("points.parquet"), parquet(&table.slice(0, 200))).unwrap();
    std::fs::write(lab.path("more.parquet"), parquet(&table.slice(200, 100))).unwrap();
    lab.run(&[
        "build",
        "points.parquet",
        "-o",
        "a.garlic",
        "--ids",
        "id",
        "-q",
    ])
    .expect(0);
    lab.run(&[
        "add",
        "a.garlic",
        "more.parquet",
        "--ids",
        "id",
        "--vectors",
        "embedding",
        "-q",
    ])
    .expect(0);
    let search = [
        "search",
        "a.garlic",
        "points.npy",
        "-k",
        "1",
        "--exact",
        "--output",
        "jsonl",
    ];
    let found = lab.run(&search).expect(0).json();
    assert_eq!(found.len(), POINTS);
    for (row, answer) in found.iter().enumerate() {
        assert_eq!(answer["ids"][0], 1000 + row);
    }
    let ids: String = (0..200).map(|i| format!("{}\n", 7 * i)).collect();
    lab.write("ids.txt", &ids);
    lab.run(&[
        "build",
        "points.parquet",
        "-o",
        "b.garlic",
        "--ids",
        "ids.txt",
        "-q",
    ])
    .expect(0);

    let build = |ids: &str| lab.run(&["build", "points.parquet", "-o", "c.garlic", "--ids", ids]);
    build("key").expect_error(
        3,
        &[
            "key",
            "no such file",
            "no such column",
            "id, name, embedding",
        ],
    );
    // A column of text has names, and other columns may be kept beside the vectors.
    build("name").expect(0);
    let search = |index: &str, more: &[&str]| {
        let base = [
            "search",
            index,
            "points.parquet",
            "-k",
            "1",
            "--output",
            "jsonl",
        ];
        lab.run(&[&base[..], more].concat()).expect(0).json()
    };
    let first = &search("c.garlic", &[])[0];
    assert!(first["ids"][0].is_string(), "{first}");
    let args = ["build", "points.parquet", "-o", "d.garlic", "--ids", "id"];
    lab.run(&[&args[..], &["--columns", "name"]].concat())
        .expect(0);
    let more = ["--filter", "name IS NOT NULL", "--columns", "name"];
    let first = &search("d.garlic", &more)[0];
    assert!(first["columns"]["name"][0].is_string(), "{first}");
    build("embedding").expect_error(
        3,
        &["`embedding`", "identifiers are whole numbers or strings"],
    );
}

#[test]
fn wrong_inputs_are_named() {
    let lab = Lab::with_index();
    let table = table(&lab);
    std::fs::write(lab.path("points.parquet"), parquet(&table)).unwrap();
    let build = |args: &[&str]| lab.run(&[&["build", "-o", "x.garlic"], args].concat());
    build(&["points.parquet", "--vectors", "nothing"]).expect_error(
        3,
        &["points.parquet", "no column `nothing`", "embedding (List"],
    );
    build(&["points.npy", "--vectors", "x"]).expect_error(3, &["points.npy", "no column `x`"]);
    build(&["points.npy", "--format", "tiff"]).expect_error(2, &["tiff", "parquet"]);
    build(&["points.npy", "--delimiter", "ab"]).expect_error(2, &["--delimiter", "one character"]);
    build(&["-", "--ids", "-"]).expect_error(2, &["standard input can be read once"]);
    build(&["-"]).expect_error(3, &["standard input", "nothing to read"]);
    run_with(&lab, &["build", "-", "-o", "x.garlic"], b"\0\x01\x02")
        .expect_error(3, &["standard input", "--format"]);
    std::fs::create_dir(lab.path("empty")).unwrap();
    build(&["empty"]).expect_error(3, &["empty", "no file in this folder"]);
    let cut = table.slice(0, 10).project(&[0, 1]).unwrap();
    std::fs::write(lab.path("empty/a.parquet"), parquet(&cut)).unwrap();
    build(&["empty"]).expect_error(3, &["a.parquet", "no column holds lists"]);
    assert!(!lab.path("x.garlic").exists());
}

#[test]
fn answers_are_printed_as_people_want_them() {
    let lab = Lab::with_index();
    let search = |more: &[&str]| {
        lab.run(
            &[
                &["search", "points.garlic", "queries.fvecs", "-k", "2"],
                more,
            ]
            .concat(),
        )
    };
    let readable = search(&[]).expect(0);
    let lines: Vec<&str> = readable.stdout.lines().collect();
    assert_eq!(lines.len(), 1 + 20 * 2);
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["query", "rank", "id", "distance"]
    );
    assert!(lines[1].trim_start().starts_with("0 ") && lines[2].starts_with("    "));
    assert!(readable.stderr.contains("20 queries"));
    let objects = search(&["--output", "jsonl"]).expect(0).json();
    assert_eq!(objects.len(), 20);
    assert_eq!(search(&["--json"]).expect(0).json(), objects);
    assert_eq!(
        search(&["-o", "csv"]).expect(0).stdout,
        search(&["-o", "-"]).expect(0).stdout
    );
    assert_eq!(search(&["-o", "txt"]).expect(0).stdout, readable.stdout);
    search(&["-o", "npy"]).expect_error(2, &["name a file", "hits.npy"]);
    let from_stdin = std::fs::read(lab.path("queries.fvecs")).unwrap();
    let args = [
        "search",
        "points.garlic",
        "-",
        "-k",
        "2",
        "--format",
        "fvecs",
    ];
    assert_eq!(
        run_with(&lab, &args, &from_stdin).expect(0).stdout,
        readable.stdout
    );

    lab.run(&["build", "--empty", "--dim", "6", "-o", "empty.garlic", "-q"])
        .expect(0);
    let none = lab
        .run(&["search", "empty.garlic", "queries.fvecs", "-k", "2"])
        .expect(0);
    assert!(none.stderr.contains("warning: the index has no points"));
    assert!(none.stdout.lines().nth(1).unwrap().contains("none"));
}
