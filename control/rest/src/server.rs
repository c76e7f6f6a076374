//! One request, from its head to its answer; pure of sockets, so that tests ask it directly.

use crate::endpoint::{Endpoint, Reply};
use crate::fault::{Done, Fault, Outcome};
use crate::path::{self, Path};
use crate::route::{self, Lost, Routed};
use crate::who::{Claim, From, claim, is_page};
use access::{Access, Identity, Needed, Now, ROOT, Record};
use api::alerts::Alerts;
use api::http::Args;
use api::http::{Given, Shaped};
use api::http::{Method, Need};
use api::shares::DEFAULT_PROJECT;
use api::{Call, Request, Service};
use hyper::body::Bytes;
use hyper::http::request::Parts;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;

/// Bodies are small objects.
pub(crate) const BODY_MAX: usize = 1 << 20;
/// Passwords that are hashed at once: each takes a core and 19 MiB.
const HASHES: usize = 2;
/// A right that was there less than so many seconds ago is asked for no second time.
const WAITED: f64 = 1.0;
/// How long a login waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is done to a project as one of its pool's: it changes what the pool holds.
const OF_ITS_POOL: [&str; 2] = ["allow_destroy", "allow_rename"];
/// See [`reaches_beyond`].
const BEYOND: [&str; 1] = ["mountpoint"];
/// Of what strangers say, as much as the audit log takes.
const NAME_SHOWN: usize = 64;

/// What the appliance says of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub nodename: String,
    pub version: String,
    /// The appliance's serial number: of this home, for as long as it lives.
    pub asn: String,
    /// Where it listens.
    pub addresses: Vec<String>,
}

/// See the crate.
pub struct Rest {
    table: Vec<&'static Endpoint>,
    access: Mutex<Access>,
    service: Arc<dyn Service>,
    about: Mutex<About>,
    hashing: Semaphore,
    started: Instant,
    pub(crate) counters: Counters,
}

/// For the metrics.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Answers, by the hundreds of their status.
    pub answers: [AtomicU64; 6],
    pub refused: AtomicU64,
    pub failed_logins: AtomicU64,
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rest({:?})", self.access())
    }
}

/// A request that was let in: by whom, and for what.
#[derive(Clone, Debug)]
pub struct Admitted {
    who: Identity,
    from: From,
    secret: Option<access::Secret>,
    is_page: bool,
    routed: Routed,
    path: Path,
    action: String,
}

/// What an endpoint's function gets.
#[derive(Clone, Debug)]
pub struct Asked {
    pub who: Identity,
    pub args: Args,
    pub routed: Routed,
    pub path: Path,
    /// The session or token that was shown.
    pub secret: Option<access::Secret>,
    pub from: From,
    /// Whether the web page asks, whose sessions are cookies.
    pub is_page: bool,
    action: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Rest {
    /// Answers the endpoints of a table.
    pub(crate) fn over(
        table: Vec<&'static Endpoint>,
        access: Access,
        service: Arc<dyn Service>,
        about: About,
    ) -> Arc<Rest> {
        Arc::new(Rest {
            table,
            access: Mutex::new(access),
            service,
            about: Mutex::new(about),
            hashing: Semaphore::new(HASHES),
            started: Instant::now(),
            counters: Counters::default(),
        })
    }

    /// What the API has counted of itself.
    pub fn counted(&self) -> metrics::Api {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        metrics::Api {
            answers: self.counters.answers.each_ref().map(load),
            refused: load(&self.counters.refused),
            failed_logins: load(&self.counters.failed_logins),
            sessions: self.access().sessions() as u64,
        }
    }

    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn about(&self) -> About {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells where it listens.
    pub fn set_addresses(&self, addresses: Vec<String>) {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).addresses = addresses;
    }

    pub(crate) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Now { wall: wall.as_secs(), steady: self.started.elapsed().as_secs_f64() }
    }

