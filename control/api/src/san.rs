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

use crate::http::{Answer, Declared, Face, Need, Shaped, Stars, Word};
use crate::{Reply, Request, Secret, declared, shaped};
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

impl Word for Auth {
    fn parse(text: &str) -> Option<Auth> {
        [Auth::None, Auth::Chap].into_iter().find(|auth| auth.word() == text)
    }

    fn word(self) -> &'static str {
        Auth::word(self)
    }

    fn refusal(name: &str, text: &str) -> String {
        format!("{name} is none or chap, not '{text}'")
    }
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

const CHANGE: Need = Need::Right("stmf", "allow_configure");

pub const TARGETS: &str = "/api/san/v1/iscsi/targets";
const A_TARGET: &str = "/api/san/v1/iscsi/targets/{target}";
pub const INITIATORS: &str = "/api/san/v1/iscsi/initiators";
const AN_INITIATOR: &str = "/api/san/v1/iscsi/initiators/{initiator}";
const INQUIRY_PATH: &str = "/api/san/v1/inquiry";
const WHERE: &str = "Network interfaces or addresses; none: everywhere";
const ITS_OWN: &str = "Its own name, when an initiator asks for proof";
const ITS_NAME: &str = "Its name, when a target asks for proof";
const LENGTHS: &str = "12 to 16 characters";

shaped! {
    pub TARGET: Target = "target" at "/api/san/v1/iscsi/targets/{target}" (iqn) {
        must "iqn" Text iqn, "Its iSCSI name";
        must "alias" Text alias, "What people call it";
        must "auth" Text auth, "none or chap: whether initiators must prove who they are";
        must "targetchapuser" Text chap_user, ITS_OWN;
        must "targetchapsecret" Secret has_chap_secret as Stars, "Stars, if there is one";
        must "interfaces" Texts interfaces, "Where it can be reached; none: everywhere";
    }
}

shaped! {
    pub INITIATOR: Initiator = "initiator" at "/api/san/v1/iscsi/initiators/{initiator}" (iqn) {
        must "initiator" Text iqn, "Its iSCSI name";
        must "alias" Text alias, "What people call it";
        must "chapuser" Text chap_user, ITS_NAME;
        must "chapsecret" Secret has_chap_secret as Stars, "Stars, if there is one";
    }
}

shaped! {
    pub TARGET_GROUP: Group = "target_group" at "/api/san/v1/iscsi/target-groups/{group}" (name) {
        must "name" Text name, "Its name";
        must "targets" Texts members, "The iSCSI names of those in it";
    }
}

shaped! {
    pub INITIATOR_GROUP: Group = "initiator_group" at "/api/san/v1/iscsi/initiator-groups/{group}" (name) {
        must "name" Text name, "Its name";
        must "initiators" Texts members, "The iSCSI names of those in it";
    }
}

shaped! {
    pub INQUIRY: Identity = "inquiry" at "/api/san/v1/inquiry" () {
        must "vendor" Text vendor, "What INQUIRY says of every LUN: at most 8 characters";
        must "product" Text product, "At most 16 characters";
    }
}

/// Parts of what [`San::Show`] shows, each an endpoint of its own.
pub static GET_INQUIRY: Face =
    Face::get(INQUIRY_PATH, "How LUNs call themselves", Answer::One("inquiry", &INQUIRY.shape));
pub static GET_TARGETS: Face =
    Face::get(TARGETS, "List the targets", Answer::Several("targets", &TARGET.shape));
pub static GET_TARGET: Face = Face::get(A_TARGET, "A target", Answer::One("target", &TARGET.shape));
pub static GET_INITIATORS: Face =
    Face::get(INITIATORS, "List the initiators", Answer::Several("initiators", &INITIATOR.shape));
pub static GET_INITIATOR: Face =
    Face::get(AN_INITIATOR, "An initiator", Answer::One("initiator", &INITIATOR.shape));

