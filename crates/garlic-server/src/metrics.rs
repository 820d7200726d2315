//! Counters for `/metrics`, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::routes::Route;
use crate::server::App;

/// Upper ends of the buckets of latencies, in microseconds.
const BUCKETS: [u64; 16] = [
    100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 102_400, 204_800, 409_600,
    819_200, 1_638_400, 6_553_600,
];

/// Panics of the process. They are counted where they are caught, in threads that know no server.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts a panic and logs it.
pub(crate) fn panicked(what: &str) {
    PANICS.fetch_add(1, Relaxed);
    tracing::error!("{what} panicked");
}

/// Panics so far.
#[cfg(test)]
pub(crate) fn panics() -> u64 {
    PANICS.load(Relaxed)
}

/// Counters of a route.
#[derive(Default)]
struct Counters {
    /// Answers by the first digit of their status.
    by_status: [AtomicU64; 6],
    /// Answers by latency: one for each bucket, and those beyond.
    by_latency: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

/// Counters of the server.
pub(crate) struct Metrics {
    routes: Vec<Counters>,
    unmatched: AtomicU64,
    pub(crate) connections: AtomicU64,
    /// Requests that are received or worked on.
    pub(crate) in_flight: AtomicU64,
    pub(crate) queries: AtomicU64,
    pub(crate) points_written: AtomicU64,
    started: Instant,
}

impl Metrics {
    pub(crate) fn new(routes: usize) -> Self {
        Self {
            routes: (0..routes).map(|_| Counters::default()).collect(),
            unmatched: AtomicU64::default(),
            connections: AtomicU64::default(),
            in_flight: AtomicU64::default(),
            queries: AtomicU64::default(),
            points_written: AtomicU64::default(),
            started: Instant::now(),
        }
    }

