//! The ledger of changes: what was set, when, from what to what, and what the graphs say of it.
//!
//! A change is of one setting of one thing. Its way back is an ordinary request, which is allowed, refused, carried out and
//! noted as any other; so the ledger itself changes nothing.

use crate::property::{Property, Source, Value};
use crate::request::Request;
use crate::san::{Auth, InitiatorChange, Members, San, TargetChange};
use crate::services::{Services, Switch};
use serde::{Deserialize, Serialize};

/// What has settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file system, a volume or a snapshot.
    Dataset,
    Pool,
    /// Of the whole daemon.
    Tunables,
    /// What serves clients.
    Service,
    /// Of iSCSI, by their names.
    Target,
    Initiator,
    /// Which targets or initiators a LUN that names the group is shown to.
    TargetGroup,
    InitiatorGroup,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Dataset => "dataset",
            Kind::Pool => "pool",
            Kind::Tunables => "tunables",
            Kind::Service => "service",
            Kind::Target => "target",
            Kind::Initiator => "initiator",
            Kind::TargetGroup => "target group",
            Kind::InitiatorGroup => "initiator group",
        }
    }
}

/// A value, and whether it was set at the subject itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Exact, in the smallest unit, as `set` understands it.
    pub value: String,
    /// Else it is inherited, or the default.
    pub is_own: bool,
}

impl Setting {
    /// `None` where the property has no value.
    pub fn of(property: &Property) -> Option<Setting> {
        let value = match property.value.as_ref()? {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
        };
        // What came with a stream is not set here: to inherit would not bring it back.
        Some(Setting { value, is_own: matches!(property.source, Source::Local | Source::Received) })
    }
}

/// A change of one setting. Its fields are those of its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// From 1 on; never given again.
    pub number: u64,
    /// Its second since 1970.
    pub time: u64,
    pub kind: Kind,
    /// The name of the dataset or pool; empty for tunables.
    pub subject: String,
    pub setting: String,
    /// `None`: there was no value.
    pub before: Option<String>,
    /// The value before was not set there, but inherited or the default.
    pub inherited: bool,
    pub after: Option<String>,
    /// As the history of a pool has it; empty where there was none.
    pub command: String,
    pub uid: u64,
    pub verdict: Verdict,
    /// While it waits: the second from which on it can be judged.
    pub until: u64,
    /// Where it is mixed: another change of the time that is compared.
    pub with: u64,
    /// Moments without a change that it was compared with.
    pub moments: u64,
    pub figures: Vec<Figure>,
}

/// Whether the graphs can tell what a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The time after it that is compared has not passed.
    Waiting,
    /// Other changes were made in the time that is compared.
    Mixed,
    /// There were too few moments without a change to compare it with.
    Short,
    /// No statistic was open, or nothing was done before it or after.
    Idle,
    Compared,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Waiting => "waiting",
            Verdict::Mixed => "mixed",
            Verdict::Short => "short",
            Verdict::Idle => "idle",
            Verdict::Compared => "compared",
        }
    }
}

/// So many moments without a change are wanted before one is judged.
pub const MOMENTS_WANTED: u64 = 100;

/// A figure of one statistic, in the time before a change and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// Its statistic.
    pub dataset: String,
    /// Of its values: `operations/s`; `bytes` and `nanoseconds` where the mean of what it is broken down by is compared.
    pub unit: String,
    /// Averages of a second.
    pub before: u64,
    pub after: u64,
    /// At so many of the moments compared, a figure (any of them) differed as much without a change.
    pub rivals: u64,
    /// The difference is hardly one of those that come by themselves.
    #[serde(rename = "effect")]
    pub is_effect: bool,
}

impl Figure {
    /// In tenths of a percent: `Some(583)` for 58.3 % more. `None` from nothing.
    pub fn gain(&self) -> Option<i64> {
        let (before, after) = (i128::from(self.before), i128::from(self.after));
        (before > 0).then(|| i64::try_from((after - before) * 1_000 / before).unwrap_or(i64::MAX))
    }
}

/// By which something could be lost that `set` does not bring back.
const NO_WAY_BACK: &[&str] = &["volsize", "version"];

