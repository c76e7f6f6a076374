//! `/api/service`: what serves clients, and where.

use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest};
use crate::shape::{Kind, Shape, may, must};
use crate::table::{Endpoint, Need, Reply, get, put, run};
use api::Request;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Of [`access::State::settings`].
pub const LISTEN: &str = "rest.listen";
const ADDRESSES_MAX: usize = 16;

const SERVICE: Shape = Shape::new(
    "service",
    &[
        must("href", Kind::Text, "Its path"),
        must("name", Kind::Text, "nbd or rest"),
        must("<status>", Kind::Text, "online or disabled"),
        must("addresses", Kind::Texts, "Where clients reach it now"),
        may(
            "listen",
            Kind::Texts,
            "Where it is to listen from the next start on; none: on this machine alone",
        ),
    ],
);

const CHANGES: Shape = Shape::new(
    "service_changes",
    &[must("listen", Kind::Texts, "ADDRESS:PORT; none: on this machine alone. From the next start on")],
);

const ONE: Reply = Reply::One("service", &SERVICE);

pub(super) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/service/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get("/api/service/v1/services", "List the services", Reply::Several("services", &SERVICE), run!(list)),
    get("/api/service/v1/services/{service}", "A service", ONE, run!(one)),
    put("/api/service/v1/services/{service}", "Change a service", ONE, run!(change))
        .takes(&CHANGES)
        .needs(Need::Right("svc", "allow_administer")),
];

async fn all(rest: &Rest, asked: &Asked) -> Result<Vec<Value>, Fault> {
    let api::Reply::Nbd(nbd) = rest.call(asked, Request::NbdExports).await? else {
        return Err(super::unexpected());
    };
    let service = |name: &str, addresses: &[String]| {
        let status = if addresses.is_empty() { "disabled" } else { "online" };
        json!({
            "href": asked.href(&["services", name]), "name": name, "<status>": status, "addresses": addresses,
        })
    };
    let mut own = service("rest", &rest.about().addresses);
    own["listen"] = listen(rest).into();
    Ok(vec![service("nbd", &nbd.addresses), own])
}

fn listen(rest: &Rest) -> Vec<String> {
    let access = rest.access();
    let kept = access.state().settings.get(LISTEN).cloned().unwrap_or_default();
    kept.split(',').filter(|a| !a.is_empty()).map(String::from).collect()
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    Ok(json!({ "services": all(&rest, &asked).await? }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("service");
    let found = all(&rest, &asked).await?.into_iter().find(|s| s["name"] == name);
    let found = found.ok_or_else(|| Fault::not_found(format!("there is no service '{name}'")))?;
    Ok(json!({ "service": found }).into())
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("service").to_string();
    if !all(&rest, &asked).await?.iter().any(|s| s["name"] == name.as_str()) {
        return Err(Fault::not_found(format!("there is no service '{name}'")));
    }
    if name != "rest" {
        return Err(Fault::invalid("where that service listens is said when the daemon is started"));
    }
    let addresses = asked.args.texts("listen").unwrap_or_default().to_vec();
    let wrong = addresses.iter().find(|a| a.parse::<SocketAddr>().is_err());
    if let Some(wrong) = wrong {
        return Err(Fault::invalid(format!("'{wrong}' is not ADDRESS:PORT")));
    }
    if addresses.len() > ADDRESSES_MAX {
        return Err(Fault::invalid(format!("at most {ADDRESSES_MAX} addresses")));
    }
    let kept = addresses.join(",");
    rest.with_access(move |access| {
        Ok(access.change(|state| {
            state.settings.insert(LISTEN.into(), kept);
            Ok(())
        })?)
    })
    .await?;
    one(rest, asked).await
}
