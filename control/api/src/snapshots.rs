//! Snapshots and clones by the names of their datasets: what may be asked and changed.

use crate::shares::Place;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Snapshots {
    /// All of one moment.
    Take {
        /// `pool/a@s`.
        names: Vec<String>,
        /// Of everything below each of them as well.
        recursive: bool,
        /// Users' own.
        properties: Vec<(String, String)>,
    },
    /// Takes a dataset back to a snapshot.
    Rollback {
        snapshot: String,
        /// Over newer snapshots, which are destroyed.
        newer: bool,
        /// Over clones of these, which are destroyed too.
        clones: bool,
        /// Clients that use it are ended; else it is refused while there are any.
        force: bool,
    },
    Clone {
        snapshot: String,
        name: String,
        properties: Vec<(String, String)>,
        /// Make the parents that are missing.
        parents: bool,
        /// Leave it unmounted where file systems are mounted by themselves.
        unmounted: bool,
    },
    Promote {
        name: String,
    },
    /// A hold keeps a snapshot from being destroyed.
    Hold {
        names: Vec<String>,
        tag: String,
        recursive: bool,
    },
    Release {
        names: Vec<String>,
        tag: String,
        recursive: bool,
    },
    Holds {
        names: Vec<String>,
        recursive: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub snapshot: String,
    pub tag: String,
    /// Seconds since 1970.
    pub since: u64,
}

/// What is done with one snapshot of a project or share. Those of a project are of all that is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareDeed {
    Take,
    Rename {
        to: String,
    },
    /// Refused while there are clones.
    Destroy,
    /// Of a share.
    Rollback {
        /// Over newer snapshots, which are destroyed.
        newer: bool,
        /// Clients that use it are ended.
        force: bool,
    },
    /// Of a share: a new share of the same kind.
    Clone {
        /// That of the origin, unless it is said.
        #[serde(default)]
        project: Option<String>,
        share: String,
        /// Attributes by their names, as they were typed.
        set: Vec<(String, String)>,
    },
}

/// A snapshot of a project or share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareSnapshot {
    /// Of what.
    pub place: Place,
    pub name: String,
    /// Seconds since 1970.
    pub creation: u64,
    /// Bytes that it alone has; bytes that it shows.
    pub unique: u64,
    pub data: u64,
    pub clones: u64,
    pub holds: u64,
    pub guid: u64,
}
