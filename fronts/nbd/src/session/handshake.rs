//! Carries a negotiation out: receives options, fetches the facts their answers need, sends the answers, makes TLS.
//!
//! Bytes behind a STARTTLS that was not answered yet came unprotected, and an attacker on the way may have added them. Left
//! in the inbox they would be taken for protected ones, so they end the connection.

use super::line::Line;
use crate::negotiation::{Facts, Need, Negotiation, Offer, Step, Terms, Tls, greeting};
use crate::volume::{Exports, Hold, Volume};
use crate::wire::option::{Answers, Ask, Header, LEN, MAX_DATA, No};
use flow::{Inbox, Vitals};
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Kind, Result};
use world::{Address, Buf, Stream};

/// As much as one receive may bring: room for sixty writes of 4 KiB.
const CAPACITY: usize = 256 << 10;

/// A client that has still not chosen after so many options never will.
const MAX_OPTIONS: usize = 1000;

/// An export that a client has chosen.
pub(crate) struct Opened {
    pub name: String,
    pub volume: Arc<dyn Volume>,
    pub hold: Hold,
    pub terms: Terms,
    /// With whatever the client sent ahead.
    pub inbox: Inbox,
}

/// The client that we speak with, and how it is seen that it speaks.
pub(crate) struct Visitor<'a> {
    pub client: &'a Address,
    pub vitals: &'a Vitals,
    /// How long it may say nothing.
    pub patience: Duration,
}

/// `None` when the client left without choosing an export.
pub(crate) async fn run(
    line: &mut Line,
    exports: &dyn Exports,
    Visitor { client, vitals, patience }: Visitor<'_>,
) -> Result<Option<Opened>> {
    let mut inbox = Inbox::new(CAPACITY);
    let mut stream = line.stream();
    send(&*stream, greeting().to_vec()).await?;
    let said = world::timeout(patience, inbox.fill(&*stream, 4)).await;
    let silent = || Error::new(Kind::Cancelled, "negotiate with NBD client: it says nothing");
    if !said.ok_or_else(silent)?? {
        return Ok(None);
    }
    vitals.note_brought(4);
    let mut flags = [0; 4];
    inbox.take(&mut flags);
    let mut negotiation = Negotiation::begin(
        u32::from_be_bytes(flags),
        if line.wants_tls() { Tls::Required } else { Tls::Absent },
    )?;
    for _ in 0..MAX_OPTIONS {
        let Some((option, data)) = receive_option(&*stream, &mut inbox).await? else { return Ok(None) };
        let mut out = Vec::new();
        let mut answers = Answers { option, out: &mut out };
        let mut opened = None;
        let step = match Ask::decode(option, &data) {
            Ok(ask) => {
                let facts = fetch(negotiation.need(&ask), exports, client, &mut opened).await;
                negotiation.answer(&ask, facts, &mut answers)
            }
            Err(why) => negotiation.answer_malformed(why, &mut answers),
        };
        if step == Step::Secure && !inbox.is_empty() {
            return Err(Error::invalid("the NBD client sent more before TLS could begin"));
        }
        if !out.is_empty() {
            send(&*stream, out).await?;
        }
        match (step, opened) {
            (Step::Transmit(terms), Some((name, volume, hold))) => {
                return Ok(Some(Opened { name, volume, hold, terms, inbox }));
            }
            (Step::Close | Step::Transmit(_), _) => return Ok(None),
            (Step::Secure, _) => {
                if let Err(e) = line.secure().await {
                    exports.refused(client, &e);
                    return Err(e);
                }
                stream = line.stream();
                negotiation.secured();
            }
            (Step::Next, _) => {}
        }
    }
    Err(Error::invalid("the NBD client haggles without end"))
}

async fn send(stream: &dyn Stream, bytes: Vec<u8>) -> Result<()> {
    let sent = stream.send(vec![Buf::copy_from(&bytes)]).await;
    sent.map_err(|e| Error::new(Kind::Io, "send to NBD client").because(e))
}

/// The next option and its data, or `None` when the client has closed.
async fn receive_option(stream: &dyn Stream, inbox: &mut Inbox) -> Result<Option<(u32, Vec<u8>)>> {
    if !inbox.fill(stream, LEN).await? {
        return Ok(None);
    }
    let mut header = [0; LEN];
    inbox.take(&mut header);
    let Header { option, len } = Header::decode(&header)?;
    if len > MAX_DATA {
        let mut out = Vec::new();
        Answers { option, out: &mut out }.no(No::TooBig, "the option has too much data");
        send(stream, out).await?;
        return Err(Error::invalid(format!("the NBD client sent an option of {len} bytes")));
    }
    if !inbox.fill(stream, len as usize).await? {
        return Ok(None);
    }
    let mut data = vec![0; len as usize];
    inbox.take(&mut data);
    Ok(Some((option, data)))
}

type Chosen = (String, Arc<dyn Volume>, Hold);

async fn fetch(need: Need, exports: &dyn Exports, client: &Address, opened: &mut Option<Chosen>) -> Facts {
    match need {
        Need::Nothing => Facts::None,
        Need::List => Facts::List(exports.list().await),
        Need::Look(name) => Facts::Export(look(name, exports).await),
        Need::Open(name) => match open(name, exports, client).await {
            Ok(chosen) => {
                let offer = Offer::of(chosen.0.clone(), &*chosen.1);
                *opened = Some(chosen);
                Facts::Export(Ok(offer))
            }
            Err(e) => Facts::Export(Err(e)),
        },
    }
}

async fn look(name: String, exports: &dyn Exports) -> Result<Offer> {
    let name = resolve(name, exports).await?;
    let volume = exports.find(&name).await?;
    Ok(Offer::of(name, &*volume))
}

async fn open(name: String, exports: &dyn Exports, client: &Address) -> Result<Chosen> {
    let name = resolve(name, exports).await?;
    let (volume, hold) = exports.open(&name, client).await?;
    Ok((name, volume, hold))
}

/// The empty name asks for the default export: the only one there is.
async fn resolve(name: String, exports: &dyn Exports) -> Result<String> {
    if !name.is_empty() {
        return Ok(name);
    }
    let mut list = exports.list().await?;
    match (list.pop(), list.is_empty()) {
        (Some(only), true) => Ok(only.name),
        _ => Err(Error::new(Kind::NotFound, "choose the default NBD export of several or none: name one")),
    }
}
