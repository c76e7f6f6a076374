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
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Error, Kind, Result};
use world::{Address, Stream};

/// What a session shows to the server that watches over it, and how it is told things.
#[derive(Debug, Default)]
pub(crate) struct Vitals {
    flow: flow::Vitals,
    /// The units that the client has may have changed.
    changed: AtomicBool,
    /// The client should show that it is there.
    ping: AtomicBool,
    /// The full feature phase has begun.
    is_up: AtomicBool,
}

impl Deref for Vitals {
    type Target = flow::Vitals;

    fn deref(&self) -> &flow::Vitals {
        &self.flow
    }
}

impl Vitals {
    pub fn note_change(&self) {
        self.changed.store(true, Ordering::Release);
        self.wake();
    }

    pub fn ping(&self) {
        self.ping.store(true, Ordering::Release);
        self.wake();
    }

    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
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
            // In a box of its own, so that a connection does not carry the room of its login for as long as it lives.
            let limited = world::timeout(config.login_timeout, Box::pin(handshake::run(&self)));
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
        Box::pin(Connection::new(self, opened, &config)).await
    }
}
