//! The storage area network: targets and initiators, and groups of them.
//!
//! ```text
//!   initiator group ──┐                     ┌── target group        a LUN names one target group and initiator groups;
//!     initiators      ├── LUN (its number) ─┤     targets           it is seen by these initiators through these
//!   "default": all  ──┘                     └── "default": all      targets, and by nobody else
//! ```
//!
//! The groups called [`DEFAULT_GROUP`] hold everything and cannot be changed; a LUN whose initiator group is [`NOBODY`] is
//! seen by no one. A target's `auth` says whether initiators must prove by CHAP who they are: with the user and secret
//! that are kept for the initiator. The target's own user and secret are what it proves itself with when an initiator
//! asks for that. Secrets are set and never told: replies say only whether there is one.

use crate::Secret;
use serde::{Deserialize, Serialize};

/// Every target, or every initiator.
pub const DEFAULT_GROUP: &str = "default";
/// No initiator at all; the name is the one that clients of such appliances use.
pub const NOBODY: &str = "com.sun.ms.vss.hg.maskAll";

/// What may be asked and changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum San {
    /// All targets, initiators and groups, and how LUNs present themselves.
    Show,
    /// With an IQN of our making unless one is given.
    TargetCreate {
        iqn: Option<String>,
        set: TargetChange,
    },
    TargetSet {
        iqn: String,
        set: TargetChange,
    },
    TargetDestroy {
        iqn: String,
    },
    InitiatorCreate {
        iqn: String,
        set: InitiatorChange,
    },
    InitiatorSet {
        iqn: String,
        set: InitiatorChange,
    },
    InitiatorDestroy {
        iqn: String,
    },
    GroupCreate {
        of: Members,
        name: String,
        members: Vec<String>,
    },
    /// Another name, other members, or both.
    GroupSet {
        of: Members,
        name: String,
        new_name: Option<String>,
        members: Option<Vec<String>>,
    },
    GroupDestroy {
        of: Members,
        name: String,
    },
    SetIdentity(Identity),
}

/// What a group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Members {
    Targets,
    Initiators,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    #[default]
    None,
    Chap,
}

impl Auth {
    pub fn word(self) -> &'static str {
        match self {
            Auth::None => "none",
            Auth::Chap => "chap",
        }
    }
}

/// What is `None` stays as it is; an empty text takes the value away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetChange {
    pub alias: Option<String>,
    pub auth: Option<Auth>,
    pub chap_user: Option<String>,
    #[serde(with = "crate::secret::revealed")]
    pub chap_secret: Option<Secret>,
    /// Names of network interfaces, or addresses; none means every portal there is.
    pub interfaces: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InitiatorChange {
    pub alias: Option<String>,
    pub chap_user: Option<String>,
    #[serde(with = "crate::secret::revealed")]
    pub chap_secret: Option<Secret>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub iqn: String,
    pub alias: String,
    pub auth: Auth,
    pub chap_user: String,
    pub has_chap_secret: bool,
    pub interfaces: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Initiator {
    pub iqn: String,
    pub alias: String,
    pub chap_user: String,
    pub has_chap_secret: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub name: String,
    /// Their IQNs. Of the default group of targets: all there are; of initiators none, since it holds those that no
    /// record knows as well.
    pub members: Vec<String>,
}

/// What INQUIRY says of every LUN, so that multipath configurations of clients match: at most 8 and 16 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub vendor: String,
    pub product: String,
}

impl Default for Identity {
    fn default() -> Identity {
        Identity { vendor: "CENOTE".into(), product: "ZFS Volume".into() }
    }
}

/// All there is, each list in the order of names; groups begin with the default one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SanState {
    pub targets: Vec<Target>,
    pub target_groups: Vec<Group>,
    pub initiators: Vec<Initiator>,
    pub initiator_groups: Vec<Group>,
    pub identity: Identity,
}

impl SanState {
    pub fn groups(&self, of: Members) -> &[Group] {
        match of {
            Members::Targets => &self.target_groups,
            Members::Initiators => &self.initiator_groups,
        }
    }
}
