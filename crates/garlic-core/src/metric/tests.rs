use garlic_linalg::{random_stream, uniform_unit};

use super::*;

fn random(n: usize, seed: u64, size: f32) -> Vec<f32> {
    let mut rng = random_stream(seed, 9);
    let mut draw = || size * (2.0 * uniform_unit(&mut rng) as f32 - 1.0);
    (0..n).map(|_| draw()).collect()
}

fn embeddings(rows: Rows<'_>) -> [Embedding; 3] {
    Metric::ALL.map(|metric| Embedding::fit(metric, rows))
}

#[test]
fn names_are_those_of_toml_and_text() {
    for metric in Metric::ALL {
        assert_eq!(metric.name().parse::<Metric>().unwrap(), metric);
        let json = format!("\"{metric}\"");
        assert_eq!(serde_json::from_str::<Metric>(&json).unwrap(), metric);
    }
    let error = "angle".parse::<Metric>().unwrap_err().to_string();
    assert!(error.contains("cosine") && error.contains("inner_product"));
}

#[test]
fn all_embedded_vectors_are_equally_long() {
    let data = random(300, 1, 40.0);
    let rows = Rows::new(&data, 6).unwrap();
    let [plain, cosine, inner] = embeddings(rows);
    assert!(matches!(plain.vectors(rows).unwrap(), Embedded::Given(r) if r.data() == rows.data()));
    assert_eq!(plain.longest(), None);
    let longest = inner.longest().unwrap();
    for (embedding, wanted) in [(cosine, 1.0), (inner, longest)] {
        let embedded = embedding.vectors(rows).unwrap();
        assert_eq!(embedded.rows().dim(), embedding.inner_dim(6));
        for (row, vector) in embedded.rows().iter().enumerate() {
            assert!((length(vector) / f64::from(wanted) - 1.0).abs() < 1e-7);
            let given = rows.row(row);
            let scale = length(given) / length(embedding.plain(vector));
            for (x, y) in given.iter().zip(embedding.plain(vector)) {
                assert!((f64::from(*x) - f64::from(*y) * scale).abs() < 1e-5);
            }
        }
        let added = embedding.added(rows).unwrap();
        assert_eq!(added.rows().data(), embedded.rows().data());
        let (mut buffer, queries) = (Vec::new(), embedding.queries(rows));
        for (row, query) in queries.rows().iter().enumerate() {
            assert!((length(query) / f64::from(wanted) - 1.0).abs() < 1e-7);
            assert_eq!(embedding.query(rows.row(row), &mut buffer), query);
            let mut stored = embedded.rows().row(row).to_vec();
            embedding.as_query(&mut stored);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6 * wanted;
            assert!(stored.iter().zip(query).all(near));
        }
    }
    assert_eq!(inner.plain(&[1.0, 2.0, 3.0]), [1.0, 2.0]);
    assert!(rows.iter().any(|r| length(r) as f32 == longest));
}

#[test]
fn what_cannot_be_embedded_is_named() {
    let data = [1.0, 0.0, 0.0, 0.0, 3.0, 4.0];
    let rows = Rows::new(&data, 2).unwrap();
    let [_, cosine, inner] = embeddings(rows);
    for refused in [cosine.vectors(rows), cosine.added(rows)] {
        assert!(matches!(refused, Err(Error::ZeroVector { row: 1 })));
    }
    let zero = cosine.check_query(&[0.0, -0.0], 7);
    assert!(matches!(zero, Err(Error::ZeroQuery { row: 7 })));
    assert!(inner.check_query(&[0.0, 0.0], 7).is_ok());
    let long = [3.0, -4.0, 3.0, 4.1];
    let error = inner.added(Rows::new(&long, 2).unwrap()).err().unwrap();
    assert!(matches!(error, Error::TooLong { row: 1, longest, .. } if longest == 5.0));
    let text = error.to_string();
    assert!(text.contains("5.08") && text.contains("up to 5;"), "{text}");
}

/// Every point within a reported radius is within the embedded limit, and the limit is tight up to rounding.
#[test]
fn a_radius_becomes_a_limit_that_loses_nothing() {
    for (seed, dim) in [(1, 1), (2, 2), (3, 17), (4, 130)] {
        for size in [1e-3, 1.0, 1e4] {
            let data = random(200 * dim, seed, size);
            let rows = Rows::new(&data, dim).unwrap();
            let asked = random(8 * dim, seed + 50, 3.0);
            for embedding in embeddings(rows) {
                let embedded = embedding.vectors(rows).unwrap();
                for query in asked.chunks(dim) {
                    let mut buffer = Vec::new();
                    let inside = embedding.query(query, &mut buffer);
                    let mut most = 0.0f32;
                    for stored in embedded.rows().iter() {
                        let squared = garlic_simd::l2_squared(inside, stored);
                        let radius = embedding.reported(query, squared, stored);
                        let limit = embedding.limit(query, radius);
                        assert!(squared <= limit, "{embedding:?}: {squared} > {limit}");
                        most = most.max(limit - squared);
                    }
                    let scale = match embedding.metric() {
                        Metric::InnerProduct => 4.0 * embedding.longest.powi(2),
                        _ => 4.0 * dim as f32 * size.max(3.0).powi(2),
                    };
                    assert!(most < 1e-4 * scale, "{embedding:?}: {most} of {scale}");
                }
            }
        }
    }
    let rows = Rows::new(&[1.0, 2.0], 1).unwrap();
    let [plain, cosine, inner] = embeddings(rows);
    assert!(plain.limit(&[1.0], -0.5) < 0.0 && cosine.limit(&[1.0], -0.5) < 0.0);
    assert!(inner.limit(&[1.0], -2.1) < 0.0, "nothing is that near");
    assert_eq!(inner.limit(&[0.0], 0.0), f32::INFINITY);
    assert!(inner.limit(&[0.0], -1e-30) < 0.0);
}

#[test]
fn only_what_belongs_together_is_restored() {
    let restore = Embedding::restore;
    assert!(restore(Metric::Euclidean, None, 1).is_some());
    assert!(restore(Metric::Cosine, Some(1.0), 4).is_none());
    assert!(restore(Metric::InnerProduct, None, 4).is_none());
    assert!(restore(Metric::InnerProduct, Some(1.0), 1).is_none());
    assert!(restore(Metric::InnerProduct, Some(-1.0), 4).is_none());
    assert!(restore(Metric::InnerProduct, Some(1e30), 4).is_none());
    assert!(restore(Metric::InnerProduct, Some(f32::NAN), 4).is_none());
    let inner = restore(Metric::InnerProduct, Some(2.5), 4).unwrap();
    assert_eq!((inner.longest(), inner.outer_dim(4)), (Some(2.5), 3));
}
