//! What can be asked for, one file for each service, each with its part of the table and its functions.

pub(crate) mod analytics;
mod authorizations;
pub(crate) mod automatic;
pub(crate) mod devices;
pub(crate) mod fc;
pub(crate) mod logins;
pub(crate) mod logs;
pub(crate) mod pools;
pub(crate) mod roles;
pub(crate) mod san;
pub(crate) mod schema;
pub(crate) mod services;
pub(crate) mod shares;
pub(crate) mod snapshots;
pub(crate) mod system;
pub(crate) mod users;

pub use services::LISTEN;

use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest};
use api::http::{Kind, Shape, may, must};
use serde_json::{Value, json};
use std::sync::Arc;

/// A command of a service, as the service lists it.
const METHOD: Shape = Shape::new(
    "method",
    &[
        must("request", Kind::Text, "GET, POST, PUT or DELETE"),
        must("path", Kind::Text, "Below the service's path"),
        must("description", Kind::Text, "What it does"),
    ],
);

/// A service: a part of the API.
pub(crate) const SERVICE: Shape = Shape::new(
    "api_service",
    &[
        must("name", Kind::Text, "Its name, as paths have it"),
        must("uri", Kind::Text, "Where it is"),
        must("version", Kind::Text, "Of its paths and shapes"),
        may("methods", Kind::List(&METHOD), "What can be asked of it"),
    ],
);

/// A service as the access service lists it.
fn service(rest: &Rest, name: &str, version: u8) -> Value {
    let host = rest.about().addresses.first().cloned().unwrap_or_default();
    json!({ "name": name, "uri": format!("{host}/api/{name}/v{version}"), "version": format!("{version}.0") })
}

/// Lists what a service can be asked.
async fn describe(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let own = asked.routed.endpoint.service();
    let root = format!("/api/{own}/v1");
    let methods: Vec<Value> = rest
        .table()
        .filter(|e| e.service() == own)
        .map(|e| {
            let path = e.path.strip_prefix(&root).unwrap_or(e.path);
            json!({ "request": e.method.word(), "path": path, "description": e.about })
        })
        .collect();
    let mut service = service(&rest, own, asked.routed.version);
    service["methods"] = methods.into();
    Ok(json!({ "service": service }).into())
}

/// A reply that the appliance would only give to another request.
fn unexpected() -> Fault {
    Fault::internal("the appliance answered something else")
}
