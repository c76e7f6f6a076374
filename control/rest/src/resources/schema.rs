//! `/api/storage/v1/schema`: properties of an administrator's own, which projects and shares then have as `custom:NAME`.

use super::share_fields::HREF;
use super::unexpected;
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use crate::shape::{Field, Kind, Shape, may, must};
use crate::table::{Endpoint, Need, Reply, delete, get, post, put, run};
use api::{CustomProperty, CustomType, Request, Schema};
use serde_json::{Value, json};
use std::sync::Arc;

const TYPES: &str = "String, Integer, PositiveInteger, Boolean, EmailAddress or Host";
const NAME: Field = must("property", Kind::Text, "Its name, without the prefix custom:");

const A_PROPERTY: Shape = Shape::new(
    "schema_property",
    &[HREF, NAME, must("type", Kind::Text, TYPES), must("description", Kind::Text, "What it is for")],
);
const NEW_PROPERTY: Shape = Shape::new(
    "new_schema_property",
    &[NAME, may("type", Kind::Text, TYPES), may("description", Kind::Text, "What it is for")],
);
const CHANGES: Shape = Shape::new(
    "schema_property_changes",
    &[
        may("type", Kind::Text, "Another type; values that are there are not looked at"),
        may("description", Kind::Text, "What it is for"),
    ],
);

const SCHEMA: &str = "/api/storage/v1/schema";
const PROPERTY: &str = "/api/storage/v1/schema/{property}";
const ONE: Reply = Reply::One("property", &A_PROPERTY);
const MODIFY: Need = Need::Right("schema", "allow_modify");

pub(super) static ENDPOINTS: &[Endpoint] = &[
    get(
        SCHEMA,
        "List the custom properties that projects and shares can have",
        Reply::Several("properties", &A_PROPERTY),
        run!(list),
    ),
    get(PROPERTY, "A custom property", ONE, run!(one)),
    post(SCHEMA, "Make a custom property", ONE, run!(create)).takes(&NEW_PROPERTY).needs(MODIFY),
    put(PROPERTY, "Change a custom property", ONE, run!(change)).takes(&CHANGES).needs(MODIFY),
    delete(
        PROPERTY,
        "Take a custom property out of the schema; values stay, and are not shown",
        run!(destroy),
    )
    .needs(MODIFY),
];

async fn all(rest: &Rest, asked: &Asked) -> Result<Vec<CustomProperty>, Fault> {
    match rest.call(asked, Request::Schema(Schema::Show)).await? {
        api::Reply::Schema(all) => Ok(all),
        _ => Err(unexpected()),
    }
}

fn shown(asked: &Asked, property: &CustomProperty) -> Value {
    json!({
        "href": asked.href(&["schema", &property.name]),
        "property": property.name,
        "type": property.kind.word(),
        "description": property.description,
    })
}

async fn the(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let found = all(rest, asked).await?.into_iter().find(|p| p.name == name);
    let found =
        found.ok_or_else(|| Fault::not_found(format!("there is no property '{name}' in the schema")))?;
    Ok(json!({ "property": shown(asked, &found) }).into())
}

fn kind(asked: &Asked) -> Result<Option<CustomType>, Fault> {
    let Some(word) = asked.args.text("type") else { return Ok(None) };
    CustomType::parse(word).map(Some).ok_or_else(|| Fault::invalid(format!("'{word}' is no type: {TYPES}")))
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let all: Vec<Value> = all(&rest, &asked).await?.iter().map(|p| shown(&asked, p)).collect();
    Ok(json!({ "properties": all }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    the(&rest, &asked, asked.param("property")).await
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.args.text("property").unwrap_or_default().to_string();
    let property = CustomProperty {
        name: name.clone(),
        kind: kind(&asked)?.unwrap_or_default(),
        description: asked.args.text("description").unwrap_or_default().into(),
    };
    rest.call(&asked, Request::Schema(Schema::Create(property))).await?;
    the(&rest, &asked, &name).await
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("property").to_string();
    let description = asked.args.text("description").map(String::from);
    let what = Schema::Change { name: name.clone(), kind: kind(&asked)?, description };
    rest.call(&asked, Request::Schema(what)).await?;
    the(&rest, &asked, &name).await
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("property").to_string();
    rest.call(&asked, Request::Schema(Schema::Destroy { name })).await?;
    nothing()
}
