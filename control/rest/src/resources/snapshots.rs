//! `/api/storage/v1/.../snapshots`, of projects, file systems and LUNs.

use super::shares::{checked, envelope, find, items, kind, place};
use super::unexpected;
use crate::endpoint::{Endpoint, handles, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::declared::shares::path;
use api::declared::snapshots::{self, DEPENDENT, SNAPSHOT};
use api::shares::{Dependent, ItemKind, Place, Shares};
use api::{ErrorKind, Request, ShareDeed, ShareSnapshot};
use serde_json::{Value, json};
use std::sync::Arc;

macro_rules! endpoints {
    ($id:ident) => {
        &[
            handles(&snapshots::$id.list, run!(list)),
            shows(&snapshots::$id.one, run!(one)),
            handles(&snapshots::$id.take, run!(take)),
            handles(&snapshots::$id.rename, run!(rename)),
            handles(&snapshots::$id.destroy, run!(destroy)),
            handles(&snapshots::$id.dependents, run!(dependents)),
        ]
    };
}

pub(crate) static OF_PROJECTS: &[Endpoint] = endpoints!(OF_PROJECT);
pub(crate) static OF_FILESYSTEMS: &[Endpoint] = endpoints!(OF_FILESYSTEM);
pub(crate) static OF_LUNS: &[Endpoint] = endpoints!(OF_LUN);

pub(crate) static OF_SHARES: &[Endpoint] = &[
    shows(&snapshots::LIST_ALL, run!(list_all)),
    handles(&snapshots::FILESYSTEM.clone, run!(clone)),
    handles(&snapshots::FILESYSTEM.roll_back, run!(roll_back)),
    handles(&snapshots::LUN.clone, run!(clone)),
    handles(&snapshots::LUN.roll_back, run!(roll_back)),
];

fn snapshot_name(text: &str) -> Result<String, Fault> {
    match !text.is_empty() && !text.contains(['/', '@', '#', '%', ',']) {
        true => Ok(text.into()),
        false => Err(Fault::invalid("that is no name of a snapshot")),
    }
}

async fn all(rest: &Rest, asked: &Asked, place: Place) -> Result<Vec<ShareSnapshot>, Fault> {
    find(rest, asked, place.clone()).await?;
    match rest.call(asked, Request::Shares(Shares::Snapshots { place })).await? {
        api::Reply::ShareSnapshots(found) => Ok(found),
        _ => Err(unexpected()),
    }
}

async fn the(rest: &Rest, asked: &Asked, place: &Place, name: &str) -> Result<ShareSnapshot, Fault> {
    let found = all(rest, asked, place.clone()).await?.into_iter().find(|s| s.name == name);
    found.ok_or_else(|| Fault::not_found(format!("there is no snapshot '{place}@{name}'")))
}

fn shown(asked: &Asked, kind: ItemKind, snapshot: &ShareSnapshot) -> Value {
    let name = api::http::encode(&snapshot.name);
    let mut told = (SNAPSHOT.tell)(snapshot);
    told.insert("href".into(), format!("{}/snapshots/{name}", path(&snapshot.place, kind)).into());
    asked.in_version(told.into())
}

/// What is asked of one snapshot that is there.
async fn deed(rest: &Rest, asked: &Asked, request: Request) -> Result<(), Fault> {
    match rest.try_call(asked, request).await {
        // It is there, and something is in the way.
        Err(e) if e.kind == ErrorKind::Busy => Err(Fault::denied(e.message)),
        Err(e) => Err(e.into()),
        Ok(_) => Ok(()),
    }
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = all(&rest, &asked, place(&asked)?).await?;
    let found: Vec<Value> = found.iter().map(|s| shown(&asked, kind(&asked), s)).collect();
    Ok(json!({ "snapshots": found }).into())
}

/// Of every project and of every share in it.
async fn list_all(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let projects = items(&rest, &asked, Shares::Projects { pool: None }).await?;
    let in_them = items(&rest, &asked, Shares::Shares { pool: None, project: None, kind: None }).await?;
    let mut all = Vec::new();
    for item in projects.into_iter().chain(in_them) {
        let request = Request::Shares(Shares::Snapshots { place: item.place });
        match rest.try_call(&asked, request).await {
            Ok(api::Reply::ShareSnapshots(found)) => {
                all.extend(found.iter().map(|s| shown(&asked, item.kind, s)));
            }
            Ok(_) => return Err(unexpected()),
            // It went while the others were listed.
            Err(e) if e.kind == ErrorKind::NotFound => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(json!({ "snapshots": all }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = the(&rest, &asked, &place(&asked)?, asked.param("snapshot")).await?;
    Ok(json!({ "snapshot": shown(&asked, kind(&asked), &found) }).into())
}

async fn take(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = snapshot_name(asked.args.text("name").unwrap_or_default())?;
    let place = place(&asked)?;
    find(&rest, &asked, place.clone()).await?;
    deed(&rest, &asked, asked.request()?).await?;
    let taken = the(&rest, &asked, &place, &name).await?;
    Ok(json!({ "snapshot": shown(&asked, kind(&asked), &taken) }).into())
}

async fn rename(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (place, old) = (place(&asked)?, asked.param("snapshot").to_string());
    let new = snapshot_name(asked.args.text("name").unwrap_or_default())?;
    the(&rest, &asked, &place, &old).await?;
    if new != old {
        deed(&rest, &asked, asked.request()?).await?;
    }
    let renamed = the(&rest, &asked, &place, &new).await?;
    Ok(json!({ "snapshot": shown(&asked, kind(&asked), &renamed) }).into())
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("snapshot").to_string();
    let place = place(&asked)?;
    the(&rest, &asked, &place, &name).await?;
    // Clones that were released go with it, if the user may destroy them as well.
    for clone in clones(&rest, &asked, place.clone(), name).await? {
        let mut on = vec![("pool", place.pool.as_str()), ("project", clone.project.as_str())];
        on.extend(Some(clone.share.as_str()).filter(|share| !share.is_empty()).map(|share| ("share", share)));
        if !rest.has(&asked.who, "nas", "allow_destroy", &on) {
            return Err(Fault::denied("it was cloned, and you are not authorized to destroy the clone"));
        }
    }
    deed(&rest, &asked, asked.request()?).await?;
    nothing()
}

async fn clones(rest: &Rest, asked: &Asked, place: Place, name: String) -> Result<Vec<Dependent>, Fault> {
    match rest.call(asked, Request::Shares(Shares::Dependents { place, name })).await? {
        api::Reply::Dependents(found) => Ok(found),
        _ => Err(unexpected()),
    }
}

async fn dependents(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (place, name) = (place(&asked)?, asked.param("snapshot").to_string());
    the(&rest, &asked, &place, &name).await?;
    let found = clones(&rest, &asked, place.clone(), name).await?;
    let shown = |clone: &Dependent| {
        let at = Place::project(&place.pool, &clone.project).share(&clone.share);
        let mut told = (DEPENDENT.tell)(clone);
        // What is cloned is a share, and of the kind of its origin; only a project has clones of both.
        let kind = if kind(&asked) == ItemKind::Lun { ItemKind::Lun } else { ItemKind::Filesystem };
        told.insert("href".into(), path(&at, kind).into());
        asked.in_version(told.into())
    };
    let found: Vec<Value> = found.iter().map(shown).collect();
    Ok(json!({ "dependents": found }).into())
}

async fn clone(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let request = asked.request()?;
    let Request::Shares(Shares::Snapshot {
        place: from,
        name,
        deed: ShareDeed::Clone { project, share, .. },
    }) = &request
    else {
        return Err(unexpected());
    };
    the(&rest, &asked, &checked(from.clone())?, name).await?;
    let to = checked(from.moved(Some(share), project.as_deref()))?;
    let on = [("pool", to.pool.as_str()), ("project", to.project.as_str()), ("share", share)];
    if !rest.has(&asked.who, "nas", "allow_clone", &on) {
        return Err(Fault::denied("you are not authorized to do that"));
    }
    deed(&rest, &asked, request).await?;
    let made = find(&rest, &asked, to).await?;
    envelope(&asked, &made)
}

async fn roll_back(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (place, name) = (place(&asked)?, asked.param("snapshot").to_string());
    let found = all(&rest, &asked, place.clone()).await?;
    let at = found.iter().position(|s| s.name == name);
    let at = at.ok_or_else(|| Fault::not_found(format!("there is no snapshot '{place}@{name}'")))?;
    if at + 1 < found.len() && !asked.is_confirmed() {
        return Err(Fault::confirm());
    }
    deed(&rest, &asked, asked.request()?).await?;
    nothing()
}
