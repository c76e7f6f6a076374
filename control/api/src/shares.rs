//! Projects, and the file systems and LUNs in them: what may be asked and changed.
//!
//! ```text
//!   pool tank ─┬─ project mysql ─┬─ lun innodb-data     dataset tank/mysql/innodb-data, a volume
//!              │                 └─ filesystem logs     dataset tank/mysql/logs; what lies deeper is `logs/old`
//!              └─ project default ── lun vol1           volumes that lie directly in the pool: tank/vol1
//! ```
//!
//! All of them are ordinary datasets, however they were made. What can be said of each is in [`crate::attributes`].

use crate::{AutomaticDeed, Custom, Property, ShareDeed};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The pool itself, as the project of the volumes that lie directly in it.
pub const DEFAULT_PROJECT: &str = "default";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    Project,
    Filesystem,
    Lun,
}

impl ItemKind {
    pub fn word(self) -> &'static str {
        match self {
            ItemKind::Project => "project",
            ItemKind::Filesystem => "filesystem",
            ItemKind::Lun => "lun",
        }
    }
}

/// Where a project is, or a share in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub pool: String,
    pub project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
}

impl Place {
    pub fn project(pool: &str, project: &str) -> Place {
        Place { pool: pool.into(), project: project.into(), share: None }
    }

    #[must_use]
    pub fn share(&self, share: &str) -> Place {
        Place { share: Some(share.into()), ..self.clone() }
    }

    /// Where it is under another name, or in another project of its pool.
    #[must_use]
    pub fn moved(&self, name: Option<&str>, project: Option<&str>) -> Place {
        let mut to = self.clone();
        match (&mut to.share, name) {
            (Some(share), Some(name)) => *share = name.into(),
            (None, Some(name)) => to.project = name.into(),
            (_, None) => {}
        }
        if let Some(project) = project {
            to.project = project.into();
        }
        to
    }

    /// The dataset that it is.
    pub fn dataset(&self) -> String {
        let mut name = self.pool.clone();
        if self.project != DEFAULT_PROJECT {
            name = format!("{name}/{}", self.project);
        }
        match &self.share {
            Some(share) => format!("{name}/{share}"),
            None => name,
        }
    }

    /// What a dataset is here: a pool's root is its default project, a file system below it a project of its own.
    pub fn of(dataset: &str, is_volume: bool) -> Place {
        let mut parts = dataset.splitn(3, '/');
        let pool = parts.next().unwrap_or_default();
        match (parts.next(), parts.next()) {
            (None, _) => Place::project(pool, DEFAULT_PROJECT),
            (Some(volume), None) if is_volume => Place::project(pool, DEFAULT_PROJECT).share(volume),
            (Some(project), None) => Place::project(pool, project),
            (Some(project), Some(share)) => Place::project(pool, project).share(share),
        }
    }
}

/// As prompts and messages call it: `mysql`, `mysql/innodb-data`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.project)?;
        match &self.share {
            Some(share) => write!(f, "/{share}"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shares {
    /// The projects of a pool, or of all.
    Projects {
        pool: Option<String>,
    },
    /// The shares of a project; of every project when none is named. Of one kind, or of both.
    Shares {
        pool: Option<String>,
        project: Option<String>,
        #[serde(default)]
        kind: Option<ItemKind>,
    },
    Get {
        place: Place,
    },
    Create {
        place: Place,
        kind: ItemKind,
        /// Attributes by their names, as they were typed.
        set: Vec<(String, String)>,
    },
    Change {
        place: Place,
        /// Another name, once the rest is done.
        #[serde(default)]
        name: Option<String>,
        /// Of a share: another project of the same pool, likewise.
        #[serde(default)]
        project: Option<String>,
        set: Vec<(String, String)>,
        /// These are inherited again.
        unset: Vec<String>,
    },
    /// With all its snapshots, and of a project with all its shares.
    Destroy {
        place: Place,
        /// Clients that use it are ended; else it is refused while there are any.
        force: bool,
    },
    /// The snapshots of a project or share.
    Snapshots {
        place: Place,
    },
    Snapshot {
        place: Place,
        name: String,
        deed: ShareDeed,
    },
    /// When snapshots are taken by themselves of a project or share.
    Automatics {
        place: Place,
    },
    Automatic {
        place: Place,
        deed: AutomaticDeed,
    },
    /// What was cloned from a snapshot.
    Dependents {
        place: Place,
        name: String,
    },
}

impl Shares {
    /// Whether it changes nothing.
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Shares::Projects { .. }
                | Shares::Shares { .. }
                | Shares::Get { .. }
                | Shares::Snapshots { .. }
                | Shares::Automatics { .. }
                | Shares::Dependents { .. }
        )
    }
}

impl Shares {
    /// All that is in the project of this place.
    pub fn of_project(of: &Place) -> Shares {
        Shares::Shares { pool: Some(of.pool.clone()), project: Some(of.project.clone()), kind: None }
    }

    /// Another name for a project or share, or another project of the same pool for a share; nothing else changes.
    pub fn rename(from: Place, to: &Place) -> Shares {
        let (name, project) = match &to.share {
            Some(share) => (share.clone(), Some(to.project.clone())),
            None => (to.project.clone(), None),
        };
        let project = project.filter(|project| *project != from.project);
        Shares::Change { place: from, name: Some(name), project, set: Vec::new(), unset: Vec::new() }
    }

    /// Attributes alone: some are set, and others inherited again.
    pub fn change(place: Place, set: Vec<(String, String)>, unset: Vec<String>) -> Shares {
        Shares::Change { place, name: None, project: None, set, unset }
    }

    /// The project or share that is already there and that it is about.
    pub fn about(&self) -> Option<&Place> {
        match self {
            Shares::Projects { .. } | Shares::Shares { .. } | Shares::Create { .. } => None,
            Shares::Get { place }
            | Shares::Change { place, .. }
            | Shares::Destroy { place, .. }
            | Shares::Snapshots { place }
            | Shares::Snapshot { place, .. }
            | Shares::Automatics { place }
            | Shares::Automatic { place, .. }
            | Shares::Dependents { place, .. } => Some(place),
        }
    }
}

/// What was cloned from a snapshot, in the same pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependent {
    pub project: String,
    /// Empty: it is the project itself.
    pub share: String,
}

impl fmt::Display for Dependent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.share.as_str() {
            "" => f.write_str(&self.project),
            share => write!(f, "{}/{share}", self.project),
        }
    }
}

/// A project or share with everything that is said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub place: Place,
    pub kind: ItemKind,
    /// By the names of the attributes, in the order of their table.
    pub attributes: Vec<Property>,
    /// One for each property of the schema, by their names.
    #[serde(default)]
    pub custom: Vec<Custom>,
}

impl Item {
    pub fn attribute(&self, name: &str) -> Option<&Property> {
        self.attributes.iter().find(|a| a.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dataset_has_one_place_and_a_place_its_dataset() {
        for (dataset, is_volume, shown) in [
            ("tank", false, "default"),
            ("tank/mysql", false, "mysql"),
            ("tank/vol1", true, "default/vol1"),
            ("tank/mysql/innodb-data", true, "mysql/innodb-data"),
            ("tank/a/b/c", false, "a/b/c"),
        ] {
            let place = Place::of(dataset, is_volume);
            assert_eq!((place.to_string().as_str(), place.dataset().as_str()), (shown, dataset));
        }
    }
}
