//! `/openapi.json`: the table of routes and the types, as OpenAPI 3.1.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::keys::Access;
use crate::routes::Route;
use crate::types::ErrorAnswer;

/// Types of a route.
#[derive(Debug, Default)]
pub(crate) struct Described {
    /// Content types and schemas of the body.
    request: Vec<(&'static str, Value)>,
    /// The schema of the parameters of the address.
    parameters: Option<Value>,
    /// Content types and schemas of the answer, which the client chooses from with `accept`.
    answer: Vec<(&'static str, Value)>,
}

/// Makes the description of a route.
pub(crate) type Schemas = fn(&mut SchemaGenerator) -> Described;

const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// A body that is not JSON.
fn bytes() -> Value {
    json!({ "type": "string", "format": "binary" })
}

/// No body, and an answer.
pub(crate) fn answer<A: JsonSchema>(generator: &mut SchemaGenerator) -> Described {
    Described {
        answer: vec![(JSON, schema::<A>(generator))],
        ..Described::default()
    }
}

/// A body and an answer.
pub(crate) fn both<R: JsonSchema, A: JsonSchema>(generator: &mut SchemaGenerator) -> Described {
    Described {
        request: vec![(JSON, schema::<R>(generator))],
        ..answer::<A>(generator)
    }
}

/// A body that may be binary, and an answer.
pub(crate) fn both_with_vectors<R: JsonSchema, A: JsonSchema>(
    generator: &mut SchemaGenerator,
) -> Described {
    let mut described = both::<R, A>(generator);
    described.request.push((crate::body::BINARY, bytes()));
    described.request.push(("application/x-npy", bytes()));
    described
}

/// Lets the answer be binary, too.
pub(crate) fn or_binary(mut described: Described) -> Described {
    described.answer.push((crate::body::BINARY, bytes()));
    described
}

/// Parameters in the address, and an answer.
pub(crate) fn both_in_address<R: JsonSchema, A: JsonSchema>(
    generator: &mut SchemaGenerator,
) -> Described {
    Described {
        parameters: Some(R::json_schema(generator).to_value()),
        ..answer::<A>(generator)
    }
}

/// A body that no type describes, and an answer.
pub(crate) fn file<A: JsonSchema>(generator: &mut SchemaGenerator) -> Described {
    Described {
        request: vec![(BYTES, bytes())],
        ..answer::<A>(generator)
    }
}

/// Parameters in the address, and an answer that no type describes.
pub(crate) fn bytes_in_address<R: JsonSchema>(generator: &mut SchemaGenerator) -> Described {
    Described {
        parameters: Some(R::json_schema(generator).to_value()),
        answer: vec![(crate::body::BINARY, bytes())],
        ..Described::default()
    }
}

/// An answer that no type describes.
pub(crate) fn other(kind: &'static str) -> Schemas {
    fn of(kind: &'static str) -> Described {
        Described {
            answer: vec![(kind, bytes())],
            ..Described::default()
        }
    }
    match kind {
        "text/html" => |_| of("text/html"),
        "text/css" => |_| of("text/css"),
        "text/javascript" => |_| of("text/javascript"),
        "text/plain" => |_| of("text/plain"),
        JSON => |_| Described {
            answer: vec![(JSON, json!({ "type": "object" }))],
            ..Described::default()
        },
        _ => |_| of(BYTES),
    }
}

/// The description of all routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let error = schema::<ErrorAnswer>(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let described = (route.schemas)(&mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route, described, &error);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "GARLIC",
            "description": "Nearest-neighbour search with recall targets.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer" },
                "header": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            },
        },
    })
}

/// Content types with their schemas.
fn contents(kinds: Vec<(&'static str, Value)>) -> Value {
    let kinds = kinds.into_iter();
    let kinds = kinds.map(|(kind, schema)| (kind.to_owned(), json!({ "schema": schema })));
    kinds.collect::<Map<_, _>>().into()
}

fn operation(route: &Route, described: Described, error: &Value) -> Value {
    let mut parameters: Vec<Value> = (route.path.split('/'))
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            let kind = if name == "cell" { "integer" } else { "string" };
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": kind } })
        })
        .collect();
    let in_address = described
        .parameters
        .as_ref()
        .and_then(|p| p["properties"].as_object());
    for (name, schema) in in_address.into_iter().flatten() {
        parameters.push(json!({ "name": name, "in": "query", "schema": schema }));
    }
    let mut success = json!({ "description": "Done." });
    if !described.answer.is_empty() {
        success["content"] = contents(described.answer);
    }
    let failure = json!({
        "description": "An error, in words that say what to do.",
        "content": { JSON: { "schema": error } },
    });
    let mut operation = json!({
        "summary": route.about,
        "parameters": parameters,
        "responses": { "200": success, "default": failure },
    });
    if !described.request.is_empty() {
        operation["requestBody"] = json!({ "content": contents(described.request) });
    }
    if route.access != Access::Open {
        operation["security"] = json!([{ "key": [] }, { "header": [] }]);
    }
    operation
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` below a value.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match (key.as_str(), value) {
                        ("$ref", Value::String(to)) => found.push(to.clone()),
                        _ => references(value, found),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_route_is_described_and_every_reference_leads_somewhere() {
        let (_, routes) = crate::routes::router();
        let document = document(&routes);
        for route in &routes {
            let method = route.method.as_str().to_ascii_lowercase();
            assert!(
                document["paths"][route.path][&method]["summary"].is_string(),
                "{}",
                route.path
            );
        }
        let paths = &document["paths"];
        let points = &paths["/v1/indexes/{name}/explore/points"]["get"];
        let names = points["parameters"].as_array().unwrap().iter();
        assert!(names.clone().any(|parameter| parameter["name"] == "left"));
        for path in ["search", "points/get"] {
            let answer = &paths[format!("/v1/indexes/{{name}}/{path}")]["post"]["responses"]["200"];
            assert_eq!(answer["content"][crate::body::BINARY]["schema"], bytes());
        }
        let restore = &paths["/v1/indexes/{name}/snapshot"]["put"];
        let body = &restore["requestBody"]["content"][BYTES];
        assert_eq!(body["schema"], bytes());
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20, "{} references", found.len());
        for to in found {
            let pointer = to.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{to}");
        }
        let k = &document["components"]["schemas"]["SearchRequest"]["properties"]["k"];
        assert!(
            k["description"]
                .as_str()
                .unwrap()
                .contains("Number of neighbours")
        );
    }
}
