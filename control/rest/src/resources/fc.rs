//! `/api/san/v1/fc`: targets and initiators of Fibre Channel.
//!
//! Each is addressed by its WWN, in any of its spellings, or by `alias=ALIAS`.

use super::san::state;
use super::unexpected;
use crate::endpoint::{Endpoint, Reply, handles, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::Request;
use api::declared::fc::{INITIATORS, Ports, TARGETS};
use api::san::{FcPort, San, wwn};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    shows(&TARGETS.list, run!(list)),
    shows(&TARGETS.one, run!(one)),
    handles(&TARGETS.create, run!(create)),
    handles(&TARGETS.change, run!(change)),
    handles(&TARGETS.destroy, run!(change)),
    shows(&INITIATORS.list, run!(list)),
    shows(&INITIATORS.one, run!(one)),
    handles(&INITIATORS.create, run!(create)),
    handles(&INITIATORS.change, run!(change)),
    handles(&INITIATORS.destroy, run!(change)),
];

/// The ports that a path is about.
fn kind(asked: &Asked) -> &'static Ports {
    match asked.routed.endpoint.path.starts_with(TARGETS.list.path) {
        true => &TARGETS,
        false => &INITIATORS,
    }
}

async fn find(rest: &Rest, asked: &Asked, selector: &str) -> Result<FcPort, Fault> {
    let kind = kind(asked);
    let is_meant = |port: &&FcPort| match selector.strip_prefix("alias=") {
        Some(wanted) => !wanted.is_empty() && wanted == port.alias,
        None => wwn(selector).is_some_and(|wanted| wanted == port.wwn),
    };
    let found = state(rest, asked).await?.ports(kind.of).iter().find(is_meant).cloned();
    found.ok_or_else(|| {
        Fault::not_found(format!("there is no {} '{selector}' of Fibre Channel", kind.words.0))
    })
}

async fn shown(rest: &Rest, asked: &Asked, selector: &str) -> Outcome {
    let (kind, found) = (kind(asked), find(rest, asked, selector).await?);
    Ok(json!({ kind.words.0: asked.told(kind.shaped, &found) }).into())
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (state, kind) = (state(&rest, &asked).await?, kind(&asked));
    let all: Vec<Value> = state.ports(kind.of).iter().map(|port| asked.told(kind.shaped, port)).collect();
    Ok(json!({ kind.words.1: all }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let brace = kind(&asked).words.0;
    shown(&rest, &asked, asked.param(brace)).await
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    match rest.call(&asked, asked.request()?).await? {
        api::Reply::Named { name } => shown(&rest, &asked, &name).await,
        _ => Err(unexpected()),
    }
}

/// Or forgets it.
async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let mut request = asked.request()?;
    let found = find(&rest, &asked, asked.param(kind(&asked).words.0)).await?.wwn;
    // The path may have named it by its alias.
    if let Request::San(San::FcSet { wwn, .. } | San::FcDestroy { wwn, .. }) = &mut request {
        wwn.clone_from(&found);
    }
    rest.call(&asked, request).await?;
    match asked.routed.endpoint.reply {
        Reply::Nothing => nothing(),
        _ => shown(&rest, &asked, &found).await,
    }
}
