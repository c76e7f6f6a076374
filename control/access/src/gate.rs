//! The gate: how somebody proves who they are, and how changes are made to hold.

use crate::refusals::Refusals;
use crate::sessions::{Key, Session, Sessions, digest};
use crate::throttle::{Places, Throttle};
use crate::{
    AccessError, Entropy, Kind, Password, ROOT, Record, Result, Secret, State, Store, Token, User, password,
};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;

/// How long a password that was right need not be hashed again, for clients that send it with every request.
const REMEMBERED: f64 = 60.0;
const REMEMBERED_MAX: usize = 256;
const MINUTE: f64 = 60.0;
/// How long a one-time code may lie about, and how often a wrong one is said before it is worth nothing. From one address
/// ten are said at once and then ten a minute, so that only thousands of them could end it for its owner; and that
/// many find one of 2^45 with a chance of 2^-25.
const CODE_LIVES: f64 = 60.0 * MINUTE;
const CODE_TRIES: u32 = 1 << 20;
/// 45 bits, in letters that are not mistaken for one another.
const CODE_LETTERS: usize = 9;
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// In the throttle; no user is called that.
const CODE: &str = "one-time code";

/// Both clocks, as the caller reads them.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Seconds since 1970.
    pub wall: u64,
    /// Seconds of a clock that only runs forward.
    pub steady: f64,
}

/// Who somebody has proved to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub uid: u64,
    /// The session or token by which, for the audit log; empty with a password.
    pub session: String,
    proof: Proof,
}

/// By what, so that it can be asked again whether that still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// Nothing at all.
    None,
    /// The Unix socket of the home, or the one-time code.
    Owner,
    /// A password: the digest of its hash.
    Password(Key),
    /// A session or a token.
    Secret(Key),
}

impl Identity {
    /// It was shown by a token, which may have been written down somewhere.
    pub fn is_token(&self) -> bool {
        matches!(self.proof, Proof::Secret(_)) && self.session.starts_with("token-")
    }

    /// For the audit log: of a name by which it was tried in vain.
    pub fn unproven(name: String) -> Identity {
        Identity { user: name, uid: u64::MAX, session: String::new(), proof: Proof::None }
    }
}

/// Why nobody was let in. It does not say more, since it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No such user, or not the password, or the session has ended.
    Wrong,
    /// Too many attempts: seconds to wait.
    Later(u64),
}

/// A session that was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    pub secret: Secret,
    pub label: String,
}

/// A login under way: [`Attempt::check`] takes its time, so it is for a thread that may.
#[derive(Debug)]
pub struct Attempt {
    name: String,
    address: Option<IpAddr>,
    uid: Option<u64>,
    password: Password,
    places: Places,
}

#[derive(Debug)]
pub struct Checked {
    attempt: Attempt,
    given: Secret,
    is_right: bool,
}

impl Attempt {
    pub fn check(self, given: Secret) -> Checked {
        let is_right = self.password.matches(&given) && self.uid.is_some();
        Checked { attempt: self, given, is_right }
    }
}

/// See the crate.
pub struct Access {
    state: State,
    /// Of the store, when the state was read.
    generation: u64,
    store: Box<dyn Store>,
    entropy: Box<dyn Entropy>,
    sessions: Sessions,
    throttle: Throttle,
    /// Digests of names and passwords that were right, and until when.
    remembered: HashMap<Key, f64>,
    /// Makes those digests worthless elsewhere.
    pepper: [u8; 32],
    code: Option<Code>,
    refusals: Refusals,
}

/// By which root gets in once.
struct Code {
    digest: Key,
    /// On the clock that only runs forward.
    until: f64,
    tries: u32,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Access({} users, {} sessions)", self.state.users.len(), self.sessions.count())
    }
}