impl Change {
    /// The figures that are believed to differ because of it.
    pub fn effects(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|figure| figure.is_effect)
    }

    /// What brings the earlier value back; `Err` says why nothing does.
    pub fn way_back(&self) -> Result<Request, String> {
        let (name, setting) = (self.subject.clone(), self.setting.clone());
        if NO_WAY_BACK.contains(&setting.as_str()) || setting.starts_with("feature@") {
            return Err(format!("'{setting}' has no way back that loses nothing"));
        }
        let value = || self.before.clone().ok_or_else(|| format!("'{setting}' had no value before"));
        Ok(match self.kind {
            Kind::Dataset => match self.before.clone().filter(|_| !self.inherited) {
                Some(value) => Request::DatasetSet { name, properties: vec![(setting, value)] },
                // Quotas of users, groups and projects are inherited from nothing.
                None if setting.contains('@') && !setting.contains(':') => {
                    Request::DatasetSet { name, properties: vec![(setting, "none".into())] }
                }
                None => Request::DatasetInherit { name, property: setting, received: false },
            },
            Kind::Pool => {
                let value = value()?;
                Request::PoolSet { name, vdev: None, property: setting, value }
            }
            Kind::Tunables => {
                let value = value()?;
                Request::TunableSet { settings: vec![(setting, value)] }
            }
            Kind::Service => {
                let value = value()?;
                Request::Services(match setting.as_str() {
                    "enabled" if value == "true" => Services::Switch { name, to: Switch::Enable },
                    "enabled" => Services::Switch { name, to: Switch::Disable },
                    _ => Services::Listen { name, addresses: listed(&value) },
                })
            }
            Kind::Target => {
                let (value, mut set) = (value()?, TargetChange::default());
                match setting.as_str() {
                    "auth" if value == Auth::Chap.word() => set.auth = Some(Auth::Chap),
                    "auth" => set.auth = Some(Auth::None),
                    "interfaces" => set.interfaces = Some(listed(&value)),
                    _ => set.alias = Some(value),
                }
                Request::San(San::TargetSet { iqn: name, set })
            }
            Kind::Initiator => {
                let set = InitiatorChange { alias: Some(value()?), ..InitiatorChange::default() };
                Request::San(San::InitiatorSet { iqn: name, set })
            }
            Kind::TargetGroup | Kind::InitiatorGroup => {
                let of = match self.kind {
                    Kind::TargetGroup => Members::Targets,
                    _ => Members::Initiators,
                };
                Request::San(San::GroupSet { of, name, new_name: None, members: Some(listed(&value()?)) })
            }
        })
    }

    /// The same as a command; empty where there is none.
    pub fn way_back_command(&self) -> String {
        match self.way_back() {
            Ok(Request::DatasetSet { name, properties }) => {
                let settings = properties.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
                format!("cenote zfs set {} {}", settings.collect::<Vec<_>>().join(" "), quoted(&name))
            }
            Ok(Request::DatasetInherit { name, property, .. }) => {
                format!("cenote zfs inherit {} {}", quoted(&property), quoted(&name))
            }
            Ok(Request::PoolSet { name, property, value, .. }) => {
                format!("cenote zpool set {} {}", quoted(&format!("{property}={value}")), quoted(&name))
            }
            Ok(Request::TunableSet { settings }) => {
                let settings = settings.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
                format!("cenote tunable set {}", settings.collect::<Vec<_>>().join(" "))
            }
            // What the shell has no one line for.
            Ok(_) => format!("cenote changes undo {}", self.number),
            Err(_) => String::new(),
        }
    }
}

fn listed(value: &str) -> Vec<String> {
    value.split(',').filter(|word| !word.is_empty()).map(String::from).collect()
}

