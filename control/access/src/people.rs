//! Users and roles, and the rules for changing them.
//!
//! Pure: [`State`] is a value, a change is a function of it. Whoever asks is a user of it; rights that somebody hands to
//! others must be among their own, and nobody touches a user with rights that they do not have themselves: else a right
//! to change passwords would be the right to be root.

use crate::authorization::{Authorization, Needed};
use crate::gate::Now;
use crate::{AccessError, Kind, Password, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// May do everything, and is always there.
pub const ROOT: &str = "root";
/// The role that new users have: it may look at everything but the audit log, and change nothing.
pub const BASIC: &str = "basic";
const NAME_MAX: usize = 64;
const TEXT_MAX: usize = 256;
/// Minutes until a session that is not used ends.
const SESSION_TIMEOUT: u32 = 15;
pub(crate) const SESSION_TIMEOUT_MAX: u32 = 24 * 60;
pub(crate) const TOKENS_MAX: usize = 64;
pub(crate) const AUTHORIZATIONS_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub logname: String,
    pub fullname: String,
    /// Never given twice, so that nothing of a user that was removed passes to another of the same name.
    pub uid: u64,
    /// Without one nobody can log in by it.
    pub password: Option<Password>,
    pub roles: BTreeSet<String>,
    /// Authorizations of its own.
    pub exceptions: Vec<Authorization>,
    pub session_timeout: u32,
    pub tokens: Vec<Token>,
}

/// A secret by which programs are somebody, until it is taken back or ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: u32,
    pub name: String,
    pub(crate) digest: [u8; 32],
    /// Seconds since 1970; `None`: until it is taken back.
    pub expires: Option<u64>,
    pub created: u64,
}

impl Token {
    pub(crate) fn lives(&self, now: Now) -> bool {
        self.expires.is_none_or(|at| now.wall < at)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub name: String,
    pub description: String,
    pub authorizations: Vec<Authorization>,
}

/// What is to be different; `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    pub fullname: Option<String>,
    pub roles: Option<BTreeSet<String>>,
    pub session_timeout: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub users: BTreeMap<String, User>,
    pub roles: BTreeMap<String, Role>,
    next_uid: u64,
    #[serde(default)]
    next_token: u32,
    /// What an administrator has set: where the API listens, and the like.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

impl Default for State {
    fn default() -> State {
        State::first()
    }
}

fn none<T>(what: &str, name: &str) -> Result<T> {
    Err(AccessError::new(Kind::NotFound, format!("there is no {what} '{name}'")))
}

fn denied<T>(message: &str) -> Result<T> {
    Err(AccessError::new(Kind::Denied, message))
}

/// As names of accounts are: they travel in paths, and in lines of the audit log.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let is_name = name.bytes().all(is_plain) && name.starts_with(|c: char| c.is_ascii_alphabetic());
    match is_name && name.len() <= NAME_MAX {
        true => Ok(()),
        false => AccessError::invalid(format!(
            "a name begins with a letter and has letters, digits, '-', '_' and '.', at most {NAME_MAX}"
        )),
    }
}

pub(crate) fn check_text(text: &str) -> Result<()> {
    match text.len() <= TEXT_MAX && !text.chars().any(char::is_control) {
        true => Ok(()),
        false => AccessError::invalid(format!("a text has at most {TEXT_MAX} bytes, all of one line")),
    }
}

impl State {
    /// Before the first change: root, whom nobody can log in as before a password is set.
    pub fn first() -> State {
        let root = User {
            logname: ROOT.into(),
            fullname: "Super-User".into(),
            uid: 0,
            password: None,
            roles: BTreeSet::new(),
            exceptions: Vec::new(),
            session_timeout: SESSION_TIMEOUT,
            tokens: Vec::new(),
        };
        let basic = Role {
            name: BASIC.into(),
            description: "Basic administration".into(),
            authorizations: Vec::new(),
        };
        State {
            users: BTreeMap::from([(ROOT.into(), root)]),
            roles: BTreeMap::from([(BASIC.into(), basic)]),
            next_uid: 2_000_000_001,
            next_token: 0,
            settings: BTreeMap::new(),
        }
    }

