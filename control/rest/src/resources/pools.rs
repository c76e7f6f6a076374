//! `/api/storage/v1/pools`: pools, their space, and scrubs.

use crate::endpoint::{Endpoint, Reply, get, handles, run, shows};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use api::declared::pools::{self as declared, POOL};
use api::{Dataset, DatasetQuery, Pool, Request, Value as Held};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/storage/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    handles(&declared::LIST, run!(list)),
    shows(&declared::GET_POOL, run!(one)),
    handles(&declared::CREATE, run!(create)),
    handles(&declared::DESTROY, run!(destroy)),
    handles(&declared::SCRUB_IT, run!(change)),
    handles(&declared::SCRUB_ERRORS, run!(change)),
    handles(&declared::REPLACE, run!(change)),
    handles(&declared::ATTACH, run!(change)),
    handles(&declared::DETACH, run!(change)),
    handles(&declared::OFFLINE, run!(change)),
    handles(&declared::ONLINE, run!(change)),
    handles(&declared::CLEAR, run!(change)),
];

async fn pools(rest: &Rest, asked: &Asked, names: Vec<String>) -> Result<Vec<Pool>, Fault> {
    match rest.call(asked, Request::Pools { names }).await? {
        api::Reply::Pools(pools) => Ok(pools),
        _ => Err(super::unexpected()),
    }
}

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let mut shown = Vec::new();
    for pool in pools(&rest, &asked, Vec::new()).await? {
        shown.push(show(&rest, &asked, &pool).await?);
    }
    Ok(json!({ "pools": shown }).into())
}

async fn one(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("pool").to_string();
    shown(&rest, &asked, name).await
}

async fn shown(rest: &Rest, asked: &Asked, name: String) -> Outcome {
    let missing = Fault::not_found(format!("there is no pool '{name}'"));
    let found = pools(rest, asked, vec![name]).await?;
    let pool = found.first().ok_or(missing)?;
    Ok(json!({ "pool": show(rest, asked, pool).await? }).into())
}

async fn show(rest: &Rest, asked: &Asked, pool: &Pool) -> Result<Value, Fault> {
    let about = rest.about();
    let mut shown = asked.told(&POOL, pool);
    shown["asn"] = about.asn.into();
    shown["owner"] = about.nodename.into();
    if pool.problem.is_none() {
        shown["usage"] = usage(rest, asked, pool).await?;
    }
    Ok(shown)
}

const SPACE: [&str; 6] =
    ["available", "used", "usedbydataset", "usedbysnapshots", "usedbyrefreservation", "usedbychildren"];

async fn usage(rest: &Rest, asked: &Asked, pool: &Pool) -> Result<Value, Fault> {
    let query = DatasetQuery {
        names: vec![pool.name.clone()],
        depth: None,
        kinds: vec![api::DatasetKind::Filesystem, api::DatasetKind::Volume],
        properties: SPACE.map(String::from).into(),
    };
    let api::Reply::Datasets(datasets) = rest.call(asked, Request::Datasets(query)).await? else {
        return Err(super::unexpected());
    };
    let number = |dataset: &Dataset, name: &str| {
        dataset.property(name).and_then(|p| p.value.as_ref()).and_then(Held::number).unwrap_or(0)
    };
    let all = |name: &str| datasets.iter().map(|d| number(d, name)).sum::<u64>();
    let root = datasets.iter().find(|d| d.name == pool.name);
    let of_root = |name: &str| root.map_or(0, |d| number(d, name));
    let (used, available) = (of_root("used"), of_root("available"));
    let free = pool.property("free").and_then(|p| p.value.as_ref()).and_then(Held::number).unwrap_or(0);
    Ok(json!({
        "available": available,
        "free": free,
        "used": used,
        "total": used + available,
        "usage_data": all("usedbydataset"),
        "usage_snapshots": all("usedbysnapshots"),
        "usage_reservation": all("usedbyrefreservation"),
        "usage_child_reservation": 0,
        "usage_replication": 0,
        "usage_total": used,
        "usage_metasize": 0,
        "usage_metaused": 0,
    }))
}

async fn create(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.args.text("name").unwrap_or_default().to_string();
    rest.call(&asked, asked.request()?).await?;
    shown(&rest, &asked, name).await
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    pools(&rest, &asked, vec![asked.param("pool").to_string()]).await?;
    if !asked.is_confirmed() {
        return Err(Fault::confirm());
    }
    rest.call(&asked, asked.request()?).await?;
    nothing()
}

/// The pool as it is after what was asked.
async fn change(rest: Arc<Rest>, asked: Asked) -> Outcome {
    rest.call(&asked, asked.request()?).await?;
    one(rest, asked).await
}
