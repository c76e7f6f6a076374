//! `zpool history`.

use crate::args::zpool::History;
use crate::expect_reply;
use crate::session::{Outcome, Session};
use crate::text::date::sortable;
use crate::text::visible::visible;
use api::{Did, HistoryRecord, Item, PoolHistory, Reply, Request};

pub(super) fn run(session: &mut Session<'_>, args: &History) -> Outcome {
    let histories = session.ask_each(&args.pools, |session, names| {
        let reply = session.ask(Request::PoolHistory { names })?;
        Ok(expect_reply!(reply, Reply::History(histories) => histories))
    })?;
    for history in histories {
        session.show(&render(&history, args.internal, args.long))?;
    }
    Ok(())
}

pub(super) fn render(history: &PoolHistory, internal: bool, long: bool) -> String {
    let shown = |r: &&HistoryRecord| internal || matches!(r.did, Did::Command(_));
    let lines = history.records.iter().filter(shown).map(|r| line(r, long));
    format!("History for '{}':\n{}\n", history.pool, lines.collect::<String>())
}

fn line(record: &HistoryRecord, long: bool) -> String {
    let mut text = record.time.map(sortable).unwrap_or_default();
    if let Some(ns) = record.elapsed_ns {
        text += &format!(" ({}ms)", ns / 1_000_000);
    }
    match &record.did {
        Did::Command(line) => text += &format!(" {}", visible(line)),
        Did::Internal { txg, name, text: what, dataset } => {
            let of =
                dataset.as_ref().map(|(name, id)| format!(" {} ({id})", visible(name))).unwrap_or_default();
            text += &format!(" [txg:{txg}] {}{of} {}", visible(name), visible(what));
        }
        Did::Event { event, txg, text: what } => {
            text += &format!(
                " [internal {} txg:{txg}] {}",
                EVENTS.get(*event as usize).unwrap_or(&"unrecognized"),
                visible(what)
            );
        }
        Did::Ioctl { name, input, output, errno } => {
            text += &format!(" ioctl {}\n", visible(name));
            text += &section("input", input);
            text += &section("output", output);
            if let Some(errno) = errno {
                text += &format!("    errno: {errno}\n");
            }
        }
        Did::Unknown(pairs) => {
            text += " unrecognized record:\n";
            dump(&mut text, pairs, 4);
        }
    }
    if long {
        text += &format!(" [{}]", origin(record));
    }
    text + "\n"
}

fn origin(record: &HistoryRecord) -> String {
    let mut text = String::new();
    if let Some(who) = record.who {
        // Only the superuser has the same name everywhere.
        text += &format!("user {who} {}", if who == 0 { "(root) " } else { "" });
    }
    if let Some(host) = &record.host {
        text += &format!("on {}", visible(host));
    }
    if let Some(zone) = &record.zone {
        text += &format!(":{}", visible(zone));
    }
    text
}

fn section(heading: &str, pairs: &[(String, Item)]) -> String {
    let mut text = String::new();
    if !pairs.is_empty() {
        text += &format!("    {heading}:\n");
        dump(&mut text, pairs, 8);
    }
    text
}

fn dump(text: &mut String, pairs: &[(String, Item)], indent: usize) {
    for (name, item) in pairs {
        let name = visible(name);
        match item {
            Item::Flag => *text += &format!("{:indent$}{name}\n", ""),
            Item::Text(value) => *text += &format!("{:indent$}{name}: {}\n", "", visible(value)),
            Item::List(pairs) => {
                *text += &format!("{:indent$}{name}:\n", "");
                dump(text, pairs, indent + 4);
            }
        }
    }
}

/// The events that software before features recorded by number.
const EVENTS: [&str; 41] = [
    "invalid event",
    "pool create",
    "vdev add",
    "pool remove",
    "pool destroy",
    "pool export",
    "pool import",
    "vdev attach",
    "vdev replace",
    "vdev detach",
    "vdev online",
    "vdev offline",
    "vdev upgrade",
    "pool clear",
    "pool scrub",
    "pool property set",
    "create",
    "clone",
    "destroy",
    "destroy_begin_sync",
    "inherit",
    "property set",
    "quota set",
    "permission update",
    "permission remove",
    "permission who remove",
    "promote",
    "receive",
    "rename",
    "reservation set",
    "replay_inc_sync",
    "replay_full_sync",
    "rollback",
    "snapshot",
    "filesystem version upgrade",
    "refquota set",
    "refreservation set",
    "pool scrub done",
    "user hold",
    "user release",
    "pool split",
];
