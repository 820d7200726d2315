//! Indexes: create, list, describe, delete, maintain.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use garlic_ann::Index;
use garlic_any::{AnyBuilder, AnyConfig, AnyIndex, Preset};
use garlic_core::{Cancel, Metric, Rows};
use garlic_table::{Collection, FirstRows};
use serde_json::{Map, Value, json};

use super::{change, entry};
use crate::address::Path;
use crate::body::{self, Received};
use crate::columns;
use crate::error::{ApiError, ApiResult};
use crate::registry::{Entry, WriterState};
use crate::server::{App, SharedApp};
use crate::types::{
    ColumnAnswer, CreateRequest, DoneAnswer, IndexAnswer, IndexesAnswer, Matrix, StatsAnswer,
    TuneRequest,
};

/// Neighbours that the recall of an index is about where nobody says how many.
const USUAL_K: usize = 10;

fn about(entry: &Entry) -> ApiResult<IndexAnswer> {
    let snapshot = entry.snapshot()?;
    let index = snapshot.index();
    let fields = snapshot
        .table()
        .map(|table| table.schema().fields().clone());
    let columns = fields.iter().flat_map(|fields| fields.iter());
    let columns = columns.map(|field| ColumnAnswer {
        name: field.name().clone(),
        kind: field.data_type().to_string(),
    });
    Ok(IndexAnswer {
        name: entry.name.clone(),
        points: index.len(),
        dim: index.dim(),
        metric: index.metric().name().to_owned(),
        named: snapshot.is_named(),
        columns: columns.collect(),
        writable: entry.is_writable(),
    })
}

pub(crate) async fn list(State(app): State<SharedApp>) -> ApiResult<Response> {
    let indexes = app.registry.all();
    let indexes = indexes.iter().map(|entry| about(entry));
    body::json(&IndexesAnswer {
        indexes: indexes.collect::<ApiResult<_>>()?,
        creatable: app.registry.has_root(),
    })
}

pub(crate) async fn describe(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
) -> ApiResult<Response> {
    body::json(&about(&*entry(&app, &name)?)?)
}

pub(crate) async fn create(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    // Refuse before a large body is read.
    let place = app.registry.reserve(&name)?;
    let received = Received::read(&app, request).await?;
    let limit = app.options.limits.dim;
    let threads = app.options.threads;
    let created = change(move || {
        let request: CreateRequest = received.request_with_vectors()?;
        drop(received);
        let index = build(request, limit, threads)?;
        place.create(&index)
    });
    body::json(&about(&*created.await?)?)
}

fn build(request: CreateRequest, limit: usize, threads: usize) -> ApiResult<AnyIndex> {
    let config = config(&request)?;
    let vectors = request.vectors.unwrap_or_default();
    let dim = match (vectors.is_empty(), request.dim) {
        (false, Some(dim)) if dim != vectors.dim => {
            return Err(ApiError::invalid(format!(
                "`dim` is {dim}, the vectors have {} coordinates",
                vectors.dim
            )));
        }
        (false, _) => vectors.dim,
        (true, Some(dim)) => dim,
        (true, None) => {
            return Err(ApiError::invalid(
                "give `vectors`, or `dim` for an index that begins empty",
            ));
        }
    };
    if dim == 0 || dim > limit {
        return Err(ApiError::limit(format!(
            "the dimension is {dim}; it must be from 1 to {limit}"
        )));
    }
    if vectors.is_empty() {
        return Ok(Index::empty(dim, config.updatable()?.clone())?.into());
    }
    let rows = Rows::new(&vectors.data, dim).map_err(garlic_core::Error::from)?;
    let columns = request.columns.unwrap_or_default();
    let columns = columns::to_batch(&columns, rows.len(), None)?;
    let first = FirstRows::new(rows.len(), request.ids.map(|ids| ids.0), columns.as_ref())?;
    let mut builder = AnyBuilder::new(config)
        .threads(threads)
        .cancel(Cancel::current());
    if let Some(numbers) = first.numbers() {
        builder = builder.ids(numbers);
    }
    let (index, _) = builder.build_owned(vectors.data, dim)?;
    // A directory changes; an index that cannot would be of no use in it.
    index.updatable()?;
    Ok(first.attach(index))
}

