//! Tunables as they travel: exact values, and what is known of each.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunable {
    pub name: String,
    pub value: u64,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    /// `switch`, `count`, `bytes`, `%`, `s`, `ns`.
    pub unit: String,
    /// What it is for, in one sentence.
    pub about: String,
    /// What is at stake with its present value.
    pub warning: Option<String>,
}
