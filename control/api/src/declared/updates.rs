//! Deferred updates over HTTP, and the configuration as a backup holds it.

use crate::http::{Answer, Declared, Kind, Need, Shape, must};
use crate::{DeferredUpdate, Reply, Request, Secret, declared, shaped};

shaped! {
    pub UPDATE: DeferredUpdate = "update" {
        must "pool" Text pool, "The pool that could have it";
        must "feature" Text feature, "Its short name";
        must "description" Text description, "What it is";
        must "needs" Texts needs, "Others that come with it";
        must "read_only_compatible" Flag read_only_compatible,
            "Programs that do not know it can still read the pool";
    }
}

static BACKUP: Shape = Shape::new(
    "backup",
    &[must(
        "text",
        Kind::ToldOnce,
        "The whole configuration, sealed, with the secrets in it: for a file that nobody reads",
    )],
);

const BACK_UP: Need = Need::Right("appliance", "allow_backup");
const UPDATES: Answer = Answer::Several("updates", &UPDATE.shape);

/// As an answer tells them.
pub fn told(updates: &[DeferredUpdate]) -> serde_json::Value {
    UPDATE.tell_all(updates, "updates")
}

declared! {
    pub SHOW: Get "/api/system/v1/updates", "List deferred updates: features that pools could have";
    every (pools)
    answers UPDATES;
    means { Request::DeferredUpdates { pools } }
    gives |answer| Ok(Reply::DeferredUpdates(UPDATE.all(answer, "updates")?));

    pub APPLY: Put "/api/system/v1/updates/apply", "Enable features of a pool, for good; ?confirm=true";
    needs Need::Right("update", "allow_update");
    always confirm;
    body "apply_updates" {
        must "pool" Text pool, "The pool";
        may "features" Texts features, "Their short names; without, all that are deferred";
    }
    answers UPDATES;
    means { Request::ApplyUpdates { pool, features } }

    pub BACKUP_TELL: Post "/api/system/v1/configuration/backup",
        "Save the configuration: targets, initiators, groups, services, the schema";
    needs BACK_UP;
    answers Answer::One("backup", &BACKUP);
    means { Request::ConfigurationTell }
    gives |answer| Ok(Reply::Configuration { text: Secret::new(answer["backup"]["text"].as_str().unwrap_or_default()) });
    plain |reply| match reply {
        Reply::Configuration { text } => Some(serde_json::json!({ "backup": { "text": text.reveal() } })),
        _ => None,
    };

    pub BACKUP_TAKE: Put "/api/system/v1/configuration/restore",
        "Replace the configuration by a backup; ?confirm=true";
    needs BACK_UP;
    always confirm;
    body "restore" { must "text" Secret text, "What a backup told"; }
    answers Answer::Nothing;
    means { Request::ConfigurationTake { text } }
}

pub(super) static ALL: &[&Declared] = &[&SHOW, &APPLY, &BACKUP_TELL, &BACKUP_TAKE];
