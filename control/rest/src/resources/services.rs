//! `/api/service`: what serves clients, and where.

use crate::endpoint::{Endpoint, Reply, get, handles, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest};
use api::declared::services;
use api::{Request, ServiceState, Services, Switch};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Of [`access::State::settings`].
pub const LISTEN: &str = "rest.listen";
const ADDRESSES_MAX: usize = 16;
/// The service by which all others are asked.
const OWN: &str = "rest";

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/service/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    handles(&services::SHOW, run!(list)),
    shows(&services::GET_SERVICE, run!(one)),
    handles(&services::LISTEN, run!(change)),
    handles(&services::ENABLE, run!(switch)),
    handles(&services::DISABLE, run!(switch)),
    handles(&services::RESTART, run!(switch)),
];

async fn all(rest: &Rest, asked: &Asked) -> Result<Vec<Value>, Fault> {
    let api::Reply::Services(found) = rest.call(asked, Request::Services(Services::Show)).await? else {
        return Err(super::unexpected());
    };
    let shown = |service: &ServiceState| asked.told(&services::SERVICE, service);
    let own = ServiceState {
        name: OWN.into(),
        enabled: true,
        addresses: rest.about().addresses,
        listen: listen(rest),
        clients: 0,
        offline: false,
    };
    let mut own = shown(&own);
    // It counts no clients.
    if let Some(own) = own.as_object_mut() {
        own.remove("clients");
    }
    Ok(found.iter().map(shown).chain([own]).collect())
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

async fn switch(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let request = asked.request()?;
    // The service that answers here is on.
    let own = Services::Switch { name: OWN.into(), to: Switch::Enable };
    if request != Request::Services(own) {
        rest.call(&asked, request).await?;
    }
    one(rest, asked).await
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("service").to_string();
    if !all(&rest, &asked).await?.iter().any(|s| s["name"] == name.as_str()) {
        return Err(Fault::not_found(format!("there is no service '{name}'")));
    }
    if name != OWN {
        rest.call(&asked, asked.request()?).await?;
        return one(rest, asked).await;
    }
    let addresses = asked.args.texts("listen").unwrap_or_default();
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
