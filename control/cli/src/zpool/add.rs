//! `zpool add`.

use super::{absolute, pools, tree};
use crate::args::{
    vdevs,
    zpool::{Add, Style},
};
use crate::session::{Failure, Outcome, Session};
use api::{NewVdevs, Request};

pub(super) fn run(session: &mut Session<'_>, args: &Add) -> Outcome {
    let mut groups = vdevs::parse_more(&args.vdev).map_err(Failure::Failed)?;
    for device in groups.iter_mut().flat_map(|g| &mut g.devices) {
        *device = absolute(device);
    }
    let new = NewVdevs {
        pool: args.pool.clone(),
        vdevs: groups,
        dry_run: args.dry_run,
        allow_in_use: args.force || args.allow_in_use,
        allow_replication_mismatch: args.force || args.allow_replication_mismatch,
        allow_ashift_mismatch: args.force || args.allow_ashift_mismatch,
        ashift: ashift(&args.properties)?,
    };
    session.order(Request::PoolAdd(new.clone()))?;
    if !args.dry_run {
        return Ok(());
    }
    let pool = pools(session, std::slice::from_ref(&args.pool))?;
    let root = pool.first().and_then(|p| p.vdevs.as_ref());
    let style = Style {
        guids: args.names.guids,
        links: args.names.links,
        paths: args.names.paths,
        ..Style::default()
    };
    let text = tree::render_grown(&args.pool, root, &tree::of_groups(&new.vdevs), style);
    session.print(&format!("would update '{}' to the following configuration:\n\n{text}", args.pool))
}

pub(super) fn ashift(properties: &[(String, String)]) -> Outcome<Option<u64>> {
    let mut ashift = None;
    for (name, value) in properties {
        if name != "ashift" {
            return Err(Failure::Usage(format!(
                "property '{name}' is not valid at this time; only ashift is"
            )));
        }
        let number = value.parse().ok().filter(|n| *n == 0 || (9..=16).contains(n));
        let wrong =
            || Failure::Usage(format!("invalid 'ashift={value}' property: only 0 and 9 to 16 are allowed"));
        ashift = Some(number.ok_or_else(wrong)?);
    }
    Ok(ashift)
}
