//! Indexes over HTTP.
//!
//! A [`Server`] serves several named indexes: files, which are read-only, and directories, which are searched and
//! changed. It has a pool of threads of its own for searches, where single queries that wait at the same time are
//! answered together. `docs/guide/server.md` describes routes and formats, `docs/guide/security.md` what is protected
//! against what.
//!
//! ```no_run
//! use garlic_server::{Options, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = Options::default();
//! options.indexes.push("pages=pages.garlic".parse()?);
//! let server = Server::bind(options)?;
//! println!("http://{}", server.address());
//! server.run(); // until SIGTERM or SIGINT
//! # Ok(())
//! # }
//! ```
//!
//! The rule of this crate: it joins `garlic-table` to HTTP and has no search logic. It never prints; it logs with
//! `tracing`, and vectors are never in a log.

mod address;
mod api;
mod body;
mod columns;
mod error;
mod explore;
mod gate;
mod keys;
mod listen;
mod metrics;
mod openapi;
mod options;
mod page;
mod pool;
mod registry;
mod routes;
mod server;
mod stall;
mod tls;
mod types;

pub use keys::{Keys, KeysError};
pub use options::{Limits, Options, Served, ServedError, Tls};
pub use server::{Handle, Server, StartError};
