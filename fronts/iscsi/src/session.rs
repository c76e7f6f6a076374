//! One connection, which is one session: from its first byte to its end.
//!
//! ```text
//!   handshake ──▶ (an older session of the same client ends) ──▶ connection ──▶ drained ──▶ closed, its paths dropped
//!       └─────────────────────────────────────────────────────────────────────────^   refused, too slow
//! ```

mod answer;
mod command;
mod connection;
mod data;
mod functions;
mod handshake;
mod journal;
mod payload;
mod task;
mod units_seen;

use crate::server::Shared;
use connection::Connection;
use flow::Lease;
use futures_util::future::{Either, select};
use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use units::{Error, Kind, Result};
use world::{Address, Stream};

/// What a session shows to the server that watches over it, and how it is told things.
#[derive(Debug, Default)]
pub(crate) struct Vitals {
    stop: AtomicBool,
    /// The units that the client has may have changed.
    changed: AtomicBool,
    /// The client should show that it is there.
    ping: AtomicBool,
    waker: AtomicWaker,
    /// Grows whenever the client takes or brings something.
    progress: AtomicU64,
    /// We wait for the client to send, or to read, something that it should.
    owes: AtomicBool,
    /// The full feature phase has begun.
    is_up: AtomicBool,
}

impl Vitals {
    /// Asks the session to finish what is in flight and to hang up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub fn note_change(&self) {
        self.changed.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub fn ping(&self) {
        self.ping.store(true, Ordering::Release);
        self.waker.wake();
    }

    async fn stopped(&self) {
        poll_fn(|cx| if self.is_stopping(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    fn is_stopping(&self, cx: &mut Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.stop.load(Ordering::Acquire)
    }

    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    pub fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed)
    }

    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    fn note_progress(&self) {
        // One writer, so that no locked instruction is needed.
        self.progress.store(self.progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

pub(crate) struct Session {
    pub id: u64,
    pub stream: Arc<dyn Stream>,
    pub portal: Address,
    pub client: Address,
    pub shared: Arc<Shared>,
    pub lease: Lease,
    pub vitals: Arc<Vitals>,
}

impl Session {
    /// Runs to the end; an error says why the end was not the client's wish.
    pub async fn run(self) -> Result<()> {
        let (stream, client) = (self.stream.clone(), self.client.clone());
        let ended = self.converse().await;
        stream.shutdown();
        ended.map_err(|e| e.at(client))
    }

    async fn converse(self) -> Result<()> {
        let config = *self.shared.config();
        let opened = {
            let limited = world::timeout(config.login_timeout, handshake::run(&self));
            match select(pin!(limited), pin!(self.vitals.stopped())).await {
                Either::Left((Some(opened), _)) => opened?,
                Either::Left((None, _)) => {
                    return Err(Error::new(Kind::Cancelled, "log in iSCSI client: it took too long"));
                }
                Either::Right(_) => None,
            }
        };
        let Some(opened) = opened else { return Ok(()) };
        self.vitals.is_up.store(true, Ordering::Relaxed);
        Connection::new(self, opened, &config).await
    }
}
