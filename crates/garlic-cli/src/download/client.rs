//! The one part of the program that talks to the network.

use std::env;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, http::Response};

use super::part::Part;
use super::{PIECE, no_file, too_large};
use crate::exit::Fault;
use crate::progress::Meter;
use crate::sources::Source;

/// Replaces the public addresses: for mirrors, and for the tests.
const OTHER_BASE: &str = "GARLIC_DATASETS_URL";

/// How long a server may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks servers for files. Addresses are encrypted, but for one on this machine.
pub(crate) struct Client {
    agent: Agent,
    base: Option<String>,
}

impl Client {
    /// A client for the public addresses, or for the mirror that the environment names.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let base = env::var(OTHER_BASE).ok().filter(|base| !base.is_empty());
        let local = base.as_deref().is_some_and(is_local);
        if let Some(base) = &base
            && !(local || base.starts_with("https://"))
        {
            return Err(Fault::usage(format!(
                "{OTHER_BASE}={base}: must begin with https://"
            )));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .user_agent(concat!("garlic/", env!("CARGO_PKG_VERSION")));
        let config = if local {
            // From this machine to this machine, and nowhere else.
            config.max_redirects(0).proxy(None)
        } else {
            config.https_only(true).tls_config(trusted()?)
        };
        Ok(Self {
            agent: config.build().into(),
            base: base.map(|base| format!("{}/", base.trim_end_matches('/'))),
        })
    }

    /// What replaces the public addresses.
    pub(crate) fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// Brings `part` to the full length of what `source` names; `path` is where it will be. What does not begin as it
    /// should, or grows too large, is given up and forgotten.
    pub(super) fn fetch(
        &self,
        source: &Source,
        path: &Path,
        part: &mut Part,
        meter: &mut Meter,
    ) -> anyhow::Result<()> {
        let url = source.url.as_str();
        let mut request = self.agent.get(url).header("Accept-Encoding", "identity");
        if let Some(version) = part.version() {
            // The server sends the rest only if it still has the same version, else all of it.
            request = request
                .header("Range", format!("bytes={}-", part.done()))
                .header("If-Range", version);
        }
        let response = request.call().map_err(|error| {
            Fault::failed(format!(
                "{url}: cannot be reached ({error}); try again, or put the file at {} by hand",
                path.display()
            ))
        })?;
        let goes_on = goes_on(&response, url, path, part.done())?;
        let begin = if goes_on { part.done() } else { 0 };
        let rest = header(&response, "content-length").and_then(|n| n.parse::<u64>().ok());
        let length = rest.map(|rest| begin.saturating_add(rest));
        if length.is_some_and(|length| length > source.most) {
            return Err(part.refuse(too_large(source)));
        }
        // A weak tag does not promise the same bytes.
        let version = header(&response, "etag")
            .filter(|tag| !tag.starts_with("W/"))
            .or_else(|| header(&response, "last-modified"));
        part.expect(goes_on, version, length)?;

        let steps = |bytes: u64| (bytes >> 20) as usize;
        let total = |done: u64| steps(length.unwrap_or(done)).max(1);
        meter.start("downloading", total(begin));
        let mut body = response.into_body().into_reader();
        let mut piece = vec![0; PIECE];
        let broke = loop {
            match body.read(&mut piece) {
                Ok(0) => break None,
                Ok(n) => {
                    if part.done() == 0 && !source.format.may_begin(&piece[..n]) {
                        return Err(part.refuse(no_file(source)));
                    }
                    if part.done() + n as u64 > source.most {
                        return Err(part.refuse(too_large(source)));
                    }
                    part.push(&piece[..n])?;
                }
                Err(error) => break Some(error),
            }
            meter.set(steps(part.done()), total(part.done()), "MiB");
        };
        let done = part.done();
        match (broke, length) {
            (None, None) => Ok(()),
            (None, Some(length)) if done == length => Ok(()),
            (broke, length) => {
                let all = length.map_or_else(String::new, |n| format!(" of {n}"));
                let why = broke.map_or_else(String::new, |e| format!(" ({e})"));
                Err(Fault::failed(format!(
                    "{url}: ended after {done}{all} bytes{why}; run the command again to go on from there"
                )))
            }
        }
    }
}

/// Whether an answer goes on after the `done` bytes that are there, or begins anew.
fn goes_on(response: &Response<Body>, url: &str, path: &Path, done: u64) -> anyhow::Result<bool> {
    let status = response.status();
    match status.as_u16() {
        200 => Ok(false),
        206 if done > 0
            && header(response, "content-range")
                .is_some_and(|range| range.starts_with(&format!("bytes {done}-"))) =>
        {
            Ok(true)
        }
        206 => Err(Fault::failed(format!(
            "{url}: the server sent another part than was asked for; try again later"
        ))),
        _ => Err(Fault::failed(format!(
            "{url}: the server answers {status}; try again later, or put the file at {} by hand",
            path.display()
        ))),
    }
}

fn header(response: &Response<Body>, name: &str) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

/// `http://127.0.0.1:PORT`, with a path or without.
fn is_local(base: &str) -> bool {
    base.strip_prefix("http://127.0.0.1:").is_some_and(|rest| {
        let port = rest.split('/').next().unwrap_or_default();
        port.parse::<u16>().is_ok()
    })
}

/// The certificates that the system trusts.
fn trusted() -> anyhow::Result<TlsConfig> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err(Fault::failed(
            "this system has no certificates to check servers with; install its package of them (ca-certificates)",
        ));
    }
    let certificates: Vec<Certificate<'static>> = found
        .iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_addresses_stay_on_this_machine() {
        assert!(is_local("http://127.0.0.1:8000") && is_local("http://127.0.0.1:80/sets/"));
        for other in [
            "http://127.0.0.1",
            "http://127.0.0.1:80@elsewhere/",
            "http://127.0.0.1.elsewhere:80/",
            "http://elsewhere:80/",
            "https://127.0.0.1:80/",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}
