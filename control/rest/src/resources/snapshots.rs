//! `/api/storage/v1/.../snapshots`, of projects, file systems and LUNs.

use super::share_fields::{HREF, NAME, PROJECT};
use super::shares::{
    FILESYSTEM_CLONE, LUN_CLONE, ONE_FILESYSTEM, ONE_LUN, checked, envelope, find, place, right,
};
use super::{shares, unexpected};
use crate::endpoint::{Endpoint, Reply, delete, get, post, put, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::declared::shares::SNAPSHOT;
use api::http::Need;
use api::http::{Kind, Shape, may, must};
use api::shares::{Place, Shares};
use api::{ErrorKind, Request, ShareDeed, ShareSnapshot};
use serde_json::{Value, json};
use std::sync::Arc;

const NEW_SNAPSHOT: Shape = Shape::new("new_snapshot", &[NAME]);
const SNAPSHOT_CHANGES: Shape =
    Shape::new("snapshot_changes", &[must("name", Kind::Text, "Another name").with("allow_rename")]);
const ROLLBACK: Shape = Shape::new(
    "snapshot_rollback",
    &[may("force", Kind::Flag, "Clients that use it are ended; else it is refused while there are any")],
);
const A_DEPENDENT: Shape = Shape::new(
    "dependent",
    &[HREF, PROJECT, must("share", Kind::Text, "The share that was cloned from the snapshot")],
);

const ALL: Reply = Reply::Several("snapshots", &SNAPSHOT.shape);
const ONE: Reply = Reply::One("snapshot", &SNAPSHOT.shape);
const DEPENDENTS: Reply = Reply::Several("dependents", &A_DEPENDENT);
const TAKE: Need = right("allow_takeSnap");
const RENAME: Need = right("allow_rename");
const DESTROY: Need = right("allow_destroy");
const CLONE: Need = right("allow_clone");
const BACK: Need = right("allow_rollback");

macro_rules! path {
    (project $more:literal) => {
        concat!("/api/storage/v1/pools/{pool}/projects/{project}/snapshots", $more)
    };
    (filesystem $more:literal) => {
        concat!("/api/storage/v1/pools/{pool}/projects/{project}/filesystems/{filesystem}/snapshots", $more)
    };
    (lun $more:literal) => {
        concat!("/api/storage/v1/pools/{pool}/projects/{project}/luns/{lun}/snapshots", $more)
    };
}

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get("/api/storage/v1/snapshots", "List the snapshots of all pools", ALL, run!(list_all)),
    get(path!(project ""), "List the snapshots of a project", ALL, run!(list)),
    get(path!(project "/{snapshot}"), "A snapshot of a project", ONE, run!(one)),
    post(path!(project ""), "Take a snapshot of a project and all its shares", ONE, run!(take))
        .takes(&NEW_SNAPSHOT)
        .needs(TAKE),
    put(path!(project "/{snapshot}"), "Rename a snapshot of a project", ONE, run!(rename))
        .takes(&SNAPSHOT_CHANGES)
        .needs(RENAME),
    delete(path!(project "/{snapshot}"), "Destroy a snapshot of a project", run!(destroy)).needs(DESTROY),
    get(
        path!(project "/{snapshot}/dependents"),
        "What was cloned from a snapshot of a project",
        DEPENDENTS,
        run!(dependents),
    ),
    get(path!(filesystem ""), "List the snapshots of a file system", ALL, run!(list)),
    get(path!(filesystem "/{snapshot}"), "A snapshot of a file system", ONE, run!(one)),
    post(path!(filesystem ""), "Take a snapshot of a file system", ONE, run!(take))
        .takes(&NEW_SNAPSHOT)
        .needs(TAKE),
    put(path!(filesystem "/{snapshot}"), "Rename a snapshot of a file system", ONE, run!(rename))
        .takes(&SNAPSHOT_CHANGES)
        .needs(RENAME),
    delete(path!(filesystem "/{snapshot}"), "Destroy a snapshot of a file system", run!(destroy))
        .needs(DESTROY),
    get(
        path!(filesystem "/{snapshot}/dependents"),
        "What was cloned from a snapshot of a file system",
        DEPENDENTS,
        run!(dependents),
    ),
    put(
        path!(filesystem "/{snapshot}/clone"),
        "Make a file system that begins as a snapshot",
        ONE_FILESYSTEM,
        run!(clone),
    )
    .takes(&FILESYSTEM_CLONE)
    .needs(CLONE)
    .answers(201),
    put(
        path!(filesystem "/{snapshot}/rollback"),
        "Take a file system back to a snapshot; ?confirm=true while there are newer ones, which are destroyed",
        Reply::Nothing,
        run!(roll_back),
    )
    .takes(&ROLLBACK)
    .needs(BACK),
    get(path!(lun ""), "List the snapshots of a LUN", ALL, run!(list)),
    get(path!(lun "/{snapshot}"), "A snapshot of a LUN", ONE, run!(one)),
    post(path!(lun ""), "Take a snapshot of a LUN", ONE, run!(take)).takes(&NEW_SNAPSHOT).needs(TAKE),
    put(path!(lun "/{snapshot}"), "Rename a snapshot of a LUN", ONE, run!(rename))
        .takes(&SNAPSHOT_CHANGES)
        .needs(RENAME),
    delete(path!(lun "/{snapshot}"), "Destroy a snapshot of a LUN", run!(destroy)).needs(DESTROY),
    get(
        path!(lun "/{snapshot}/dependents"),
        "What was cloned from a snapshot of a LUN",
        DEPENDENTS,
        run!(dependents),
    ),
    put(path!(lun "/{snapshot}/clone"), "Make a LUN that begins as a snapshot", ONE_LUN, run!(clone))
        .takes(&LUN_CLONE)
        .needs(CLONE)
        .answers(201),
    put(
        path!(lun "/{snapshot}/rollback"),
        "Take a LUN back to a snapshot; ?confirm=true while there are newer ones, which are destroyed",
        Reply::Nothing,
        run!(roll_back),
    )
    .takes(&ROLLBACK)
    .needs(BACK),
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

fn shown(asked: &Asked, folder: &str, snapshot: &ShareSnapshot) -> Value {
    let ShareSnapshot { place, name, .. } = snapshot;
    let mut path: Vec<&str> = vec!["pools", &place.pool, "projects", &place.project];
    if let Some(share) = &place.share {
        path.extend([folder, share]);
    }
    path.extend(["snapshots", name]);
    let mut told = (SNAPSHOT.tell)(snapshot);
    told.insert("href".into(), asked.href(&path).into());
    told.into()
}

/// What is asked of one snapshot that is there.
async fn deed(rest: &Rest, asked: &Asked, name: &str, deed: ShareDeed) -> Result<(), Fault> {
    let what = Shares::Snapshot { place: place(asked)?, name: name.into(), deed };
    match rest.try_call(asked, Request::Shares(what)).await {
        // It is there, and something is in the way.
        Err(e) if e.kind == ErrorKind::Busy => Err(Fault::denied(e.message)),
        Err(e) => Err(e.into()),
        Ok(_) => Ok(()),
    }
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = all(&rest, &asked, place(&asked)?).await?;
    let found: Vec<Value> = found.iter().map(|s| shown(&asked, shares::folder(&asked), s)).collect();
    Ok(json!({ "snapshots": found }).into())
}

/// Of every project and of every share in it.
async fn list_all(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let projects = shares::items(&rest, &asked, Shares::Projects { pool: None }).await?;
    let in_them = shares::items(&rest, &asked, Shares::Shares { pool: None, project: None }).await?;
    let mut all = Vec::new();
    for item in projects.into_iter().chain(in_them) {
        let request = Request::Shares(Shares::Snapshots { place: item.place });
        match rest.try_call(&asked, request).await {
            Ok(api::Reply::ShareSnapshots(found)) => {
                let folder = shares::folder_of(item.kind);
                all.extend(found.iter().map(|s| shown(&asked, folder, s)));
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
    Ok(json!({ "snapshot": shown(&asked, shares::folder(&asked), &found) }).into())
}

async fn take(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = snapshot_name(asked.args.text("name").unwrap_or_default())?;
    let place = place(&asked)?;
    find(&rest, &asked, place.clone()).await?;
    deed(&rest, &asked, &name, ShareDeed::Take).await?;
    let taken = the(&rest, &asked, &place, &name).await?;
    Ok(json!({ "snapshot": shown(&asked, shares::folder(&asked), &taken) }).into())
}

async fn rename(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (place, old) = (place(&asked)?, asked.param("snapshot").to_string());
    let new = snapshot_name(asked.args.text("name").unwrap_or_default())?;
    the(&rest, &asked, &place, &old).await?;
    if new != old {
        deed(&rest, &asked, &old, ShareDeed::Rename { to: new.clone() }).await?;
    }
    let renamed = the(&rest, &asked, &place, &new).await?;
    Ok(json!({ "snapshot": shown(&asked, shares::folder(&asked), &renamed) }).into())
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("snapshot").to_string();
    let place = place(&asked)?;
    the(&rest, &asked, &place, &name).await?;
    // Clones that were released go with it, if the user may destroy them as well.
    for clone in clones(&rest, &asked, place, name.clone()).await? {
        let mut on = vec![("pool", clone.pool.as_str()), ("project", clone.project.as_str())];
        on.extend(clone.share.as_deref().map(|share| ("share", share)));
        if !rest.has(&asked.who, "nas", "allow_destroy", &on) {
            return Err(Fault::denied("it was cloned, and you are not authorized to destroy the clone"));
        }
    }
    deed(&rest, &asked, &name, ShareDeed::Destroy).await?;
    nothing()
}

async fn clones(rest: &Rest, asked: &Asked, place: Place, name: String) -> Result<Vec<Place>, Fault> {
    match rest.call(asked, Request::Shares(Shares::Dependents { place, name })).await? {
        api::Reply::Places(found) => Ok(found),
        _ => Err(unexpected()),
    }
}

async fn dependents(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (place, name) = (place(&asked)?, asked.param("snapshot").to_string());
    the(&rest, &asked, &place, &name).await?;
    let found = clones(&rest, &asked, place, name).await?;
    let shown = |clone: &Place| {
        let share = clone.share.clone().unwrap_or_default();
        let path = ["pools", &clone.pool, "projects", &clone.project, shares::folder(&asked), &share];
        json!({ "href": asked.href(&path), "project": clone.project, "share": share })
    };
    let found: Vec<Value> = found.iter().map(shown).collect();
    Ok(json!({ "dependents": found }).into())
}

async fn clone(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (from, name) = (place(&asked)?, asked.param("snapshot").to_string());
    the(&rest, &asked, &from, &name).await?;
    let project = asked.args.text("project").unwrap_or(&from.project);
    let share = asked.args.text("share").unwrap_or_default();
    let to = checked(Place::project(&from.pool, project).share(share))?;
    let on = [("pool", to.pool.as_str()), ("project", to.project.as_str()), ("share", share)];
    if !rest.has(&asked.who, "nas", "allow_clone", &on) {
        return Err(Fault::denied("you are not authorized to do that"));
    }
    let set = shares::settings(&asked)?;
    deed(&rest, &asked, &name, ShareDeed::Clone { to: to.clone(), set }).await?;
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
    let force = asked.args.flag("force").unwrap_or(false);
    deed(&rest, &asked, &name, ShareDeed::Rollback { newer: true, force }).await?;
    nothing()
}
