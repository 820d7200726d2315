//! `garlic datasets --get` and `--labels`, from a server in this process that can fail in many ways.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::common::{Lab, Ran, command, finish};

const NAME: &str = "sift-128-euclidean";
const SIZE: usize = 1_000_000;

/// What the server has, and how it behaves.
#[derive(Clone)]
struct Plan {
    status: &'static str,
    data: Vec<u8>,
    etag: Option<&'static str>,
    /// Bytes of a body after which it hangs up.
    breaks_after: usize,
    /// Whether it says how long a body is.
    sends_length: bool,
    /// Whether the last byte comes again and again, until the client hangs up.
    endless: bool,
}

/// How HDF5 files begin.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
const GZIP: &[u8] = b"\x1f\x8b";

/// What a network sends to those who have not paid.
fn page() -> Vec<u8> {
    let mut page = b"<!DOCTYPE html><title>Welcome to our network</title>".to_vec();
    page.resize(9000, b' ');
    page
}

struct Server {
    base: String,
    plan: Arc<Mutex<Plan>>,
    /// The header `Range` of every request.
    ranges: Arc<Mutex<Vec<Option<String>>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            base: format!("http://{}/", listener.local_addr().unwrap()),
            plan: Arc::new(Mutex::new(Plan {
                status: "200 OK",
                data: bytes(1),
                etag: Some("\"one\""),
                breaks_after: usize::MAX,
                sends_length: true,
                endless: false,
            })),
            ranges: Arc::default(),
        };
        let (plan, ranges) = (Arc::clone(&server.plan), Arc::clone(&server.ranges));
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let now = plan.lock().unwrap().clone();
                // A client that hangs up is no concern of the server's.
                let _ = answer(stream.unwrap(), &now, &ranges);
            }
        });
        server
    }

    fn change(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan.lock().unwrap());
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.ranges.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    plan: &Plan,
    ranges: &Mutex<Vec<Option<String>>>,
) -> std::io::Result<()> {
    let mut headers = Vec::new();
    for line in BufReader::new(stream.try_clone()?).lines() {
        match line? {
            line if line.is_empty() => break,
            line => headers.push(line),
        }
    }
    let header = |name: &str| {
        headers.iter().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let range = header("range");
    ranges.lock().unwrap().push(range.clone());
    let same = plan.etag.is_some() && header("if-range").as_deref() == plan.etag;
    let begin = range
        .filter(|_| same)
        .and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok())
        .unwrap_or(0);
    let all = plan.data.len();
    let body = &plan.data[begin..];
    let mut head = format!(
        "HTTP/1.1 {}\r\n",
        if begin > 0 {
            "206 Partial Content"
        } else {
            plan.status
        }
    );
    if begin > 0 {
        head += &format!("Content-Range: bytes {begin}-{}/{all}\r\n", all - 1);
    }
    if let Some(etag) = plan.etag {
        head += &format!("ETag: {etag}\r\n");
    }
    if plan.sends_length {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    head += "Connection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body[..body.len().min(plan.breaks_after)])?;
    if !plan.endless {
        return Ok(());
    }
    let filler = [plan.data.last().copied().unwrap_or(0); 4096];
    loop {
        stream.write_all(&filler)?;
    }
}

/// A file that begins as HDF5 does.
fn bytes(seed: u64) -> Vec<u8> {
    let values = crate::common::clusters(SIZE / 4, 1, seed);
    let mut bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    bytes[..SIGNATURE.len()].copy_from_slice(SIGNATURE);
    bytes
}

struct Try {
    lab: Lab,
    server: Server,
}

impl Try {
    fn new() -> Self {
        Self {
            lab: Lab::new(),
            server: Server::start(),
        }
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_from(&self.server.base, args)
    }

    fn run_from(&self, base: &str, args: &[&str]) -> Ran {
        finish(
            command(["datasets"].iter().chain(args))
                .env("GARLIC_DATA", self.lab.path("data"))
                .env("GARLIC_DATASETS_URL", base),
        )
    }

    fn get(&self) -> Ran {
        self.run(&["--get", NAME, "--json"])
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.lab.path(&format!("data/{NAME}.hdf5{ending}"))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.lab.path("data"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_set_comes_once_and_is_checked_again() {
    let t = Try::new();
    let told = &t.get().expect(0).json()[0];
    assert_eq!(
        (&told["bytes"], &told["downloaded"]),
        (&SIZE.into(), &true.into())
    );
    assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(1));
    let file = format!("{NAME}.hdf5");
    assert_eq!(t.names(), [file.clone(), format!("{file}.sha256")]);
    let sum = std::fs::read_to_string(t.file(".sha256")).unwrap();
    assert_eq!(
        sum,
        format!("{}  {file}\n", told["sha256"].as_str().unwrap())
    );

    let told = &t.get().expect(0).json()[0];
    assert_eq!(told["downloaded"], false);
    let text = t.run(&["--get", NAME]).expect(0).stdout;
    assert!(text.contains("there already"), "{text}");
    assert_eq!(t.server.ranges(), [None]);

    let mut changed = bytes(1);
    changed[SIZE / 2] ^= 1;
    std::fs::write(t.file(""), changed).unwrap();
    t.get().expect_error(3, &["checksum", "delete it"]);
    // What was put there by hand has nothing to be compared with.
    std::fs::remove_file(t.file(".sha256")).unwrap();
    let ran = t.run(&["--get", NAME]).expect(0);
    assert!(ran.stderr.contains("without a checksum"), "{}", ran.stderr);
}

#[test]
fn the_checksum_is_a_sha256() {
    let t = Try::new();
    t.server.change(|plan| plan.data = SIGNATURE.to_vec());
    assert_eq!(
        t.get().expect(0).json()[0]["sha256"],
        "4ca2915fde0a9d1d5dd59e6f6e535c04337c9b4f05dbb4b38af0a5db3c50f933"
    );
}

#[test]
fn an_interrupted_download_goes_on() {
    let t = Try::new();
    t.server.change(|plan| plan.breaks_after = 300_000);
    for have in ["300000", "600000", "900000"] {
        t.get().expect_error(
            1,
            &[&format!("ended after {have} of 1000000 bytes"), "again"],
        );
        assert!(!t.file("").exists());
    }
    t.get().expect(0);
    assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(1));
    let range = |n| Some(format!("bytes={n}-"));
    assert_eq!(
        t.server.ranges(),
        [None, range(300_000), range(600_000), range(900_000)]
    );
    assert_eq!(t.names().len(), 2);
}

#[test]
fn a_part_that_has_changed_is_not_used() {
    let t = Try::new();
    t.server.change(|plan| plan.breaks_after = 300_000);
    t.get().expect(1);
    let mut part = std::fs::read(t.file(".part")).unwrap();
    part[1000] ^= 1;
    std::fs::write(t.file(".part"), part).unwrap();
    t.server.change(|plan| plan.breaks_after = usize::MAX);
    t.get().expect(0);
    assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(1));
    assert_eq!(t.server.ranges(), [None, None]);
}

#[test]
fn what_the_note_does_not_vouch_for_is_cut_off() {
    let t = Try::new();
    t.server.change(|plan| plan.breaks_after = 300_000);
    t.get().expect(1);
    let mut part = std::fs::read(t.file(".part")).unwrap();
    part.extend([7; 5000]);
    std::fs::write(t.file(".part"), part).unwrap();
    t.server.change(|plan| plan.breaks_after = usize::MAX);
    t.get().expect(0);
    assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(1));
    assert_eq!(t.server.ranges()[1].as_deref(), Some("bytes=300000-"));
}

