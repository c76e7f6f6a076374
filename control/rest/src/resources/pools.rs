//! `/api/storage/v1/pools`: pools, their space, and scrubs.

use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest, nothing};
use crate::shape::{Kind, Shape, may, must};
use crate::table::{Endpoint, Need, Reply, delete, get, post, put, run};
use api::{
    Class, Dataset, DatasetQuery, Layout, NewPool, Pool, Request, ScrubAction, Value as Held, Vdev, VdevGroup,
};
use serde_json::{Value, json};
use std::sync::Arc;

const CHANGE: Need = Need::Right("hardware", "allow_pool");
const SCRUB: Need = Need::Right("hardware", "allow_scrub");

const USAGE: Shape = Shape::new(
    "pool_usage",
    &[
        must("available", Kind::Number, "Bytes that can still be written"),
        must("free", Kind::Number, "Bytes of the devices that are not taken"),
        must("used", Kind::Number, "Bytes that everything in it takes"),
        must("total", Kind::Number, "used and available"),
        must("usage_data", Kind::Number, "Bytes of data that is not only in snapshots"),
        must("usage_snapshots", Kind::Number, "Bytes of snapshots alone"),
        must("usage_reservation", Kind::Number, "Bytes that are promised to what has not taken them yet"),
        must("usage_child_reservation", Kind::Number, "Always 0: part of usage_reservation"),
        must("usage_replication", Kind::Number, "Always 0: there is no replication yet"),
        must("usage_total", Kind::Number, "used"),
        must("usage_metasize", Kind::Number, "Always 0: metadata has no devices of its own"),
        must("usage_metaused", Kind::Number, "Always 0"),
    ],
);

const SCAN: Shape = Shape::new(
    "scan",
    &[
        must("type", Kind::Text, "scrub or resilver"),
        must("state", Kind::Text, "running, paused, finished or canceled"),
        must("examined", Kind::Number, "Bytes"),
        must("to_examine", Kind::Number, "Bytes"),
        must("repaired", Kind::Number, "Bytes"),
        must("errors", Kind::Number, "Blocks that could not be repaired"),
    ],
);

const POOL: Shape = Shape::new(
    "pool",
    &[
        must("href", Kind::Text, "Its path"),
        must("name", Kind::Text, "Its name"),
        must("status", Kind::Text, "online, degraded, faulted, suspended or unavail"),
        must(
            "profile",
            Kind::Text,
            "How its devices share blocks: stripe, mirror, mirror3, raidz1, draid2, ...; mixed; unknown while none of \
             them can be read",
        ),
        must("asn", Kind::Text, "The serial number of the appliance that has it"),
        must("owner", Kind::Text, "The host that has it"),
        must("guid", Kind::Text, "Its number, in decimal"),
        may("usage", Kind::Object(&USAGE), "Its space; of a pool that is open"),
        may("scan", Kind::Object(&SCAN), "The last scrub or resilver"),
        must("problems", Kind::Texts, "What is wrong with it, in words"),
    ],
);

const NEW: Shape = Shape::new(
    "new_pool",
    &[
        must("name", Kind::Text, "Its name"),
        must("devices", Kind::Texts, "Absolute paths"),
        may("profile", Kind::Text, "stripe (default), mirror, mirror3, raidz1, raidz2 or raidz3"),
        may("log", Kind::Texts, "Devices for the intent log, each by itself"),
    ],
);

const ONE: Reply = Reply::One("pool", &POOL);
const PATH: &str = "/api/storage/v1/pools/{pool}";

pub(super) static ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/storage/v1",
        "What this service can do",
        Reply::One("service", &super::SERVICE),
        run!(super::describe),
    ),
    get("/api/storage/v1/pools", "List the pools", Reply::Several("pools", &POOL), run!(list)),
    get(PATH, "A pool", ONE, run!(one)),
    post("/api/storage/v1/pools", "Make a pool", ONE, run!(create)).takes(&NEW).needs(CHANGE),
    delete(PATH, "Destroy a pool with everything in it; ?confirm=true", run!(destroy)).needs(CHANGE),
    put("/api/storage/v1/pools/{pool}/scrub", "Begin a scrub, or go on with one", ONE, run!(scrub))
        .needs(SCRUB),
    delete("/api/storage/v1/pools/{pool}/scrub", "End a scrub", run!(end_scrub)).needs(SCRUB),
    put(
        "/api/storage/v1/pools/{pool}/clear",
        "Forget the errors of its devices, and let it go on when it is suspended",
        ONE,
        run!(clear),
    )
    .needs(CHANGE),
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
    let lost = pool.errors.lines();
    let problems = pool.problem.iter().chain(&pool.suspended).chain(&pool.unusable).chain(&lost);
    let mut shown = json!({
        "href": asked.href(&["pools", &pool.name]),
        "name": pool.name,
        "status": pool.health.to_lowercase(),
        "profile": profile(pool.vdevs.as_ref()),
        "asn": about.asn,
        "owner": about.nodename,
        "guid": pool.guid.to_string(),
        "problems": problems.collect::<Vec<_>>(),
    });
    if pool.problem.is_none() {
        shown["usage"] = usage(rest, asked, pool).await?;
    }
    if let Some(scan) = &pool.scan {
        let state = match scan.state {
            api::ScanState::Running if scan.paused.is_some() => "paused",
            api::ScanState::Running => "running",
            api::ScanState::Finished => "finished",
            api::ScanState::Canceled => "canceled",
        };
        shown["scan"] = json!({
            "type": if scan.is_resilver { "resilver" } else { "scrub" },
            "state": state, "examined": scan.examined, "to_examine": scan.to_examine,
            "repaired": scan.repaired, "errors": scan.errors,
        });
    }
    Ok(shown)
}

