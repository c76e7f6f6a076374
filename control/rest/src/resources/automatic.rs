//! `/api/storage/v1/.../automatic`: when snapshots are taken by themselves.

use super::share_fields::{HREF, NAME};
use super::shares::{find, folder, place, right};
use super::unexpected;
use crate::endpoint::{Endpoint, Reply, delete, get, post, put, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::http::Need;
use api::http::date;
use api::http::{Field, Kind, Shape, may, must};
use api::shares::Shares;
use api::{Automatic, AutomaticDeed, Request};
use serde_json::{Value, json};
use std::sync::Arc;

const FREQUENCIES: &str = "halfhour, hour, day, week or month";
const DAY: Field =
    may("day", Kind::Word, "Of a week its name, of a month its number; the last of one that is shorter");
const HOUR: Field = may("hour", Kind::Word, "0 to 23, UTC; of a day, a week or a month");
const MINUTE: Field = may("minute", Kind::Word, "0 to 59");
const KEEP: Field = may("keep", Kind::Word, "So many of its snapshots stay; 0: all");

const AN_AUTOMATIC: Shape = Shape::new(
    "automatic",
    &[
        HREF,
        NAME,
        must("frequency", Kind::Text, FREQUENCIES),
        DAY,
        HOUR,
        MINUTE,
        KEEP,
        may("last", Kind::Text, "For which moment it last took one"),
        may("problem", Kind::Text, "Why the one that is due has not been taken"),
    ],
);
const NEW_AUTOMATIC: Shape =
    Shape::new("new_automatic", &[must("frequency", Kind::Text, FREQUENCIES), DAY, HOUR, MINUTE, KEEP]);
const AUTOMATIC_CHANGES: Shape =
    Shape::new("automatic_changes", &[may("frequency", Kind::Text, FREQUENCIES), DAY, HOUR, MINUTE, KEEP]);

const ALL: Reply = Reply::Several("automatics", &AN_AUTOMATIC);
const ONE: Reply = Reply::One("automatic", &AN_AUTOMATIC);
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
    let when = &automatic.when;
    let mut value = json!({
        "href": asked.href(&path),
        "name": name,
        "frequency": when.frequency.word(),
        "minute": when.minute.to_string(),
        "keep": automatic.keep.to_string(),
    });
    let more = [
        ("day", when.day_word()),
        ("hour", when.hour().map(|hour| hour.to_string())),
        ("last", automatic.last.map(date)),
        ("problem", automatic.problem.clone()),
    ];
    for (name, text) in more.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        value[name] = text.into();
    }
    Ok(value)
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
    asked.args.names().filter_map(|name| Some((name.to_string(), asked.args.word(name)?))).collect()
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
