//! `zfs snapshot`, `rollback`, `clone`, `hold`, `holds` and `release`.

use crate::args::zfs::{Clone, Hold, Holds, Rollback, Snapshot};
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use crate::text::date;
use crate::text::table::{self, Column};
use api::{Reply, Request, Snapshots};

pub(super) fn take(session: &mut Session<'_>, args: &Snapshot) -> Outcome {
    session.order(Request::Snapshots(Snapshots::Take {
        names: args.snapshots.clone(),
        recursive: args.recursive,
        properties: args.properties.clone(),
    }))
}

pub(super) fn roll_back(session: &mut Session<'_>, args: &Rollback) -> Outcome {
    session.order(Request::Snapshots(Snapshots::Rollback {
        snapshot: args.snapshot.clone(),
        newer: args.recursive,
        clones: args.dependents,
        force: args.force,
    }))
}

pub(super) fn clone(session: &mut Session<'_>, args: &Clone) -> Outcome {
    let reply = session.ask(Request::Snapshots(Snapshots::Clone {
        snapshot: args.snapshot.clone(),
        name: args.dataset.clone(),
        properties: args.properties.clone(),
        parents: args.parents,
        unmounted: args.unmounted,
    }))?;
    if let Reply::Created { warning: Some(line), .. } = reply {
        session.complain(line);
        return Err(Failure::Failed(super::create::NOT_MOUNTED.into()));
    }
    Ok(())
}

pub(super) fn hold(session: &mut Session<'_>, args: &Hold) -> Outcome {
    let Hold { recursive, tag, snapshots } = args;
    session.order(Request::Snapshots(Snapshots::Hold {
        names: snapshots.clone(),
        tag: tag.clone(),
        recursive: *recursive,
    }))
}

pub(super) fn release(session: &mut Session<'_>, args: &Hold) -> Outcome {
    let Hold { recursive, tag, snapshots } = args;
    session.order(Request::Snapshots(Snapshots::Release {
        names: snapshots.clone(),
        tag: tag.clone(),
        recursive: *recursive,
    }))
}

pub(super) fn holds(session: &mut Session<'_>, args: &Holds) -> Outcome {
    let asked = Snapshots::Holds { names: args.snapshots.clone(), recursive: args.recursive };
    let holds = expect_reply!(session.ask(Request::Snapshots(asked))?, Reply::Holds(holds) => holds);
    if holds.is_empty() {
        return Ok(());
    }
    let time = |since: u64| if args.exact { since.to_string() } else { date::ctime(since) };
    let row = |hold: &api::Hold| vec![hold.snapshot.clone(), hold.tag.clone(), time(hold.since)];
    let rows: Vec<Vec<String>> = holds.iter().map(row).collect();
    let columns =
        ["NAME", "TAG", "TIMESTAMP"].map(|heading| Column { heading: heading.into(), right: false, min: 0 });
    session.print(&table::render(&columns, &rows, args.scripted))
}
