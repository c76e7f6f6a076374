//! `cenote status`: what the daemon is, has and does.

use crate::args::Status;
use crate::session::{Outcome, Session};
use crate::text::{json, number};
use api::analytics::{Analytics, Told};
use api::san::{DEFAULT_GROUP, San, SanState};
use api::shares::{Item, Shares};
use api::{Daemon, Memory, Nbd, Pool, Reply, Request, ServiceState, Services, Value};
use serde_json::json;
use units::pretty_size;

/// What the daemon has and where it serves it.
#[derive(Clone, Debug, Default)]
pub struct Things {
    pub pools: Vec<Pool>,
    pub nbd: Nbd,
    pub services: Vec<ServiceState>,
    /// Where the API is.
    pub api: Vec<String>,
    /// All shares; those that are no LUNs are passed over.
    pub shares: Vec<Item>,
    pub san: SanState,
    /// Why samples of statistics are not kept on disk, if they are not.
    pub unkept: Option<String>,
}

impl Things {
    /// Takes what a reply tells; one of another kind is passed over.
    pub fn take(&mut self, reply: Reply) {
        match reply {
            Reply::Daemon(daemon) => self.api = daemon.api,
            Reply::Pools(pools) => self.pools = pools,
            Reply::Nbd(nbd) => self.nbd = nbd,
            Reply::Services(services) => self.services = services,
            Reply::Items(items) => self.shares = items,
            Reply::San(san) => self.san = *san,
            Reply::Analytics(Told::Settings(settings)) => self.unkept = settings.problem,
            _ => {}
        }
    }

    /// What has to be asked for all of it.
    pub fn requests() -> [Request; 6] {
        [
            Request::Daemon,
            Request::Pools { names: Vec::new() },
            Request::NbdExports,
            Request::Services(Services::Show),
            Request::Shares(Shares::Shares { pool: None, project: None, kind: None }),
            Request::San(San::Show),
        ]
    }
}

pub(crate) fn run(session: &mut Session<'_>, args: &Status) -> Outcome {
    let mut things = Things::default();
    let mut daemon = Daemon::default();
    for request in Things::requests() {
        let reply = session.ask(request)?;
        if let Reply::Daemon(told) = &reply {
            daemon = told.clone();
        }
        things.take(reply);
    }
    // Where nothing is kept there are no such settings.
    if let Ok(reply) = session.ask(Request::Analytics(Analytics::Settings)) {
        things.take(reply);
    }
    match args.json {
        true => session.print(&document(&daemon, &things)),
        false => session.show(&render(&daemon, &things)),
    }
}

fn render(daemon: &Daemon, all: &Things) -> String {
    format!(
        "cenote {} is up for {}, process {}, with its home in {}\n\n  memory  {} in the cache, of at most {} (zfs_arc_max){}\n{}",
        daemon.version,
        number::duration(daemon.uptime),
        daemon.pid,
        daemon.home,
        pretty_size(daemon.arc_size),
        pretty_size(daemon.arc_max),
        short_of_memory(daemon),
        memory(&daemon.memory)
    ) + &unkept(all.unkept.as_deref())
        + &things(all)
        + &clients(&all.nbd)
}

fn short_of_memory(daemon: &Daemon) -> String {
    if daemon.arc_limit >= daemon.arc_max {
        return String::new();
    }
    format!(", {} while memory is short", pretty_size(daemon.arc_limit))
}

/// Where the rest of it is, in whole mebibytes: what is less is of no interest here.
fn memory(memory: &Memory) -> String {
    let whole = |bytes: u64| format!("{}M", (bytes + (1 << 19)) >> 20);
    let parts = [
        (memory.dirty, "dirty"),
        (memory.requests, "of requests"),
        (memory.kept, "kept for buffers"),
        (memory.heap + memory.freed, "heap"),
        (memory.program, "program"),
    ];
    let parts = parts.map(|(bytes, what)| format!("{} {what}", whole(bytes))).join(", ");
    format!("          {} resident: the cache, {parts}\n", whole(memory.resident))
}

fn unkept(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!("  samples  are in memory alone: {why}\n"))
}