    /// Whether this number of a user was given to one.
    pub(crate) fn gave_uid(&self, uid: u64) -> bool {
        uid < self.next_uid
    }

    /// Whether this number of a token was given to one.
    pub(crate) fn gave_token(&self, id: u32) -> bool {
        id < self.next_token
    }

    pub fn user(&self, name: &str) -> Result<&User> {
        self.users.get(name).map_or_else(|| none("user", name), Ok)
    }

    pub fn role(&self, name: &str) -> Result<&Role> {
        self.roles.get(name).map_or_else(|| none("role", name), Ok)
    }

    fn user_mut(&mut self, name: &str) -> Result<&mut User> {
        self.users.get_mut(name).map_or_else(|| none("user", name), Ok)
    }

    fn role_mut(&mut self, name: &str) -> Result<&mut Role> {
        self.roles.get_mut(name).map_or_else(|| none("role", name), Ok)
    }

    /// Everything that a user was given.
    fn given<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Authorization> {
        let of_roles = user.roles.iter().filter_map(|r| self.roles.get(r)).flat_map(|r| &r.authorizations);
        of_roles.chain(&user.exceptions)
    }

    pub fn may(&self, user: &str, needed: &Needed<'_>) -> bool {
        let Some(user) = self.users.get(user) else { return false };
        user.logname == ROOT || self.given(user).any(|a| a.gives(needed))
    }

    /// Whether a user may do that to anything at all.
    pub fn may_some(&self, user: &str, scope: &str, permission: &str) -> bool {
        let Some(user) = self.users.get(user) else { return false };
        let gives = |a: &Authorization| a.scope == scope && a.permissions.contains(permission);
        user.logname == ROOT || self.given(user).any(gives)
    }

    /// Whether a user may look at what there is: one with a role or an authorization may. Others are told nothing.
    pub fn may_look(&self, user: &str) -> bool {
        let Some(user) = self.users.get(user) else { return false };
        let has_role = || user.roles.iter().any(|role| self.roles.contains_key(role));
        user.logname == ROOT || !user.exceptions.is_empty() || has_role()
    }

