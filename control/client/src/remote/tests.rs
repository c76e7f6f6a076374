//! What is asked of the API for each request, and what is made of its answers.

use super::*;
use api::shares::{ItemKind, Place, Shares};
use api::{AutomaticDeed, ShareDeed, Switch};
use serde_json::json;
use std::sync::{Arc, Mutex};

type Asked = Arc<Mutex<Vec<String>>>;

/// Writes down what it is asked; whatever is not said here is not found.
struct Book {
    answers: Vec<(&'static str, u16, Value)>,
    asked: Asked,
}

impl Exchange for Book {
    fn exchange(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)> {
        let path = path.strip_prefix("/api/").expect("it is the API");
        let body = body.map_or_else(String::new, |body| format!(" {body}"));
        self.asked.lock().unwrap().push(format!("{method} {path}{body}"));
        let line = format!("{method} {path}");
        let found = self.answers.iter().find(|(known, ..)| *known == line);
        let none = || (404, json!({ "fault": { "name": "ERR_NOT_FOUND", "message": "there is nothing" } }));
        Ok(found.map_or_else(none, |(_, status, answer)| (*status, answer.clone())))
    }
}

fn remote(answers: &[(&'static str, u16, Value)]) -> (Remote, Asked) {
    let asked = Asked::default();
    (Remote::over(Box::new(Book { answers: answers.to_vec(), asked: asked.clone() })), asked)
}

fn ask(remote: &mut Remote, request: Request) -> Result<Reply> {
    remote.call(Call { command: "shell: test".into(), uid: 0, request })
}

fn words(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()
}

fn share() -> Place {
    Place::project("tank", "my sql").share("data")
}

const LUN: &str = "storage/v1/pools/tank/projects/my%20sql/luns/data";

#[test]
fn a_share_is_found_by_its_kind_once_and_changed_in_its_folder() {
    let lun = json!({ "lun": {
        "name": "data", "pool": "tank", "project": "my sql", "volsize": 1_048_576, "writecache": true, "logbias": "latency", "initiatorgroup": ["a", "b"],
        "creation": "2026-11-21T20:50:45Z", "custom:owner": "ann", "source": { "logbias": "inherited", "writecache": "local" },
    }});
    let (mut remote, asked) = remote(&[
        ("GET storage/v1/pools/tank/projects/my%20sql/luns/data", 200, lun),
        ("PUT storage/v1/pools/tank/projects/my%20sql/luns/data", 202, json!({})),
    ]);
    let Reply::Items(items) = ask(&mut remote, Request::Shares(Shares::Get { place: share() })).unwrap()
    else {
        panic!()
    };
    let item = &items[0];
    assert_eq!((item.kind, &item.place), (ItemKind::Lun, &share()));
    let shown = |name: &str| item.attribute(name).and_then(|p| Some((p.value.clone()?, p.source.clone())));
    assert_eq!(shown("volsize"), Some((1_048_576.into(), api::Source::None)));
    assert_eq!(shown("logbias"), Some(("latency".into(), api::Source::Inherited(String::new()))));
    assert_eq!(shown("writecache"), Some(("true".into(), api::Source::Local)));
    assert_eq!(shown("initiatorgroup").unwrap().0, "a,b".into());
    assert_eq!(shown("creation").unwrap().0, 1_795_294_245.into());
    assert_eq!(
        (item.custom[0].name.as_str(), item.custom[0].value.as_deref()),
        ("custom:owner", Some("ann"))
    );
    let set =
        words(&[("volsize", "2M"), ("initiatorgroup", "a, c"), ("writecache", "false"), ("copies", "2")]);
    let change = Shares::change(share(), set, vec!["logbias".into()]);
    ask(&mut remote, Request::Shares(change)).unwrap();
    let folder = LUN.replace("/luns/", "/filesystems/");
    let changes =
        r#"{"copies":2,"initiatorgroup":["a","c"],"unset":["logbias"],"volsize":"2M","writecache":"false"}"#;
    assert_eq!(
        *asked.lock().unwrap(),
        [format!("GET {folder}"), format!("GET {LUN}"), format!("PUT {LUN} {changes}")]
    );
    let gone = Shares::Get { place: Place::project("tank", "my sql").share("gone") };
    let e = ask(&mut remote, Request::Shares(gone)).unwrap_err();
    assert_eq!(
        (e.kind, e.message.as_str()),
        (ErrorKind::NotFound, "cannot open 'my sql/gone': there is no such share")
    );
}

#[test]
fn deeds_are_paths_below_the_share() {
    let all = [
        (
            "GET storage/v1/pools/tank/projects/my%20sql/filesystems/data",
            200,
            json!({ "filesystem": { "name": "data", "pool": "tank", "project": "my sql" } }),
        ),
        ("POST storage/v1/pools/tank/projects/my%20sql/filesystems/data/snapshots", 201, json!({})),
        (
            "PUT storage/v1/pools/tank/projects/my%20sql/filesystems/data/snapshots/s/rollback?confirm=true",
            202,
            json!({}),
        ),
        ("PUT storage/v1/pools/tank/projects/my%20sql/filesystems/data/snapshots/s/clone", 201, json!({})),
        ("DELETE storage/v1/pools/tank/projects/my%20sql/filesystems/data/snapshots/s", 204, Value::Null),
        (
            "POST storage/v1/pools/tank/projects/my%20sql/filesystems/data/automatic",
            201,
            json!({ "automatic": { "name": "automatic-003", "frequency": "day" } }),
        ),
        (
            "DELETE storage/v1/pools/tank/projects/my%20sql/filesystems/data/automatic/automatic-003",
            204,
            Value::Null,
        ),
    ];
    let (mut remote, asked) = remote(&all);
    let deed = |deed| Request::Shares(Shares::Snapshot { place: share(), name: "s".into(), deed });
    let automatic = |deed| Request::Shares(Shares::Automatic { place: share(), deed });
    for request in [
        deed(ShareDeed::Take),
        deed(ShareDeed::Rollback { newer: true, force: true }),
        deed(ShareDeed::Clone { project: Some("p".into()), share: "c".into(), set: Vec::new() }),
        deed(ShareDeed::Destroy),
    ] {
        assert_eq!(ask(&mut remote, request).unwrap(), Reply::Done);
    }
    let made = ask(
        &mut remote,
        automatic(AutomaticDeed::Create { set: words(&[("frequency", "day"), ("keep", "7")]) }),
    );
    assert_eq!(made.unwrap(), Reply::Named { name: "automatic-003".into() });
    ask(&mut remote, automatic(AutomaticDeed::Destroy { id: 3 })).unwrap();
    let bodies: Vec<String> =
        asked.lock().unwrap().iter().filter_map(|l| Some(l.split_once(" {")?.1.to_string())).collect();
    assert_eq!(
        bodies,
        [
            r#""name":"s"}"#,
            r#""force":true}"#,
            r#""project":"p","share":"c"}"#,
            r#""frequency":"day","keep":"7"}"#
        ]
    );
    assert_eq!(asked.lock().unwrap().len(), all.len(), "it is looked for once");
}

#[test]
fn schedules_and_services_and_updates_are_told_as_they_are() {
    let update = |feature: &str| json!({ "pool": "tank", "feature": feature, "description": "", "needs": [], "read_only_compatible": true });
    let (mut remote, asked) = remote(&[
        (
            "GET storage/v1/pools/tank/projects/p/automatic",
            200,
            json!({ "automatics": [{
                "name": "automatic-001", "frequency": "week", "day": "Saturday", "hour": "3", "minute": "5", "keep": "4",
                "last": "1970-01-02T00:00:00Z",
            }]}),
        ),
        ("PUT service/v1/services/nbd/disable", 202, json!({})),
        (
            "GET service/v1/services",
            200,
            json!({ "services": [
                { "name": "nbd", "<status>": "disabled", "addresses": [], "listen": ["1.2.3.4:5"], "clients": 2 },
            ]}),
        ),
        ("GET system/v1/updates", 200, json!({ "updates": [update("a"), update("b")] })),
        ("PUT system/v1/updates/apply?confirm=true", 202, json!({})),
    ]);
    let place = Place::project("tank", "p");
    let Reply::Automatics(all) = ask(&mut remote, Request::Shares(Shares::Automatics { place })).unwrap()
    else {
        panic!()
    };
    let one = &all[0];
    assert_eq!(
        (one.id, one.keep, one.last, one.when.day_word().as_deref()),
        (1, 4, Some(86_400), Some("Saturday"))
    );
    let off = Services::Switch { name: "nbd".into(), to: Switch::Disable };
    let Reply::Services(all) = ask(&mut remote, Request::Services(off)).unwrap() else { panic!() };
    assert_eq!((all[0].enabled, all[0].clients, all[0].listen.len()), (false, 2, 1));
    let apply = Request::ApplyUpdates { pool: "tank".into(), features: vec!["a".into()] };
    assert_eq!(ask(&mut remote, apply).unwrap(), Reply::DeferredUpdates(Vec::new()), "none of them is gone");
    let applied = r#"PUT system/v1/updates/apply?confirm=true {"features":["a"],"pool":"tank"}"#;
    assert!(asked.lock().unwrap().iter().any(|line| line == applied));
}

#[test]
fn faults_are_errors_in_the_words_of_the_appliance() {
    for (status, name, kind) in [
        (400, "ERR_INVALID_ARG", ErrorKind::Invalid),
        (403, "ERR_DENIED", ErrorKind::ReadOnly),
        (404, "ERR_NOT_FOUND", ErrorKind::NotFound),
        (409, "ERR_OBJECT_EXISTS", ErrorKind::Exists),
        (409, "ERR_STATE_CHANGED", ErrorKind::Busy),
        (507, "ERR_NO_SPACE", ErrorKind::NoSpace),
    ] {
        let said = fault(status, &json!({ "fault": { "name": name, "message": "why" } }));
        assert_eq!((said.kind, said.message.as_str()), (kind, "why"));
    }
    assert!(fault(500, &Value::Null).message.contains("500"));
}

#[test]
fn a_backup_is_a_file_of_this_machine_that_only_its_user_reads() {
    use std::os::unix::fs::PermissionsExt;
    let dir = std::env::temp_dir().join(format!("cenote-remote-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("b").display().to_string();
    let (mut remote, asked) = remote(&[
        ("POST system/v1/configuration/backup", 201, json!({ "backup": { "text": "sealed\n" } })),
        ("PUT system/v1/configuration/restore?confirm=true", 202, Value::Null),
    ]);
    ask(&mut remote, Request::ConfigurationBackup { to: file.clone() }).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "sealed\n");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    ask(&mut remote, Request::ConfigurationRestore { from: file }).unwrap();
    let said = asked.lock().unwrap().last().cloned().unwrap();
    assert_eq!(said, r#"PUT system/v1/configuration/restore?confirm=true {"text":"sealed\n"}"#);
    let gone = Request::ConfigurationRestore { from: dir.join("gone").display().to_string() };
    assert!(ask(&mut remote, gone).unwrap_err().message.starts_with("cannot read '"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_is_destroyed_by_force_says_so() {
    let (mut remote, asked) = remote(&[]);
    for force in [false, true] {
        let place = Place::project("tank", "p");
        let _ = ask(&mut remote, Request::Shares(Shares::Destroy { place, force }));
    }
    let path = "DELETE storage/v1/pools/tank/projects/p?confirm=true";
    assert_eq!(*asked.lock().unwrap(), [path.to_string(), format!("{path}&force=true")]);
}

/// Sessions that end, and a password that is another after a while.
struct Forgetful {
    /// Requests until the session ends, and logins that succeed.
    left: std::cell::Cell<(u32, u32)>,
    asked: Asked,
}

impl Wire for Forgetful {
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], _body: &str) -> io::Result<Answer> {
        let (requests, logins) = self.left.get();
        let told = |status, secret: &str, why: &str| {
            let headers = if secret.is_empty() { String::new() } else { format!("X-Auth-Session: {secret}") };
            let body = json!({ "fault": { "name": "ERR", "message": why } }).to_string().into_bytes();
            Ok(Answer { status, headers, body })
        };
        self.asked.lock().unwrap().push(format!("{method} {path} {}", headers[0].0));
        match (path, requests, logins) {
            ("/api/access/v1", _, 0) => told(401, "", "log in first"),
            ("/api/access/v1", ..) => {
                self.left.set((2, logins - 1));
                told(201, "s", "")
            }
            (_, 0, _) => told(401, "", "log in first"),
            _ => {
                self.left.set((requests - 1, logins));
                told(200, "", "")
            }
        }
    }
}

/// A session that ended is begun again unnoticed; where that fails the user is told what happened.
#[test]
fn a_session_that_has_ended_begins_again_or_says_why_not() {
    let asked = Asked::default();
    let http = Forgetful { left: (0, 2).into(), asked: asked.clone() };
    let password = Secret::new("p");
    let session = Session { http: Box::new(http), user: "ann".into(), password, secret: None };
    let mut remote = Remote::over(Box::new(session));
    for _ in 0..4 {
        remote.get("/x").unwrap();
    }
    let e = remote.get("/x").unwrap_err();
    assert_eq!(e.kind, ErrorKind::Io);
    assert_eq!(
        e.message,
        "cannot talk to the appliance: the session has ended, and ann cannot log in again: log in first"
    );
    let lines = asked.lock().unwrap().clone();
    let logins = lines.iter().filter(|line| *line == "POST /api/access/v1 X-Auth-User").count();
    let requests = lines.iter().filter(|line| *line == "GET /x X-Auth-Session").count();
    assert_eq!((logins, requests), (3, 7), "what was refused for want of a session is asked once more");
}