/// The change of that number among all, and the request that takes it back.
///
/// # Errors
/// There is no such change, it was made again since, or nothing takes it back; the whole line.
pub fn way_back(all: &[Change], number: u64) -> Result<(&Change, Request), String> {
    let missing = || format!("there is no change {number}");
    let change = all.iter().find(|change| change.number == number).ok_or_else(missing)?;
    let refused = |why: String| format!("cannot take change {number} back: {why}");
    let same = |later: &&Change| {
        (later.kind, &later.subject, &later.setting) == (change.kind, &change.subject, &change.setting)
    };
    if let Some(later) = all.iter().filter(same).rfind(|later| later.number > number) {
        let why = format!("'{}' was set again by change {}; take that back", change.setting, later.number);
        return Err(refused(why));
    }
    let request = change.way_back().map_err(refused)?;
    Ok((change, request))
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=/@:._-+,%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: Kind, subject: &str, setting: &str, before: Option<(&str, bool)>) -> Change {
        Change {
            number: 1,
            time: 0,
            kind,
            subject: subject.into(),
            setting: setting.into(),
            before: before.map(|(value, _)| value.into()),
            inherited: before.is_some_and(|(_, is_own)| !is_own),
            after: None,
            command: String::new(),
            uid: 0,
            verdict: Verdict::Idle,
            until: 0,
            with: 0,
            moments: 0,
            figures: Vec::new(),
        }
    }

    #[test]
    fn the_way_back_sets_what_was_set_and_inherits_what_was_not() {
        let of = |kind, name, setting, before| change(kind, name, setting, before).way_back_command();
        let db = |setting, before| of(Kind::Dataset, "tank/my db", setting, before);
        assert_eq!(db("recordsize", Some(("16384", true))), "cenote zfs set recordsize=16384 'tank/my db'");
        assert_eq!(db("recordsize", Some(("131072", false))), "cenote zfs inherit recordsize 'tank/my db'");
        assert_eq!(
            db("userquota@ann", Some(("none", false))),
            "cenote zfs set userquota@ann=none 'tank/my db'"
        );
        assert_eq!(db("a:b", None), "cenote zfs inherit a:b 'tank/my db'");
        assert_eq!(
            of(Kind::Pool, "tank", "comment", Some(("it's", true))),
            r"cenote zpool set 'comment=it'\''s' tank"
        );
        assert_eq!(
            of(Kind::Tunables, "", "zfs_txg_timeout", Some(("5", false))),
            "cenote tunable set zfs_txg_timeout=5"
        );
    }

    #[test]
    fn services_targets_and_groups_have_a_way_back() {
        let of = |kind, setting: &str, before: &str| {
            change(kind, "iqn.a", setting, Some((before, true))).way_back().unwrap()
        };
        let name = || "iqn.a".to_string();
        let switch = |to| Request::Services(Services::Switch { name: name(), to });
        assert_eq!(of(Kind::Service, "enabled", "true"), switch(Switch::Enable));
        assert_eq!(of(Kind::Service, "enabled", "false"), switch(Switch::Disable));
        let addresses = vec!["1.2.3.4:5".to_string(), "[::1]:5".into()];
        let listen = |addresses| Request::Services(Services::Listen { name: name(), addresses });
        assert_eq!(of(Kind::Service, "listen", "1.2.3.4:5,[::1]:5"), listen(addresses));
        assert_eq!(of(Kind::Service, "listen", ""), listen(Vec::new()));
        let target = |set| Request::San(San::TargetSet { iqn: name(), set });
        let auth = |auth| target(TargetChange { auth: Some(auth), ..TargetChange::default() });
        assert_eq!(of(Kind::Target, "auth", "chap"), auth(Auth::Chap));
        assert_eq!(of(Kind::Target, "auth", "none"), auth(Auth::None));
        let alias = TargetChange { alias: Some(String::new()), ..TargetChange::default() };
        assert_eq!(of(Kind::Target, "alias", ""), target(alias));
        let group = |of, members| {
            Request::San(San::GroupSet { of, name: name(), new_name: None, members: Some(members) })
        };
        assert_eq!(of(Kind::TargetGroup, "members", ""), group(Members::Targets, Vec::new()));
        assert_eq!(of(Kind::InitiatorGroup, "members", "a,b"), group(Members::Initiators, listed("a,b")));
        let moved = Change { number: 7, ..change(Kind::Service, "nbd", "enabled", Some(("true", true))) };
        assert_eq!(moved.way_back_command(), "cenote changes undo 7");
    }

    #[test]
    fn only_the_last_change_of_a_setting_is_taken_back() {
        let first = change(Kind::Pool, "tank", "comment", Some(("a", true)));
        let second = Change { number: 2, ..first.clone() };
        let other = Change { number: 3, subject: "dozer".into(), ..first.clone() };
        let all = [first, second, other];
        let refused = way_back(&all, 1).unwrap_err();
        assert_eq!(refused, "cannot take change 1 back: 'comment' was set again by change 2; take that back");
        assert!(way_back(&all, 2).is_ok() && way_back(&all, 3).is_ok());
        assert_eq!(way_back(&all, 4).unwrap_err(), "there is no change 4");
    }

    #[test]
    fn what_would_lose_data_has_no_way_back() {
        let grown = change(Kind::Dataset, "tank/v", "volsize", Some(("1048576", true)));
        assert!(grown.way_back().is_err());
        assert_eq!(grown.way_back_command(), "");
        assert!(change(Kind::Pool, "tank", "comment", None).way_back().is_err());
    }

    #[test]
    fn a_gain_is_told_in_tenths_of_a_percent() {
        let figure = |before, after| Figure {
            dataset: String::new(),
            unit: String::new(),
            before,
            after,
            rivals: 0,
            is_effect: true,
        };
        assert_eq!(figure(1_200, 1_900).gain(), Some(583));
        assert_eq!(figure(200, 50).gain(), Some(-750));
        assert_eq!((figure(0, 9).gain(), figure(1, u64::MAX).gain()), (None, Some(i64::MAX)));
    }
}
