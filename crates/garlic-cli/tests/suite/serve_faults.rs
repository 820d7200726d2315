//! `garlic serve` as a process: what is left when it is killed, and what it does while many clients misbehave.
//!
//! `GARLIC_KILLS` sets how often it is killed, `GARLIC_CONNECTIONS` how many clients there are.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Lab;
use crate::server::Server;
use garlic_linalg::{random_stream, uniform_unit};
use garlic_table::{Collection, Ids};
use serde_json::json;

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
        check_pairs(&lab, round, &mut acknowledged.lock().unwrap());
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

/// The directory has every pair of points as a whole, in the version that was acknowledged last or sent last.
fn check_pairs(lab: &Lab, round: usize, pairs: &mut BTreeMap<u64, (u64, u64)>) {
    let opened = Collection::open_read_only(&lab.path("root/a")).unwrap();
    let index = opened.index();
    let mut there = 0;
    for (pair, (known, sent)) in pairs {
        let version = |id| index.get(id).map(|vector| vector[0] as u64);
        let [first, second] = [2 * *pair, 2 * *pair + 1].map(version);
        assert_eq!(first, second, "pair {pair} of round {round}");
        assert!(
            first == Some(*known) || first == Some(*sent) || (first.is_none() && *known == 0),
            "pair {pair} of round {round}: {first:?}, {known} acknowledged, {sent} sent"
        );
        *known = first.unwrap_or(0);
        there += 2 * usize::from(first.is_some());
    }
    assert_eq!(index.len(), there);
}

fn connections() -> usize {
    let set = std::env::var("GARLIC_CONNECTIONS").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(240)
}

/// Threads that open connections, and how often they all do. The first times warm the server up.
const OPENERS: usize = 8;
const ROUNDS: usize = 6;
const WARM_ROUNDS: usize = 3;
/// `--max-body`.
const MOST_BYTES: usize = 1 << 20;
/// What the process may grow by after it has warmed up.
const SPARE_BYTES: f64 = 32.0 * (1 << 20) as f64;

const POST: &str = "POST /v1/indexes/many/search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

