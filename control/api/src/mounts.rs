//! File systems in the machine's own tree.

use serde::{Deserialize, Serialize};

/// A file system that is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    pub dataset: String,
    /// The directory.
    pub at: String,
}

/// What is to be mounted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// These; none for all that are to be mounted by themselves.
    pub datasets: Vec<String>,
    /// Over directories that are not empty, whatever the property says.
    #[serde(default)]
    pub overlay: bool,
    /// `ro`, `noexec` and the like, which win over the properties.
    #[serde(default)]
    pub options: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmount {
    /// A dataset or a directory, with what is mounted below it; none for all.
    pub what: Option<String>,
    /// Though it is in use.
    #[serde(default)]
    pub force: bool,
}
