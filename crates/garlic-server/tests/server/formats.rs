//! Binary bodies, `.npy`, and other content types.

use serde_json::{Value, json};

use crate::client::{Answer, Lab, lists, vectors};

const DIM: usize = 5;
const BINARY: (&str, &str) = ("content-type", "application/x-garlic");
const ACCEPT: (&str, &str) = ("accept", "application/x-garlic");

pub(crate) fn binary(json: &Value, data: &[f32], dim: usize) -> Vec<u8> {
    let json = json.to_string();
    let mut body = b"GVC1".to_vec();
    for number in [json.len(), data.len() / dim, dim] {
        body.extend((number as u32).to_le_bytes());
    }
    body.extend(json.as_bytes());
    body.extend(data.iter().flat_map(|v| v.to_le_bytes()));
    body
}

/// JSON, rows, columns, and what follows.
fn parse(answer: &Answer) -> (Value, usize, usize, Vec<u8>) {
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    let body = &answer.body;
    assert_eq!(&body[..4], b"GVC1");
    let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
    let json = number(4);
    let about = serde_json::from_slice(&body[16..16 + json]).unwrap();
    (about, number(8), number(12), body[16 + json..].to_vec())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

#[test]
fn binary_requests_and_answers_are_those_of_json() {
    let lab = Lab::new();
    let data = vectors(80, DIM, 1);
    let created = lab.send(
        "PUT",
        "/v1/indexes/a",
        &[BINARY],
        &binary(&json!({}), &data, DIM),
    );
    assert_eq!(created.expect(200)["points"], 80);
    let more = vectors(3, DIM, 2);
    let body = binary(&json!({ "ids": [100, 101, 102] }), &more, DIM);
    lab.send("POST", "/v1/indexes/a/points", &[BINARY], &body)
        .expect(200);

    let queries = vectors(4, DIM, 3);
    let body = binary(&json!({ "k": 90, "exact": true }), &queries, DIM);
    let answer = lab.send("POST", "/v1/indexes/a/search", &[BINARY, ACCEPT], &body);
    let (about, rows, k, rest) = parse(&answer);
    assert_eq!(
        (rows, k, &about["counts"]),
        (4, 90, &json!([83, 83, 83, 83]))
    );
    let (distances, ids) = rest.split_at(4 * rows * k);
    let distances = floats(distances);
    let ids: Vec<u64> = ids
        .as_chunks::<8>()
        .0
        .iter()
        .map(|b| u64::from_le_bytes(*b))
        .collect();
    let asked = json!({ "vectors": lists(&queries, DIM), "k": 90, "exact": true });
    let expected = lab.post("/v1/indexes/a/search", &asked).expect(200);
    for row in 0..rows {
        let hits = expected["results"][row]["hits"].as_array().unwrap();
        for (at, hit) in hits.iter().enumerate() {
            assert_eq!(ids[row * k + at], hit["id"].as_u64().unwrap());
            assert_eq!(
                f64::from(distances[row * k + at]) as f32,
                hit["distance"].as_f64().unwrap() as f32
            );
        }
        assert_eq!(
            (ids[row * k + 83], distances[row * k + 83]),
            (u64::MAX, f32::INFINITY)
        );
    }

    let body = binary(&json!({ "k": 2, "with_vectors": true }), &queries, DIM);
    let answer = lab.send("POST", "/v1/indexes/a/search", &[BINARY, ACCEPT], &body);
    let (about, rows, k, rest) = parse(&answer);
    let (before, found) = rest.split_at((4 + 8) * rows * k);
    assert_eq!(
        (&about["dim"], floats(found).len()),
        (&json!(DIM), rows * k * DIM)
    );
    let first = u64::from_le_bytes(before[4 * rows * k..][..8].try_into().unwrap()) as usize;
    let nearest = [&data[..], &more[..]].concat()
        [DIM * (if first < 80 { first } else { first - 20 })..][..DIM]
        .to_vec();
    assert_eq!(floats(found)[..DIM], nearest);

    let asked = json!({ "ids": [101, 5], "with_vectors": true }).to_string();
    let json = ("content-type", "application/json");
    let answer = lab.send(
        "POST",
        "/v1/indexes/a/points/get",
        &[json, ACCEPT],
        asked.as_bytes(),
    );
    let (_, rows, dim, rest) = parse(&answer);
    assert_eq!((rows, dim), (2, DIM));
    let expected = [&more[DIM..2 * DIM], &data[5 * DIM..6 * DIM]].concat();
    assert_eq!(floats(&rest), expected);
}

#[test]
fn names_come_in_the_json_of_a_binary_answer() {
    let lab = Lab::new();
    let body = binary(
        &json!({ "ids": ["a", "b"], "columns": { "n": [1, 2] } }),
        &vectors(2, DIM, 1),
        DIM,
    );
    lab.send("PUT", "/v1/indexes/a", &[BINARY], &body)
        .expect(200);
    let body = binary(
        &json!({ "k": 3, "columns": ["n"] }),
        &vectors(1, DIM, 1),
        DIM,
    );
    let (about, _, k, rest) =
        parse(&lab.send("POST", "/v1/indexes/a/search", &[BINARY, ACCEPT], &body));
    assert_eq!((k, rest.len()), (3, 3 * 4));
    assert_eq!(
        (&about["ids"], &about["columns"]),
        (&json!(["a", "b"]), &json!([{ "n": 1 }, { "n": 2 }]))
    );
}

#[test]
fn arrays_of_numpy_are_bodies_with_parameters_in_the_address() {
    let lab = Lab::new();
    let data = vectors(50, DIM, 1);
    let file = lab.path("x.npy");
    garlic_data::write_npy_f32(&file, &data, DIM).unwrap();
    let npy = std::fs::read(&file).unwrap();
    let kind = ("content-type", "application/x-npy");
    lab.send("PUT", "/v1/indexes/a?metric=euclidean", &[kind], &npy)
        .expect(200);
    let answer = lab
        .send("POST", "/v1/indexes/a/search?k=1&exact=true", &[kind], &npy)
        .expect(200);
    for (id, result) in answer["results"].as_array().unwrap().iter().enumerate() {
        assert_eq!(result["hits"][0]["id"], id);
    }
    lab.send("POST", "/v1/indexes/a/search?k=1", &[kind], &npy[..60])
        .expect_error(400, "malformed", &["the body"]);
}

#[test]
fn other_bodies_are_refused() {
    let lab = Lab::new();
    lab.put("/v1/indexes/a", &json!({ "dim": DIM })).expect(200);
    let send = |kind: &str, body: &[u8]| {
        lab.send(
            "POST",
            "/v1/indexes/a/search",
            &[("content-type", kind)],
            body,
        )
    };
    send("text/plain", b"{}").expect_error(415, "content_type", &["application/json"]);
    send("application/json", b"{").expect_error(400, "malformed", &["JSON"]);
    send("application/json; charset=utf-8", b"{\"k\": \"x\"}").expect_error(
        422,
        "invalid",
        &["expected usize", "column 9"],
    );
    send("application/x-garlic", b"GVC1").expect_error(400, "malformed", &["little-endian"]);
    send("application/x-npy", b"").expect_error(400, "malformed", &[]);
}

#[test]
fn answers_with_too_many_vectors_are_refused() {
    let lab = Lab::with(|options, _| options.limits.vectors = 4 * DIM * 10);
    let data = vectors(40, DIM, 1);
    lab.put("/v1/indexes/a", &json!({ "vectors": lists(&data, DIM) }))
        .expect(200);
    let ids: Vec<usize> = (0..11).collect();
    for (path, few, many) in [
        (
            "search",
            json!({ "ids": [1], "k": 10 }),
            json!({ "ids": [1], "k": 11 }),
        ),
        (
            "search",
            json!({ "ids": [1], "k": 2, "radius": 9 }),
            json!({ "ids": [1], "radius": 9 }),
        ),
        (
            "points/get",
            json!({ "ids": ids[1..] }),
            json!({ "ids": ids }),
        ),
        (
            "points/scroll",
            json!({ "limit": 10 }),
            json!({ "limit": 11 }),
        ),
    ] {
        let path = format!("/v1/indexes/a/{path}");
        let ask = |body: &Value, with_vectors: bool| {
            let mut body = body.clone();
            body["with_vectors"] = with_vectors.into();
            lab.post(&path, &body)
        };
        ask(&few, true).expect(200);
        ask(&many, false).expect(200);
        ask(&many, true).expect_error(422, "limit", &["ask for fewer"]);
    }
}
