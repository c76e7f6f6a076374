//! The web page at its door without TLS, as a browser speaks there, and as what attacks it does.

#![allow(clippy::unwrap_used)]

use access::{Access, Entropy, Files};
use api::{ApiError, Call, ErrorKind, Reply, Service};
use rest::{About, Door, Rest};
use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

struct Empty;

impl Service for Empty {
    fn call(&self, _: Call) -> Pin<Box<dyn Future<Output = api::Result<Reply>> + Send>> {
        Box::pin(async { Err(ApiError::new(ErrorKind::NotFound, "there is nothing")) })
    }
}

struct Counter(u8);

impl Entropy for Counter {
    fn fill(&mut self, out: &mut [u8]) {
        self.0 += 1;
        out.fill(self.0);
    }
}

struct Served {
    dir: PathBuf,
    rest: Arc<Rest>,
    serving: Option<rest::Serving>,
    address: SocketAddr,
}

impl Served {
    fn start(name: &str) -> Served {
        let dir = std::env::temp_dir().join(format!("cenote-page-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let access = Access::open(Box::new(Files::new(&dir)), Box::new(Counter(0))).unwrap();
        let rest = Rest::new(access, Arc::new(Empty), About::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = rest::serve(rest.clone(), vec![Door::Http(listener)]).unwrap();
        Served { dir, rest, serving: Some(serving), address }
    }

    /// What is answered: the status, the head in small letters, and the body.
    fn ask(&self, method: &str, path: &str, headers: &[&str]) -> (u16, String, String) {
        let host = format!("host: {}", self.address);
        let named = headers.iter().any(|h| h.starts_with("host:"));
        let host = if named { Vec::new() } else { vec![host.as_str()] };
        let head = [&host[..], headers].concat().join("\r\n");
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nconnection: close\r\n{head}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.into())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.take().unwrap().stop();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

const PAGE: &str = "x-cenote-page: 1";
const SELF: &str = "/api/access/v1/self";

#[test]
fn the_page_goes_to_everybody_under_its_policy_and_its_files_are_kept() {
    let served = Served::start("files");
    let (status, head, html) = served.ask("GET", "/", &[]);
    assert_eq!(status, 200);
    let policy = head.lines().find(|l| l.starts_with("content-security-policy:")).unwrap();
    for rule in ["default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for header in
        ["x-content-type-options: nosniff", "referrer-policy: no-referrer", "cache-control: no-cache"]
    {
        assert!(head.contains(header), "{head}");
    }
    for path in html.split('"').filter(|part| part.starts_with("/ui/")) {
        let (status, head, body) = served.ask("GET", path, &[]);
        assert!(status == 200 && !body.is_empty() && head.contains("immutable"), "{path}: {head}");
        let (status, head, body) = served.ask("HEAD", path, &[]);
        assert!(status == 200 && body.is_empty() && head.contains("content-length"), "{path}: {head}");
    }
    assert_eq!(served.ask("GET", "/ui/0123456789abcdef/app.js", &[]).0, 404);
    assert_eq!(served.ask("POST", "/", &[PAGE]).0, 401, "nothing is posted to a file");
}

#[test]
fn a_name_of_somebody_elses_that_leads_here_gets_nothing() {
    let served = Served::start("host");
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        for path in ["/", SELF] {
            let (status, head, body) = served.ask("GET", path, &[&format!("host: {host}"), PAGE]);
            assert!(status == 421 && !body.contains("<html"), "{host}{path}: {head}");
        }
    }
    let own = format!("host: localhost:{}", served.address.port());
    assert_eq!(served.ask("GET", "/", &[&own]).0, 200);
}

#[test]
fn a_code_opens_a_session_of_the_page_whose_cookie_counts_for_the_page_alone() {
    let served = Served::start("session");
    let code = served.rest.new_code().reveal().to_string();
    let shown = format!("x-cenote-code: {code}");
    let (status, head, _) = served.ask("POST", "/api/access/v1", &[PAGE, "x-cenote-code: aaa-aaa-aaa"]);
    assert_eq!(status, 401);
    assert!(!head.contains("www-authenticate"), "the browser would ask over the page: {head}");
    let (status, head, _) = served.ask("POST", "/api/access/v1", &[PAGE, &shown]);
    assert_eq!(status, 201, "{head}");
    assert!(!head.contains("x-auth-session"), "a script of the page would see the secret: {head}");
    let set = head.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap();
    let (pair, flags) = set.split_once(';').unwrap();
    assert!(
        flags.contains("httponly") && flags.contains("samesite=strict") && flags.contains("path=/"),
        "{set}"
    );
    let cookie = format!("cookie: other=x; {pair}");
    assert_eq!(served.ask("POST", "/api/access/v1", &[PAGE, &shown]).0, 401, "once");

    let (status, _, body) = served.ask("GET", SELF, &[PAGE, &cookie]);
    assert!(
        status == 200 && body.contains("\"user\":\"root\"") && body.contains("stmf.allow_configure"),
        "{body}"
    );
    let same = "sec-fetch-site: same-origin";
    assert_eq!(served.ask("GET", SELF, &[PAGE, &cookie, same]).0, 200);
    // As a form or an image elsewhere would, and as a script at another port.
    assert_eq!(served.ask("GET", SELF, &[&cookie]).0, 401);
    assert_eq!(served.ask("GET", SELF, &[PAGE, &cookie, "sec-fetch-site: same-site"]).0, 401);
    assert_eq!(served.ask("DELETE", "/api/access/v1", &[&cookie]).0, 401);
    let asked = ["origin: http://127.0.0.1:1", "access-control-request-headers: x-cenote-page", &cookie];
    let (_, head, _) = served.ask("OPTIONS", SELF, &asked);
    assert!(!head.contains("access-control-allow"), "nobody else is let to send the header: {head}");
    // The secret of a cookie is one of a session: a program may show it as such.
    let secret = pair.split_once('=').unwrap().1;
    assert_eq!(served.ask("GET", SELF, &[&format!("x-auth-session: {secret}")]).0, 200);

    let (status, head, _) = served.ask("DELETE", "/api/access/v1", &[PAGE, &cookie]);
    assert!(status == 204 && head.contains("max-age=0"), "{head}");
    assert_eq!(served.ask("GET", SELF, &[PAGE, &cookie]).0, 401, "it has ended");
}

#[test]
fn without_tls_it_is_on_this_machine_alone() {
    let served = Served::start("loopback");
    let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
    let refused = rest::serve(served.rest.clone(), vec![Door::Http(everywhere)]).unwrap_err();
    assert!(
        refused.to_string().starts_with("without TLS it is served on this machine alone, not on 0.0.0.0:")
    );
}
