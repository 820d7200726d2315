//! Random bodies and addresses: no fault of the server, no panic. `GARLIC_FUZZ` sets how many.

use garlic_linalg::{random_stream, uniform_below};
use serde_json::json;

use crate::client::{Lab, lists, vectors};
use crate::formats::binary;

const DIM: usize = 3;

fn requests() -> usize {
    let set = std::env::var("GARLIC_FUZZ").ok();
    set.and_then(|n| n.parse().ok())
        .map_or(1500, |n: usize| n.min(1_000_000))
}

#[test]
fn changed_requests_are_answered_or_refused_and_never_fail() {
    let lab = Lab::with(|options, _| options.limits.body = 1 << 16);
    let data = vectors(40, DIM, 1);
    lab.put(
        "/v1/indexes/a",
        &json!({ "vectors": lists(&data, DIM), "columns": { "n": (0..40).collect::<Vec<_>>() } }),
    )
    .expect(200);
    let npy = lab.path("x.npy");
    garlic_data::write_npy_f32(&npy, &data, DIM).unwrap();
    let kinds = [
        "application/json",
        "application/x-garlic",
        "application/x-npy",
    ];
    let search = json!({ "vectors": [[1, 2, 3]], "k": 3, "recall": 0.9, "filter": "n > 3 AND id < 30", "columns": ["n"], "with_vectors": true });
    let write =
        json!({ "vectors": [[1, 2, 3]], "ids": [7], "columns": { "n": [1] }, "mode": "upsert" });
    let get = json!({ "ids": [1, 2], "with_vectors": true, "columns": ["n"] });
    let seeds: Vec<(&str, &str, usize, Vec<u8>)> = vec![
        ("POST", "search", 0, search.to_string().into_bytes()),
        (
            "POST",
            "search",
            1,
            binary(&json!({ "k": 2 }), &data[..6], DIM),
        ),
        ("POST", "search?k=3", 2, std::fs::read(&npy).unwrap()),
        ("POST", "points", 0, write.to_string().into_bytes()),
        (
            "POST",
            "points",
            1,
            binary(&json!({ "ids": [3, 4] }), &data[..6], DIM),
        ),
        ("POST", "points/get", 0, get.to_string().into_bytes()),
        (
            "POST",
            "points/delete",
            0,
            json!({ "filter": "n = 77" }).to_string().into_bytes(),
        ),
        (
            "POST",
            "points/scroll",
            0,
            json!({ "limit": 3, "from": 2 }).to_string().into_bytes(),
        ),
        (
            "POST",
            "explore/trace",
            0,
            json!({ "ids": [1], "recall": 0.9 })
                .to_string()
                .into_bytes(),
        ),
        ("GET", "points/count?filter=n%20%3E%203", 0, Vec::new()),
        ("GET", "explore/points?left=-3&limit=4", 0, Vec::new()),
        ("PUT", "snapshot", 1, Vec::new()),
    ];
    let mut rng = random_stream(11, 0);
    let mut below = |n: usize| uniform_below(&mut rng, n.max(1));
    let (mut done, mut refused) = (0, 0);
    for _ in 0..requests() {
        let (method, path, kind, body) = &seeds[below(seeds.len())];
        let mut body = body.clone();
        for _ in 0..below(4) {
            if body.is_empty() {
                break;
            }
            let at = below(body.len());
            match below(5) {
                0 => body[at] ^= 1 << below(8),
                1 => body[at] = b"0123456789-.eE[]{}\",: \0\xff"[below(24)],
                2 => body.truncate(at),
                3 => {
                    let piece = body[at..(at + below(20)).min(body.len())].to_vec();
                    body.splice(at..at, piece);
                }
                _ => drop(body.drain(at..(at + below(10)).min(body.len()))),
            }
        }
        let kind = match below(20) {
            0 => kinds[below(3)],
            _ => kinds[*kind],
        };
        let answer = lab.send(
            method,
            &format!("/v1/indexes/a/{path}"),
            &[("content-type", kind)],
            &body,
        );
        let text = String::from_utf8_lossy(&body);
        assert!(
            answer.status < 500,
            "{method} {path} {kind}: {} {text}",
            answer.status
        );
        match answer.status {
            200 => done += 1,
            _ => {
                refused += 1;
                let error = answer.expect(answer.status);
                assert!(
                    error["error"]["message"]
                        .as_str()
                        .is_some_and(|m| m.len() > 10)
                );
            }
        }
    }
    assert!(
        done > requests() / 10 && refused > requests() / 10,
        "{done} done, {refused} refused"
    );
    assert_eq!(lab.metric("garlic_panics_total"), 0.0);
    lab.post("/v1/indexes/a/search", &search).expect(200);
}
