//! The OpenAPI document, from the table of endpoints.

use crate::endpoint::{Endpoint, Reply};
use api::http::Need;
use api::http::{Kind, Shape, must};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const FAULT: Shape = Shape::new(
    "fault",
    &[
        must("message", Kind::Text, "For a person"),
        must("code", Kind::Number, "The status"),
        must("name", Kind::Text, "For a program, such as ERR_NOT_FOUND"),
    ],
);

/// Checked in as `docs/openapi.json`, where a test compares it.
pub fn document<'a>(table: impl Iterator<Item = &'a Endpoint>) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut shapes: BTreeMap<&str, Value> = BTreeMap::from([(FAULT.name, FAULT.schema())]);
    for endpoint in table {
        let methods = paths.entry(endpoint.path).or_default();
        methods.insert(endpoint.method.word().to_lowercase(), operation(endpoint));
        let reply = match endpoint.reply {
            Reply::One(_, shape) | Reply::Several(_, shape) => Some(shape),
            _ => None,
        };
        for shape in endpoint.body.into_iter().chain(reply) {
            shapes.insert(shape.name, shape.schema());
            shapes.extend(shape.inner().into_iter().map(|s| (s.name, s.schema())));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cenote",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What can be asked of a Cenote appliance over HTTPS. Every v1 in a path may be v2.",
        },
        "security": [{ "session": [] }, { "token": [] }, { "basic": [] }, { "user": [], "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "session": { "type": "apiKey", "in": "header", "name": "X-Auth-Session" },
                "token": { "type": "http", "scheme": "bearer" },
                "basic": { "type": "http", "scheme": "basic" },
                "user": { "type": "apiKey", "in": "header", "name": "X-Auth-User" },
                "key": { "type": "apiKey", "in": "header", "name": "X-Auth-Key" },
            },
            "responses": {
                "fault": {
                    "description": "It was not done",
                    "content": { "application/json": { "schema": envelope("fault", reference(&FAULT)) } },
                },
            },
            "schemas": shapes,
        },
    })
}

/// As it is checked in: lines that diffs are read by.
pub fn text<'a>(table: impl Iterator<Item = &'a Endpoint>) -> String {
    format!("{:#}\n", document(table))
}

fn reference(shape: &Shape) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", shape.name) })
}

fn envelope(key: &str, inner: Value) -> Value {
    json!({ "type": "object", "properties": { key: inner }, "required": [key] })
}

fn operation(endpoint: &Endpoint) -> Value {
    let names = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    let mut operation = json!({
        "summary": endpoint.about,
        "x-needs": needs(endpoint.need),
        "responses": { endpoint.status.to_string(): answer(endpoint), "default": { "$ref": "#/components/responses/fault" } },
    });
    let service = endpoint.service();
    operation["tags"] = json!([if service.is_empty() { "appliance" } else { service }]);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(shape) = endpoint.body {
        let is_required = shape.fields.iter().any(|f| f.is_required);
        operation["requestBody"] = json!({ "required": is_required, "content": { "application/json": { "schema": reference(shape) } } });
    }
    operation
}

fn needs(need: Need) -> String {
    match need {
        Need::Login => "to be logged in".into(),
        Need::Look => "any role or authorization, or to be the user of the path".into(),
        Need::Right(scope, permission) => format!("{scope}.{permission}"),
        Need::RightOrSelf(scope, permission) => {
            format!("{scope}.{permission}, or to be the user of the path")
        }
        Need::SelfAlone => "to be the user of the path, or root".into(),
    }
}

fn answer(endpoint: &Endpoint) -> Value {
    let description = match endpoint.status {
        200 => "Here it is",
        201 => "It was made",
        202 => "It was changed",
        _ => "It was done",
    };
    let schema = match endpoint.reply {
        Reply::Nothing => return json!({ "description": description }),
        Reply::Text => {
            return json!({ "description": description, "content": { "text/plain": { "schema": { "type": "string" } } } });
        }
        Reply::Document => json!({ "type": "object" }),
        Reply::One(key, shape) => envelope(key, reference(shape)),
        Reply::Several(key, shape) => envelope(key, json!({ "type": "array", "items": reference(shape) })),
    };
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// `UPDATE_OPENAPI=1 cargo test -p rest` writes it anew.
    #[test]
    fn the_document_that_is_checked_in_is_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(&path, text(crate::table::all())).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(
            kept == text(crate::table::all()),
            "docs/openapi.json is out of date: UPDATE_OPENAPI=1 cargo test -p rest"
        );
    }

    #[test]
    fn two_shapes_do_not_share_a_name() {
        let mut all: BTreeMap<&str, Value> = BTreeMap::new();
        for endpoint in crate::table::all() {
            let reply = match endpoint.reply {
                Reply::One(_, shape) | Reply::Several(_, shape) => Some(shape),
                _ => None,
            };
            for shape in endpoint.body.into_iter().chain(reply).flat_map(|s| [vec![s], s.inner()].concat()) {
                let before = all.insert(shape.name, shape.schema());
                assert!(before.is_none_or(|b| b == shape.schema()), "{}", shape.name);
            }
        }
    }
}
