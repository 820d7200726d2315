//! A server on a free port, and a client for it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use garlic_ann::{Index, Rows};
use garlic_linalg::{random_stream, uniform_unit};
use garlic_server::{Handle, Options, Server};
use serde_json::Value;
use tempfile::TempDir;

/// A running server. Dropping it stops it.
pub(crate) struct Lab {
    pub(crate) address: SocketAddr,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    agent: ureq::Agent,
    folder: TempDir,
}

/// A status and a body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON, of an answer with this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// An error with this status and code, whose message has all of `parts`.
    #[track_caller]
    pub(crate) fn expect_error(&self, status: u16, code: &str, parts: &[&str]) {
        let error = &self.expect(status)["error"];
        assert_eq!(error["code"], code, "{error}");
        let message = error["message"].as_str().unwrap();
        for part in parts {
            assert!(message.contains(part), "no `{part}` in: {message}");
        }
    }
}

impl Lab {
    /// A server of an empty root.
    pub(crate) fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// A server with other options; the folder may be given files first.
    pub(crate) fn with(set: impl FnOnce(&mut Options, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.address = SocketAddr::from(([127, 0, 0, 1], 0));
        options.root = Some(folder.path().join("root"));
        options.threads = 2;
        set(&mut options, folder.path());
        let server = Server::bind(options).unwrap();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(120)))
            .build();
        Self {
            address: server.address(),
            handle: server.handle(),
            thread: Some(std::thread::spawn(move || server.run())),
            agent: config.new_agent(),
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Stops the server and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.to_vec()).unwrap();
        let mut response = self.agent.run(request).unwrap();
        Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response
                .body_mut()
                .with_config()
                .limit(1 << 30)
                .read_to_vec()
                .unwrap(),
        }
    }

    pub(crate) fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.send(method, path, &headers, body.to_string().as_bytes())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.json("POST", path, body)
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.json("PUT", path, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], &[])
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], &[])
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = String::from_utf8(self.get("/metrics").body).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Random vectors around some centres, the same for the same seed.
pub(crate) fn vectors(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 0);
    (0..rows * dim)
        .map(|i| ((i / dim) % 5) as f32 + uniform_unit(&mut rng) as f32)
        .collect()
}

pub(crate) fn lists(data: &[f32], dim: usize) -> Value {
    data.chunks_exact(dim)
        .map(|row| row.iter().map(|v| Value::from(*v)).collect::<Value>())
        .collect()
}

/// An index file of random vectors.
pub(crate) fn save_index(path: &Path, rows: usize, dim: usize, seed: u64) {
    let data = vectors(rows, dim, seed);
    let index = Index::builder()
        .threads(2)
        .build(Rows::new(&data, dim).unwrap())
        .unwrap();
    index.save(path).unwrap();
}

/// Nearest rows by brute force: numbers and Euclidean distances.
pub(crate) fn brute(data: &[f32], dim: usize, query: &[f32], k: usize) -> Vec<(u64, f32)> {
    let distance = |row: &[f32]| {
        let squares = row.iter().zip(query).map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum::<f64>().sqrt() as f32
    };
    let mut all: Vec<(u64, f32)> = (0..).zip(data.chunks_exact(dim).map(distance)).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}
