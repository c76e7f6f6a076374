//! `zpool events`.

use crate::args::zpool::Events;
use crate::expect_reply;
use crate::session::{Outcome, Session};
use crate::text::date::ctime;
use crate::text::visible::visible;
use api::{Event, Reply, Request};
use std::time::Duration;

/// How often it is asked for more.
const LOOK: Duration = Duration::from_millis(500);

/// States of devices by their numbers in OpenZFS.
const STATES: [&str; 8] =
    ["UNKNOWN", "CLOSED", "OFFLINE", "REMOVED", "UNAVAIL", "FAULTED", "DEGRADED", "ONLINE"];

pub(super) fn run(session: &mut Session<'_>, args: &Events) -> Outcome {
    if args.clear {
        let reply = session.ask(Request::EventsClear)?;
        let count = expect_reply!(reply, Reply::Count(count) => count);
        return session.print(&format!("cleared {count} events\n"));
    }
    if !args.scripted {
        session.print(&format!("{:<30} {}\n", "TIME", "CLASS"))?;
    }
    let mut since = 0;
    loop {
        let reply = session.ask(Request::Events { since })?;
        let events = expect_reply!(reply, Reply::Events(events) => events);
        since = events.last().map_or(since, |event| event.id);
        let wanted = |event: &&Event| args.pool.is_none() || event.field("pool") == args.pool.as_deref();
        let text: String = events.iter().filter(wanted).map(|event| render(event, args)).collect();
        session.print(&text)?;
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

pub(super) fn render(event: &Event, args: &Events) -> String {
    // "Nov 20 2026 23:00:11.000000001"
    let date = ctime(event.seconds);
    let time = format!("{} {} {}.{:09}", &date[4..10], &date[20..], &date[11..19], event.nanos);
    let mut text = match args.scripted {
        true => format!("{time}\t{}\n", event.class),
        false => format!("{time:<30} {}\n", event.class),
    };
    if args.verbose {
        let number = |value: &str| value.starts_with("0x") || value.bytes().all(|b| b.is_ascii_digit());
        let shown = |name: &str, value: &str| match STATES.iter().position(|state| *state == value) {
            Some(state) if name.ends_with("state") => format!("\"{value}\" ({state:#x})"),
            _ if number(value) => value.to_string(),
            _ => format!("\"{value}\""),
        };
        text += &format!("        version = 0x0\n        class = \"{}\"\n", event.class);
        let escaped = |text: &str| if args.scripted { text.to_string() } else { visible(text) };
        let lines =
            event.fields.iter().map(|(n, v)| format!("        {} = {}\n", escaped(n), shown(n, &escaped(v))));
        text += &lines.collect::<String>();
        text += &format!(
            "        time = {:#x} {:#x}\n        eid = {:#x}\n\n",
            event.seconds, event.nanos, event.id
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_printed_as_openzfs_prints_them() {
        let fields = [("pool", "tank"), ("pool_guid", "0x7"), ("errors", "12"), ("vdev_state", "OFFLINE")];
        let event = Event {
            id: 10,
            seconds: 1_795_215_611,
            nanos: 5,
            class: "sysevent.fs.zfs.scrub_start".into(),
            fields: fields.map(|(n, v)| (n.to_string(), v.to_string())).into(),
        };
        let mut args = Events { scripted: true, ..Events::default() };
        assert_eq!(render(&event, &args), "Nov 20 2026 23:00:11.000000005\tsysevent.fs.zfs.scrub_start\n");
        (args.scripted, args.verbose) = (false, true);
        assert_eq!(
            render(&event, &args),
            "Nov 20 2026 23:00:11.000000005 sysevent.fs.zfs.scrub_start\n        version = 0x0\n        class = \"sysevent.fs.zfs.scrub_start\"\n        \
             pool = \"tank\"\n        pool_guid = 0x7\n        errors = 12\n        vdev_state = \"OFFLINE\" (0x2)\n        time = 0x6b00d0fb 0x5\n        eid = 0xa\n\n"
        );
    }
}
