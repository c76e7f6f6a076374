//! Doors, and the thread behind them: sockets, TLS and HTTP, with limits on whatever a stranger can make us hold.
//!
//! ```text
//!   accept ─▶ a place in the crowd? ─▶ TLS, in time ─▶ head, in time ─▶ admit ─▶ body, in time and size ─▶ carry_out
//!              │ none: hang up          │               │                │
//!              ▼                        ▼               ▼                ▼ not let in: the body is not looked at
//!                                                          the answer is taken, in time ([`crate::drain`])
//! ```
//!
//! A client that is still sending when its connection is closed may never read the answer, since what arrives at a closed
//! socket resets it. So what is left of a body that is not wanted is passed over first, up to a limit.

use crate::certificate::Certificate;
use crate::crowd::Crowd;
use crate::drain::Draining;
use crate::fault::Fault;
use crate::page::is_own_host;
use crate::server::{Answer, BODY_MAX, Rest};
use crate::who::From;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, EXPECT, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

const HANDSHAKE: Duration = Duration::from_secs(10);
/// Until the head of the next request is there: also how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(30);
const BODY: Duration = Duration::from_secs(30);
/// Of a body that is not wanted: as much is passed over, for as long. A client that sends more may miss the answer.
const PASSED_MAX: u64 = 8 << 20;
const PASSING: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long requests under way may take when the end has come.
const GOODBYE: Duration = Duration::from_secs(5);
/// When the process has no more files.
const PAUSE: Duration = Duration::from_millis(100);
/// Threads for passwords and for what waits for the disk.
const BLOCKING_MAX: usize = 4;

/// Where clients come in. Bound already, so that the caller knows at once that it went well.
#[derive(Debug)]
pub enum Door {
    Https(std::net::TcpListener, Certificate),
    /// Of an address of this machine alone.
    Http(std::net::TcpListener),
    /// For the owner of the home: this user, and root.
    Unix(std::os::unix::net::UnixListener, u32),
}

/// A server that runs until it is stopped.
#[derive(Debug)]
pub struct Serving {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Lets requests that are under way end, and waits for that.
    pub fn stop(mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // What it panicked with is in the log already.
            let _ = thread.join();
        }
    }
}

enum Ready {
    Https(TcpListener, TlsAcceptor),
    Http(TcpListener),
    Unix(UnixListener, u32),
}

/// Serves at these doors, on a thread of its own.
pub fn serve(rest: Arc<Rest>, doors: Vec<Door>) -> io::Result<Serving> {
    let (end, ended) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(BLOCKING_MAX)
        .thread_name("rest-work")
        .build()?;
    let ready = {
        let _inside = runtime.enter();
        doors.into_iter().map(make_ready).collect::<io::Result<Vec<Ready>>>()?
    };
    let work = move || runtime.block_on(accept_all(rest, ready, ended));
    let thread = std::thread::Builder::new().name("rest".into()).spawn(work)?;
    Ok(Serving { end, thread: Some(thread) })
}

