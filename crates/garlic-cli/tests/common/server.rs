//! `garlic serve` as a process.

// Every test file uses a part of this.
#![allow(dead_code)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::command;

/// A server in a process of its own. Dropping it kills it.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    agent: ureq::Agent,
}

impl Server {
    pub(crate) fn start(args: &[&str], folder: &Path) -> Self {
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
    pub(crate) fn post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.agent.post(format!("{}{path}", self.address));
        let request = request.header("content-type", "application/json");
        let mut response = request.send(body.to_string()).ok()?;
        let text = response.body_mut().read_to_string().ok()?;
        Some((
            response.status().as_u16(),
            serde_json::from_str(&text).unwrap_or_default(),
        ))
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut response = self
            .agent
            .get(format!("{}/metrics", self.address))
            .call()
            .unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Ends it with a signal and gives its exit code and its log.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
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
