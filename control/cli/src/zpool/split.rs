//! `zpool split`.

use super::{absolute, pools, remove, tree};
use crate::args::zpool::{Split, Style};
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use api::{Layout, PoolSplit, Reply, Request, VdevGroup};

pub(super) fn run(session: &mut Session<'_>, args: &Split) -> Outcome {
    if args.load_keys {
        return Err(Failure::Failed(super::import::NO_KEYS.into()));
    }
    let root = pools(session, std::slice::from_ref(&args.pool))?.pop().and_then(|pool| pool.vdevs);
    // A relative path is one for this program; a name or a guid is the pool's.
    let known = |device: &String| {
        let found = root.as_ref().and_then(|root| remove::find(root, device));
        found.map_or_else(|| absolute(device), |vdev| vdev.guid.to_string())
    };
    let mut properties = args.properties.clone();
    if let Some(altroot) = &args.root {
        properties.push(("altroot".into(), altroot.clone()));
    }
    let split = PoolSplit {
        pool: args.pool.clone(),
        new_name: args.new_pool.clone(),
        devices: args.devices.iter().map(known).collect(),
        dry_run: args.dry_run,
        properties,
    };
    let devices =
        expect_reply!(session.ask(Request::PoolSplit(split))?, Reply::SplitOff { devices } => devices);
    if !args.dry_run {
        return Ok(());
    }
    let group = |device: String| VdevGroup {
        class: api::Class::Normal,
        layout: Layout::Stripe,
        devices: vec![device],
    };
    let groups: Vec<VdevGroup> = devices.into_iter().map(group).collect();
    let style = Style {
        guids: args.names.guids,
        links: args.names.links,
        paths: args.names.paths,
        ..Style::default()
    };
    let text = tree::render_grown(&args.new_pool, None, &tree::of_groups(&groups), style);
    session.print(&format!("would create '{}' with the following layout:\n\n{text}", args.new_pool))
}
