//! `/api/storage/v1/.../projects`, `filesystems` and `luns`.

use super::share_fields::{
    HREF, NAME, NEW_NAME, NEW_PROJECT, NUMBER, POOL, PROJECT, UNSET, Use, attributes, check_fixed, count,
    permission, show,
};
use super::unexpected;
use crate::endpoint::{Endpoint, Reply, delete, get, post, put, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::attributes::Attribute;
use api::http::Need;
use api::http::{Field, Kind, Shape, may, must};
use api::shares::{Item, ItemKind, Place, Shares};
use api::{ErrorKind, Request};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) const fn right(permission: &'static str) -> Need {
    Need::Right("nas", permission)
}

macro_rules! shape {
    ($id:ident, $name:literal, $kind:expr, $use:expr, [$($more:expr),*]) => {
        const $id: Shape = {
            const MORE: &[Field] = &[$($more),*];
            const FIELDS: [Field; count($kind, $use) + MORE.len()] = attributes($kind, $use, MORE);
            Shape::new($name, &FIELDS).and_custom()
        };
    };
}

const fn source(shape: &'static Shape) -> Field {
    must("source", Kind::Object(shape), "Where each value comes from: local, inherited, default or received")
}

shape!(PROJECT_SOURCES, "project_sources", ItemKind::Project, Use::Sources, []);
shape!(A_PROJECT, "project", ItemKind::Project, Use::Answer, [HREF, NAME, POOL, source(&PROJECT_SOURCES)]);
shape!(NEW_A_PROJECT, "new_project", ItemKind::Project, Use::Create, [NAME]);
shape!(PROJECT_CHANGES, "project_changes", ItemKind::Project, Use::Change, [NEW_NAME, UNSET]);

shape!(FILESYSTEM_SOURCES, "filesystem_sources", ItemKind::Filesystem, Use::Sources, []);
shape!(
    A_FILESYSTEM,
    "filesystem",
    ItemKind::Filesystem,
    Use::Answer,
    [HREF, NAME, POOL, PROJECT, source(&FILESYSTEM_SOURCES)]
);
shape!(NEW_FILESYSTEM, "new_filesystem", ItemKind::Filesystem, Use::Create, [NAME]);
shape!(
    FILESYSTEM_CHANGES,
    "filesystem_changes",
    ItemKind::Filesystem,
    Use::Change,
    [NEW_NAME, NEW_PROJECT, UNSET]
);

shape!(LUN_SOURCES, "lun_sources", ItemKind::Lun, Use::Sources, []);
shape!(A_LUN, "lun", ItemKind::Lun, Use::Answer, [HREF, NAME, POOL, PROJECT, NUMBER, source(&LUN_SOURCES)]);
shape!(NEW_LUN, "new_lun", ItemKind::Lun, Use::Create, [NAME]);
shape!(LUN_CHANGES, "lun_changes", ItemKind::Lun, Use::Change, [NEW_NAME, NEW_PROJECT, UNSET]);

const SHARE: Field = must("share", Kind::Text, "What it is called");
const IN_PROJECT: Field = may("project", Kind::Text, "Its project; that of the snapshot, unless it is said");
shape!(CLONED_FILESYSTEM, "filesystem_clone", ItemKind::Filesystem, Use::Create, [SHARE, IN_PROJECT]);
shape!(CLONED_LUN, "lun_clone", ItemKind::Lun, Use::Create, [SHARE, IN_PROJECT]);
pub(super) static FILESYSTEM_CLONE: Shape = CLONED_FILESYSTEM;
pub(super) static LUN_CLONE: Shape = CLONED_LUN;

const PROJECTS: &str = "/api/storage/v1/pools/{pool}/projects";
const PROJECT_PATH: &str = "/api/storage/v1/pools/{pool}/projects/{project}";
const FILESYSTEMS: &str = "/api/storage/v1/pools/{pool}/projects/{project}/filesystems";
const FILESYSTEM_PATH: &str = "/api/storage/v1/pools/{pool}/projects/{project}/filesystems/{filesystem}";
const LUNS: &str = "/api/storage/v1/pools/{pool}/projects/{project}/luns";
const LUN_PATH: &str = "/api/storage/v1/pools/{pool}/projects/{project}/luns/{lun}";

