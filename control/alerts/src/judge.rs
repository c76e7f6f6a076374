//! Which events are alerts, and what an alert says.
//!
//! ```text
//!   class of the event ─▶ row of CLASSES ─▶ severity and sentence          no row: no alert
//!                                              │
//!                 the same class of the same thing within QUIET: counted, and told with the next one
//! ```
//!
//! Logins that failed are an alert once there are as many within a minute as was set.

use api::Event;
use api::alerts::Severity;
use std::collections::{BTreeMap, VecDeque};

/// How long one kind of event of one thing is silent after an alert, in seconds.
const QUIET: u64 = 60;
/// Things that are remembered: devices of large pools, twice over.
const THINGS_MAX: usize = 4096;
/// Of what strangers say, as much as a message takes.
const WORD_MAX: usize = 128;

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    pub severity: Severity,
    /// Seconds since 1970.
    pub seconds: u64,
    pub class: String,
    /// One sentence, without control characters.
    pub summary: String,
    pub fields: Vec<(String, String)>,
}

/// What it has seen. Pure: time is what it is given.
#[derive(Debug)]
pub struct Judge {
    /// Failed logins within a minute that are an alert; 0: none are.
    pub failed_logins: u64,
    seen: BTreeMap<(String, String), Seen>,
    logins: VecDeque<u64>,
}

#[derive(Debug)]
struct Seen {
    told: u64,
    /// How many came since, which were not told.
    held: u64,
}

type Said = (Severity, String);

fn field<'a>(event: &'a Event, name: &str) -> &'a str {
    event.field(name).unwrap_or("?")
}

fn device(event: &Event) -> &str {
    event.field("vdev_path").or(event.field("vdev_guid")).unwrap_or("a device")
}

fn errors(event: &Event) -> Said {
    let [read, write] = ["vdev_read_errors", "vdev_write_errors"].map(|name| field(event, name));
    let pool = field(event, "pool");
    (
        Severity::Warning,
        format!("pool {pool}: {}: {read} read and {write} write errors so far", device(event)),
    )
}

fn checksum(event: &Event) -> Said {
    let (pool, count) = (field(event, "pool"), field(event, "vdev_cksum_errors"));
    (Severity::Warning, format!("pool {pool}: {}: {count} checksum errors so far", device(event)))
}

fn lost(event: &Event) -> Said {
    (Severity::Error, format!("pool {}: data is lost: {}", field(event, "pool"), field(event, "name")))
}

fn suspended(event: &Event) -> Said {
    (Severity::Error, format!("pool {} is suspended: {}", field(event, "pool"), field(event, "why")))
}

fn state(event: &Event) -> Said {
    let (pool, now, was) = (field(event, "pool"), field(event, "vdev_state"), field(event, "vdev_laststate"));
    let severity = if now == "ONLINE" { Severity::Info } else { Severity::Warning };
    (severity, format!("pool {pool}: {} is {now}; it was {was}", device(event)))
}

fn health(event: &Event) -> Said {
    let (pool, now, was) = (field(event, "pool"), field(event, "health"), field(event, "was"));
    match now {
        "ONLINE" => (Severity::Info, format!("pool {pool} has its redundancy back: it was {was}")),
        "DEGRADED" => (Severity::Warning, format!("pool {pool} is DEGRADED: 'zpool status {pool}' says why")),
        _ => (Severity::Error, format!("pool {pool} is {now}: 'zpool status {pool}' says why")),
    }
}

fn scan(what: &str, event: &Event) -> Said {
    let pool = field(event, "pool");
    match field(event, "errors") {
        "0" => (Severity::Info, format!("pool {pool}: the {what} found nothing that it could not repair")),
        count => (
            Severity::Error,
            format!("pool {pool}: the {what} found {count} errors that it could not repair"),
        ),
    }
}

fn scrub(event: &Event) -> Said {
    scan("scrub", event)
}

fn error_scrub(event: &Event) -> Said {
    scan("error scrub", event)
}

fn resilver(event: &Event) -> Said {
    scan("resilver", event)
}

fn scrub_stopped(event: &Event) -> Said {
    (Severity::Info, format!("pool {}: the scrub was stopped", field(event, "pool")))
}

fn space(event: &Event) -> Said {
    let [pool, percent, limit] = ["pool", "percent", "limit"].map(|name| field(event, name));
    match field(event, "is") {
        "above" => (Severity::Warning, format!("pool {pool} is {percent} % full, above {limit} %")),
        _ => (Severity::Info, format!("pool {pool} is {percent} % full, below {limit} % again")),
    }
}

