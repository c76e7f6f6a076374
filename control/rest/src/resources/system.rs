//! `/api/system`: what the appliance is. Also the OpenAPI document.

use crate::fault::{Fault, Outcome};
use crate::openapi;
use crate::server::{Asked, Rest, nothing};
use crate::shape::{Kind, Shape, may, must};
use crate::table::{Endpoint, Need, Reply, get, post, put, run};
use api::Request;
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

const UPDATE: Shape = Shape::new(
    "update",
    &[
        must("pool", Kind::Text, "The pool that could have it"),
        must("feature", Kind::Text, "Its short name"),
        must("description", Kind::Text, "What it is"),
        must("needs", Kind::Texts, "Others that come with it"),
        must("read_only_compatible", Kind::Flag, "Programs that do not know it can still read the pool"),
    ],
);

const APPLY: Shape = Shape::new(
    "apply_updates",
    &[
        must("pool", Kind::Text, "The pool"),
        may("features", Kind::Texts, "Their short names; without, all that are deferred"),
    ],
);

const BACKUP: Shape = Shape::new(
    "backup",
    &[must(
        "text",
        Kind::ToldOnce,
        "The whole configuration, sealed, with the secrets in it: for a file that nobody reads",
    )],
);

const RESTORE: Shape = Shape::new("restore", &[must("text", Kind::Secret, "What a backup told")]);

const BACK_UP: Need = Need::Right("appliance", "allow_backup");

pub(super) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/system/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get("/api/system/v1/version", "What the appliance is", Reply::One("version", &VERSION), run!(version)),
    get(
        "/api/system/v1/updates",
        "List deferred updates: features that pools could have",
        Reply::Several("updates", &UPDATE),
        run!(updates),
    ),
    put(
        "/api/system/v1/updates/apply",
        "Enable features of a pool, for good; ?confirm=true",
        Reply::Several("updates", &UPDATE),
        run!(apply),
    )
    .takes(&APPLY)
    .needs(Need::Right("update", "allow_update")),
    post(
        "/api/system/v1/configuration/backup",
        "Save the configuration: targets, initiators, groups, services, the schema",
        Reply::One("backup", &BACKUP),
        run!(back_up),
    )
    .needs(BACK_UP),
    put(
        "/api/system/v1/configuration/restore",
        "Replace the configuration by a backup; ?confirm=true",
        Reply::Nothing,
        run!(restore),
    )
    .takes(&RESTORE)
    .needs(BACK_UP),
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

async fn updates(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let api::Reply::DeferredUpdates(all) =
        rest.call(&asked, Request::DeferredUpdates { pools: Vec::new() }).await?
    else {
        return Err(super::unexpected());
    };
    let shown = all.iter().map(|u| {
        json!({
            "pool": u.pool, "feature": u.feature, "description": u.description, "needs": u.needs,
            "read_only_compatible": u.read_only_compatible,
        })
    });
    Ok(json!({ "updates": shown.collect::<Vec<_>>() }).into())
}

async fn apply(rest: Arc<Rest>, asked: Asked) -> Outcome {
    if !asked.is_confirmed() {
        return Err(Fault::confirm());
    }
    let pool = asked.args.text("pool").unwrap_or_default().to_string();
    let features = asked.args.texts("features").unwrap_or_default().to_vec();
    rest.call(&asked, Request::ApplyUpdates { pool, features }).await?;
    updates(rest, asked).await
}

async fn back_up(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let api::Reply::Configuration { text } = rest.call(&asked, Request::ConfigurationTell).await? else {
        return Err(super::unexpected());
    };
    Ok(json!({ "backup": { "text": text.reveal() } }).into())
}

async fn restore(rest: Arc<Rest>, asked: Asked) -> Outcome {
    if !asked.is_confirmed() {
        return Err(Fault::confirm());
    }
    let text = asked.args.secret("text").cloned().unwrap_or_else(|| api::Secret::new(""));
    rest.call(&asked, Request::ConfigurationTake { text }).await?;
    nothing()
}

async fn document(_: Arc<Rest>, _: Asked) -> Outcome {
    Ok(openapi::document().into())
}
