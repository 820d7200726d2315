//! Points: what is written is read, counted, paged through, filtered and removed; and it survives a restart.

use std::collections::BTreeMap;

use garlic_linalg::{random_stream, uniform_below};
use serde_json::{Value, json};

use crate::client::{Lab, lists, save_index, vectors};

const DIM: usize = 4;

fn named() -> Lab {
    let lab = Lab::new();
    let data = vectors(60, DIM, 1);
    let ids: Vec<String> = (0..60).map(|i| format!("page {i}")).collect();
    let years: Vec<i32> = (1960..2020).collect();
    let langs = ["en", "de"].repeat(30);
    let body = json!({ "vectors": lists(&data, DIM), "ids": ids, "columns": { "year": years, "lang": langs } });
    let created = lab.put("/v1/indexes/pages", &body).expect(200);
    assert_eq!(
        (created["points"].as_u64(), created["named"].as_bool()),
        (Some(60), Some(true))
    );
    assert_eq!(
        created["columns"][1],
        json!({ "name": "year", "type": "Int64" })
    );
    lab
}

#[test]
fn names_and_columns_come_back_and_filters_work() {
    let lab = named();
    let asked = json!({ "ids": ["page 7"], "k": 3, "exact": true, "filter": "year >= 1990 AND lang = 'en'", "columns": ["year", "id"] });
    let answer = lab.post("/v1/indexes/pages/search", &asked).expect(200);
    for hit in answer["results"][0]["hits"].as_array().unwrap() {
        let year = hit["columns"]["year"].as_i64().unwrap();
        assert!(year >= 1990 && year % 2 == 0);
        assert_eq!(hit["id"], hit["columns"]["id"]);
        assert_eq!(hit["id"], format!("page {}", year - 1960));
    }
    let count = lab
        .get("/v1/indexes/pages/points/count?filter=lang%20%3D%20%27de%27")
        .expect(200);
    assert_eq!(count["count"], 30);
    let one = lab
        .get("/v1/indexes/pages/points/by-id/page%2012")
        .expect(200);
    assert_eq!(one["columns"], json!({ "lang": "en", "year": 1972 }));
    assert_eq!(one["vector"].as_array().unwrap().len(), DIM);

    let changed = json!({ "ids": ["page 12", "new"], "vectors": [[9, 9, 9, 9], [8, 8, 8, 8]], "columns": { "year": [2000, null] } });
    assert_eq!(
        lab.post("/v1/indexes/pages/points", &changed).expect(200)["ids"],
        json!(["page 12", "new"])
    );
    let asked = json!({ "ids": ["new", "page 12"], "with_vectors": true });
    let points = lab.post("/v1/indexes/pages/points/get", &asked).expect(200);
    assert_eq!(
        points["points"][1]["columns"],
        json!({ "lang": null, "year": 2000 })
    );
    assert_eq!(points["points"][0]["vector"], json!([8.0, 8.0, 8.0, 8.0]));
    let removed = lab
        .post(
            "/v1/indexes/pages/points/delete",
            &json!({ "filter": "year < 1970" }),
        )
        .expect(200);
    assert_eq!(removed["removed"], 10);
    assert_eq!(
        lab.delete("/v1/indexes/pages/points/by-id/new").expect(200)["removed"],
        1
    );
    assert_eq!(
        lab.delete("/v1/indexes/pages/points/by-id/new").expect(200)["removed"],
        0
    );
    lab.get("/v1/indexes/pages/points/by-id/new")
        .expect_error(404, "no_point", &["new"]);
    assert_eq!(
        lab.get("/v1/indexes/pages/points/count").expect(200)["count"],
        50
    );
}

