//! Pool features: what the format has gained since versions ended at 28, one row each.
//!
//! ```text
//!   disabled ──enable──> enabled ──first use──> active ──last use gone──> enabled
//!                        count 0                count > 0
//! ```
//!
//! The counts are in three ZAPs of the MOS, by guid: `features_for_read` for those a reader must know,
//! `features_for_write` for those that are read-only compatible, and `feature_descriptions`. Features that are needed to
//! read the MOS at all are named in the label too, under `features_for_read`.
//!
//! A pool with an active feature unknown to the program opens read-only if all such features are read-only
//! compatible, else not at all: [`judge`].

mod compatibility;
mod table;
#[cfg(test)]
mod tests;

pub use compatibility::{DEFAULT_COMPATIBILITY, compatibility_names, compatibility_set, features_of_list};
pub use table::{FEATURES, Feature};

use std::fmt;

/// The row of a feature. There is one for each that OpenZFS knows; [`Feature::info`] finds it.
#[derive(Debug)]
pub struct FeatureInfo {
    pub feature: Feature,
    /// Its name on disk: "org.illumos:lz4_compress".
    pub guid: &'static str,
    /// Its name in properties: `feature@lz4_compress`.
    pub name: &'static str,
    /// Software that does not know it may open the pool read-only.
    pub read_only_compatible: bool,
    /// Needed to read the MOS, and so named in labels.
    pub mos: bool,
    /// Active from the moment it is enabled.
    pub activate_on_enable: bool,
    /// Each dataset that uses it says so in its ZAP and holds a count.
    pub per_dataset: bool,
    /// `zpool upgrade` leaves it out unless it is named.
    pub no_upgrade: bool,
    /// Enabled with it.
    pub dependencies: &'static [Feature],
    /// One line for people.
    pub description: &'static str,
    /// What this program can do with a pool in which it is active.
    pub support: Support,
}

/// What this program can do with a pool in which a feature is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Support {
    /// The pool cannot be opened.
    No,
    /// The pool opens read-only.
    ReadOnly,
    ReadWrite,
}

impl Feature {
    pub fn info(self) -> &'static FeatureInfo {
        FEATURES.get(self as usize).expect("each feature has its row")
    }

    pub fn guid(self) -> &'static str {
        self.info().guid
    }

    /// The short name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    pub fn all() -> impl Iterator<Item = Feature> {
        FEATURES.iter().map(|info| info.feature)
    }

    pub fn by_guid(guid: &str) -> Option<Feature> {
        FEATURES.iter().find(|info| info.guid == guid).map(|info| info.feature)
    }

    /// By its short name.
    pub fn by_name(name: &str) -> Option<Feature> {
        FEATURES.iter().find(|info| info.name == name).map(|info| info.feature)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a pool may be opened, given its active features, and what stands in the way of more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub support: Support,
    /// The guids that allow no more than `support`; empty when all is well.
    pub because: Vec<String>,
}

/// Judges the guids of active features: `for_read` must be known to read, `for_write` only to write.
///
/// An unknown guid in `for_read` forbids opening; in `for_write` it forbids writing.
pub fn judge<'a>(
    for_read: impl IntoIterator<Item = &'a str>,
    for_write: impl IntoIterator<Item = &'a str>,
) -> Verdict {
    let of = |guid: &str, unknown: Support| Feature::by_guid(guid).map_or(unknown, |f| f.info().support);
    let read = for_read.into_iter().map(|guid| (guid, of(guid, Support::No)));
    // Whatever we lack, a read-only compatible feature never keeps anyone from reading.
    let write = for_write.into_iter().map(|guid| (guid, of(guid, Support::ReadOnly).max(Support::ReadOnly)));
    let all: Vec<_> = read.chain(write).collect();
    let support = all.iter().map(|(_, support)| *support).min().unwrap_or(Support::ReadWrite);
    let blamed = all.into_iter().filter(|(_, s)| *s == support && *s != Support::ReadWrite);
    Verdict { support, because: blamed.map(|(guid, _)| guid.to_string()).collect() }
}