    /// Whether `by` has everything that these authorizations give.
    pub fn covers<'a>(&self, by: &str, mut all: impl Iterator<Item = &'a Authorization>) -> bool {
        let Some(by) = self.users.get(by) else { return false };
        by.logname == ROOT
            || all.all(|a| a.permissions.iter().all(|p| self.given(by).any(|own| own.is_as_wide(a, p))))
    }

    /// Whether `by` stands above `user`, or is it.
    fn stands_above(&self, by: &str, user: &User) -> Result<()> {
        let is_above = by == ROOT || (user.logname != ROOT && self.covers(by, self.given(user)));
        match is_above || by == user.logname {
            true => Ok(()),
            false => denied("that user may do things that you may not"),
        }
    }

    fn may_hand_out(&self, by: &str, roles: &BTreeSet<String>) -> Result<()> {
        for name in roles {
            if !self.covers(by, self.role(name)?.authorizations.iter()) {
                return denied("that role gives what you do not have yourself");
            }
        }
        Ok(())
    }

    /// As [`State::create_user`], by one who must have what the role of new users gives.
    pub fn create_user_by(
        &mut self,
        by: &str,
        name: &str,
        fullname: &str,
        password: Option<Password>,
    ) -> Result<&User> {
        self.may_hand_out(by, &BTreeSet::from([BASIC.to_string()]))?;
        self.create_user(name, fullname, password)
    }

    pub fn create_user(&mut self, name: &str, fullname: &str, password: Option<Password>) -> Result<&User> {
        check_name(name)?;
        check_text(fullname)?;
        if self.users.contains_key(name) {
            return Err(AccessError::new(Kind::Exists, format!("user '{name}' exists already")));
        }
        let user = User {
            logname: name.into(),
            fullname: fullname.into(),
            uid: self.next_uid,
            password,
            roles: BTreeSet::from([BASIC.to_string()]),
            exceptions: Vec::new(),
            session_timeout: SESSION_TIMEOUT,
            tokens: Vec::new(),
        };
        self.next_uid += 1;
        Ok(self.users.entry(name.into()).or_insert(user))
    }

    pub fn change_user(&mut self, by: &str, name: &str, change: UserChange) -> Result<()> {
        self.stands_above(by, self.user(name)?)?;
        if let Some(roles) = &change.roles {
            let had = &self.user(name)?.roles;
            self.may_hand_out(by, &roles.difference(had).cloned().collect())?;
        }
        if let Some(text) = &change.fullname {
            check_text(text)?;
        }
        if change.session_timeout.is_some_and(|t| !(1..=SESSION_TIMEOUT_MAX).contains(&t)) {
            return AccessError::invalid(format!("a session ends after 1 to {SESSION_TIMEOUT_MAX} minutes"));
        }
        let user = self.user_mut(name)?;
        user.fullname = change.fullname.unwrap_or_else(|| user.fullname.clone());
        user.roles = change.roles.unwrap_or_else(|| user.roles.clone());
        user.session_timeout = change.session_timeout.unwrap_or(user.session_timeout);
        Ok(())
    }

    /// Sessions and tokens that there are go on; see [`crate::Access::change`] for the sessions.
    pub fn set_password(&mut self, by: &str, name: &str, password: Password) -> Result<()> {
        self.stands_above(by, self.user(name)?)?;
        self.user_mut(name)?.password = Some(password);
        Ok(())
    }

    pub fn remove_user(&mut self, by: &str, name: &str) -> Result<()> {
        self.stands_above(by, self.user(name)?)?;
        if name == ROOT || name == by {
            return denied("root, and whoever asks, cannot be removed");
        }
        self.users.remove(name);
        Ok(())
    }

    pub fn create_role(
        &mut self,
        by: &str,
        name: &str,
        description: &str,
        like: Option<&str>,
    ) -> Result<&Role> {
        check_name(name)?;
        check_text(description)?;
        let authorizations = match like {
            Some(like) => {
                self.may_hand_out(by, &BTreeSet::from([like.to_string()]))?;
                self.role(like)?.authorizations.clone()
            }
            None => Vec::new(),
        };
        if self.roles.contains_key(name) {
            return Err(AccessError::new(Kind::Exists, format!("role '{name}' exists already")));
        }
        let role = Role { name: name.into(), description: description.into(), authorizations };
        Ok(self.roles.entry(name.into()).or_insert(role))
    }

    pub fn describe_role(&mut self, name: &str, description: &str) -> Result<()> {
        check_text(description)?;
        self.role_mut(name)?.description = description.into();
        Ok(())
    }

    /// Takes the role from all users; `by` must have what it gives.
    pub fn revoke_role(&mut self, by: &str, name: &str) -> Result<()> {
        self.may_hand_out(by, &BTreeSet::from([name.to_string()]))?;
        for user in self.users.values_mut() {
            user.roles.remove(name);
        }
        Ok(())
    }

    /// As [`State::revoke_role`], and the role itself.
    pub fn remove_role(&mut self, by: &str, name: &str) -> Result<()> {
        self.role(name)?;
        if name == BASIC {
            return denied("the basic role cannot be removed");
        }
        self.revoke_role(by, name)?;
        self.roles.remove(name);
        Ok(())
    }

    /// To a role's authorizations, or a user's exceptions.
    fn list(&mut self, holder: Holder<'_>) -> Result<&mut Vec<Authorization>> {
        match holder {
            Holder::Role(name) => self.role_mut(name).map(|r| &mut r.authorizations),
            Holder::User(name) => self.user_mut(name).map(|u| &mut u.exceptions),
        }
    }

    pub fn authorize(&mut self, by: &str, holder: Holder<'_>, new: Authorization) -> Result<Authorization> {
        self.list(holder)?;
        if !self.covers(by, std::iter::once(&new)) {
            return denied("you do not have that yourself");
        }
        let list = self.list(holder)?;
        if list.len() >= AUTHORIZATIONS_MAX {
            return AccessError::invalid(format!("there are {AUTHORIZATIONS_MAX} authorizations already"));
        }
        let id = list.iter().map(|a| a.id + 1).max().unwrap_or(0);
        let new = Authorization { id, ..new };
        list.push(new.clone());
        Ok(new)
    }

    pub fn withdraw(&mut self, by: &str, holder: Holder<'_>, auth: &str) -> Result<()> {
        match holder {
            Holder::User(name) => self.stands_above(by, self.user(name)?)?,
            Holder::Role(name) => self.may_hand_out(by, &BTreeSet::from([name.to_string()]))?,
        }
        let list = self.list(holder)?;
        let before = list.len();
        list.retain(|a| a.name() != auth);
        if list.len() == before { none("authorization", auth) } else { Ok(()) }
    }

    /// One's own only: a token is its owner.
    pub(crate) fn add_token(&mut self, user: &str, mut token: Token) -> Result<u32> {
        check_text(&token.name)?;
        let id = self.next_token;
        let user = self.user_mut(user)?;
        user.tokens.retain(|t| t.expires.is_none_or(|at| at > token.created));
        if user.tokens.len() >= TOKENS_MAX {
            return AccessError::invalid(format!("there are {TOKENS_MAX} tokens already"));
        }
        token.id = id;
        user.tokens.push(token);
        self.next_token += 1;
        Ok(id)
    }

    pub fn remove_token(&mut self, by: &str, name: &str, id: u32) -> Result<()> {
        self.stands_above(by, self.user(name)?)?;
        let user = self.user_mut(name)?;
        let before = user.tokens.len();
        user.tokens.retain(|t| t.id != id);
        if user.tokens.len() == before { none("token", &id.to_string()) } else { Ok(()) }
    }
}

