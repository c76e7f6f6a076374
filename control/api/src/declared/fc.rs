//! Fibre Channel over HTTP: targets and initiators by the WWNs of their ports. Their groups are in
//! [`crate::declared::san`], with those of iSCSI.

use crate::http::{Answer, Declared, Face, Need, Shaped};
use crate::san::{FcPort, Members, San};
use crate::{Reply, Request, declared, shaped};

const CHANGE: Need = Need::Right("stmf", "allow_configure");

shaped! {
    pub TARGET: FcPort = "fc_target" at "/api/san/v1/fc/targets/{target}" (wwn) {
        must "wwn" Text wwn, "The world-wide name of its port";
        must "alias" Text alias, "What people call it";
        must "status" Text status, "no port: this machine serves no port of that name";
    }
}

shaped! {
    pub INITIATOR: FcPort = "fc_initiator" at "/api/san/v1/fc/initiators/{initiator}" (wwn) {
        must "wwn" Text wwn, "The world-wide name of its port";
        must "alias" Text alias, "What people call it";
    }
}

/// Ports of one kind: the same requests for both.
#[derive(Debug)]
pub struct Ports {
    pub of: Members,
    /// Parts of what [`San::Show`] shows.
    pub list: Face,
    pub one: Face,
    pub create: Declared,
    pub change: Declared,
    pub destroy: Declared,
    pub shaped: &'static Shaped<FcPort>,
    /// Under what name one is told, and all of them.
    pub words: (&'static str, &'static str),
}

macro_rules! ports {
    ($id:ident, $of:ident, $a:literal, $word:literal $brace:ident, $shaped:ident, $new:literal, $changes:literal) => {
        pub static $id: Ports = {
            const ALL: &str = concat!("/api/san/v1/fc/", $word, "s");
            const ONE: &str = concat!("/api/san/v1/fc/", $word, "s/{", $word, "}");
            declared! {
                pub CREATE: Post ALL, concat!("Make ", $a, " of Fibre Channel known");
                needs CHANGE;
                body $new {
                    must "wwn" Text wwn, "The world-wide name of its port: 16 hexadecimal digits";
                    may "alias" Text alias, "What people call it";
                }
                answers Answer::One($word, &$shaped.shape);
                means { Request::San(San::FcCreate { of: Members::$of, wwn, alias }) }
                gives |answer| Ok(Reply::Named { name: $shaped.one(answer, $word)?.wwn });

                pub CHANGE_ONE: Put ONE, concat!("Change ", $a, " of Fibre Channel");
                needs CHANGE;
                path ($brace = wwn)
                body $changes { may "alias" Text alias, "What people call it"; }
                answers Answer::One($word, &$shaped.shape);
                means { Request::San(San::FcSet { of: Members::$of, wwn, alias }) }

                pub DESTROY: Delete ONE, concat!("Forget ", $a, " of Fibre Channel");
                needs CHANGE;
                path ($brace = wwn)
                answers Answer::Nothing;
                means { Request::San(San::FcDestroy { of: Members::$of, wwn }) }
            }
            Ports {
                of: Members::$of,
                list: Face::get(
                    ALL,
                    concat!("List the ", $word, "s of Fibre Channel"),
                    Answer::Several(concat!($word, "s"), &$shaped.shape),
                ),
                one: Face::get(
                    ONE,
                    concat!("One ", $word, " of Fibre Channel"),
                    Answer::One($word, &$shaped.shape),
                ),
                create: CREATE,
                change: CHANGE_ONE,
                destroy: DESTROY,
                shaped: &$shaped,
                words: ($word, concat!($word, "s")),
            }
        };
    };
}

ports!(TARGETS, FcTargets, "a target", "target" target, TARGET, "new_fc_target", "fc_target_changes");
ports!(
    INITIATORS,
    FcInitiators,
    "an initiator",
    "initiator" initiator,
    INITIATOR,
    "new_fc_initiator",
    "fc_initiator_changes"
);

pub(super) static ALL: &[&Declared] = &[
    &TARGETS.create,
    &TARGETS.change,
    &TARGETS.destroy,
    &INITIATORS.create,
    &INITIATORS.change,
    &INITIATORS.destroy,
];