impl Access {
    /// With what was kept, or as before the first change.
    pub fn open(mut store: Box<dyn Store>, mut entropy: Box<dyn Entropy>) -> Result<Access> {
        let generation = store.generation();
        let state = store.load().map_err(|e| kept("read", &e))?.unwrap_or_default();
        let mut pepper = [0; 32];
        entropy.fill(&mut pepper);
        Ok(Access {
            state,
            generation,
            store,
            entropy,
            sessions: Sessions::default(),
            throttle: Throttle::default(),
            remembered: HashMap::new(),
            pepper,
            code: None,
            refusals: Refusals::default(),
        })
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Changes users and roles: it is kept, and then it holds. Sessions of users who were removed, or whose password is
    /// another now, end.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.look_again()?;
        let mut next = self.state.clone();
        let outcome = change(&mut next)?;
        self.store.save(&next).map_err(|e| kept("keep", &e))?;
        self.adopt(next);
        Ok(outcome)
    }

    /// Reads users and roles again when they were replaced: a configuration was restored.
    fn look_again(&mut self) -> Result<()> {
        let generation = self.store.generation();
        if generation != self.generation {
            let state = self.store.load().map_err(|e| kept("read", &e))?.unwrap_or_default();
            self.adopt(state);
            self.remembered.clear();
            self.generation = generation;
        }
        Ok(())
    }

    /// Sessions of users who are gone, or whose password is another, end.
    fn adopt(&mut self, next: State) {
        let before = std::mem::replace(&mut self.state, next);
        let is_another = |name: &str, uid: u64| {
            let secret =
                |state: &State| state.users.get(name).filter(|u| u.uid == uid).map(|u| u.password.clone());
            secret(&self.state).is_none() || secret(&self.state) != secret(&before)
        };
        // The code goes with the sessions that it could have opened.
        let root = |state: &State| state.users.get(ROOT).map(|u| (u.uid, u.password.clone()));
        if root(&before) != root(&self.state) {
            self.code = None;
        }
        self.sessions.close_all(|s| is_another(&s.user, s.uid));
    }

    /// Hashes a new password. Slow: call it where that is no harm.
    pub fn hash(salt: [u8; 16], password: &Secret) -> Result<Password> {
        Password::new(password, salt)
    }

    pub fn salt(&mut self) -> [u8; password::SALT] {
        let mut salt = [0; password::SALT];
        self.entropy.fill(&mut salt);
        salt
    }

    /// Begins a login. `address` is of a client of the network.
    pub fn begin(&mut self, name: &str, address: Option<IpAddr>, now: Now) -> Result<Attempt, Denied> {
        // What cannot be read lets nobody in who was not in before.
        self.look_again().map_err(|_| Denied::Wrong)?;
        let places = self.throttle.take(name, address, now.steady).map_err(Denied::Later)?;
        let known = self.state.users.get(name);
        let able = known.and_then(|user| Some((user.uid, user.password.clone()?)));
        let (uid, password) = able.map_or_else(|| (None, Password::nobodys()), |(uid, p)| (Some(uid), p));
        Ok(Attempt { name: name.into(), address, uid, password, places })
    }

    pub fn finish(&mut self, checked: Checked, now: Now) -> Result<Identity, Denied> {
        let Checked { attempt, given, is_right } = checked;
        // The account may have changed while the password was looked at.
        let user = self.state.users.get(&attempt.name).filter(|u| Some(u.uid) == attempt.uid);
        let user = user.filter(|u| is_right && u.password.as_ref() == Some(&attempt.password));
        let Some(user) = user else { return Err(Denied::Wrong) };
        let (identity, mark) = (self.by_password(user), self.mark(user, &given));
        self.throttle.refund(attempt.places, &attempt.name, attempt.address);
        self.remembered.retain(|_, until| *until > now.steady);
        if let Some(mark) = mark
            && self.remembered.len() < REMEMBERED_MAX
        {
            self.remembered.insert(mark, now.steady + REMEMBERED);
        }
        Ok(identity)
    }

