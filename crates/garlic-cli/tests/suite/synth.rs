//! `garlic synth`: any number of vectors like those of a data set.

use crate::common::{DIM, Lab};

#[test]
fn files_depend_on_the_seed_alone_and_have_the_asked_shape() {
    let lab = Lab::new();
    let make = |output: &str, more: &[&str]| {
        let base = ["synth", "points.npy", "-n", "3000", "-o", output, "--json"];
        lab.run(&[&base, more].concat()).expect(0).json()
    };
    let about = make(
        "a.fbin",
        &[
            "--threads",
            "1",
            "--queries",
            "q.fbin",
            "--query-count",
            "50",
        ],
    );
    assert_eq!(
        (&about[0]["points"], &about[0]["dim"]),
        (&3000.into(), &DIM.into())
    );
    make("b.fbin", &["--threads", "2"]);
    make("c.fbin", &["--seed", "1"]);
    make("d.npy", &["--type", "u8"]);
    make("e.parquet", &[]);
    let read = |name: &str| garlic_data::read_vectors(lab.path(name)).unwrap();
    let bytes = |name: &str| std::fs::read(lab.path(name)).unwrap();
    assert_eq!(bytes("a.fbin"), bytes("b.fbin"));
    assert_ne!(bytes("a.fbin"), bytes("c.fbin"));
    assert_eq!(read("e.parquet").to_f32(), read("a.fbin").to_f32());
    let (whole, queries) = (read("d.npy"), read("q.fbin"));
    assert_eq!((whole.rows(), whole.dim(), queries.rows()), (3000, DIM, 50));
    assert_eq!(whole.element(), garlic_data::Element::U8);
    let points = read("a.fbin").to_f32().into_owned();
    for query in queries.to_f32().chunks_exact(DIM) {
        assert!(points.chunks_exact(DIM).all(|point| point != query));
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let lab = Lab::new();
    for (more, told) in [
        (&["-o", "a.txt"][..], ".npy"),
        (&["-o", "a.fbin", "--type", "u8"][..], "--type says u8"),
        (
            &["-o", "a.u8bin", "--type", "u8", "--queries", "q.fbin"][..],
            "--type says u8",
        ),
        (&["-o", "a.u8bin"][..], "round them with --type u8"),
        (&["-o", "a.npy", "--queries", "a.npy"][..], "a file each"),
        (&["-o", "a.npy", "--queries", "./a.npy"][..], "a file each"),
    ] {
        let base = ["synth", "points.npy", "-n", "10"];
        lab.run(&[&base, more].concat()).expect_error(2, &[told]);
    }
    let whole: Vec<u8> = (0..900).map(|i| (i * 7919 % 251) as u8).collect();
    garlic_data::write_u8bin(lab.path("whole.u8bin"), &whole, 6).unwrap();
    let more = ["-o", "a.u8bin", "--queries", "q.fbin"];
    let base = ["synth", "whole.u8bin", "-n", "10"];
    lab.run(&[base, more].concat())
        .expect_error(2, &["use .npy"]);
    let base = [
        "synth",
        "points.npy",
        "-n",
        "10",
        "-o",
        "a.npy",
        "--spread",
        "0",
    ];
    let ran = lab.run(&base);
    assert!(ran.code != 0 && ran.stderr.contains("spread"), "{ran:#?}");
    assert!(!lab.path("a.npy").exists());
}
