//! `/api/service`: what serves clients, and where.

use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest};
use crate::shape::{Kind, Shape, may, must};
use crate::table::{Endpoint, Need, Reply, get, put, run};
use api::{Request, ServiceState, Services, Switch};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Of [`access::State::settings`].
pub const LISTEN: &str = "rest.listen";
const ADDRESSES_MAX: usize = 16;
/// The service by which all others are asked.
const OWN: &str = "rest";

const SERVICE: Shape = Shape::new(
    "service",
    &[
        must("href", Kind::Text, "Its path"),
        must("name", Kind::Text, "iscsi, nbd or rest"),
        must("<status>", Kind::Text, "online or disabled"),
        must("addresses", Kind::Texts, "Where clients reach it now"),
        must(
            "listen",
            Kind::Texts,
            "Where it was set to let clients in; none: on this machine alone. That of rest counts from the next start on",
        ),
        may("clients", Kind::Number, "Who is connected now"),
    ],
);

const CHANGES: Shape = Shape::new(
    "service_changes",
    &[must(
        "listen",
        Kind::Texts,
        "ADDRESS:PORT; none: on this machine alone. Of rest from the next start on",
    )],
);

const ONE: Reply = Reply::One("service", &SERVICE);
const ADMINISTER: Need = Need::Right("svc", "allow_administer");

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
        .needs(ADMINISTER),
    put(
        "/api/service/v1/services/{service}/enable",
        "Switch a service on, now and for good",
        ONE,
        run!(enable),
    )
    .needs(ADMINISTER),
    put(
        "/api/service/v1/services/{service}/disable",
        "Switch a service off, now and for good; its clients are ended, after what they have in flight",
        ONE,
        run!(disable),
    )
    .needs(ADMINISTER),
    put(
        "/api/service/v1/services/{service}/restart",
        "End the clients of a service, who may come again",
        ONE,
        run!(restart),
    )
    .needs(ADMINISTER),
];

async fn all(rest: &Rest, asked: &Asked) -> Result<Vec<Value>, Fault> {
    let api::Reply::Services(found) = rest.call(asked, Request::Services(Services::Show)).await? else {
        return Err(super::unexpected());
    };
    let shown = |service: &ServiceState| {
        json!({
            "href": asked.href(&["services", &service.name]), "name": service.name, "<status>": service.status(),
            "addresses": service.addresses, "listen": service.listen,
        })
    };
    let with_clients = |service: &ServiceState| {
        let mut shown = shown(service);
        shown["clients"] = service.clients.into();
        shown
    };
    let own = ServiceState {
        name: OWN.into(),
        enabled: true,
        addresses: rest.about().addresses,
        listen: listen(rest),
        clients: 0,
        offline: false,
    };
    Ok(found.iter().map(with_clients).chain([shown(&own)]).collect())
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

async fn enable(rest: Arc<Rest>, asked: Asked) -> Outcome {
    switch(rest, asked, Switch::Enable).await
}

async fn disable(rest: Arc<Rest>, asked: Asked) -> Outcome {
    switch(rest, asked, Switch::Disable).await
}

async fn restart(rest: Arc<Rest>, asked: Asked) -> Outcome {
    switch(rest, asked, Switch::Restart).await
}

async fn switch(rest: Arc<Rest>, asked: Asked, to: Switch) -> Outcome {
    let name = asked.param("service").to_string();
    // Whoever is answered here has it on.
    if (name.as_str(), to) != (OWN, Switch::Enable) {
        rest.call(&asked, Request::Services(Services::Switch { name, to })).await?;
    }
    one(rest, asked).await
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("service").to_string();
    if !all(&rest, &asked).await?.iter().any(|s| s["name"] == name.as_str()) {
        return Err(Fault::not_found(format!("there is no service '{name}'")));
    }
    let addresses = asked.args.texts("listen").unwrap_or_default().to_vec();
    if name != OWN {
        rest.call(&asked, Request::Services(Services::Listen { name, addresses })).await?;
        return one(rest, asked).await;
    }
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
