//! Bodies that are not wanted, at the socket: the client gets to read why.

#![allow(clippy::unwrap_used)]

use access::{Access, Entropy, Files};
use api::{ApiError, Call, ErrorKind, Reply, Service};
use rest::{About, Door, Rest};
use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Empty;

impl Service for Empty {
    fn call(&self, _: Call) -> Pin<Box<dyn Future<Output = api::Result<Reply>> + Send>> {
        Box::pin(async { Err(ApiError::new(ErrorKind::NotFound, "there is nothing")) })
    }
}

struct Zeros;

impl Entropy for Zeros {
    fn fill(&mut self, out: &mut [u8]) {
        out.fill(0);
    }
}

struct Served {
    dir: PathBuf,
    serving: Option<rest::Serving>,
}

impl Served {
    fn start(name: &str) -> Served {
        let dir = std::env::temp_dir().join(format!("cenote-bodies-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let access = Access::open(Box::new(Files::new(&dir)), Box::new(Zeros)).unwrap();
        let rest = Rest::new(access, Arc::new(Empty), About::default());
        let socket = dir.join("rest.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&socket).unwrap());
        let serving = rest::serve(rest, vec![Door::Unix(listener, owner)]).unwrap();
        Served { dir, serving: Some(serving) }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.dir.join("rest.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.take().unwrap().stop();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn head(path: &str, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}\r\n\r\n")
}

fn answer(mut stream: UnixStream) -> String {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().into()
}

const PROJECTS: &str = "/api/storage/v1/pools/tank/projects";
const BODY: usize = 6 << 20;

/// Everything is sent before anything is read: unless the server reads on, that cannot end well.
#[test]
fn who_sends_too_much_reads_the_answer() {
    let served = Served::start("large");
    let length = format!("content-length: {BODY}");
    let chunked = format!("{BODY:x}\r\n");
    for (path, more, before, after, said) in [
        (PROJECTS, length.as_str(), "", "", "HTTP/1.1 413 Payload Too Large"),
        (PROJECTS, "transfer-encoding: chunked", &chunked, "\r\n0\r\n\r\n", "HTTP/1.1 413 Payload Too Large"),
        (
            PROJECTS,
            &format!("{length}\r\ncontent-type: text/plain"),
            "",
            "",
            "HTTP/1.1 415 Unsupported Media Type",
        ),
        (PROJECTS, &format!("{length}\r\nx-auth-session: ended"), "", "", "HTTP/1.1 401 Unauthorized"),
        ("/api/nowhere", &length, "", "", "HTTP/1.1 404 Not Found"),
    ] {
        let mut stream = served.connect();
        stream.write_all(head(path, more).as_bytes()).unwrap();
        stream.write_all(before.as_bytes()).unwrap();
        stream.write_all(&vec![b' '; BODY]).unwrap();
        stream.write_all(after.as_bytes()).unwrap();
        assert_eq!(answer(stream), said, "{path} {more}");
    }
}

#[test]
fn there_is_an_end_to_patience() {
    let served = Served::start("endless");
    // A client that sends for ever.
    let mut stream = served.connect();
    stream.write_all(head(PROJECTS, "content-length: 1099511627776").as_bytes()).unwrap();
    let piece = vec![b' '; 1 << 20];
    let sent = (0..64).take_while(|_| stream.write_all(&piece).is_ok()).count();
    assert!((7..32).contains(&sent), "{sent} MiB");
    // One that announces much, and sends nothing.
    let mut stream = served.connect();
    let begun = Instant::now();
    stream.write_all(head(PROJECTS, "content-length: 2097152").as_bytes()).unwrap();
    assert_eq!(answer(stream), "HTTP/1.1 413 Payload Too Large");
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    // One that asks first whether to send is not invited, and not kept waiting; once may be late on a busy machine.
    let waits = || {
        let mut stream = served.connect();
        let begun = Instant::now();
        stream
            .write_all(head(PROJECTS, "content-length: 2097152\r\nexpect: 100-continue").as_bytes())
            .unwrap();
        assert_eq!(answer(stream), "HTTP/1.1 413 Payload Too Large");
        begun.elapsed() >= Duration::from_secs(4)
    };
    assert!((0..4).any(|_| !waits()), "it is kept waiting each time");
}