    /// Counts an answer of a route, or of none.
    pub(crate) fn answered(&self, route: Option<usize>, status: u16, took: Duration) {
        let Some(counters) = route.and_then(|route| self.routes.get(route)) else {
            self.unmatched.fetch_add(1, Relaxed);
            return;
        };
        let micros = took.as_micros() as u64;
        let bucket = BUCKETS.partition_point(|end| *end < micros);
        counters.by_status[(status / 100).min(5) as usize].fetch_add(1, Relaxed);
        counters.by_latency[bucket].fetch_add(1, Relaxed);
        counters.micros.fetch_add(micros, Relaxed);
    }
}

/// All metrics as text.
pub(crate) fn text(app: &App, routes: &[Route]) -> String {
    let metrics = &app.metrics;
    let mut out = String::new();
    let mut describe = |name: &str, kind: &str, about: &str| {
        format!("# HELP {name} {about}\n# TYPE {name} {kind}\n")
    };
    // Writing to a string does not fail.
    let _ = write_routes(&mut out, metrics, routes, &mut describe);
    let _ = write_gauges(&mut out, app, &mut describe);
    out
}

type Describe<'a> = &'a mut dyn FnMut(&str, &str, &str) -> String;

fn write_routes(
    out: &mut String,
    metrics: &Metrics,
    routes: &[Route],
    describe: Describe<'_>,
) -> std::fmt::Result {
    out.push_str(&describe(
        "garlic_requests_total",
        "counter",
        "Answers by route and status.",
    ));
    let labels = |route: &Route| format!("method=\"{}\",route=\"{}\"", route.method, route.path);
    for (route, counters) in routes.iter().zip(&metrics.routes) {
        for (digit, count) in counters.by_status.iter().enumerate() {
            let count = count.load(Relaxed);
            if count > 0 {
                writeln!(
                    out,
                    "garlic_requests_total{{{},status=\"{digit}xx\"}} {count}",
                    labels(route)
                )?;
            }
        }
    }
    let name = "garlic_request_seconds";
    out.push_str(&describe(
        name,
        "histogram",
        "Time from the head of a request to the head of its answer.",
    ));
    for (route, counters) in routes.iter().zip(&metrics.routes) {
        let labels = labels(route);
        let counts = counters
            .by_latency
            .each_ref()
            .map(|count| count.load(Relaxed));
        let all: u64 = counts.iter().sum();
        if all == 0 {
            continue;
        }
        let mut below = 0;
        for (end, count) in BUCKETS.iter().zip(counts) {
            below += count;
            writeln!(
                out,
                "{name}_bucket{{{labels},le=\"{}\"}} {below}",
                *end as f64 / 1e6
            )?;
        }
        writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {all}")?;
        writeln!(
            out,
            "{name}_sum{{{labels}}} {}",
            counters.micros.load(Relaxed) as f64 / 1e6
        )?;
        writeln!(out, "{name}_count{{{labels}}} {all}")?;
    }
    Ok(())
}

/// Name, kind, description and value of each metric without labels.
fn single(app: &App) -> [(&'static str, &'static str, &'static str, f64); 11] {
    let metrics = &app.metrics;
    let (batches, joined) = app.pool.joined();
    [
        (
            "garlic_unmatched_total",
            "counter",
            "Requests that no route took.",
            metrics.unmatched.load(Relaxed) as f64,
        ),
        (
            "garlic_panics_total",
            "counter",
            "Requests that failed by a fault of the server.",
            PANICS.load(Relaxed) as f64,
        ),
        (
            "garlic_connections",
            "gauge",
            "Open connections.",
            metrics.connections.load(Relaxed) as f64,
        ),
        (
            "garlic_requests_in_flight",
            "gauge",
            "Requests that are received or worked on.",
            metrics.in_flight.load(Relaxed) as f64,
        ),
        (
            "garlic_queue_length",
            "gauge",
            "Work that waits for a thread.",
            app.pool.waiting() as f64,
        ),
        (
            "garlic_queries_total",
            "counter",
            "Vectors that neighbours were searched for.",
            metrics.queries.load(Relaxed) as f64,
        ),
        (
            "garlic_search_batches_total",
            "counter",
            "Batches of plain searches.",
            batches as f64,
        ),
        (
            "garlic_search_batch_queries_total",
            "counter",
            "Queries in these batches.",
            joined as f64,
        ),
        (
            "garlic_points_written_total",
            "counter",
            "Points that were added, replaced or removed.",
            metrics.points_written.load(Relaxed) as f64,
        ),
        (
            "garlic_uptime_seconds",
            "gauge",
            "Time since the start.",
            metrics.started.elapsed().as_secs_f64(),
        ),
        (
            "garlic_resident_bytes",
            "gauge",
            "Memory of the process.",
            resident_bytes() as f64,
        ),
    ]
}

fn write_gauges(out: &mut String, app: &App, describe: Describe<'_>) -> std::fmt::Result {
    for (name, kind, about, value) in single(app) {
        out.push_str(&describe(name, kind, about));
        writeln!(out, "{name} {value}")?;
    }
    let entries = app.registry.all();
    out.push_str(&describe(
        "garlic_index_points",
        "gauge",
        "Points of an index.",
    ));
    for entry in &entries {
        let points = entry
            .snapshot()
            .map_or(0, |snapshot| snapshot.index().len());
        writeln!(
            out,
            "garlic_index_points{{index=\"{}\"}} {points}",
            entry.name
        )?;
    }
    out.push_str(&describe(
        "garlic_index_bytes",
        "gauge",
        "Memory of an index, mapped files included.",
    ));
    for entry in &entries {
        let bytes = entry
            .snapshot()
            .map_or(0, |snapshot| snapshot.index().memory().total);
        writeln!(
            out,
            "garlic_index_bytes{{index=\"{}\"}} {bytes}",
            entry.name
        )?;
    }
    Ok(())
}

/// Resident memory; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    1024 * kilobytes.unwrap_or_default()
}
