//! `zpool create`.

use super::{absolute, tree};
use crate::args::{vdevs, zpool::Create};
use crate::session::{Failure, Outcome, Session};
use api::{NewPool, Request};

pub(super) fn run(session: &mut Session<'_>, args: &Create) -> Outcome {
    if args.pool.contains('/') {
        return Err(Failure::Failed(format!(
            "cannot create '{}': invalid character '/' in pool name; use 'zfs create' to create a dataset",
            args.pool
        )));
    }
    let new = NewPool {
        name: args.pool.clone(),
        vdevs: groups(args)?,
        force: args.force,
        dry_run: args.dry_run,
        no_features: args.no_features,
        properties: properties(args),
        fs_properties: fs_properties(args),
        temporary_name: args.temporary_name.clone(),
    };
    session.order(Request::PoolCreate(new.clone()))?;
    if args.dry_run {
        let layout = tree::of_groups(&new.vdevs);
        session.print(&format!(
            "would create '{}' with the following layout:\n\n{}",
            args.pool,
            tree::render(&args.pool, &layout)
        ))?;
    }
    Ok(())
}

fn groups(args: &Create) -> Outcome<Vec<api::VdevGroup>> {
    let mut groups = vdevs::parse(&args.vdev).map_err(Failure::Failed)?;
    for device in groups.iter_mut().flat_map(|g| &mut g.devices) {
        *device = absolute(device);
    }
    Ok(groups)
}

fn properties(args: &Create) -> Vec<(String, String)> {
    let mut properties = args.properties.clone();
    if let Some(root) = &args.root {
        properties.push(("altroot".into(), root.clone()));
    }
    // A pool that is here under a foreign name or root is not remembered by it, unless that is asked for.
    let passing = args.root.is_some() || args.temporary_name.is_some();
    if passing && !properties.iter().any(|(name, _)| name == "cachefile") {
        properties.push(("cachefile".into(), "none".into()));
    }
    properties
}

fn fs_properties(args: &Create) -> Vec<(String, String)> {
    let mut properties = args.fs_properties.clone();
    if let Some(mountpoint) = &args.mountpoint {
        properties.retain(|(name, _)| name != "mountpoint");
        properties.push(("mountpoint".into(), mountpoint.clone()));
    }
    properties
}