fn slow(event: &Event) -> Said {
    let [pool, count, limit] = ["pool", "count", "limit"].map(|name| field(event, name));
    (Severity::Warning, format!("pool {pool}: {count} transaction groups took longer than {limit} s to sync"))
}

fn left_out(event: &Event) -> Said {
    let [lun, why] = ["lun", "why"].map(|name| field(event, name));
    (Severity::Warning, format!("the LUN {lun} is not served: {why}"))
}

fn login(event: &Event) -> Said {
    let [user, address, door] = ["user", "address", "door"].map(|name| field(event, name));
    (Severity::Warning, format!("logins fail: the last as '{user}' from {address} ({door})"))
}

/// The class of an event, what of it names the thing that it is of, and what is said of it.
const CLASSES: &[(&str, &[&str], fn(&Event) -> Said)] = &[
    ("ereport.fs.zfs.io", &["pool", "vdev_guid"], errors),
    ("ereport.fs.zfs.checksum", &["pool", "vdev_guid"], checksum),
    ("ereport.fs.zfs.data", &["pool"], lost),
    ("ereport.fs.zfs.io_failure", &["pool"], suspended),
    ("resource.fs.zfs.statechange", &["pool", "vdev_guid", "vdev_state"], state),
    ("sysevent.fs.zfs.scrub_finish", &["pool", "errors"], scrub),
    ("sysevent.fs.zfs.scrub_abort", &["pool"], scrub_stopped),
    ("sysevent.fs.zfs.errorscrub_finish", &["pool", "errors"], error_scrub),
    ("sysevent.fs.zfs.resilver_finish", &["pool", "errors"], resilver),
    ("sysevent.cenote.pool_health", &["pool", "health"], health),
    ("sysevent.cenote.pool_space", &["pool", "is"], space),
    ("sysevent.cenote.sync_slow", &["pool"], slow),
    ("sysevent.cenote.lun_left_out", &["lun", "why"], left_out),
    (LOGIN, &[], login),
];
const LOGIN: &str = "sysevent.cenote.login_failed";

impl Judge {
    pub fn new(failed_logins: u64) -> Judge {
        Judge { failed_logins, seen: BTreeMap::new(), logins: VecDeque::new() }
    }

    /// The alert that an event is. `now` counts seconds, and only forward.
    pub fn note(&mut self, event: &Event, now: u64) -> Option<Alert> {
        let (class, names, say) = CLASSES.iter().find(|(class, ..)| *class == event.class)?;
        if *class == LOGIN && !self.are_many(now) {
            return None;
        }
        let thing: Vec<&str> = names.iter().map(|name| field(event, name)).collect();
        let held = self.is_news((class.to_string(), thing.join("\n")), now)?;
        let (severity, mut summary) = say(event);
        if held > 0 {
            summary += &format!(" ({held} more like it since the last alert)");
        }
        let fields = event.fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
        let summary = plain(&summary);
        Some(Alert { severity, seconds: event.seconds, class: event.class.clone(), summary, fields })
    }

    /// One more login has failed: whether that makes too many within a minute.
    fn are_many(&mut self, now: u64) -> bool {
        let enough = usize::try_from(self.failed_logins.min(10_000)).unwrap_or(10_000);
        self.logins.push_back(now);
        while self.logins.front().is_some_and(|first| now.saturating_sub(*first) >= QUIET) {
            self.logins.pop_front();
        }
        while self.logins.len() > enough.max(1) {
            self.logins.pop_front();
        }
        enough > 0 && self.logins.len() >= enough
    }

    /// How many were held back before, if this one is told.
    fn is_news(&mut self, key: (String, String), now: u64) -> Option<u64> {
        if let Some(seen) = self.seen.get_mut(&key)
            && now.saturating_sub(seen.told) < QUIET
        {
            seen.held += 1;
            return None;
        }
        if self.seen.len() >= THINGS_MAX {
            self.seen.retain(|_, seen| now.saturating_sub(seen.told) < QUIET);
        }
        if self.seen.len() >= THINGS_MAX {
            self.seen.pop_first();
        }
        let before = self.seen.insert(key, Seen { told: now, held: 0 });
        Some(before.map_or(0, |seen| seen.held))
    }
}

