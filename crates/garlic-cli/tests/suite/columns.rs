//! Points with names and columns: built, searched, changed and verified, in a file and in a directory.

use crate::common::{ASKED, Lab, MANY};
use serde_json::Value;

/// Names and columns of all points: every third is German, every tenth has no year.
fn lab_with_rows() -> Lab {
    let lab = Lab::with_default_index();
    let names: String = (0..MANY).map(|i| format!("page {i}\n")).collect();
    lab.write("names.txt", &names);
    let mut csv = "lang,year,title\n".to_owned();
    let mut jsonl = String::new();
    for i in 0..MANY {
        let lang = if i % 3 == 0 { "de" } else { "en" };
        let year = if i % 10 == 0 {
            String::new()
        } else {
            (1900 + i % 100).to_string()
        };
        csv.push_str(&format!("{lang},{year},\"Title, {i}\"\n"));
        jsonl.push_str(&format!(
            "{{\"lang\": \"{lang}\", \"flag\": {}}}\n",
            i % 2 == 0
        ));
    }
    lab.write("rows.csv", &csv);
    lab.write("rows.jsonl", &jsonl);
    lab
}

#[track_caller]
fn search(lab: &Lab, index: &str, more: &[&str]) -> Vec<Value> {
    let base = ["search", index, "asked.fvecs", "-o", "-", "--json"];
    let answers = lab.run(&[&base[..], more].concat()).expect(0).json();
    assert_eq!(answers.len(), ASKED);
    answers
}

fn numbers(answer: &Value) -> Vec<usize> {
    let ids = answer["ids"].as_array().unwrap().iter();
    ids.map(|id| {
        id.as_str()
            .unwrap()
            .strip_prefix("page ")
            .unwrap()
            .parse()
            .unwrap()
    })
    .collect()
}

#[test]
fn names_and_columns_in_a_file_and_in_a_directory() {
    let lab = lab_with_rows();
    let rows = [
        "--ids",
        "names.txt",
        "--columns-from",
        "rows.csv",
        "--seed",
        "1",
        "-q",
    ];
    for (index, live) in [("pages.garlic", None), ("pages-live", Some("--live"))] {
        let build = ["build", "many.npy", "-o", index];
        let live: Vec<&str> = live.into_iter().collect();
        lab.run(&[&build[..], &rows, &["--columns", "lang,year"], &live].concat())
            .expect(0);
        lab.run(&["verify", index]).expect(0);
        // The same points as by numbers.
        let plain = search(&lab, "many.garlic", &["-k", "3", "--exact"]);
        let named = search(&lab, index, &["-k", "3", "--exact"]);
        for (plain, named) in plain.iter().zip(&named) {
            let ids: Vec<usize> = plain["ids"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| id.as_u64().unwrap() as usize)
                .collect();
            assert_eq!(numbers(named), ids);
        }
        let wanted = [
            "-k",
            "4",
            "--filter",
            "lang = 'de' AND year >= 1950",
            "--columns",
            "year,lang",
        ];
        for answer in search(&lab, index, &wanted) {
            let found = numbers(&answer);
            assert!(
                found.len() == 4
                    && found
                        .iter()
                        .all(|i| i % 3 == 0 && i % 10 != 0 && i % 100 >= 50)
            );
            let years: Vec<u64> = answer["columns"]["year"]
                .as_array()
                .unwrap()
                .iter()
                .map(|y| y.as_u64().unwrap())
                .collect();
            assert_eq!(
                years,
                found
                    .iter()
                    .map(|i| 1900 + *i as u64 % 100)
                    .collect::<Vec<_>>()
            );
            assert_eq!(answer["columns"]["lang"][0], "de");
        }
        // Changes by name.
        lab.run(&["remove", index, "page 3", "nobody", "-q"])
            .expect(0);
        lab.write("allowed.txt", "page 3\npage 6\n");
        let found = search(&lab, index, &["--filter-ids", "allowed.txt"]);
        assert!(found.iter().all(|answer| numbers(answer) == [6]));
        lab.write(
            "new.txt",
            &(0..ASKED)
                .map(|i| format!("asked {i}\n"))
                .collect::<String>(),
        );
        lab.write("new.csv", &format!("year\n{}", "3000\n".repeat(ASKED)));
        let add = ["add", index, "asked.fvecs", "--ids", "new.txt", "-q"];
        lab.run(&[&add[..], &["--columns-from", "new.csv", "--batch", "3"]].concat())
            .expect(0);
        let found = search(
            &lab,
            index,
            &["-k", "1", "--filter", "year > 2500", "--exact"],
        );
        for (query, answer) in found.iter().enumerate() {
            assert_eq!(answer["ids"][0], format!("asked {query}"));
        }
        lab.run(&add)
            .expect_error(3, &["`asked 0` is there already"]);
        lab.run(&[&add[..], &["--update"]].concat()).expect(0);
        lab.run(&["compact", index, "-q"]).expect(0);
        lab.run(&["verify", index]).expect(0);
        let found = search(
            &lab,
            index,
            &["-k", "1", "--filter", "year > 2500", "--exact"],
        );
        assert!(found.iter().all(|answer| answer["ids"][0].is_string()));
    }
    // A file becomes a directory with its rows.
    lab.run(&["convert", "pages.garlic", "moved", "--live", "-q"])
        .expect(0);
    let found = search(&lab, "moved", &["-k", "1", "--filter", "year > 2500"]);
    assert!(
        found
            .iter()
            .all(|answer| answer["ids"].as_array().unwrap().len() == 1)
    );
}

