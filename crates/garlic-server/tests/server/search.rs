//! Searches against brute force, and their errors.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use crate::client::{Lab, brute, lists, save_index, vectors};

const DIM: usize = 8;
const ROWS: usize = 6000;

fn lab() -> (Lab, Vec<f32>) {
    let lab = Lab::with(|options, folder| {
        let path = folder.join("many.garlic");
        save_index(&path, ROWS, DIM, 1);
        options
            .indexes
            .push(path.to_str().unwrap().parse().unwrap());
    });
    (lab, vectors(ROWS, DIM, 1))
}

fn ids(result: &Value) -> Vec<u64> {
    let hits = result["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["id"].as_u64().unwrap()).collect()
}

#[test]
fn exact_searches_and_ranges_are_those_of_brute_force() {
    let (lab, data) = lab();
    let queries = vectors(30, DIM, 2);
    let asked = json!({ "vectors": lists(&queries, DIM), "k": 7, "exact": true });
    let answer = lab.post("/v1/indexes/many/search", &asked).expect(200);
    for (result, query) in answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .zip(queries.chunks_exact(DIM))
    {
        let expected = brute(&data, DIM, query, 7);
        assert_eq!(
            ids(result),
            expected.iter().map(|e| e.0).collect::<Vec<_>>()
        );
        assert_eq!(result["exact"], true);
        for (hit, expected) in result["hits"].as_array().unwrap().iter().zip(&expected) {
            let distance = hit["distance"].as_f64().unwrap() as f32;
            assert!((distance - expected.1).abs() <= 1e-5 * expected.1);
        }
    }
    let radius = 0.6;
    let asked = json!({ "vectors": lists(&queries, DIM), "radius": radius });
    let answer = lab.post("/v1/indexes/many/search", &asked).expect(200);
    let mut within = 0;
    for (result, query) in answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .zip(queries.chunks_exact(DIM))
    {
        let expected = brute(&data, DIM, query, ROWS);
        let expected: Vec<u64> = expected
            .iter()
            .filter(|e| e.1 <= radius)
            .map(|e| e.0)
            .collect();
        within += expected.len();
        assert_eq!(ids(result), expected);
    }
    assert!(within > 100, "{within}");
}

#[test]
fn recall_targets_are_met_by_many_clients_at_once_whose_queries_join() {
    let (lab, data) = lab();
    let queries = vectors(200, DIM, 3);
    let found: usize = thread::scope(|scope| {
        let ask = |part: &[f32]| {
            let mut found = 0;
            for query in part.chunks_exact(DIM) {
                let asked = json!({ "vectors": query, "k": 10, "recall": 0.9 });
                let answer = lab.post("/v1/indexes/many/search", &asked).expect(200);
                let found_here: BTreeSet<u64> = ids(&answer["results"][0]).into_iter().collect();
                found += brute(&data, DIM, query, 10)
                    .iter()
                    .filter(|e| found_here.contains(&e.0))
                    .count();
            }
            found
        };
        let parts = queries
            .chunks(25 * DIM)
            .map(|part| scope.spawn(move || ask(part)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    });
    assert!(found as f64 / 2000.0 > 0.87, "{found} of 2000");
    assert_eq!(lab.metric("garlic_queries_total"), 200.0);
    assert_eq!(lab.metric("garlic_search_batch_queries_total"), 200.0);
    assert!(lab.metric("garlic_search_batches_total") <= 200.0);
}

#[test]
fn vectors_statistics_and_points_as_queries_can_be_asked_for() {
    let (lab, data) = lab();
    let asked = json!({ "ids": [17, 4000], "k": 2, "with_vectors": true, "with_stats": true, "exact": true });
    let answer = lab.post("/v1/indexes/many/search", &asked).expect(200);
    let first = &answer["results"][1]["hits"][0];
    assert_eq!(first["id"], 4000);
    let vector: Vec<f32> = serde_json::from_value(first["vector"].clone()).unwrap();
    assert_eq!(vector, &data[4000 * DIM..4001 * DIM]);
    assert!(answer["stats"]["candidates"].as_u64().unwrap() >= 2);
    let plain = lab
        .post("/v1/indexes/many/search", &json!({ "ids": [17] }))
        .expect(200);
    assert_eq!(plain["results"][0]["hits"].as_array().unwrap().len(), 10);
    assert!(plain.get("stats").is_none() && plain["results"][0]["hits"][0].get("vector").is_none());
}

#[test]
fn wrong_searches_are_errors_that_say_what_to_do() {
    let (lab, _) = lab();
    let search = |body: Value| lab.post("/v1/indexes/many/search", &body);
    let vector = vec![0.5; DIM];
    search(json!({ "vectors": [1, 2] })).expect_error(422, "invalid", &["dimension 8", "2"]);
    search(json!({})).expect_error(422, "invalid", &["give `vectors`"]);
    search(json!({ "vectors": vector, "ids": [1] })).expect_error(422, "invalid", &["either"]);
    search(json!({ "vectors": vector, "k": 0 })).expect_error(422, "invalid", &["k", "at least 1"]);
    search(json!({ "vectors": vector, "k": 10_001 })).expect_error(422, "limit", &["10000"]);
    search(json!({ "vectors": vector, "recall": 1.5 })).expect_error(422, "invalid", &["recall"]);
    search(json!({ "vectors": vector, "kk": 3 })).expect_error(
        422,
        "invalid",
        &["unknown field `kk`"],
    );
    search(json!({ "vectors": vector, "filter": "color = 1" })).expect_error(
        422,
        "invalid",
        &["color"],
    );
    search(json!({ "vectors": vector, "filter": "id <" })).expect_error(422, "invalid", &["id <"]);
    search(json!({ "vectors": vector, "columns": ["x"] })).expect_error(422, "invalid", &["`x`"]);
    search(json!({ "vectors": [[1, 2], [1]] })).expect_error(422, "invalid", &["vector 1"]);
    search(json!({ "ids": [99_999] })).expect_error(404, "no_point", &["99999"]);
    search(json!({ "ids": ["a"] })).expect_error(422, "invalid", &["numbered"]);
    search(json!({ "vectors": vector, "radius": 3, "exact": true })).expect_error(
        422,
        "invalid",
        &["radius"],
    );
    let far = json!({ "vectors": [vector, vector], "radius": 1e9 });
    assert_eq!(
        search(far).expect(200)["results"][0]["hits"]
            .as_array()
            .unwrap()
            .len(),
        ROWS
    );
    lab.post("/v1/indexes/none/search", &json!({}))
        .expect_error(404, "no_index", &["`none`"]);
    lab.get("/v1/indexes/many/search")
        .expect_error(405, "method", &["openapi"]);
    lab.get("/v2/x")
        .expect_error(404, "not_found", &["openapi"]);
}

/// Bytes of the format's answer that are JSON, rows and columns.
fn head(body: &[u8]) -> [u32; 3] {
    [4, 8, 12].map(|at| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()))
}

#[test]
fn what_a_request_would_allocate_is_refused_before() {
    let lab = Lab::with(|options, folder| {
        let path = folder.join("many.garlic");
        save_index(&path, 500, DIM, 1);
        options
            .indexes
            .push(path.to_str().unwrap().parse().unwrap());
        options.limits.hits = 60;
        options.limits.vectors = 4 * DIM * 20;
    });
    // There is no point 10^6: what is refused for the number of points is not looked up.
    let many = json!({ "ids": vec![1_000_000; 61], "k": 1 });
    let search = |body: &Value| lab.post("/v1/indexes/many/search", body);
    search(&many).expect_error(422, "limit", &["61 queries"]);
    search(&json!({ "ids": vec![1_000_000; 61], "k": 0 })).expect_error(422, "limit", &["61"]);
    let named = json!({ "ids": vec![1_000_000; 21], "k": 1 });
    search(&named).expect_error(422, "limit", &["21 vectors", "640 bytes"]);
    lab.post("/v1/indexes/many/explore/trace", &named)
        .expect_error(422, "invalid", &["one query"]);
    lab.post("/v1/indexes/many/explore/trace", &json!({}))
        .expect_error(422, "invalid", &["`vectors`"]);

    // One query with 50 points, and one with none: 100 places in the binary format.
    let data = vectors(500, DIM, 1);
    let near = brute(&data, DIM, &data[..DIM], 51);
    let radius = (near[49].1 + near[50].1) / 2.0;
    let queries = [&data[..DIM], &[1e6; DIM]].concat();
    let asked = json!({ "vectors": lists(&queries, DIM), "radius": radius }).to_string();
    let ask = |accept: &str, body: &str| {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        lab.send("POST", "/v1/indexes/many/search", &headers, body.as_bytes())
    };
    ask("application/x-garlic", &asked).expect_error(422, "limit", &["50 points", "60 places"]);
    ask("application/json", &asked).expect(200);
    let one = json!({ "vectors": &data[..DIM], "radius": radius }).to_string();
    let answer = ask("application/x-garlic", &one);
    assert_eq!(
        (answer.status, &head(&answer.body)[1..]),
        (200, &[1, 50][..])
    );
}