    /// Does something to users and roles that waits for the disk, where waiting is no harm.
    pub(crate) async fn with_access<T: Send + 'static>(
        self: &Arc<Rest>,
        work: impl FnOnce(&mut Access) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let own = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&mut own.access())).await;
        done.unwrap_or_else(|_| Err(Fault::internal("it could not be done")))
    }

    /// Lets a request in, or says what is answered instead. Its body is not looked at.
    pub async fn admit(self: &Arc<Rest>, head: &Parts, from: From) -> Result<Admitted, Answer> {
        let is_page = is_page(&head.headers);
        let refused = |fault: Fault| {
            let mut answer = self.answer_fault(&fault, None);
            if is_page {
                // The browser would ask for a password itself, over the page that does.
                answer.headers.retain(|(name, _)| name != "www-authenticate");
            }
            answer
        };
        let (who, secret) = self.identify(head, from).await.map_err(refused)?;
        let path = Path::parse(head.uri.path(), head.uri.query())
            .ok_or_else(|| refused(Fault::not_found("that is no path of anything")))?;
        let method = Method::parse(head.method.as_str());
        let routed = route::find(self.table(), method, &path.parts).map_err(|lost| {
            refused(match lost {
                Lost::Nowhere => Fault::not_found("there is nothing at that path"),
                Lost::Method => Fault::method(),
            })
        })?;
        let parts: Vec<String> = path.parts.iter().map(|p| path::encode(p)).collect();
        let action = format!("{} /{}", routed.endpoint.method.word(), parts.join("/"));
        let admitted = Admitted { who, from, secret, is_page, routed, path, action };
        // What the body names is looked at when it is there; without the right for anything it is not read at all.
        if !self.may_at_all(&admitted) {
            return Err(self.refuse(admitted).await);
        }
        Ok(admitted)
    }

    async fn identify(
        self: &Arc<Rest>,
        head: &Parts,
        from: From,
    ) -> Result<(Identity, Option<access::Secret>), Fault> {
        let now = self.now();
        match claim(&head.headers, from) {
            Claim::Nothing if from == From::Owner => Ok((self.access().owner(), None)),
            Claim::Nothing | Claim::Unreadable => Err(Fault::unauthorized()),
            Claim::Secret(secret) => {
                let who = self.access().who_is(secret.reveal(), now)?;
                Ok((who, Some(secret)))
            }
            Claim::Code(code) => Ok((self.use_code(&code, from, now).await?, None)),
            Claim::Password { name, password } => {
                let recalled = self.access().recall(&name, &password, now);
                let who = match recalled {
                    Some(who) => Ok(who),
                    None => self.log_in(&name, password, from, now).await,
                };
                Ok((who?, None))
            }
        }
    }

    async fn log_in(
        self: &Arc<Rest>,
        name: &str,
        password: access::Secret,
        from: From,
        now: Now,
    ) -> Result<Identity, Fault> {
        let attempt = self.access().begin(name, from.address(), now)?;
        let turn = tokio::time::timeout(PATIENCE, self.hashing.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return Err(Fault::busy("too many log in at once")) };
        let checked = tokio::task::spawn_blocking(move || attempt.check(password)).await;
        let checked = checked.map_err(|_| Fault::internal("the password could not be checked"))?;
        let outcome = self.access().finish(checked, self.now());
        if outcome.is_err() {
            self.login_failed(name, from).await;
        }
        Ok(outcome?)
    }

    async fn login_failed(self: &Arc<Rest>, name: &str, from: From) {
        self.counters.failed_logins.fetch_add(1, Ordering::Relaxed);
        let shown: String = name.chars().filter(|c| !c.is_control()).take(NAME_SHOWN).collect();
        tracing::warn!(user = shown, %from, "login failed");
        let told = Alerts::LoginFailed { user: shown.clone(), address: from.to_string() };
        let command = "login".into();
        // Where it cannot be told, the audit log has it all the same.
        let _ = self.service.call(Call { command, uid: u64::MAX, request: Request::Alerts(told) }).await;
        let who = Identity::unproven(shown);
        let _ = self.record(&who, from, "login".into(), String::new(), 401).await;
    }

    async fn use_code(
        self: &Arc<Rest>,
        code: &access::Secret,
        from: From,
        now: Now,
    ) -> Result<Identity, Fault> {
        let used = self.access().use_code(code, from.address(), now);
        match &used {
            Ok(who) => {
                let _ = self.record(who, from, "login by the one-time code".into(), String::new(), 200).await;
            }
            Err(_) => self.login_failed(ROOT, from).await,
        }
        Ok(used?)
    }

    /// A code by which root gets in once; the one before is worth nothing from now on. For the owner of the home.
    pub fn new_code(&self) -> access::Secret {
        self.access().new_code(self.now())
    }

    /// Hashes a new password, in turn with those who log in.
    pub(crate) async fn hash(self: &Arc<Rest>, password: access::Secret) -> Result<access::Password, Fault> {
        let salt = self.access().salt();
        let turn = tokio::time::timeout(PATIENCE, self.hashing.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return Err(Fault::busy("too many log in at once")) };
        let hashed = tokio::task::spawn_blocking(move || Access::hash(salt, &password)).await;
        Ok(hashed.map_err(|_| Fault::internal("the password could not be hashed"))??)
    }

    /// Does what was asked for, and records it.
    pub async fn carry_out(self: Arc<Rest>, admitted: Admitted, body: Result<Bytes, Fault>) -> Answer {
        let endpoint = admitted.routed.endpoint;
        let args = body.and_then(|bytes| Ok(Args::read(&bytes, endpoint.body)?));
        let detail = match (&args, endpoint.body) {
            (Ok(args), Some(_)) if !args.is_empty() => format!("{args:?}"),
            _ => String::new(),
        };
        let Admitted { who, from, secret, is_page, routed, path, action } = admitted;
        let mut is_begun = false;
        let outcome = match args {
            Err(fault) => Err(fault),
            // The body may have come long after the head.
            Ok(_) if !self.stands(&who).await => Err(Fault::unauthorized()),
            Ok(args) if !self.may(&who, &routed, &args) => Err(missing_right()),
            Ok(args) => {
                // Nothing is changed that is not in the log.
                let begun = match endpoint.is_change() {
                    true => {
                        let (action, detail) = (action.clone(), detail.clone());
                        self.record(&who, from, action, detail, Record::BEGUN).await
                    }
                    false => Ok(()),
                };
                is_begun = begun.is_ok();
                let (who, action) = (who.clone(), action.clone());
                let asked = Asked { who, args, routed: routed.clone(), path, secret, from, is_page, action };
                match begun {
                    Ok(()) => self.run(asked).await,
                    Err(fault) => Err(fault),
                }
            }
        };
        let answer = match &outcome {
            Ok(done) => self.answer(&routed, done),
            Err(fault) => self.answer_fault(fault, Some(endpoint)),
        };
        match endpoint.is_change() {
            true if is_begun => drop(self.record(&who, from, action, detail, answer.status).await),
            // Not a right was needed to come as far as this.
            true => self.record_refusal(&who, from, action, detail, answer.status).await,
            false => {}
        }
        answer
    }

    /// What is only looked at may be waited for: until it is there, the user may have been removed, the session ended or
    /// the right taken away. That a session is used for nothing else meanwhile does not end it.
    async fn run(self: &Arc<Rest>, asked: Asked) -> Outcome {
        let endpoint = asked.routed.endpoint;
        if endpoint.is_change() {
            return (endpoint.run)(self.clone(), asked).await;
        }
        let (who, routed, args, began) =
            (asked.who.clone(), asked.routed.clone(), asked.args.clone(), self.now());
        let outcome = (endpoint.run)(self.clone(), asked).await;
        let now = self.now();
        if now.steady - began.steady < WAITED {
            return outcome;
        }
        if !self.stand_at(&who, Now { steady: began.steady, ..now }).await {
            return Err(Fault::unauthorized());
        }
        if self.may(&who, &routed, &args) { outcome } else { Err(missing_right()) }
    }

    async fn stands(self: &Arc<Rest>, who: &Identity) -> bool {
        self.stand_at(who, self.now()).await
    }

    async fn stand_at(self: &Arc<Rest>, who: &Identity, now: Now) -> bool {
        let who = who.clone();
        self.with_access(move |access| Ok(access.stands(&who, now))).await.unwrap_or(false)
    }

    async fn refuse(self: &Arc<Rest>, admitted: Admitted) -> Answer {
        let Admitted { who, from, routed, action, .. } = admitted;
        let answer = self.answer_fault(&missing_right(), Some(routed.endpoint));
        if routed.endpoint.is_change() {
            self.record_refusal(&who, from, action, String::new(), answer.status).await;
        }
        answer
    }

    /// Puts it into the log. What is long is cut: the log is of a certain length, and a few requests, which may be
    /// refused, must not fill it.
    async fn record(
        self: &Arc<Rest>,
        who: &Identity,
        from: From,
        action: String,
        detail: String,
        status: u16,
    ) -> Result<(), Fault> {
        let record = self.record_of(who, from, action, detail, status);
        kept(self.with_access(move |access| Ok(access.record(&record))).await)
    }

    /// As [`record`](Rest::record), where the right was missing and nothing was begun: so many of one user are written.
    async fn record_refusal(
        self: &Arc<Rest>,
        who: &Identity,
        from: From,
        action: String,
        detail: String,
        status: u16,
    ) {
        let (action, detail) = (cut(action, REFUSED_MAX), cut(detail, REFUSED_MAX));
        let record = self.record_of(who, from, action, detail, status);
        // Why is in the daemon's log; the request is refused anyway.
        let _ = kept(self.with_access(move |access| Ok(access.record_refusal(&record))).await);
    }

    fn record_of(&self, who: &Identity, from: From, action: String, detail: String, status: u16) -> Record {
        let record = Record {
            time: self.now().wall,
            user: who.user.clone(),
            address: from.to_string(),
            session: who.session.clone(),
            action: brief(action),
            detail: brief(detail),
            status,
        };
        tracing::info!(user = record.user, address = record.address, status, "{}", record.action);
        record
    }

    /// Whether there is any body with which it would be allowed: by the endpoint's own right, or by a field's.
    fn may_at_all(&self, admitted: &Admitted) -> bool {
        let Admitted { who, routed, .. } = admitted;
        // The name of what is to be made may be what a right is narrowed to, and is in the body.
        if routed.endpoint.method == Method::Post && matches!(routed.endpoint.need, Need::Right(..)) {
            return true;
        }
        let nothing = Args::default();
        let by_field = |scope: &str| {
            let fields = routed.endpoint.body.map_or(&[][..], |shape| shape.fields);
            let on = subject(routed, &nothing);
            fields.iter().filter_map(|f| f.permission).any(|p| self.has(who, scope, p, &on))
        };
        let scope = match routed.endpoint.need {
            Need::Right(scope, _) | Need::RightOrSelf(scope, _) => Some(scope),
            Need::Login | Need::Look | Need::SelfAlone => None,
        };
        self.may(who, routed, &nothing) || scope.is_some_and(by_field)
    }

    fn may(&self, who: &Identity, routed: &Routed, args: &Args) -> bool {
        let is_self = routed.params.get("user").is_some_and(|name| *name == who.user);
        let (scope, permission) = match routed.endpoint.need {
            Need::Login => return true,
            Need::Look => return is_self || self.access().state().may_look(&who.user),
            Need::SelfAlone => return is_self || who.user == ROOT,
            Need::RightOrSelf(..) if is_self => return true,
            Need::Right(scope, permission) | Need::RightOrSelf(scope, permission) => (scope, permission),
        };
        let on = subject(routed, args);
        let needed = needed(routed.endpoint, permission, args);
        let is_of_pool = |permission: &str| {
            routed.endpoint.path.ends_with("/projects/{project}") && OF_ITS_POOL.contains(&permission)
        };
        let is_wide = reaches_beyond(args);
        needed.into_iter().all(|permission| match is_wide || is_of_pool(permission) {
            true => self.has(who, scope, permission, &in_pool(&on)),
            false => self.has(who, scope, permission, &on),
        })
    }

    /// All other projects inherit from the default one, which is the pool's own file system: a right that ends at it is not
    /// enough for what is done to it itself.
    pub(crate) fn has(&self, who: &Identity, scope: &str, permission: &str, on: &[(&str, &str)]) -> bool {
        let is_default = on.contains(&("project", DEFAULT_PROJECT));
        let is_share = on.iter().any(|(filter, _)| *filter == "share");
        let wide = if is_default && !is_share { in_pool(on) } else { on.to_vec() };
        let on = &wide[..];
        self.access().state().may(&who.user, &Needed { scope, permission, on })
    }

    pub(crate) fn table(&self) -> impl Iterator<Item = &'static Endpoint> {
        self.table.iter().copied()
    }

    pub(crate) async fn call(&self, asked: &Asked, request: Request) -> Result<api::Reply, Fault> {
        Ok(self.try_call(asked, request).await?)
    }

    pub(crate) async fn try_call(&self, asked: &Asked, request: Request) -> api::Result<api::Reply> {
        let command = format!("{} (by {})", asked.action, asked.who.user);
        self.service.call(Call { command, uid: asked.who.uid, request }).await
    }

    fn answer(&self, routed: &Routed, done: &Done) -> Answer {
        let mut headers = self.headers(Some(routed.endpoint));
        headers.extend(done.headers.iter().map(|(n, v)| (n.to_string(), v.clone())));
        if let (201, Reply::One(key, _)) = (routed.endpoint.status, routed.endpoint.reply)
            && let Some(href) = done.body[key]["href"].as_str()
        {
            headers.push(("location".into(), href.into()));
        }
        let body = match (routed.endpoint.reply, &done.body) {
            (Reply::Nothing, _) => Vec::new(),
            (Reply::Text, value) => {
                headers.push(("content-type".into(), "text/plain; version=0.0.4; charset=utf-8".into()));
                value.as_str().unwrap_or_default().into()
            }
            (_, value) => {
                headers.push(("content-type".into(), "application/json".into()));
                value.to_string().into()
            }
        };
        self.count(Answer { status: routed.endpoint.status, headers, body })
    }

    pub(crate) fn answer_fault(&self, fault: &Fault, endpoint: Option<&Endpoint>) -> Answer {
        let mut headers = self.headers(endpoint);
        headers.push(("content-type".into(), "application/json".into()));
        if fault.code == 401 {
            headers.push(("www-authenticate".into(), "Basic realm=\"cenote\"".into()));
        }
        headers.extend(fault.retry_after.map(|s| ("retry-after".to_string(), s.to_string())));
        self.count(Answer { status: fault.code, headers, body: fault.body().to_string().into() })
    }

    fn headers(&self, endpoint: Option<&Endpoint>) -> Vec<(String, String)> {
        let mut headers = vec![
            ("cache-control".to_string(), "no-store".to_string()),
            ("x-content-type-options".into(), "nosniff".into()),
        ];
        if let Some(service) = endpoint.map(|endpoint| endpoint.service()).filter(|s| !s.is_empty()) {
            headers.push((format!("x-zfssa-{service}-api"), "1.0".into()));
        }
        headers
    }

    pub(crate) fn count(&self, answer: Answer) -> Answer {
        let class = usize::from(answer.status / 100).min(self.counters.answers.len() - 1);
        self.counters.answers[class].fetch_add(1, Ordering::Relaxed);
        answer
    }
}

