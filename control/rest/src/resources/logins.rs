//! `/api/access`: sessions, and which services there are.

use super::{SERVICE, service};
use crate::endpoint::{Endpoint, Reply, delete, get, post, run};
use crate::fault::{Done, Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::http::Need;
use api::http::{Kind, Shape, must};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const ACCESS: Shape = Shape::new("access", &[must("services", Kind::List(&SERVICE), "The parts of the API")]);

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get("/api/access/v1", "List the services", Reply::Several("services", &SERVICE), run!(list))
        .needs(Need::Login),
    post(
        "/api/access/v1",
        "Open a session: its secret is in the header X-Auth-Session",
        Reply::One("access", &ACCESS),
        run!(open),
    ),
    delete("/api/access/v1", "Close the session that is shown", run!(close)),
];

fn services(rest: &Rest, asked: &Asked) -> Vec<Value> {
    let names: BTreeSet<&str> = rest.table().map(|e| e.service()).filter(|s| !s.is_empty()).collect();
    names.into_iter().map(|name| service(rest, name, asked.routed.version)).collect()
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    Ok(json!({ "services": services(&rest, &asked) }).into())
}

async fn open(rest: Arc<Rest>, asked: Asked) -> Outcome {
    // A session by a session would never end.
    if asked.secret.is_some() {
        return Err(Fault::invalid("a session is opened with a password"));
    }
    let now = rest.now();
    let opened = rest.access().open_session(&asked.who, now);
    let headers = vec![
        ("x-auth-session", opened.secret.reveal().to_string()),
        ("x-auth-name", opened.label),
        ("x-zfssa-version", rest.about().version),
    ];
    Ok(Done { body: json!({ "access": { "services": services(&rest, &asked) } }), headers })
}

async fn close(rest: Arc<Rest>, asked: Asked) -> Outcome {
    if let Some(secret) = &asked.secret {
        rest.access().close_session(secret.reveal());
    }
    nothing()
}
