//! `zfs destroy`.

use crate::args::zfs::Destroy;
use crate::expect_reply;
use crate::session::{Outcome, Session};
use crate::text::number;
use crate::text::visible::visible;
use api::{Reply, Request};

pub(super) fn run(session: &mut Session<'_>, args: &Destroy) -> Outcome {
    let request = Request::DatasetDestroy {
        name: args.dataset.clone(),
        recursive: args.recursive,
        clones: args.dependents,
        defer: args.defer,
        force: args.force,
        dry_run: args.dry_run,
    };
    let (names, reclaimed) =
        expect_reply!(session.ask(request)?, Reply::Destroyed { names, reclaimed } => (names, reclaimed));
    if args.verbose {
        session.print(&report(&names, reclaimed, args))?;
    }
    Ok(())
}

fn report(names: &[String], reclaimed: u64, args: &Destroy) -> String {
    let snapshots_only = names.iter().all(|n| n.contains('@'));
    let verb = if args.dry_run { "would destroy" } else { "will destroy" };
    let mut text: String = match args.parsable {
        true => names.iter().map(|n| format!("destroy\t{n}\n")).collect(),
        false => names.iter().map(|n| format!("{verb} {}\n", visible(n))).collect(),
    };
    // What datasets give back is known only after their blocks were walked.
    if snapshots_only {
        let verb = if args.dry_run { "would reclaim" } else { "will reclaim" };
        text += &match args.parsable {
            true => format!("reclaim\t{reclaimed}\n"),
            false => format!("{verb} {}\n", number::bytes(reclaimed, false)),
        };
    }
    text
}