    /// Whether this name and password were right just now.
    pub fn recall(&self, name: &str, given: &Secret, now: Now) -> Option<Identity> {
        let user = self.state.users.get(name)?;
        let until = self.remembered.get(&self.mark(user, given)?)?;
        (now.steady < *until).then(|| self.by_password(user))
    }

    fn by_password(&self, user: &User) -> Identity {
        let proof = self.hash_digest(user).map_or(Proof::None, Proof::Password);
        Identity { user: user.logname.clone(), uid: user.uid, session: String::new(), proof }
    }

    fn hash_digest(&self, user: &User) -> Option<Key> {
        let hash = user.password.as_ref()?.mark();
        Some(Sha256::new().chain_update(self.pepper).chain_update(hash).finalize().into())
    }

    /// The owner of the home is root.
    pub fn owner(&self) -> Identity {
        let uid = self.state.users.get(ROOT).map_or(0, |root| root.uid);
        Identity { user: ROOT.into(), uid, session: String::new(), proof: Proof::Owner }
    }

    /// Whether what somebody has shown still holds: asked again when a request is carried out, as its body may have taken
    /// its time, and the user may have been removed or its password changed meanwhile. That is no use of a session.
    pub fn stands(&mut self, who: &Identity, now: Now) -> bool {
        if self.look_again().is_err() {
            return false;
        }
        let Some(user) = self.state.users.get(&who.user).filter(|user| user.uid == who.uid) else {
            return false;
        };
        match who.proof {
            Proof::None => false,
            Proof::Owner => true,
            Proof::Password(digest) => self.hash_digest(user) == Some(digest),
            Proof::Secret(key) => {
                self.sessions.is_open(&key, now.steady)
                    || user.tokens.iter().any(|token| token.digest == key && token.lives(now))
            }
        }
    }

    /// Of a password with the hash that it matched: worthless when the hash is another.
    fn mark(&self, user: &User, given: &Secret) -> Option<Key> {
        let hash = Sha256::new()
            .chain_update(self.pepper)
            .chain_update(user.uid.to_le_bytes())
            .chain_update(user.password.as_ref()?.mark())
            .chain_update(given.reveal().as_bytes());
        Some(hash.finalize().into())
    }

    /// A code by which root gets in once, within an hour. It takes the place of the one before; its digest alone is held.
    pub fn new_code(&mut self, now: Now) -> Secret {
        let mut bytes = [0; CODE_LETTERS];
        self.entropy.fill(&mut bytes);
        let letters: String = bytes.iter().map(|b| char::from(LETTERS[usize::from(b % 32)])).collect();
        let digest = self.code_digest(&letters);
        self.code = Some(Code { digest, until: now.steady + CODE_LIVES, tries: CODE_TRIES });
        let (a, rest) = letters.split_at(3);
        let (b, c) = rest.split_at(3);
        Secret::new(format!("{a}-{b}-{c}"))
    }

    /// Whether the code is right, as it was typed; then it is spent.
    pub fn use_code(
        &mut self,
        given: &Secret,
        address: Option<IpAddr>,
        now: Now,
    ) -> Result<Identity, Denied> {
        let places = self.throttle.take_apart(CODE, address, now.steady).map_err(Denied::Later)?;
        let letters = given.reveal().chars().filter(char::is_ascii_alphanumeric);
        let digest = self.code_digest(&letters.map(|c| c.to_ascii_lowercase()).collect::<String>());
        let Some(code) = self.code.as_mut().filter(|code| now.steady < code.until) else {
            self.code = None;
            return Err(Denied::Wrong);
        };
        if code.digest != digest {
            code.tries -= 1;
            if code.tries == 0 {
                self.code = None;
            }
            return Err(Denied::Wrong);
        }
        self.code = None;
        self.throttle.refund(places, CODE, address);
        Ok(self.owner())
    }

    fn code_digest(&self, letters: &str) -> Key {
        Sha256::new().chain_update(self.pepper).chain_update(letters.as_bytes()).finalize().into()
    }

