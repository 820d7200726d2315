//! Searches.

use std::ops::AddAssign as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{Request, State};
use axum::response::Response;
use garlic_core::{Answer, RangeSearch, Rows, Search, SearchStats};
use garlic_table::Snapshot;
use serde_json::{Map, Value, json};

use super::entry;
use crate::address::Path;
use crate::body::{self, Binary, Received};
use crate::columns;
use crate::error::{ApiError, ApiResult};
use crate::options::Limits;
use crate::server::SharedApp;
use crate::types::{HitAnswer, Matrix, QueryResult, SearchAnswer, SearchRequest, point_id};

/// Neighbours unless a request says how many.
pub(crate) const USUAL_K: usize = 10;
/// Hits that are turned into an answer where they are received; more are left to a thread of the pool.
const FEW_HITS: usize = 1000;

pub(crate) async fn search(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let received = Received::read(&app, request).await?;
    let wants_binary = received.wants_binary();
    let mut request: SearchRequest = received.request_with_vectors()?;
    drop(received);
    let snapshot = entry.snapshot()?;
    let rows = queries_of(&request);
    let wanted = check(&snapshot, &request, rows, &app.options.limits)?;
    let queries = take_queries(&snapshot, &mut request)?;
    app.metrics.queries.fetch_add(rows as u64, Relaxed);

    let (answers, request) = match (request.radius, request.filter.is_some()) {
        (None, false) => {
            let search = parameters(&request, wanted);
            (
                app.pool.search(&snapshot, &search, queries.data).await?,
                request,
            )
        }
        _ => {
            let (snapshot, limit) = (Arc::clone(&snapshot), app.options.limits.hits);
            let run = move || Ok((find(&snapshot, &request, wanted, &queries, limit)?, request));
            app.pool.run(run).await?
        }
    };
    let hits: usize = answers.iter().map(|answer| answer.hits.len()).sum();
    if request.with_vectors {
        check_vectors(hits, snapshot.index().dim(), &app.options.limits)?;
    }
    if wants_binary && request.radius.is_some() {
        check_width(&answers, &app.options.limits)?;
    }
    let is_plain = request.columns.is_none() && !request.with_vectors;
    let answer = move || match wants_binary {
        true => binary_answer(&snapshot, &request, &answers, rows),
        false => json_answer(&snapshot, &request, &answers),
    };
    match is_plain && hits <= FEW_HITS {
        true => answer(),
        false => app.pool.run(answer).await,
    }
}

/// How many queries a request has.
pub(crate) fn queries_of(request: &SearchRequest) -> usize {
    match &request.ids {
        Some(ids) => ids.0.len(),
        None => request.vectors.rows(),
    }
}

/// The vectors to search for: those of the request, or of points that it names. A short identifier stands for a long vector,
/// so the number of them must be checked before.
pub(crate) fn take_queries(snapshot: &Snapshot, request: &mut SearchRequest) -> ApiResult<Matrix> {
    let index = snapshot.index();
    let given = std::mem::take(&mut request.vectors);
    let Some(ids) = &request.ids else {
        if given.is_empty() {
            return Err(ApiError::invalid(
                "give `vectors` to search for, or `ids` of points",
            ));
        }
        if given.dim != index.dim() {
            let error = garlic_core::Error::Dimension {
                expected: index.dim(),
                found: given.dim,
            };
            return Err(error.into());
        }
        return Ok(given);
    };
    if !given.is_empty() {
        return Err(ApiError::invalid("give either `vectors` or `ids`"));
    }
    let mut data = Vec::with_capacity(ids.0.len() * index.dim());
    for (number, id) in snapshot.numbers(&ids.0)?.into_iter().zip(ids.0.iter()) {
        let vector = number.and_then(|number| index.get(number));
        data.extend(vector.ok_or_else(|| ApiError::no_point(id))?);
    }
    match data.is_empty() {
        true => Err(ApiError::invalid("give at least one identifier")),
        false => Ok(Matrix {
            data,
            dim: index.dim(),
        }),
    }
}

