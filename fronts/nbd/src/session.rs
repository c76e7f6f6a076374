//! One connection, from its greeting to its end.
//!
//! ```text
//!   handshake ──> transmission ──> drained ──> closed, the hold on the volume dropped
//!       └──────────────────────────────────────────^   (aborted, refused, too slow)
//! ```

mod flight;
mod handshake;
mod journal;
mod payload;
mod transmission;

use crate::server::Config;
use crate::volume::Exports;
pub(crate) use flight::{Outcome, Ticket};
use flow::Lease;
use futures_util::future::{Either, select};
use futures_util::task::AtomicWaker;
use journal::Journal;
use probe::{Io, Layer, Registry};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use transmission::{Link, Transmission};
use units::{Error, Kind, Result};
use world::{Address, Stream};

/// What a session shows to the server that watches over it, and how it is told to end.
#[derive(Debug, Default)]
pub(crate) struct Vitals {
    stop: AtomicBool,
    waker: AtomicWaker,
    /// Grows whenever the client takes or brings something.
    progress: AtomicU64,
    /// The client keeps memory of ours for as long as it does not read, or does not send what it announced.
    owes: AtomicBool,
}

impl Vitals {
    /// Asks the session to finish what is in flight and to hang up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    async fn stopped(&self) {
        poll_fn(|cx| if self.is_stopping(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    fn is_stopping(&self, cx: &mut Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.stop.load(Ordering::Acquire)
    }

    /// For the watch: how far the session has come, when it waits for a client that holds memory.
    pub fn stuck_at(&self) -> Option<u64> {
        self.owes.load(Ordering::Relaxed).then(|| self.progress.load(Ordering::Relaxed))
    }

    fn note_progress(&self) {
        // One writer, so that no locked instruction is needed.
        self.progress.store(self.progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

pub(crate) struct Session {
    pub stream: Arc<dyn Stream>,
    pub client: Address,
    pub exports: Arc<dyn Exports>,
    pub registry: Arc<Registry>,
    pub lease: Lease,
    pub vitals: Arc<Vitals>,
    pub config: Config,
}

impl Session {
    /// Runs to the end. `began` is told which export is used and where its I/O is counted; an error says why the end
    /// was not the client's wish.
    pub async fn run(self, began: impl FnOnce(&str, &Arc<Io>)) -> Result<()> {
        let (stream, client) = (self.stream.clone(), self.client.clone());
        let ended = self.converse(began).await;
        stream.shutdown();
        ended.map_err(|e| e.at(client))
    }

    async fn converse(self, began: impl FnOnce(&str, &Arc<Io>)) -> Result<()> {
        let Session { stream, client, exports, registry, lease, vitals, config } = self;
        let shake_hands = handshake::run(&*stream, &*exports, &client);
        let limited = world::timeout(config.negotiation_timeout, shake_hands);
        let opened = match select(pin!(limited), pin!(vitals.stopped())).await {
            Either::Left((Some(opened), _)) => opened?,
            Either::Left((None, _)) => {
                return Err(Error::new(Kind::Cancelled, "negotiate with NBD client: it took too long"));
            }
            Either::Right(_) => None,
        };
        let Some(opened) = opened else { return Ok(()) };
        let io = registry.io(Layer::Front, format!("{} {client}", opened.name));
        began(&opened.name, &io);
        // The hold lives until the last request is done, whatever made the transmission end.
        let _hold = opened.hold;
        let link = Link { stream, lease, vitals };
        let journal = Journal::new(io);
        Transmission::new(link, opened.volume, opened.terms, opened.inbox, journal, &config).await
    }
}
