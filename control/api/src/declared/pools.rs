//! Pools over HTTP.
//!
//! A profile shares devices out: `mirror` of six devices is three groups of two. A pool that no profile makes is not made
//! over HTTP.

use crate::http::{
    Answer, Args, Declared, Face, Given, Kind, Method, Need, Sent, Shape, Shaped, Wrong, may, must,
};
use crate::{
    Class, DataErrors, DeviceAction, Event, Joining, Layout, NewPool, Pool, Reply, Request, ScanState,
    ScrubAction, Vdev, VdevGroup, declared,
};
use serde_json::{Map, Value, json};

const CHANGE: Need = Need::Right("hardware", "allow_pool");
const SCRUB: Need = Need::Right("hardware", "allow_scrub");
const POOLS: &str = "/api/storage/v1/pools";

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
        must("usage_metasize", Kind::Number, "Always 0: what special devices hold is counted with the rest"),
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

const ERROR_SCRUB: Shape = Shape::new(
    "error_scrub",
    &[
        must("state", Kind::Text, "running, paused, finished or canceled"),
        must("examined", Kind::Number, "Blocks that were looked at"),
        must("to_examine", Kind::Number, "Blocks that are still to be looked at"),
        must("errors", Kind::Number, "Blocks that could not be repaired"),
    ],
);

/// A pool; the server adds the appliance and the space.
pub static POOL: Shaped<Pool> = Shaped {
    shape: Shape::new(
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
            may("error_scrub", Kind::Object(&ERROR_SCRUB), "The last scrub of the error log alone"),
            must("problems", Kind::Texts, "What is wrong with it, in words"),
        ],
    ),
    tell: |pool| {
        let lost = pool.errors.lines();
        let problems = pool.problem.iter().chain(&pool.suspended).chain(&pool.unusable).chain(&lost);
        let mut told = Map::from_iter([
            ("href".to_string(), crate::http::filled(A_POOL, [pool.name.as_str()]).into()),
            ("name".into(), pool.name.as_str().into()),
            ("status".into(), pool.health.to_lowercase().into()),
            ("profile".into(), profile(pool.vdevs.as_ref()).into()),
            ("guid".into(), pool.guid.to_string().into()),
            ("problems".into(), problems.map(String::as_str).collect::<Vec<_>>().into()),
        ]);
        if let Some(scan) = &pool.scan {
            let state = state(scan.state, scan.paused);
            let scan = json!({
                "type": if scan.is_resilver { "resilver" } else { "scrub" },
                "state": state, "examined": scan.examined, "to_examine": scan.to_examine,
                "repaired": scan.repaired, "errors": scan.errors,
            });
            told.insert("scan".into(), scan);
        }
        if let Some(scrub) = &pool.error_scrub {
            let scrub = json!({
                "state": state(scrub.state, scrub.paused), "examined": scrub.examined,
                "to_examine": scrub.to_examine, "errors": scrub.errors,
            });
            told.insert("error_scrub".into(), scrub);
        }
        told
    },
    // As far as it is told.
    take: |args| {
        let text = |name: &str| args.text(name).unwrap_or_default();
        Ok(Pool {
            name: text("name").into(),
            guid: text("guid").parse().unwrap_or(0),
            txg: 0,
            health: text("status").to_uppercase(),
            properties: Vec::new(),
            vdevs: None,
            scan: None,
            error_scrub: None,
            errors: DataErrors::default(),
            unusable: args.texts("problems").unwrap_or_default().to_vec(),
            suspended: None,
            problem: None,
            logs: Vec::new(),
            clock_ns: 0,
        })
    },
};

fn state(state: ScanState, paused: Option<u64>) -> &'static str {
    match state {
        ScanState::Running if paused.is_some() => "paused",
        ScanState::Running => "running",
        ScanState::Finished => "finished",
        ScanState::Canceled => "canceled",
    }
}

pub static EVENT: Shaped<Event> = Shaped {
    shape: Shape::new(
        "event",
        &[
            must("id", Kind::Number, "Counts up for as long as the daemon runs"),
            must("time", Kind::Number, "Seconds since 1970"),
            must(
                "class",
                Kind::Text,
                "As OpenZFS names it: sysevent.fs.zfs.scrub_start, ereport.fs.zfs.checksum, ...",
            ),
            must("fields", Kind::Texts, "What is known of it: name=value"),
        ],
    ),
    tell: |event| {
        let fields: Vec<String> =
            event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let told: [(&str, Value); 4] = [
            ("id", event.id.into()),
            ("time", event.seconds.into()),
            ("class", event.class.as_str().into()),
            ("fields", fields.into()),
        ];
        told.map(|(name, value)| (name.to_string(), value)).into_iter().collect()
    },
    take: |args| {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.to_string(), value.to_string())
        };
        Ok(Event {
            id: args.number("id").unwrap_or(0),
            seconds: args.number("time").unwrap_or(0),
            nanos: 0,
            class: args.text("class").unwrap_or_default().into(),
            fields: args.texts("fields").unwrap_or_default().iter().map(pair).collect(),
        })
    },
};