/// Checks what the server limits, before anything is allocated for it. Gives the number of neighbours to search for.
fn check(
    snapshot: &Snapshot,
    request: &SearchRequest,
    queries: usize,
    limits: &Limits,
) -> ApiResult<usize> {
    let k = request.k.unwrap_or(USUAL_K);
    if k > limits.k || k.max(1).saturating_mul(queries) > limits.hits {
        return Err(ApiError::limit(format!(
            "{queries} queries with k = {k}: the server allows k up to {} and {} neighbours in all; ask for fewer, or \
             start it with higher limits",
            limits.k, limits.hits
        )));
    }
    if request.ids.is_some() {
        check_vectors(queries, snapshot.index().dim(), limits)?;
    }
    if request.radius.is_some() && (request.exact || request.probes.is_some()) {
        return Err(ApiError::invalid(
            "a search with `radius` finds all points unless `recall` is given; leave `exact` and `probes` out",
        ));
    }
    // More neighbours than there are points take no more work; the library refuses none at all.
    Ok(k.min(snapshot.index().len().max(1)))
}

/// Checks that the rows of a binary answer, all as wide as the longest, are not too much.
fn check_width(answers: &[Answer], limits: &Limits) -> ApiResult<()> {
    let longest = answers.iter().map(|answer| answer.hits.len()).max();
    let longest = longest.unwrap_or(0);
    match longest.saturating_mul(answers.len()) <= limits.hits {
        true => Ok(()),
        false => Err(ApiError::limit(format!(
            "{} queries, one with {longest} points: the rows of a binary answer are as wide as the longest, and the server \
             allows {} places in all; send fewer queries at a time, or ask for JSON",
            answers.len(),
            limits.hits
        ))),
    }
}

/// Checks that so many vectors are not too much for a request.
pub(crate) fn check_vectors(count: usize, dim: usize, limits: &Limits) -> ApiResult<()> {
    match count.saturating_mul(4 * dim) <= limits.vectors {
        true => Ok(()),
        false => Err(ApiError::limit(format!(
            "{count} vectors of dimension {dim} are more than the {} bytes that a request may read of them; ask for fewer \
             at a time",
            limits.vectors
        ))),
    }
}

/// The library's parameters of a search without a filter.
pub(crate) fn parameters(request: &SearchRequest, k: usize) -> Search {
    let mut search = Search::new(k).exact(request.exact);
    if let Some(recall) = request.recall {
        search = search.recall(recall);
    }
    if let Some(probes) = request.probes {
        search = search.probes(probes);
    }
    if let Some(bins) = request.bins {
        search = search.bins(bins);
    }
    if let Some(rerank) = request.rerank {
        search = search.rerank(rerank);
    }
    search
}

/// Searches with a filter or a radius.
fn find(
    snapshot: &Snapshot,
    request: &SearchRequest,
    k: usize,
    queries: &Matrix,
    limit: usize,
) -> ApiResult<Vec<Answer>> {
    let index = snapshot.index();
    let rows = Rows::new(&queries.data, queries.dim).map_err(garlic_core::Error::from)?;
    let filter = request
        .filter
        .as_ref()
        .map(|filter| snapshot.filter(filter))
        .transpose()?;
    let Some(radius) = request.radius else {
        let mut search = parameters(request, k);
        if let Some(filter) = filter {
            search = search.filter(filter);
        }
        return Ok(index.search_batch(rows, &search)?);
    };
    let mut range = RangeSearch::new(radius);
    if let Some(recall) = request.recall {
        range = range.recall(recall);
    }
    if let Some(filter) = filter {
        range = range.filter(filter);
    }
    let mut found = Vec::with_capacity(rows.len());
    let mut hits = 0;
    for row in 0..rows.len() {
        for mut answer in index.range_batch(rows.slice(row..row + 1), &range)? {
            if let Some(most) = request.k {
                answer.hits.truncate(most);
            }
            hits += answer.hits.len();
            found.push(answer);
        }
        if hits > limit {
            return Err(ApiError::limit(format!(
                "more than {limit} points lie within the radius; choose a smaller one, or give `k` for the nearest of them"
            )));
        }
    }
    Ok(found)
}

