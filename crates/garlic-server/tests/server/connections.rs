//! Clients that are slow, large, many or gone.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::client::{Lab, lists, save_index, vectors};

fn connect(lab: &Lab) -> TcpStream {
    let stream = TcpStream::connect(lab.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

/// Everything that the server sends until it closes the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A connection may also be reset, after what was sent.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn slow_heads_and_bodies_end_and_others_are_served_meanwhile() {
    let lab = Lab::with(|options, _| {
        options.limits.idle = Duration::from_millis(300);
        options.limits.time = Duration::from_millis(300);
    });
    let mut slow_head = connect(&lab);
    slow_head
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx:")
        .unwrap();
    let mut slow_body = connect(&lab);
    let head = "PUT /v1/indexes/a HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    slow_body.write_all(head.as_bytes()).unwrap();
    assert_eq!(lab.get("/healthz").status, 200);
    let answer = rest(slow_body);
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("did not arrive in time"),
        "{answer}"
    );
    assert!(!rest(slow_head).starts_with("HTTP/1.1 2"));
    lab.get("/v1/indexes/a").expect_error(404, "no_index", &[]);
    lab.put("/v1/indexes/a", &json!({ "dim": 2 })).expect(200);
}

#[test]
fn large_bodies_are_refused_before_and_while_they_are_read() {
    let lab = Lab::with(|options, _| options.limits.body = 2000);
    let json = ("content-type", "application/json");
    lab.send("PUT", "/v1/indexes/a", &[json], &[b' '; 2001])
        .expect_error(413, "too_large", &["2000"]);
    let mut stream = connect(&lab);
    let head = "PUT /v1/indexes/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..3 {
        // The server may have closed the connection already.
        let _ = stream.write_all(format!("3e8\r\n{}\r\n", " ".repeat(1000)).as_bytes());
    }
    let answer = rest(stream);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    lab.put("/v1/indexes/a", &json!({ "dim": 2 })).expect(200);
}

#[test]
fn more_requests_than_allowed_get_429_and_health_is_told_all_the_same() {
    let lab = Lab::with(|options, folder| {
        options.limits.requests = 0;
        save_index(&folder.join("f.garlic"), 50, 3, 1);
        let path = folder.join("f.garlic").display().to_string();
        options.indexes.push(path.parse().unwrap());
    });
    let refused = lab.get("/v1/indexes");
    refused.expect_error(429, "too_many_requests", &["try again"]);
    assert_eq!(refused.headers["retry-after"], "1");
    for (path, body) in [
        ("a", json!({ "dim": 2 })),
        ("f/compact", json!({})),
        ("f/recalibrate", json!({})),
        ("f/search", json!({ "ids": [1] })),
    ] {
        lab.post(&format!("/v1/indexes/{path}"), &body)
            .expect_error(429, "too_many_requests", &[]);
    }
    assert_eq!(
        (lab.get("/healthz").status, lab.get("/readyz").status),
        (200, 200)
    );
}

