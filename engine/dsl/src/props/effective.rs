//! Which value of a property is in force, and what to change to make it another.
//!
//! Each dataset directory has a ZAP with what was set there; a snapshot may have one with user properties. Beside the
//! plain name an entry may carry a suffix:
//!
//! ```text
//!   compression          set here (local)
//!   compression$recvd    came with a stream; counts where nothing is set locally
//!   compression$inherit  "inherit" was asked for although a received value is here: look further up
//!   snapdir$iuv          a value younger programs know; older ones ignore it and read the default in `snapdir`
//! ```
//!
//! The search goes from the dataset towards the pool and ends at the table's default; a property that is not
//! inheritable looks at the dataset alone. Everything here is pure: maps in, value or list of changes out.

use std::collections::BTreeMap;

use super::{Kind, Prop, PropName, Source, Value};

pub const INHERIT: &str = "$inherit";
pub const RECEIVED: &str = "$recvd";
const IGNORE_UNKNOWN: &str = "$iuv";
/// Present on a dataset that was ever received.
pub const HAS_RECEIVED: &str = "$hasrecvd";

/// A property ZAP, as read.
pub type PropMap = BTreeMap<String, Value>;

/// What is set in one place: a dataset directory, or a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Level<'a> {
    /// The full name, which is what children show as the source.
    pub name: &'a str,
    pub entries: &'a PropMap,
}

/// Where to look: the snapshot's own entries if it is one, then the directories from the dataset to the pool.
#[derive(Clone, Debug, Default)]
pub struct Chain<'a> {
    /// `Some` for a snapshot; its map is often empty.
    pub snapshot: Option<Level<'a>>,
    pub dirs: Vec<Level<'a>>,
}

enum Found {
    Local(Value),
    Received(Value),
    Nothing,
}

impl Chain<'_> {
    /// The value in force with its source; nothing for a user property that is set nowhere and for a native one
    /// without a default.
    pub fn resolve(&self, name: &PropName) -> Option<(Value, Source)> {
        if let Some(level) = self.snapshot {
            match look(level.entries, name) {
                Found::Local(value) => return Some((value, Source::Local)),
                Found::Received(value) => return Some((value, Source::Received)),
                Found::Nothing => {}
            }
        }
        self.search_dirs(name).or_else(|| Some((default_of(name)?, Source::Default)))
    }

    fn search_dirs(&self, name: &PropName) -> Option<(Value, Source)> {
        for (depth, level) in self.dirs.iter().enumerate() {
            let inheriting = depth > 0 || self.snapshot.is_some();
            if inheriting && !name.is_inheritable() {
                return None;
            }
            match look(level.entries, name) {
                Found::Nothing => {}
                Found::Local(value) | Found::Received(value) if inheriting => {
                    return Some((value, Source::Inherited(level.name.into())));
                }
                Found::Local(value) => return Some((value, Source::Local)),
                Found::Received(value) => return Some((value, Source::Received)),
            }
        }
        None
    }

    /// The number in force; the property must be one of the table's numbers or indexes.
    pub fn number(&self, prop: Prop) -> u64 {
        self.resolve(&PropName::Native(prop)).and_then(|(value, _)| value.number()).unwrap_or(0)
    }

    /// What came with a stream, whether it is in force or not: the `RECEIVED` column.
    pub fn received(&self, name: &PropName) -> Option<Value> {
        let own = self.snapshot.or(self.dirs.first().copied())?;
        well_typed(name, own.entries.get(&format!("{}{RECEIVED}", name.as_str())))
    }

    /// Every user property that is set somewhere along the chain.
    pub fn user_properties(&self) -> Vec<PropName> {
        let levels = self.snapshot.iter().chain(&self.dirs);
        let mut names: Vec<PropName> = levels
            .flat_map(|level| level.entries.keys())
            .filter_map(|key| key.split('$').next())
            .filter(|name| super::user::is_user_property(name))
            .map(|name| PropName::User(name.into()))
            .collect();
        names.sort();
        names.dedup();
        names.retain(|name| self.resolve(name).is_some());
        names
    }
}

fn default_of(name: &PropName) -> Option<Value> {
    match name {
        PropName::Native(prop) => prop.row().default_value(),
        PropName::User(_) => None,
    }
}

fn look(entries: &PropMap, name: &PropName) -> Found {
    let entry = |suffix: &str| entries.get(&format!("{}{suffix}", name.as_str()));
    if let Some(value) = well_typed(name, entry(IGNORE_UNKNOWN)).filter(|value| is_known(name, value)) {
        return Found::Local(value);
    }
    if let Some(value) = well_typed(name, entry("")) {
        return Found::Local(value);
    }
    if entry(INHERIT).is_some() {
        return Found::Nothing;
    }
    well_typed(name, entry(RECEIVED)).map_or(Found::Nothing, Found::Received)
}

/// Text where the table says number, or the reverse, is damage: the entry counts for nothing.
fn well_typed(name: &PropName, value: Option<&Value>) -> Option<Value> {
    let wants_text = match name {
        PropName::Native(prop) => matches!(prop.row().kind, Kind::Text { .. }),
        PropName::User(_) => true,
    };
    value.filter(|value| matches!(value, Value::Text(_)) == wants_text).cloned()
}

fn is_known(name: &PropName, value: &Value) -> bool {
    let PropName::Native(prop) = name else { return false };
    let Kind::Index { names, .. } = prop.row().kind else { return false };
    names.iter().any(|(_, code)| Some(*code) == value.number())
}

/// One change to a property ZAP. Removing what is not there is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Put(String, Value),
    Remove(String),
}

/// `zfs set`.
pub fn plan_set(name: &PropName, value: &Value) -> Vec<Change> {
    let key = name.as_str();
    let mut changes = vec![Change::Remove(format!("{key}{INHERIT}"))];
    match stand_in(name, value) {
        Some(default) => {
            changes.push(Change::Put(format!("{key}{IGNORE_UNKNOWN}"), value.clone()));
            changes.push(Change::Put(key.into(), default));
        }
        None => {
            changes.push(Change::Remove(format!("{key}{IGNORE_UNKNOWN}")));
            changes.push(Change::Put(key.into(), value.clone()));
        }
    }
    changes
}

/// For values that older programs do not know and would stumble over: what those shall read instead.
fn stand_in(name: &PropName, value: &Value) -> Option<Value> {
    match (name, value.number()) {
        (PropName::Native(Prop::RedundantMetadata), Some(2 | 3)) => default_of(name),
        (PropName::Native(Prop::SnapDir), Some(2)) => default_of(name),
        _ => None,
    }
}

/// `zfs inherit`; with `to_received` (`-S`) the received value counts again, else it is passed over as well.
pub fn plan_inherit(name: &PropName, to_received: bool, was_received: bool) -> Vec<Change> {
    let key = name.as_str();
    let mut changes = vec![Change::Remove(key.into()), Change::Remove(format!("{key}{IGNORE_UNKNOWN}"))];
    if !to_received && was_received {
        changes.push(Change::Put(format!("{key}{INHERIT}"), Value::Number(0)));
    } else if to_received {
        changes.push(Change::Remove(format!("{key}{INHERIT}")));
    }
    changes
}

/// Carries a plan out on a map: what the ZAP will hold.
pub fn apply(entries: &mut PropMap, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Put(key, value) => drop(entries.insert(key.clone(), value.clone())),
            Change::Remove(key) => drop(entries.remove(key)),
        }
    }
}
