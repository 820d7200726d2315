//! Cosine and inner product from the command line: taken from the data, named by a flag, never mixed up.

use crate::common::{DIM, Lab, POINTS, QUERIES, clusters};
use hdf5_pure::{AttrValue, FileBuilder};

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let terms = a.iter().zip(b);
    terms.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// `angular.hdf5`: the points and queries of the lab, with the true neighbours of the cosine.
fn angular(lab: &Lab) {
    let (train, test) = (clusters(POINTS, DIM, 1), clusters(QUERIES, DIM, 2));
    let truth =
        garlic_data::ground_truth_by(garlic_data::Metric::Cosine, &train, DIM, &test, 10).unwrap();
    let neighbors: Vec<i32> = truth.ids.iter().map(|id| *id as i32).collect();
    let mut builder = FileBuilder::new();
    let mut floats = |name, values: &[f32]| {
        let rows = (values.len() / DIM) as u64;
        builder
            .create_dataset(name)
            .with_f32_data(values)
            .with_shape(&[rows, DIM as u64]);
    };
    floats("train", &train);
    floats("test", &test);
    builder
        .create_dataset("neighbors")
        .with_i32_data(&neighbors)
        .with_shape(&[QUERIES as u64, 10]);
    builder.set_attr("distance", AttrValue::String("angular".into()));
    std::fs::write(lab.path("angular.hdf5"), builder.finish().unwrap()).unwrap();
}

#[test]
fn the_data_set_names_the_metric_unless_a_flag_does() {
    let lab = Lab::new();
    angular(&lab);
    let built = lab
        .run(&["build", "angular.hdf5", "-o", "a.garlic"])
        .expect(0);
    assert!(built.stderr.contains("metric cosine, as the data set says"));
    assert!(built.stdout.contains("cosine"), "{}", built.stdout);
    let about = lab.run(&["inspect", "a.garlic", "--json"]).expect(0).json();
    assert_eq!(
        (&about[0]["metric"], &about[0]["dim"]),
        (&"cosine".into(), &DIM.into())
    );
    let rows = lab.run(&["eval", "a.garlic", "angular.hdf5", "--exact", "--json"]);
    assert_eq!(rows.expect(0).json()[0]["recall_at_10"], 1.0);

    // A flag wins, and so does a parameter.
    let other = [
        ["--metric", "euclidean", "e.garlic"],
        ["--set", "metric=inner_product", "i.garlic"],
    ];
    for [flag, value, index] in other {
        let built = lab.run(&["build", "angular.hdf5", "-o", index, flag, value]);
        let note = "though the data set was made for cosine";
        assert!(built.expect(0).stderr.contains(note));
        let eval = ["eval", index, "angular.hdf5", "--exact", "--json"];
        let metric = value.trim_start_matches("metric=");
        let hint = format!("--metric {metric}");
        lab.run(&eval)
            .expect_error(3, &["angular.hdf5", "made for the metric cosine", &hint]);
        // Its neighbours are those of the cosine: they are computed anew.
        let rows = lab
            .run(&[&eval[..], &["--metric", metric]].concat())
            .expect(0);
        assert!(rows.stderr.contains("computing"), "{}", rows.stderr);
        assert_eq!(rows.json()[0]["recall_at_10"], 1.0);
        lab.run(&[&eval[..], &["--metric", "cosine"]].concat())
            .expect_error(2, &["--metric cosine", "built for"]);
    }
}

#[test]
fn inner_products_are_reported_with_a_minus() {
    let lab = Lab::new();
    for preset in ["default", "paper"] {
        let build = [
            "build",
            "points.npy",
            "-o",
            "i.garlic",
            "--quiet",
            "--preset",
            preset,
        ];
        lab.run(&[&build[..], &["--metric", "inner_product"]].concat())
            .expect(0);
        lab.run(&["verify", "i.garlic"]).expect(0);
        let search = [
            "search",
            "i.garlic",
            "queries.fvecs",
            "-k",
            "4",
            "-o",
            "-",
            "--exact",
        ];
        let answers = lab
            .run(&[&search[..], &["--json"]].concat())
            .expect(0)
            .json();
        let (points, queries) = (clusters(POINTS, DIM, 1), clusters(QUERIES, DIM, 2));
        for (query, answer) in queries.chunks(DIM).zip(&answers) {
            let mut wanted: Vec<f64> = points.chunks(DIM).map(|p| -dot(p, query)).collect();
            wanted.sort_by(f64::total_cmp);
            for (rank, wanted) in wanted[..4].iter().enumerate() {
                let found = answer["distances"][rank].as_f64().unwrap();
                assert!(
                    (found - wanted).abs() <= 1e-6 * wanted.abs(),
                    "{found} for {wanted}"
                );
            }
        }
    }
    // Fewer than asked for: no distance is taken for one that is missing.
    let all = (POINTS + 2).to_string();
    let search = [
        "search",
        "i.garlic",
        "queries.fvecs",
        "-k",
        &all,
        "-o",
        "ids.npy",
    ];
    lab.run(
        &[
            &search[..],
            &["--distances", "d.fvecs", "--exact", "--quiet"],
        ]
        .concat(),
    )
    .expect(0);
    let distances = garlic_data::read_vectors(lab.path("d.fvecs")).unwrap();
    let row = &distances.to_f32()[..POINTS + 2];
    assert_eq!(row[POINTS..], [f32::MAX; 2]);
    assert!(row[..POINTS].is_sorted() && row[0] < -1.0);
}

#[test]
fn what_a_metric_cannot_take_is_one_line() {
    let lab = Lab::new();
    lab.raw_fbin("zero.fbin", &[1.0, 2.0, 0.0, 0.0, 3.0, 4.0], 2);
    let build = |data, more: &[&str]| lab.run(&[&["build", data, "-o", "x.garlic"], more].concat());
    build("zero.fbin", &["--metric", "cosine"]).expect_error(3, &["zero.fbin", "vector 1 is zero"]);
    build("zero.fbin", &["--metric", "angular"]).expect_error(2, &["angular", "cosine"]);
    let stored = ["--metric", "cosine", "--set", "store=u8"];
    build("points.npy", &stored).expect_error(2, &["store", "u8"]);

    build("points.npy", &["--metric", "cosine", "--quiet"]).expect(0);
    let zero: Vec<f32> = vec![0.0; DIM];
    garlic_data::write_fvecs(lab.path("zero.fvecs"), &zero, DIM).unwrap();
    lab.run(&["search", "x.garlic", "zero.fvecs", "-o", "-"])
        .expect_error(3, &["query 0 is zero"]);
    lab.run(&[
        "eval",
        "x.garlic",
        "points.npy",
        "--query-file",
        "zero.fvecs",
    ])
    .expect_error(3, &["zero", "'test'"]);
}
