//! What an authorization says, and the scopes in which one can lie.

use crate::{AccessError, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const ANY: &str = "*";

/// A field of work, with what its authorizations can be narrowed to and what they can give.
#[derive(Debug)]
pub struct Scope {
    pub name: &'static str,
    pub filters: &'static [&'static str],
    pub permissions: &'static [&'static str],
}

/// All of them. Names of scopes are the appliance's; each permission guards an endpoint, which a test of `rest` holds.
pub const SCOPES: &[Scope] = &[
    Scope { name: "alert", filters: &[], permissions: &["allow_configure"] },
    Scope {
        name: "analytics",
        filters: &[],
        permissions: &[
            "allow_changeDatasets",
            "allow_changeSettings",
            "allow_changeWorksheets",
            "allow_openStatistics",
        ],
    },
    Scope { name: "appliance", filters: &[], permissions: &["allow_audit", "allow_backup"] },
    Scope { name: "hardware", filters: &["pool"], permissions: &["allow_pool", "allow_scrub"] },
    Scope {
        name: "nas",
        filters: &["pool", "project", "share"],
        permissions: &[
            "allow_changeGeneralProps",
            "allow_changeProtocolProps",
            "allow_changeSpaceProps",
            "allow_clone",
            "allow_createProject",
            "allow_createShare",
            "allow_destroy",
            "allow_rename",
            "allow_rollback",
            "allow_scheduleSnap",
            "allow_takeSnap",
        ],
    },
    Scope { name: "role", filters: &["name"], permissions: &["allow_changeAuths"] },
    Scope { name: "schema", filters: &[], permissions: &["allow_modify"] },
    Scope { name: "stmf", filters: &[], permissions: &["allow_configure"] },
    Scope { name: "svc", filters: &["service"], permissions: &["allow_administer"] },
    Scope { name: "update", filters: &[], permissions: &["allow_update"] },
    Scope {
        name: "user",
        filters: &["name"],
        permissions: &["allow_changePassword", "allow_changeProperties", "allow_changeRoles"],
    },
];

pub fn scope(name: &str) -> Option<&'static Scope> {
    SCOPES.iter().find(|s| s.name == name)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorization {
    /// Its number among those of its role or user: `auth-000`.
    pub id: u32,
    pub scope: String,
    /// What it is narrowed to: a filter that is not named is `*`.
    pub filters: BTreeMap<String, String>,
    pub permissions: BTreeSet<String>,
}

impl Authorization {
    /// Refuses words that the scope does not know.
    pub fn new(
        name: &str,
        filters: BTreeMap<String, String>,
        permissions: BTreeSet<String>,
    ) -> Result<Authorization> {
        let Some(known) = scope(name) else {
            return AccessError::invalid(format!("there is no scope '{name}'"));
        };
        let unknown = filters.keys().find(|f| !known.filters.contains(&f.as_str()));
        let unknown = unknown.or(permissions.iter().find(|p| !known.permissions.contains(&p.as_str())));
        match unknown {
            Some(word) => AccessError::invalid(format!("scope '{name}' has no '{word}'")),
            None => Ok(Authorization { id: 0, scope: name.into(), filters, permissions }),
        }
    }

    pub fn name(&self) -> String {
        format!("auth-{:03}", self.id)
    }

    /// What a filter is set to.
    pub fn filter(&self, name: &str) -> &str {
        self.filters.get(name).map_or(ANY, String::as_str)
    }

    /// Whether it gives what is needed, where it is needed.
    pub fn gives(&self, needed: &Needed<'_>) -> bool {
        let holds_there = |(filter, value): (&String, &String)| {
            value == ANY || needed.on.iter().any(|(name, on)| name == filter && on == value)
        };
        self.scope == needed.scope
            && self.permissions.contains(needed.permission)
            && self.filters.iter().all(holds_there)
    }

    /// Whether it gives `permission` wherever `other` does.
    pub(crate) fn is_as_wide(&self, other: &Authorization, permission: &str) -> bool {
        let on: Vec<(&str, &str)> = other.filters.iter().map(|(f, v)| (f.as_str(), v.as_str())).collect();
        self.gives(&Needed { scope: &other.scope, permission, on: &on })
    }
}

/// What a request needs: a permission in a scope, and on what.
#[derive(Clone, Copy, Debug)]
pub struct Needed<'a> {
    pub scope: &'a str,
    pub permission: &'a str,
    /// The filters' values of what the request is about.
    pub on: &'a [(&'a str, &'a str)],
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn auth(scope: &str, filters: &[(&str, &str)], permissions: &[&str]) -> Authorization {
        let filters = filters.iter().map(|(f, v)| (f.to_string(), v.to_string())).collect();
        Authorization::new(scope, filters, permissions.iter().map(|p| p.to_string()).collect()).unwrap()
    }

    #[test]
    fn an_authorization_holds_where_its_filters_say() {
        let on_p1 = auth("nas", &[("pool", "p1"), ("share", "*")], &["allow_destroy"]);
        let needed = |on| Needed { scope: "nas", permission: "allow_destroy", on };
        assert!(on_p1.gives(&needed(&[("pool", "p1"), ("project", "x")])));
        assert!(!on_p1.gives(&needed(&[("pool", "p2")])));
        assert!(!on_p1.gives(&needed(&[])), "what is about every pool is not about one");
        assert!(!on_p1.gives(&Needed { scope: "nas", permission: "allow_rename", on: &[("pool", "p1")] }));
        assert!(!on_p1.gives(&Needed { scope: "user", permission: "allow_destroy", on: &[("pool", "p1")] }));
        let everywhere = auth("nas", &[], &["allow_destroy"]);
        assert!(everywhere.gives(&needed(&[])));
        assert!(everywhere.is_as_wide(&on_p1, "allow_destroy"));
        assert!(!on_p1.is_as_wide(&everywhere, "allow_destroy"));
    }

    #[test]
    fn words_that_a_scope_does_not_know_are_refused() {
        let none = BTreeMap::new;
        assert!(Authorization::new("moon", none(), BTreeSet::new()).is_err());
        assert!(Authorization::new("nas", none(), BTreeSet::from(["allow_fly".into()])).is_err());
        let filters = BTreeMap::from([("phase".to_string(), "full".to_string())]);
        assert!(Authorization::new("nas", filters, BTreeSet::new()).is_err());
    }
}
