//! What the page asks for: the map, its points, and a cell.

use axum::extract::{Request, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::entry;
use crate::address::Path;
use crate::body::{self, Binary, Received};
use crate::columns;
use crate::error::{ApiError, ApiResult};
use crate::server::SharedApp;
use crate::types::point_id;

/// Points of an answer, and identifiers of a cell.
const MAX_POINTS: usize = 50_000;
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
        "axes": map.axes,
        "points": map.places.len(),
        "of": snapshot.index().len(),
        "variance_kept": map.variance_kept(),
    }))
}

/// Points of a rectangle of the map.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Rectangle {
    left: Option<f32>,
    top: Option<f32>,
    right: Option<f32>,
    bottom: Option<f32>,
    /// Where to begin: `next` of the answer before.
    from: usize,
    limit: Option<usize>,
    /// Whether the points' identifiers come with them.
    with_ids: bool,
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
        let limit = asked.limit.unwrap_or(MAX_POINTS).min(MAX_POINTS);
        let (found, next) = map.within(rectangle, asked.from, limit);
        let places: Vec<f32> = found.iter().flat_map(|at| map.places[*at]).collect();
        let numbers: Vec<u64> = found.iter().map(|at| map.numbers[*at]).collect();
        let mut answer = Binary {
            rows: numbers.len(),
            columns: 2,
            floats: places,
            ..Binary::default()
        };
        if let Some(column) = &asked.column {
            let rows = columns::of_points(&snapshot, &numbers, Some(std::slice::from_ref(column)))?;
            let values = rows.into_iter().map(|mut row| row[column].take());
            answer.about.insert("values".into(), values.collect());
        }
        if asked.with_ids && snapshot.is_named() {
            let names = numbers.iter().map(|number| point_id(snapshot.id(*number)));
            answer.about.insert("ids".into(), names.collect());
        }
        if asked.with_ids {
            answer.ids = numbers;
        }
        answer.about.insert("next".into(), next.into());
        answer.about.insert("axes".into(), map.axes.into());
        answer.into_response()
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
