//! `/api/storage/v1/.../projects`, `filesystems` and `luns`.

use super::unexpected;
use crate::endpoint::{Endpoint, handles, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::declared::shares::{self, permission};
use api::shares::{Item, ItemKind, Place, Shares};
use api::{Doctor, ErrorKind, Reply, Request};
use serde_json::{Value, json};
use std::sync::Arc;

macro_rules! endpoints {
    ($id:ident) => {
        &[
            handles(&shares::$id.list_all, run!(list)),
            handles(&shares::$id.list, run!(list)),
            handles(&shares::$id.one, run!(one)),
            handles(&shares::$id.create, run!(create)),
            handles(&shares::$id.change, run!(change)),
            handles(&shares::$id.destroy, run!(destroy)),
        ]
    };
}

pub(crate) static OF_PROJECTS: &[Endpoint] = endpoints!(OF_PROJECT);
pub(crate) static OF_FILESYSTEMS: &[Endpoint] = endpoints!(OF_FILESYSTEM);
pub(crate) static OF_LUNS: &[Endpoint] = endpoints!(OF_LUN);

/// What an endpoint is about: the kind of its answer or, of one that answers nothing, of its path.
pub(super) fn kind(asked: &Asked) -> ItemKind {
    let path = asked.routed.endpoint.path;
    match () {
        () if path.contains("/luns") => ItemKind::Lun,
        () if path.contains("/filesystems") => ItemKind::Filesystem,
        () => ItemKind::Project,
    }
}

pub(super) fn place(asked: &Asked) -> Result<Place, Fault> {
    let project = Place::project(asked.param("pool"), asked.param("project"));
    let share = match kind(asked) {
        ItemKind::Project => return checked(project),
        ItemKind::Filesystem => asked.param("filesystem"),
        ItemKind::Lun => asked.param("lun"),
    };
    checked(project.share(share))
}

/// A name from a body or path is one part of a dataset's.
pub(super) fn checked(place: Place) -> Result<Place, Fault> {
    let is_name = |text: &str| !text.is_empty() && !text.contains(['/', '@', '#']);
    let is_place =
        is_name(&place.pool) && is_name(&place.project) && place.share.as_deref().is_none_or(is_name);
    match is_place {
        true => Ok(place),
        false => Err(Fault::invalid("that is no name of a project or share")),
    }
}

pub(super) async fn items(rest: &Rest, asked: &Asked, what: Shares) -> Result<Vec<Item>, Fault> {
    match rest.call(asked, Request::Shares(what)).await? {
        api::Reply::Items(items) => Ok(items),
        _ => Err(unexpected()),
    }
}

pub(super) async fn find(rest: &Rest, asked: &Asked, place: Place) -> Result<Item, Fault> {
    let found = items(rest, asked, Shares::Get { place: place.clone() }).await?.into_iter().next();
    // A LUN is not found among the file systems.
    found
        .filter(|item| item.kind == kind(asked))
        .ok_or_else(|| Fault::not_found(format!("there is no {} '{place}'", kind(asked).word())))
}

/// `{"lun": ...}`
pub(super) fn envelope(asked: &Asked, item: &Item) -> Outcome {
    Ok(json!({ item.kind.word(): asked.in_version(shares::tell(item)) }).into())
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let Request::Shares(what) = asked.request()? else { return Err(unexpected()) };
    if let Shares::Shares { pool: Some(pool), project: Some(project), .. } = &what {
        // A project that is not there has no shares, and is to be said so.
        items(&rest, &asked, Shares::Get { place: checked(Place::project(pool, project))? }).await?;
    }
    let found = items(&rest, &asked, what).await?;
    let all: Vec<Value> = found.iter().map(|item| asked.in_version(shares::tell(item))).collect();
    Ok(json!({ format!("{}s", kind(&asked).word()): all }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let item = find(&rest, &asked, place(&asked)?).await?;
    envelope(&asked, &item)
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let request = asked.request()?;
    let Request::Shares(Shares::Create { place, set, .. }) = &request else { return Err(unexpected()) };
    let (place, set) = (checked(place.clone())?, names(set));
    rest.call(&asked, request).await?;
    let made = find(&rest, &asked, place).await?;
    advised(&rest, &asked, &made, &set).await
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let request = asked.request()?;
    let Request::Shares(Shares::Change { place, name, project, set, unset }) = &request else {
        return Err(unexpected());
    };
    let from = checked(place.clone())?;
    find(&rest, &asked, from.clone()).await?;
    let to = checked(from.moved(name.as_deref(), project.as_deref()))?;
    may_unset_and_move(&rest, &asked, &from, &to)?;
    let names = names(set);
    if to != from || !set.is_empty() || !unset.is_empty() {
        rest.call(&asked, request).await?;
    }
    let item = find(&rest, &asked, to).await?;
    advised(&rest, &asked, &item, &names).await
}

fn names(set: &[(String, String)]) -> Vec<String> {
    set.iter().map(|(name, _)| name.clone()).collect()
}

/// `{"lun": ...}` and, where there is something to be said of these settings in this pool, `"advice": [...]` beside it.
async fn advised(rest: &Rest, asked: &Asked, item: &Item, set: &[String]) -> Outcome {
    let names = || set.iter().map(String::as_str);
    let mut answer = json!({ item.kind.word(): asked.in_version(shares::tell(item)) });
    if names().any(doctor::is_judged) {
        let about = Request::Doctor(Doctor::Dataset { name: item.place.dataset() });
        // No advice is no reason to fail: the settings are made.
        if let Ok(Reply::Advice(mut all)) = rest.try_call(asked, about).await {
            all.retain(|advice| advice.judges(names()));
            if !all.is_empty() {
                answer["advice"] = json!(all);
            }
        }
    }
    Ok(answer.into())
}

/// To take a value away takes what it takes to set it; and to bring a share somewhere, the right to make one there.
fn may_unset_and_move(rest: &Rest, asked: &Asked, from: &Place, to: &Place) -> Result<(), Fault> {
    let has = |permission: &str, place: &Place| {
        let mut on = vec![("pool", place.pool.as_str()), ("project", place.project.as_str())];
        on.extend(place.share.as_deref().map(|share| ("share", share)));
        rest.has(&asked.who, "nas", permission, &on)
    };
    let unset = asked.args.texts("unset").unwrap_or_default();
    let mut unset = unset.iter().filter_map(|name| permission(name));
    let may_unset = unset.all(|needed| has(needed, from));
    let may_move = to.project == from.project || from.share.is_none() || has("allow_createShare", to);
    match may_unset && may_move {
        true => Ok(()),
        false => Err(Fault::denied("you are not authorized to do that")),
    }
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let place = place(&asked)?;
    find(&rest, &asked, place.clone()).await?;
    if place.share.is_none()
        && !asked.is_confirmed()
        && !items(&rest, &asked, Shares::of_project(&place)).await?.is_empty()
    {
        return Err(Fault::confirm());
    }
    match rest.try_call(&asked, asked.request()?).await {
        // It is there and may not go.
        Err(e) if e.kind == ErrorKind::Busy => Err(Fault::denied(e.message)),
        Err(e) => Err(e.into()),
        Ok(_) => nothing(),
    }
}
