//! The table of routes: what the router, the check of keys, the metrics and `/openapi.json` are made of.

use axum::Router;
use axum::http::Method;
use axum::routing::MethodFilter;
use axum::routing::{MethodRouter, on};

use crate::api::{explore, indexes, points, search, service, snapshot, trace};
use crate::keys::Access;
use crate::openapi::{self, Schemas};
use crate::page;
use crate::server::SharedApp;
use crate::types as t;

/// A route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// What a request must be allowed to do.
    pub(crate) access: Access,
    /// Whether a request waits for its turn, and its time is limited.
    pub(crate) limit: Limit,
    /// What it does, in a sentence.
    pub(crate) about: &'static str,
    /// The types of the request and of the answer.
    pub(crate) schemas: Schemas,
}

/// Which limits a route has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// None: it answers at once, however busy the server is.
    None,
    /// Number of requests.
    Requests,
    /// Number of requests and time.
    Time,
}

type Handler = MethodRouter<SharedApp>;

/// Every route and what answers it.
pub(crate) fn all() -> Vec<(Route, Handler)> {
    use Access::{Open, Read, Write};
    use Limit::{None, Requests, Time};
    let mut routes = Vec::new();
    let mut add = |method: Method, path, access, limit, about, schemas, handler| {
        let route = Route {
            method,
            path,
            access,
            limit,
            about,
            schemas,
        };
        routes.push((route, handler));
    };
    macro_rules! route {
        ($method:ident $path:literal, $access:expr, $limit:expr, $handler:path, $schemas:expr, $about:literal) => {
            add(
                Method::$method,
                $path,
                $access,
                $limit,
                $about,
                $schemas,
                on(MethodFilter::$method, $handler),
            )
        };
    }

    route!(GET "/", Open, None, page::html, openapi::other("text/html"), "A page to look at the indexes.");
    route!(GET "/explorer.css", Open, None, page::style, openapi::other("text/css"), "The style of the page.");
    route!(GET "/explorer/{file}", Open, None, page::script, openapi::other("text/javascript"), "The scripts of the page.");
    route!(GET "/healthz", Open, None, service::healthz, openapi::other("text/plain"), "Whether the process is alive.");
    route!(GET "/readyz", Open, None, service::readyz, openapi::other("text/plain"), "Whether requests are taken: not while the server shuts down.");
    route!(GET "/metrics", Read, None, service::metrics, openapi::other("text/plain"), "Counters and gauges for Prometheus.");
    route!(GET "/openapi.json", Open, None, service::openapi, openapi::other("application/json"), "This description.");

    route!(GET "/v1/indexes", Read, Time, indexes::list, openapi::answer::<t::IndexesAnswer>, "All indexes.");
    route!(GET "/v1/indexes/{name}", Read, Time, indexes::describe, openapi::answer::<t::IndexAnswer>, "An index.");
    route!(PUT "/v1/indexes/{name}", Write, Requests, indexes::create, openapi::both_with_vectors::<t::CreateRequest, t::IndexAnswer>, "Create an index below the root.");
    route!(POST "/v1/indexes/{name}", Write, Requests, indexes::create, openapi::both_with_vectors::<t::CreateRequest, t::IndexAnswer>, "The same as PUT.");
    route!(DELETE "/v1/indexes/{name}", Write, Requests, indexes::delete, openapi::answer::<t::DoneAnswer>, "Delete an index below the root, with its files.");

    route!(POST "/v1/indexes/{name}/search", Read, Time, search::search, |g| openapi::or_binary(openapi::both_with_vectors::<t::SearchRequest, t::SearchAnswer>(g)), "Find nearest neighbours, or all points within a radius.");
    route!(POST "/v1/indexes/{name}/points", Write, Time, points::write, openapi::both_with_vectors::<t::WriteRequest, t::WriteAnswer>, "Add or replace points, all or none. They are on the device when the answer comes.");
    route!(PUT "/v1/indexes/{name}/points", Write, Time, points::write, openapi::both_with_vectors::<t::WriteRequest, t::WriteAnswer>, "The same as POST.");
    route!(POST "/v1/indexes/{name}/points/get", Read, Time, points::get, |g| openapi::or_binary(openapi::both::<t::GetRequest, t::PointsAnswer>(g)), "Read points.");
    route!(POST "/v1/indexes/{name}/points/delete", Write, Time, points::delete, openapi::both::<t::DeleteRequest, t::DeleteAnswer>, "Remove points by identifiers or by a filter.");
    route!(GET "/v1/indexes/{name}/points/count", Read, Time, points::count, openapi::both_in_address::<t::CountRequest, t::CountAnswer>, "Count points.");
    route!(POST "/v1/indexes/{name}/points/count", Read, Time, points::count, openapi::both::<t::CountRequest, t::CountAnswer>, "Count points.");
    route!(GET "/v1/indexes/{name}/points/scroll", Read, Time, points::scroll, openapi::both_in_address::<t::ScrollRequest, t::PointsAnswer>, "Read all points, page by page.");
    route!(POST "/v1/indexes/{name}/points/scroll", Read, Time, points::scroll, openapi::both::<t::ScrollRequest, t::PointsAnswer>, "Read all points, page by page.");
    route!(GET "/v1/indexes/{name}/points/by-id/{id}", Read, Time, points::get_one, openapi::answer::<t::PointAnswer>, "Read a point with its vector and all columns.");
    route!(DELETE "/v1/indexes/{name}/points/by-id/{id}", Write, Time, points::delete_one, openapi::answer::<t::DeleteAnswer>, "Remove a point.");

    route!(GET "/v1/indexes/{name}/stats", Read, Time, indexes::stats, openapi::answer::<t::StatsAnswer>, "Sizes, memory, drift, training and storage.");
    route!(POST "/v1/indexes/{name}/compact", Write, Requests, indexes::compact, openapi::answer::<t::DoneAnswer>, "Write the index anew, without removed points and with an empty log.");
    route!(POST "/v1/indexes/{name}/recalibrate", Write, Requests, indexes::recalibrate, openapi::answer::<t::DoneAnswer>, "Measure again what recall targets take.");
    route!(POST "/v1/indexes/{name}/retrain", Write, Requests, indexes::retrain, openapi::answer::<t::DoneAnswer>, "Train cells, bins and recall targets again, from all points.");
    route!(POST "/v1/indexes/{name}/tune", Write, Requests, indexes::tune, openapi::both_with_vectors::<t::TuneRequest, t::DoneAnswer>, "Measure what recall targets take for queries that do not resemble the points.");
    route!(GET "/v1/indexes/{name}/snapshot", Read, Requests, snapshot::download, openapi::other("application/octet-stream"), "The index as a file, with names and columns.");
    route!(PUT "/v1/indexes/{name}/snapshot", Write, Requests, snapshot::restore, openapi::file::<t::DoneAnswer>, "Create an index from a file that was downloaded.");

    route!(GET "/v1/indexes/{name}/explore/map", Read, Time, explore::map, openapi::other("application/json"), "The cells as ellipses over two axes, for the page.");
    route!(GET "/v1/indexes/{name}/explore/points", Read, Time, explore::points, openapi::bytes_in_address::<explore::Rectangle>, "A sample of the points in a rectangle of the map, for the page.");
    route!(GET "/v1/indexes/{name}/explore/cells/{cell}", Read, Time, explore::cell, openapi::other("application/json"), "A cell: its spectrum, its bins and some of its points.");
    route!(POST "/v1/indexes/{name}/explore/trace", Read, Time, trace::trace, openapi::both::<t::SearchRequest, t::StatsAnswer>, "What a search looks at, step by step.");
    routes
}

/// The router, and the table that it was made from.
pub(crate) fn router() -> (Router<SharedApp>, Vec<Route>) {
    let mut router = Router::new();
    let mut table = Vec::new();
    for (route, handler) in all() {
        router = router.route(route.path, handler);
        table.push(route);
    }
    (router, table)
}
