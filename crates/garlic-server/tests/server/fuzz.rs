//! Random bodies and addresses: no fault of the server, no panic. `GARLIC_FUZZ` sets how many.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use garlic_linalg::{random_stream, uniform_below};
use serde_json::{Value, json};

use crate::client::{Answer, Lab, lists, vectors};
use crate::formats::binary;

const DIM: usize = 3;
/// Clients, each with requests of its own.
const CLIENTS: usize = 8;

const JSON: &str = "application/json";
const BINARY: &str = "application/x-garlic";
const NPY: &str = "application/x-npy";

fn requests() -> usize {
    let set = std::env::var("GARLIC_FUZZ").ok();
    set.and_then(|n| n.parse().ok())
        .map_or(1500, |n: usize| n.min(1_000_000))
}

/// A request that is answered with 200 as it is.
struct Seed {
    method: &'static str,
    path: String,
    kind: &'static str,
    body: Vec<u8>,
}

impl Seed {
    fn new(method: &'static str, path: &str, kind: &'static str, body: Vec<u8>) -> Self {
        let path = format!("/v1/indexes/{path}");
        Self {
            method,
            path,
            kind,
            body,
        }
    }

    fn json(method: &'static str, path: &str, body: &Value) -> Self {
        Self::new(method, path, JSON, body.to_string().into_bytes())
    }
}

fn search() -> Value {
    json!({ "vectors": [[1, 2, 3]], "k": 3, "recall": 0.9, "filter": "n > 3 AND id < 30", "columns": ["n"], "with_vectors": true })
}

/// Requests of every kind. `own` is an index that only this client creates.
fn seeds(own: &str, data: &[f32], npy: &[u8], snapshot: &[u8]) -> Vec<Seed> {
    let two = &data[..2 * DIM];
    let write =
        json!({ "vectors": [[1, 2, 3]], "ids": [7], "columns": { "n": [1] }, "mode": "upsert" });
    let create = json!({ "vectors": lists(two, DIM), "ids": ["x", "y"], "columns": { "n": [1, null] }, "metric": "cosine", "parameters": { "recall": 0.9, "seed": 4 } });
    vec![
        Seed::json("POST", "a/search", &search()),
        Seed::json(
            "POST",
            "a/search",
            &json!({ "ids": [1, 2], "radius": 2.5, "recall": 0.9, "with_stats": true }),
        ),
        Seed::new(
            "POST",
            "a/search",
            BINARY,
            binary(&json!({ "k": 2, "exact": true }), two, DIM),
        ),
        Seed::new("POST", "a/search?k=3", NPY, npy.to_vec()),
        Seed::json("POST", "a/points", &write),
        Seed::new(
            "POST",
            "a/points",
            BINARY,
            binary(&json!({ "ids": [3, 4] }), two, DIM),
        ),
        Seed::json(
            "POST",
            "a/points/get",
            &json!({ "ids": [1, 2], "with_vectors": true, "columns": ["n"] }),
        ),
        Seed::json("POST", "a/points/delete", &json!({ "filter": "n = 77" })),
        Seed::json("POST", "a/points/scroll", &json!({ "limit": 3, "from": 2 })),
        Seed::json(
            "POST",
            "a/explore/trace",
            &json!({ "ids": [1], "recall": 0.9 }),
        ),
        Seed::new("GET", "a/points/count?filter=n%20%3E%203", JSON, Vec::new()),
        Seed::new("GET", "a/explore/points?left=-3&limit=4", JSON, Vec::new()),
        Seed::json("PUT", own, &create),
        Seed::new(
            "PUT",
            own,
            BINARY,
            binary(&json!({ "metric": "euclidean" }), two, DIM),
        ),
        Seed::new(
            "PUT",
            &format!("{own}/snapshot"),
            "application/octet-stream",
            snapshot.to_vec(),
        ),
    ]
}

/// Changes some bytes, or none.
fn change(body: &mut Vec<u8>, below: &mut impl FnMut(usize) -> usize) {
    for _ in 0..below(4) {
        if body.is_empty() {
            return;
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
}

/// Whether it was done; what is refused has a message.
fn check(answer: &Answer, seed: &Seed, kind: &str, body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let (method, path, status) = (seed.method, &seed.path, answer.status);
    assert!(status < 500, "{method} {path} {kind}: {status} {text}");
    if status == 200 {
        return true;
    }
    let error = answer.expect(status);
    let message = error["error"]["message"].as_str().unwrap_or_default();
    assert!(message.len() > 10, "{method} {path} {kind}: {error} {text}");
    false
}

/// Sends the requests of a client and counts those that were done.
fn send(lab: &Lab, client: usize, seeds: &[Seed], numbers: Range<usize>) -> usize {
    let mut rng = random_stream(11, client as u64);
    let mut below = |n: usize| uniform_below(&mut rng, n.max(1));
    let mut done = 0;
    for _ in numbers {
        let seed = &seeds[below(seeds.len())];
        let mut body = seed.body.clone();
        change(&mut body, &mut below);
        let kind = match below(20) {
            0 => [JSON, BINARY, NPY][below(3)],
            _ => seed.kind,
        };
        let answer = lab.send(seed.method, &seed.path, &[("content-type", kind)], &body);
        let is_done = check(&answer, seed, kind, &body);
        done += usize::from(is_done);
        if is_done && seed.method == "PUT" {
            let own = seed.path.trim_end_matches("/snapshot");
            assert_eq!(lab.delete(own).status, 200, "{own}");
        }
    }
    done
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
    let file = lab.path("x.npy");
    garlic_data::write_npy_f32(&file, &data, DIM).unwrap();
    let npy = std::fs::read(&file).unwrap();
    let snapshot = lab.get("/v1/indexes/a/snapshot").body;

    let (all, done) = (requests(), AtomicUsize::new(0));
    let each = all.div_ceil(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let numbers = client * each..all.min((client + 1) * each);
            let seeds = seeds(&format!("own{client}"), &data, &npy, &snapshot);
            let (lab, done) = (&lab, &done);
            scope.spawn(move || done.fetch_add(send(lab, client, &seeds, numbers), Relaxed));
        }
    });
    let done = done.into_inner();
    let refused = all - done;
    assert!(
        done > all / 10 && refused > all / 10,
        "{done} done, {refused} refused"
    );
    assert_eq!(lab.metric("garlic_panics_total"), 0.0);
    lab.post("/v1/indexes/a/search", &search()).expect(200);
}
