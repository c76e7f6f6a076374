//! The SAN over HTTP: targets, initiators, and groups of them.

use crate::http::{Answer, Declared, Face, Need, Shaped, Stars, Word};
use crate::san::{Auth, Group, Identity, Initiator, InitiatorChange, Members, San, Target, TargetChange};
use crate::{Reply, Request, declared, shaped};

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
    pub FC_TARGET_GROUP: Group = "fc_target_group" at "/api/san/v1/fc/target-groups/{group}" (name) {
        must "name" Text name, "Its name";
        must "targets" Texts members, "The world-wide names of those in it";
    }
}

shaped! {
    pub FC_INITIATOR_GROUP: Group = "fc_initiator_group" at "/api/san/v1/fc/initiator-groups/{group}" (name) {
        must "name" Text name, "Its name";
        must "initiators" Texts members, "The world-wide names of those in it";
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
    ($id:ident, $of:ident, $what:literal, $members:literal $names:literal, $path:literal, $shaped:ident, $new:literal, $changes:literal) => {
        pub static $id: Groups = {
            declared! {
                pub CREATE: Post $path, concat!("Make a group of ", $what);
                needs CHANGE;
                body $new {
                    must "name" Text name, "Its name";
                    may $members Texts members, $names;
                }
                answers Answer::One("group", &$shaped.shape);
                means { Request::San(San::GroupCreate { of: Members::$of, name, members }) }
                gives |answer| Ok(Reply::Named { name: $shaped.one(answer, "group")?.name });

                pub CHANGE_ONE: Put concat!($path, "/{group}"), concat!("Change a group of ", $what);
                needs CHANGE;
                path (group = name)
                body $changes {
                    may "name" Text new_name, "Another name";
                    may $members Texts members, "In place of those before";
                }
                answers Answer::One("group", &$shaped.shape);
                means { Request::San(San::GroupSet { of: Members::$of, name, new_name, members }) }

                pub DESTROY: Delete concat!($path, "/{group}"), concat!("Destroy a group of ", $what);
                needs CHANGE;
                path (group = name)
                answers Answer::Nothing;
                means { Request::San(San::GroupDestroy { of: Members::$of, name }) }
            }
            Groups {
                of: Members::$of,
                list: Face::get(
                    $path,
                    concat!("List the groups of ", $what),
                    Answer::Several("groups", &$shaped.shape),
                ),
                one: Face::get(
                    concat!($path, "/{group}"),
                    concat!("A group of ", $what),
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
    "targets" "The iSCSI names of those in it",
    "/api/san/v1/iscsi/target-groups",
    TARGET_GROUP,
    "new_target_group",
    "target_group_changes"
);
groups!(
    INITIATOR_GROUPS,
    Initiators,
    "initiators",
    "initiators" "The iSCSI names of those in it",
    "/api/san/v1/iscsi/initiator-groups",
    INITIATOR_GROUP,
    "new_initiator_group",
    "initiator_group_changes"
);

groups!(
    FC_TARGET_GROUPS,
    FcTargets,
    "targets of Fibre Channel",
    "targets" "The world-wide names of those in it",
    "/api/san/v1/fc/target-groups",
    FC_TARGET_GROUP,
    "new_fc_target_group",
    "fc_target_group_changes"
);
groups!(
    FC_INITIATOR_GROUPS,
    FcInitiators,
    "initiators of Fibre Channel",
    "initiators" "The world-wide names of those in it",
    "/api/san/v1/fc/initiator-groups",
    FC_INITIATOR_GROUP,
    "new_fc_initiator_group",
    "fc_initiator_group_changes"
);

/// Of either transport.
pub static GROUPS: [&Groups; 4] =
    [&TARGET_GROUPS, &INITIATOR_GROUPS, &FC_TARGET_GROUPS, &FC_INITIATOR_GROUPS];

pub(super) static ALL: &[&Declared] = &[
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
    &FC_TARGET_GROUPS.create,
    &FC_TARGET_GROUPS.change,
    &FC_TARGET_GROUPS.destroy,
    &FC_INITIATOR_GROUPS.create,
    &FC_INITIATOR_GROUPS.change,
    &FC_INITIATOR_GROUPS.destroy,
];
