//! What comes in: bytes into the inbox, or long data straight to where they will stay; complete PDUs out of it.

use super::{ASIDE, Arriving, Connection, IDLE_INBOX, Intake, LARGE_INBOX, LONG, OVERHEAD, Receiving};
use crate::params::MAX_RECEIVE;
use crate::session::handshake::SMALL_INBOX;
use crate::session::payload::Lent;
use crate::text::Pairs;
use crate::wire::{HEADER, Header, padding, request};
use std::io;
use std::task::{Context, Poll, ready};
use units::{Error, Kind};

impl Connection {
    pub(super) fn start_receive(&mut self) -> bool {
        if self.receiving.is_some() || !self.starved {
            return false;
        }
        if self.has_ended() {
            return false;
        }
        let wanted = match &self.intake {
            Intake::Data(a) if a.done < a.len => Some((a.tag, a.at + a.done, a.len - a.done)),
            _ => None,
        };
        // When its task is gone, what is left of the data is skipped through the inbox.
        let payload =
            wanted.and_then(|(tag, ..)| self.tasks.get_mut(&tag)).and_then(|task| task.payload.as_mut());
        self.receiving = Some(match (payload, wanted) {
            (Some(payload), Some((_, at, len))) => {
                Receiving::Payload(payload.receive(&*self.stream, at, len))
            }
            _ => {
                let (buf, range) = self.inbox.lend(usize::MAX);
                Receiving::Inbox(self.stream.recv(buf, range))
            }
        });
        true
    }

