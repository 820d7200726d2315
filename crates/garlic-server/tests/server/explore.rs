//! What the page asks for.

use serde_json::json;

use crate::client::{Lab, save_index, vectors};

const DIM: usize = 10;

fn lab() -> Lab {
    Lab::with(|options, folder| {
        let path = folder.join("map.garlic");
        save_index(&path, 6000, DIM, 1);
        options
            .indexes
            .push(path.to_str().unwrap().parse().unwrap());
    })
}

#[test]
fn the_map_has_cells_and_points_that_can_be_asked_for_by_place() {
    let lab = lab();
    let map = lab.get("/v1/indexes/map/explore/map").expect(200);
    let cells = map["cells"].as_array().unwrap();
    let points: u64 = cells.iter().map(|cell| cell[5].as_u64().unwrap()).sum();
    assert_eq!((points, map["points"].as_u64()), (6000, Some(6000)));
    let count = |query: &str| {
        let answer = lab.get(&format!("/v1/indexes/map/explore/points?{query}"));
        assert_eq!(answer.status, 200);
        u32::from_le_bytes(answer.body[8..12].try_into().unwrap())
    };
    assert_eq!(
        (count(""), count("limit=50"), count("left=1e9")),
        (6000, 50, 0)
    );
    let page = |from: usize| {
        let path = format!("/v1/indexes/map/explore/points?from={from}&limit=4000&with_ids=true");
        let body = lab.get(&path).body;
        let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
        let (json, rows) = (number(4), number(8));
        let about: serde_json::Value = serde_json::from_slice(&body[16..16 + json]).unwrap();
        let ids = body[16 + json + 8 * rows..].as_chunks::<8>().0.to_vec();
        assert_eq!((ids.len(), &about["axes"]), (rows, &map["axes"]));
        (about["next"].clone(), ids)
    };
    let ((next, mut ids), (end, rest)) = (page(0), page(4000));
    assert_eq!((next, end), (json!(4000), json!(null)));
    ids.extend(rest);
    let ids: std::collections::BTreeSet<_> = ids.into_iter().collect();
    assert_eq!(ids.len(), 6000, "every point once");
    let middle = (map["bounds"][0].as_f64().unwrap() + map["bounds"][2].as_f64().unwrap()) / 2.0;
    let (left, right) = (
        count(&format!("right={middle}")),
        count(&format!("left={middle}")),
    );
    assert!(
        left > 500 && right > 500 && left + right == 6000,
        "{left} {right}"
    );
    lab.get("/v1/indexes/map/explore/points?column=%22x%22")
        .expect_error(422, "invalid", &["`x`"]);
}

#[test]
fn cells_have_a_spectrum_bins_and_points() {
    let lab = lab();
    let cell = lab.get("/v1/indexes/map/explore/cells/3").expect(200);
    let spectrum: Vec<f64> = serde_json::from_value(cell["spectrum"].clone()).unwrap();
    assert!(spectrum.len() == DIM && spectrum.is_sorted_by(|a, b| a >= b));
    let in_bins: u64 = cell["bins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin[2].as_u64().unwrap())
        .sum();
    assert_eq!(Some(in_bins), cell["points"].as_u64());
    assert!(!cell["ids"].as_array().unwrap().is_empty());
    lab.get("/v1/indexes/map/explore/cells/100000")
        .expect_error(404, "no_cell", &["100000"]);
    lab.get("/v1/indexes/map/explore/cells/x")
        .expect_error(400, "malformed", &["address", "x"]);
    lab.get("/v1/indexes/%ff")
        .expect_error(400, "malformed", &["address"]);
}

#[test]
fn a_trace_tells_the_steps_of_the_search_and_what_it_missed() {
    let lab = lab();
    let query = vectors(1, DIM, 5);
    let asked = json!({ "vectors": query, "k": 5, "recall": 0.9 });
    let trace = lab
        .post("/v1/indexes/map/explore/trace", &asked)
        .expect(200);
    let search = lab.post("/v1/indexes/map/search", &asked).expect(200);
    let hits = search["results"][0]["hits"].as_array().unwrap();
    for (hit, traced) in hits.iter().zip(trace["hits"].as_array().unwrap()) {
        let distance = |hit: &serde_json::Value| hit["distance"].as_f64().unwrap() as f32;
        assert_eq!(
            (&hit["id"], distance(hit)),
            (&traced["id"], distance(traced))
        );
        assert!(traced["place"][0].is_f64());
    }
    assert_eq!(trace["exact"]["hits"].as_array().unwrap().len(), 5);
    assert!(["bins", "graph"].contains(&trace["method"].as_str().unwrap()));
    for cell in trace["cells"].as_array().unwrap() {
        let told = cell["reach"].as_array().unwrap().len();
        assert_eq!(Some(told as u64), cell["bins_in_reach"].as_u64());
    }
    let candidates = trace["candidates"].as_array().unwrap();
    assert!(
        hits.iter()
            .all(|hit| candidates.iter().any(|c| c["id"] == hit["id"]))
    );
    lab.post("/v1/indexes/map/explore/trace", &json!({ "ids": [1, 2] }))
        .expect_error(422, "invalid", &["one"]);
}

#[test]
fn an_empty_index_has_no_map() {
    let lab = Lab::new();
    lab.put("/v1/indexes/a", &json!({ "dim": 2 })).expect(200);
    lab.get("/v1/indexes/a/explore/map")
        .expect_error(422, "invalid", &["without points"]);
}
