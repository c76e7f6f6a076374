//! `maintenance hardware`: the devices of pools, how well they are, and what is done to one of them.

use crate::context::Context;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::Result;
use api::{DeviceAction, Joining, Pool, Reply, Request, ScanState, Vdev};
use cli::text::number;

/// The word that has a device copied to in the order of the disk.
const SEQUENTIAL: &str = "sequential";

impl Shell<'_> {
    pub(crate) fn command_hardware(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Context::Hardware = self.here() else { return Ok(false) };
        let (how, words) = match words.split_last() {
            Some((&SEQUENTIAL, rest)) => (true, rest),
            _ => (false, &words[..]),
        };
        let (pool, device, action) = match *words {
            ["list"] if !how => {
                let text = self.lists_hardware()?.join("\n");
                self.print(&text);
                return Ok(true);
            }
            ["replace", pool, device] => (pool, device, DeviceAction::Replace(joining(device, how)?)),
            ["replace", pool, device, new] => (pool, device, DeviceAction::Replace(joining(new, how)?)),
            ["attach", pool, device, new] => (pool, device, DeviceAction::Attach(joining(new, how)?)),
            ["detach", pool, device] if !how => (pool, device, DeviceAction::Detach),
            ["offline", pool, device] if !how => {
                (pool, device, DeviceAction::Offline { temporary: false, fault: false })
            }
            ["online", pool, device] if !how => (pool, device, DeviceAction::Online { expand: false }),
            _ => return Ok(false),
        };
        let (name, device) = (pool.to_string(), device.to_string());
        let line = format!("shell: {}{}", words.join(" "), if how { " sequential" } else { "" });
        self.ask(&line, Request::PoolDevice { name, device, action })?;
        Ok(true)
    }

    pub(crate) fn lists_hardware(&mut self) -> Result<Vec<String>> {
        let Reply::Pools(pools) = self.ask("", Request::Pools { names: Vec::new() })? else {
            return Err(unexpected());
        };
        if pools.is_empty() {
            return Ok(vec!["There are no pools.\n".into()]);
        }
        let mut rows = Vec::new();
        for pool in &pools {
            let note = pool
                .problem
                .clone()
                .or_else(|| pool.suspended.clone())
                .or_else(|| scan(pool))
                .or_else(|| error_scrub(pool));
            rows.push(row(&pool.name, "", &pool.health, pool.vdevs.as_ref(), note));
            for top in pool.vdevs.iter().flat_map(|root| &root.children) {
                add(&mut rows, &pool.name, top, 0);
            }
        }
        let headings = ["POOL", "DEVICE", "STATE", "READ", "WRITE", "CKSUM", "NOTE"];
        Ok(vec![show::table("Devices of pools", &headings, &rows)])
    }
}

fn joining(device: &str, sequential: bool) -> Result<Joining> {
    if !device.starts_with('/') {
        return Err(format!("\"{device}\" is no absolute path of a device"));
    }
    Ok(Joining { device: device.into(), force: false, ashift: None, sequential })
}

fn add(rows: &mut Vec<Vec<String>>, pool: &str, vdev: &Vdev, depth: usize) {
    let name = cli::text::vdev_name::vdev_name(vdev, pool, Default::default());
    let note = rebuild(vdev).or_else(|| vdev.why.clone());
    rows.push(row("", &format!("{:depth$}{name}", ""), &vdev.state, Some(vdev), note));
    vdev.children.iter().for_each(|child| add(rows, pool, child, depth + 2));
}

fn row(pool: &str, device: &str, state: &str, vdev: Option<&Vdev>, note: Option<String>) -> Vec<String> {
    let count = |of: fn(&Vdev) -> u64| vdev.map_or_else(|| "-".into(), |v| number::count(of(v), false));
    vec![
        pool.into(),
        device.into(),
        state.into(),
        count(|v| v.read_errors),
        count(|v| v.write_errors),
        count(|v| v.checksum_errors),
        note.unwrap_or_default(),
    ]
}

/// How far the scrub or resilver under way is.
fn scan(pool: &Pool) -> Option<String> {
    let scan = pool.scan.as_ref().filter(|scan| scan.state == ScanState::Running)?;
    let what = match (scan.is_resilver, scan.paused) {
        (true, _) => "resilver",
        (false, None) => "scrub",
        (false, Some(_)) => "scrub paused",
    };
    Some(format!("{what}: {}", share(scan.issued, scan.to_examine)))
}

/// How far the scrub of the error log is.
fn error_scrub(pool: &Pool) -> Option<String> {
    let scrub = pool.error_scrub.as_ref().filter(|scrub| scrub.state == ScanState::Running)?;
    let what = if scrub.paused.is_some() { "error scrub paused" } else { "error scrub" };
    Some(format!("{what}: {} of {} blocks", scrub.examined, scrub.examined.saturating_add(scrub.to_examine)))
}

/// How far the copy in the order of the disk is.
fn rebuild(top: &Vdev) -> Option<String> {
    let rebuild = top.rebuild.as_ref().filter(|rebuild| rebuild.state == ScanState::Running)?;
    Some(format!("sequential resilver: {}", share(rebuild.scanned, rebuild.expected)))
}

fn share(done: u64, all: u64) -> String {
    let percent = if all == 0 { 0 } else { (u128::from(done.min(all)) * 100 / u128::from(all)) as u64 };
    format!("{percent}% of {}", number::bytes(all, false))
}
