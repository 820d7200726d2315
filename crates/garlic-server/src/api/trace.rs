//! What a search looks at, step by step, with the exact answer beside it, for the page.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::Response;
use garlic_ann::{Index, TracedCandidate, TracedCell};
use garlic_any::AnyIndex;
use garlic_core::{Answer, Hit, Search};
use garlic_table::Snapshot;
use serde_json::{Value, json};

use super::entry;
use super::search::{USUAL_K, parameters, queries_of, take_queries, work};
use crate::address::Path;
use crate::body::{self, Received};
use crate::error::{ApiError, ApiResult};
use crate::explore::Map;
use crate::server::SharedApp;
use crate::types::{SearchRequest, point_id};

/// Candidates that are told, and visited cells whose bins are told.
const MAX_CANDIDATES: usize = 5000;
const CELLS_WITH_BINS: usize = 40;

pub(crate) async fn trace(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let received = Received::read(&app, request).await?;
    let request: SearchRequest = received.request()?;
    let (snapshot, map) = entry.map.get(&entry.snapshot()?).await?;
    let limit = app.options.limits.k;
    let run = move || {
        let drawn = Drawn {
            snapshot: &snapshot,
            map: &map,
        };
        body::json(&steps(&drawn, request, limit)?)
    };
    app.pool.run(run).await
}

fn steps(drawn: &Drawn<'_>, mut request: SearchRequest, limit: usize) -> ApiResult<Value> {
    let index = drawn.snapshot.index();
    if queries_of(&request) > 1 {
        return Err(ApiError::invalid(
            "a trace is of one query; give one vector or one identifier",
        ));
    }
    let query = take_queries(drawn.snapshot, &mut request)?;
    let vector = &query.data;
    let k = request.k.unwrap_or(USUAL_K).min(limit);
    let k = k.min(index.len().max(1));
    let mut search = parameters(&request, k);
    let mut exact = Search::new(k).exact(true);
    if let Some(filter) = &request.filter {
        let filter = drawn.snapshot.filter(filter)?;
        search = search.filter(filter.clone());
        exact = exact.filter(filter);
    }
    // Once before it is timed: the first search of a filter translates it.
    index.search(vector, &search)?;
    let (answer, micros) = timed(|| index.search(vector, &search));
    let (true_answer, exact_micros) = timed(|| index.search(vector, &exact));
    let answer = answer?;
    let mut steps = drawn.answer(&answer, micros);
    steps["k"] = k.into();
    steps["axes"] = drawn.map.axes.into();
    steps["place"] = json!(drawn.map.place_of(index, vector));
    steps["exact"] = match &true_answer {
        Ok(answer) => drawn.answer(answer, exact_micros),
        // Cosine distances may be too close to tell.
        Err(error) => json!({ "error": error.to_string() }),
    };
    match index {
        AnyIndex::Cells(cells) => {
            let trace = cells.trace(vector, &search)?;
            let candidates = trace.candidates.iter().take(MAX_CANDIDATES);
            let visited = trace.cells.iter().enumerate();
            steps["method"] = trace.method.into();
            steps["candidates"] = candidates.map(|found| drawn.candidate(found)).collect();
            steps["cells"] = visited
                .map(|(order, cell)| drawn.cell(cells, cell, order < CELLS_WITH_BINS))
                .collect();
        }
        other => {
            let cells = other.route(vector, answer.stats.cells_projected as usize)?;
            steps["method"] = "bins".into();
            steps["candidates"] = json!([]);
            steps["cells"] = cells.iter().map(|cell| json!({ "cell": cell })).collect();
        }
    }
    Ok(steps)
}

/// The result of some work, and its microseconds.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let done = work();
    (done, started.elapsed().as_secs_f64() * 1e6)
}

/// An index and its map.
struct Drawn<'a> {
    snapshot: &'a Snapshot,
    map: &'a Map,
}

impl Drawn<'_> {
    /// Where a point lies on the map.
    fn place(&self, id: u64) -> Option<[f32; 2]> {
        let index = self.snapshot.index();
        let vector = index.get(id)?;
        Some(self.map.place_of(index, &vector))
    }

    fn answer(&self, answer: &Answer, micros: f64) -> Value {
        let hit = |hit: &Hit| {
            json!({
                "id": point_id(self.snapshot.id(hit.id)),
                "distance": hit.distance,
                "place": self.place(hit.id),
            })
        };
        json!({
            "hits": answer.hits.iter().map(hit).collect::<Vec<_>>(),
            "micros": micros,
            "stats": work(std::slice::from_ref(answer), self.snapshot.index().dim()),
        })
    }

    fn candidate(&self, found: &TracedCandidate) -> Value {
        json!({
            "id": point_id(self.snapshot.id(found.id)),
            "cell": found.cell,
            "estimate": found.estimate,
            "distance": found.distance,
            "entered": found.entered,
            "place": self.place(found.id),
        })
    }

    /// A visited cell. The bins that the search scans, nearest first, are places and numbers of points.
    fn cell(&self, index: &Index, cell: &TracedCell, with_bins: bool) -> Value {
        let mut about = json!({
            "cell": cell.cell,
            "distance": cell.distance,
            "points": cell.points,
            "bins": cell.bins,
            "bins_in_reach": cell.bins_in_reach.len(),
        });
        if with_bins {
            let bins = index.cell_bins(cell.cell as usize);
            let reached = (cell.bins_in_reach.iter()).filter_map(|bin| bins.get(*bin as usize));
            let drawn = reached.map(|bin| {
                let [x, y] = self.map.place(&bin.centre);
                json!([x, y, bin.points])
            });
            about["reach"] = drawn.collect();
        }
        about
    }
}
