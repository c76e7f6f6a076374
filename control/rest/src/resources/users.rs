//! `/api/user`: users, their preferences, tokens, and authorizations of their own.

use super::authorizations::{AUTH, NEW, read, show};
use crate::endpoint::{Endpoint, Reply, delete, get, post, put, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use access::{Holder, Token, User, UserChange};
use api::http::Need;
use api::http::{Kind, Shape, may, must};
use serde_json::{Value, json};
use std::sync::Arc;

/// A hundred years.
const DAYS_MAX: u64 = 36_500;
const PROPERTIES: Need = Need::Right("user", "allow_changeProperties");
const ROLES: Need = Need::Right("user", "allow_changeRoles");

const PREFERENCES: Shape = Shape::new(
    "preferences",
    &[
        must("href", Kind::Text, "Their path"),
        must("session_timeout", Kind::Number, "Minutes until a session that is not used ends"),
    ],
);

const NEW_PREFERENCES: Shape = Shape::new(
    "preferences_changes",
    &[must("session_timeout", Kind::Number, "Minutes until a session that is not used ends, at most a day")],
);

const USER: Shape = Shape::new(
    "user",
    &[
        must("href", Kind::Text, "Its path"),
        must("logname", Kind::Text, "The name to log in by"),
        must("type", Kind::Text, "local"),
        must("uid", Kind::Number, "Its number, never given twice"),
        must("fullname", Kind::Text, "The name of the person"),
        must("locked", Kind::Flag, "It has no password, so nobody logs in by one"),
        must("roles", Kind::Texts, "The roles it has"),
        must("exceptions", Kind::List(&AUTH), "Authorizations of its own"),
        must("preferences", Kind::Object(&PREFERENCES), "How it works"),
    ],
);

const NEW_USER: Shape = Shape::new(
    "new_user",
    &[
        may("type", Kind::Text, "local, the only type there is"),
        must("logname", Kind::Text, "Letters, digits, '-', '_' and '.', a letter first"),
        must("fullname", Kind::Text, "The name of the person"),
        may("initial_password", Kind::Secret, "At least 8 bytes; without one it is locked"),
    ],
);

const CHANGES: Shape = Shape::new(
    "user_changes",
    &[
        may("fullname", Kind::Text, "The name of the person"),
        may("initial_password", Kind::Secret, "At least 8 bytes; ends the user's sessions")
            .with("allow_changePassword"),
        may("roles", Kind::Texts, "In place of those before").with("allow_changeRoles"),
    ],
);

const TOKEN: Shape = Shape::new(
    "token",
    &[
        must("href", Kind::Text, "Its path"),
        must("id", Kind::Number, "Its number"),
        must("name", Kind::Text, "What it is for"),
        must("created", Kind::Number, "Seconds since 1970"),
        may("expires", Kind::Number, "Seconds since 1970; without it, when it is taken back"),
        may("token", Kind::ToldOnce, "The secret itself, only when it is made"),
    ],
);

const NEW_TOKEN: Shape = Shape::new(
    "new_token",
    &[
        must("name", Kind::Text, "What it is for"),
        may("days", Kind::Number, "After which it ends; without, when it is taken back"),
    ],
);

const ONE: Reply = Reply::One("user", &USER);
const PATH: &str = "/api/user/v1/users/{user}";
const PREFERENCES_PATH: &str = "/api/user/v1/users/{user}/preferences";
const TOKENS: &str = "/api/user/v1/users/{user}/preferences/tokens";
const EXCEPTIONS: &str = "/api/user/v1/users/{user}/exceptions";

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/user/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get("/api/user/v1/users", "List the users", Reply::Several("users", &USER), run!(list)),
    get(PATH, "A user", ONE, run!(one)),
    post("/api/user/v1/users", "Make a user", ONE, run!(create)).takes(&NEW_USER).needs(PROPERTIES),
    put(PATH, "Change a user", ONE, run!(change))
        .takes(&CHANGES)
        .needs(Need::RightOrSelf("user", "allow_changeProperties")),
    delete(PATH, "Remove a user", run!(remove)).needs(PROPERTIES),
    get(PREFERENCES_PATH, "A user's preferences", Reply::One("preferences", &PREFERENCES), run!(preferences)),
    put(
        PREFERENCES_PATH,
        "Change a user's preferences",
        Reply::One("preferences", &PREFERENCES),
        run!(set_preferences),
    )
    .takes(&NEW_PREFERENCES)
    .needs(Need::RightOrSelf("user", "allow_changeProperties")),
    get(TOKENS, "List a user's tokens", Reply::Several("tokens", &TOKEN), run!(tokens))
        .needs(Need::RightOrSelf("user", "allow_changeProperties")),
    post(
        TOKENS,
        "Make a token, by which a program is this user",
        Reply::One("token", &TOKEN),
        run!(make_token),
    )
    .takes(&NEW_TOKEN)
    .needs(Need::SelfAlone),
    delete("/api/user/v1/users/{user}/preferences/tokens/{token}", "Take a token back", run!(remove_token))
        .needs(Need::RightOrSelf("user", "allow_changePassword")),
    get(
        EXCEPTIONS,
        "List a user's own authorizations",
        Reply::Several("exceptions", &AUTH),
        run!(exceptions),
    ),
    post(EXCEPTIONS, "Give a user an authorization of its own", Reply::One("auth", &AUTH), run!(authorize))
        .takes(&NEW)
        .needs(ROLES),
    delete(
        "/api/user/v1/users/{user}/exceptions/{auth}",
        "Take an authorization from a user",
        run!(withdraw),
    )
    .needs(ROLES),
];

