//! `/api/san`: iSCSI targets, initiators, and groups of them and of those of Fibre Channel.
//!
//! Each is addressed by its name, or by `alias=ALIAS`.

use super::unexpected;
use crate::endpoint::{Endpoint, Reply, get, handles, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::Request;
use api::declared::san::{self, Groups};
use api::san::{Identity, Initiator, San, SanState, Target};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/san/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    shows(&san::GET_INQUIRY, run!(inquiry)),
    handles(&san::CHANGE_INQUIRY, run!(change_inquiry)),
    shows(&san::GET_TARGETS, run!(targets)),
    shows(&san::GET_TARGET, run!(target)),
    handles(&san::CREATE_TARGET, run!(create_target)),
    handles(&san::CHANGE_TARGET, run!(change_target)),
    handles(&san::DESTROY_TARGET, run!(change_target)),
    shows(&san::GET_INITIATORS, run!(initiators)),
    shows(&san::GET_INITIATOR, run!(initiator)),
    handles(&san::CREATE_INITIATOR, run!(create_initiator)),
    handles(&san::CHANGE_INITIATOR, run!(change_initiator)),
    handles(&san::DESTROY_INITIATOR, run!(change_initiator)),
    shows(&san::TARGET_GROUPS.list, run!(groups)),
    shows(&san::TARGET_GROUPS.one, run!(group)),
    handles(&san::TARGET_GROUPS.create, run!(create_group)),
    handles(&san::TARGET_GROUPS.change, run!(change_group)),
    handles(&san::TARGET_GROUPS.destroy, run!(change_group)),
    shows(&san::INITIATOR_GROUPS.list, run!(groups)),
    shows(&san::INITIATOR_GROUPS.one, run!(group)),
    handles(&san::INITIATOR_GROUPS.create, run!(create_group)),
    handles(&san::INITIATOR_GROUPS.change, run!(change_group)),
    handles(&san::INITIATOR_GROUPS.destroy, run!(change_group)),
    shows(&san::FC_TARGET_GROUPS.list, run!(groups)),
    shows(&san::FC_TARGET_GROUPS.one, run!(group)),
    handles(&san::FC_TARGET_GROUPS.create, run!(create_group)),
    handles(&san::FC_TARGET_GROUPS.change, run!(change_group)),
    handles(&san::FC_TARGET_GROUPS.destroy, run!(change_group)),
    shows(&san::FC_INITIATOR_GROUPS.list, run!(groups)),
    shows(&san::FC_INITIATOR_GROUPS.one, run!(group)),
    handles(&san::FC_INITIATOR_GROUPS.create, run!(create_group)),
    handles(&san::FC_INITIATOR_GROUPS.change, run!(change_group)),
    handles(&san::FC_INITIATOR_GROUPS.destroy, run!(change_group)),
];

pub(super) async fn state(rest: &Rest, asked: &Asked) -> Result<SanState, Fault> {
    match rest.call(asked, Request::San(San::Show)).await? {
        api::Reply::San(state) => Ok(*state),
        _ => Err(unexpected()),
    }
}

/// Whether a name in a path means this one.
fn is_meant(selector: &str, iqn: &str, alias: &str) -> bool {
    match selector.strip_prefix("alias=") {
        Some(wanted) => !wanted.is_empty() && wanted == alias,
        None => selector.eq_ignore_ascii_case(iqn),
    }
}

async fn find_target(rest: &Rest, asked: &Asked, selector: &str) -> Result<Target, Fault> {
    let mut found =
        state(rest, asked).await?.targets.into_iter().filter(|t| is_meant(selector, &t.iqn, &t.alias));
    found.next().ok_or_else(|| Fault::not_found(format!("there is no target '{selector}'")))
}

async fn find_initiator(rest: &Rest, asked: &Asked, selector: &str) -> Result<Initiator, Fault> {
    let all = state(rest, asked).await?.initiators;
    let mut found = all.into_iter().filter(|i| is_meant(selector, &i.iqn, &i.alias));
    found.next().ok_or_else(|| Fault::not_found(format!("there is no initiator '{selector}'")))
}

async fn inquiry(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let identity = state(&rest, &asked).await?.identity;
    Ok(json!({ "inquiry": asked.told(&san::INQUIRY, &identity) }).into())
}

