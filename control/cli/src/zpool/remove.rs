//! `zpool remove`.

use super::{absolute, pools};
use crate::args::zpool::{Remove, Style};
use crate::session::{Failure, Outcome, Session};
use crate::text::vdev_name::vdev_name;
use api::{Request, Vdev};

pub(super) fn run(session: &mut Session<'_>, args: &Remove) -> Outcome {
    if args.stop {
        return Err(Failure::Failed("cannot cancel removal: operation is not in progress".into()));
    }
    let found = pools(session, std::slice::from_ref(&args.pool))?;
    let root = found.into_iter().next().and_then(|pool| pool.vdevs);
    // A removal is over when the request is, so there is nothing to wait for with -w.
    session.for_each(&args.devices, |session, device| {
        let vdev = root.as_ref().and_then(|root| find(root, device));
        let missing = || Failure::Failed(format!("cannot remove {device}: no such device in pool"));
        let vdev = vdev.ok_or_else(missing)?;
        if args.dry_run {
            // Nothing is moved off a log, a cache or a spare, so nothing has to be found elsewhere.
            return session.print(&match args.exact {
                true => format!("{device} 0\n"),
                false => format!("Memory that will be used after removing {device}: 0\n"),
            });
        }
        session.order(Request::PoolRemove {
            name: args.pool.clone(),
            guid: vdev.guid,
            device: device.into(),
        })?;
        // One command is one line of the pool's history.
        session.command.clear();
        Ok(())
    })
}

/// A vdev by what people call it: its guid, its name in listings, or its path.
pub(super) fn find<'a>(root: &'a Vdev, word: &str) -> Option<&'a Vdev> {
    let path = absolute(word);
    let is_it = |vdev: &&Vdev| {
        vdev.guid.to_string() == word
            || vdev.path.as_deref().is_some_and(|own| own == word || own == path)
            || vdev_name(vdev, "", Style::default()) == word
    };
    root.walk().into_iter().skip(1).find(is_it)
}
