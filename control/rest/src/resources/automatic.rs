//! `/api/storage/v1/.../automatic`: when snapshots are taken by themselves.

use super::shares::{find, kind, place};
use super::unexpected;
use crate::endpoint::{Endpoint, handles, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::declared::automatic::{self, AUTOMATIC};
use api::declared::shares::path;
use api::shares::Shares;
use api::{Automatic, Request};
use serde_json::{Value, json};
use std::sync::Arc;

macro_rules! endpoints {
    ($id:ident) => {
        &[
            handles(&automatic::$id.list, run!(list)),
            shows(&automatic::$id.one, run!(one)),
            handles(&automatic::$id.create, run!(create)),
            handles(&automatic::$id.change, run!(change)),
            handles(&automatic::$id.destroy, run!(destroy)),
        ]
    };
}

pub(crate) static OF_PROJECTS: &[Endpoint] = endpoints!(OF_PROJECT);
pub(crate) static OF_FILESYSTEMS: &[Endpoint] = endpoints!(OF_FILESYSTEM);
pub(crate) static OF_LUNS: &[Endpoint] = endpoints!(OF_LUN);

async fn all(rest: &Rest, asked: &Asked) -> Result<Vec<Automatic>, Fault> {
    let place = place(asked)?;
    find(rest, asked, place.clone()).await?;
    match rest.call(asked, Request::Shares(Shares::Automatics { place })).await? {
        api::Reply::Automatics(all) => Ok(all),
        _ => Err(unexpected()),
    }
}

fn shown(asked: &Asked, automatic: &Automatic) -> Result<Value, Fault> {
    let above = path(&place(asked)?, kind(asked));
    let mut told = (AUTOMATIC.tell)(automatic);
    told.insert("href".into(), format!("{above}/automatic/{}", automatic.name()).into());
    Ok(asked.in_version(told.into()))
}

async fn the(rest: &Rest, asked: &Asked, name: &str) -> Result<Automatic, Fault> {
    let found = all(rest, asked).await?.into_iter().find(|automatic| automatic.name() == name);
    found.ok_or_else(|| Fault::not_found(format!("there is no schedule '{name}'")))
}

async fn told(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let found = the(rest, asked, name).await?;
    Ok(json!({ "automatic": shown(asked, &found)? }).into())
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
    match rest.call(&asked, asked.request()?).await? {
        api::Reply::Named { name } => told(&rest, &asked, &name).await,
        _ => Err(unexpected()),
    }
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let found = the(&rest, &asked, asked.param("automatic")).await?;
    rest.call(&asked, asked.request()?).await?;
    told(&rest, &asked, &found.name()).await
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    the(&rest, &asked, asked.param("automatic")).await?;
    rest.call(&asked, asked.request()?).await?;
    nothing()
}
