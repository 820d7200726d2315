//! `garlic serve` as a process: its address, its errors and its end.

use crate::common::{Lab, command, finish};
use crate::server::Server;
use serde_json::{Value, json};

#[test]
fn files_and_directories_are_served_until_a_signal_comes() {
    let lab = Lab::with_live_index();
    for signal in ["-TERM", "-INT"] {
        let server = Server::start(&["file=many.garlic", "live", "--log-json"], lab.folder());
        for name in ["file", "live"] {
            let asked = json!({ "ids": [7], "k": 1, "exact": true });
            let (status, answer) = server
                .post(&format!("/v1/indexes/{name}/search"), &asked)
                .unwrap();
            assert_eq!(
                (status, &answer["results"][0]["hits"][0]["id"]),
                (200, &json!(7))
            );
        }
        let point = json!({ "ids": [7], "vectors": [[0.0, 0, 0, 0, 0, 0, 0, 0.125]] });
        assert_eq!(
            server.post("/v1/indexes/live/points", &point).unwrap().0,
            200
        );
        let (code, log) = server.end(signal);
        assert_eq!(code, Some(0), "{log}");
        let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_eq!(last["fields"]["message"], "stopped", "{log}");
        assert!(!log.contains("0.125"), "no vectors in logs: {log}");
    }
}

#[test]
fn what_cannot_be_served_is_an_error() {
    let lab = Lab::with_live_index();
    lab.run(&["serve"]).expect_error(2, &["INDEX"]);
    lab.run(&["serve", "none.garlic"])
        .expect_error(3, &["none.garlic"]);
    lab.run(&["serve", "points.npy"])
        .expect_error(3, &["points.npy"]);
    lab.run(&["serve", "many.garlic", "--listen", "0.0.0.0:0"])
        .expect_error(2, &["--keys", "--insecure"]);
    lab.write("keys.txt", "admin abcdefghijklmnopqrst\n");
    lab.run(&["serve", "many.garlic", "--keys", "keys.txt"])
        .expect_error(2, &["keys.txt", "line 1"]);
    lab.run(&["serve", "a=many.garlic", "a=live"])
        .expect_error(3, &["two indexes", "`a`"]);
    lab.run(&[
        "serve",
        "many.garlic",
        "--tls-cert",
        "keys.txt",
        "--tls-key",
        "keys.txt",
    ])
    .expect_error(1, &["keys.txt"]);
    let mut weak = command(["serve", "many.garlic"]);
    let ran = finish(
        weak.env("GARLIC_WRITE_KEY", "short")
            .current_dir(lab.folder()),
    );
    ran.expect_error(2, &["GARLIC_WRITE_KEY", "16"]);

    let server = Server::start(&["live"], lab.folder());
    lab.run(&["serve", "live", "--listen", "127.0.0.1:0"])
        .expect_error(1, &["another writer"]);
    let reader = Server::start(&["live", "--read-only"], lab.folder());
    let point = json!({ "ids": [7], "vectors": [[0, 0, 0, 0, 0, 0, 0, 0]] });
    assert_eq!(
        reader.post("/v1/indexes/live/points", &point).unwrap().0,
        409
    );
    drop(server);
}
