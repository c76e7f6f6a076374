//! File systems, volumes and snapshots.

use crate::Property;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatasetKind {
    Filesystem,
    Volume,
    Snapshot,
    Bookmark,
}

impl DatasetKind {
    pub fn word(self) -> &'static str {
        match self {
            DatasetKind::Filesystem => "filesystem",
            DatasetKind::Volume => "volume",
            DatasetKind::Snapshot => "snapshot",
            DatasetKind::Bookmark => "bookmark",
        }
    }
}

/// A dataset with the properties that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    pub name: String,
    pub kind: DatasetKind,
    pub properties: Vec<Property>,
}

impl Dataset {
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|p| p.name == name)
    }
}

/// Which datasets, and what of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetQuery {
    /// Where to begin; empty for every pool.
    pub names: Vec<String>,
    /// How far down: 0 is the named ones alone, `None` has no limit.
    pub depth: Option<u32>,
    /// Of which kinds; empty for all.
    pub kinds: Vec<DatasetKind>,
    /// Names of properties; empty for all that are listed, and the user's own.
    pub properties: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewDataset {
    pub name: String,
    pub kind: NewKind,
    /// As they were given: name and text.
    pub properties: Vec<(String, String)>,
    /// Make the parents that are missing, and do not mind if it is there already.
    pub parents: bool,
    /// Check everything, change nothing.
    pub dry_run: bool,
    /// Not to be mounted, though the daemon mounts by itself.
    #[serde(default)]
    pub unmounted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewKind {
    Filesystem,
    Volume {
        /// In bytes; rounded up to whole blocks.
        size: u64,
        /// Without a reservation for its whole size.
        sparse: bool,
    },
}
