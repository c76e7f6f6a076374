//! An appliance over its REST API, as a user of it: for the shell, which asks as if it stood beside the daemon.
//!
//! ```text
//!   shell ── api::Request ──▶ Remote::call ──┬─ api::declared: in one exchange┐
//!                                            ├─ several of these, in turn      ├─ method, path, body ──▶ Exchange
//!         ◀── api::Reply ◀───────────────────┴─ the kind of a share, looked up ┘        └ https://HOST:PORT, or a test
//! ```
//!
//! It logs in with a password and goes on with the session that it is given; when that has ended it logs in once more.
//! What the user may not do the appliance refuses. A backup of the configuration is a file of this machine that only
//! its user reads.
//!
//! Not here: what a request means (`api`), and what a path does (`rest`).

mod analytics;
mod shares;

use crate::http::{Answer, Http};
use api::declared::san::{self, Groups};
use api::declared::{self, fc};
use api::http::{self, Face, Wrong};
use api::san::{San, SanState};
use api::shares::{ItemKind, Place};
use api::{ApiError, Call, Caller, DeferredUpdate, ErrorKind, Reply, Request, Result, Secret, Services};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What takes one request to the API: status and body of the answer.
pub(crate) trait Exchange {
    fn exchange(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)>;
}

/// See the module.
pub struct Remote {
    api: Box<dyn Exchange>,
    /// What shares are, which their places do not say.
    kinds: BTreeMap<Place, ItemKind>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Remote(..)")
    }
}

/// What carries one request: HTTPS, or a test.
trait Wire {
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answer>;
}

impl Wire for Http {
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answer> {
        Http::ask(self, method, path, headers, body)
    }
}

/// A session of a user.
struct Session {
    http: Box<dyn Wire>,
    user: String,
    password: Secret,
    secret: Option<Secret>,
}

impl Session {
    fn log_in(&mut self) -> io::Result<(u16, Value)> {
        let headers = [("X-Auth-User", self.user.as_str()), ("X-Auth-Key", self.password.reveal())];
        let answer = self.http.ask("POST", "/api/access/v1", &headers, "")?;
        self.secret = answer.header("x-auth-session").map(|secret| Secret::new(secret.to_string()));
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null)))
    }

    fn once(&self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        let secret = self.secret.as_ref().map_or("", Secret::reveal);
        let answer = self.http.ask(method, path, &[("X-Auth-Session", secret)], body)?;
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null)))
    }
}

impl Exchange for Session {
    fn exchange(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let first = self.once(method, path, &body)?;
        // The session has ended; nothing was done.
        if first.0 != 401 {
            return Ok(first);
        }
        let (status, answer) = self.log_in()?;
        match self.secret {
            Some(_) => self.once(method, path, &body),
            None => Err(io::Error::other(format!(
                "the session has ended, and {} cannot log in again: {}",
                self.user,
                fault(status, &answer).message
            ))),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.secret.is_some() {
            // It would end by itself in a while.
            let _ = self.once("DELETE", "/api/access/v1", "");
        }
    }
}

impl Remote {
    /// Logs in at `https://HOST[:PORT]`, which is trusted by the certificates of a file.
    pub fn log_in(url: &str, trusted: &Path, user: &str, password: Secret) -> Result<Remote> {
        let failed = |e: io::Error| ApiError::new(ErrorKind::Io, format!("cannot reach {url}: {e}"));
        let http = Http::new(url, trusted).map_err(failed)?;
        let mut session = Session { http: Box::new(http), user: user.into(), password, secret: None };
        let (status, body) = session.log_in().map_err(failed)?;
        match session.secret {
            Some(_) => Ok(Remote::over(Box::new(session))),
            None => Err(fault(status, &body)),
        }
    }

    pub(crate) fn over(api: Box<dyn Exchange>) -> Remote {
        Remote { api, kinds: BTreeMap::new() }
    }