    /// Opens a session for somebody who has just proved who they are, if that [stands](Access::stands).
    pub fn open_session(&mut self, identity: &Identity, now: Now) -> Result<Opened, Denied> {
        if !self.stands(identity, now) {
            return Err(Denied::Wrong);
        }
        let secret = self.new_secret();
        let mut number = [0; 4];
        self.entropy.fill(&mut number);
        let label = format!("REST-{}", hex(&number));
        let minutes = self.state.users.get(&identity.user).map_or(1, |u| u.session_timeout);
        let session = Session {
            user: identity.user.clone(),
            uid: identity.uid,
            label: label.clone(),
            used: now.steady,
            timeout: f64::from(minutes) * MINUTE,
        };
        self.sessions.open(digest(secret.reveal()), session);
        Ok(Opened { secret, label })
    }

    /// Whose session or token this is.
    pub fn who_is(&mut self, secret: &str, now: Now) -> Result<Identity, Denied> {
        self.look_again().map_err(|_| Denied::Wrong)?;
        let key = digest(secret);
        if let Some(session) = self.sessions.find(&key, now.steady) {
            let user = self.state.users.get(&session.user).filter(|u| u.uid == session.uid);
            return user.map_or(Err(Denied::Wrong), |_| {
                let (user, uid) = (session.user.clone(), session.uid);
                Ok(Identity { user, uid, session: session.label.clone(), proof: Proof::Secret(key) })
            });
        }
        let lives = |t: &&Token| t.digest == key && t.lives(now);
        let mut found = self.state.users.values().filter_map(|u| Some((u, u.tokens.iter().find(lives)?)));
        found.next().map_or(Err(Denied::Wrong), |(user, token)| {
            let (session, proof) = (format!("token-{}", token.id), Proof::Secret(key));
            Ok(Identity { user: user.logname.clone(), uid: user.uid, session, proof })
        })
    }

    pub fn close_session(&mut self, secret: &str) -> bool {
        self.sessions.close(&digest(secret))
    }

    /// How many there are.
    pub fn sessions(&self) -> usize {
        self.sessions.count()
    }

    /// Makes a token for a user, asked for by one whose proof [stands](Access::stands); its secret is told now and never
    /// again.
    pub fn create_token(
        &mut self,
        by: &Identity,
        user: &str,
        name: &str,
        days: Option<u32>,
        now: Now,
    ) -> Result<(u32, Secret)> {
        if !self.stands(by, now) {
            return Err(AccessError::new(
                Kind::Denied,
                "what was shown does not hold any more: log in again",
            ));
        }
        let expires = days.map(|d| now.wall.saturating_add(u64::from(d) * 24 * 60 * 60));
        if self.end_of(by).is_some_and(|end| expires.is_none_or(|at| at > end)) {
            return Err(AccessError::new(
                Kind::Denied,
                "a token makes none that is valid for longer than it is itself: log in with the password",
            ));
        }
        let secret = self.new_secret();
        let token =
            Token { id: 0, name: name.into(), digest: digest(secret.reveal()), expires, created: now.wall };
        let id = self.change(|state| state.add_token(user, token))?;
        Ok((id, secret))
    }

    /// Until when what was shown is valid, if it is a token that ends.
    fn end_of(&self, by: &Identity) -> Option<u64> {
        let Proof::Secret(key) = by.proof else { return None };
        let tokens = self.state.users.get(&by.user).map_or(&[][..], |user| &user.tokens);
        tokens.iter().find(|token| token.digest == key)?.expires
    }

    /// 256 bits that nobody guesses, as text.
    fn new_secret(&mut self) -> Secret {
        let mut bytes = [0; 32];
        self.entropy.fill(&mut bytes);
        Secret::new(hex(&bytes))
    }

    pub fn record(&mut self, record: &Record) -> std::io::Result<()> {
        for left_out in self.refusals.left_out(record.time) {
            self.store.append(&left_out)?;
        }
        self.store.append(record)
    }

