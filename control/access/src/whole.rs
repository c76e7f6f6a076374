//! Whether users and roles that came from elsewhere are such as changes here could have made.
//!
//! A restored configuration brings them. Each rule that a change keeps is looked at again, of everything: names, numbers
//! that are given once, roles and permissions that there are, and what a hash may cost at a login.

use crate::people::{AUTHORIZATIONS_MAX, SESSION_TIMEOUT_MAX, TOKENS_MAX, check_name, check_text};
use crate::{AccessError, Authorization, BASIC, ROOT, Result, Role, State, User};
use std::collections::BTreeSet;

const SETTING_MAX: usize = 1024;

impl State {
    /// Says the first thing that is wrong with it, if anything is.
    pub fn check(&self) -> Result<()> {
        for name in [ROOT, BASIC] {
            if !self.users.contains_key(name) && !self.roles.contains_key(name) {
                return AccessError::invalid(format!("there is no '{name}'"));
            }
        }
        if self.users.get(ROOT).is_none_or(|root| root.uid != 0) || !self.roles.contains_key(BASIC) {
            return AccessError::invalid("root is user 0, and basic a role");
        }
        let mut uids = BTreeSet::new();
        let mut tokens = BTreeSet::new();
        for (name, user) in &self.users {
            same_name(name, &user.logname)?;
            self.check_user(user)?;
            if !uids.insert(user.uid) || (name != ROOT && !self.gave_uid(user.uid)) {
                return AccessError::invalid(format!("user '{name}' has the number of another"));
            }
            for token in &user.tokens {
                check_text(&token.name)?;
                if !tokens.insert(token.id) || !self.gave_token(token.id) {
                    return AccessError::invalid(format!("user '{name}' has a token of another"));
                }
            }
        }
        for (name, role) in &self.roles {
            same_name(name, &role.name)?;
            check_role(role)?;
        }
        self.settings.iter().try_for_each(|(name, text)| check_setting(name, text))
    }

    fn check_user(&self, user: &User) -> Result<()> {
        check_name(&user.logname)?;
        check_text(&user.fullname)?;
        let wrong = |what: &str| AccessError::invalid(format!("user '{}' {what}", user.logname));
        if let Some(role) = user.roles.iter().find(|role| !self.roles.contains_key(*role)) {
            return wrong(&format!("has the role '{role}', which is not there"));
        }
        if !(1..=SESSION_TIMEOUT_MAX).contains(&user.session_timeout) || user.tokens.len() > TOKENS_MAX {
            return wrong("has sessions or tokens beyond measure");
        }
        if user.password.as_ref().is_some_and(|password| !password.is_sound()) {
            return wrong("has a password that nobody can have set");
        }
        check_authorizations(&user.exceptions)
    }
}

fn same_name(key: &str, own: &str) -> Result<()> {
    match key == own {
        true => Ok(()),
        false => AccessError::invalid(format!("'{key}' calls itself '{own}'")),
    }
}

fn check_role(role: &Role) -> Result<()> {
    check_name(&role.name)?;
    check_text(&role.description)?;
    check_authorizations(&role.authorizations)
}

fn check_authorizations(all: &[Authorization]) -> Result<()> {
    if all.len() > AUTHORIZATIONS_MAX {
        return AccessError::invalid(format!("there are more than {AUTHORIZATIONS_MAX} authorizations"));
    }
    let mut ids = BTreeSet::new();
    for one in all {
        Authorization::new(&one.scope, one.filters.clone(), one.permissions.clone())?;
        if !ids.insert(one.id) || one.id == u32::MAX {
            return AccessError::invalid(format!("authorization {} is there twice", one.name()));
        }
    }
    Ok(())
}

fn check_setting(name: &str, text: &str) -> Result<()> {
    let is_sound = text.len() <= SETTING_MAX && !text.chars().any(char::is_control);
    match is_sound && check_name(name).is_ok() {
        true => Ok(()),
        false => AccessError::invalid(format!("setting '{name}' is none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn state() -> State {
        let mut state = State::first();
        state.create_user("ann", "Ann", Some(crate::Password::nobodys())).unwrap();
        state.create_role(ROOT, "op", "Operators", None).unwrap();
        let auth = Authorization::new("nas", Default::default(), ["allow_destroy".to_string()].into());
        state.authorize(ROOT, crate::Holder::Role("op"), auth.unwrap()).unwrap();
        state
    }

    /// A restored configuration was believed as it came: without root, with roles that are not there, or with a hash that
    /// takes all memory to compute, it kept everybody out.
    #[test]
    fn a_state_that_no_change_could_have_made_is_refused() {
        state().check().unwrap();
        State::first().check().unwrap();
        let whole = serde_json::to_value(state()).unwrap();
        let changes: &[(&str, Value)] = &[
            ("/users/root/uid", json!(7)),
            ("/users/root/logname", json!("boot")),
            ("/users/ann/uid", json!(0)),
            ("/users/ann/uid", json!(4_000_000_000u64)),
            ("/users/ann/roles", json!(["ghost"])),
            ("/users/ann/session_timeout", json!(0)),
            ("/users/ann/fullname", json!("a\nb")),
            ("/users/ann/password/memory_kib", json!(4_000_000_000u32)),
            ("/users/ann/password/passes", json!(0)),
            ("/users/ann/password/salt", json!([])),
            ("/roles/op/authorizations/0/scope", json!("moon")),
            ("/roles/op/authorizations/0/permissions", json!(["allow_fly"])),
            ("/roles/basic/name", json!("op")),
            ("/roles", json!({})),
            ("/settings", json!({ "rest.listen": "a\u{0}" })),
            ("/settings", json!({ "": "x" })),
        ];
        for (at, value) in changes {
            let mut changed = whole.clone();
            *changed.pointer_mut(at).unwrap() = value.clone();
            let state: State = serde_json::from_value(changed).unwrap();
            assert!(state.check().is_err(), "{at} = {value}");
        }
    }
}
