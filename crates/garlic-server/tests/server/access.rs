//! Keys, and requests that pages of other sites make.

use garlic_server::{Keys, Options, Server, StartError};
use serde_json::json;

use crate::client::Lab;

const READ: &str = "read-read-read-read";
const WRITE: &str = "write-write-write-write";

fn keys() -> Keys {
    Keys::parse(&format!("read {READ}\nwrite {WRITE}")).unwrap()
}

#[test]
fn keys_decide_who_reads_and_who_writes() {
    let lab = Lab::with(|options, _| options.keys = keys());
    let body = json!({ "dim": 2 }).to_string();
    let json = ("content-type", "application/json");
    let create = |key: &str| {
        lab.send(
            "PUT",
            "/v1/indexes/a",
            &[("authorization", key), json],
            body.as_bytes(),
        )
    };
    create("Bearer nobody-nobody-nobody").expect_error(401, "no_key", &["Bearer"]);
    create("Basic write-write-write-write").expect_error(401, "no_key", &["Bearer"]);
    create(&format!("Bearer {READ}")).expect_error(403, "read_key", &["writing"]);
    create(&format!("bearer  {WRITE}")).expect(200);
    let list = |headers: &[(&str, &str)]| lab.send("GET", "/v1/indexes", headers, &[]);
    assert_eq!(list(&[]).headers["www-authenticate"], "Bearer");
    list(&[]).expect_error(401, "no_key", &["key"]);
    list(&[("x-api-key", READ)]).expect(200);
    list(&[("x-api-key", WRITE)]).expect(200);
    assert_eq!(lab.send("GET", "/metrics", &[], &[]).status, 401);
    let head = |path: &str, headers: &[(&str, &str)]| lab.send("HEAD", path, headers, &[]).status;
    for path in ["/v1/indexes", "/metrics", "/v1/indexes/a/snapshot"] {
        assert_eq!(head(path, &[]), 401, "HEAD needs the keys of GET");
    }
    assert_eq!(head("/v1/indexes", &[("x-api-key", READ)]), 200);
    for method in ["OPTIONS", "PATCH", "TRACE"] {
        let refused = lab.send(method, "/v1/indexes", &[], &[]).status;
        assert_eq!(refused, 405, "{method}");
    }
    for open in [
        "/",
        "/explorer.css",
        "/explorer/main.js",
        "/healthz",
        "/readyz",
        "/openapi.json",
    ] {
        assert_eq!(lab.get(open).status, 200, "{open}");
    }
}

#[test]
fn an_address_beyond_loopback_needs_keys() {
    let mut options = Options::default();
    options.address = "0.0.0.0:0".parse().unwrap();
    let error = Server::bind(options.clone()).unwrap_err();
    assert!(matches!(error, StartError::Unprotected { .. }), "{error}");
    assert!(error.to_string().contains("--keys"));
    options.insecure = true;
    drop(Server::bind(options.clone()).unwrap());
    (options.insecure, options.keys) = (false, keys());
    drop(Server::bind(options).unwrap());
}

#[test]
fn pages_of_other_sites_are_refused() {
    let lab = Lab::with(|options, _| options.hosts.push("search.example".into()));
    let own = format!("http://{}", lab.address);
    let list = |headers: &[(&str, &str)]| lab.send("GET", "/v1/indexes", headers, &[]).status;
    assert_eq!(list(&[("origin", &own)]), 200);
    assert_eq!(list(&[("origin", "http://elsewhere.example")]), 403);
    assert_eq!(list(&[("origin", "null")]), 403);
    // A name that leads to loopback by a trick of the name service.
    assert_eq!(list(&[("host", "elsewhere.example")]), 403);
    assert_eq!(list(&[("host", "search.example")]), 200);
    assert_eq!(list(&[("host", "localhost:1")]), 200);
    assert_eq!(list(&[("host", "[::1]:7878")]), 200);
}

#[test]
fn answers_of_the_page_have_a_policy() {
    let lab = Lab::new();
    let page = lab.get("/");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    let text = String::from_utf8(page.body).unwrap();
    assert!(
        !text.contains("http://") && !text.contains("https://"),
        "nothing from elsewhere"
    );
    assert!(
        !text.contains("style=") && !text.contains("onclick="),
        "nothing that the policy refuses"
    );
    assert_eq!(lab.get("/explorer/other.js").status, 404);
}
