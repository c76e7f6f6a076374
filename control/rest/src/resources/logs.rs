//! `/api/log`: the audit log.

use crate::endpoint::{Endpoint, Reply, get, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest};
use access::Record;
use api::http::Need;
use api::http::{Kind, Shape, must};
use serde_json::{Value, json};
use std::sync::Arc;

/// As many as a page shows.
const RECORDS_MAX: usize = 100;
const RECORDS_LIMIT: usize = 10_000;

const LOG: Shape =
    Shape::new("log", &[must("href", Kind::Text, "Its path"), must("name", Kind::Text, "Its name")]);

const RECORD: Shape = Shape::new(
    "audit_record",
    &[
        must("time", Kind::Number, "Seconds since 1970"),
        must("user", Kind::Text, "Who, or who somebody claimed to be"),
        must("address", Kind::Text, "From where; local for the Unix socket"),
        must("session", Kind::Text, "By which session or token"),
        must("summary", Kind::Text, "What was asked"),
        must("detail", Kind::Text, "With what; secrets are stars"),
        must("status", Kind::Number, "What was answered"),
    ],
);

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/log/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get("/api/log/v1/logs", "List the logs", Reply::Several("logs", &LOG), run!(list)),
    get(
        "/api/log/v1/logs/audit",
        "The newest records of the audit log, oldest of them first; ?limit=N",
        Reply::Several("logs", &RECORD),
        run!(audit),
    )
    .needs(Need::Right("appliance", "allow_audit")),
];

async fn list(_: Arc<Rest>, asked: Asked) -> Outcome {
    Ok(json!({ "logs": [{ "href": asked.href(&["logs", "audit"]), "name": "audit" }] }).into())
}

async fn audit(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let limit = match asked.path.query("limit") {
        None => RECORDS_MAX,
        Some(text) => text.parse().map_err(|_| Fault::invalid("limit is a number"))?,
    };
    let records = rest.with_access(move |access| Ok(access.records(limit.min(RECORDS_LIMIT))?)).await?;
    Ok(json!({ "logs": records.iter().map(record).collect::<Vec<_>>() }).into())
}

fn record(r: &Record) -> Value {
    json!({
        "time": r.time, "user": r.user, "address": r.address, "session": r.session,
        "summary": r.action, "detail": r.detail, "status": r.status,
    })
}
