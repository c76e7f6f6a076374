//! Every endpoint, as everybody: what is answered is what the table says.

#![allow(clippy::unwrap_used)]

use access::{Access, Authorization, Entropy, Files, Holder, Now, ROOT, SCOPES, UserChange};
use api::{ApiError, Call, ErrorKind, Reply, Request, Service};
use rest::{About, Answer, Endpoint, From, Kind, Need, Rest, Shape, table};
use serde_json::{Map, Value, json};
use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// An appliance with nothing in it.
struct Empty;

impl Service for Empty {
    fn call(&self, call: Call) -> Pin<Box<dyn Future<Output = api::Result<Reply>> + Send>> {
        let reply = match call.request {
            Request::San(api::san::San::Show) => Ok(Reply::San(Box::default())),
            Request::Services(api::Services::Show) => Ok(Reply::Services(Vec::new())),
            Request::Schema(api::Schema::Show) => Ok(Reply::Schema(Vec::new())),
            Request::DeferredUpdates { .. } => Ok(Reply::DeferredUpdates(Vec::new())),
            Request::Pools { names } if names.is_empty() => Ok(Reply::Pools(Vec::new())),
            Request::Daemon => Ok(Reply::Daemon(api::Daemon::default())),
            Request::NbdExports => Ok(Reply::Nbd(api::Nbd::default())),
            _ => Err(ApiError::new(ErrorKind::NotFound, "there is nothing")),
        };
        Box::pin(async move { reply })
    }
}

struct Counter(u64);

impl Entropy for Counter {
    fn fill(&mut self, out: &mut [u8]) {
        self.0 += 1;
        out.chunks_mut(8).for_each(|c| c.copy_from_slice(&self.0.to_le_bytes()[..c.len()]));
    }
}

const NOW: Now = Now { wall: 1_700_000_000, steady: 0.0 };

