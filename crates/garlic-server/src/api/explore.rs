//! What the page asks for: the map, a sample of points, a cell, and the steps of a search.

use std::time::Instant;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use garlic_any::AnyIndex;
use garlic_core::Hit;
use serde::Deserialize;
use serde_json::{Map as Object, Value, json};

use super::entry;
use super::search::{parameters, take_queries, work};
use crate::body::{self, Received};
use crate::columns;
use crate::error::{ApiError, ApiResult};
use crate::server::SharedApp;
use crate::types::{SearchRequest, point_id};

/// Points of an answer, candidates of a trace, and identifiers of a cell.
const MAX_POINTS: usize = 50_000;
const MAX_CANDIDATES: usize = 5000;
const CELL_IDS: usize = 200;

pub(crate) async fn map(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let (snapshot, map) = entry.map.get(&entry.snapshot()?).await?;
    let cells = map.cells.iter().map(|cell| {
        json!([
            cell.centre[0],
            cell.centre[1],
            cell.axes[0],
            cell.axes[1],
            cell.angle,
            cell.points
        ])
    });
    body::json(&json!({
        "cells": cells.collect::<Vec<_>>(),
        "bounds": map.bounds,
        "points": map.places.len(),
        "of": snapshot.index().len(),
        "variance_kept": map.variance_kept(),
    }))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rectangle {
    left: Option<f32>,
    top: Option<f32>,
    right: Option<f32>,
    bottom: Option<f32>,
    limit: Option<usize>,
    /// A column whose values come with the points.
    column: Option<String>,
}

/// Places in the binary format, with the identifiers of the points.
pub(crate) async fn points(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let asked: Rectangle = Received::read(&app, request).await?.request()?;
    let (snapshot, map) = entry.map.get(&entry.snapshot()?).await?;
    let sample = move || {
        let [left, top, right, bottom] = map.bounds;
        let rectangle = [
            asked.left.unwrap_or(left),
            asked.top.unwrap_or(top),
            asked.right.unwrap_or(right),
            asked.bottom.unwrap_or(bottom),
        ];
        let found = map.within(rectangle, asked.limit.unwrap_or(MAX_POINTS).min(MAX_POINTS));
        let places: Vec<f32> = found.iter().flat_map(|at| map.places[*at]).collect();
        let numbers: Vec<u64> = found.iter().map(|at| map.numbers[*at]).collect();
        let mut about = Object::new();
        if let Some(column) = &asked.column {
            let rows = columns::of_points(&snapshot, &numbers, Some(std::slice::from_ref(column)))?;
            let values = rows.into_iter().map(|mut row| row[column].take());
            about.insert("values".into(), values.collect());
        }
        if snapshot.is_named() {
            let names = numbers.iter().map(|number| point_id(snapshot.id(*number)));
            about.insert("ids".into(), names.collect());
        }
        Ok(body::binary(
            &Value::Object(about),
            numbers.len(),
            2,
            &places,
            &numbers,
        ))
    };
    app.pool.run(sample).await
}

pub(crate) async fn cell(
    State(app): State<SharedApp>,
    Path((name, cell)): Path<(String, usize)>,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let (snapshot, map) = entry.map.get(&entry.snapshot()?).await?;
    let describe = move || {
        let index = snapshot.index();
        let sizes = index.cell_sizes();
        let Some(points) = sizes.get(cell) else {
            let message = format!("there is no cell {cell}; the index has {}", sizes.len());
            return Err(ApiError::new(
                axum::http::StatusCode::NOT_FOUND,
                "no_cell",
                message,
            ));
        };
        let mut about =
            json!({ "cell": cell, "points": points, "spectrum": index.shapes().eigenvalues(cell) });
        if let Ok(index) = index.updatable() {
            let bins = index.cell_bins(cell).into_iter().map(|bin| {
                let [x, y] = map.place(&bin.centre);
                json!([x, y, bin.points])
            });
            about["bins"] = bins.collect();
            let shape = index.cell_shape(cell);
            about["axes"] =
                json!(shape.map(|shape| shape.variances.iter().filter(|v| **v > 0.0).count()));
            let ids = index.cell_ids(cell, CELL_IDS);
            about["ids"] = ids
                .into_iter()
                .map(|id| point_id(snapshot.id(id)))
                .collect();
        }
        body::json(&about)
    };
    app.pool.run(describe).await
}

/// What a search looks at, with the exact answer beside it.
pub(crate) async fn trace(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let received = Received::read(&app, request).await?;
    let mut request: SearchRequest = received.request()?;
    let (snapshot, map) = entry.map.get(&entry.snapshot()?).await?;
    let limit = app.options.limits.k;
    let run = move || {
        let index = snapshot.index();
        let query = take_queries(&snapshot, &mut request)?;
        if query.rows() != 1 {
            return Err(ApiError::invalid(
                "a trace is of one query; give one vector or one identifier",
            ));
        }
        let k = request.k.unwrap_or(10).min(limit).min(index.len().max(1));
        let mut search = parameters(&request, k);
        let mut exact = garlic_core::Search::new(k).exact(true);
        if let Some(filter) = &request.filter {
            let filter = snapshot.filter(filter)?;
            search = search.filter(filter.clone());
            exact = exact.filter(filter);
        }
        let vector = &query.data;
        // Once before it is timed: the first search of a filter translates it.
        index.search(vector, &search)?;
        let started = Instant::now();
        let answer = index.search(vector, &search)?;
        let micros = started.elapsed().as_secs_f64() * 1e6;
        let started = Instant::now();
        let true_answer = index.search(vector, &exact);
        let exact_micros = started.elapsed().as_secs_f64() * 1e6;
        let hits = |hits: &[Hit]| -> Value {
            let place = |id| index.get(id).map(|vector| map.place_of(index, &vector));
            let hit = |hit: &Hit| json!({ "id": point_id(snapshot.id(hit.id)), "distance": hit.distance, "place": place(hit.id) });
            hits.iter().map(hit).collect()
        };
        let mut steps = json!({
            "k": k,
            "place": map.place_of(index, vector),
            "micros": micros,
            "hits": hits(&answer.hits),
            "stats": work(std::slice::from_ref(&answer), index.dim()),
            "exact": match &true_answer {
                Ok(answer) => json!({ "hits": hits(&answer.hits), "micros": exact_micros, "stats": work(std::slice::from_ref(answer), index.dim()) }),
                // Cosine distances may be too close to tell.
                Err(error) => json!({ "error": error.to_string() }),
            },
        });
        match index {
            AnyIndex::Cells(cells) => {
                let trace = cells.trace(vector, &search)?;
                let candidates = trace
                    .candidates
                    .iter()
                    .take(MAX_CANDIDATES)
                    .map(|candidate| {
                        let place = cells
                            .get(candidate.id)
                            .map(|vector| map.place_of(index, &vector));
                        json!({
                            "id": point_id(snapshot.id(candidate.id)),
                            "cell": candidate.cell,
                            "estimate": candidate.estimate,
                            "distance": candidate.distance,
                            "entered": candidate.entered,
                            "place": place,
                        })
                    });
                steps["method"] = trace.method.into();
                steps["candidates"] = candidates.collect();
                steps["cells"] = json!(trace.cells);
            }
            other => {
                let count = answer.stats.cells_projected as usize;
                let cells = other.route(vector, count)?;
                steps["method"] = "bins".into();
                steps["candidates"] = json!([]);
                steps["cells"] = cells.iter().map(|cell| json!({ "cell": cell })).collect();
            }
        }
        body::json(&steps)
    };
    app.pool.run(run).await
}