/// Names come from disks and strangers: no line of a log or a mail is ended by one.
fn plain(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(WORD_MAX * 4).map(clean).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(class: &str, fields: &[(&str, &str)]) -> Event {
        let fields = fields.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        Event { id: 1, seconds: 1_800_000_000, nanos: 0, class: class.into(), fields }
    }

    #[test]
    fn events_are_told_in_plain_words_with_how_bad_they_are() {
        let device = [("pool", "tank"), ("vdev_guid", "0x1"), ("vdev_path", "/dev/sda")];
        let with = |more: &[(&'static str, &'static str)]| [&device[..], more].concat();
        use Severity::{Error, Info, Warning};
        for (class, fields, severity, expected) in [
            (
                "ereport.fs.zfs.checksum",
                with(&[("vdev_cksum_errors", "3")]),
                Warning,
                "pool tank: /dev/sda: 3 checksum errors so far",
            ),
            (
                "resource.fs.zfs.statechange",
                with(&[("vdev_state", "FAULTED"), ("vdev_laststate", "ONLINE")]),
                Warning,
                "pool tank: /dev/sda is FAULTED; it was ONLINE",
            ),
            (
                "sysevent.cenote.pool_health",
                with(&[("health", "ONLINE"), ("was", "DEGRADED")]),
                Info,
                "pool tank has its redundancy back: it was DEGRADED",
            ),
            (
                "sysevent.fs.zfs.scrub_finish",
                with(&[("errors", "2")]),
                Error,
                "pool tank: the scrub found 2 errors that it could not repair",
            ),
            (
                "sysevent.cenote.pool_space",
                with(&[("is", "above"), ("percent", "91"), ("limit", "90")]),
                Warning,
                "pool tank is 91 % full, above 90 %",
            ),
            (
                "sysevent.cenote.lun_left_out",
                with(&[("lun", "a/v"), ("why", "its number 0 is that of the LUN 'tank/v'")]),
                Warning,
                "the LUN a/v is not served: its number 0 is that of the LUN 'tank/v'",
            ),
        ] {
            let alert = Judge::new(1).note(&event(class, &fields), 0).unwrap();
            assert_eq!((alert.severity, alert.summary.as_str()), (severity, expected));
        }
        assert_eq!(Judge::new(1).note(&event("sysevent.fs.zfs.pool_create", &device), 0), None);
    }

    #[test]
    fn every_class_says_something_of_an_event_that_lacks_its_fields() {
        for (class, ..) in CLASSES {
            let alert = Judge::new(1).note(&event(class, &[]), 0).unwrap();
            assert!(!alert.summary.is_empty(), "{class}");
        }
    }

    #[test]
    fn what_comes_again_is_told_once_a_minute_with_how_often() {
        let mut judge = Judge::new(1);
        let of = |guid: &str| event("ereport.fs.zfs.io", &[("pool", "tank"), ("vdev_guid", guid)]);
        assert!(judge.note(&of("1"), 10).is_some());
        assert!(judge.note(&of("2"), 10).is_some(), "another device");
        for second in 11..70 {
            assert!(judge.note(&of("1"), second).is_none(), "{second}");
        }
        let again = judge.note(&of("1"), 70).unwrap();
        assert!(again.summary.ends_with("(59 more like it since the last alert)"), "{}", again.summary);
        for n in 0..THINGS_MAX * 2 {
            assert!(judge.note(&of(&format!("n{n}")), 71).is_some());
        }
        assert!(judge.seen.len() <= THINGS_MAX);
    }

    #[test]
    fn failed_logins_are_an_alert_when_there_are_many() {
        let failed = event(LOGIN, &[("user", "root"), ("address", "10.0.0.1"), ("door", "rest")]);
        let mut judge = Judge::new(3);
        assert!(judge.note(&failed, 0).is_none() && judge.note(&failed, 30).is_none());
        assert!(judge.note(&failed, 61).is_none(), "the first was more than a minute ago");
        assert!(judge.note(&failed, 62).is_some());
        let mut never = Judge::new(0);
        assert!((0..1000).all(|second| never.note(&failed, second).is_none()));
        let mut at_once = Judge::new(1);
        assert!(at_once.note(&failed, 5).is_some());
    }

    #[test]
    fn a_name_ends_no_line() {
        let name = format!("a\r\nBcc: all\u{7}{}", "x".repeat(5000));
        let alert =
            Judge::new(1).note(&event("ereport.fs.zfs.data", &[("pool", "tank"), ("name", &name)]), 0);
        let alert = alert.unwrap();
        assert!(!alert.summary.contains(char::is_control) && alert.summary.len() < 600, "{}", alert.summary);
        assert!(alert.fields.iter().all(|(_, value)| !value.contains(char::is_control)));
    }
}
