//! Indexes: created, listed, maintained, downloaded, restored and deleted.

use serde_json::{Value, json};

use crate::client::{Lab, lists, vectors};

const DIM: usize = 6;

#[test]
fn indexes_are_created_listed_and_deleted() {
    let lab = Lab::new();
    assert_eq!(
        lab.get("/v1/indexes").expect(200),
        json!({ "indexes": [], "creatable": true })
    );
    let empty = json!({ "dim": 3, "metric": "cosine", "parameters": { "recall": 0.9, "seed": 4 } });
    assert_eq!(
        lab.post("/v1/indexes/empty", &empty).expect(200)["metric"],
        "cosine"
    );
    let data = vectors(200, DIM, 1);
    let built = json!({ "vectors": lists(&data, DIM) });
    assert_eq!(
        lab.put("/v1/indexes/built", &built).expect(200)["points"],
        200
    );
    lab.put("/v1/indexes/built", &built)
        .expect_error(409, "exists", &["built"]);
    let list = lab.get("/v1/indexes").expect(200);
    let names: Vec<&str> = list["indexes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["built", "empty"]);
    let stats = lab.get("/v1/indexes/empty/stats").expect(200);
    assert_eq!(
        (&stats["parameters"]["recall"], &stats["points"]),
        (&json!(0.9), &json!(0))
    );
    assert!(stats["storage"]["log_bytes"].is_u64() && stats["drift"]["spread"].is_f64());

    lab.post("/v1/indexes/built/compact", &json!({}))
        .expect(200);
    lab.post("/v1/indexes/built/recalibrate", &json!({}))
        .expect(200);
    lab.post("/v1/indexes/built/retrain", &json!({}))
        .expect(200);
    let stats = lab.get("/v1/indexes/built/stats").expect(200);
    assert_eq!(stats["drift"]["trainings"], 1);
    let queries = json!({ "vectors": lists(&vectors(120, DIM, 3), DIM) });
    lab.post("/v1/indexes/built/tune", &queries).expect(200);
    let few = json!({ "vectors": [[1, 2]] });
    lab.post("/v1/indexes/built/tune", &few)
        .expect_error(422, "invalid", &[]);
    lab.delete("/v1/indexes/built").expect(200);
    lab.get("/v1/indexes/built")
        .expect_error(404, "no_index", &["built"]);
    assert!(!lab.path("root/built").exists());
    assert_eq!(
        lab.put("/v1/indexes/built", &built).expect(200)["points"],
        200
    );
}

#[test]
fn wrong_indexes_are_not_created() {
    let lab = Lab::new();
    let put = |name: &str, body: Value| lab.put(&format!("/v1/indexes/{name}"), &body);
    put("a", json!({})).expect_error(422, "invalid", &["dim"]);
    put("a", json!({ "dim": 0 })).expect_error(422, "limit", &["32768"]);
    put("a", json!({ "dim": 40_000 })).expect_error(422, "limit", &["32768"]);
    put("a", json!({ "dim": 3, "metric": "x" })).expect_error(422, "invalid", &["euclidean"]);
    put("a", json!({ "dim": 3, "parameters": { "recal": 0.9 } })).expect_error(
        422,
        "invalid",
        &["recall"],
    );
    put("a", json!({ "dim": 3, "vectors": [[1, 2]] })).expect_error(422, "invalid", &["3", "2"]);
    put("a", json!({ "vectors": [[1, 2]], "ids": [1, 2] })).expect_error(
        422,
        "invalid",
        &["identifiers"],
    );
    for name in [".hidden", "a%20b", "..%2Fx", "%2e%2e", "a.garlic"] {
        put(name, json!({ "dim": 3 })).expect_error(422, "invalid", &["letters"]);
    }
    assert_eq!(std::fs::read_dir(lab.path("root")).unwrap().count(), 0);
}

#[test]
fn a_snapshot_is_restored_under_another_name() {
    let lab = Lab::new();
    let data = vectors(300, DIM, 2);
    let ids: Vec<String> = (0..300).map(|i| format!("n{i}")).collect();
    let body = json!({ "vectors": lists(&data, DIM), "ids": ids, "columns": { "size": (0..300).collect::<Vec<_>>() } });
    lab.put("/v1/indexes/one", &body).expect(200);
    lab.delete("/v1/indexes/one/points/by-id/n5").expect(200);
    let snapshot = lab.get("/v1/indexes/one/snapshot");
    assert_eq!(snapshot.status, 200);
    assert_eq!(
        snapshot.headers["content-disposition"],
        "attachment; filename=\"one.garlic\""
    );
    lab.send("PUT", "/v1/indexes/two/snapshot", &[], &snapshot.body)
        .expect(200);
    let asked = json!({ "ids": ["n7"], "k": 5, "exact": true, "columns": ["size"] });
    let expected = lab.post("/v1/indexes/one/search", &asked).expect(200);
    assert_eq!(
        lab.post("/v1/indexes/two/search", &asked).expect(200),
        expected
    );
    assert_eq!(expected["results"][0]["hits"][0]["columns"]["size"], 7);

    let restore = |name: &str, bytes: &[u8]| {
        lab.send("PUT", &format!("/v1/indexes/{name}/snapshot"), &[], bytes)
    };
    restore("two", &snapshot.body).expect_error(409, "exists", &["two"]);
    restore("three", b"no index").expect_error(422, "invalid", &["restored"]);
    let mut damaged = snapshot.body.clone();
    damaged[snapshot.body.len() / 2] ^= 1;
    assert!(restore("three", &damaged).status >= 400);
    let left = std::fs::read_dir(lab.path("root")).unwrap().count();
    assert_eq!(left, 2, "nothing is left of what was not restored");
}

/// A root below a folder with `=` in its name, and what interrupted work left in it.
#[test]
fn leftovers_in_a_root_are_in_nobodys_way() {
    let mut lab = Lab::with(|options, folder| options.root = Some(folder.join("x=y")));
    lab.put("/v1/indexes/a", &json!({ "dim": 2 })).expect(200);
    lab.stop();
    let root = lab.path("x=y");
    std::fs::create_dir(root.join("half")).unwrap();
    std::fs::create_dir(root.join("other")).unwrap();
    for file in [
        "half/LOCK",
        "half/index-1.garlic",
        "other/LOCK",
        "other/mine",
        ".b.deleted",
        ".xyz.restoring",
    ] {
        std::fs::write(root.join(file), "").unwrap();
    }
    let again = Lab::with(|options, _| options.root = Some(root.clone()));
    let list = again.get("/v1/indexes").expect(200);
    assert_eq!(list["indexes"].as_array().unwrap().len(), 1);
    assert_eq!(list["indexes"][0]["name"], "a");
    assert!(!root.join(".b.deleted").exists() && !root.join(".xyz.restoring").exists());
    let create = |name: &str| again.put(&format!("/v1/indexes/{name}"), &json!({ "dim": 2 }));
    create("half").expect(200);
    create("other").expect_error(409, "exists", &["other"]);
    assert!(root.join("other/mine").exists());
}

#[test]
fn of_two_deletions_of_an_index_one_finds_none() {
    let lab = Lab::new();
    for _ in 0..5 {
        lab.put("/v1/indexes/a", &json!({ "dim": 2 })).expect(200);
        // What an earlier deletion left does not stop the next.
        std::fs::create_dir_all(lab.path("root/.a.deleted/x")).unwrap();
        let delete = || lab.delete("/v1/indexes/a").status;
        let mut found: Vec<u16> = std::thread::scope(|scope| {
            let both = [scope.spawn(delete), scope.spawn(delete)];
            both.map(|one| one.join().unwrap()).to_vec()
        });
        found.sort_unstable();
        assert_eq!(found, [200, 404]);
    }
}

#[test]
fn an_index_trains_itself_as_it_grows() {
    let lab = Lab::new();
    lab.put("/v1/indexes/a", &json!({ "dim": DIM })).expect(200);
    for part in 0..5 {
        let data = vectors(1000, DIM, part);
        let answer = lab
            .post(
                "/v1/indexes/a/points",
                &json!({ "vectors": lists(&data, DIM) }),
            )
            .expect(200);
        assert_eq!(answer["ids"][999], 1000 * part + 999);
    }
    let trained = || {
        let stats = lab.get("/v1/indexes/a/stats").expect(200);
        stats["drift"]["trainings"].as_u64().unwrap() > 0
    };
    while !trained() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(lab.get("/v1/indexes/a").expect(200)["points"], 5000);
}