#[test]
fn points_are_upserted_and_columns_listed() {
    let lab = lab_with_rows();
    let rows = ["--ids", "names.txt", "--columns-from", "rows.csv", "-q"];
    // One of the points exists.
    let names: String = (0..ASKED)
        .map(|i| format!("page {}\n", MANY - 1 + i))
        .collect();
    lab.write("some.txt", &names);
    lab.write("some.csv", &format!("year\n{}", "3000\n".repeat(ASKED)));
    for (index, live) in [("pages.garlic", None), ("pages-live", Some("--live"))] {
        let live: Vec<&str> = live.into_iter().collect();
        let build = ["build", "many.npy", "-o", index, "--columns", "lang,year"];
        lab.run(&[&build[..], &rows, &live].concat()).expect(0);
        let upsert = ["upsert", index, "asked.fvecs", "--batch", "3"];
        lab.run(&upsert)
            .expect_error(2, &["no identifiers", "--ids"]);
        let given = ["--ids", "some.txt", "--columns-from", "some.csv"];
        let told = &lab
            .run(&[&upsert[..], &given, &["--json"]].concat())
            .expect(0)
            .json()[0];
        assert_eq!(
            (&told["added"], &told["updated"]),
            (&(ASKED - 1).into(), &1.into())
        );
        assert_eq!(told["points"], MANY + ASKED - 1);
        let again = lab.run(&[&upsert[..], &given].concat()).expect(0).stdout;
        assert!(
            again.contains("upserted") && again.contains(&format!("{ASKED} of them existed")),
            "{again}"
        );
        let wanted = [
            "-k",
            "1",
            "--filter",
            "year = 3000",
            "--columns",
            "lang",
            "--exact",
        ];
        for (query, answer) in search(&lab, index, &wanted).iter().enumerate() {
            assert_eq!(numbers(answer), [MANY - 1 + query]);
            // What is not given is missing afterwards.
            assert!(answer["columns"]["lang"][0].is_null());
        }
        lab.run(&["verify", index]).expect(0);

        let about = &lab.run(&["inspect", index, "--json"]).expect(0).json()[0];
        assert_eq!(about["named"], true);
        assert_eq!(
            about["columns"][0],
            serde_json::json!({ "name": "lang", "type": "text" })
        );
        let text = lab.run(&["inspect", index]).expect(0).stdout;
        assert!(text.contains("lang (text), year (int64)"), "{text}");
        assert!(
            text.contains("identifiers") && text.contains("names"),
            "{text}"
        );
    }
    let about = &lab
        .run(&["inspect", "many.garlic", "--json"])
        .expect(0)
        .json()[0];
    assert_eq!(about["named"], false);
    assert_eq!(about["columns"], serde_json::json!([]));
}

#[test]
fn tables_of_other_formats_and_text() {
    let lab = lab_with_rows();
    let build = [
        "build",
        "many.npy",
        "-o",
        "x.garlic",
        "-q",
        "--columns-from",
        "rows.jsonl",
    ];
    lab.run(&build).expect(0);
    // Numbered points may have columns, too.
    for answer in search(
        &lab,
        "x.garlic",
        &["--filter", "flag AND id < 500", "-k", "3"],
    ) {
        let ids = answer["ids"].as_array().unwrap();
        assert!(
            ids.iter()
                .all(|id| id.as_u64().unwrap() % 2 == 0 && id.as_u64().unwrap() < 500)
        );
    }
    let rows = ["--ids", "names.txt", "--columns-from", "rows.csv", "-q"];
    lab.run(&[&["build", "many.npy", "-o", "pages.garlic"][..], &rows].concat())
        .expect(0);
    let csv = [
        "search",
        "pages.garlic",
        "asked.fvecs",
        "-k",
        "1",
        "-o",
        "-",
        "--columns",
        "title",
    ];
    let out = lab.run(&csv).expect(0).stdout;
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("query,rank,id,distance,title"));
    let line = lines.next().unwrap();
    assert!(
        line.starts_with("0,1,page ") && line.contains(",\"Title, "),
        "{line}"
    );
}

#[test]
fn mistakes_are_told() {
    let lab = lab_with_rows();
    let rows = ["--ids", "names.txt", "--columns-from", "rows.csv", "-q"];
    lab.run(&[&["build", "many.npy", "-o", "pages.garlic"][..], &rows].concat())
        .expect(0);
    let search = ["search", "pages.garlic", "asked.fvecs", "-o", "x.csv"];
    let run = |more: &[&str]| lab.run(&[&search[..], more].concat());
    run(&["--filter", "lng = 'en'"])
        .expect_error(3, &["no column `lng`", "lang (text), year (int64)"]);
    run(&["--filter", "year ="]).expect_error(3, &["filter expression"]);
    run(&["--columns", "author"]).expect_error(3, &["no column `author`"]);
    let table = ["search", "pages.garlic", "asked.fvecs", "-o", "x.npy"];
    lab.run(&table)
        .expect_error(2, &["neither names nor columns", ".csv"]);
    let build = ["build", "many.npy", "-o", "y.garlic"];
    let wrong = |more: &[&str], code: i32, parts: &[&str]| {
        lab.run(&[&build[..], more].concat())
            .expect_error(code, parts);
    };
    lab.write("short.csv", "a\n1\n");
    wrong(
        &["--columns-from", "short.csv"],
        3,
        &["short.csv", "1 rows for"],
    );
    wrong(
        &["--columns-from", "rows.csv", "--columns", "lang,author"],
        3,
        &["no column `author`", "lang, year, title"],
    );
    wrong(
        &["--columns-from", "rows.xls"],
        2,
        &["rows.xls", ".csv, .jsonl or .arrow"],
    );
    lab.write("twice.txt", &"same\n".repeat(MANY));
    wrong(&["--ids", "twice.txt"], 3, &["`same` comes twice"]);
    lab.run(&["remove", "many.garlic", "page 3"])
        .expect_error(2, &["`page 3`", "whole number"]);
}