struct Home {
    dir: PathBuf,
    rest: Arc<Rest>,
    /// Who, and the token to show.
    people: Vec<(String, String)>,
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A user for each permission, who has it and nothing else.
fn name_of(scope: &str, permission: &str) -> String {
    format!("{scope}-{permission}")
}

/// Somebody who can log in, and has no role.
const NOBODY: &str = "without-roles";

fn home(name: &str) -> Home {
    let dir = std::env::temp_dir().join(format!("cenote-rest-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let mut access = Access::open(Box::new(Files::new(&dir)), Box::new(Counter(0))).unwrap();
    let mut names = vec![ROOT.to_string(), "basic".into(), NOBODY.into()];
    let none = UserChange { roles: Some(Default::default()), ..UserChange::default() };
    access.change(|s| s.create_user(NOBODY, "", None).map(drop)).unwrap();
    access.change(|s| s.change_user(ROOT, NOBODY, none)).unwrap();
    access.change(|s| s.create_user("basic", "", None).map(drop)).unwrap();
    for scope in SCOPES {
        for permission in scope.permissions {
            let name = name_of(scope.name, permission);
            let auth =
                Authorization::new(scope.name, Default::default(), [permission.to_string()].into()).unwrap();
            access
                .change(|s| {
                    s.create_user(&name, "", None)?;
                    s.authorize(ROOT, Holder::User(&name), auth).map(drop)
                })
                .unwrap();
            names.push(name);
        }
    }
    let token = |name: String| {
        let owner = access.owner();
        let secret = access.create_token(&owner, &name, "test", None, NOW).unwrap().1;
        (name, secret.reveal().to_string())
    };
    let people = names.into_iter().map(token).collect();
    let about = About { nodename: "host".into(), asn: "0-0".into(), ..About::default() };
    Home { dir, rest: Rest::new(access, Arc::new(Empty), about), people }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn ask(
    rest: &Arc<Rest>,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    from: From,
    body: Value,
) -> Answer {
    let mut request = hyper::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    match rest.admit(&head, from).await {
        Err(answer) => answer,
        Ok(admitted) => {
            let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
            rest.clone().carry_out(admitted, Ok(body.into())).await
        }
    }
}

const STRANGER: From = From::Network(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

fn path(endpoint: &Endpoint) -> String {
    let parts = endpoint.path.split('/').map(|p| if p.starts_with('{') { "ghost" } else { p });
    parts.collect::<Vec<_>>().join("/")
}

fn sample(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Word => "sample".into(),
        Kind::Number | Kind::Size => 1_048_576.into(),
        Kind::Flag => true.into(),
        Kind::Texts => json!(["sample"]),
        Kind::Secret => "a long password".into(),
        _ => panic!("no body holds {kind:?}"),
    }
}

/// The smallest body that is right in form.
fn body(shape: Option<&Shape>) -> Value {
    let Some(shape) = shape else { return Value::Null };
    let mut object: Map<String, Value> =
        shape.fields.iter().filter(|f| f.is_required).map(|f| (f.name.to_string(), sample(f.kind))).collect();
    if shape.field("scope").is_some() {
        object.insert("scope".into(), "nas".into());
    }
    Value::Object(object)
}

/// No token makes what comes in as root itself.
const CODE: &str = "/api/access/v1/code";

/// What the table says, worked out from the names of people alone.
fn is_allowed(need: Need, permission: Option<&str>, who: &str) -> bool {
    match need {
        _ if who == ROOT => true,
        Need::Login => true,
        // Each of them has the basic role, but one.
        Need::Look => who != NOBODY,
        Need::SelfAlone => false,
        Need::Right(scope, own) | Need::RightOrSelf(scope, own) => {
            who == name_of(scope, permission.unwrap_or(own))
        }
    }
}

#[test]
fn every_endpoint_answers_everybody_as_the_table_says() {
    let home = home("everybody");
    runtime().block_on(async {
        let mut asked = 0;
        for endpoint in table::all() {
            let (method, path) = (endpoint.method.word(), path(endpoint));
            let mut bodies = vec![(body(endpoint.body), None)];
            let fields = endpoint.body.map_or(&[][..], |s| s.fields);
            for field in fields.iter().filter(|f| f.permission.is_some() && !f.is_required) {
                let alone = json!({ field.name: sample(field.kind) });
                bodies.push((alone, field.permission));
            }
            for (body, permission) in bodies {
                for headers in
                    [&[][..], &[("x-auth-session", "ended long ago")], &[("authorization", "Basic !")]]
                {
                    let answer = ask(&home.rest, method, &path, headers, STRANGER, body.clone()).await;
                    assert_eq!(answer.status, 401, "{endpoint:?} {headers:?}");
                }
                for (who, token) in &home.people {
                    let headers = [("x-auth-session", token.as_str())];
                    let answer = ask(&home.rest, method, &path, &headers, STRANGER, body.clone()).await;
                    let is_refused = answer.status == 403;
                    let text = String::from_utf8_lossy(&answer.body);
                    assert_ne!(answer.status, 401, "{endpoint:?} as {who}: {text}");
                    assert!(answer.status < 500, "{endpoint:?} as {who}: {text}");
                    // All of them come by tokens.
                    let allowed = is_allowed(endpoint.need, permission, who) && path != CODE;
                    assert_eq!(!is_refused, allowed, "{endpoint:?} {body} as {who}: {text}");
                    asked += 1;
                }
            }
        }
        assert!(asked > 500, "{asked}");
    });
}

#[test]
fn every_permission_guards_something() {
    for scope in SCOPES {
        for permission in scope.permissions {
            let guards = |endpoint: &Endpoint| match endpoint.need {
                Need::Right(s, p) | Need::RightOrSelf(s, p) if s == scope.name => {
                    let fields = endpoint.body.map_or(&[][..], |shape| shape.fields);
                    p == *permission || fields.iter().any(|f| f.permission == Some(permission))
                }
                _ => false,
            };
            assert!(table::all().any(guards), "{}.{permission}", scope.name);
        }
    }
}

/// A right that is narrowed to one project does not reach its neighbour, also when the name is in the body.
#[test]
fn a_right_ends_where_its_filters_end() {
    let home = home("narrow");
    let root = home.people[0].1.clone();
    runtime().block_on(async {
        let root = [("x-auth-session", root.as_str())];
        let new = json!({ "logname": "ann", "fullname": "Ann", "initial_password": "a long password" });
        assert_eq!(ask(&home.rest, "POST", "/api/user/v1/users", &root, STRANGER, new).await.status, 201);
        let auth = json!({ "scope": "user", "name": "bob", "allow_changeProperties": true });
        let path = "/api/user/v1/users/ann/exceptions";
        assert_eq!(ask(&home.rest, "POST", path, &root, STRANGER, auth).await.status, 201);
        let ann = [("x-auth-user", "ann"), ("x-auth-key", "a long password")];
        let user = |name: &str| json!({ "logname": name, "fullname": "" });
        for (name, status) in [("carl", 403), ("bob", 201)] {
            let answer = ask(&home.rest, "POST", "/api/user/v1/users", &ann, STRANGER, user(name)).await;
            assert_eq!(answer.status, status, "{name}");
        }
        let change = json!({ "fullname": "B" });
        for (name, status) in [("basic", 403), ("bob", 202), ("ann", 202)] {
            let path = format!("/api/user/v1/users/{name}");
            assert_eq!(
                ask(&home.rest, "PUT", &path, &ann, STRANGER, change.clone()).await.status,
                status,
                "{name}"
            );
        }
        // One's own roles are no way up.
        let roles = json!({ "roles": ["basic", "op"] });
        let new = json!({ "name": "op", "description": "" });
        assert_eq!(ask(&home.rest, "POST", "/api/role/v1/roles", &root, STRANGER, new).await.status, 201);
        let auth = json!({ "scope": "hardware", "allow_pool": true });
        let path = "/api/role/v1/roles/op/authorizations";
        assert_eq!(ask(&home.rest, "POST", path, &root, STRANGER, auth).await.status, 201);
        let answer = ask(&home.rest, "PUT", "/api/user/v1/users/ann", &ann, STRANGER, roles).await;
        assert_eq!(answer.status, 403);
    });
}

/// Somebody without any role read the pools, the LUNs and who else there is.
#[test]
fn without_a_role_one_sees_oneself_alone() {
    let home = home("alone");
    let token = home.people[2].1.clone();
    runtime().block_on(async {
        let nobody = [("x-auth-session", token.as_str())];
        for (path, status) in [
            ("/api/access/v1", 200),
            ("/api/user/v1/users/without-roles", 200),
            ("/api/user/v1/users", 403),
            ("/api/user/v1/users/root", 403),
            ("/api/storage/v1/pools", 403),
            ("/api/storage/v2/luns", 403),
            ("/api/san/v1/iscsi/targets", 403),
            ("/api/system/v1/version", 403),
            ("/metrics", 403),
        ] {
            let answer = ask(&home.rest, "GET", path, &nobody, STRANGER, Value::Null).await;
            assert_eq!(answer.status, status, "{path}");
        }
    });
}

/// A right to destroy that was narrowed to a project destroyed the project itself, with all its LUNs.
#[test]
fn a_right_in_a_project_is_none_over_the_project() {
    let home = home("project");
    let root = home.people[0].1.clone();
    runtime().block_on(async {
        let root = [("x-auth-session", root.as_str())];
        for (name, filters) in [
            ("inner", json!({ "pool": "tank", "project": "p" })),
            ("outer", json!({ "pool": "tank" })),
            ("wide", json!({ "project": "*", "share": "*" })),
            ("other", json!({ "pool": "dozer" })),
        ] {
            let new = json!({ "logname": name, "fullname": "", "initial_password": "a long password" });
            assert_eq!(ask(&home.rest, "POST", "/api/user/v1/users", &root, STRANGER, new).await.status, 201);
            let mut auth = filters;
            for (word, value) in
                [("scope", json!("nas")), ("allow_destroy", json!(true)), ("allow_rename", json!(true))]
            {
                auth[word] = value;
            }
            let path = format!("/api/user/v1/users/{name}/exceptions");
            assert_eq!(ask(&home.rest, "POST", &path, &root, STRANGER, auth).await.status, 201);
        }
        let project = "/api/storage/v1/pools/tank/projects/p";
        let rename = json!({ "name": "q" });
        for (name, of_project, of_share) in
            [("inner", 403, 404), ("outer", 404, 404), ("wide", 404, 404), ("other", 403, 403)]
        {
            let who = [("x-auth-user", name), ("x-auth-key", "a long password")];
            for (method, path, body, status) in [
                ("DELETE", format!("{project}?confirm=true"), Value::Null, of_project),
                ("PUT", project.to_string(), rename.clone(), of_project),
                ("DELETE", format!("{project}/luns/l"), Value::Null, of_share),
                ("PUT", format!("{project}/luns/l"), rename.clone(), of_share),
                ("DELETE", format!("{project}/snapshots/s"), Value::Null, of_share),
            ] {
                // Nothing of it is there: a user with the right is told so.
                let answer = ask(&home.rest, method, &path, &who, STRANGER, body).await;
                assert_eq!(answer.status, status, "{method} {path} as {name}");
            }
        }
    });
}

#[test]
fn tokens_are_made_by_their_owner_and_told_once() {
    let home = home("tokens");
    let basic = home.people[1].1.clone();
    runtime().block_on(async {
        let basic = [("x-auth-session", basic.as_str())];
        let path = "/api/user/v1/users/basic/preferences/tokens";
        let made = ask(&home.rest, "POST", path, &basic, STRANGER, json!({ "name": "csi", "days": 1 })).await;
        assert_eq!(made.status, 201);
        let made: Value = serde_json::from_slice(&made.body).unwrap();
        let token = made["token"]["token"].as_str().unwrap().to_string();
        let bearer = format!("Bearer {token}");
        let listed = ask(&home.rest, "GET", path, &[("authorization", &bearer)], STRANGER, Value::Null).await;
        assert_eq!(listed.status, 200);
        assert!(!String::from_utf8_lossy(&listed.body).contains(&token));
        let href = made["token"]["href"].as_str().unwrap().to_string();
        assert_eq!(ask(&home.rest, "DELETE", &href, &basic, STRANGER, Value::Null).await.status, 204);
        let after = ask(&home.rest, "GET", path, &[("authorization", &bearer)], STRANGER, Value::Null).await;
        assert_eq!(after.status, 401);
        let other = "/api/user/v1/users/root/preferences/tokens";
        let answer = ask(&home.rest, "POST", other, &basic, STRANGER, json!({ "name": "x" })).await;
        assert_eq!(answer.status, 403);
    });
}

/// By a code one is root without a token: a token of a day made one without an end, and another password.
#[test]
fn a_token_makes_no_one_time_code() {
    let home = home("code");
    let token = home.people[0].1.clone();
    runtime().block_on(async {
        let token = [("x-auth-session", token.as_str())];
        assert_eq!(ask(&home.rest, "POST", CODE, &token, STRANGER, json!({})).await.status, 403);
        assert_eq!(ask(&home.rest, "POST", CODE, &token, From::Owner, json!({})).await.status, 403);
        assert_eq!(ask(&home.rest, "POST", CODE, &[], From::Owner, json!({})).await.status, 201);
    });
}

#[test]
fn the_audit_log_tells_changes_and_no_secrets() {
    let home = home("audit");
    let (root, basic) = (home.people[0].1.clone(), home.people[1].1.clone());
    runtime().block_on(async {
        let root = [("x-auth-session", root.as_str())];
        let new = json!({ "logname": "ann", "fullname": "Ann", "initial_password": "tops3cret!" });
        ask(&home.rest, "POST", "/api/user/v1/users", &root, STRANGER, new).await;
        ask(&home.rest, "GET", "/api/user/v1/users", &root, STRANGER, Value::Null).await;
        let basic = [("x-auth-session", basic.as_str())];
        ask(&home.rest, "DELETE", "/api/user/v1/users/ann", &basic, From::Owner, Value::Null).await;
        let wrong = [("x-auth-user", "ann"), ("x-auth-key", "wr0ng guess")];
        assert_eq!(ask(&home.rest, "GET", "/metrics", &wrong, STRANGER, Value::Null).await.status, 401);
        let audit = ask(&home.rest, "GET", "/api/log/v1/logs/audit", &root, STRANGER, Value::Null).await;
        let audit: Value = serde_json::from_slice(&audit.body).unwrap();
        let lines: Vec<String> = audit["logs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| format!("{} {} {} {}", r["user"], r["address"], r["summary"], r["status"]))
            .collect();
        assert_eq!(
            lines,
            [
                r#""root" "127.0.0.1" "POST /api/user/v1/users" 102"#,
                r#""root" "127.0.0.1" "POST /api/user/v1/users" 201"#,
                r#""basic" "local" "DELETE /api/user/v1/users/ann" 403"#,
                r#""ann" "127.0.0.1" "login" 401"#,
            ]
        );
        let text = audit.to_string() + &std::fs::read_to_string(home.dir.join("audit.jsonl")).unwrap();
        assert!(text.contains("********"), "{text}");
        assert!(!text.contains("tops3cret!") && !text.contains("wr0ng guess"), "{text}");
    });
}

#[test]
fn an_unknown_name_and_a_wrong_password_are_answered_alike() {
    let home = home("oracle");
    runtime().block_on(async {
        let root = [("x-auth-session", home.people[0].1.as_str())];
        let password = json!({ "initial_password": "a long password" });
        ask(&home.rest, "PUT", "/api/user/v1/users/basic", &root, STRANGER, password).await;
        let mut answers = Vec::new();
        for (name, address) in [("basic", 1), ("nobody", 2), (ROOT, 3)] {
            let from = From::Network(IpAddr::from([10, 0, 0, address]));
            let headers = [("x-auth-user", name), ("x-auth-key", "guess")];
            let mut all = Vec::new();
            for _ in 0..10 {
                all.push(ask(&home.rest, "POST", "/api/access/v1", &headers, from, Value::Null).await);
            }
            // On a slow machine some places are free again by now.
            let mut last = None;
            for _ in 0..100 {
                let answer = ask(&home.rest, "POST", "/api/access/v1", &headers, from, Value::Null).await;
                if answer.status == 429 {
                    last = Some(answer);
                    break;
                }
            }
            let last = last.expect("there is an end to guessing");
            assert!(last.headers.iter().any(|(n, _)| n == "retry-after"));
            assert!(all.iter().all(|a| a.status == 401));
            answers.push(all);
        }
        assert!(answers[0] == answers[1]);
        assert!(answers[0] == answers[2], "root, which has no password yet");
    });
}

#[test]
fn paths_that_name_nothing_are_not_found() {
    let home = home("paths");
    let root = home.people[0].1.clone();
    runtime().block_on(async {
        let root = [("x-auth-session", root.as_str())];
        for (method, path, status) in [
            ("GET", "/api/user/v1/users/root", 200),
            ("HEAD", "/api/user/v1/users/root", 200),
            ("GET", "/api/user/v2.0/users/root", 200),
            ("GET", "/api/user/v1/users/../users/root", 404),
            ("GET", "/api/user/v1/users/%2e%2e/users", 404),
            ("GET", "/api/user/v1//users", 404),
            ("GET", "/api/user/v1/users%2froot", 404),
            ("GET", "/api/user/v1/users/root%00", 404),
            ("GET", "/api/user/v3/users", 404),
            ("PATCH", "/api/user/v1/users/root", 405),
            ("POST", "/metrics", 405),
            ("GET", "/", 404),
        ] {
            let answer = ask(&home.rest, method, path, &root, STRANGER, Value::Null).await;
            assert_eq!(answer.status, status, "{method} {path}");
        }
    });
}

/// A body may come long after the head by which the request was let in.
#[test]
fn a_request_whose_user_is_gone_before_its_body_is_there_is_not_carried_out() {
    let home = home("late");
    runtime().block_on(async {
        let (name, token) = home.people.iter().find(|(name, _)| name == "basic").unwrap();
        let path = format!("/api/user/v1/users/{name}/preferences/tokens");
        let late = || hyper::Request::builder().method("POST").uri(&path).header("x-auth-session", token);
        let (head, ()) = late().body(()).unwrap().into_parts();
        let admitted = home.rest.admit(&head, STRANGER).await.unwrap();
        let removed = format!("/api/user/v1/users/{name}");
        assert_eq!(ask(&home.rest, "DELETE", &removed, &[], From::Owner, Value::Null).await.status, 204);
        let again = json!({ "logname": name, "fullname": "" });
        assert_eq!(ask(&home.rest, "POST", "/api/user/v1/users", &[], From::Owner, again).await.status, 201);
        let body = json!({ "name": "for ever" }).to_string();
        assert_eq!(home.rest.clone().carry_out(admitted, Ok(body.into())).await.status, 401);
        let tokens = ask(&home.rest, "GET", &path, &[], From::Owner, Value::Null).await;
        assert_eq!(serde_json::from_slice::<Value>(&tokens.body).unwrap(), json!({ "tokens": [] }));
    });
}

/// The default project is the pool's own file system; and where files are seen on the host is not a project's to say.
#[test]
fn a_right_for_a_project_ends_there() {
    let home = home("narrowed");
    runtime().block_on(async {
        let mut secrets = Vec::new();
        for (name, project) in [("own", "mine"), ("default", "default"), ("pool", "*")] {
            let user = format!("of-{name}");
            let made = ask(&home.rest, "POST", "/api/user/v1/users", &[], From::Owner, json!({ "logname": user, "fullname": "" }));
            assert_eq!(made.await.status, 201);
            let path = format!("/api/user/v1/users/{user}/exceptions");
            let right = json!({ "scope": "nas", "pool": "tank", "project": project, "allow_changeGeneralProps": true });
            assert_eq!(ask(&home.rest, "POST", &path, &[], From::Owner, right).await.status, 201);
            let path = format!("/api/user/v1/users/{user}/preferences/tokens");
            let made = ask(&home.rest, "POST", &path, &[], From::Owner, json!({ "name": "t" })).await;
            let told: Value = serde_json::from_slice(&made.body).unwrap();
            secrets.push(told["token"]["token"].as_str().unwrap().to_string());
        }
        let projects = "/api/storage/v1/pools/tank/projects";
        // There is nothing in this appliance: to be let in is to be told that it was not found.
        for (at, body, expected) in [
            ("/mine", json!({ "compression": "off" }), [404, 403, 404]),
            ("/default", json!({ "readonly": true }), [403, 403, 404]),
            ("/default", json!({ "unset": ["readonly"] }), [403, 403, 404]),
            ("/default/filesystems/f", json!({ "compression": "off" }), [403, 404, 404]),
            ("/mine/filesystems/f", json!({ "compression": "off" }), [404, 403, 404]),
            ("/mine/filesystems/f", json!({ "mountpoint": "/etc" }), [403, 403, 404]),
            ("/mine/filesystems/f", json!({ "unset": ["mountpoint"] }), [403, 403, 404]),
            ("/mine", json!({ "mountpoint": "/etc" }), [403, 403, 404]),
        ] {
            for (secret, expected) in secrets.iter().zip(expected) {
                let shown = [("x-auth-session", secret.as_str())];
                let path = format!("{projects}{at}");
                let answer = ask(&home.rest, "PUT", &path, &shown, STRANGER, body.clone()).await;
                assert_eq!(answer.status, expected, "{at} {body}");
            }
        }
    });
}