/// A client that does something wrong; it stays connected as long as what is given lives, if the server lets it.
fn misbehave(address: &str, kind: usize) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).expect("a higher limit of open files (ulimit -n)");
    let wait = Some(Duration::from_secs(60));
    stream.set_read_timeout(wait).unwrap();
    // The server may have closed the connection.
    let mut say = |bytes: &[u8]| drop(stream.write_all(bytes));
    match kind {
        // Says nothing.
        0 => return Some(stream),
        // Slow head.
        1 => say(b"GET /v1/indexes HTTP/1.1\r\nhost: localhost\r\nx: "),
        // Slow body.
        2 => say(format!("{POST}content-length: 900\r\n\r\n{{\"vectors\": [").as_bytes()),
        // Too large, announced or not.
        3 => say(format!("{POST}content-length: {}\r\n\r\n", 4 * MOST_BYTES).as_bytes()),
        4 => {
            say(format!("{POST}transfer-encoding: chunked\r\n\r\n").as_bytes());
            let piece = [
                format!("{:x}\r\n", 1 << 16),
                " ".repeat(1 << 16),
                "\r\n".into(),
            ]
            .concat();
            for _ in 0..=MOST_BYTES >> 16 {
                say(piece.as_bytes());
            }
        }
        // Malformed body, and malformed head.
        5 => say(format!("{POST}content-length: 9\r\n\r\n{{\"k\":1,,}}").as_bytes()),
        6 => say(b"\x16\x03\x01 garbage \xff\xfe\r\n\r\n"),
        // Asks for work and leaves.
        _ => {
            let body = json!({ "ids": [1, 2, 3, 4], "k": 50, "exact": true }).to_string();
            say(format!("{POST}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
            return None;
        }
    }
    if matches!(kind, 3..=6) {
        let mut answer = [0; 12];
        let read = stream.read(&mut answer).unwrap_or(0);
        let status = String::from_utf8_lossy(&answer[..read]).into_owned();
        let wanted = [
            "HTTP/1.1 413",
            "HTTP/1.1 413",
            "HTTP/1.1 400",
            "HTTP/1.1 400",
        ][kind - 3];
        // A client that goes on sending may see the end of the connection instead of the answer, and many at a time may
        // find no room for their bodies.
        let is_chunked = kind == 4 && (read == 0 || status == "HTTP/1.1 503");
        assert!(status == wanted || is_chunked, "{kind}: {status}");
    }
    Some(stream)
}

/// Opens connections of all kinds, keeps them while `steps` bytes are sent on each, and closes them.
fn flood(server: &Server, steps: usize) -> f64 {
    let address = server.address.strip_prefix("http://").unwrap();
    let all = connections();
    let mut streams: Vec<TcpStream> = thread::scope(|scope| {
        // For every three that stay, one that does not.
        let clients = |n| {
            [Some(n % 3), (n % 3 == 0).then_some(3 + n / 3 % 5)]
                .into_iter()
                .flatten()
        };
        let open = move |n| clients(n).filter_map(|kind| misbehave(address, kind));
        let open = |opener| {
            scope.spawn(move || {
                (opener..all)
                    .step_by(OPENERS)
                    .flat_map(open)
                    .collect::<Vec<_>>()
            })
        };
        let openers: Vec<_> = (0..OPENERS).map(open).collect();
        openers
            .into_iter()
            .flat_map(|opener| opener.join().unwrap())
            .collect()
    });
    let most = server.metric("garlic_connections");
    for _ in 0..steps {
        for stream in &mut streams {
            let _ = stream.write_all(b"1");
        }
        thread::sleep(Duration::from_millis(50));
    }
    drop(streams);
    while server.metric("garlic_connections") > 2.0
        || server.metric("garlic_requests_in_flight") > 0.0
    {
        thread::sleep(Duration::from_millis(5));
    }
    most
}

/// Does something when it goes away.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Many clients are slow, wrong or gone. Others get their answers meanwhile, and the memory of the server does not grow.
#[test]
#[expect(clippy::print_stderr, reason = "what was measured")]
fn clients_that_misbehave_cost_others_nothing_and_leave_nothing() {
    let lab = Lab::with_live_index();
    let server = Server::start(&["many.garlic", "--max-body", "1"], lab.folder());
    let done = AtomicBool::new(false);
    let mut memory = Vec::new();
    let (mut waits, most) = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut waits = Vec::new();
            let asked = json!({ "ids": [7], "k": 1, "recall": 0.9 });
            while !done.load(Relaxed) {
                let asked_at = Instant::now();
                let (status, answer) = server.post("/v1/indexes/many/search", &asked).unwrap();
                waits.push(asked_at.elapsed().as_micros() as u64);
                let hit = &answer["results"][0]["hits"][0]["id"];
                assert_eq!((status, hit), (200, &json!(7)), "{answer}");
                thread::sleep(Duration::from_millis(1));
            }
            waits
        });
        let mut most = 0.0_f64;
        // The searches end with the rounds, also if one of these fails.
        let ends = OnDrop(|| done.store(true, Relaxed));
        for _ in 0..ROUNDS {
            most = most.max(flood(&server, 10));
            memory.push(server.metric("garlic_resident_bytes"));
        }
        drop(ends);
        (asking.join().unwrap(), most)
    });
    waits.sort_unstable();
    let wait = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{} clients, {most} connections at a time; {} searches beside them, p50 {} us, p99 {} us, longest {} us; MiB after each round {:?}",
        ROUNDS * connections() * 4 / 3,
        waits.len(),
        wait(0.5),
        wait(0.99),
        wait(1.0),
        memory
            .iter()
            .map(|bytes| (bytes / f64::from(1 << 20)).round())
            .collect::<Vec<_>>(),
    );
    // Those that say nothing or send slowly stay.
    assert!(most >= connections() as f64, "{most} connections");
    assert_eq!(server.metric("garlic_panics_total"), 0.0);
    let warm = memory[WARM_ROUNDS - 1];
    assert!(memory[ROUNDS - 1] <= warm + SPARE_BYTES, "{memory:?}");
}