declared! {
    pub CHANGE_INQUIRY: Put INQUIRY_PATH, "Change how LUNs call themselves";
    needs CHANGE;
    body "inquiry_changes" {
        may "vendor" Text vendor, "1 to 8 ASCII characters";
        may "product" Text product, "1 to 16 ASCII characters";
    }
    answers Answer::One("inquiry", &INQUIRY.shape);
    means { Request::San(San::SetIdentity(Identity { vendor, product })) }

    pub CREATE_TARGET: Post TARGETS, "Make a target";
    needs CHANGE;
    body "new_target" {
        may "alias" Text alias, "What people call it";
        may "iqn" Text iqn, "Its iSCSI name; without, one is made";
        may "auth" Text auth, "none (default) or chap";
        may "targetchapuser" Text chap_user, ITS_OWN;
        may "targetchapsecret" Secret chap_secret, LENGTHS;
        may "interfaces" Texts interfaces, WHERE;
    }
    answers Answer::One("target", &TARGET.shape);
    means {
        Request::San(San::TargetCreate { iqn, set: TargetChange { alias, auth, chap_user, chap_secret, interfaces } })
    }
    gives |answer| Ok(Reply::Named { name: TARGET.one(answer, "target")?.iqn });

    pub CHANGE_TARGET: Put A_TARGET, "Change a target";
    needs CHANGE;
    path (target = iqn)
    body "target_changes" {
        may "alias" Text alias, "What people call it";
        may "auth" Text auth, "none or chap";
        may "targetchapuser" Text chap_user, "Empty: none";
        may "targetchapsecret" Secret chap_secret, "Empty: none";
        may "interfaces" Texts interfaces, WHERE;
    }
    answers Answer::One("target", &TARGET.shape);
    means {
        Request::San(San::TargetSet { iqn, set: TargetChange { alias, auth, chap_user, chap_secret, interfaces } })
    }

    pub DESTROY_TARGET: Delete A_TARGET, "Destroy a target";
    needs CHANGE;
    path (target = iqn)
    answers Answer::Nothing;
    means { Request::San(San::TargetDestroy { iqn }) }

    pub CREATE_INITIATOR: Post INITIATORS, "Make an initiator known";
    needs CHANGE;
    body "new_initiator" {
        must "initiator" Text iqn, "Its iSCSI name";
        may "alias" Text alias, "What people call it";
        may "chapuser" Text chap_user, ITS_NAME;
        may "chapsecret" Secret chap_secret, LENGTHS;
    }
    answers Answer::One("initiator", &INITIATOR.shape);
    means {
        Request::San(San::InitiatorCreate { iqn, set: InitiatorChange { alias, chap_user, chap_secret } })
    }
    gives |answer| Ok(Reply::Named { name: INITIATOR.one(answer, "initiator")?.iqn });

    pub CHANGE_INITIATOR: Put AN_INITIATOR, "Change an initiator";
    needs CHANGE;
    path (initiator = iqn)
    body "initiator_changes" {
        may "alias" Text alias, "What people call it";
        may "chapuser" Text chap_user, "Empty: none";
        may "chapsecret" Secret chap_secret, "Empty: none";
    }
    answers Answer::One("initiator", &INITIATOR.shape);
    means {
        Request::San(San::InitiatorSet { iqn, set: InitiatorChange { alias, chap_user, chap_secret } })
    }

    pub DESTROY_INITIATOR: Delete AN_INITIATOR, "Forget an initiator";
    needs CHANGE;
    path (initiator = iqn)
    answers Answer::Nothing;
    means { Request::San(San::InitiatorDestroy { iqn }) }
}

/// Groups of one kind: the same requests for both.
#[derive(Debug)]
pub struct Groups {
    pub of: Members,
    pub list: Face,
    pub one: Face,
    pub create: Declared,
    pub change: Declared,
    pub destroy: Declared,
    pub shaped: &'static Shaped<Group>,
}

macro_rules! groups {
    ($id:ident, $of:ident, $members:literal, $path:literal, $shaped:ident, $new:literal, $changes:literal) => {
        pub static $id: Groups = {
            declared! {
                pub CREATE: Post $path, concat!("Make a group of ", $members);
                needs CHANGE;
                body $new {
                    must "name" Text name, "Its name";
                    may $members Texts members, "The iSCSI names of those in it";
                }
                answers Answer::One("group", &$shaped.shape);
                means { Request::San(San::GroupCreate { of: Members::$of, name, members }) }
                gives |answer| Ok(Reply::Named { name: $shaped.one(answer, "group")?.name });

                pub CHANGE_ONE: Put concat!($path, "/{group}"), concat!("Change a group of ", $members);
                needs CHANGE;
                path (group = name)
                body $changes {
                    may "name" Text new_name, "Another name";
                    may $members Texts members, "In place of those before";
                }
                answers Answer::One("group", &$shaped.shape);
                means { Request::San(San::GroupSet { of: Members::$of, name, new_name, members }) }

                pub DESTROY: Delete concat!($path, "/{group}"), concat!("Destroy a group of ", $members);
                needs CHANGE;
                path (group = name)
                answers Answer::Nothing;
                means { Request::San(San::GroupDestroy { of: Members::$of, name }) }
            }
            Groups {
                of: Members::$of,
                list: Face::get(
                    $path,
                    concat!("List the groups of ", $members),
                    Answer::Several("groups", &$shaped.shape),
                ),
                one: Face::get(
                    concat!($path, "/{group}"),
                    concat!("A group of ", $members),
                    Answer::One("group", &$shaped.shape),
                ),
                create: CREATE,
                change: CHANGE_ONE,
                destroy: DESTROY,
                shaped: &$shaped,
            }
        };
    };
}

groups!(
    TARGET_GROUPS,
    Targets,
    "targets",
    "/api/san/v1/iscsi/target-groups",
    TARGET_GROUP,
    "new_target_group",
    "target_group_changes"
);
groups!(
    INITIATOR_GROUPS,
    Initiators,
    "initiators",
    "/api/san/v1/iscsi/initiator-groups",
    INITIATOR_GROUP,
    "new_initiator_group",
    "initiator_group_changes"
);

pub(crate) static OVER_HTTP: &[&Declared] = &[
    &CHANGE_INQUIRY,
    &CREATE_TARGET,
    &CHANGE_TARGET,
    &DESTROY_TARGET,
    &CREATE_INITIATOR,
    &CHANGE_INITIATOR,
    &DESTROY_INITIATOR,
    &TARGET_GROUPS.create,
    &TARGET_GROUPS.change,
    &TARGET_GROUPS.destroy,
    &INITIATOR_GROUPS.create,
    &INITIATOR_GROUPS.change,
    &INITIATOR_GROUPS.destroy,
];
