//! What can be said of projects, file systems and LUNs: one table, from which shell, API and appliance all work.
//!
//! ```text
//!   name as administrators say it ── where it is kept ── of what ── when it may be set ── how it reads ── its default
//!   logbias                          native logbias      P F L      always                 word
//!   targetgroup                      cenote:targetgroup  P     L    always                 word            default
//! ```
//!
//! What OpenZFS has a property for is kept in that; the rest in user properties of the namespace `cenote:`, which other
//! implementations carry along and leave alone. Both are inherited from project to share.

use crate::shares::ItemKind;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub name: &'static str,
    pub kept: Kept,
    pub of: &'static [ItemKind],
    pub change: Change,
    pub shape: Shape,
    /// Of those that are kept in user properties: what holds when nothing was set.
    pub default: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A property of OpenZFS.
    Native(&'static str),
    /// A user property.
    User(&'static str),
    /// It follows from others.
    Computed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Always,
    Never,
}

/// How a value is read and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Bytes: `16K`.
    Size,
    /// `true` or `false`; OpenZFS says `on` and `off`, and that is understood too.
    Flag,
    Word,
    Number,
    /// Words with commas between them.
    List,
    /// Seconds since 1970.
    Date,
    /// Hundredths: `1.00x`.
    Ratio,
}

use Change::{Always, Never};
use ItemKind::{Filesystem as F, Lun as L, Project as P};
use Kept::{Computed, Native, User};
use Shape::{Date, Flag, List, Number, Ratio, Size, Word};

const fn row(
    name: &'static str,
    kept: Kept,
    of: &'static [ItemKind],
    change: Change,
    shape: Shape,
    default: &'static str,
) -> Attribute {
    Attribute { name, kept, of, change, shape, default }
}

const fn native(name: &'static str, of: &'static [ItemKind], shape: Shape) -> Attribute {
    row(name, Native(name), of, Always, shape, "")
}

const fn counted(
    name: &'static str,
    property: &'static str,
    of: &'static [ItemKind],
    shape: Shape,
) -> Attribute {
    row(name, Native(property), of, Never, shape, "")
}

const ALL: &[ItemKind] = &[P, F, L];
const FILES: &[ItemKind] = &[P, F];
const LUNS: &[ItemKind] = &[L];
const FOR_LUNS: &[ItemKind] = &[P, L];
const PROJECTS: &[ItemKind] = &[P];
const SHARES: &[ItemKind] = &[F, L];
const FILESYSTEMS: &[ItemKind] = &[F];

/// The owner, group and mode of a file system's root directory: kept in the directory.
pub const OF_ROOT: [&str; 3] = ["root_user", "root_group", "root_permissions"];

/// In the order in which they are shown.
pub const ATTRIBUTES: &[Attribute] = &[
    native("aclinherit", FILES, Word),
    native("aclmode", FILES, Word),
    native("atime", FILES, Flag),
    row("canonical_name", Computed, ALL, Never, Word, ""),
    native("checksum", ALL, Word),
    native("compression", ALL, Word),
    counted("compressratio", "compressratio", ALL, Ratio),
    native("copies", ALL, Number),
    counted("creation", "creation", ALL, Date),
    native("dedup", ALL, Flag),
    row("default_sparse", User("cenote:default_sparse"), PROJECTS, Always, Flag, "false"),
    row("default_volblocksize", User("cenote:default_volblocksize"), PROJECTS, Always, Size, "0"),
    row("default_volsize", User("cenote:default_volsize"), PROJECTS, Always, Size, "0"),
    counted("encryption", "encryption", ALL, Word),
    native("logbias", ALL, Word),
    native("mountpoint", FILES, Word),
    native("nbmand", FILES, Flag),
    row("nodestroy", User("cenote:nodestroy"), ALL, Always, Flag, "false"),
    row("origin", Computed, SHARES, Never, Word, ""),
    native("primarycache", ALL, Word),
    native("quota", FILES, Size),
    native("readonly", ALL, Flag),
    native("recordsize", FILES, Size),
    native("reservation", ALL, Size),
    row("root_group", Computed, FILESYSTEMS, Always, Word, ""),
    row("root_permissions", Computed, FILESYSTEMS, Always, Word, ""),
    row("root_user", Computed, FILESYSTEMS, Always, Word, ""),
    row("rstchown", User("cenote:rstchown"), FILES, Always, Flag, "true"),
    native("secondarycache", ALL, Word),
    native("sharenfs", FILES, Word),
    native("sharesmb", FILES, Word),
    native("snapdir", FILES, Word),
    native("sync", ALL, Word),
    native("vscan", FILES, Flag),
    row("volblocksize", Native("volblocksize"), LUNS, Always, Size, ""),
    row("migration", Computed, LUNS, Never, Word, ""),
    native("volsize", LUNS, Size),
    row("sparse", Computed, LUNS, Always, Flag, "false"),
    row("targetgroup", User("cenote:targetgroup"), FOR_LUNS, Always, Word, "default"),
    row("initiatorgroup", User("cenote:initiatorgroup"), FOR_LUNS, Always, List, "default"),
    row("lunumber", User("cenote:lunumber"), LUNS, Always, Word, "auto"),
    row("lunguid", User("cenote:lunguid"), LUNS, Never, Word, ""),
    row("status", User("cenote:status"), LUNS, Always, Word, ""),
    row("problem", Computed, LUNS, Never, Word, ""),
    row("writecache", User("cenote:writecache"), FOR_LUNS, Always, Flag, "false"),
    counted("space_data", "referenced", ALL, Size),
    counted("space_available", "available", ALL, Size),
    counted("space_snapshots", "usedbysnapshots", ALL, Size),
    counted("space_unused_res", "usedbyrefreservation", ALL, Size),
    counted("space_total", "used", ALL, Size),
];

impl Attribute {
    pub fn find(name: &str, kind: ItemKind) -> Option<&'static Attribute> {
        Attribute::of(kind).find(|a| a.name == name)
    }

    /// All that can be said of this kind.
    pub fn of(kind: ItemKind) -> impl Iterator<Item = &'static Attribute> {
        ATTRIBUTES.iter().filter(move |a| a.of.contains(&kind))
    }

    /// The property in which it is kept.
    pub fn property(&self) -> Option<&'static str> {
        match self.kept {
            Native(name) | User(name) => Some(name),
            Computed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_said_once_and_user_properties_are_ours() {
        let names: BTreeSet<&str> = ATTRIBUTES.iter().map(|a| a.name).collect();
        assert_eq!(names.len(), ATTRIBUTES.len());
        for attribute in ATTRIBUTES {
            if let User(property) = attribute.kept {
                assert_eq!(property, format!("cenote:{}", attribute.name));
            }
        }
        assert!(Attribute::find("volsize", P).is_none() && Attribute::find("volsize", L).is_some());
    }
}