/// Columns of all hits, one after the other.
fn columns_of(
    snapshot: &Snapshot,
    request: &SearchRequest,
    answers: &[Answer],
) -> ApiResult<Option<Vec<Value>>> {
    let Some(names) = &request.columns else {
        return Ok(None);
    };
    let hits = answers.iter().flat_map(|answer| &answer.hits);
    let numbers: Vec<u64> = hits.map(|hit| hit.id).collect();
    Ok(Some(columns::of_points(snapshot, &numbers, Some(names))?))
}

/// The work of all queries.
pub(crate) fn work(answers: &[Answer], dim: usize) -> Value {
    let mut stats = SearchStats::default();
    for answer in answers {
        stats.add_assign(answer.stats);
    }
    let mut work = json!(stats);
    work["distance_equivalents"] = json!(stats.distance_equivalents(dim));
    work
}

fn json_answer(
    snapshot: &Snapshot,
    request: &SearchRequest,
    answers: &[Answer],
) -> ApiResult<Response> {
    let columns = columns_of(snapshot, request, answers)?;
    let mut columns = columns.map(Vec::into_iter);
    let index = snapshot.index();
    let results = answers.iter().map(|answer| QueryResult {
        exact: answer.exact,
        hits: (answer.hits.iter())
            .map(|hit| HitAnswer {
                id: point_id(snapshot.id(hit.id)),
                distance: hit.distance,
                columns: columns.as_mut().and_then(Iterator::next),
                vector: request.with_vectors.then(|| index.get(hit.id)).flatten(),
            })
            .collect(),
    });
    body::json(&SearchAnswer {
        results: results.collect(),
        stats: request.with_stats.then(|| work(answers, index.dim())),
    })
}

/// Distances and identifiers as arrays, with infinity and the largest number where there are fewer neighbours.
fn binary_answer(
    snapshot: &Snapshot,
    request: &SearchRequest,
    answers: &[Answer],
    rows: usize,
) -> ApiResult<Response> {
    let most = answers
        .iter()
        .map(|answer| answer.hits.len())
        .max()
        .unwrap_or(0);
    let wide = match request.radius {
        None => request.k.unwrap_or(USUAL_K),
        Some(_) => most,
    };
    let (mut distances, mut ids) = (Vec::new(), Vec::new());
    for answer in answers {
        distances.extend(answer.hits.iter().map(|hit| hit.distance));
        ids.extend(answer.hits.iter().map(|hit| hit.id));
        distances.resize(distances.len() + wide - answer.hits.len(), f32::INFINITY);
        ids.resize(ids.len() + wide - answer.hits.len(), u64::MAX);
    }
    let index = snapshot.index();
    let hits = || answers.iter().flat_map(|answer| &answer.hits);
    let mut about = Map::new();
    about.insert(
        "counts".into(),
        answers.iter().map(|answer| answer.hits.len()).collect(),
    );
    about.insert(
        "exact".into(),
        answers.iter().map(|answer| answer.exact).collect(),
    );
    if snapshot.is_named() {
        let names = hits().map(|hit| point_id(snapshot.id(hit.id)));
        about.insert("ids".into(), names.collect());
        ids.clear();
    }
    if let Some(columns) = columns_of(snapshot, request, answers)? {
        about.insert("columns".into(), columns.into());
    }
    if request.with_stats {
        about.insert("stats".into(), work(answers, index.dim()));
    }
    let mut vectors = Vec::new();
    if request.with_vectors {
        about.insert("dim".into(), index.dim().into());
        vectors.extend(hits().filter_map(|hit| index.get(hit.id)).flatten());
    }
    let answer = Binary {
        about,
        rows,
        columns: wide,
        floats: distances,
        ids,
        vectors,
    };
    answer.into_response()
}