/// Where clients come in, the pools and the volumes, as `up` greets with them too.
pub fn things(all: &Things) -> String {
    let doors = all.services.iter().map(|one| service(all, one)).chain([door("api", &all.api)]);
    let missing = all.nbd.missing.iter().map(|name| format!("  export  {name}  there is no such volume\n"));
    let pools = all.pools.iter().map(pool);
    doors
        .chain(missing)
        .chain(pools)
        .chain(all.nbd.exports.iter().map(|export| volume(all, export)))
        .collect()
}

/// Where clients of a service come in.
fn door(name: &str, addresses: &[String]) -> String {
    let at = if addresses.is_empty() { "nowhere".into() } else { addresses.join(" and ") };
    format!("  {name:<6}  {at}\n")
}

fn service(all: &Things, service: &ServiceState) -> String {
    let shown = |address: &String| match service.name.as_str() {
        "nbd" => all.nbd.door(address),
        _ => address.clone(),
    };
    match service.enabled {
        true => door(&service.name, &service.addresses.iter().map(shown).collect::<Vec<_>>()),
        false => format!("  {:<6}  disabled\n", service.name),
    }
}

fn number_of(pool: &Pool, name: &str) -> Option<u64> {
    pool.property(name)?.value.as_ref().and_then(Value::number)
}

fn pool(pool: &Pool) -> String {
    let space =
        number_of(pool, "size").zip(number_of(pool, "free")).map_or_else(String::new, |(size, free)| {
            format!("{}, {} free, ", pretty_size(size), pretty_size(free))
        });
    let problem =
        pool.problem.as_ref().or(pool.suspended.as_ref()).map_or_else(String::new, |why| format!(": {why}"));
    let unusable = pool.unusable.iter().map(|line| format!("          {line}\n"));
    format!("  pool    {}  {space}{}{problem}\n{}", pool.name, pool.health, unusable.collect::<String>())
}

fn volume(all: &Things, export: &api::NbdExport) -> String {
    let (size, block) = (pretty_size(export.size), pretty_size(export.block_size));
    let luns = lun_of(all, &export.name).map(|lun| lun.lines()).unwrap_or_default();
    let ways = luns.into_iter().chain(all.nbd.uris(&export.name));
    let ways = ways.map(|way| format!("          {way}\n"));
    format!("  volume  {}  {size}, in blocks of {block}\n{}", export.name, ways.collect::<String>())
}

/// A volume as initiators find it.
struct Lun {
    name: String,
    number: String,
    is_online: bool,
    /// Why it is not, though it should be.
    problem: Option<String>,
    targets: Vec<String>,
    initiators: String,
}

