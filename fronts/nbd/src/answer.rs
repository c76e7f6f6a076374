//! Results into replies. Pure: everything goes to the outbox.

use crate::errno::Errno;
use crate::negotiation::Terms;
use crate::session::{Outcome, Ticket};
use crate::wire::reply;
use flow::{Outbox, Piece};
use units::{Error, Kind, Result};

/// At most so many extents in one block status: 64 KiB of reply.
pub(crate) const MAX_EXTENTS: usize = 8 << 10;

/// A shorter hole costs less as zeros than as a chunk of its own.
const SMALLEST_HOLE: u32 = 512;

pub(crate) fn answer(to: &mut Outbox, terms: Terms, ticket: Ticket, result: Result<Outcome>) {
    match result {
        Ok(Outcome::Done) => done(to, ticket),
        Ok(Outcome::Read(mut pieces)) => read(to, terms, ticket, &mut pieces),
        Ok(Outcome::Status(extents)) => {
            let most = if ticket.whole { 1 } else { MAX_EXTENTS };
            let extents = reply::joined(&extents, ticket.len, most);
            if extents.is_empty() {
                return error(to, terms, ticket, Errno::Io, "the volume reports no extent");
            }
            to.head(&reply::status(ticket.cookie, &extents));
            to.end_reply(ticket.load);
        }
        Err(e) => failed(to, terms, ticket, &e),
    }
}

/// Success without content. The protocol allows the short form also where reads are structured.
pub(crate) fn done(to: &mut Outbox, ticket: Ticket) {
    to.head(&reply::simple(ticket.cookie, 0));
    to.end_reply(ticket.load);
}

pub(crate) fn failed(to: &mut Outbox, terms: Terms, ticket: Ticket, e: &Error) {
    error(to, terms, ticket, Errno::of(e.kind()), &e.to_string());
}

pub(crate) fn error(to: &mut Outbox, terms: Terms, ticket: Ticket, errno: Errno, why: &str) {
    if terms.structured {
        to.head(&reply::error(ticket.cookie, errno, why));
    } else {
        // Without chunks, an overflow has no place: it belongs to the flag that forbids fragments.
        let errno = if errno == Errno::Overflow { Errno::Invalid } else { errno };
        to.head(&reply::simple(ticket.cookie, errno.code()));
    }
    to.end_reply(ticket.load);
}

/// Leaves `pieces` empty, to be used again.
pub(crate) fn read(to: &mut Outbox, terms: Terms, ticket: Ticket, pieces: &mut Vec<Piece>) {
    let len: usize = pieces.iter().map(Piece::len).sum();
    if len != ticket.len as usize {
        // The stream would lose its place; the client must not take these bytes for its own.
        let e = Error::new(Kind::Io, format!("read {} bytes: the volume returned {len}", ticket.len));
        pieces.clear();
        return failed(to, terms, ticket, &e);
    }
    if terms.structured {
        chunks(to, ticket, pieces);
    } else {
        to.head(&reply::simple(ticket.cookie, 0));
    }
    pieces.drain(..).for_each(|piece| put(to, piece));
    to.end_reply(ticket.load);
}

/// All the chunks of a read but the data of the last, which is what is left in `pieces`.
fn chunks(to: &mut Outbox, ticket: Ticket, pieces: &mut Vec<Piece>) {
    if pieces.is_empty() {
        return to.head(&reply::none(ticket.cookie));
    }
    let alone = pieces.len() == 1;
    let is_hole = |piece: &Piece| match piece {
        Piece::Hole(len) => *len >= SMALLEST_HOLE && (alone || !ticket.whole),
        Piece::Data(_) => false,
    };
    let mut offset = ticket.offset;
    while !pieces.is_empty() {
        let hole = is_hole(&pieces[0]);
        let run = pieces.iter().take_while(|p| is_hole(p) == hole).count();
        let len: u32 = pieces[..run].iter().map(|p| p.len() as u32).sum();
        let last = run == pieces.len();
        if hole {
            to.head(&reply::hole(ticket.cookie, last, offset, len));
            pieces.drain(..run);
        } else {
            to.head(&reply::data(ticket.cookie, last, offset, len));
            if last {
                return;
            }
            pieces.drain(..run).for_each(|piece| put(to, piece));
        }
        offset += u64::from(len);
    }
}

fn put(to: &mut Outbox, piece: Piece) {
    match piece {
        Piece::Data(buf) => to.data(buf),
        Piece::Hole(len) => to.zeros(len as usize),
    }
}

#[cfg(test)]
mod tests;
