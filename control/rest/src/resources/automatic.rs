//! `/api/storage/v1/.../automatic`: when snapshots are taken by themselves.

use super::shares::{find, folder, place, right};
use super::unexpected;
use crate::endpoint::{Endpoint, Reply, delete, get, post, put, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::declared::shares::{AUTOMATIC, AUTOMATIC_CHANGES, NEW_AUTOMATIC, automatic_words};
use api::http::Need;
use api::shares::Shares;
use api::{Automatic, AutomaticDeed, Request};
use serde_json::{Value, json};
use std::sync::Arc;

const ALL: Reply = Reply::Several("automatics", &AUTOMATIC.shape);
const ONE: Reply = Reply::One("automatic", &AUTOMATIC.shape);
const SCHEDULE: Need = right("allow_scheduleSnap");

macro_rules! endpoints {
    ($of:literal, $path:literal) => {
        [
            get(
                concat!($path, "/automatic"),
                concat!("List the snapshot schedules of a ", $of),
                ALL,
                run!(list),
            ),
            get(
                concat!($path, "/automatic/{automatic}"),
                concat!("A snapshot schedule of a ", $of),
                ONE,
                run!(one),
            ),
            post(
                concat!($path, "/automatic"),
                concat!("Let snapshots of a ", $of, " be taken by themselves"),
                ONE,
                run!(create),
            )
            .takes(&NEW_AUTOMATIC)
            .needs(SCHEDULE),
            put(
                concat!($path, "/automatic/{automatic}"),
                concat!("Change a snapshot schedule of a ", $of),
                ONE,
                run!(change),
            )
            .takes(&AUTOMATIC_CHANGES)
            .needs(SCHEDULE),
            delete(
                concat!($path, "/automatic/{automatic}"),
                concat!("End a snapshot schedule of a ", $of, "; what it took stays"),
                run!(destroy),
            )
            .needs(SCHEDULE),
        ]
    };
}

pub(crate) static OF_PROJECTS: &[Endpoint] =
    &endpoints!("project and all its shares", "/api/storage/v1/pools/{pool}/projects/{project}");
pub(crate) static OF_FILESYSTEMS: &[Endpoint] =
    &endpoints!("file system", "/api/storage/v1/pools/{pool}/projects/{project}/filesystems/{filesystem}");
pub(crate) static OF_LUNS: &[Endpoint] =
    &endpoints!("LUN", "/api/storage/v1/pools/{pool}/projects/{project}/luns/{lun}");

async fn all(rest: &Rest, asked: &Asked) -> Result<Vec<Automatic>, Fault> {
    let place = place(asked)?;
    find(rest, asked, place.clone()).await?;
    match rest.call(asked, Request::Shares(Shares::Automatics { place })).await? {
        api::Reply::Automatics(all) => Ok(all),
        _ => Err(unexpected()),
    }
}

fn shown(asked: &Asked, automatic: &Automatic) -> Result<Value, Fault> {
    let place = place(asked)?;
    let name = automatic.name();
    let mut path: Vec<&str> = vec!["pools", &place.pool, "projects", &place.project];
    if let Some(share) = &place.share {
        path.extend([folder(asked), share]);
    }
    path.extend(["automatic", &name]);
    let mut told = (AUTOMATIC.tell)(automatic);
    told.insert("href".into(), asked.href(&path).into());
    Ok(told.into())
}

async fn the(rest: &Rest, asked: &Asked, name: &str) -> Result<Automatic, Fault> {
    let found = all(rest, asked).await?.into_iter().find(|automatic| automatic.name() == name);
    found.ok_or_else(|| Fault::not_found(format!("there is no schedule '{name}'")))
}

async fn told(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let found = the(rest, asked, name).await?;
    Ok(json!({ "automatic": shown(asked, &found)? }).into())
}

fn settings(asked: &Asked) -> Vec<(String, String)> {
    automatic_words(&asked.args).collect()
}

async fn deed(rest: &Rest, asked: &Asked, deed: AutomaticDeed) -> Result<api::Reply, Fault> {
    rest.call(asked, Request::Shares(Shares::Automatic { place: place(asked)?, deed })).await
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let all = all(&rest, &asked).await?;
    let all = all.iter().map(|automatic| shown(&asked, automatic)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({ "automatics": all }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    told(&rest, &asked, asked.param("automatic")).await
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    find(&rest, &asked, place(&asked)?).await?;
    match deed(&rest, &asked, AutomaticDeed::Create { set: settings(&asked) }).await? {
        api::Reply::Named { name } => told(&rest, &asked, &name).await,
        _ => Err(unexpected()),
    }
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = the(&rest, &asked, asked.param("automatic")).await?;
    deed(&rest, &asked, AutomaticDeed::Change { id: found.id, set: settings(&asked) }).await?;
    told(&rest, &asked, &found.name()).await
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = the(&rest, &asked, asked.param("automatic")).await?;
    deed(&rest, &asked, AutomaticDeed::Destroy { id: found.id }).await?;
    nothing()
}
