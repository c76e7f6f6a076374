//! The storage area network: targets and initiators, and groups of them.
//!
//! ```text
//!   initiator group ──┐                     ┌── target group        a LUN names one target group and initiator groups;
//!     initiators      ├── LUN (its number) ─┤     targets           it is seen by these initiators through these
//!   "default": all  ──┘                     └── "default": all      targets, and by no other
//! ```
//!
//! The groups called [`DEFAULT_GROUP`] hold everything and cannot be changed; a LUN whose initiator group is [`NOBODY`] is
//! seen by no one. A target's `auth` says whether initiators must prove by CHAP who they are: with the user and secret
//! that are kept for the initiator. The target's own user and secret are what it proves itself with when an initiator
//! asks for that. Secrets are set and never told: replies say only whether there is one.
//!
//! Targets and initiators of Fibre Channel are the WWNs of ports. They and their groups are kept like the others; while no
//! front serves a port, every target of them is told to have none.

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
    /// A port of Fibre Channel, by its WWN: of a target or an initiator.
    FcCreate {
        of: Members,
        wwn: String,
        alias: Option<String>,
    },
    FcSet {
        of: Members,
        wwn: String,
        alias: Option<String>,
    },
    FcDestroy {
        of: Members,
        wwn: String,
    },
}

impl San {
    /// Whether it changes nothing.
    pub fn is_question(&self) -> bool {
        matches!(self, San::Show)
    }
}

/// What a group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Members {
    Targets,
    Initiators,
    /// Of Fibre Channel.
    FcTargets,
    FcInitiators,
}

impl Members {
    pub const ALL: [Members; 4] =
        [Members::Targets, Members::Initiators, Members::FcTargets, Members::FcInitiators];

    pub fn is_fc(self) -> bool {
        matches!(self, Members::FcTargets | Members::FcInitiators)
    }

    pub fn is_target(self) -> bool {
        matches!(self, Members::Targets | Members::FcTargets)
    }

    /// The same of the other transport: a LUN names a group of either.
    #[must_use]
    pub fn other(self) -> Members {
        match self {
            Members::Targets => Members::FcTargets,
            Members::Initiators => Members::FcInitiators,
            Members::FcTargets => Members::Targets,
            Members::FcInitiators => Members::Initiators,
        }
    }
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

/// The status of a target of Fibre Channel whose port this machine does not have, or does not serve.
pub const NO_PORT: &str = "no port";

/// The world-wide name of a port in its one spelling, `21:00:00:e0:8b:05:05:04`: from 16 hexadecimal digits, with colons
/// between the bytes or without, after `wwn.` or `0x` or neither. `None`: it is no such name, or all zero.
pub fn wwn(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let rest = text.strip_prefix("wwn.").or_else(|| text.strip_prefix("0x")).unwrap_or(&text);
    let digits: String = match rest.contains(':') {
        false => rest.into(),
        true => {
            let bytes: Vec<&str> = rest.split(':').collect();
            if bytes.len() != 8 || bytes.iter().any(|byte| byte.len() != 2) {
                return None;
            }
            bytes.concat()
        }
    };
    let is_name = digits.len() == 16
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && digits.bytes().any(|b| b != b'0');
    let bytes: Vec<&str> = (0..8).filter_map(|at| digits.get(2 * at..2 * at + 2)).collect();
    is_name.then(|| bytes.join(":"))
}

/// A port of Fibre Channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FcPort {
    /// `21:00:00:e0:8b:05:05:04`
    pub wwn: String,
    pub alias: String,
    /// Of a target: whether its port serves, see [`NO_PORT`].
    pub status: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub name: String,
    /// Their IQNs, or WWNs. Of the default group of targets: all there are; of initiators none, since it holds those that no
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
    #[serde(default)]
    pub fc_targets: Vec<FcPort>,
    #[serde(default)]
    pub fc_target_groups: Vec<Group>,
    #[serde(default)]
    pub fc_initiators: Vec<FcPort>,
    #[serde(default)]
    pub fc_initiator_groups: Vec<Group>,
}

impl SanState {
    /// The ports of Fibre Channel; of iSCSI none.
    pub fn ports(&self, of: Members) -> &[FcPort] {
        match of {
            Members::FcTargets => &self.fc_targets,
            Members::FcInitiators => &self.fc_initiators,
            Members::Targets | Members::Initiators => &[],
        }
    }

    pub fn groups(&self, of: Members) -> &[Group] {
        match of {
            Members::Targets => &self.target_groups,
            Members::Initiators => &self.initiator_groups,
            Members::FcTargets => &self.fc_target_groups,
            Members::FcInitiators => &self.fc_initiator_groups,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_wide_name_has_one_spelling() {
        for good in [
            "21:00:00:e0:8b:05:05:04",
            "21:00:00:E0:8B:05:05:04",
            "210000e08b050504",
            "wwn.210000E08B050504",
            "0x210000e08b050504",
        ] {
            assert_eq!(wwn(good).as_deref(), Some("21:00:00:e0:8b:05:05:04"), "{good}");
        }
        for bad in [
            "",
            "iqn.2001-04.com.example:t",
            "0000000000000000",
            "21:00:00:e0:8b:05:05",
            "2:100:00:e0:8b:05:05:04",
            "210000e08b05050g",
            "21\u{e9}000e08b05050",
        ] {
            assert_eq!(wwn(bad), None, "{bad}");
        }
    }
}