/// Who has authorizations.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    Role(&'a str),
    /// As exceptions.
    User(&'a str),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorization::tests::auth;

    fn needed<'a>(scope: &'a str, permission: &'a str, on: &'a [(&'a str, &'a str)]) -> Needed<'a> {
        Needed { scope, permission, on }
    }

    #[test]
    fn a_new_user_gets_no_more_than_its_maker_has() {
        let mut state = state();
        state.authorize(ROOT, Holder::User("bob"), auth("user", &[], &["allow_changeProperties"])).unwrap();
        state.create_user_by("bob", "carl", "", None).unwrap();
        state.authorize(ROOT, Holder::Role(BASIC), auth("hardware", &[], &["allow_scrub"])).unwrap();
        state.create_user_by("bob", "dora", "", None).unwrap();
        let none = UserChange { roles: Some(BTreeSet::new()), ..UserChange::default() };
        state.change_user(ROOT, "bob", none).unwrap();
        assert_eq!(state.create_user_by("bob", "eve", "", None).unwrap_err().kind, Kind::Denied);
        state.create_user_by(ROOT, "eve", "", None).unwrap();
    }

    /// `ann` has a role that may destroy shares of p1 and change passwords; `bob` has nothing.
    fn state() -> State {
        let mut state = State::first();
        state.create_user("ann", "Ann", None).unwrap();
        state.create_user("bob", "Bob", None).unwrap();
        state.create_role(ROOT, "op", "operators", None).unwrap();
        let role = Holder::Role("op");
        state.authorize(ROOT, role, auth("nas", &[("pool", "p1")], &["allow_destroy"])).unwrap();
        state.authorize(ROOT, role, auth("user", &[], &["allow_changePassword"])).unwrap();
        let roles = Some(BTreeSet::from(["op".to_string()]));
        state.change_user(ROOT, "ann", UserChange { roles, ..UserChange::default() }).unwrap();
        state
    }

    #[test]
    fn users_may_what_their_roles_and_exceptions_give() {
        let mut state = state();
        let on_p1: &[_] = &[("pool", "p1")];
        assert!(state.may(ROOT, &needed("nas", "allow_destroy", &[])));
        assert!(state.may("ann", &needed("nas", "allow_destroy", on_p1)));
        assert!(!state.may("ann", &needed("nas", "allow_destroy", &[("pool", "p2")])));
        assert!(!state.may("bob", &needed("nas", "allow_destroy", on_p1)));
        assert!(!state.may("nobody", &needed("nas", "allow_destroy", on_p1)));
        state
            .authorize("ann", Holder::User("bob"), auth("nas", &[("pool", "p1")], &["allow_destroy"]))
            .unwrap();
        assert!(state.may("bob", &needed("nas", "allow_destroy", on_p1)));
        state.withdraw(ROOT, Holder::User("bob"), "auth-000").unwrap();
        assert!(!state.may("bob", &needed("nas", "allow_destroy", on_p1)));
        state.remove_role(ROOT, "op").unwrap();
        assert!(!state.may("ann", &needed("nas", "allow_destroy", on_p1)));
    }

    #[test]
    fn nobody_hands_out_what_they_do_not_have() {
        let mut state = state();
        let wide = auth("nas", &[], &["allow_destroy"]);
        let denied = |outcome: Result<()>| assert_eq!(outcome.unwrap_err().kind, Kind::Denied);
        denied(state.authorize("ann", Holder::User("ann"), wide.clone()).map(drop));
        denied(state.authorize("ann", Holder::Role(BASIC), wide).map(drop));
        let roles = Some(BTreeSet::from(["op".to_string()]));
        denied(state.change_user("bob", "bob", UserChange { roles, ..UserChange::default() }));
        denied(state.create_role("bob", "mine", "", Some("op")).map(drop));
        state.create_role("ann", "hers", "", Some("op")).unwrap();
        // Nor is a role taken by a user without what it gives.
        denied(state.revoke_role("bob", "op"));
        denied(state.remove_role("bob", "op"));
        denied(state.withdraw("bob", Holder::Role("op"), "auth-000"));
        state.revoke_role("ann", "op").unwrap_or_else(|e| panic!("{e}"));
    }

    #[test]
    fn nobody_becomes_somebody_who_may_more() {
        let mut state = state();
        let password = Password::nobodys;
        for (by, name) in [("ann", ROOT), ("bob", "ann")] {
            assert_eq!(state.set_password(by, name, password()).unwrap_err().kind, Kind::Denied);
            assert_eq!(state.remove_user(by, name).unwrap_err().kind, Kind::Denied);
            assert_eq!(state.remove_token(by, name, 0).unwrap_err().kind, Kind::Denied);
        }
        state.set_password("ann", "bob", password()).unwrap();
        assert_eq!(state.remove_user(ROOT, ROOT).unwrap_err().kind, Kind::Denied);
        state.remove_user("ann", "bob").unwrap();
        let uid = state.create_user("bob", "", None).unwrap().uid;
        assert_eq!(uid, 2_000_000_003, "another bob");
    }

    #[test]
    fn names_are_plain_and_texts_are_lines() {
        let mut state = State::first();
        for name in ["", "1a", "a/b", "a b", "é", "..", &"x".repeat(65)] {
            assert_eq!(state.create_user(name, "", None).unwrap_err().kind, Kind::Invalid, "{name}");
        }
        assert_eq!(state.create_user("a", "x\ny", None).unwrap_err().kind, Kind::Invalid);
        assert_eq!(state.create_user(ROOT, "", None).unwrap_err().kind, Kind::Exists);
        assert_eq!(state.remove_role(ROOT, BASIC).unwrap_err().kind, Kind::Denied);
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }
}
