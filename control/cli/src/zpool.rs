//! `zpool`: one file for each group of subcommands; the layouts are pure and tested against OpenZFS's own output.

mod add;
mod cache_file;
mod create;
mod device;
mod events;
mod get;
mod get_vdev;
mod history;
mod import;
mod importable;
mod iostat;
mod iostat_json;
mod iostat_layout;
mod list;
mod list_vdevs;
mod reason;
mod remove;
mod scan;
mod scrub;
mod split;
mod status;
mod status_json;
mod sweep;
mod tree;
mod upgrade;
mod wait;

use crate::args::tail::{self, Repeat};
use crate::args::zpool::{Command, Stamp};
use crate::session::{Failure, Outcome, Session};
use crate::{expect_reply, text};
use api::{Pool, Reply, Request};

pub(crate) fn run(session: &mut Session<'_>, command: &Command) -> Outcome {
    match command {
        Command::Create(args) => create::run(session, args),
        Command::Add(args) => add::run(session, args),
        Command::Remove(args) => remove::run(session, args),
        Command::Destroy(args) => {
            session.order(Request::PoolDestroy { name: args.pool.clone(), force: args.force })
        }
        Command::Import(args) => import::run(session, args),
        Command::Export(args) => export(session, args),
        Command::List(args) => list::run(session, args),
        Command::Status(args) => status::run(session, args),
        Command::Iostat(args) => iostat::run(session, args),
        Command::Get(args) => get::run(session, args),
        Command::Set(args) => {
            let (property, value) = args.setting.clone();
            let warning = get_vdev::warning(args);
            session.order(Request::PoolSet {
                name: args.pool.clone(),
                vdev: args.vdev.clone(),
                property,
                value,
            })?;
            warning.into_iter().for_each(|w| session.complain(w));
            Ok(())
        }
        Command::History(args) => history::run(session, args),
        Command::Events(args) => events::run(session, args),
        Command::Sync { pools } => session.order(Request::PoolSync { names: pools.clone() }),
        Command::Clear(args) => {
            session.order(Request::PoolClear { name: args.pool.clone(), device: args.device.clone() })
        }
        Command::Offline(args) => device::offline(session, args),
        Command::Online(args) => device::online(session, args),
        Command::Attach(args) => device::attach(session, args),
        Command::Detach { pool, device } => device::detach(session, pool, device),
        Command::Replace(args) => device::replace(session, args),
        Command::Scrub(args) => scrub::run(session, args),
        Command::Resilver { pools } => session
            .for_each(pools, |session, name| session.order(Request::PoolResilver { name: name.into() }))
            .and_then(|()| wait::in_direct_mode(session, pools)),
        Command::Reopen { pools: names, no_restart: _ } => {
            let names = match names.is_empty() {
                true => pools(session, &[])?.into_iter().map(|p| p.name).collect(),
                false => names.clone(),
            };
            session
                .for_each(&names, |session, name| session.order(Request::PoolReopen { name: name.into() }))?;
            wait::in_direct_mode(session, &names)
        }
        Command::Prefetch { tables: crate::args::zpool::Tables::Ddt, pool } => {
            let request = Request::PoolPrefetch { name: pool.clone() };
            let bytes = expect_reply!(session.ask(request)?, Reply::Count(bytes) => bytes);
            match bytes {
                0 => session.print(&format!("pool '{pool}' has no tables of deduplicated blocks\n")),
                _ => Ok(()),
            }
        }
        Command::Reguid { guid, pool } => {
            session.order(Request::PoolReguid { name: pool.clone(), guid: *guid })
        }
        Command::Split(args) => split::run(session, args),
        Command::Trim(args) => sweep::trim(session, args),
        Command::Initialize(args) => sweep::initialize(session, args),
        Command::Upgrade(args) => upgrade::run(session, args),
        Command::Wait(args) => wait::run(session, args),
        Command::Labelclear { force, device } => {
            session.order(Request::LabelClear { device: absolute(device), force: *force })
        }
        Command::Version { json } => version(session, "zpool", *json),
    }
}

fn export(session: &mut Session<'_>, args: &crate::args::zpool::Export) -> Outcome {
    let names = match args.all {
        true => pools(session, &[])?.into_iter().map(|p| p.name).collect(),
        false => args.pools.clone(),
    };
    session.for_each(&names, |session, name| {
        session.order(Request::PoolExport { name: name.into(), force: args.force })
    })
}

pub(crate) fn version(session: &mut Session<'_>, program: &str, json: bool) -> Outcome {
    let version = concat!("cenote-", env!("CARGO_PKG_VERSION"));
    if !json {
        return session.print(&format!("{version}\n"));
    }
    let mut content = serde_json::Map::new();
    content.insert("userland".into(), version.into());
    session.print(&text::json::document(&format!("{program} version"), "zfs_version", content))
}

/// Pools by name, or all of them.
fn pools(session: &mut Session<'_>, names: &[String]) -> Outcome<Vec<Pool>> {
    session.ask_each(names, |session, names| {
        Ok(expect_reply!(session.ask(Request::Pools { names })?, Reply::Pools(pools) => pools))
    })
}

/// Where a device is, as the daemon can find it from wherever it stands. A name alone may be short for one in /dev.
fn absolute(device: &str) -> String {
    let in_dev = format!("/dev/{device}");
    let is_short = !device.contains('/') && !std::path::Path::new(device).exists();
    if is_short && std::path::Path::new(&in_dev).exists() {
        return in_dev;
    }
    std::path::absolute(device).map_or_else(|_| device.into(), |path| path.to_string_lossy().into_owned())
}

/// Shows something once, or again and again.
fn repeat(
    session: &mut Session<'_>,
    words: &[String],
    stamp: Option<Stamp>,
    show: impl FnMut(&mut Session<'_>, &[String], bool) -> Outcome,
) -> Outcome {
    repeat_after(session, words, stamp, false, show)
}

/// As [`repeat`]; with `omit_first` the first look shows nothing and does not count.
fn repeat_after(
    session: &mut Session<'_>,
    words: &[String],
    stamp: Option<Stamp>,
    omit_first: bool,
    mut show: impl FnMut(&mut Session<'_>, &[String], bool) -> Outcome,
) -> Outcome {
    let (names, repeat) = tail::split(words).map_err(Failure::Usage)?;
    let mut left = repeat.and_then(|r| r.count).map(|count| count + u64::from(omit_first));
    let mut first = true;
    loop {
        if !(first && omit_first) {
            print_stamp(session, stamp)?;
        }
        show(session, &names, first)?;
        first = false;
        let Some(Repeat { every, .. }) = repeat else { return Ok(()) };
        if let Some(left) = &mut left {
            *left -= 1;
            if *left == 0 {
                return Ok(());
            }
        }
        std::thread::sleep(every);
    }
}

fn print_stamp(session: &mut Session<'_>, stamp: Option<Stamp>) -> Outcome {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    match stamp {
        None => Ok(()),
        Some(Stamp::Unix) => session.print(&format!("{now}\n")),
        Some(Stamp::Date) => session.print(&format!("{}\n", text::date::ctime(now))),
    }
}

#[cfg(test)]
mod tests;