#[test]
fn wrong_writes_change_nothing_and_say_why() {
    let lab = named();
    let write = |body: Value| lab.post("/v1/indexes/pages/points", &body);
    let v = [1, 2, 3, 4];
    write(json!({ "ids": ["a"], "vectors": [[1, 2]] })).expect_error(
        422,
        "invalid",
        &["dimension 4"],
    );
    write(json!({ "ids": [1], "vectors": [v] })).expect_error(422, "invalid", &["names"]);
    write(json!({ "vectors": [v] })).expect_error(422, "invalid", &["name"]);
    write(json!({ "ids": ["a", "a"], "vectors": [v, v] })).expect_error(422, "invalid", &["twice"]);
    write(json!({ "ids": ["a"], "vectors": [v, v] })).expect_error(
        422,
        "invalid",
        &["2 vectors but 1"],
    );
    write(json!({ "ids": ["page 1"], "vectors": [v], "mode": "add" })).expect_error(
        409,
        "point_exists",
        &["page 1"],
    );
    write(json!({ "ids": ["zz"], "vectors": [v], "mode": "update" })).expect_error(
        404,
        "no_point",
        &["zz"],
    );
    write(json!({ "ids": ["a"], "vectors": [v], "mode": "x" })).expect_error(
        422,
        "invalid",
        &["upsert"],
    );
    write(json!({ "ids": ["a"], "vectors": [v], "columns": { "size": [1] } })).expect_error(
        422,
        "invalid",
        &["`size`"],
    );
    write(json!({ "ids": ["a"], "vectors": [v], "columns": { "year": ["x"] } })).expect_error(
        422,
        "invalid",
        &["year"],
    );
    write(json!({ "ids": ["a"], "vectors": [v], "columns": { "year": [1, 2] } })).expect_error(
        422,
        "invalid",
        &["2 values"],
    );
    write(json!({ "ids": ["a"] })).expect_error(422, "invalid", &["vector"]);
    let nothing = json!({});
    lab.post("/v1/indexes/pages/points/delete", &nothing)
        .expect_error(422, "invalid", &["either"]);
    assert_eq!(
        lab.get("/v1/indexes/pages/points/count").expect(200)["count"],
        60
    );
    assert_eq!(write(nothing).expect(200)["ids"], json!([]));
}

#[test]
fn files_are_read_only() {
    let lab = Lab::with(|options, folder| {
        let path = folder.join("fixed.garlic");
        save_index(&path, 100, DIM, 1);
        options
            .indexes
            .push(path.to_str().unwrap().parse().unwrap());
        options.root = None;
    });
    let point = json!({ "ids": [1], "vectors": [[1, 2, 3, 4]] });
    lab.post("/v1/indexes/fixed/points", &point)
        .expect_error(409, "read_only", &["--live"]);
    lab.post("/v1/indexes/fixed/compact", &json!({}))
        .expect_error(409, "read_only", &["fixed"]);
    lab.delete("/v1/indexes/fixed")
        .expect_error(409, "read_only", &["root"]);
    lab.put("/v1/indexes/other", &json!({ "dim": 3 }))
        .expect_error(409, "read_only", &["--root"]);
    assert_eq!(lab.get("/v1/indexes/fixed").expect(200)["writable"], false);
}

/// Random writes and removals beside a model; all points are paged through after each.
#[test]
fn an_index_is_what_was_written_to_it_also_after_a_restart() {
    let mut lab = Lab::new();
    lab.put("/v1/indexes/a", &json!({ "dim": DIM })).expect(200);
    let mut model: BTreeMap<u64, Vec<f32>> = BTreeMap::new();
    let mut rng = random_stream(7, 0);
    for round in 0..30_u64 {
        let count = 1 + uniform_below(&mut rng, 6);
        let mut ids: Vec<u64> = (0..count)
            .map(|_| uniform_below(&mut rng, 40) as u64)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        if round % 4 == 3 {
            let there = ids.iter().filter(|id| model.remove(id).is_some()).count();
            let answer = lab
                .post("/v1/indexes/a/points/delete", &json!({ "ids": ids }))
                .expect(200);
            assert_eq!(answer["removed"], there);
        } else {
            let data = vectors(ids.len(), DIM, round);
            let body = json!({ "ids": ids, "vectors": lists(&data, DIM) });
            lab.post("/v1/indexes/a/points", &body).expect(200);
            model.extend(
                ids.iter()
                    .copied()
                    .zip(data.chunks_exact(DIM).map(<[f32]>::to_vec)),
            );
        }
        assert_eq!(all(&lab, 7), model, "round {round}");
    }
    let kept = lab.path("root");
    lab.stop();
    let again = Lab::with(|options, _| options.root = Some(kept));
    assert_eq!(all(&again, 1000), model);
}

/// All points of the index `a`, in pages.
fn all(lab: &Lab, limit: usize) -> BTreeMap<u64, Vec<f32>> {
    let mut found = BTreeMap::new();
    let mut from = Some(0);
    while let Some(start) = from {
        let path = format!("/v1/indexes/a/points/scroll?limit={limit}&from={start}&with_vectors");
        let page = lab.get(&path).expect(200);
        for point in page["points"].as_array().unwrap() {
            let vector = serde_json::from_value(point["vector"].clone()).unwrap();
            assert!(
                found
                    .insert(point["id"].as_u64().unwrap(), vector)
                    .is_none()
            );
        }
        from = page["next"].as_u64();
    }
    found
}
