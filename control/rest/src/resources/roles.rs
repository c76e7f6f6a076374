//! `/api/role`: roles and their authorizations.

use super::authorizations::{AUTH, NEW, read, show};
use crate::endpoint::{Endpoint, Reply, delete, get, post, put, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use access::{Holder, Role};
use api::http::Need;
use api::http::{Kind, Shape, may, must};
use serde_json::{Value, json};
use std::sync::Arc;

const CHANGE: Need = Need::Right("role", "allow_changeAuths");

const ROLE: Shape = Shape::new(
    "role",
    &[
        must("href", Kind::Text, "Its path"),
        must("name", Kind::Text, "Its name"),
        must("description", Kind::Text, "For whom it is"),
        must("authorizations", Kind::List(&AUTH), "What it gives"),
    ],
);

const NEW_ROLE: Shape = Shape::new(
    "new_role",
    &[
        must("name", Kind::Text, "Letters, digits, '-', '_' and '.', a letter first"),
        must("description", Kind::Text, "For whom it is"),
        may("clone", Kind::Text, "A role whose authorizations it gets"),
    ],
);

const CHANGES: Shape = Shape::new("role_changes", &[must("description", Kind::Text, "For whom it is")]);

const ONE: Reply = Reply::One("role", &ROLE);
const PATH: &str = "/api/role/v1/roles/{role}";

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/role/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get("/api/role/v1/roles", "List the roles", Reply::Several("roles", &ROLE), run!(list)),
    get(PATH, "A role", ONE, run!(one)),
    post("/api/role/v1/roles", "Make a role", ONE, run!(create)).takes(&NEW_ROLE).needs(CHANGE),
    put(PATH, "Change a role", ONE, run!(change)).takes(&CHANGES).needs(CHANGE),
    put("/api/role/v1/roles/{role}/revoke", "Take a role from all its users", ONE, run!(revoke))
        .needs(CHANGE),
    delete(PATH, "Remove a role", run!(remove)).needs(CHANGE),
    get(
        "/api/role/v1/roles/{role}/authorizations",
        "List what a role gives",
        Reply::Several("authorizations", &AUTH),
        run!(authorizations),
    ),
    get(
        "/api/role/v1/roles/{role}/authorizations/{auth}",
        "An authorization of a role",
        Reply::One("auth", &AUTH),
        run!(authorization),
    ),
    post(
        "/api/role/v1/roles/{role}/authorizations",
        "Give a role an authorization, which whoever gives it must have",
        Reply::One("auth", &AUTH),
        run!(authorize),
    )
    .takes(&NEW)
    .needs(CHANGE),
    delete(
        "/api/role/v1/roles/{role}/authorizations/{auth}",
        "Take an authorization from a role",
        run!(withdraw),
    )
    .needs(CHANGE),
];

fn role(asked: &Asked, role: &Role) -> Value {
    let href = |auth: &str| asked.href(&["roles", &role.name, "authorizations", auth]);
    json!({
        "href": asked.href(&["roles", &role.name]),
        "name": role.name,
        "description": role.description,
        "authorizations": role.authorizations.iter().map(|a| show(a, href(&a.name()))).collect::<Vec<_>>(),
    })
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let roles: Vec<Value> = rest.access().state().roles.values().map(|r| role(&asked, r)).collect();
    Ok(json!({ "roles": roles }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    shown(&rest, &asked, asked.param("role"))
}

fn shown(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let access = rest.access();
    Ok(json!({ "role": role(asked, access.state().role(name)?) }).into())
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, args) = (asked.who.user.clone(), asked.args.clone());
    rest.with_access(move |access| {
        let (name, description) = (args.text("name").unwrap_or(""), args.text("description").unwrap_or(""));
        Ok(access.change(|s| s.create_role(&by, name, description, args.text("clone")).map(drop))?)
    })
    .await?;
    shown(&rest, &asked, asked.args.text("name").unwrap_or_default())
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (name, description) =
        (asked.param("role").to_string(), asked.args.text("description").map(String::from));
    rest.with_access(move |access| {
        Ok(access.change(|s| s.describe_role(&name, description.as_deref().unwrap_or_default()))?)
    })
    .await?;
    one(rest, asked).await
}

async fn revoke(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, name) = (asked.who.user.clone(), asked.param("role").to_string());
    rest.with_access(move |access| Ok(access.change(|s| s.revoke_role(&by, &name))?)).await?;
    one(rest, asked).await
}

async fn remove(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, name) = (asked.who.user.clone(), asked.param("role").to_string());
    rest.with_access(move |access| Ok(access.change(|s| s.remove_role(&by, &name))?)).await?;
    nothing()
}

async fn authorizations(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let access = rest.access();
    let mut shown = role(&asked, access.state().role(asked.param("role"))?);
    Ok(json!({ "authorizations": shown["authorizations"].take() }).into())
}

async fn authorization(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let access = rest.access();
    let role = access.state().role(asked.param("role"))?;
    let name = asked.param("auth");
    let auth = role.authorizations.iter().find(|a| a.name() == name);
    let auth = auth.ok_or_else(|| Fault::not_found(format!("there is no authorization '{name}'")))?;
    let href = asked.href(&["roles", &role.name, "authorizations", name]);
    Ok(json!({ "auth": show(auth, href) }).into())
}

async fn authorize(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let new = read(&asked.args)?;
    let (by, name) = (asked.who.user.clone(), asked.param("role").to_string());
    let made =
        rest.with_access(move |access| Ok(access.change(|s| s.authorize(&by, Holder::Role(&name), new))?));
    let made = made.await?;
    let href = asked.href(&["roles", asked.param("role"), "authorizations", &made.name()]);
    Ok(json!({ "auth": show(&made, href) }).into())
}

async fn withdraw(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, name) = (asked.who.user.clone(), asked.param("role").to_string());
    let auth = asked.param("auth").to_string();
    rest.with_access(move |access| Ok(access.change(|s| s.withdraw(&by, Holder::Role(&name), &auth))?))
        .await?;
    nothing()
}