    /// What the appliance calls itself.
    pub fn nodename(&mut self) -> Result<String> {
        Ok(self.get("/api/system/v1/version")?["version"]["nodename"].as_str().unwrap_or_default().into())
    }

    fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let failed =
            |e: io::Error| ApiError::new(ErrorKind::Io, format!("cannot talk to the appliance: {e}"));
        let (status, answer) = self.api.exchange(method, path, body).map_err(failed)?;
        match status {
            200..300 => Ok(answer),
            _ => Err(fault(status, &answer)),
        }
    }

    fn get(&mut self, path: &str) -> Result<Value> {
        self.ask("GET", path, None)
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, Some(body))
    }

    fn carry_out(&mut self, request: Request) -> Result<Reply> {
        match request {
            Request::Pools { names } => match self.declared(&Request::Pools { names: Vec::new() })? {
                Reply::Pools(mut all) => {
                    all.retain(|pool| names.is_empty() || names.contains(&pool.name));
                    Ok(Reply::Pools(all))
                }
                other => Ok(other),
            },
            Request::Shares(asked) => self.shares(asked),
            Request::Analytics(asked) => self.analytics(asked),
            Request::San(San::Show) => Ok(Reply::San(Box::new(self.san_state()?))),
            Request::Services(asked) if asked != Services::Show => {
                self.declared(&Request::Services(asked))?;
                self.declared(&Request::Services(Services::Show))
            }
            Request::DeferredUpdates { pools } => Ok(Reply::DeferredUpdates(self.updates(&pools)?)),
            Request::ApplyUpdates { pool, features } => self.apply(pool, features),
            Request::ConfigurationBackup { to } => self.back_up(Path::new(&to)),
            Request::ConfigurationRestore { from } => self.restore(Path::new(&from)),
            request => self.declared(&request),
        }
    }

    /// Asks what one exchange asks, as it is declared.
    fn declared(&mut self, request: &Request) -> Result<Reply> {
        self.declared_of(request, None)
    }

    /// Likewise; `kind` is that of the share that it is about.
    fn declared_of(&mut self, request: &Request, kind: Option<ItemKind>) -> Result<Reply> {
        let Some((declared, sent)) = declared::sent(request, kind) else {
            return Err(unsupported("this cannot be asked over the network"));
        };
        let mut path = http::filled(declared.face.path, sent.params.iter().map(String::as_str));
        for (at, (name, value)) in sent.query.iter().enumerate() {
            path.push_str(&format!("{}{name}={}", if at == 0 { '?' } else { '&' }, http::encode(value)));
        }
        let body = sent.body.map(Value::Object);
        let answer = self.ask(declared.face.method.word(), &path, body.as_ref())?;
        (declared.taken)(&answer).map_err(misread)
    }

    /// All that is shown of the SAN: each part is an endpoint of its own.
    fn san_state(&mut self) -> Result<SanState> {
        let mut part = |face: &Face| self.ask(face.method.word(), face.path, None);
        let targets = part(&san::GET_TARGETS)?;
        let initiators = part(&san::GET_INITIATORS)?;
        let target_groups = part(&san::TARGET_GROUPS.list)?;
        let initiator_groups = part(&san::INITIATOR_GROUPS.list)?;
        let inquiry = part(&san::GET_INQUIRY)?;
        let fc_targets = part(&fc::TARGETS.list)?;
        let fc_initiators = part(&fc::INITIATORS.list)?;
        let fc_target_groups = part(&san::FC_TARGET_GROUPS.list)?;
        let fc_initiator_groups = part(&san::FC_INITIATOR_GROUPS.list)?;
        let groups = |of: &Groups, answer: &Value| of.shaped.all(answer, "groups").map_err(misread);
        Ok(SanState {
            targets: san::TARGET.all(&targets, "targets").map_err(misread)?,
            target_groups: groups(&san::TARGET_GROUPS, &target_groups)?,
            initiators: san::INITIATOR.all(&initiators, "initiators").map_err(misread)?,
            initiator_groups: groups(&san::INITIATOR_GROUPS, &initiator_groups)?,
            identity: san::INQUIRY.one(&inquiry, "inquiry").map_err(misread)?,
            fc_targets: fc::TARGET.all(&fc_targets, "targets").map_err(misread)?,
            fc_target_groups: groups(&san::FC_TARGET_GROUPS, &fc_target_groups)?,
            fc_initiators: fc::INITIATOR.all(&fc_initiators, "initiators").map_err(misread)?,
            fc_initiator_groups: groups(&san::FC_INITIATOR_GROUPS, &fc_initiator_groups)?,
        })
    }

    fn back_up(&mut self, to: &Path) -> Result<Reply> {
        let Reply::Configuration { text } = self.declared(&Request::ConfigurationTell)? else {
            return Err(unsupported("the appliance tells no configuration"));
        };
        let failed =
            |e: io::Error| ApiError::new(ErrorKind::Io, format!("cannot write '{}': {e}", to.display()));
        write_private(to, text.reveal()).map_err(failed)?;
        Ok(Reply::Done)
    }

    fn restore(&mut self, from: &Path) -> Result<Reply> {
        let failed =
            |e: io::Error| ApiError::new(ErrorKind::Io, format!("cannot read '{}': {e}", from.display()));
        let text = Secret::new(std::fs::read_to_string(from).map_err(failed)?);
        self.declared(&Request::ConfigurationTake { text })
    }

    /// Of these pools, or of all.
    fn updates(&mut self, pools: &[String]) -> Result<Vec<DeferredUpdate>> {
        let Reply::DeferredUpdates(mut all) =
            self.declared(&Request::DeferredUpdates { pools: Vec::new() })?
        else {
            return Ok(Vec::new());
        };
        all.retain(|u| pools.is_empty() || pools.contains(&u.pool));
        Ok(all)
    }

    fn apply(&mut self, pool: String, features: Vec<String>) -> Result<Reply> {
        let pools = [pool.clone()];
        let before = self.updates(&pools)?;
        self.declared(&Request::ApplyUpdates { pool, features })?;
        let left = self.updates(&pools)?;
        Ok(Reply::DeferredUpdates(before.into_iter().filter(|u| !left.contains(u)).collect()))
    }
}