static NEW: Shape = Shape::new(
    "new_pool",
    &[
        must("name", Kind::Text, "Its name"),
        must("devices", Kind::Texts, "Absolute paths"),
        may("profile", Kind::Text, "stripe (default), mirror, mirror3, raidz1, raidz2 or raidz3"),
        may("log", Kind::Texts, "Devices for the intent log, each by itself"),
    ],
);

const A_POOL: &str = "/api/storage/v1/pools/{pool}";
const ONE: Answer = Answer::One("pool", &POOL.shape);

/// A part of what [`Request::Pools`] shows.
pub static GET_POOL: Face = Face::get(A_POOL, "A pool", ONE);

declared! {
    pub LIST: Get POOLS, "List the pools";
    every (names)
    answers Answer::Several("pools", &POOL.shape);
    means { Request::Pools { names } }
    gives |answer| Ok(Reply::Pools(POOL.all(answer, "pools")?));

    pub EVENTS: Get "/api/storage/v1/events",
        "What happened to pools, the newest 4,096; ?since=N: after the one with this number";
    number (since = since)
    answers Answer::Several("events", &EVENT.shape);
    means { Request::Events { since } }
    gives |answer| Ok(Reply::Events(EVENT.all(answer, "events")?));
    plain |reply| match reply {
        Reply::Events(all) => Some(EVENT.tell_all(all, "events")),
        _ => None,
    };
    said "maintenance system" "events [since]", "what happened to pools; those after the one with this number";

    pub DESTROY: Delete A_POOL, "Destroy a pool with everything in it; ?confirm=true";
    needs CHANGE;
    path (pool = name)
    always confirm;
    answers Answer::Nothing;
    means { Request::PoolDestroy { name, force: false } }

    pub SCRUB_IT: Put "/api/storage/v1/pools/{pool}/scrub", "Begin a scrub, or go on with one";
    needs SCRUB;
    path (pool = name)
    answers ONE;
    means { Request::PoolScrub { name, action: ScrubAction::Start } }

    pub SCRUB_ERRORS: Put "/api/storage/v1/pools/{pool}/scrub/errors",
        "Begin a scrub of the blocks in the error log alone, or go on with one";
    needs SCRUB;
    path (pool = name)
    answers ONE;
    means { Request::PoolScrub { name, action: ScrubAction::Errors } }

    pub END_SCRUB: Delete "/api/storage/v1/pools/{pool}/scrub", "End a scrub, one of the error log as well";
    needs SCRUB;
    path (pool = name)
    answers Answer::Nothing;
    means { Request::PoolScrub { name, action: ScrubAction::Stop } }

    pub REPLACE: Put "/api/storage/v1/pools/{pool}/replace",
        "Let a device take the place of another one: what is allocated is copied to it while the pool is used";
    needs CHANGE;
    path (pool = name)
    body "device_replacement" {
        must "device" Text device, "The one that goes: its path, name or guid";
        must "new_device" Text new, "The path of the one that comes; the same path when another one is there now";
        may "sequential" Flag sequential, "Copied in the order of the disk, of mirrors only; a scrub verifies it afterwards";
        may "force" Flag force, "Even if it seems to be in use";
        may "ashift" Number ashift, "The size of its sectors as a power of two: 9 to 16";
    }
    answers ONE;
    means {
        Request::PoolDevice {
            name,
            device,
            action: DeviceAction::Replace(Joining { device: new, force, ashift, sequential }),
        }
    }

    pub ATTACH: Put "/api/storage/v1/pools/{pool}/attach",
        "Let a device join another one in a mirror: what is allocated is copied to it while the pool is used";
    needs CHANGE;
    path (pool = name)
    body "device_attachment" {
        must "device" Text device, "The one that is there: its path, name or guid";
        must "new_device" Text new, "The path of the one that joins it";
        may "sequential" Flag sequential, "Copied in the order of the disk; a scrub verifies it afterwards";
        may "force" Flag force, "Even if it seems to be in use";
        may "ashift" Number ashift, "The size of its sectors as a power of two: 9 to 16";
    }
    answers ONE;
    means {
        Request::PoolDevice {
            name,
            device,
            action: DeviceAction::Attach(Joining { device: new, force, ashift, sequential }),
        }
    }

    pub DETACH: Put "/api/storage/v1/pools/{pool}/detach",
        "Take a device out of a mirror, or call off its replacement";
    needs CHANGE;
    path (pool = name)
    body "device_to_detach" { must "device" Text device, "Its path, name or guid"; }
    answers ONE;
    means { Request::PoolDevice { name, device, action: DeviceAction::Detach } }

    pub OFFLINE: Put "/api/storage/v1/pools/{pool}/offline", "Take a device out of use that others can do without";
    needs CHANGE;
    path (pool = name)
    body "device_to_take_offline" {
        must "device" Text device, "Its path, name or guid";
        may "temporary" Flag temporary, "Only until the pool is opened again";
        may "fault" Flag fault, "As faulted, until its errors are cleared";
    }
    answers ONE;
    means { Request::PoolDevice { name, device, action: DeviceAction::Offline { temporary, fault } } }

    pub ONLINE: Put "/api/storage/v1/pools/{pool}/online",
        "Bring a device back into use: it gets what it missed";
    needs CHANGE;
    path (pool = name)
    body "device_to_bring_online" {
        must "device" Text device, "Its path, name or guid";
        may "expand" Flag expand, "With all that it has room for, when every device of its group has grown";
    }
    answers ONE;
    means { Request::PoolDevice { name, device, action: DeviceAction::Online { expand } } }

    pub CLEAR: Put "/api/storage/v1/pools/{pool}/clear",
        "Forget the errors of its devices, and let it go on when it is suspended";
    needs CHANGE;
    path (pool = name)
    answers ONE;
    means { Request::PoolClear { name, device: None } }
}