fn kept(outcome: Result<std::io::Result<()>, Fault>) -> Result<(), Fault> {
    outcome?.map_err(|e| {
        tracing::error!("cannot write the audit log: {e}");
        Fault::unrecorded(&e)
    })
}

fn missing_right() -> Fault {
    Fault::denied("you are not authorized to do that")
}

/// Whether a body changes what does not end at a share or project: where on the host its files are seen, which may be in
/// place of what others have there.
fn reaches_beyond(args: &Args) -> bool {
    let unset = args.texts("unset").unwrap_or_default();
    BEYOND.iter().any(|name| args.has(name) || unset.iter().any(|other| other == name))
}

/// Of the filters of a request, those that a right for the whole pool may have.
fn in_pool<'a>(on: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    on.iter().filter(|(filter, _)| !matches!(*filter, "project" | "share")).copied().collect()
}

/// The permissions that a body asks for: those of its fields, and the endpoint's for what has none of its own.
pub(crate) fn needed(endpoint: &Endpoint, permission: &'static str, args: &Args) -> Vec<&'static str> {
    let fields = endpoint.body.map_or(&[][..], |shape| shape.fields);
    let given = fields.iter().filter(|f| args.has(f.name));
    let own: Vec<Option<&'static str>> = given.map(|f| f.permission).collect();
    let is_general = own.is_empty() || !args.custom.is_empty() || own.contains(&None);
    let mut all: Vec<&'static str> = own.into_iter().flatten().collect();
    all.extend(is_general.then_some(permission));
    all
}

/// What a request is about, as filters of authorizations name it.
fn subject<'a>(routed: &'a Routed, args: &'a Args) -> Vec<(&'static str, &'a str)> {
    const FILTERS: &[(&str, &str)] = &[
        ("pool", "pool"),
        ("project", "project"),
        ("lun", "share"),
        ("filesystem", "share"),
        ("user", "name"),
        ("role", "name"),
        ("service", "service"),
    ];
    let named =
        FILTERS.iter().filter_map(|(param, filter)| Some((*filter, routed.params.get(param)?.as_str())));
    let mut all: Vec<(&'static str, &str)> = named.collect();
    if routed.endpoint.method == Method::Post {
        let made = match routed.endpoint.path.rsplit('/').next() {
            Some("pools") => args.text("name").map(|n| ("pool", n)),
            Some("projects") => args.text("name").map(|n| ("project", n)),
            Some("luns" | "filesystems") => args.text("name").map(|n| ("share", n)),
            Some("users") => args.text("logname").map(|n| ("name", n)),
            Some("roles") => args.text("name").map(|n| ("name", n)),
            _ => None,
        };
        all.extend(made);
    }
    all
}

/// Answers a request that is plain.
pub(crate) async fn ask_plainly(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let reply = rest.call(&asked, asked.request()?).await?;
    match asked.routed.endpoint.declared.and_then(|declared| declared.told) {
        None => nothing(),
        Some(told) => {
            let body =
                told(&reply).ok_or_else(|| Fault::internal("the appliance answered something else"))?;
            Ok(asked.in_version(body).into())
        }
    }
}

impl Asked {
    /// What is asked of the appliance, as the endpoint's declaration says.
    pub fn request(&self) -> Result<Request, Fault> {
        let declared = self.routed.endpoint.declared;
        let declared = declared.ok_or_else(|| Fault::internal("no request is declared for that"))?;
        let given = Given { params: &self.routed.params, query: self.path.pairs(), args: &self.args };
        Ok((declared.asked)(given)?)
    }

    /// A value, as this answer tells it.
    pub fn told<T>(&self, shaped: &Shaped<T>, value: &T) -> Value {
        self.in_version(Value::Object((shaped.tell)(value)))
    }

    /// Hrefs lead into the version that was asked.
    pub fn in_version(&self, mut told: Value) -> Value {
        if self.routed.version != 1 {
            self.point(&mut told);
        }
        told
    }

    fn point(&self, told: &mut Value) {
        match told {
            Value::Array(all) => all.iter_mut().for_each(|one| self.point(one)),
            Value::Object(map) => {
                for (name, value) in map {
                    match value {
                        Value::String(path) if name == "href" => {
                            *path = path.replacen("/v1", &format!("/v{}", self.routed.version), 1);
                        }
                        value => self.point(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// What a brace of the template stands for.
    pub fn param(&self, name: &str) -> &str {
        self.routed.params.get(name).map_or("", String::as_str)
    }

    /// The path of something in the service that was asked, in the version that was asked.
    pub fn href(&self, parts: &[&str]) -> String {
        let encoded: String = parts.iter().map(|p| format!("/{}", path::encode(p))).collect();
        format!("/api/{}/v{}{encoded}", self.routed.endpoint.service(), self.routed.version)
    }

    /// Whether `?force=true` was said: clients that are in the way are ended.
    pub fn is_forced(&self) -> bool {
        self.path.query("force") == Some("true")
    }

    /// Whether `?confirm=true` was said.
    pub fn is_confirmed(&self) -> bool {
        self.path.query("confirm") == Some("true")
    }
}

/// Nothing in particular is answered.
pub(crate) fn nothing() -> Outcome {
    Ok(Done::default())
}

/// What the audit log has of what was asked for, bytes.
const RECORDED_MAX: usize = 2 << 10;

/// The same, of what was refused.
const REFUSED_MAX: usize = 256;

fn brief(text: String) -> String {
    cut(text, RECORDED_MAX)
}

fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log of 16 MiB was filled by 36 requests of a megabyte, and what was before them was gone.
    #[test]
    fn a_long_request_is_cut_in_the_log() {
        assert_eq!(brief("zpool create".into()), "zpool create");
        for letter in ["x", "\u{e4}", "\u{20ac}"] {
            let cut = brief(letter.repeat(1 << 20));
            assert!(
                cut.len() <= RECORDED_MAX + 4 && cut.ends_with(&format!("{letter} ...")),
                "{}",
                cut.len()
            );
        }
    }
}
