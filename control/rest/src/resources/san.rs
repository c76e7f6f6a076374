//! `/api/san`: iSCSI targets, initiators, and groups of them.
//!
//! Each is addressed by its name, or by `alias=ALIAS`.

use super::unexpected;
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use crate::shape::{Kind, Shape, may, must};
use crate::table::{Endpoint, Need, Reply, delete, get, post, put, run};
use api::Request;
use api::san::{
    Auth, Group, Identity, Initiator, InitiatorChange, Members, San, SanState, Target, TargetChange,
};
use serde_json::{Value, json};
use std::sync::Arc;

const CHANGE: Need = Need::Right("stmf", "allow_configure");
/// Shown where there is a secret; what it is is not told.
const STARS: &str = "********";

const TARGET: Shape = Shape::new(
    "target",
    &[
        must("href", Kind::Text, "Its path"),
        must("iqn", Kind::Text, "Its iSCSI name"),
        must("alias", Kind::Text, "What people call it"),
        must("auth", Kind::Text, "none or chap: whether initiators must prove who they are"),
        must("targetchapuser", Kind::Text, "Its own name, when an initiator asks for proof"),
        must("targetchapsecret", Kind::Secret, "Stars, if there is one"),
        must("interfaces", Kind::Texts, "Where it can be reached; none: everywhere"),
    ],
);

const NEW_TARGET: Shape = Shape::new(
    "new_target",
    &[
        may("alias", Kind::Text, "What people call it"),
        may("iqn", Kind::Text, "Its iSCSI name; without, one is made"),
        may("auth", Kind::Text, "none (default) or chap"),
        may("targetchapuser", Kind::Text, "Its own name, when an initiator asks for proof"),
        may("targetchapsecret", Kind::Secret, "12 to 16 characters"),
        may("interfaces", Kind::Texts, "Network interfaces or addresses; none: everywhere"),
    ],
);

const TARGET_CHANGES: Shape = Shape::new(
    "target_changes",
    &[
        may("alias", Kind::Text, "What people call it"),
        may("auth", Kind::Text, "none or chap"),
        may("targetchapuser", Kind::Text, "Empty: none"),
        may("targetchapsecret", Kind::Secret, "Empty: none"),
        may("interfaces", Kind::Texts, "Network interfaces or addresses; none: everywhere"),
    ],
);

const INITIATOR: Shape = Shape::new(
    "initiator",
    &[
        must("href", Kind::Text, "Its path"),
        must("initiator", Kind::Text, "Its iSCSI name"),
        must("alias", Kind::Text, "What people call it"),
        must("chapuser", Kind::Text, "Its name, when a target asks for proof"),
        must("chapsecret", Kind::Secret, "Stars, if there is one"),
    ],
);

const NEW_INITIATOR: Shape = Shape::new(
    "new_initiator",
    &[
        must("initiator", Kind::Text, "Its iSCSI name"),
        may("alias", Kind::Text, "What people call it"),
        may("chapuser", Kind::Text, "Its name, when a target asks for proof"),
        may("chapsecret", Kind::Secret, "12 to 16 characters"),
    ],
);

const INITIATOR_CHANGES: Shape = Shape::new(
    "initiator_changes",
    &[
        may("alias", Kind::Text, "What people call it"),
        may("chapuser", Kind::Text, "Empty: none"),
        may("chapsecret", Kind::Secret, "Empty: none"),
    ],
);

macro_rules! group_shapes {
    ($members:literal, $one:literal, $new:literal, $changes:literal) => {
        (
            Shape::new(
                $one,
                &[
                    must("href", Kind::Text, "Its path"),
                    must("name", Kind::Text, "Its name"),
                    must($members, Kind::Texts, "The iSCSI names of those in it"),
                ],
            ),
            Shape::new(
                $new,
                &[
                    must("name", Kind::Text, "Its name"),
                    may($members, Kind::Texts, "The iSCSI names of those in it"),
                ],
            ),
            Shape::new(
                $changes,
                &[
                    may("name", Kind::Text, "Another name"),
                    may($members, Kind::Texts, "In place of those before"),
                ],
            ),
        )
    };
}

static OF_TARGETS: (Shape, Shape, Shape) =
    group_shapes!("targets", "target_group", "new_target_group", "target_group_changes");
