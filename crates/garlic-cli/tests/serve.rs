//! `garlic serve` as a process: its address, its errors, its end, and what is left when it is killed.
//!
//! `GARLIC_KILLS` sets how often it is killed.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use common::{Lab, command, finish};
use garlic_linalg::{random_stream, uniform_unit};
use garlic_table::{Collection, Ids};
use serde_json::{Value, json};

/// A server in a process of its own. Dropping it kills it.
struct Server {
    child: Child,
    address: String,
    agent: ureq::Agent,
}

impl Server {
    fn start(args: &[&str], folder: &Path) -> Self {
        let mut child = command([&["serve", "--listen", "127.0.0.1:0"], args].concat())
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("serving at ").unwrap_or_else(|| {
            let mut log = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut log)
                .unwrap();
            panic!("{line} {log}")
        });
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build();
        Self {
            address: address.trim_end_matches('/').to_owned(),
            agent: config.new_agent(),
            child,
        }
    }

    /// The answer, or nothing if the server has gone.
    fn post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.agent.post(format!("{}{path}", self.address));
        let request = request.header("content-type", "application/json");
        let mut response = request.send(body.to_string()).ok()?;
        let text = response.body_mut().read_to_string().ok()?;
        Some((
            response.status().as_u16(),
            serde_json::from_str(&text).unwrap_or_default(),
        ))
    }

    /// Ends it with a signal and gives its exit code and its log.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let sent = std::process::Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        let mut log = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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

fn kills() -> usize {
    let set = std::env::var("GARLIC_KILLS").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(6)
}

const WRITERS: u64 = 3;
const SLOTS: u64 = 40;

/// Several clients write while others search, and the server is killed: what it acknowledged is there, as a whole, and
/// what it did not acknowledge is there as a whole or not at all.
#[test]
fn a_killed_server_has_every_write_that_it_acknowledged() {
    let lab = Lab::new();
    // The version of each pair of points that was acknowledged last, and the one that was sent last.
    let acknowledged: Mutex<BTreeMap<u64, (u64, u64)>> = Mutex::default();
    let mut rng = random_stream(5, 0);
    let version = AtomicU64::new(1);
    for round in 0..kills() {
        let server = Server::start(&["--root", "root"], lab.folder());
        if round == 0 {
            let created = server.post("/v1/indexes/a", &json!({ "dim": 3 })).unwrap();
            assert_eq!(created.0, 200, "{}", created.1);
        }
        let acks = AtomicU64::new(0);
        let wanted = (uniform_unit(&mut rng) * 60.0) as u64;
        let pause = Duration::from_micros((uniform_unit(&mut rng) * 3000.0) as u64);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (server, version, acknowledged, acks) =
                    (&server, &version, &acknowledged, &acks);
                scope.spawn(move || {
                    for slot in (0..SLOTS).cycle() {
                        let pair = writer * SLOTS + slot;
                        let new = version.fetch_add(1, Relaxed);
                        acknowledged.lock().unwrap().entry(pair).or_default().1 = new;
                        let vector = [new as f64, pair as f64, 1.0];
                        let body =
                            json!({ "ids": [2 * pair, 2 * pair + 1], "vectors": [vector, vector] });
                        match server.post("/v1/indexes/a/points", &body) {
                            Some((200, _)) => {
                                acknowledged.lock().unwrap().entry(pair).or_default().0 = new;
                                acks.fetch_add(1, Relaxed);
                            }
                            Some(other) => panic!("{other:?}"),
                            None => return,
                        }
                    }
                });
            }
            scope.spawn(|| {
                while server
                    .post("/v1/indexes/a/search", &json!({ "vectors": [1, 2, 3] }))
                    .is_some()
                {}
            });
            while acks.load(Relaxed) < wanted {
                thread::sleep(Duration::from_micros(200));
            }
            thread::sleep(pause);
            let killed = std::process::Command::new("kill")
                .args(["-9", &server.child.id().to_string()])
                .status();
            assert!(killed.unwrap().success());
        });
        drop(server);
        let index = Collection::open_read_only(&lab.path("root/a"))
            .unwrap()
            .index();
        let mut there = 0;
        for (pair, (known, sent)) in acknowledged.lock().unwrap().iter_mut() {
            let [first, second] =
                [2 * pair, 2 * pair + 1].map(|id| index.get(id).map(|v| v[0] as u64));
            assert_eq!(first, second, "pair {pair} of round {round}");
            assert!(
                first == Some(*known) || first == Some(*sent) || (first.is_none() && *known == 0),
                "pair {pair}: {first:?}, {known} acknowledged, {sent} sent"
            );
            *known = first.unwrap_or(0);
            there += 2 * usize::from(first.is_some());
        }
        assert_eq!(index.len(), there);
    }
    let index = Collection::open(&lab.path("root/a"), &garlic_ann::live::Options::new()).unwrap();
    assert!(
        index
            .snapshot()
            .unwrap()
            .numbers(&Ids::Numbers(vec![0, 1]))
            .is_ok()
    );
    assert!(
        version.load(Relaxed) > 20 * kills() as u64,
        "{version:?} writes"
    );
}
