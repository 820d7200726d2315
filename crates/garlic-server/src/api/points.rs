//! Points: write, read, remove, count, page through.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{Request, State};
use axum::response::Response;
use garlic_core::Rows;
use garlic_table::{Ids, Snapshot};

use super::search::check_vectors;
use super::{change, entry};
use crate::address::Path;
use crate::body::{self, Binary, Received};
use crate::columns;
use crate::error::{ApiError, ApiResult};
use crate::registry::Entry;
use crate::server::SharedApp;
use crate::types::{
    CountAnswer, CountRequest, DeleteAnswer, DeleteRequest, GetRequest, Mode, PointAnswer,
    PointsAnswer, ScrollRequest, WriteAnswer, WriteRequest, point_id,
};

/// Points of a page unless a request says how many.
const USUAL_PAGE: usize = 100;

pub(crate) async fn write(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    entry.writable()?;
    let received = Received::read(&app, request).await?;
    let written = change(move || {
        let request: WriteRequest = received.request_with_vectors()?;
        put(&entry, request)
    });
    let ids = written.await?;
    app.metrics
        .points_written
        .fetch_add(ids.len() as u64, Relaxed);
    body::json(&WriteAnswer {
        ids: ids.iter().map(point_id).collect(),
    })
}

fn put(entry: &Entry, request: WriteRequest) -> ApiResult<Ids> {
    let collection = entry.writable()?;
    let snapshot = entry.snapshot()?;
    let ids = request.ids.map(|ids| ids.0);
    if request.vectors.is_empty() {
        return match ids {
            Some(ids) if !ids.is_empty() => {
                Err(ApiError::invalid("give a vector for each identifier"))
            }
            _ => Ok(Ids::Numbers(Vec::new())),
        };
    }
    let rows =
        Rows::new(&request.vectors.data, request.vectors.dim).map_err(garlic_core::Error::from)?;
    let columns = request.columns.unwrap_or_default();
    let columns = columns::to_batch(&columns, rows.len(), Some(&snapshot))?;
    match (request.mode, ids) {
        (Mode::Add, ids) | (Mode::Upsert, ids @ None) => {
            Ok(collection.add(rows, ids, columns.as_ref())?)
        }
        (Mode::Upsert, Some(ids)) => {
            collection.upsert(rows, &ids, columns.as_ref())?;
            Ok(ids)
        }
        (Mode::Update, _) if columns.is_some() => Err(ApiError::invalid(
            "mode `update` replaces vectors and leaves columns alone; use `upsert` to replace both",
        )),
        (Mode::Update, None) => Err(ApiError::invalid("mode `update` needs `ids`")),
        (Mode::Update, Some(ids)) => {
            collection.update(rows, &ids)?;
            Ok(ids)
        }
    }
}

/// The numbers of identifiers that must all be there.
fn existing(snapshot: &Snapshot, ids: &Ids) -> ApiResult<Vec<u64>> {
    let numbers = snapshot.numbers(ids)?.into_iter().zip(ids.iter());
    let numbers = numbers.map(|(number, id)| number.ok_or_else(|| ApiError::no_point(id)));
    numbers.collect()
}

/// Some points, with columns and perhaps vectors.
fn read(
    snapshot: &Snapshot,
    numbers: &[u64],
    names: Option<&[String]>,
    with_vectors: bool,
) -> ApiResult<Vec<PointAnswer>> {
    let rows = columns::of_points(snapshot, numbers, names)?;
    let points = numbers.iter().zip(rows).map(|(number, row)| PointAnswer {
        id: point_id(snapshot.id(*number)),
        columns: row
            .as_object()
            .is_some_and(|row| !row.is_empty())
            .then_some(row),
        vector: with_vectors
            .then(|| snapshot.index().get(*number))
            .flatten(),
    });
    Ok(points.collect())
}

pub(crate) async fn get(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let received = Received::read(&app, request).await?;
    let request: GetRequest = received.request()?;
    check_page(request.ids.0.len(), app.options.limits.k)?;
    let shared = Arc::clone(&app);
    let read = move || {
        let snapshot = entry.snapshot()?;
        if request.with_vectors {
            let dim = snapshot.index().dim();
            check_vectors(request.ids.0.len(), dim, &app.options.limits)?;
        }
        let numbers = existing(&snapshot, &request.ids.0)?;
        let columns = request.columns.as_deref();
        if !received.wants_binary() {
            let points = read(&snapshot, &numbers, columns, request.with_vectors)?;
            return body::json(&PointsAnswer { points, next: None });
        }
        let rows = columns::of_points(&snapshot, &numbers, columns)?;
        let index = snapshot.index();
        let mut answer = Binary {
            rows: numbers.len(),
            ..Binary::default()
        };
        answer.about.insert("columns".into(), rows.into());
        if request.with_vectors {
            let vectors = numbers.iter().filter_map(|number| index.get(*number));
            answer.floats = vectors.flatten().collect();
            answer.columns = index.dim();
        }
        answer.into_response()
    };
    shared.pool.run(read).await
}