impl Caller for Remote {
    fn call(&mut self, call: Call) -> Result<Reply> {
        self.carry_out(call.request)
    }

    fn outlives_us(&self) -> bool {
        true
    }
}

/// A file with secrets in it, whole or not at all; one that is there already is replaced.
fn write_private(to: &Path, text: &str) -> io::Result<()> {
    let mut name = to.as_os_str().to_os_string();
    name.push(".new");
    // One that was left may be there, with whatever mode.
    let _ = std::fs::remove_file(&name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&name, to)
}

/// What the appliance answers instead.
fn fault(status: u16, body: &Value) -> ApiError {
    let fault = &body["fault"];
    let kind = match (status, fault["name"].as_str().unwrap_or_default()) {
        (400, _) => ErrorKind::Invalid,
        (404, _) => ErrorKind::NotFound,
        (409, "ERR_OBJECT_EXISTS") => ErrorKind::Exists,
        (409, _) => ErrorKind::Busy,
        (401 | 403, _) => ErrorKind::ReadOnly,
        (501, _) => ErrorKind::Unsupported,
        (507, _) => ErrorKind::NoSpace,
        (429 | 503, _) => ErrorKind::Cancelled,
        _ => ErrorKind::Io,
    };
    let message = fault["message"].as_str().map(String::from);
    ApiError::new(
        kind,
        message.unwrap_or_else(|| format!("the appliance answers {status}, and does not say why")),
    )
}

fn unsupported(why: &str) -> ApiError {
    ApiError::new(ErrorKind::Unsupported, why)
}

fn misread(wrong: Wrong) -> ApiError {
    ApiError::new(ErrorKind::Io, format!("the appliance gave an answer that cannot be read: {wrong}"))
}

#[cfg(test)]
mod tests;