static OF_INITIATORS: (Shape, Shape, Shape) =
    group_shapes!("initiators", "initiator_group", "new_initiator_group", "initiator_group_changes");

const IDENTITY: Shape = Shape::new(
    "inquiry",
    &[
        must("href", Kind::Text, "Its path"),
        must("vendor", Kind::Text, "What INQUIRY says of every LUN: at most 8 characters"),
        must("product", Kind::Text, "At most 16 characters"),
    ],
);
const IDENTITY_CHANGES: Shape = Shape::new(
    "inquiry_changes",
    &[
        may("vendor", Kind::Text, "1 to 8 ASCII characters"),
        may("product", Kind::Text, "1 to 16 ASCII characters"),
    ],
);

const INQUIRY: &str = "/api/san/v1/inquiry";
const TARGETS: &str = "/api/san/v1/iscsi/targets";
const A_TARGET: &str = "/api/san/v1/iscsi/targets/{target}";
const INITIATORS: &str = "/api/san/v1/iscsi/initiators";
const AN_INITIATOR: &str = "/api/san/v1/iscsi/initiators/{initiator}";
const TARGET_GROUPS: &str = "/api/san/v1/iscsi/target-groups";
const A_TARGET_GROUP: &str = "/api/san/v1/iscsi/target-groups/{group}";
const INITIATOR_GROUPS: &str = "/api/san/v1/iscsi/initiator-groups";
const AN_INITIATOR_GROUP: &str = "/api/san/v1/iscsi/initiator-groups/{group}";

pub(super) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/san/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get(INQUIRY, "How LUNs call themselves", Reply::One("inquiry", &IDENTITY), run!(inquiry)),
    put(INQUIRY, "Change how LUNs call themselves", Reply::One("inquiry", &IDENTITY), run!(change_inquiry))
        .takes(&IDENTITY_CHANGES)
        .needs(CHANGE),
    get(TARGETS, "List the targets", Reply::Several("targets", &TARGET), run!(targets)),
    get(A_TARGET, "A target", Reply::One("target", &TARGET), run!(target)),
    post(TARGETS, "Make a target", Reply::One("target", &TARGET), run!(create_target))
        .takes(&NEW_TARGET)
        .needs(CHANGE),
    put(A_TARGET, "Change a target", Reply::One("target", &TARGET), run!(change_target))
        .takes(&TARGET_CHANGES)
        .needs(CHANGE),
    delete(A_TARGET, "Destroy a target", run!(destroy_target)).needs(CHANGE),
    get(INITIATORS, "List the initiators", Reply::Several("initiators", &INITIATOR), run!(initiators)),
    get(AN_INITIATOR, "An initiator", Reply::One("initiator", &INITIATOR), run!(initiator)),
    post(INITIATORS, "Make an initiator known", Reply::One("initiator", &INITIATOR), run!(create_initiator))
        .takes(&NEW_INITIATOR)
        .needs(CHANGE),
    put(AN_INITIATOR, "Change an initiator", Reply::One("initiator", &INITIATOR), run!(change_initiator))
        .takes(&INITIATOR_CHANGES)
        .needs(CHANGE),
    delete(AN_INITIATOR, "Forget an initiator", run!(destroy_initiator)).needs(CHANGE),
    get(TARGET_GROUPS, "List the groups of targets", Reply::Several("groups", &OF_TARGETS.0), run!(groups)),
    get(A_TARGET_GROUP, "A group of targets", Reply::One("group", &OF_TARGETS.0), run!(group)),
    post(TARGET_GROUPS, "Make a group of targets", Reply::One("group", &OF_TARGETS.0), run!(create_group))
        .takes(&OF_TARGETS.1)
        .needs(CHANGE),
    put(A_TARGET_GROUP, "Change a group of targets", Reply::One("group", &OF_TARGETS.0), run!(change_group))
        .takes(&OF_TARGETS.2)
        .needs(CHANGE),
    delete(A_TARGET_GROUP, "Destroy a group of targets", run!(destroy_group)).needs(CHANGE),
    get(
        INITIATOR_GROUPS,
        "List the groups of initiators",
        Reply::Several("groups", &OF_INITIATORS.0),
        run!(groups),
    ),
    get(AN_INITIATOR_GROUP, "A group of initiators", Reply::One("group", &OF_INITIATORS.0), run!(group)),
    post(
        INITIATOR_GROUPS,
        "Make a group of initiators",
        Reply::One("group", &OF_INITIATORS.0),
        run!(create_group),
    )
    .takes(&OF_INITIATORS.1)
    .needs(CHANGE),
    put(
        AN_INITIATOR_GROUP,
        "Change a group of initiators",
        Reply::One("group", &OF_INITIATORS.0),
        run!(change_group),
    )
    .takes(&OF_INITIATORS.2)
    .needs(CHANGE),
    delete(AN_INITIATOR_GROUP, "Destroy a group of initiators", run!(destroy_group)).needs(CHANGE),
];

