//! One connection, from its greeting to its end.
//!
//! ```text
//!   handshake ──> transmission ──> drained ──> closed, the hold on the volume dropped
//!       └──────────────────────────────────────────^   (aborted, refused, too slow)
//! ```

mod flight;
mod handshake;
mod journal;
mod line;
mod payload;
mod transmission;

use crate::server::Config;
use crate::volume::Exports;
pub(crate) use flight::{Outcome, Ticket};
use flow::{Lease, Vitals};
use futures_util::future::{Either, select};
use journal::Journal;
use line::Line;
use probe::{Breakdown, Family, Hub, Io};
use std::pin::pin;
use std::sync::Arc;
use tls::Identity;
use transmission::{Link, Transmission};
use units::{Error, Kind, Result};
use world::{Address, Stream};

pub(crate) struct Session {
    pub stream: Arc<dyn Stream>,
    pub client: Address,
    /// The client must begin TLS, which this is shown in.
    pub tls: Option<Identity>,
    pub exports: Arc<dyn Exports>,
    pub hub: Hub,
    pub lease: Lease,
    pub vitals: Arc<Vitals>,
    pub config: Config,
}

impl Session {
    /// Runs to the end. `began` is told which export is used and where its I/O is counted; an error says why the end
    /// was not the client's wish.
    pub async fn run(self, began: impl FnOnce(&str, &Arc<Io>)) -> Result<()> {
        let (mut line, client) = (Line::new(self.stream.clone(), self.tls.clone()), self.client.clone());
        let ended = self.converse(&mut line, began).await;
        line.hang_up().await;
        ended.map_err(|e| e.at(client))
    }

    async fn converse(self, line: &mut Line, began: impl FnOnce(&str, &Arc<Io>)) -> Result<()> {
        let Session { client, exports, hub, lease, vitals, config, .. } = self;
        let visitor =
            handshake::Visitor { client: &client, vitals: &vitals, patience: config.silence_timeout };
        // In a box of its own, so that a connection does not carry the room of its negotiation for as long as it lives.
        let shake_hands = Box::pin(handshake::run(&mut *line, &*exports, visitor));
        let limited = world::timeout(config.negotiation_timeout, shake_hands);
        let opened = match select(pin!(limited), pin!(vitals.stopped())).await {
            Either::Left((Some(opened), _)) => opened?,
            Either::Left((None, _)) => {
                return Err(Error::new(Kind::Cancelled, "negotiate with NBD client: it took too long"));
            }
            Either::Right(_) => None,
        };
        let Some(opened) = opened else { return Ok(()) };
        let from = from(&client);
        let mut labels = probe::labels_of(opened.volume.dataset(), true);
        labels.extend([(Breakdown::Client, from.as_str()), (Breakdown::Share, &opened.name)]);
        let requests = hub.probe(Family::Nbd, &labels);
        let stages = hub.beside(&requests, Family::NbdStages);
        let io = Arc::new(Io::new(requests));
        began(&opened.name, &io);
        // The hold lives until the last request is done, whatever made the transmission end.
        let _hold = opened.hold;
        let link = Link { stream: line.stream(), lease, vitals };
        let journal = Journal::new(io, stages);
        Box::pin(Transmission::new(link, opened.volume, opened.terms, opened.inbox, journal, &config)).await
    }
}

/// The machine that a client is on: its next connection comes from another port.
fn from(client: &Address) -> String {
    match client {
        Address::Tcp(address) => address.ip().to_string(),
        other => other.to_string(),
    }
}
