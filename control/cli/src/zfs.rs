//! `zfs`: one file for each group of subcommands.

mod create;
mod destroy;
pub(crate) mod fields;
mod get;
mod list;
mod mount;
mod project;
mod scope;
mod set;
mod snapshots;
mod userspace;

use crate::args::zfs::Command;
use crate::session::{Outcome, Session};
use api::{Request, Snapshots, Whose};

pub(crate) fn run(session: &mut Session<'_>, command: &Command) -> Outcome {
    match command {
        Command::Create(args) => create::run(session, args),
        Command::Destroy(args) => destroy::run(session, args),
        Command::Rename(args) => session.order(Request::DatasetRename {
            from: args.from.clone(),
            to: args.to.clone(),
            parents: args.parents,
            recursive: args.recursive,
            force: args.force,
        }),
        Command::Snapshot(args) => snapshots::take(session, args),
        Command::Rollback(args) => snapshots::roll_back(session, args),
        Command::Clone(args) => snapshots::clone(session, args),
        Command::Promote { dataset } => {
            session.order(Request::Snapshots(Snapshots::Promote { name: dataset.clone() }))
        }
        Command::Hold(args) => snapshots::hold(session, args),
        Command::Release(args) => snapshots::release(session, args),
        Command::Holds(args) => snapshots::holds(session, args),
        Command::List(args) => list::run(session, args),
        Command::Get(args) => get::run(session, args),
        Command::Set(args) => set::run(session, args),
        Command::Userspace(args) => userspace::run(session, args, Whose::Users),
        Command::Groupspace(args) => userspace::run(session, args, Whose::Groups),
        Command::Projectspace(args) => userspace::run(session, args, Whose::Projects),
        Command::Project(args) => project::run(session, args),
        Command::Inherit(args) => set::inherit(session, args),
        Command::Mount(args) => mount::mount(session, args),
        Command::Unmount(args) => mount::unmount(session, args),
        Command::Version { json } => crate::zpool::version(session, "zfs", *json),
    }
}

#[cfg(test)]
mod tests;