async fn state(rest: &Rest, asked: &Asked) -> Result<SanState, Fault> {
    match rest.call(asked, Request::San(San::Show)).await? {
        api::Reply::San(state) => Ok(*state),
        _ => Err(unexpected()),
    }
}

/// Does it, and answers the name of what was made, if it was.
async fn carry_out(rest: &Rest, asked: &Asked, what: San) -> Result<Option<String>, Fault> {
    match rest.call(asked, Request::San(what)).await? {
        api::Reply::Named { name } => Ok(Some(name)),
        _ => Ok(None),
    }
}

fn stars(has_secret: bool) -> &'static str {
    if has_secret { STARS } else { "" }
}

fn secret(asked: &Asked, name: &str) -> Option<api::Secret> {
    asked.args.secret(name).cloned()
}

fn text(asked: &Asked, name: &str) -> Option<String> {
    asked.args.text(name).map(String::from)
}

fn show_target(asked: &Asked, t: &Target) -> Value {
    json!({
        "href": asked.href(&["iscsi", "targets", &t.iqn]), "iqn": t.iqn, "alias": t.alias,
        "auth": t.auth.word(), "targetchapuser": t.chap_user, "targetchapsecret": stars(t.has_chap_secret),
        "interfaces": t.interfaces,
    })
}

fn show_initiator(asked: &Asked, i: &Initiator) -> Value {
    json!({
        "href": asked.href(&["iscsi", "initiators", &i.iqn]), "initiator": i.iqn, "alias": i.alias,
        "chapuser": i.chap_user, "chapsecret": stars(i.has_chap_secret),
    })
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
    let shown = json!({
        "href": asked.href(&["inquiry"]), "vendor": identity.vendor, "product": identity.product,
    });
    Ok(json!({ "inquiry": shown }).into())
}

async fn change_inquiry(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let before = state(&rest, &asked).await?.identity;
    let identity = Identity {
        vendor: text(&asked, "vendor").unwrap_or(before.vendor),
        product: text(&asked, "product").unwrap_or(before.product),
    };
    carry_out(&rest, &asked, San::SetIdentity(identity)).await?;
    inquiry(rest, asked).await
}

async fn targets(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let all: Vec<Value> =
        state(&rest, &asked).await?.targets.iter().map(|t| show_target(&asked, t)).collect();
    Ok(json!({ "targets": all }).into())
}

async fn target(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = find_target(&rest, &asked, asked.param("target")).await?;
    Ok(json!({ "target": show_target(&asked, &found) }).into())
}

fn target_change(asked: &Asked) -> Result<TargetChange, Fault> {
    let auth = match asked.args.text("auth") {
        None => None,
        Some("none") => Some(Auth::None),
        Some("chap") => Some(Auth::Chap),
        Some(other) => return Err(Fault::invalid(format!("auth is none or chap, not '{other}'"))),
    };
    Ok(TargetChange {
        alias: text(asked, "alias"),
        auth,
        chap_user: text(asked, "targetchapuser"),
        chap_secret: secret(asked, "targetchapsecret"),
        interfaces: asked.args.texts("interfaces").map(<[String]>::to_vec),
    })
}

async fn create_target(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let new = San::TargetCreate { iqn: text(&asked, "iqn"), set: target_change(&asked)? };
    let iqn = carry_out(&rest, &asked, new).await?.ok_or_else(unexpected)?;
    let made = find_target(&rest, &asked, &iqn).await?;
    Ok(json!({ "target": show_target(&asked, &made) }).into())
}

async fn change_target(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let iqn = find_target(&rest, &asked, asked.param("target")).await?.iqn;
    carry_out(&rest, &asked, San::TargetSet { iqn: iqn.clone(), set: target_change(&asked)? }).await?;
    let found = find_target(&rest, &asked, &iqn).await?;
    Ok(json!({ "target": show_target(&asked, &found) }).into())
}

