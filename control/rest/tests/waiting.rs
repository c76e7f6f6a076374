//! What is answered after a wait, and when nothing can be recorded.

#![allow(clippy::unwrap_used)]

use access::{Access, Entropy, Files, Now, Record, State, Store};
use api::{ApiError, Call, ErrorKind, Reply, Request, Service};
use rest::{About, Answer, From, Rest};
use serde_json::Value;
use std::future::Future;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An appliance that takes its time.
struct Slow;

impl Service for Slow {
    fn call(&self, call: Call) -> Pin<Box<dyn Future<Output = api::Result<Reply>> + Send>> {
        Box::pin(async move {
            match call.request {
                Request::Services(api::Services::Show) => {
                    tokio::time::sleep(Duration::from_millis(1500)).await;
                    Ok(Reply::Services(Vec::new()))
                }
                _ => Err(ApiError::new(ErrorKind::NotFound, "there is nothing")),
            }
        })
    }
}

struct Counter(u64);

impl Entropy for Counter {
    fn fill(&mut self, out: &mut [u8]) {
        self.0 += 1;
        out.chunks_mut(8).for_each(|c| c.copy_from_slice(&self.0.to_le_bytes()[..c.len()]));
    }
}

/// A home whose disk may be full.
struct Disk(Files, Arc<AtomicBool>);

impl Store for Disk {
    fn load(&mut self) -> std::io::Result<Option<State>> {
        self.0.load()
    }

    fn save(&mut self, state: &State) -> std::io::Result<()> {
        self.0.save(state)
    }

    fn append(&mut self, record: &Record) -> std::io::Result<()> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(std::io::Error::new(
                std::io::ErrorKind::StorageFull,
                "/home/audit.jsonl: No space left on device (os error 28)",
            )),
            false => self.0.append(record),
        }
    }

    fn records(&mut self, max: usize) -> std::io::Result<Vec<Record>> {
        self.0.records(max)
    }
}

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("cenote-rest-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn server(dir: &Path, is_full: &Arc<AtomicBool>) -> (Arc<Rest>, String) {
    let store = Disk(Files::new(dir), is_full.clone());
    let mut access = Access::open(Box::new(store), Box::new(Counter(0))).unwrap();
    access.change(|s| s.create_user("ann", "", None).map(drop)).unwrap();
    let (owner, now) = (access.owner(), Now { wall: 1_700_000_000, steady: 0.0 });
    let token = access.create_token(&owner, "ann", "test", None, now).unwrap().1.reveal().to_string();
    (Rest::new(access, Arc::new(Slow), About::default()), token)
}

async fn ask(rest: &Arc<Rest>, method: &str, path: &str, token: Option<&str>) -> Answer {
    let mut request = hyper::Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header("x-auth-session", token);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let from = if token.is_some() { From::Network(IpAddr::from([10, 0, 0, 7])) } else { From::Owner };
    match rest.admit(&head, from).await {
        Err(answer) => answer,
        Ok(admitted) => rest.clone().carry_out(admitted, Ok(Vec::new().into())).await,
    }
}

/// A poll of an hour was answered though its user was removed in the meantime.
#[tokio::test]
async fn what_was_waited_for_is_told_to_those_who_may_still_see_it() {
    let dir = scratch("waiting");
    let (rest, token) = server(&dir, &Arc::default());
    let path = "/api/service/v1/services";
    let told = ask(&rest, "GET", path, Some(&token)).await;
    assert_eq!(told.status, 200, "{}", String::from_utf8_lossy(&told.body));
    let asking = ask(&rest, "GET", path, Some(&token));
    let removing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        ask(&rest, "DELETE", "/api/user/v1/users/ann", None).await
    };
    let (told, removed) = tokio::join!(asking, removing);
    assert_eq!((removed.status, told.status), (204, 401));
    std::fs::remove_dir_all(dir).unwrap();
}

/// It was 500, of an audit log that is nowhere named.
#[tokio::test]
async fn a_change_that_cannot_be_recorded_says_where_and_why() {
    let dir = scratch("unrecorded");
    let is_full = Arc::new(AtomicBool::new(false));
    let (rest, _) = server(&dir, &is_full);
    is_full.store(true, Ordering::SeqCst);
    let answer = ask(&rest, "DELETE", "/api/user/v1/users/ann", None).await;
    let told: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (answer.status, told["fault"]["name"].as_str(), told["fault"]["message"].as_str()),
        (
            507,
            Some("ERR_NO_SPACE"),
            Some(
                "the audit log cannot be written, so nothing is changed: /home/audit.jsonl: No space left on device"
            )
        )
    );
    is_full.store(false, Ordering::SeqCst);
    assert_eq!(ask(&rest, "DELETE", "/api/user/v1/users/ann", None).await.status, 204);
    std::fs::remove_dir_all(dir).unwrap();
}