/// The word for what the vdevs of data have in common.
fn profile(root: Option<&Vdev>) -> String {
    let of_data = |top: &&Vdev| {
        matches!(top.class, None | Some(Class::Normal)) && !["indirect", "hole"].contains(&top.kind.as_str())
    };
    let word = |top: &Vdev| match (top.kind.as_str(), top.children.len()) {
        ("mirror", 2) => "mirror".to_string(),
        ("mirror", sides) => format!("mirror{sides}"),
        ("raidz" | "draid", _) => format!("{}{}", top.kind, top.parity.max(1)),
        // A device, or one that is being replaced by another.
        _ => "stripe".into(),
    };
    let tops = root.map_or(&[][..], |root| &root.children).iter().filter(of_data);
    let mut words: Vec<String> = tops.map(word).collect();
    words.dedup();
    match words.as_slice() {
        [] => "unknown".into(),
        [one] => one.clone(),
        _ => "mixed".into(),
    }
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
    let devices = asked.args.texts("devices").unwrap_or_default();
    let mut vdevs = groups(asked.args.text("profile").unwrap_or("stripe"), devices)?;
    vdevs.extend(asked.args.texts("log").unwrap_or_default().iter().map(|device| VdevGroup {
        class: Class::Log,
        layout: Layout::Stripe,
        devices: vec![device.clone()],
    }));
    if vdevs.iter().flat_map(|g| &g.devices).any(|d| !d.starts_with('/')) {
        return Err(Fault::invalid("devices are absolute paths"));
    }
    let new = NewPool {
        name: name.clone(),
        vdevs,
        force: false,
        dry_run: false,
        no_features: false,
        properties: Vec::new(),
        fs_properties: Vec::new(),
        temporary_name: None,
    };
    rest.call(&asked, Request::PoolCreate(new)).await?;
    shown(&rest, &asked, name).await
}

/// The devices, shared out as the profile wants them.
fn groups(profile: &str, devices: &[String]) -> Result<Vec<VdevGroup>, Fault> {
    let raidz = |parity| (devices.len(), Layout::Raidz { parity });
    let (size, layout) = match profile {
        "stripe" => (1, Layout::Stripe),
        "mirror" => (2, Layout::Mirror),
        "mirror3" => (3, Layout::Mirror),
        "raidz1" => raidz(1),
        "raidz2" => raidz(2),
        "raidz3" => raidz(3),
        _ => return Err(Fault::invalid(format!("there is no profile '{profile}'"))),
    };
    if devices.is_empty() || !devices.len().is_multiple_of(size) {
        return Err(Fault::invalid(format!(
            "profile {profile} takes {} devices, or times that",
            size.max(1)
        )));
    }
    let group = |devices: &[String]| VdevGroup { class: Class::Normal, layout, devices: devices.to_vec() };
    Ok(devices.chunks(size).map(group).collect())
}

async fn destroy(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("pool").to_string();
    pools(&rest, &asked, vec![name.clone()]).await?;
    if !asked.is_confirmed() {
        return Err(Fault::confirm());
    }
    rest.call(&asked, Request::PoolDestroy { name, force: false }).await?;
    nothing()
}

async fn scrub(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("pool").to_string();
    rest.call(&asked, Request::PoolScrub { name, action: ScrubAction::Start }).await?;
    one(rest, asked).await
}

async fn clear(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("pool").to_string();
    rest.call(&asked, Request::PoolClear { name, device: None }).await?;
    one(rest, asked).await
}

async fn end_scrub(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("pool").to_string();
    rest.call(&asked, Request::PoolScrub { name, action: ScrubAction::Stop }).await?;
    nothing()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vdev(kind: &str, parity: u64, children: Vec<Vdev>) -> Vdev {
        Vdev { kind: kind.into(), parity, children, ..Vdev::default() }
    }

    /// Cinder's driver tells its scheduler the profile of the pool, and had none to tell: a KeyError ended every report.
    #[test]
    fn a_pool_says_how_its_devices_share_blocks() {
        let disks = |n| (0..n).map(|_| vdev("disk", 0, Vec::new())).collect::<Vec<_>>();
        let mirror = |n| vdev("mirror", 0, disks(n));
        let log = Vdev { class: Some(Class::Log), ..vdev("disk", 0, Vec::new()) };
        let replacing = vdev("replacing", 0, disks(2));
        for (tops, expected) in [
            (disks(3), "stripe"),
            (vec![mirror(2), mirror(2), log], "mirror"),
            (vec![mirror(3)], "mirror3"),
            (vec![vdev("raidz", 2, disks(6)), vdev("indirect", 0, Vec::new())], "raidz2"),
            (vec![vdev("draid", 1, disks(9))], "draid1"),
            (vec![vdev("disk", 0, Vec::new()), replacing], "stripe"),
            (vec![mirror(2), vdev("disk", 0, Vec::new())], "mixed"),
        ] {
            assert_eq!(profile(Some(&vdev("root", 0, tops))), expected);
        }
        assert_eq!(profile(None), "unknown");
    }

    #[test]
    fn profiles_share_devices_out() {
        let devices: Vec<String> = (0..6).map(|n| format!("/d{n}")).collect();
        let shape = |profile| {
            groups(profile, &devices).map(|g| g.iter().map(|g| g.devices.len()).collect::<Vec<_>>())
        };
        assert_eq!(shape("stripe").unwrap(), [1; 6]);
        assert_eq!(shape("mirror").unwrap(), [2; 3]);
        assert_eq!(shape("mirror3").unwrap(), [3; 2]);
        assert_eq!(shape("raidz2").unwrap(), [6]);
        assert!(shape("raid5").is_err());
        assert!(groups("mirror", &devices[..3]).is_err() && groups("raidz1", &[]).is_err());
    }
}
