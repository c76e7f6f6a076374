//! `/api/system`: what the appliance is. Also the OpenAPI document.

use crate::endpoint::{Endpoint, Reply, get, handles, plain, run};
use crate::fault::{Fault, Outcome};
use crate::openapi;
use crate::server::{Asked, Rest, nothing};
use api::Request;
use api::declared::updates;
use api::http::{Kind, Shape, may, must};
use serde_json::json;
use std::sync::Arc;

const VERSION: Shape = Shape::new(
    "version",
    &[
        must("href", Kind::Text, "Its path"),
        must("nodename", Kind::Text, "The name of the host, which owns the pools"),
        must("asn", Kind::Text, "The serial number of the appliance, as pools have it"),
        must("product", Kind::Text, "Cenote"),
        must("version", Kind::Text, "Of the program"),
        must("uptime", Kind::Number, "Seconds since it started"),
        may("memory", Kind::Number, "Bytes that its cache may take"),
    ],
);

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/system/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get("/api/system/v1/version", "What the appliance is", Reply::One("version", &VERSION), run!(version)),
    handles(&updates::SHOW, run!(show)),
    handles(&updates::APPLY, run!(apply)),
    plain(&updates::BACKUP_TELL),
    handles(&updates::BACKUP_TAKE, run!(restore)),
    get("/api/openapi.json", "This API, as an OpenAPI document", Reply::Document, run!(document)),
];

async fn version(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let api::Reply::Daemon(daemon) = rest.call(&asked, Request::Daemon).await? else {
        return Err(super::unexpected());
    };
    let about = rest.about();
    let version = json!({
        "href": asked.href(&["version"]),
        "nodename": about.nodename,
        "asn": about.asn,
        "product": "Cenote",
        "version": daemon.version,
        "uptime": daemon.uptime,
        "memory": daemon.arc_max,
    });
    Ok(json!({ "version": version }).into())
}

async fn show(rest: Arc<Rest>, asked: Asked) -> Outcome {
    match rest.call(&asked, Request::DeferredUpdates { pools: Vec::new() }).await? {
        api::Reply::DeferredUpdates(all) => Ok(updates::told(&all).into()),
        _ => Err(super::unexpected()),
    }
}

async fn apply(rest: Arc<Rest>, asked: Asked) -> Outcome {
    if !asked.is_confirmed() {
        return Err(Fault::confirm());
    }
    rest.call(&asked, asked.request()?).await?;
    show(rest, asked).await
}

async fn restore(rest: Arc<Rest>, asked: Asked) -> Outcome {
    if !asked.is_confirmed() {
        return Err(Fault::confirm());
    }
    rest.call(&asked, asked.request()?).await?;
    nothing()
}

async fn document(rest: Arc<Rest>, _: Asked) -> Outcome {
    Ok(openapi::document(rest.table()).into())
}