    /// As [`record`](Access::record), of what a user asked for without the right: only so many a minute are written.
    pub fn record_refusal(&mut self, record: &Record) -> std::io::Result<()> {
        for left_out in self.refusals.left_out(record.time) {
            self.store.append(&left_out)?;
        }
        if self.refusals.takes(record) { self.store.append(record) } else { Ok(()) }
    }

    pub fn records(&mut self, max: usize) -> Result<Vec<Record>> {
        self.store.records(max).map_err(|e| kept("read the audit log", &e))
    }
}

fn kept(doing: &str, e: &std::io::Error) -> AccessError {
    let kind = if is_full(e) { Kind::NoSpace } else { Kind::Store };
    AccessError::new(kind, format!("cannot {doing} users and roles: {e}"))
}

/// Whether room must be made before it can be tried again.
pub fn is_full(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Files, ROOT};
    use std::path::PathBuf;

    /// Counts: no two secrets of a test are the same.
    struct Counter(u64);

    impl Entropy for Counter {
        fn fill(&mut self, out: &mut [u8]) {
            self.0 += 1;
            out.chunks_mut(8).for_each(|c| c.copy_from_slice(&self.0.to_le_bytes()[..c.len()]));
        }
    }

    fn home(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("cenote-access-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn open(dir: &std::path::Path) -> Access {
        Access::open(Box::new(Files::new(dir)), Box::new(Counter(0))).unwrap()
    }

    fn at(steady: f64) -> Now {
        Now { wall: 1_000_000 + steady as u64, steady }
    }

    fn set(access: &mut Access, name: &str, password: &str) {
        let salt = access.salt();
        let hash = Access::hash(salt, &Secret::new(password)).unwrap();
        access.change(|state| state.set_password(ROOT, name, hash)).unwrap();
    }

    fn log_in(access: &mut Access, name: &str, password: &str, now: Now) -> Result<Identity, Denied> {
        let attempt = access.begin(name, Some(IpAddr::from([10, 0, 0, 1])), now)?;
        let checked = attempt.check(Secret::new(password));
        access.finish(checked, now)
    }

    /// Files that another part may replace.
    struct Replaced(Files, std::sync::Arc<std::sync::atomic::AtomicU64>);

    impl Store for Replaced {
        fn load(&mut self) -> std::io::Result<Option<State>> {
            self.0.load()
        }

        fn generation(&self) -> u64 {
            self.1.load(std::sync::atomic::Ordering::SeqCst)
        }

        fn save(&mut self, state: &State) -> std::io::Result<()> {
            self.0.save(state)
        }

        fn append(&mut self, record: &Record) -> std::io::Result<()> {
            self.0.append(record)
        }

        fn records(&mut self, max: usize) -> std::io::Result<Vec<Record>> {
            self.0.records(max)
        }
    }

    /// A restored configuration had other users; those of before were let in until the next start, and came back with
    /// the next change.
    #[test]
    fn users_who_were_replaced_are_replaced_at_once() {
        let dir = home("replaced");
        let generation = std::sync::Arc::<std::sync::atomic::AtomicU64>::default();
        let store = Replaced(Files::new(&dir), generation.clone());
        let mut access = Access::open(Box::new(store), Box::new(Counter(0))).unwrap();
        set(&mut access, ROOT, "password one");
        let who = log_in(&mut access, ROOT, "password one", at(0.0)).unwrap();
        let secret = access.open_session(&who, at(0.0)).unwrap().secret.reveal().to_string();
        let mut other = open(&dir);
        set(&mut other, ROOT, "password two");
        generation.store(1, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(access.who_is(&secret, at(1.0)), Err(Denied::Wrong), "the session ended");
        assert_eq!(log_in(&mut access, ROOT, "password one", at(1.0)), Err(Denied::Wrong));
        access
            .change(|state| state.settings.insert("a".into(), "b".into()).map_or(Ok(()), |_| Ok(())))
            .unwrap();
        log_in(&mut access, ROOT, "password two", at(2.0)).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_password_opens_a_session_and_a_session_ends() {
        let dir = home("session");
        let mut access = open(&dir);
        assert_eq!(log_in(&mut access, ROOT, "", at(0.0)), Err(Denied::Wrong), "root is locked at first");
        set(&mut access, ROOT, "password one");
        let who = log_in(&mut access, ROOT, "password one", at(0.0)).unwrap();
        assert_eq!(log_in(&mut access, ROOT, "password two", at(0.0)), Err(Denied::Wrong));
        assert_eq!(log_in(&mut access, "nobody", "password one", at(0.0)), Err(Denied::Wrong));
        let opened = access.open_session(&who, at(0.0)).unwrap();
        let secret = opened.secret.reveal().to_string();
        assert_eq!(access.who_is(&secret, at(800.0)).unwrap().session, opened.label);
        assert_eq!(access.who_is("", at(800.0)), Err(Denied::Wrong));
        assert_eq!(access.who_is(&secret, at(1700.0)), Err(Denied::Wrong), "fifteen minutes unused");
        let secret = access.open_session(&who, at(0.0)).unwrap().secret.reveal().to_string();
        set(&mut access, ROOT, "password two");
        assert_eq!(access.who_is(&secret, at(1.0)), Err(Denied::Wrong), "a new password ends sessions");
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// As it is typed: without the dashes, in capitals, with a space.
    #[test]
    fn a_code_lets_root_in_once_within_an_hour() {
        let dir = home("code");
        let mut access = open(&dir);
        let from = |n: u8| Some(IpAddr::from([10, 0, 0, n]));
        assert_eq!(access.use_code(&Secret::new(""), from(1), at(0.0)), Err(Denied::Wrong), "there is none");
        let code = access.new_code(at(0.0)).reveal().to_string();
        assert_eq!(code.len(), CODE_LETTERS + 2);
        let typed = Secret::new(format!(" {} ", code.replace('-', "").to_uppercase()));
        assert_eq!(access.use_code(&typed, from(1), at(100.0)).unwrap().user, ROOT);
        assert_eq!(access.use_code(&typed, from(1), at(100.0)), Err(Denied::Wrong), "it is spent");
        let old = access.new_code(at(200.0));
        let new = access.new_code(at(200.0));
        assert_eq!(access.use_code(&old, from(1), at(300.0)), Err(Denied::Wrong), "another took its place");
        assert_eq!(access.use_code(&new, from(1), at(200.0 + CODE_LIVES)), Err(Denied::Wrong), "an hour");
        let code = access.new_code(at(5000.0));
        set(&mut access, ROOT, "password two");
        assert_eq!(
            access.use_code(&code, from(1), at(5000.0)),
            Err(Denied::Wrong),
            "sessions end with it too"
        );
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// Ten wrong ones made it worth nothing, wherever they came from, and one every six seconds kept root out for good.
    #[test]
    fn strangers_who_guess_at_a_code_do_not_keep_root_out() {
        let dir = home("guessed");
        let mut access = open(&dir);
        let code = access.new_code(at(0.0));
        for n in 0..200u8 {
            let stranger = Some(IpAddr::from([10, 0, 1, n]));
            let mut guess = |n| access.use_code(&Secret::new(format!("guess{n}")), stranger, at(10.0));
            for n in 0..10 {
                assert_eq!(guess(n), Err(Denied::Wrong));
            }
            assert_eq!(guess(10), Err(Denied::Later(6)), "one address is slow");
        }
        let own = Some(IpAddr::from([10, 0, 0, 1]));
        assert_eq!(access.use_code(&code, own, at(10.0)).unwrap().user, ROOT);
        let code = access.new_code(at(20.0));
        for n in 0..CODE_TRIES {
            let stranger = Some(IpAddr::from((0x0b00_0000 + n).to_be_bytes()));
            assert_eq!(access.use_code(&Secret::new("guess"), stranger, at(30.0)), Err(Denied::Wrong));
        }
        assert_eq!(
            access.use_code(&code, own, at(30.0)),
            Err(Denied::Wrong),
            "it has been guessed at enough"
        );
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// 20,000 refused requests of a user without any right, and nothing was left of what was changed before.
    #[test]
    fn refused_requests_leave_the_audit_log_to_what_was_done() {
        let dir = home("refused");
        let mut access = open(&dir);
        let record = |user: &str, time, status| Record {
            time,
            user: user.into(),
            address: "10.0.0.7".into(),
            session: String::new(),
            action: format!("PUT /{}", "x".repeat(2000)),
            detail: String::new(),
            status,
        };
        access.record(&record(ROOT, 600, 201)).unwrap();
        for n in 0..20_000 {
            access.record_refusal(&record("eve", 600 + n / 10_000 * 60, 403)).unwrap();
        }
        access.record_refusal(&record("ann", 660, 403)).unwrap();
        let of = |records: &[Record], user: &str| records.iter().filter(|r| r.user == user).count();
        let records = access.records(1000).unwrap();
        assert_eq!((of(&records, ROOT), of(&records, "ann"), of(&records, "eve")), (1, 1, 21));
        let told = |records: &[Record]| records.iter().filter(|r| r.action.starts_with("9990 more ")).count();
        assert_eq!(told(&records), 1, "of the minute that is over");
        access.record(&record(ROOT, 720, 201)).unwrap();
        assert_eq!(told(&access.records(1000).unwrap()), 2, "whatever comes next");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_password_that_was_right_is_remembered_for_a_minute() {
        let dir = home("recall");
        let mut access = open(&dir);
        set(&mut access, ROOT, "password one");
        let good = Secret::new("password one");
        assert_eq!(access.recall(ROOT, &good, at(0.0)), None);
        log_in(&mut access, ROOT, "password one", at(0.0)).unwrap();
        assert!(access.recall(ROOT, &good, at(59.0)).is_some());
        assert_eq!(access.recall(ROOT, &Secret::new("password two"), at(59.0)), None);
        assert_eq!(access.recall(ROOT, &good, at(60.0)), None);
        log_in(&mut access, ROOT, "password one", at(60.0)).unwrap();
        set(&mut access, ROOT, "password two");
        assert_eq!(access.recall(ROOT, &good, at(61.0)), None);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_exists_and_what_does_not_is_denied_alike_and_as_often() {
        let dir = home("oracle");
        let mut access = open(&dir);
        set(&mut access, ROOT, "password one");
        let mut answers = |name: &str, address: u8| {
            let mut all = Vec::new();
            for _ in 0..12 {
                let attempt = access.begin(name, Some(IpAddr::from([10, 0, 1, address])), at(0.0));
                all.push(attempt.map(|a| format!("{:?}", a.check(Secret::new("x")).is_right)));
            }
            all
        };
        let of_root = answers(ROOT, 1);
        assert_eq!(of_root, answers("nobody", 2));
        assert_eq!(of_root.last(), Some(&Err(Denied::Later(6))));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn tokens_outlive_a_restart_and_end_with_their_time_or_owner() {
        let dir = home("token");
        let mut access = open(&dir);
        access.change(|state| state.create_user("csi", "driver", None).map(drop)).unwrap();
        let (id, secret) = access.create_token(&access.owner(), "csi", "cluster", Some(1), at(0.0)).unwrap();
        let (_, forever) = access.create_token(&access.owner(), "csi", "other", None, at(0.0)).unwrap();
        let mut access = open(&dir);
        let who = access.who_is(secret.reveal(), at(10.0)).unwrap();
        assert_eq!((who.user.as_str(), who.session), ("csi", format!("token-{id}")));
        assert!(access.who_is(secret.reveal(), at(86_400.0)).is_err(), "a day is over");
        assert!(access.who_is(forever.reveal(), at(1e9)).is_ok());
        let text = std::fs::read_to_string(dir.join("access.json")).unwrap();
        assert!(!text.contains(secret.reveal()) && !text.contains(forever.reveal()));
        access.change(|state| state.remove_token(ROOT, "csi", id)).unwrap();
        access.change(|state| state.remove_user(ROOT, "csi")).unwrap();
        assert!(access.who_is(forever.reveal(), at(20.0)).is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_cannot_be_kept_does_not_hold() {
        let dir = home("lost");
        let mut access = open(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
        let error = access.change(|state| state.create_user("ann", "", None).map(drop)).unwrap_err();
        assert_eq!(error.kind, Kind::Store);
        assert!(access.state().user("ann").is_err());
    }

    #[test]
    fn what_was_shown_holds_no_longer_than_what_it_stands_for() {
        let dir = home("stands");
        let mut access = open(&dir);
        access.change(|s| s.create_user("ann", "", None).map(drop)).unwrap();
        set(&mut access, "ann", "first password");
        let by_password = log_in(&mut access, "ann", "first password", at(0.0)).unwrap();
        let session = access.open_session(&by_password, at(0.0)).unwrap();
        let by_session = access.who_is(session.secret.reveal(), at(1.0)).unwrap();
        let (id, token) = access.create_token(&by_password, "ann", "t", Some(1), at(0.0)).unwrap();
        let by_token = access.who_is(token.reveal(), at(1.0)).unwrap();
        let all = |access: &mut Access, now| {
            [&by_password, &by_session, &by_token].map(|who| access.stands(who, at(now)))
        };
        assert_eq!(all(&mut access, 2.0), [true; 3]);
        assert_eq!([&by_password, &by_session, &by_token].map(Identity::is_token), [false, false, true]);
        for days in [None, Some(1), Some(2)] {
            let made = access.create_token(&by_token, "ann", "u", days, at(1.0));
            assert_eq!(made.unwrap_err().kind, Kind::Denied, "it would outlive the token that made it");
        }
        assert_eq!(all(&mut access, 100_000.0), [true, false, false], "both have ended by then");
        set(&mut access, "ann", "second password");
        assert_eq!(all(&mut access, 3.0), [false, false, true]);
        assert!(access.open_session(&by_password, at(3.0)).is_err());
        assert!(access.create_token(&by_password, "ann", "u", None, at(3.0)).is_err());
        access.change(|s| s.remove_token(ROOT, "ann", id)).unwrap();
        assert_eq!(all(&mut access, 3.0), [false; 3]);
        let by_password = log_in(&mut access, "ann", "second password", at(4.0)).unwrap();
        assert!(access.stands(&by_password, at(4.0)));
        access.change(|s| s.remove_user(ROOT, "ann")).unwrap();
        access.change(|s| s.create_user("ann", "", None).map(drop)).unwrap();
        set(&mut access, "ann", "second password");
        assert!(!access.stands(&by_password, at(5.0)), "another of the same name");
        assert!(!access.stands(&Identity::unproven("root".into()), at(5.0)));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_audit_log_is_read_back_newest_last() {
        let dir = home("audit");
        let mut access = open(&dir);
        for time in 0..5 {
            let record = Record {
                time,
                user: ROOT.into(),
                address: "10.0.0.1".into(),
                session: String::new(),
                action: "PUT /api/x".into(),
                detail: format!("{:?}", Secret::new("tops")),
                status: 202,
            };
            access.record(&record).unwrap();
        }
        // As a crash may leave it.
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).open(dir.join("audit.jsonl")).unwrap();
        file.write_all(b"{\"time\":").unwrap();
        let times: Vec<u64> = access.records(2).unwrap().iter().map(|r| r.time).collect();
        assert_eq!(times, [3, 4]);
        assert!(!std::fs::read_to_string(dir.join("audit.jsonl")).unwrap().contains("tops"));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