async fn destroy_target(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let iqn = find_target(&rest, &asked, asked.param("target")).await?.iqn;
    carry_out(&rest, &asked, San::TargetDestroy { iqn }).await?;
    nothing()
}

async fn initiators(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let state = state(&rest, &asked).await?;
    let all: Vec<Value> = state.initiators.iter().map(|i| show_initiator(&asked, i)).collect();
    Ok(json!({ "initiators": all }).into())
}

async fn initiator(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = find_initiator(&rest, &asked, asked.param("initiator")).await?;
    Ok(json!({ "initiator": show_initiator(&asked, &found) }).into())
}

fn initiator_change(asked: &Asked) -> InitiatorChange {
    InitiatorChange {
        alias: text(asked, "alias"),
        chap_user: text(asked, "chapuser"),
        chap_secret: secret(asked, "chapsecret"),
    }
}

async fn create_initiator(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let iqn = text(&asked, "initiator").unwrap_or_default();
    carry_out(&rest, &asked, San::InitiatorCreate { iqn: iqn.clone(), set: initiator_change(&asked) })
        .await?;
    let made = find_initiator(&rest, &asked, &iqn).await?;
    Ok(json!({ "initiator": show_initiator(&asked, &made) }).into())
}

async fn change_initiator(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let iqn = find_initiator(&rest, &asked, asked.param("initiator")).await?.iqn;
    carry_out(&rest, &asked, San::InitiatorSet { iqn: iqn.clone(), set: initiator_change(&asked) }).await?;
    let found = find_initiator(&rest, &asked, &iqn).await?;
    Ok(json!({ "initiator": show_initiator(&asked, &found) }).into())
}

async fn destroy_initiator(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let iqn = find_initiator(&rest, &asked, asked.param("initiator")).await?.iqn;
    carry_out(&rest, &asked, San::InitiatorDestroy { iqn }).await?;
    nothing()
}

/// Of what the groups are that a path is about, and how paths and bodies call them.
fn kind(asked: &Asked) -> (Members, &'static str, &'static str) {
    match asked.routed.endpoint.path.contains("/target-groups") {
        true => (Members::Targets, "target-groups", "targets"),
        false => (Members::Initiators, "initiator-groups", "initiators"),
    }
}

fn show_group(asked: &Asked, group: &Group) -> Value {
    let (_, path, members) = kind(asked);
    json!({
        "href": asked.href(&["iscsi", path, &group.name]), "name": group.name, members: group.members,
    })
}

async fn groups(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let state = state(&rest, &asked).await?;
    let all: Vec<Value> = state.groups(kind(&asked).0).iter().map(|g| show_group(&asked, g)).collect();
    Ok(json!({ "groups": all }).into())
}

async fn shown(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let name = name.strip_prefix("name=").unwrap_or(name);
    let state = state(rest, asked).await?;
    let found = state.groups(kind(asked).0).iter().find(|g| g.name == name);
    let found = found.ok_or_else(|| Fault::not_found(format!("there is no group '{name}'")))?;
    Ok(json!({ "group": show_group(asked, found) }).into())
}

async fn group(rest: Arc<Rest>, asked: Asked) -> Outcome {
    shown(&rest, &asked, asked.param("group")).await
}

fn members(asked: &Asked) -> Option<Vec<String>> {
    asked.args.texts(kind(asked).2).map(<[String]>::to_vec)
}

async fn create_group(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = text(&asked, "name").unwrap_or_default();
    let members = members(&asked).unwrap_or_default();
    carry_out(&rest, &asked, San::GroupCreate { of: kind(&asked).0, name: name.clone(), members }).await?;
    shown(&rest, &asked, &name).await
}

async fn change_group(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("group").to_string();
    let new_name = text(&asked, "name");
    let now = new_name.clone().unwrap_or_else(|| name.clone());
    let change = San::GroupSet { of: kind(&asked).0, name, new_name, members: members(&asked) };
    carry_out(&rest, &asked, change).await?;
    shown(&rest, &asked, &now).await
}

async fn destroy_group(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("group").to_string();
    carry_out(&rest, &asked, San::GroupDestroy { of: kind(&asked).0, name }).await?;
    nothing()
}
