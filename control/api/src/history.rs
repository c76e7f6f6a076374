//! What was done to a pool, as the pool itself remembers it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolHistory {
    pub pool: String,
    /// Oldest first.
    pub records: Vec<HistoryRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// Seconds since 1970.
    pub time: Option<u64>,
    pub elapsed_ns: Option<u64>,
    pub did: Did,
    /// The user's number.
    pub who: Option<u64>,
    pub host: Option<String>,
    pub zone: Option<String>,
}

/// The kinds of record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Did {
    /// A command line that was given.
    Command(String),
    /// Something the pool did.
    Internal {
        txg: u64,
        name: String,
        text: String,
        dataset: Option<(String, u64)>,
    },
    /// The same, as older software recorded it: by number.
    Event {
        event: u64,
        txg: u64,
        text: String,
    },
    /// A request to OpenZFS's kernel module.
    Ioctl {
        name: String,
        input: Vec<(String, Item)>,
        output: Vec<(String, Item)>,
        errno: Option<u64>,
    },
    Unknown(Vec<(String, Item)>),
}

/// A value of a kind of record that is shown as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    Flag,
    Text(String),
    List(Vec<(String, Item)>),
}