#[test]
fn another_version_begins_anew() {
    let t = Try::new();
    t.server.change(|plan| plan.breaks_after = 300_000);
    t.get().expect(1);
    t.server.change(|plan| {
        (plan.data, plan.etag, plan.breaks_after) = (bytes(2), Some("\"two\""), usize::MAX);
    });
    t.get().expect(0);
    assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(2));
}

#[test]
fn without_a_version_everything_comes_again() {
    for etag in [None, Some("W/\"weak\"")] {
        let t = Try::new();
        t.server
            .change(|plan| (plan.etag, plan.breaks_after) = (etag, 300_000));
        t.get().expect(1);
        t.server.change(|plan| plan.breaks_after = usize::MAX);
        t.get().expect(0);
        assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(1));
        assert_eq!(t.server.ranges(), [None, None]);
    }
}

#[test]
fn what_python_has_begun_goes_on() {
    let t = Try::new();
    std::fs::create_dir(t.lab.path("data")).unwrap();
    std::fs::write(t.file(".part"), &bytes(1)[..400_000]).unwrap();
    let note = serde_json::json!({
        "url": format!("{}{NAME}.hdf5", t.server.base), "version": "\"one\"", "length": SIZE,
    });
    std::fs::write(t.file(".part.json"), note.to_string()).unwrap();
    t.get().expect(0);
    assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(1));
    assert_eq!(t.server.ranges(), [Some("bytes=400000-".to_owned())]);
}

#[test]
fn failures_say_what_to_do_and_leave_nothing() {
    let t = Try::new();
    t.server.change(|plan| plan.status = "404 Not Found");
    t.get().expect_error(
        1,
        &[NAME, "404", "by hand", &t.file("").display().to_string()],
    );
    assert!(t.names().is_empty());

    // Nobody listens on a port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    t.run_from(&format!("http://{free}"), &["--get", NAME])
        .expect_error(1, &["cannot be reached", "by hand", NAME]);
    assert!(t.names().is_empty());

    t.run(&["--get", "sift"]).expect_error(2, &["sift", NAME]);
    t.run(&["--get", NAME, "--labels", "mnist"])
        .expect_error(2, &["--labels"]);
    for base in ["http://elsewhere.invalid/", "ftp://127.0.0.1:21/"] {
        t.run_from(base, &["--get", NAME])
            .expect_error(2, &["GARLIC_DATASETS_URL", "https://"]);
    }
    t.run(&["--get", NAME, "--dir", "/dev/null/data"])
        .expect_error(1, &["/dev/null/data"]);
}