async fn change_inquiry(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let before = state(&rest, &asked).await?.identity;
    // What is not said stays.
    let said = |name: &str| asked.args.text(name).map(String::from);
    let identity = Identity {
        vendor: said("vendor").unwrap_or(before.vendor),
        product: said("product").unwrap_or(before.product),
    };
    rest.call(&asked, Request::San(San::SetIdentity(identity))).await?;
    inquiry(rest, asked).await
}

async fn targets(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let all = state(&rest, &asked).await?.targets;
    let all: Vec<Value> = all.iter().map(|t| asked.told(&san::TARGET, t)).collect();
    Ok(json!({ "targets": all }).into())
}

async fn the_target(rest: &Rest, asked: &Asked, selector: &str) -> Outcome {
    let found = find_target(rest, asked, selector).await?;
    Ok(json!({ "target": asked.told(&san::TARGET, &found) }).into())
}

async fn target(rest: Arc<Rest>, asked: Asked) -> Outcome {
    the_target(&rest, &asked, asked.param("target")).await
}

async fn create_target(rest: Arc<Rest>, asked: Asked) -> Outcome {
    match rest.call(&asked, asked.request()?).await? {
        api::Reply::Named { name } => the_target(&rest, &asked, &name).await,
        _ => Err(unexpected()),
    }
}

/// Or destroys it.
async fn change_target(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let mut request = asked.request()?;
    let found = find_target(&rest, &asked, asked.param("target")).await?.iqn;
    // The path may have named it by its alias.
    if let Request::San(San::TargetSet { iqn, .. } | San::TargetDestroy { iqn }) = &mut request {
        iqn.clone_from(&found);
    }
    rest.call(&asked, request).await?;
    match asked.routed.endpoint.reply {
        Reply::Nothing => nothing(),
        _ => the_target(&rest, &asked, &found).await,
    }
}

async fn initiators(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let all = state(&rest, &asked).await?.initiators;
    let all: Vec<Value> = all.iter().map(|i| asked.told(&san::INITIATOR, i)).collect();
    Ok(json!({ "initiators": all }).into())
}

async fn the_initiator(rest: &Rest, asked: &Asked, selector: &str) -> Outcome {
    let found = find_initiator(rest, asked, selector).await?;
    Ok(json!({ "initiator": asked.told(&san::INITIATOR, &found) }).into())
}

async fn initiator(rest: Arc<Rest>, asked: Asked) -> Outcome {
    the_initiator(&rest, &asked, asked.param("initiator")).await
}

async fn create_initiator(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    the_initiator(&rest, &asked, asked.args.text("initiator").unwrap_or_default()).await
}

/// Or forgets it.
async fn change_initiator(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let mut request = asked.request()?;
    let found = find_initiator(&rest, &asked, asked.param("initiator")).await?.iqn;
    if let Request::San(San::InitiatorSet { iqn, .. } | San::InitiatorDestroy { iqn }) = &mut request {
        iqn.clone_from(&found);
    }
    rest.call(&asked, request).await?;
    match asked.routed.endpoint.reply {
        Reply::Nothing => nothing(),
        _ => the_initiator(&rest, &asked, &found).await,
    }
}

/// The groups that a path is about.
fn kind(asked: &Asked) -> &'static Groups {
    let path = asked.routed.endpoint.path;
    let found = san::GROUPS.into_iter().find(|groups| path.starts_with(groups.list.path));
    found.unwrap_or(&san::INITIATOR_GROUPS)
}

async fn groups(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (state, kind) = (state(&rest, &asked).await?, kind(&asked));
    let all: Vec<Value> = state.groups(kind.of).iter().map(|g| asked.told(kind.shaped, g)).collect();
    Ok(json!({ "groups": all }).into())
}

async fn shown(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let name = name.strip_prefix("name=").unwrap_or(name);
    let (state, kind) = (state(rest, asked).await?, kind(asked));
    let found = state.groups(kind.of).iter().find(|g| g.name == name);
    let found = found.ok_or_else(|| Fault::not_found(format!("there is no group '{name}'")))?;
    Ok(json!({ "group": asked.told(kind.shaped, found) }).into())
}

async fn group(rest: Arc<Rest>, asked: Asked) -> Outcome {
    shown(&rest, &asked, asked.param("group")).await
}

async fn create_group(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    shown(&rest, &asked, asked.args.text("name").unwrap_or_default()).await
}

/// Or destroys it.
async fn change_group(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    match asked.routed.endpoint.reply {
        Reply::Nothing => nothing(),
        _ => {
            let now = asked.args.text("name").unwrap_or(asked.param("group"));
            shown(&rest, &asked, now).await
        }
    }
}
