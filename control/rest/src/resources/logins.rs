//! `/api/access`: sessions, and which services there are.

use super::{SERVICE, service};
use crate::endpoint::{Endpoint, Reply, delete, get, post, run};
use crate::fault::{Done, Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use crate::who;
use access::SCOPES;
use api::http::Need;
use api::http::{Kind, Shape, must};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const ACCESS: Shape = Shape::new("access", &[must("services", Kind::List(&SERVICE), "The parts of the API")]);

const OWN: Shape = Shape::new(
    "self",
    &[
        must("user", Kind::Text, "The name"),
        must("locked", Kind::Flag, "There is no password yet, so that nobody logs in by one"),
        must("look", Kind::Flag, "Whether they may look at what there is"),
        must("permissions", Kind::Texts, "SCOPE.PERMISSION: of each, whether on everything or on some"),
        must("session_timeout", Kind::Number, "Minutes after which an unused session ends"),
    ],
);

const CODE: Shape = Shape::new(
    "code",
    &[
        must("code", Kind::Text, "To be typed at the web page"),
        must("addresses", Kind::Texts, "Where the API and the web page are"),
    ],
);

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
    get("/api/access/v1/self", "Who asks, and what they may do", Reply::One("self", &OWN), run!(own))
        .needs(Need::Login),
    post(
        "/api/access/v1/code",
        "Make a one-time code for the web page, by which root gets in once within an hour; for root alone",
        Reply::One("code", &CODE),
        run!(code),
    )
    .needs(Need::SelfAlone),
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
    let opened = rest.access().open_session(&asked.who, now)?;
    let secret = match asked.is_page {
        // No script gets to see it.
        true => ("set-cookie", who::cookie(asked.from, Some(opened.secret.reveal()))),
        false => ("x-auth-session", opened.secret.reveal().to_string()),
    };
    let headers = vec![secret, ("x-auth-name", opened.label), ("x-zfssa-version", rest.about().version)];
    Ok(Done { body: json!({ "access": { "services": services(&rest, &asked) } }), headers })
}

async fn close(rest: Arc<Rest>, asked: Asked) -> Outcome {
    if let Some(secret) = &asked.secret {
        rest.access().close_session(secret.reveal());
    }
    if asked.is_page {
        let headers = vec![("set-cookie", who::cookie(asked.from, None))];
        return Ok(Done { headers, ..Done::default() });
    }
    nothing()
}

async fn own(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let access = rest.access();
    let state = access.state();
    let user = state.user(&asked.who.user)?;
    let permissions = SCOPES.iter().flat_map(|scope| scope.permissions.iter().map(move |p| (scope.name, *p)));
    let permissions =
        permissions.filter(|(scope, permission)| state.may_some(&user.logname, scope, permission));
    let own = json!({
        "user": user.logname,
        "locked": user.password.is_none(),
        "look": state.may_look(&user.logname),
        "permissions": permissions.map(|(scope, p)| format!("{scope}.{p}")).collect::<Vec<_>>(),
        "session_timeout": user.session_timeout,
    });
    Ok(json!({ "self": own }).into())
}

async fn code(rest: Arc<Rest>, asked: Asked) -> Outcome {
    // What comes in by the code is no token: it makes tokens without an end, and changes the password.
    if asked.who.is_token() {
        return Err(Fault::denied("a token makes no one-time code: log in with the password"));
    }
    let code = rest.new_code();
    Ok(json!({ "code": { "code": code.reveal(), "addresses": rest.about().addresses } }).into())
}