fn make_ready(door: Door) -> io::Result<Ready> {
    Ok(match door {
        Door::Https(listener, certificate) => {
            listener.set_nonblocking(true)?;
            let config: Arc<ServerConfig> = certificate.config();
            Ready::Https(TcpListener::from_std(listener)?, TlsAcceptor::from(config))
        }
        Door::Http(listener) => {
            let address = listener.local_addr()?;
            if !address.ip().is_loopback() {
                let why = format!("without TLS it is served on this machine alone, not on {address}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            listener.set_nonblocking(true)?;
            Ready::Http(TcpListener::from_std(listener)?)
        }
        Door::Unix(listener, owner) => {
            listener.set_nonblocking(true)?;
            Ready::Unix(UnixListener::from_std(listener)?, owner)
        }
    })
}

async fn accept_all(rest: Arc<Rest>, doors: Vec<Ready>, mut ended: watch::Receiver<bool>) {
    let room = Arc::new(Room { rest, crowd: Mutex::default(), ended: ended.clone() });
    for door in doors {
        let room = room.clone();
        tokio::spawn(async move {
            match door {
                Ready::Https(listener, tls) => accept_tcp(room, listener, Some(tls)).await,
                Ready::Http(listener) => accept_tcp(room, listener, None).await,
                Ready::Unix(listener, owner) => accept_unix(room, listener, owner).await,
            }
        });
    }
    let _ = ended.wait_for(|end| *end).await;
    // Each connection ends with the request it is at.
    let empty = async {
        while room.crowd().is_there() {
            sleep(PAUSE / 10).await;
        }
    };
    let _ = timeout(GOODBYE, empty).await;
}

/// What all connections share.
struct Room {
    rest: Arc<Rest>,
    crowd: Mutex<Crowd>,
    ended: watch::Receiver<bool>,
}

impl Room {
    fn crowd(&self) -> std::sync::MutexGuard<'_, Crowd> {
        self.crowd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among the connections that are served, if there is one.
    fn place(self: &Arc<Room>, from: From) -> Option<Seat> {
        let mut crowd = self.crowd();
        if *self.ended.borrow() || !crowd.takes(from.address()) {
            self.rest.counters.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Seat { room: self.clone(), from })
    }
}

struct Seat {
    room: Arc<Room>,
    from: From,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.crowd().leaves(self.from.address());
    }
}

async fn accept_tcp(room: Arc<Room>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(e) => {
                tracing::warn!("cannot accept a connection: {e}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let from = if tls.is_some() { From::Network(peer.ip()) } else { From::Plain(peer.ip()) };
        let Some(seat) = room.place(from) else { continue };
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls.clone() else {
            tokio::spawn(converse(seat, stream));
            continue;
        };
        tokio::spawn(async move {
            match timeout(HANDSHAKE, tls.accept(stream)).await {
                Ok(Ok(stream)) => converse(seat, stream).await,
                Ok(Err(e)) => tracing::debug!(%peer, "no TLS: {e}"),
                Err(_) => tracing::debug!(%peer, "no TLS in time"),
            }
        });
    }
}

async fn accept_unix(room: Arc<Room>, listener: UnixListener, owner: u32) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                tracing::warn!("cannot accept a connection: {e}");
                sleep(PAUSE).await;
                continue;
            }
        };
        // The directory lets nobody else in; this holds even where somebody has opened it.
        let is_owner = stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == owner);
        if let (true, Some(seat)) = (is_owner, room.place(From::Owner)) {
            tokio::spawn(converse(seat, stream));
        }
    }
}

async fn converse(seat: Seat, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let (rest, from) = (seat.room.rest.clone(), seat.from);
    let service = service_fn(move |request| {
        let rest = rest.clone();
        async move { Ok::<_, Infallible>(respond(rest, from, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Draining::new(stream)), service);
    let mut connection = pin!(connection);
    let mut ended = seat.room.ended.clone();
    let end = async move {
        let _ = ended.wait_for(|end| *end).await;
    };
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = end => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(e) = outcome {
        tracing::debug!(%from, "connection: {e}");
    }
}

async fn respond(rest: Arc<Rest>, from: From, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, mut body) = request.into_parts();
    // A client that asks first whether to send is told by the answer; to read on would be the invitation.
    let is_sent =
        !head.headers.get(EXPECT).is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let mut is_wanted = false;
    let is_misdirected = matches!(from, From::Plain(_)) && !is_own_host(&head.headers);
    let unasked = if is_misdirected { Some(rest.misdirected()) } else { rest.page(&head) };
    let admitted = match unasked {
        Some(answer) => Err(answer),
        None => rest.admit(&head, from).await,
    };
    let answer = match admitted {
        Err(answer) => answer,
        Ok(admitted) => {
            let received = match is_json(&head.headers) || body.is_end_stream() {
                true => receive(&mut body).await,
                false => Err(Fault::media()),
            };
            is_wanted = received.is_ok();
            rest.carry_out(admitted, received).await
        }
    };
    if is_sent && !is_wanted {
        let _ = timeout(PASSING, pass_over(&mut body)).await;
    }
    response(answer)
}

/// Reads what is left of a body, up to a limit, and keeps nothing.
async fn pass_over(body: &mut Incoming) {
    let mut passed = 0;
    while passed < PASSED_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        passed += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
}

/// What says nothing about its form is taken for JSON, as it must be.
fn is_json(headers: &hyper::HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

async fn receive(body: &mut Incoming) -> Result<Bytes, Fault> {
    if body.size_hint().lower() > BODY_MAX as u64 {
        return Err(Fault::too_large(BODY_MAX));
    }
    let late = || Fault::invalid("the body did not arrive in time");
    timeout(BODY, gather(body)).await.unwrap_or_else(|_| Err(late())).map(Bytes::from)
}

/// The frames of a body in one piece: kept one by one, a chunk of one byte takes thirty.
async fn gather(body: &mut Incoming) -> Result<Vec<u8>, Fault> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Fault::invalid(format!("the body did not arrive whole: {e}")))?;
        let Some(data) = frame.data_ref() else { continue };
        if whole.len() + data.len() > BODY_MAX {
            return Err(Fault::too_large(BODY_MAX));
        }
        whole.extend_from_slice(data);
    }
    Ok(whole)
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        // Names of things are encoded in hrefs, so that every value is one of a header.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