/// The identifier that a part of an address stands for: a number where points are numbered.
fn one_id(snapshot: &Snapshot, text: &str) -> ApiResult<Ids> {
    match snapshot.is_named() {
        true => Ok(Ids::names([text])),
        false => match text.parse() {
            Ok(number) => Ok(Ids::Numbers(vec![number])),
            Err(_) => Err(ApiError::invalid(format!(
                "the points of this index are numbered; `{text}` is no whole number"
            ))),
        },
    }
}

pub(crate) async fn get_one(
    State(app): State<SharedApp>,
    Path((name, id)): Path<(String, String)>,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let read = move || {
        let snapshot = entry.snapshot()?;
        let numbers = existing(&snapshot, &one_id(&snapshot, &id)?)?;
        let point = read(&snapshot, &numbers, None, true)?.into_iter().next();
        body::json(&point.ok_or_else(|| ApiError::no_point(id))?)
    };
    app.pool.run(read).await
}

pub(crate) async fn delete_one(
    State(app): State<SharedApp>,
    Path((name, id)): Path<(String, String)>,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let removed = change(move || {
        let ids = one_id(&*entry.snapshot()?, &id)?;
        Ok(entry.writable()?.remove(&ids)?)
    });
    let removed = removed.await?;
    app.metrics
        .points_written
        .fetch_add(removed as u64, Relaxed);
    body::json(&DeleteAnswer { removed })
}

pub(crate) async fn delete(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    entry.writable()?;
    let received = Received::read(&app, request).await?;
    let request: DeleteRequest = received.request()?;
    let removed = change(move || {
        let collection = entry.writable()?;
        match (request.ids, request.filter) {
            (Some(ids), None) => Ok(collection.remove(&ids.0)?),
            (None, Some(filter)) => Ok(collection.remove_where(&filter)?),
            _ => Err(ApiError::invalid("give either `ids` or `filter`")),
        }
    });
    let removed = removed.await?;
    app.metrics
        .points_written
        .fetch_add(removed as u64, Relaxed);
    body::json(&DeleteAnswer { removed })
}

pub(crate) async fn count(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let request: CountRequest = Received::read(&app, request).await?.request()?;
    let count = move || {
        let snapshot = entry.snapshot()?;
        Ok(match &request.filter {
            None => snapshot.index().len() as u64,
            Some(filter) => snapshot.matching(filter)?.len(),
        })
    };
    body::json(&CountAnswer {
        count: app.pool.run(count).await?,
    })
}

fn check_page(points: usize, limit: usize) -> ApiResult<()> {
    match points <= limit {
        true => Ok(()),
        false => Err(ApiError::limit(format!(
            "{points} points are more than the {limit} that the server reads at a time; ask for fewer"
        ))),
    }
}

pub(crate) async fn scroll(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let request: ScrollRequest = Received::read(&app, request).await?.request()?;
    let limit = request.limit.unwrap_or(USUAL_PAGE);
    check_page(limit, app.options.limits.k)?;
    let shared = Arc::clone(&app);
    let page = move || {
        let snapshot = entry.snapshot()?;
        if request.with_vectors {
            check_vectors(limit, snapshot.index().dim(), &app.options.limits)?;
        }
        page(&snapshot, &request, limit)
    };
    body::json(&shared.pool.run(page).await?)
}

/// Points in the order of the numbers that the index knows them by. A page begins with a number, so that points that come
/// and go meanwhile neither repeat nor hide others.
fn page(snapshot: &Snapshot, request: &ScrollRequest, limit: usize) -> ApiResult<PointsAnswer> {
    if limit == 0 {
        return Err(ApiError::invalid("`limit` is 0: must be at least 1"));
    }
    let mut numbers: Vec<u64> = match &request.filter {
        Some(filter) => {
            let matching = snapshot.matching(filter)?;
            let later = matching.iter().skip_while(|number| *number < request.from);
            later.take(limit + 1).collect()
        }
        None => {
            let mut all = snapshot.index().ids();
            all.retain(|number| *number >= request.from);
            if all.len() > limit + 1 {
                all.select_nth_unstable(limit);
                all.truncate(limit + 1);
            }
            all.sort_unstable();
            all
        }
    };
    let next = numbers.get(limit).copied();
    numbers.truncate(limit);
    Ok(PointsAnswer {
        points: read(
            snapshot,
            &numbers,
            request.columns.as_deref(),
            request.with_vectors,
        )?,
        next,
    })
}