#[test]
fn a_download_has_one_process() {
    let t = Try::new();
    std::fs::create_dir(t.lab.path("data")).unwrap();
    let part = std::fs::File::create(t.file(".part")).unwrap();
    part.lock().unwrap();
    t.get().expect_error(1, &["another process"]);
    drop(part);
    t.get().expect(0);
}

#[test]
fn labels_must_have_the_checksum_of_their_publisher() {
    let t = Try::new();
    t.server.change(|plan| plan.data = GZIP.to_vec());
    t.run(&["--labels", "mnist"])
        .expect_error(3, &["d53e105ee54ea40749a09fcbcd1e9432", "nothing was kept"]);
    assert!(t.names().is_empty());
    t.run(&["--labels", "sift"])
        .expect_error(2, &["fashion-mnist"]);
}

#[test]
fn a_page_is_no_data_set() {
    for sends_length in [true, false] {
        for data in [page(), Vec::new(), SIGNATURE[..5].to_vec()] {
            let t = Try::new();
            t.server.change(|plan| {
                (plan.data, plan.sends_length) = (data.clone(), sends_length);
            });
            t.get()
                .expect_error(3, &[NAME, "no HDF5 file", "nothing was kept"]);
            assert!(t.names().is_empty(), "{:?}", t.names());
            // One that an earlier version has taken in, checksum and all.
            std::fs::write(t.file(""), &data).unwrap();
            t.get()
                .expect_error(3, &[NAME, "no HDF5 file", "delete it"]);
        }
    }
    let t = Try::new();
    t.server.change(|plan| plan.data = page());
    t.run(&["--labels", "mnist"])
        .expect_error(3, &["no gzip file", "nothing was kept"]);
    assert!(t.names().is_empty());
}

#[test]
fn a_page_that_was_begun_is_not_gone_on_with() {
    let t = Try::new();
    t.server
        .change(|plan| (plan.data, plan.breaks_after) = (page(), 5000));
    t.get().expect_error(3, &["no HDF5 file"]);
    assert!(t.names().is_empty());
    // Left there whole by an earlier version: nothing is left to ask the server for.
    std::fs::write(t.file(".part"), page()).unwrap();
    let note = serde_json::json!({
        "url": format!("{}{NAME}.hdf5", t.server.base), "version": "\"one\"", "length": page().len(),
    });
    std::fs::write(t.file(".part.json"), note.to_string()).unwrap();
    t.get()
        .expect_error(3, &["no HDF5 file", "nothing was kept"]);
    assert!(t.names().is_empty());
}

#[test]
fn a_download_has_a_limit() {
    for sends_length in [true, false] {
        let t = Try::new();
        t.server.change(|plan| plan.sends_length = sends_length);
        let get = |most: &str| t.run(&["--get", NAME, "--json", "--max-bytes", most]);
        get("999999").expect_error(
            3,
            &["more than 999999 bytes", "nothing was kept", "--max-bytes"],
        );
        assert!(t.names().is_empty(), "{:?}", t.names());
        get("1000000").expect(0);
        assert_eq!(std::fs::read(t.file("")).unwrap(), bytes(1));
    }
    let t = Try::new();
    t.run(&["--get", NAME, "--max-bytes", "0"])
        .expect_error(2, &["--max-bytes"]);
    t.run(&["--max-bytes", "7"]).expect_error(2, &["--get"]);
}

#[test]
fn what_goes_on_has_the_same_limit() {
    let t = Try::new();
    t.server.change(|plan| plan.breaks_after = 300_000);
    t.get().expect(1);
    t.server.change(|plan| plan.breaks_after = usize::MAX);
    t.run(&["--get", NAME, "--max-bytes", "400000"])
        .expect_error(3, &["more than 400000 bytes"]);
    assert!(t.names().is_empty());
}

#[test]
fn a_body_without_end_is_given_up() {
    let t = Try::new();
    t.server.change(|plan| {
        (plan.sends_length, plan.endless) = (false, true);
    });
    t.run(&["--get", NAME, "--max-bytes", "5000000"])
        .expect_error(3, &["more than 5000000 bytes", "nothing was kept"]);
    assert!(t.names().is_empty());
    t.server.change(|plan| plan.data = GZIP.to_vec());
    // Labels are small.
    t.run(&["--labels", "mnist"])
        .expect_error(3, &["more than 1048576 bytes", "nothing was kept"]);
    assert!(t.names().is_empty());
}