const ALL_PROJECTS: Reply = Reply::Several("projects", &A_PROJECT);
const ALL_FILESYSTEMS: Reply = Reply::Several("filesystems", &A_FILESYSTEM);
const ALL_LUNS: Reply = Reply::Several("luns", &A_LUN);
const ONE_PROJECT: Reply = Reply::One("project", &A_PROJECT);
pub(super) const ONE_FILESYSTEM: Reply = Reply::One("filesystem", &A_FILESYSTEM);
pub(super) const ONE_LUN: Reply = Reply::One("lun", &A_LUN);
const GENERAL: Need = right("allow_changeGeneralProps");

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get("/api/storage/v1/projects", "List the projects of all pools", ALL_PROJECTS, run!(list)),
    get("/api/storage/v1/filesystems", "List the file systems of all pools", ALL_FILESYSTEMS, run!(list)),
    get("/api/storage/v1/luns", "List the LUNs of all pools", ALL_LUNS, run!(list)),
    get(PROJECTS, "List the projects of a pool", ALL_PROJECTS, run!(list)),
    get(PROJECT_PATH, "A project", ONE_PROJECT, run!(one)),
    post(PROJECTS, "Make a project", ONE_PROJECT, run!(create))
        .takes(&NEW_A_PROJECT)
        .needs(right("allow_createProject")),
    put(PROJECT_PATH, "Change a project", ONE_PROJECT, run!(change)).takes(&PROJECT_CHANGES).needs(GENERAL),
    delete(
        PROJECT_PATH,
        "Destroy a project with all its shares; ?confirm=true while it has some, ?force=true while clients use them",
        run!(destroy),
    )
    .needs(right("allow_destroy")),
    get(FILESYSTEMS, "List the file systems of a project", ALL_FILESYSTEMS, run!(list)),
    get(FILESYSTEM_PATH, "A file system", ONE_FILESYSTEM, run!(one)),
    post(FILESYSTEMS, "Make a file system", ONE_FILESYSTEM, run!(create))
        .takes(&NEW_FILESYSTEM)
        .needs(right("allow_createShare")),
    put(FILESYSTEM_PATH, "Change a file system", ONE_FILESYSTEM, run!(change))
        .takes(&FILESYSTEM_CHANGES)
        .needs(GENERAL),
    delete(FILESYSTEM_PATH, "Destroy a file system; ?force=true while clients use it", run!(destroy)).needs(right("allow_destroy")),
    get(LUNS, "List the LUNs of a project", ALL_LUNS, run!(list)),
    get(LUN_PATH, "A LUN", ONE_LUN, run!(one)),
    post(LUNS, "Make a LUN", ONE_LUN, run!(create)).takes(&NEW_LUN).needs(right("allow_createShare")),
    put(LUN_PATH, "Change a LUN", ONE_LUN, run!(change)).takes(&LUN_CHANGES).needs(GENERAL),
    delete(LUN_PATH, "Destroy a LUN; ?force=true while clients use it", run!(destroy))
        .needs(right("allow_destroy")),
];

/// What an endpoint is about: the kind of its answer or, of one that answers nothing, of its path.
fn kind(asked: &Asked) -> ItemKind {
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

/// Under what its shares are found.
pub(super) fn folder(asked: &Asked) -> &'static str {
    folder_of(kind(asked))
}

pub(super) fn folder_of(kind: ItemKind) -> &'static str {
    if kind == ItemKind::Lun { "luns" } else { "filesystems" }
}

fn shown(asked: &Asked, item: &Item) -> Value {
    let Place { pool, project, share } = &item.place;
    let (mut values, sources) = show(item);
    let folder = folder(asked);
    let path = ["pools", pool, "projects", project].into_iter();
    let path: Vec<&str> = match share {
        Some(share) => path.chain([folder, share]).collect(),
        None => path.collect(),
    };
    values.insert("href".into(), asked.href(&path).into());
    values.insert("name".into(), share.as_ref().unwrap_or(project).as_str().into());
    values.insert("pool".into(), pool.as_str().into());
    if share.is_some() {
        values.insert("project".into(), project.as_str().into());
    }
    if item.kind == ItemKind::Lun {
        values.insert("assignednumber".into(), numbers(&values).into());
        // It is always there: drivers read it of every volume.
        values.entry("lunguid").or_insert_with(|| "".into());
    }
    values.insert("source".into(), sources.into());
    Value::Object(values)
}

