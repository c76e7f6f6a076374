//! What users, groups and projects take of a file system, and may take.

use serde::{Deserialize, Serialize};

/// Whose sums are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    Users,
    Groups,
    Projects,
}

/// What one of them has: who takes something, or may take only so much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub id: u64,
    /// As the machine that serves knows him.
    #[serde(default)]
    pub name: Option<String>,
    /// Bytes; a quota of 0 is none.
    pub used: u64,
    pub quota: u64,
    /// Files, where they are counted.
    #[serde(default)]
    pub objects: Option<ObjectUsage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectUsage {
    pub used: u64,
    pub quota: u64,
}

/// The project of a file in a file system that is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProject {
    /// From the root directory of the machine.
    pub path: String,
    /// What is to change.
    #[serde(default)]
    pub id: Option<u64>,
    #[serde(default)]
    pub inherits: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectOf {
    pub id: u64,
    /// What is made in a directory is of its project.
    pub inherits: bool,
}