fn config(request: &CreateRequest) -> ApiResult<AnyConfig> {
    let mut config = AnyConfig::new(Preset::Default);
    for (key, value) in &request.parameters {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        config.set(key, &text)?;
    }
    if let Some(metric) = &request.metric {
        config.set_metric(metric.parse::<Metric>()?);
    }
    config.validate()?;
    Ok(config)
}

pub(crate) async fn delete(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
) -> ApiResult<Response> {
    change(move || app.registry.delete(&name)).await?;
    body::json(&DoneAnswer { done: true })
}

/// Changes an index as a whole; the request has nothing to say.
async fn maintain(
    app: &App,
    name: &str,
    request: Request,
    work: impl FnOnce(&Collection) -> garlic_core::Result<()> + Send + 'static,
) -> ApiResult<Response> {
    let entry = entry(app, name)?;
    Received::read(app, request).await?;
    change(move || Ok(work(entry.writable()?)?)).await?;
    body::json(&DoneAnswer { done: true })
}

pub(crate) async fn compact(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    maintain(&app, &name, request, Collection::compact).await
}

pub(crate) async fn recalibrate(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    maintain(&app, &name, request, |index| index.live()?.recalibrate()).await
}

pub(crate) async fn retrain(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    maintain(&app, &name, request, |index| index.live()?.retrain()).await
}

pub(crate) async fn tune(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let received = Received::read(&app, request).await?;
    change(move || {
        let Matrix { data, dim } = received.request_with_vectors::<TuneRequest>()?.vectors;
        let rows = Rows::new(&data, dim).map_err(garlic_core::Error::from)?;
        Ok(entry.writable()?.live()?.tune(rows)?)
    })
    .await?;
    body::json(&DoneAnswer { done: true })
}

pub(crate) async fn stats(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let writer = entry.writer().await;
    let about = app.pool.run(move || gather(&entry, writer)).await?;
    body::json(&StatsAnswer { about })
}

/// Everything that costs little to gather.
fn gather(entry: &Arc<Entry>, writer: WriterState) -> ApiResult<Map<String, Value>> {
    let snapshot = entry.snapshot()?;
    let index = snapshot.index();
    let mut stats = json!({
        "name": entry.name,
        "points": index.len(),
        "dim": index.dim(),
        "metric": index.metric(),
        "preset": index.preset(),
        "cells": index.cells(),
        "stored_as": index.stored_as(),
        "next_id": index.next_id(),
        "memory": index.memory(),
        "mapped_bytes": index.mapped_bytes(),
        "named": snapshot.is_named(),
        "columns": columns::all_names(&snapshot),
        "writable": entry.is_writable(),
        "parameters": index.parameters().into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>(),
    });
    if let Ok(cells) = index.updatable() {
        let recall = cells.config().tuning.recall;
        stats["bins"] = json!(cells.bins());
        stats["recall"] = json!(recall);
        stats["drift"] = json!(cells.drift());
        stats["trains_at"] = json!(cells.trains_at());
        stats["reads_everything"] = json!(cells.reads_everything(USUAL_K, recall));
        stats["graph_degree"] = json!(cells.graph_degree());
    }
    if entry.is_writable() {
        let WriterState { training, status } = writer;
        stats["training"] = json!({ "running": training.running, "failed": training.failed });
        stats["storage"] = json!(status.map(|status| json!({
            "generation": status.generation,
            "checkpoint_bytes": status.checkpoint_bytes,
            "log_bytes": status.log_bytes,
            "log_batches": status.log_batches,
            "failed_checkpoint": status.failed_checkpoint,
        })));
    }
    match stats {
        Value::Object(stats) => Ok(stats),
        _ => Ok(Map::new()),
    }
}