/// The number of a LUN, once for each of its initiator groups: drivers look up the one beside the group that they gave it.
fn numbers(lun: &Map<String, Value>) -> Vec<u64> {
    let number: Option<u64> = lun.get("lunumber").and_then(Value::as_str).and_then(|n| n.parse().ok());
    let groups = lun.get("initiatorgroup").and_then(Value::as_array).map_or(1, Vec::len);
    number.map_or_else(Vec::new, |number| vec![number; groups])
}

/// `{"lun": ...}`
pub(super) fn envelope(asked: &Asked, item: &Item) -> Outcome {
    Ok(json!({ item.kind.word(): shown(asked, item) }).into())
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let kind = kind(&asked);
    let named = |name: &str| Some(asked.param(name)).filter(|n| !n.is_empty()).map(String::from);
    let (pool, project) = (named("pool"), named("project"));
    if let (Some(pool), Some(project)) = (&pool, &project) {
        // A project that is not there has no shares, and is to be said so.
        items(&rest, &asked, Shares::Get { place: checked(Place::project(pool, project))? }).await?;
    }
    let what = match kind {
        ItemKind::Project => Shares::Projects { pool },
        _ => Shares::Shares { pool, project },
    };
    let found = items(&rest, &asked, what).await?;
    let all: Vec<Value> = found.iter().filter(|i| i.kind == kind).map(|i| shown(&asked, i)).collect();
    Ok(json!({ format!("{}s", kind.word()): all }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let item = find(&rest, &asked, place(&asked)?).await?;
    envelope(&asked, &item)
}

/// What a body says of attributes, in the words of the appliance.
pub(super) fn settings(asked: &Asked) -> Result<Vec<(String, String)>, Fault> {
    check_fixed(&asked.args)?;
    let is_attribute = |name: &&'static str| Attribute::find(name, kind(asked)).is_some();
    let word = |name: &'static str| {
        let word = match asked.args.flag(name) {
            Some(flag) => flag.to_string(),
            None => asked.args.word(name)?,
        };
        Some((name.to_string(), word))
    };
    let custom = asked.args.custom.iter().map(|(name, text)| (name.clone(), text.clone()));
    Ok(asked.args.names().filter(is_attribute).filter_map(word).chain(custom).collect())
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.args.text("name").unwrap_or_default();
    let (pool, project) = (asked.param("pool"), asked.param("project"));
    let place = match kind(&asked) {
        ItemKind::Project => Place::project(pool, name),
        _ => Place::project(pool, project).share(name),
    };
    let place = checked(place)?;
    let what = Shares::Create { place: place.clone(), kind: kind(&asked), set: settings(&asked)? };
    rest.call(&asked, Request::Shares(what)).await?;
    let made = find(&rest, &asked, place).await?;
    envelope(&asked, &made)
}

async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let from = place(&asked)?;
    find(&rest, &asked, from.clone()).await?;
    let to = new_place(&asked, &from)?;
    may_unset_and_move(&rest, &asked, &from, &to)?;
    let (set, unset) = (settings(&asked)?, asked.args.texts("unset").unwrap_or_default().to_vec());
    if !set.is_empty() || !unset.is_empty() {
        let what = Shares::Change { place: from.clone(), set, unset };
        rest.call(&asked, Request::Shares(what)).await?;
    }
    if to != from {
        rest.call(&asked, Request::Shares(Shares::Rename { from, to: to.clone() })).await?;
    }
    let item = find(&rest, &asked, to).await?;
    envelope(&asked, &item)
}

fn new_place(asked: &Asked, from: &Place) -> Result<Place, Fault> {
    let mut to = from.clone();
    if let Some(name) = asked.args.text("name") {
        match &mut to.share {
            Some(share) => *share = name.into(),
            None => to.project = name.into(),
        }
    }
    if let (Some(project), Some(_)) = (asked.args.text("project"), &from.share) {
        to.project = project.into();
    }
    checked(to)
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
    if place.share.is_none() && !asked.is_confirmed() {
        let what = Shares::Shares { pool: Some(place.pool.clone()), project: Some(place.project.clone()) };
        if !items(&rest, &asked, what).await?.is_empty() {
            return Err(Fault::confirm());
        }
    }
    let destroyed =
        rest.try_call(&asked, Request::Shares(Shares::Destroy { place, force: asked.is_forced() })).await;
    match destroyed {
        // It is there and may not go.
        Err(e) if e.kind == ErrorKind::Busy => Err(Fault::denied(e.message)),
        Err(e) => Err(e.into()),
        Ok(_) => nothing(),
    }
}
