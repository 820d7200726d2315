//! `garlic serve`: indexes over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use garlic_server::{Keys, Options, Served, Server, StartError, Tls};
use tracing_subscriber::filter::LevelFilter;

use crate::args::positive;
use crate::exit::Fault;
use crate::interrupt::Watch;
use crate::output;
use crate::system;

/// Serve indexes over HTTP, with a page to look at them
///
/// An index file is served read-only, an index directory is searched and changed. The name of an index is that of its
/// file or directory, or NAME of NAME=PATH. Open the printed address in a browser to look at the indexes;
/// /openapi.json there describes all requests. The server listens on this machine only, unless --listen names another
/// address; that needs keys. SIGTERM and Ctrl-C let it finish its requests and sync its indexes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index files and index directories, each as PATH or NAME=PATH
    #[arg(value_name = "INDEX", required_unless_present = "root")]
    indexes: Vec<Served>,
    /// Serve every index in this directory, and create new ones there
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// File with lines `read KEY` and `write KEY`. GARLIC_READ_KEY and GARLIC_WRITE_KEY name one key each
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Listen beyond this machine without keys: the network protects the server
    #[arg(long)]
    insecure: bool,
    /// Change nothing, and open directories that another process writes to
    #[arg(long)]
    read_only: bool,
    /// Certificates for TLS, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A name that clients call the server by, beside localhost and its address; may be given several times
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Threads that search; all cores unless given
    #[arg(long, value_parser = positive)]
    threads: Option<usize>,
    /// Largest body of a request, in MiB
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = positive)]
    max_body: usize,
    /// Most neighbours of a query
    #[arg(long, value_name = "K", default_value = "10000", value_parser = positive)]
    max_k: usize,
    /// Most neighbours of all queries of a request
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = positive)]
    max_hits: usize,
    /// Largest dimension of an index that is created
    #[arg(long, value_name = "DIM", default_value = "32768", value_parser = positive)]
    max_dim: usize,
    /// Largest snapshot that is restored, in GiB
    #[arg(long, value_name = "GIB", default_value = "64", value_parser = positive)]
    max_snapshot: usize,
    /// Most requests at a time; others get the status 429
    #[arg(long, value_name = "N", default_value = "512", value_parser = positive)]
    max_requests: usize,
    /// Most connections
    #[arg(long, value_name = "N", default_value = "16384", value_parser = positive)]
    max_connections: usize,
    /// Longest time of a request, in seconds; builds, snapshots and compactions have no limit
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = positive)]
    timeout: usize,
    /// Longest time to send the head or the body of a request, and between two requests or writes, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = positive)]
    idle: usize,
    /// Log every request, not only what is unusual
    #[arg(short, long)]
    verbose: bool,
    /// Write the log as one JSON object a line
    #[arg(long)]
    log_json: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic serve fm.garlic                                 a file, read-only, at http://127.0.0.1:7878
  garlic serve pages=live-index --listen 127.0.0.1:0     a directory, under a name and on a free port
  garlic serve --root indexes                            all indexes of a directory; clients create others
  garlic serve --root indexes --listen 0.0.0.0:7878 --keys keys.txt --tls-cert cert.pem --tls-key key.pem
  curl -H 'content-type: application/json' -d '{\"ids\": [7], \"k\": 3}' localhost:7878/v1/indexes/fm/search";

/// Serves until a signal comes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    log(args);
    let options = options(args)?;
    let server = Server::bind(options).map_err(|error| match error {
        StartError::Index(error) => anyhow::Error::from(error),
        StartError::Unprotected { .. } => Fault::usage(error.to_string()),
        other => Fault::failed(other.to_string()),
    })?;
    let scheme = if server.is_tls() { "https" } else { "http" };
    output::print(&format!("serving at {scheme}://{}/\n", server.address()))?;
    let _watch = Watch::silent();
    server.run();
    Ok(())
}

fn options(args: &Args) -> anyhow::Result<Options> {
    let mut options = Options::default();
    options.indexes = args.indexes.clone();
    options.root = args.root.clone();
    options.address = args.listen;
    options.keys = keys(args)?;
    options.insecure = args.insecure;
    options.read_only = args.read_only;
    if let (Some(certificates), Some(key)) = (&args.tls_cert, &args.tls_key) {
        options.tls = Some(Tls {
            certificates: certificates.clone(),
            key: key.clone(),
        });
    }
    options.hosts = args.host.clone();
    options.threads = args.threads.unwrap_or_else(system::default_threads);
    options.limits.body = args.max_body.saturating_mul(1 << 20);
    options.limits.k = args.max_k;
    options.limits.hits = args.max_hits;
    options.limits.dim = args.max_dim;
    options.limits.snapshot = (args.max_snapshot as u64).saturating_mul(1 << 30);
    options.limits.requests = args.max_requests;
    options.limits.connections = args.max_connections;
    options.limits.time = Duration::from_secs(args.timeout as u64);
    options.limits.idle = Duration::from_secs(args.idle as u64);
    Ok(options)
}

/// The keys of the file and of the environment.
fn keys(args: &Args) -> anyhow::Result<Keys> {
    let wrong = |of: &str, error: garlic_server::KeysError| Fault::usage(format!("{of}: {error}"));
    let mut keys = Keys::default();
    if let Some(path) = &args.keys {
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|e| Fault::input(format!("{name}: {e}")))?;
        keys = Keys::parse(&text).map_err(|error| wrong(&name, error))?;
        if keys.is_empty() {
            return Err(Fault::usage(format!(
                "{name}: has no keys; give lines `read KEY` or `write KEY`"
            )));
        }
    }
    let set = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
    if let Some(key) = set("GARLIC_READ_KEY") {
        keys.allow_reading(&key)
            .map_err(|error| wrong("GARLIC_READ_KEY", error))?;
    }
    if let Some(key) = set("GARLIC_WRITE_KEY") {
        keys.allow_writing(&key)
            .map_err(|error| wrong("GARLIC_WRITE_KEY", error))?;
    }
    Ok(keys)
}

/// Writes the log to standard error.
fn log(args: &Args) {
    let level = if args.verbose {
        LevelFilter::DEBUG
    } else {
        LevelFilter::INFO
    };
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_ansi(false);
    // One that is set already stays.
    let _ = match args.log_json {
        true => tracing::subscriber::set_global_default(log.json().finish()),
        false => tracing::subscriber::set_global_default(log.finish()),
    };
}
