//! Deferred updates: features of pools that are not enabled yet. And the configuration as a backup holds it.

use crate::http::{Answer, Declared, Kind, Need, Shape, must};
use crate::{Reply, Request, Secret, declared, shaped};
use serde::{Deserialize, Serialize};

/// A feature that a pool could have. Once it is enabled it stays so, and other implementations must know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredUpdate {
    pub pool: String,
    /// By its short name: `large_blocks`.
    pub feature: String,
    pub description: String,
    /// Others that come with it.
    pub needs: Vec<String>,
    /// Programs that do not know it can still read the pool.
    pub read_only_compatible: bool,
}

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

pub(crate) static OVER_HTTP: &[&Declared] = &[&SHOW, &APPLY, &BACKUP_TELL, &BACKUP_TAKE];
