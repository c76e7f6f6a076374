//! `cenote status`: what the daemon is, has and does.

use crate::args::Status;
use crate::expect_reply;
use crate::session::{Outcome, Session};
use crate::text::{json, number};
use api::{Daemon, Nbd, Pool, Reply, Request, Value};
use serde_json::json;
use units::pretty_size;

pub(crate) fn run(session: &mut Session<'_>, args: &Status) -> Outcome {
    let daemon = expect_reply!(session.ask(Request::Daemon)?, Reply::Daemon(daemon) => daemon);
    let pools = expect_reply!(
        session.ask(Request::Pools { names: Vec::new() })?, Reply::Pools(pools) => pools
    );
    let nbd = expect_reply!(session.ask(Request::NbdExports)?, Reply::Nbd(nbd) => nbd);
    session.print(&if args.json { document(&daemon, &pools, &nbd) } else { render(&daemon, &pools, &nbd) })
}

fn render(daemon: &Daemon, pools: &[Pool], nbd: &Nbd) -> String {
    format!(
        "cenote {} is up for {}, process {}, with its home in {}\n\n  memory  {} in the cache, of at most {} (zfs_arc_max)\n",
        daemon.version,
        number::duration(daemon.uptime),
        daemon.pid,
        daemon.home,
        pretty_size(daemon.arc_size),
        pretty_size(daemon.arc_max)
    ) + &things(pools, nbd)
        + &clients(nbd)
}

/// The pools and volumes, as `up` greets with them too.
pub fn things(pools: &[Pool], nbd: &Nbd) -> String {
    pools.iter().map(pool).chain(nbd.exports.iter().map(|export| volume(nbd, export))).collect()
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

fn volume(nbd: &Nbd, export: &api::NbdExport) -> String {
    let (size, block) = (pretty_size(export.size), pretty_size(export.block_size));
    let uris = nbd.uris(&export.name).into_iter().map(|uri| format!("          {uri}\n"));
    format!("  volume  {}  {size}, in blocks of {block}\n{}", export.name, uris.collect::<String>())
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

fn document(daemon: &Daemon, pools: &[Pool], nbd: &Nbd) -> String {
    let pool = |pool: &Pool| {
        json!({
            "name": pool.name, "guid": pool.guid, "state": pool.health, "size": number_of(pool, "size"),
            "free": number_of(pool, "free"), "problem": pool.problem, "suspended": pool.suspended, "unusable": pool.unusable,
        })
    };
    let export = |export: &api::NbdExport| {
        json!({
            "name": export.name, "size": export.size, "block_size": export.block_size,
            "uris": nbd.uris(&export.name),
        })
    };
    json::pretty(&json!({
        "daemon": daemon,
        "pools": pools.iter().map(pool).collect::<Vec<_>>(),
        "volumes": nbd.exports.iter().map(export).collect::<Vec<_>>(),
        "clients": nbd.clients,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{NbdClient, NbdExport, Property};

    fn example() -> (Daemon, Vec<Pool>, Nbd) {
        let daemon = Daemon {
            pid: 77,
            version: "0.1.0".into(),
            home: "/h".into(),
            uptime: 3723,
            arc_size: 3 << 20,
            arc_max: 2 << 30,
        };
        let tank = Pool {
            name: "tank".into(),
            guid: 7,
            txg: 4,
            health: "DEGRADED".into(),
            properties: vec![Property::computed("size", 10 << 30), Property::computed("free", 9 << 30)],
            vdevs: None,
            scan: None,
            errors: Vec::new(),
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
            exports: vec![NbdExport { name: "tank/v".into(), size: 1 << 30, block_size: 16 << 10 }],
            clients: vec![NbdClient {
                address: "127.0.0.1:9".into(),
                export: Some("tank/v".into()),
                requests: 12,
                read_bytes: 4096,
                written_bytes: 0,
            }],
        };
        (daemon, vec![tank, lost], nbd)
    }

    #[test]
    fn the_daemon_its_pools_its_volumes_and_its_clients_are_shown() {
        let (daemon, pools, nbd) = example();
        let expected = "\
cenote 0.1.0 is up for 01:02:03, process 77, with its home in /h

  memory  3M in the cache, of at most 2G (zfs_arc_max)
  pool    tank  10G, 9G free, DEGRADED
          /d/b is not there
  pool    lost  UNAVAIL: none of its devices is there
  volume  tank/v  1G, in blocks of 16K
          nbd://127.0.0.1/tank/v
  client  127.0.0.1:9  tank/v, 12 requests, 4K read, 0B written
";
        assert_eq!(render(&daemon, &pools, &nbd), expected);
    }

    #[test]
    fn json_has_exact_numbers() {
        let (daemon, pools, nbd) = example();
        let value: serde_json::Value = serde_json::from_str(&document(&daemon, &pools, &nbd)).unwrap();
        assert_eq!(value["daemon"]["arc_max"], 2u64 << 30);
        assert_eq!(value["pools"][0]["free"], 9u64 << 30);
        assert_eq!(value["volumes"][0]["uris"][0], "nbd://127.0.0.1/tank/v");
        assert_eq!(value["clients"][0]["requests"], 12);
    }
}