fn lun_of(all: &Things, dataset: &str) -> Option<Lun> {
    let item = all.shares.iter().find(|item| item.place.dataset() == dataset)?;
    let text = |name: &str| match item.attribute(name).and_then(|a| a.value.clone()) {
        Some(Value::Text(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        None => String::new(),
    };
    if text("lunguid").is_empty() {
        return None;
    }
    let group = text("targetgroup");
    let members = all.san.target_groups.iter().find(|g| g.name == group).map(|g| g.members.clone());
    Some(Lun {
        name: dataset.into(),
        number: text("lunumber"),
        is_online: text("status") != "offline",
        problem: Some(text("problem")).filter(|problem| !problem.is_empty()),
        targets: members.unwrap_or_default(),
        initiators: text("initiatorgroup"),
    })
}

impl Lun {
    fn lines(&self) -> Vec<String> {
        let number = &self.number;
        let whom = match self.initiators.split(',').any(|group| group.trim() == DEFAULT_GROUP) {
            true => "all initiators".to_string(),
            false => format!("the initiators of {}", self.initiators),
        };
        match (self.is_online, &self.targets[..]) {
            (false, _) => {
                let problem = self.problem.iter().map(|why| format!(": {why}"));
                vec![format!("LUN {number}, offline{}", problem.collect::<String>())]
            }
            (true, []) => vec![format!("LUN {number}, of no target yet")],
            (true, targets) => {
                targets.iter().map(|target| format!("LUN {number} of {target}, for {whom}")).collect()
            }
        }
    }
}

fn clients(nbd: &Nbd) -> String {
    let line = |client: &api::NbdClient| {
        format!(
            "  client  {}  {}, {} requests, {} read, {} written\n",
            client.address,
            client.export.as_deref().unwrap_or("no volume yet"),
            client.requests,
            pretty_size(client.read_bytes),
            pretty_size(client.written_bytes)
        )
    };
    nbd.clients.iter().map(line).collect()
}

fn document(daemon: &Daemon, all: &Things) -> String {
    let pool = |pool: &Pool| {
        json!({
            "name": pool.name, "guid": pool.guid, "state": pool.health, "size": number_of(pool, "size"),
            "free": number_of(pool, "free"), "problem": pool.problem, "suspended": pool.suspended, "unusable": pool.unusable,
        })
    };
    let export = |export: &api::NbdExport| {
        json!({
            "name": export.name, "size": export.size, "block_size": export.block_size,
            "uris": all.nbd.uris(&export.name),
        })
    };
    let luns = all.nbd.exports.iter().filter_map(|export| lun_of(all, &export.name));
    let lun = |lun: Lun| {
        json!({
            "volume": lun.name, "number": lun.number, "online": lun.is_online, "problem": lun.problem, "targets": lun.targets,
            "initiator_groups": lun.initiators,
        })
    };
    json::pretty(&json!({
        "daemon": daemon,
        "services": all.services,
        "pools": all.pools.iter().map(pool).collect::<Vec<_>>(),
        "volumes": all.nbd.exports.iter().map(export).collect::<Vec<_>>(),
        "luns": luns.map(lun).collect::<Vec<_>>(),
        "missing_exports": all.nbd.missing,
        "clients": all.nbd.clients,
        "samples_problem": all.unkept,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::san::Group;
    use api::shares::{ItemKind, Place};
    use api::{NbdClient, NbdExport, Property};

    fn example() -> (Daemon, Things) {
        let daemon = Daemon {
            pid: 77,
            version: "0.1.0".into(),
            home: "/h".into(),
            uptime: 3723,
            arc_size: 3 << 20,
            arc_max: 2 << 30,
            arc_limit: 2 << 30,
            memory: Memory {
                resident: 70 << 20,
                cache: 3 << 20,
                dirty: 1 << 20,
                requests: 5 << 20,
                kept: 20 << 20,
                heap: 30 << 20,
                freed: 2 << 20,
                program: 9 << 20,
            },
            api: vec!["https://127.0.0.1:8215".into()],
        };
        let tank = Pool {
            name: "tank".into(),
            guid: 7,
            txg: 4,
            health: "DEGRADED".into(),
            properties: vec![Property::computed("size", 10 << 30), Property::computed("free", 9 << 30)],
            vdevs: None,
            scan: None,
            error_scrub: None,
            errors: api::DataErrors::default(),
            unusable: vec!["/d/b is not there".into()],
            suspended: None,
            problem: None,
            logs: Vec::new(),
            clock_ns: 0,
        };
        let lost = Pool {
            name: "lost".into(),
            health: "UNAVAIL".into(),
            properties: Vec::new(),
            unusable: Vec::new(),
            problem: Some("none of its devices is there".into()),
            ..tank.clone()
        };
        let nbd = Nbd {
            addresses: vec!["127.0.0.1:10809".into()],
            tls: false,
            exports: vec![NbdExport {
                name: "tank/v".into(),
                size: 1 << 30,
                block_size: 16 << 10,
                addresses: vec!["127.0.0.1:10809".into()],
            }],
            missing: vec!["nope/x".into()],
            clients: vec![NbdClient {
                address: "127.0.0.1:9".into(),
                export: Some("tank/v".into()),
                requests: 12,
                read_bytes: 4096,
                written_bytes: 0,
            }],
        };
        let attributes = [("lunguid", "6"), ("lunumber", "3"), ("targetgroup", "t"), ("initiatorgroup", "i")];
        let lun = Item {
            place: Place::project("tank", "default").share("v"),
            kind: ItemKind::Lun,
            attributes: attributes.map(|(name, value)| Property::computed(name, value)).into(),
            custom: Vec::new(),
        };
        let group = Group { name: "t".into(), members: vec!["iqn.x:a".into(), "iqn.x:b".into()] };
        let service = |name: &str, enabled, addresses: &[&str]| ServiceState {
            name: name.into(),
            enabled,
            addresses: addresses.iter().map(ToString::to_string).collect(),
            ..ServiceState::default()
        };
        let things = Things {
            pools: vec![tank, lost],
            nbd,
            services: vec![service("iscsi", true, &["127.0.0.1:3261"]), service("nbd", false, &[])],
            api: daemon.api.clone(),
            shares: vec![lun],
            san: SanState { target_groups: vec![group], ..SanState::default() },
            unkept: Some("keep samples: /h has 2M left: out of space".into()),
        };
        (daemon, things)
    }

    #[test]
    fn the_daemon_its_addresses_pools_volumes_luns_and_clients_are_shown() {
        let (daemon, things) = example();
        let expected = "\
cenote 0.1.0 is up for 01:02:03, process 77, with its home in /h

  memory  3M in the cache, of at most 2G (zfs_arc_max)
          70M resident: the cache, 1M dirty, 5M of requests, 20M kept for buffers, 32M heap, 9M program
  samples  are in memory alone: keep samples: /h has 2M left: out of space
  iscsi   127.0.0.1:3261
  nbd     disabled
  api     https://127.0.0.1:8215
  export  nope/x  there is no such volume
  pool    tank  10G, 9G free, DEGRADED
          /d/b is not there
  pool    lost  UNAVAIL: none of its devices is there
  volume  tank/v  1G, in blocks of 16K
          LUN 3 of iqn.x:a, for the initiators of i
          LUN 3 of iqn.x:b, for the initiators of i
          nbd://127.0.0.1/tank/v
  client  127.0.0.1:9  tank/v, 12 requests, 4K read, 0B written
";
        assert_eq!(render(&daemon, &things), expected);
        let short = Daemon { arc_limit: 1 << 30, ..daemon };
        let line = "of at most 2G (zfs_arc_max), 1G while memory is short\n";
        assert!(render(&short, &things).contains(line));
    }

    #[test]
    fn addresses_of_nbd_inside_tls_are_shown_as_such() {
        let (daemon, mut things) = example();
        things.nbd.tls = true;
        (things.services[1].enabled, things.services[1].addresses) =
            (true, vec!["127.0.0.1:10809".into(), "unix:/h/nbd.sock".into()]);
        let shown = render(&daemon, &things);
        assert!(shown.contains("  nbd     nbds://127.0.0.1:10809 and unix:/h/nbd.sock\n"), "{shown}");
        assert!(shown.contains("          nbds://127.0.0.1/tank/v\n"), "{shown}");
    }

    #[test]
    fn json_has_exact_numbers() {
        let (daemon, things) = example();
        let value: serde_json::Value = serde_json::from_str(&document(&daemon, &things)).unwrap();
        assert_eq!(
            (value["luns"][0]["number"].as_str(), value["luns"][0]["targets"][1].as_str()),
            (Some("3"), Some("iqn.x:b"))
        );
        assert_eq!(value["daemon"]["arc_max"], 2u64 << 30);
        assert_eq!(value["pools"][0]["free"], 9u64 << 30);
        assert_eq!(value["volumes"][0]["uris"][0], "nbd://127.0.0.1/tank/v");
        assert_eq!(value["clients"][0]["requests"], 12);
        assert_eq!(value["samples_problem"], "keep samples: /h has 2M left: out of space");
    }

    #[test]
    fn a_lun_that_is_left_out_says_why() {
        let (_, mut all) = example();
        let attributes = &mut all.shares[0].attributes;
        attributes.push(Property::computed("status", "offline"));
        attributes.push(Property::computed("problem", "its number 3 is that of another"));
        let lines = lun_of(&all, "tank/v").unwrap().lines();
        assert_eq!(lines, ["LUN 3, offline: its number 3 is that of another"]);
    }
}