    pub(super) fn land_receive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let received = match &mut self.receiving {
            None => return Poll::Pending,
            Some(Receiving::Inbox(receiving)) => {
                let (buf, received) = ready!(receiving.as_mut().poll(cx));
                self.inbox.put_back(buf, *received.as_ref().unwrap_or(&0));
                received
            }
            Some(Receiving::Payload(lent)) => {
                let (parts, received) = match lent {
                    Lent::One(receiving) => {
                        let (part, received) = ready!(receiving.as_mut().poll(cx));
                        (vec![part], received)
                    }
                    Lent::Several(receiving) => ready!(receiving.as_mut().poll(cx)),
                };
                if let Intake::Data(Arriving { tag, at, done, .. }) = &mut self.intake {
                    if let Some(payload) = self.tasks.get_mut(tag).and_then(|t| t.payload.as_mut()) {
                        payload.put_back(*at + *done, parts);
                    }
                    *done += *received.as_ref().unwrap_or(&0);
                }
                received
            }
        };
        self.receiving = None;
        self.vitals.note_brought(*received.as_ref().unwrap_or(&0));
        if matches!(self.intake, Intake::Ended) {
            // We were told to stop meanwhile.
            return Poll::Ready(());
        }
        let count = *received.as_ref().unwrap_or(&0);
        if count == 0 {
            self.lose_client(received.err());
        } else if self.inbox.waiting().len() == self.inbox.capacity() {
            // A client that sends so much at once is busy.
            self.grow_inbox(self.inbox.capacity() + 1);
        }
        Poll::Ready(())
    }

    fn lose_client(&mut self, error: Option<io::Error>) {
        let gone = "receive from iSCSI client: it left without a word";
        let failure = match error {
            Some(e) => Error::new(Kind::Io, "receive from iSCSI client").because(e),
            None => Error::new(Kind::Io, gone),
        };
        self.end(Some(failure));
    }

    /// Takes every complete PDU that waits and has room.
    pub(super) fn take_pdus(&mut self, cx: &mut Context<'_>) -> bool {
        if self.receiving.is_some() {
            return false;
        }
        if !self.inbox.waiting().is_empty() {
            self.took_at = world::now();
        }
        let mut moved = false;
        self.starved = false;
        while !self.starved && !self.outbox.is_due(&self.inbox) {
            let taken = match &self.intake {
                Intake::Ended => false,
                Intake::Data(_) => self.take_data(cx),
                Intake::Pdus => self.take_pdu(cx),
            };
            if !taken {
                break;
            }
            moved = true;
        }
        moved
    }

    fn digest_len(&self, is_used: bool) -> usize {
        if is_used { 4 } else { 0 }
    }

    /// Takes one PDU; `false` when it is not there, or has no room.
    fn take_pdu(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(bytes) = self.inbox.peek::<HEADER>() else {
            self.starved = true;
            return false;
        };
        let header = Header(*bytes);
        let head = HEADER + header.additional() + self.digest_len(self.params.header_digest);
        let len = header.data();
        if len > MAX_RECEIVE {
            self.fail("a PDU has more data than we take");
            return true;
        }
        let tail = if len == 0 { 0 } else { padding(len) + self.digest_len(self.params.data_digest) };
        if self.inbox.waiting().len() < head {
            self.starved = true;
            return false;
        }
        if !self.is_header_whole(head) {
            self.fail("the digest of a header is wrong");
            return true;
        }
        let whole = head + len + tail;
        let is_here = self.inbox.waiting().len() >= whole;
        // Long data go around the inbox where they can.
        let goes_around = header.opcode() == request::DATA && len >= LONG;
        if !is_here && !goes_around {
            return self.wait_for(whole);
        }
        let has_room = match header.opcode() {
            // Damaged data are rejected, each PDU of them.
            request::DATA => self.load.aside <= 2 * ASIDE,
            request::COMMAND => self.has_room_aside(OVERHEAD) && self.may_take_command(&header, cx),
            _ => self.has_room_aside(OVERHEAD + len),
        };
        if !has_room {
            return false;
        }
        if is_here {
            self.take_whole(header, head, len, whole, cx);
            return true;
        }
        let Some((tag, at)) = self.place_data(&header) else { return self.wait_for(whole) };
        self.inbox.consume(head);
        self.intake = Intake::Data(Arriving { header, tag, at, done: 0, len });
        true
    }

    /// Waits for so many bytes in the inbox.
    fn wait_for(&mut self, len: usize) -> bool {
        self.starved = true;
        if len > self.inbox.capacity() {
            self.grow_inbox(len);
        }
        false
    }

    fn grow_inbox(&mut self, len: usize) {
        self.inbox.resize(if len <= SMALL_INBOX { SMALL_INBOX } else { LARGE_INBOX });
    }

    fn is_header_whole(&self, head: usize) -> bool {
        if !self.params.header_digest {
            return true;
        }
        let waiting = self.inbox.waiting();
        let (bytes, digest) = waiting[..head].split_at(head - 4);
        crc32c::crc32c(bytes).to_le_bytes() == digest
    }

    fn take_whole(&mut self, header: Header, head: usize, len: usize, whole: usize, cx: &mut Context<'_>) {
        let waiting = &self.inbox.waiting()[head..whole];
        let mut is_intact = true;
        if self.params.data_digest && len > 0 {
            let (bytes, digest) = waiting.split_at(waiting.len() - 4);
            is_intact = crc32c::crc32c(bytes).to_le_bytes() == digest;
        }
        let opcode = header.opcode();
        if opcode == request::DATA && is_intact {
            // Straight from the inbox to where they will stay.
            let place = self.place_data(&header);
            if let Some((tag, at)) = place
                && let Some(task) = self.tasks.get_mut(&tag)
                && let Some(payload) = &mut task.payload
            {
                payload.put(at, &self.inbox.waiting()[head..head + len]);
                self.inbox.consume(whole);
                self.data_arrived(tag, &header, len, cx);
                return;
            }
        }
        if opcode == request::COMMAND && is_intact {
            self.take_command(&header, head, len, whole, cx);
            return;
        }
        // Headers, and data of a few kilobytes at most but for unasked ones.
        let data = self.inbox.waiting()[head..head + len].to_vec();
        self.inbox.consume(whole);
        self.dispatch(header, data, is_intact, cx);
    }

    /// Goes on with long data.
    fn take_data(&mut self, cx: &mut Context<'_>) -> bool {
        let Intake::Data(arriving) = &mut self.intake else { return false };
        let left = arriving.len - arriving.done;
        if left > 0 {
            let bytes = &self.inbox.waiting()[..left.min(self.inbox.waiting().len())];
            let count = bytes.len();
            if count == 0 {
                self.starved = true;
                return false;
            }
            if let Some(payload) = self.tasks.get_mut(&arriving.tag).and_then(|t| t.payload.as_mut()) {
                payload.put(arriving.at + arriving.done, bytes);
            }
            arriving.done += count;
            self.inbox.consume(count);
            return true;
        }
        let pad = padding(arriving.len);
        let tail = pad + if self.params.data_digest { 4 } else { 0 };
        if self.inbox.waiting().len() < tail {
            self.starved = true;
            return false;
        }
        let Intake::Data(arriving) = std::mem::replace(&mut self.intake, Intake::Pdus) else { return false };
        let mut is_intact = true;
        if self.params.data_digest
            && let Some(payload) = self.tasks.get(&arriving.tag).and_then(|t| t.payload.as_ref())
        {
            let digest = payload.digest(0, arriving.at..arriving.at + arriving.len);
            let digest = crc32c::crc32c_append(digest, &self.inbox.waiting()[..pad]);
            is_intact = digest.to_le_bytes() == self.inbox.waiting()[pad..tail];
        }
        self.inbox.consume(tail);
        if is_intact {
            self.data_arrived(arriving.tag, &arriving.header, arriving.len, cx);
        } else {
            self.data_damaged(arriving.tag, &arriving.header);
        }
        true
    }

    /// An idle connection needs no large buffers.
    pub fn rest(&mut self) {
        if self.tasks.is_empty() && self.inbox.is_empty() {
            self.inbox.resize(IDLE_INBOX);
        }
        if !self.outbox.is_sending() {
            self.outbox.rest();
        }
    }

    /// The answer to a question of ours is on its way, or a text goes on.
    pub fn say(&mut self, pairs: &Pairs) {
        self.unsaid.extend(pairs.encode());
    }
}
