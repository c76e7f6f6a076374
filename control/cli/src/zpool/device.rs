//! `zpool offline`, `online`, `attach`, `detach` and `replace`.

use super::{absolute, add, pools, remove};
use crate::args::zpool::{Attach, Join, Offline, Online, Replace, Style};
use crate::session::{Failure, Outcome, Session};
use crate::text::vdev_name::vdev_name;
use api::{DeviceAction, Joining, Request, Vdev};
use std::time::Duration;

/// How often it is looked whether a resilver is done.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn offline(session: &mut Session<'_>, args: &Offline) -> Outcome {
    session.for_each(&args.devices, |session, device| {
        let action = DeviceAction::Offline { temporary: args.temporary, fault: args.fault };
        order(session, &args.pool, device, action)
    })
}

pub(super) fn online(session: &mut Session<'_>, args: &Online) -> Outcome {
    session.for_each(&args.devices, |session, device| {
        order(session, &args.pool, device, DeviceAction::Online { expand: args.expand })?;
        let root = root_of(session, &args.pool)?;
        let state = root.as_ref().and_then(|root| remove::find(root, device)).map(|vdev| vdev.state.clone());
        let help = match state.as_deref() {
            None | Some("ONLINE") => return Ok(()),
            Some("FAULTED" | "DEGRADED") => "use 'zpool clear' to restore a faulted device",
            Some(_) => "use 'zpool replace' to replace devices that are no longer present",
        };
        session.print(&format!("warning: device '{device}' onlined, but remains in faulted state\n{help}\n"))
    })
}

pub(super) fn attach(session: &mut Session<'_>, args: &Attach) -> Outcome {
    let joining = joining(&args.join, &args.new_device)?;
    order(session, &args.pool, &args.device, DeviceAction::Attach(joining))?;
    wait_if(session, &args.pool, args.join.wait)
}

pub(super) fn replace(session: &mut Session<'_>, args: &Replace) -> Outcome {
    let joining = joining(&args.join, args.new_device.as_ref().unwrap_or(&args.device))?;
    order(session, &args.pool, &args.device, DeviceAction::Replace(joining))?;
    wait_if(session, &args.pool, args.join.wait)
}

pub(super) fn detach(session: &mut Session<'_>, pool: &str, device: &str) -> Outcome {
    order(session, pool, device, DeviceAction::Detach)
}

fn joining(join: &Join, device: &str) -> Outcome<Joining> {
    Ok(Joining {
        device: absolute(device),
        force: join.force,
        ashift: add::ashift(&join.properties)?,
        sequential: join.sequential,
    })
}

fn order(session: &mut Session<'_>, pool: &str, device: &str, action: DeviceAction) -> Outcome {
    // A relative path is one for this program; a name or a guid is the pool's.
    let root = root_of(session, pool)?;
    let known = root.as_ref().and_then(|root| remove::find(root, device));
    let device = known.map_or_else(|| device.to_string(), |vdev| vdev.guid.to_string()).clone();
    let shown = known.map(|vdev| vdev_name(vdev, pool, Style { paths: true, ..Style::default() }));
    let name = pool.to_string();
    let done = session.order(Request::PoolDevice { name, device: device.clone(), action });
    done.map_err(|failure| match (failure, shown) {
        (Failure::Failed(message), Some(path)) => Failure::Failed(message.replacen(&device, &path, 1)),
        (failure, _) => failure,
    })
}

fn root_of(session: &mut Session<'_>, pool: &str) -> Outcome<Option<Vdev>> {
    Ok(pools(session, &[pool.to_string()])?.into_iter().next().and_then(|pool| pool.vdevs))
}

/// Without a daemon the resilver ends with this program, and goes on with the next one: so it waits. What a device has been
/// replaced by is whole a moment before the old one has left.
fn wait_if(session: &mut Session<'_>, pool: &str, wait: bool) -> Outcome {
    if !wait && session.caller.outlives_us() {
        return Ok(());
    }
    loop {
        let root = root_of(session, pool)?;
        let waits = |vdev: &&Vdev| {
            let is_leaving =
                vdev.kind == "replacing" && vdev.children.last().is_some_and(|new| new.state == "ONLINE");
            is_leaving || vdev.why.as_deref().is_some_and(|why| why.contains("resilver"))
        };
        if root.is_none_or(|root| !root.walk().iter().any(waits)) {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}
