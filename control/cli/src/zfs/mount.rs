//! `zfs mount` and `zfs unmount`.

use crate::args::zfs::{Mount, Unmount};
use crate::expect_reply;
use crate::session::{Outcome, Session};
use crate::text::visible::visible;
use api::{Reply, Request};

pub(super) fn mount(session: &mut Session<'_>, args: &Mount) -> Outcome {
    if args.dataset.is_none() && !args.all {
        let mounted = expect_reply!(session.ask(Request::Mounts)?, Reply::Mounts(mounted) => mounted);
        let lines: String =
            mounted.iter().map(|m| format!("{:<30}  {}\n", visible(&m.dataset), visible(&m.at))).collect();
        return session.print(&lines);
    }
    session.order(Request::Mount(api::Mount {
        datasets: args.dataset.iter().cloned().collect(),
        overlay: args.overlay,
        options: args.options.clone(),
    }))
}

pub(super) fn unmount(session: &mut Session<'_>, args: &Unmount) -> Outcome {
    session.order(Request::Unmount(api::Unmount { what: args.what.clone(), force: args.force }))
}
