//! `/api/storage/v1/schema`: properties of an administrator's own, which projects and shares then have as `custom:NAME`.

use super::unexpected;
use crate::endpoint::{Endpoint, handles, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::declared::schema;
use api::{CustomProperty, Request, Schema};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    handles(&schema::SHOW, run!(list)),
    shows(&schema::GET_PROPERTY, run!(one)),
    handles(&schema::CREATE, run!(create)),
    handles(&schema::CHANGE, run!(change)),
    handles(&schema::DESTROY, run!(destroy)),
];

async fn all(rest: &Rest, asked: &Asked) -> Result<Vec<CustomProperty>, Fault> {
    match rest.call(asked, Request::Schema(Schema::Show)).await? {
        api::Reply::Schema(all) => Ok(all),
        _ => Err(unexpected()),
    }
}

async fn the(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let found = all(rest, asked).await?.into_iter().find(|p| p.name == name);
    let found =
        found.ok_or_else(|| Fault::not_found(format!("there is no property '{name}' in the schema")))?;
    Ok(json!({ "property": asked.told(&schema::PROPERTY, &found) }).into())
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let all: Vec<Value> =
        all(&rest, &asked).await?.iter().map(|p| asked.told(&schema::PROPERTY, p)).collect();
    Ok(json!({ "properties": all }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    the(&rest, &asked, asked.param("property")).await
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    the(&rest, &asked, asked.args.text("property").unwrap_or_default()).await
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    one(rest, asked).await
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    nothing()
}