/// A profile and its devices are not fields of the request, but what the groups of its vdevs follow from.
pub static CREATE: Declared = Declared {
    face: {
        let mut face = Face::new(Method::Post, POOLS, "Make a pool", ONE);
        face.need = CHANGE;
        face.body = Some(&NEW);
        face
    },
    of: None,
    sent: |request| {
        let Request::PoolCreate(new) = request else { return None };
        let body = told(new)?;
        Some(Sent { body: Some(body), ..Sent::default() })
    },
    asked: |given: Given<'_>| Ok(Request::PoolCreate(new_pool(given.args)?)),
    taken: |_| Ok(Reply::Done),
    told: None,
    said: &[],
};

pub(super) static ALL: &[&Declared] = &[
    &LIST,
    &EVENTS,
    &CREATE,
    &DESTROY,
    &SCRUB_IT,
    &SCRUB_ERRORS,
    &END_SCRUB,
    &REPLACE,
    &ATTACH,
    &DETACH,
    &OFFLINE,
    &ONLINE,
    &CLEAR,
];

fn new_pool(args: &Args) -> Result<NewPool, Wrong> {
    let devices = args.texts("devices").unwrap_or_default();
    let mut vdevs = groups(args.text("profile").unwrap_or(PROFILES[0]), devices)?;
    vdevs.extend(args.texts("log").unwrap_or_default().iter().map(|device| VdevGroup {
        class: Class::Log,
        layout: Layout::Stripe,
        devices: vec![device.clone()],
    }));
    if vdevs.iter().flat_map(|g| &g.devices).any(|d| !d.starts_with('/')) {
        return Err(Wrong::Invalid("devices are absolute paths".into()));
    }
    Ok(NewPool { name: args.text("name").unwrap_or_default().into(), vdevs, ..NewPool::default() })
}

/// The body that gives this pool; none where no profile does.
fn told(new: &NewPool) -> Option<Map<String, Value>> {
    let (logs, data): (Vec<_>, Vec<_>) = new.vdevs.iter().partition(|group| group.class == Class::Log);
    let devices = |groups: &[&VdevGroup]| -> Vec<String> {
        groups.iter().flat_map(|group| group.devices.clone()).collect()
    };
    let (devices, logs) = (devices(&data), devices(&logs));
    let one = |profile: &str| {
        let mut body = Map::from_iter([
            ("name".to_string(), new.name.as_str().into()),
            ("profile".into(), profile.into()),
            ("devices".into(), devices.clone().into()),
        ]);
        if !logs.is_empty() {
            body.insert("log".into(), logs.clone().into());
        }
        let args = Args::read(Value::Object(body.clone()).to_string().as_bytes(), Some(&NEW)).ok()?;
        (new_pool(&args).ok()? == *new).then_some(body)
    };
    PROFILES.into_iter().find_map(one)
}

const PROFILES: [&str; 6] = ["stripe", "mirror", "mirror3", "raidz1", "raidz2", "raidz3"];

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

/// The devices, shared out as the profile wants them.
fn groups(profile: &str, devices: &[String]) -> Result<Vec<VdevGroup>, Wrong> {
    let raidz = |parity| (devices.len(), Layout::Raidz { parity });
    let (size, layout) = match profile {
        "stripe" => (1, Layout::Stripe),
        "mirror" => (2, Layout::Mirror),
        "mirror3" => (3, Layout::Mirror),
        "raidz1" => raidz(1),
        "raidz2" => raidz(2),
        "raidz3" => raidz(3),
        _ => return Err(Wrong::Invalid(format!("there is no profile '{profile}'"))),
    };
    if devices.is_empty() || !devices.len().is_multiple_of(size) {
        return Err(Wrong::Invalid(format!(
            "profile {profile} takes {} devices, or times that",
            size.max(1)
        )));
    }
    let group = |devices: &[String]| VdevGroup { class: Class::Normal, layout, devices: devices.to_vec() };
    Ok(devices.chunks(size).map(group).collect())
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