fn user(asked: &Asked, user: &User) -> Value {
    let href = |auth: &str| asked.href(&["users", &user.logname, "exceptions", auth]);
    json!({
        "href": asked.href(&["users", &user.logname]),
        "logname": user.logname,
        "type": "local",
        "uid": user.uid,
        "fullname": user.fullname,
        "locked": user.password.is_none(),
        "roles": user.roles,
        "exceptions": user.exceptions.iter().map(|a| show(a, href(&a.name()))).collect::<Vec<_>>(),
        "preferences": preferences_of(asked, user),
    })
}

fn preferences_of(asked: &Asked, user: &User) -> Value {
    json!({
        "href": asked.href(&["users", &user.logname, "preferences"]),
        "session_timeout": user.session_timeout,
    })
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let users: Vec<Value> = rest.access().state().users.values().map(|u| user(&asked, u)).collect();
    Ok(json!({ "users": users }).into())
}

fn shown(rest: &Rest, asked: &Asked, name: &str) -> Outcome {
    let access = rest.access();
    Ok(json!({ "user": user(asked, access.state().user(name)?) }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    shown(&rest, &asked, asked.param("user"))
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    if asked.args.text("type").is_some_and(|t| t != "local") {
        return Err(Fault::invalid("users are of type local"));
    }
    let password = match asked.args.secret("initial_password") {
        Some(password) => Some(rest.hash(password.clone()).await?),
        None => None,
    };
    let (by, args) = (asked.who.user.clone(), asked.args.clone());
    rest.with_access(move |access| {
        let (name, fullname) = (args.text("logname").unwrap_or(""), args.text("fullname").unwrap_or(""));
        Ok(access.change(|s| s.create_user_by(&by, name, fullname, password).map(drop))?)
    })
    .await?;
    shown(&rest, &asked, asked.args.text("logname").unwrap_or_default())
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let sets_own = asked.args.secret("initial_password").is_some() && asked.param("user") == asked.who.user;
    if sets_own && asked.who.is_token() {
        return Err(Fault::denied("a token does not change its owner's password: log in with that"));
    }
    // Hashing is only for whom there is.
    rest.access().state().user(asked.param("user"))?;
    let password = match asked.args.secret("initial_password") {
        Some(password) => Some(rest.hash(password.clone()).await?),
        None => None,
    };
    let change = UserChange {
        fullname: asked.args.text("fullname").map(String::from),
        roles: asked.args.texts("roles").map(|roles| roles.iter().cloned().collect()),
        session_timeout: None,
    };
    let (by, name) = (asked.who.user.clone(), asked.param("user").to_string());
    rest.with_access(move |access| {
        Ok(access.change(|state| {
            state.change_user(&by, &name, change)?;
            password.map_or(Ok(()), |password| state.set_password(&by, &name, password))
        })?)
    })
    .await?;
    one(rest, asked).await
}

async fn remove(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, name) = (asked.who.user.clone(), asked.param("user").to_string());
    rest.with_access(move |access| Ok(access.change(|s| s.remove_user(&by, &name))?)).await?;
    nothing()
}

async fn preferences(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let access = rest.access();
    let user = access.state().user(asked.param("user"))?;
    Ok(json!({ "preferences": preferences_of(&asked, user) }).into())
}

async fn set_preferences(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let minutes = asked.args.number("session_timeout").map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let change = UserChange { session_timeout: minutes, ..UserChange::default() };
    let (by, name) = (asked.who.user.clone(), asked.param("user").to_string());
    rest.with_access(move |access| Ok(access.change(|s| s.change_user(&by, &name, change))?)).await?;
    preferences(rest, asked).await
}

fn token(asked: &Asked, user: &str, token: &Token) -> Value {
    let mut shown = json!({
        "href": asked.href(&["users", user, "preferences", "tokens", &token.id.to_string()]),
        "id": token.id,
        "name": token.name,
        "created": token.created,
    });
    if let Some(expires) = token.expires {
        shown["expires"] = expires.into();
    }
    shown
}

async fn tokens(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let access = rest.access();
    let user = access.state().user(asked.param("user"))?;
    let tokens: Vec<Value> = user.tokens.iter().map(|t| token(&asked, &user.logname, t)).collect();
    Ok(json!({ "tokens": tokens }).into())
}

async fn make_token(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, name, now) = (asked.who.clone(), asked.param("user").to_string(), rest.now());
    let about = asked.args.text("name").unwrap_or_default().to_string();
    let days = match asked.args.number("days") {
        None => None,
        Some(days) if (1..=DAYS_MAX).contains(&days) => u32::try_from(days).ok(),
        Some(_) => {
            return Err(Fault::invalid(format!("a token is valid for 1 to {DAYS_MAX} days, or without end")));
        }
    };
    let (id, secret) =
        rest.with_access(move |access| Ok(access.create_token(&by, &name, &about, days, now)?)).await?;
    let access = rest.access();
    let user = access.state().user(asked.param("user"))?;
    let made = user.tokens.iter().find(|t| t.id == id).ok_or_else(super::unexpected)?;
    let mut shown = token(&asked, &user.logname, made);
    shown["token"] = secret.reveal().into();
    Ok(json!({ "token": shown }).into())
}

async fn remove_token(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, name) = (asked.who.user.clone(), asked.param("user").to_string());
    let id = asked.param("token").parse().map_err(|_| Fault::not_found("tokens have numbers"))?;
    rest.with_access(move |access| Ok(access.change(|s| s.remove_token(&by, &name, id))?)).await?;
    nothing()
}

async fn exceptions(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let access = rest.access();
    let mut shown = user(&asked, access.state().user(asked.param("user"))?);
    Ok(json!({ "exceptions": shown["exceptions"].take() }).into())
}

async fn authorize(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let new = read(&asked.args)?;
    let (by, name) = (asked.who.user.clone(), asked.param("user").to_string());
    let made =
        rest.with_access(move |access| Ok(access.change(|s| s.authorize(&by, Holder::User(&name), new))?));
    let made = made.await?;
    let href = asked.href(&["users", asked.param("user"), "exceptions", &made.name()]);
    Ok(json!({ "auth": show(&made, href) }).into())
}

async fn withdraw(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let (by, name) = (asked.who.user.clone(), asked.param("user").to_string());
    let auth = asked.param("auth").to_string();
    rest.with_access(move |access| Ok(access.change(|s| s.withdraw(&by, Holder::User(&name), &auth))?))
        .await?;
    nothing()
}