#[test]
fn a_body_that_nobody_reads_spares_no_request_its_turn() {
    let lab = Lab::with(|options, _| options.limits.requests = 0);
    let status = |method: &str, path: &str| {
        let mut stream = connect(&lab);
        let head = format!(
            "{method} /v1/indexes{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        rest(stream)
            .split(' ')
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(status("GET", ""), "429");
    assert_eq!(status("HEAD", "/a"), "429");
    assert_eq!(status("DELETE", "/a"), "429");
    assert_eq!(status("GET", "/a/snapshot"), "429");
}

#[test]
fn a_request_that_is_refused_before_its_body_ends_its_connection() {
    let lab = Lab::new();
    let head = |path: &str, body: &str| {
        let mut stream = connect(&lab);
        let request = format!(
            "PUT /v1/indexes/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).to_lowercase()
    };
    let refused = head(".a", "{\"dim\"");
    assert!(
        refused.starts_with("http/1.1 422") && refused.contains("connection: close"),
        "{refused}"
    );
    let read = head("a", "{\"dim\": 2}");
    assert!(
        read.starts_with("http/1.1 200") && !read.contains("connection:"),
        "{read}"
    );
}

#[test]
fn get_has_no_body_and_downloads_have_a_limit() {
    let lab = Lab::with(|options, _| options.limits.downloads = 0);
    lab.put("/v1/indexes/a", &json!({ "dim": 2 })).expect(200);
    let mut stream = connect(&lab);
    let head = "GET /v1/indexes/a/points/count HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(head.as_bytes()).unwrap();
    let answer = rest(stream);
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("POST"),
        "{answer}"
    );
    lab.get("/v1/indexes/a/snapshot")
        .expect_error(429, "too_many_requests", &["snapshots"]);
}

#[test]
fn bodies_that_arrive_slowly_take_no_place_from_other_requests() {
    let lab = Lab::with(|options, _| options.limits.requests = 1);
    let mut slow: Vec<TcpStream> = (0..20).map(|_| connect(&lab)).collect();
    for (number, stream) in slow.iter_mut().enumerate() {
        let head = format!(
            "PUT /v1/indexes/a{number} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).unwrap();
    }
    while lab.metric("garlic_requests_in_flight") < 20.0 {
        thread::sleep(Duration::from_millis(1));
    }
    lab.get("/v1/indexes").expect(200);
    let mut last = slow.pop().unwrap();
    last.write_all(b"\"dim\": 2}").unwrap();
    assert!(rest(last).starts_with("HTTP/1.1 200"));
    lab.get("/v1/indexes/a19").expect(200);
}

#[test]
fn clients_that_leave_free_what_they_held() {
    let lab = Lab::with(|options, _| options.limits.requests = 4);
    lab.put(
        "/v1/indexes/a",
        &json!({ "vectors": lists(&vectors(500, 4, 1), 4) }),
    )
    .expect(200);
    for round in 0..20 {
        let mut stream = connect(&lab);
        let body =
            json!({ "vectors": lists(&vectors(50, 4, round), 4), "exact": true }).to_string();
        let head = format!(
            "POST /v1/indexes/a/search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
            .write_all(&body.as_bytes()[..body.len() - round as usize])
            .unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    }
    while lab.metric("garlic_requests_in_flight") > 0.0 {
        thread::sleep(Duration::from_millis(1));
    }
    lab.post("/v1/indexes/a/search", &json!({ "ids": [3] }))
        .expect(200);
    assert_eq!(lab.metric("garlic_panics_total"), 0.0);
}

#[test]
fn many_connections_do_not_keep_others_out() {
    let lab = Lab::with(|options, _| options.limits.connections = 300);
    let idle: Vec<TcpStream> = (0..299).map(|_| connect(&lab)).collect();
    while lab.metric("garlic_connections") < 300.0 {
        thread::sleep(Duration::from_millis(1));
    }
    // One too many is closed at once.
    assert_eq!(rest(connect(&lab)), "");
    drop(idle);
    while lab.metric("garlic_connections") > 1.0 {
        thread::sleep(Duration::from_millis(1));
    }
    drop(connect(&lab));
    assert_eq!(lab.get("/healthz").status, 200);
}

#[test]
fn a_server_that_stops_finishes_its_requests() {
    let mut lab = Lab::new();
    let mut request = connect(&lab);
    let body = json!({ "vectors": lists(&vectors(300, 4, 1), 4) }).to_string();
    let head = format!(
        "PUT /v1/indexes/a HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    request.write_all(head.as_bytes()).unwrap();
    while lab.metric("garlic_requests_in_flight") < 1.0 {
        thread::sleep(Duration::from_millis(1));
    }
    thread::scope(|scope| {
        let stopping = scope.spawn(|| lab.stop());
        request.write_all(body.as_bytes()).unwrap();
        assert!(rest(request).starts_with("HTTP/1.1 200"));
        stopping.join().unwrap();
    });
    assert!(TcpStream::connect(lab.address).is_err());
    assert!(lab.path("root/a/CURRENT").exists());
}
