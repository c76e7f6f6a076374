//! An appliance over its REST API, as a user of it: for the shell, which asks as if it stood beside the daemon.
//!
//! ```text
//!   shell ── api::Request ──▶ Remote::call ──┬─ shares ─┐
//!                                            ├─ san     ├─ method, path, body ──▶ Exchange ──▶ https://HOST:PORT/api/...
//!         ◀── api::Reply ── values ◀─────────┴─ others ─┘                              └ http, or a test
//! ```
//!
//! It logs in with a password and goes on with the session that it is given; when that has ended it logs in once more.
//! What the user may not do the appliance refuses. A backup of the configuration is a file of this machine, by nobody
//! else to be read.
//!
//! Not here: what a request means (`api`), and what a path does (`rest`).

mod san;
mod shares;
mod values;

use crate::http::{Answer, Http};
use api::{
    ApiError, Call, Caller, CustomProperty, CustomType, DeferredUpdate, ErrorKind, Reply, Request, Result,
    Schema, Secret, ServiceState, Services,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use values::{list, text, texts};

/// Whoever takes one request to the API: status and body of the answer.
pub(crate) trait Exchange {
    fn exchange(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)>;
}

/// See the module.
pub struct Remote {
    api: Box<dyn Exchange>,
    /// Under what shares are found, which their places do not say.
    folders: BTreeMap<api::shares::Place, &'static str>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Remote(..)")
    }
}

/// Whoever carries one request: HTTPS, or a test.
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
        Remote { api, folders: BTreeMap::new() }
    }

    /// What the appliance calls itself.
    pub fn nodename(&mut self) -> Result<String> {
        Ok(text(&self.get("/api/system/v1/version")?["version"], "nodename"))
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

    fn put(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.ask("PUT", path, Some(body))
    }

    fn delete(&mut self, path: &str) -> Result<Reply> {
        self.ask("DELETE", path, None).map(|_| Reply::Done)
    }

    fn carry_out(&mut self, request: Request) -> Result<Reply> {
        match request {
            Request::Pools { .. } => {
                let pools = self.get("/api/storage/v1/pools")?;
                Ok(Reply::Pools(list(&pools, "pools").map(values::pool).collect()))
            }
            Request::Shares(asked) => self.shares(asked),
            Request::San(asked) => self.san(asked),
            Request::Schema(asked) => self.schema(asked),
            Request::Services(asked) => self.services(asked),
            Request::DeferredUpdates { pools } => Ok(Reply::DeferredUpdates(self.updates(&pools)?)),
            Request::ApplyUpdates { pool, features } => self.apply(pool, &features),
            Request::ConfigurationBackup { to } => self.back_up(Path::new(&to)),
            Request::ConfigurationRestore { from } => self.restore(Path::new(&from)),
            _ => Err(unsupported("this cannot be asked over the network")),
        }
    }

    fn schema(&mut self, asked: Schema) -> Result<Reply> {
        const SCHEMA: &str = "/api/storage/v1/schema";
        let of = |name: &str| format!("{SCHEMA}/{}", encode(name));
        match asked {
            Schema::Show => {
                let told = |p: &Value| CustomProperty {
                    name: text(p, "property"),
                    kind: CustomType::parse(&text(p, "type")).unwrap_or_default(),
                    description: text(p, "description"),
                };
                Ok(Reply::Schema(list(&self.get(SCHEMA)?, "properties").map(told).collect()))
            }
            Schema::Create(p) => {
                let body = json!({ "property": p.name, "type": p.kind.word(), "description": p.description });
                self.post(SCHEMA, &body).map(|_| Reply::Done)
            }
            Schema::Change { name, kind, description } => {
                let mut body = json!({});
                if let Some(kind) = kind {
                    body["type"] = kind.word().into();
                }
                if let Some(description) = description {
                    body["description"] = description.into();
                }
                self.put(&of(&name), &body).map(|_| Reply::Done)
            }
            Schema::Destroy { name } => self.delete(&of(&name)),
        }
    }

    fn services(&mut self, asked: Services) -> Result<Reply> {
        const SERVICES: &str = "/api/service/v1/services";
        match asked {
            Services::Show => {}
            Services::Switch { name, to } => {
                self.ask("PUT", &format!("{SERVICES}/{}/{}", encode(&name), to.word()), None)?;
            }
            Services::Listen { name, addresses } => {
                self.put(&format!("{SERVICES}/{}", encode(&name)), &json!({ "listen": addresses }))?;
            }
        }
        let told = |s: &Value| ServiceState {
            name: text(s, "name"),
            enabled: s["<status>"] != "disabled",
            addresses: texts(s, "addresses"),
            listen: texts(s, "listen"),
            clients: s["clients"].as_u64().unwrap_or(0),
            offline: s["<status>"] == "offline",
        };
        Ok(Reply::Services(list(&self.get(SERVICES)?, "services").map(told).collect()))
    }

    fn back_up(&mut self, to: &Path) -> Result<Reply> {
        let told = self.post(&format!("{CONFIGURATION}/backup"), &json!({}))?;
        let failed =
            |e: io::Error| ApiError::new(ErrorKind::Io, format!("cannot write '{}': {e}", to.display()));
        write_private(to, &text(&told["backup"], "text")).map_err(failed)?;
        Ok(Reply::Done)
    }

    fn restore(&mut self, from: &Path) -> Result<Reply> {
        let failed =
            |e: io::Error| ApiError::new(ErrorKind::Io, format!("cannot read '{}': {e}", from.display()));
        let text = std::fs::read_to_string(from).map_err(failed)?;
        self.put(&format!("{CONFIGURATION}/restore?confirm=true"), &json!({ "text": text }))?;
        Ok(Reply::Done)
    }

    /// Of these pools, or of all.
    fn updates(&mut self, pools: &[String]) -> Result<Vec<DeferredUpdate>> {
        let told = |u: &Value| DeferredUpdate {
            pool: text(u, "pool"),
            feature: text(u, "feature"),
            description: text(u, "description"),
            needs: texts(u, "needs"),
            read_only_compatible: u["read_only_compatible"] == true,
        };
        let all = self.get("/api/system/v1/updates")?;
        let is_asked = |u: &DeferredUpdate| pools.is_empty() || pools.contains(&u.pool);
        Ok(list(&all, "updates").map(told).filter(is_asked).collect())
    }

    fn apply(&mut self, pool: String, features: &[String]) -> Result<Reply> {
        let pools = [pool];
        let before = self.updates(&pools)?;
        let mut body = json!({ "pool": pools[0] });
        if !features.is_empty() {
            body["features"] = features.into();
        }
        self.put("/api/system/v1/updates/apply?confirm=true", &body)?;
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

const CONFIGURATION: &str = "/api/system/v1/configuration";

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

/// A part of a path.
fn encode(part: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~:@=+,".contains(&b);
    let one = |b: u8| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    part.bytes().map(one).collect()
}

#[cfg(test)]
mod tests;
