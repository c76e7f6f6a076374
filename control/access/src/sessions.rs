//! Sessions: secrets that stand for a user as long as they are used.
//!
//! They live in memory alone: a restart ends them, as it does at the appliance. They are found by the digest of the
//! secret, so that neither memory nor the time of a look-up gives one away.

use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// Of one user; the one that was not used for longest makes room.
const PER_USER_MAX: usize = 64;

pub(crate) type Key = [u8; 32];

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub user: String,
    pub uid: u64,
    /// What the audit log calls it.
    pub label: String,
    pub used: f64,
    pub timeout: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Sessions(HashMap<Key, Session>);

pub(crate) fn digest(secret: &str) -> Key {
    Sha256::digest(secret.as_bytes()).into()
}

impl Sessions {
    pub fn open(&mut self, key: Key, session: Session) {
        let now = session.used;
        self.0.retain(|_, s| now - s.used < s.timeout);
        let own = |s: &Session| s.uid == session.uid;
        if self.0.values().filter(|s| own(s)).count() >= PER_USER_MAX {
            let oldest = self.0.iter().filter(|(_, s)| own(s)).min_by(|a, b| a.1.used.total_cmp(&b.1.used));
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.0.remove(&key);
            }
        }
        self.0.insert(key, session);
    }

    /// Using one keeps it.
    pub fn find(&mut self, key: &Key, now: f64) -> Option<&Session> {
        let session = self.0.get_mut(key)?;
        if now - session.used >= session.timeout {
            self.0.remove(key);
            return None;
        }
        session.used = now;
        self.0.get(key)
    }

    /// Whether it would be found.
    pub fn is_open(&self, key: &Key, now: f64) -> bool {
        self.0.get(key).is_some_and(|session| now - session.used < session.timeout)
    }

    pub fn close(&mut self, key: &Key) -> bool {
        self.0.remove(key).is_some()
    }

    pub fn close_all(&mut self, is_one: impl Fn(&Session) -> bool) {
        self.0.retain(|_, s| !is_one(s));
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(uid: u64, used: f64) -> Session {
        Session { user: "u".into(), uid, label: String::new(), used, timeout: 60.0 }
    }

    #[test]
    fn a_session_ends_when_it_is_not_used() {
        let mut sessions = Sessions::default();
        sessions.open(digest("a"), session(1, 0.0));
        assert!(sessions.find(&digest("a"), 59.0).is_some());
        assert!(sessions.find(&digest("a"), 118.0).is_some(), "it was used");
        assert!(sessions.find(&digest("b"), 118.0).is_none());
        assert!(sessions.find(&digest("a"), 178.0).is_none());
        assert!(sessions.find(&digest("a"), 0.0).is_none(), "it is gone, whatever the clock says");
    }

    #[test]
    fn one_user_has_so_many_and_no_more() {
        let mut sessions = Sessions::default();
        sessions.open(digest("other"), session(2, 0.0));
        for n in 0..100 {
            sessions.open(digest(&n.to_string()), session(1, f64::from(n) / 10.0));
        }
        assert_eq!(sessions.count(), PER_USER_MAX + 1);
        assert!(sessions.find(&digest("99"), 10.0).is_some());
        assert!(sessions.find(&digest("0"), 10.0).is_none());
        sessions.close_all(|s| s.uid == 1);
        assert_eq!(sessions.count(), 1);
        assert!(sessions.close(&digest("other")) && !sessions.close(&digest("other")));
    }
}
