//! Replies on their way out.
//!
//! Heads are a few bytes each and are gathered in one page-sized arena; data stays where the volume has it:
//!
//! ```text
//!   arena   |h0 h1 h2|h3|...            heads that follow each other become one part
//!   parts    ──┬───── ── ──
//!   send     [h0 h1 h2][data of 2][h3][data of 3]      one vectored send
//! ```
//!
//! Arenas are used again when their bytes have been sent. Each part carries the load that is given back when it has
//! left, so the room a request was admitted to is free only when its reply is out. One send is under way at a time.

use crate::inbox::Inbox;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::{AddAssign, Range, SubAssign};
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use world::{Buf, IoBuf, Pending, Stream};

/// What a request weighs from its admission until its reply has been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub requests: usize,
    pub bytes: usize,
    /// Of what is said without a request that was admitted for it, bytes beside those.
    pub aside: usize,
}

impl Load {
    pub const fn of(requests: usize, bytes: usize) -> Load {
        Load { requests, bytes, aside: 0 }
    }

    pub const fn aside(bytes: usize) -> Load {
        Load { requests: 0, bytes: 0, aside: bytes }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Load) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.aside += other.aside;
    }
}

impl SubAssign for Load {
    fn sub_assign(&mut self, other: Load) {
        self.requests -= other.requests;
        self.bytes -= other.bytes;
        self.aside -= other.aside;
    }
}

/// Heads for a full batch of small replies.
const ARENA: usize = 16 << 10;
/// One send is at most this long and of this many parts, so that a fast client gets the first replies while later
/// ones are made, and so that the system call takes the parts at once.
const SEND_BYTES: usize = 1 << 20;
const SEND_PARTS: usize = 512;

/// Fewer replies are not sent by themselves while there are more requests to carry out.
const PIECE: usize = 2;

enum Place {
    Head(Range<usize>),
    Data(Buf),
}

struct Part {
    place: Place,
    load: Load,
}

/// What the socket took, or the end.
#[derive(Debug)]
pub struct Sent {
    /// What is given back: also that of all that will not be sent any more, after a failure.
    pub load: Load,
    /// That the socket took.
    pub bytes: usize,
    pub result: io::Result<()>,
}

/// See the module.
pub struct Outbox {
    /// With its load and its length.
    sending: Option<(Pending<io::Result<()>>, Load, usize)>,
    arena: IoBuf,
    used: usize,
    /// Replies since the last send began.
    replies: usize,
    /// Parts whose heads are still in the open arena.
    open: Vec<Part>,
    /// Parts ready to be sent, in order, before the open ones.
    ready: VecDeque<(Buf, Load)>,
    /// The arena that was sealed last; its heads are in `ready` or with the socket.
    sealed: Option<Buf>,
    /// An arena to be used again.
    spare: Option<IoBuf>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::new()
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbox({} parts)", self.open.len() + self.ready.len())
    }
}

impl Outbox {
    pub fn new() -> Outbox {
        Outbox {
            sending: None,
            // Taken when there is something to send: who is idle needs none.
            arena: IoBuf::zeroed(0),
            used: 0,
            replies: 0,
            open: Vec::new(),
            ready: VecDeque::new(),
            sealed: None,
            spare: None,
        }
    }

    /// The socket has not yet taken what it was given.
    pub fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Nothing waits to be sent; a send may be under way.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.ready.is_empty()
    }

    /// Appends a head, or a whole reply that is short. Longer ones get a buffer of their own.
    pub fn head(&mut self, bytes: &[u8]) {
        if bytes.len() > ARENA / 4 {
            return self.data(Buf::copy_from(bytes));
        }
        if self.used + bytes.len() > self.arena.len() {
            self.seal();
            self.arena = self.spare.take().unwrap_or_else(|| IoBuf::scratch(ARENA));
        }
        let at = self.used..self.used + bytes.len();
        self.arena[at.clone()].copy_from_slice(bytes);
        self.used = at.end;
        match self.open.last_mut() {
            Some(Part { place: Place::Head(last), .. }) if last.end == at.start => last.end = at.end,
            _ => self.open.push(Part { place: Place::Head(at), load: Load::default() }),
        }
    }

    pub fn data(&mut self, buf: Buf) {
        self.open.push(Part { place: Place::Data(buf), load: Load::default() });
    }

    /// Zeros that are not stored.
    pub fn zeros(&mut self, len: usize) {
        static ZEROS: OnceLock<Buf> = OnceLock::new();
        let zeros = ZEROS.get_or_init(|| Buf::zeroed(128 << 10));
        let mut left = len;
        while left > 0 {
            let n = left.min(zeros.len());
            self.data(zeros.slice(0..n));
            left -= n;
        }
    }

    /// What was appended last ends a reply: `load` is given back when it has left.
    pub fn end_reply(&mut self, load: Load) {
        self.open.last_mut().expect("a reply has a head").load += load;
        self.replies += 1;
    }

    /// Whether what waits is to be sent before more is made, as half of the requests that came together are carried out: the
    /// client asks for more meanwhile. One that gets all replies at once has nothing to do before, and the server after.
    pub fn is_due(&self, inbox: &Inbox) -> bool {
        self.replies >= PIECE && inbox.is_half_taken() && self.can_send()
    }

    /// Whether there is something to send and nothing under way.
    pub fn can_send(&self) -> bool {
        !self.is_sending() && !self.is_empty()
    }

    /// Begins the next send, if there is one to begin.
    pub fn send(&mut self, stream: &dyn Stream) {
        if self.can_send()
            && let Some((parts, load)) = self.take()
        {
            let len = parts.iter().map(|part| part.len()).sum();
            self.sending = Some((stream.send(parts), load, len));
        }
    }

    /// Looks whether the send under way has ended. After a failure nothing waits any more.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Sent> {
        let Some((sending, load, len)) = &mut self.sending else { return Poll::Pending };
        let (result, mut load, len) = (ready!(sending.as_mut().poll(cx)), *load, *len);
        self.sending = None;
        match &result {
            Ok(()) => self.sent(),
            Err(_) => load += self.clear(),
        }
        let bytes = if result.is_ok() { len } else { 0 };
        Poll::Ready(Sent { load, bytes, result })
    }

    /// The next send, and the load that leaves with it.
    pub fn take(&mut self) -> Option<(Vec<Buf>, Load)> {
        self.replies = 0;
        if !self.open.is_empty() {
            self.seal();
        }
        let (mut parts, mut bytes, mut load) = (Vec::new(), 0, Load::default());
        while parts.len() < SEND_PARTS
            && bytes < SEND_BYTES
            && let Some((buf, l)) = self.ready.pop_front()
        {
            bytes += buf.len();
            load += l;
            parts.push(buf);
        }
        (!parts.is_empty()).then_some((parts, load))
    }

    /// What was taken has been sent. When nothing else waits, the last arena is not looked at any more.
    pub fn sent(&mut self) {
        if self.ready.is_empty()
            && let Some(arena) = self.sealed.take()
        {
            self.spare = Some(arena.into_mut());
        }
    }

    /// Nothing is to be sent, and maybe not for long: an idle connection keeps no arena.
    pub fn rest(&mut self) {
        if self.is_empty() {
            (self.spare, self.sealed) = (None, None);
            if self.used == 0 {
                self.arena = IoBuf::zeroed(0);
            }
        }
    }

    /// Drops everything: the client is gone. Returns the load.
    pub fn clear(&mut self) -> Load {
        let mut load = Load::default();
        self.seal();
        self.ready.drain(..).for_each(|(_, l)| load += l);
        load
    }

    /// Freezes the arena so that its heads can be sent.
    fn seal(&mut self) {
        let heads = std::mem::replace(&mut self.arena, IoBuf::zeroed(0)).freeze();
        self.used = 0;
        for part in self.open.drain(..) {
            let buf = match part.place {
                Place::Head(range) => heads.slice(range),
                Place::Data(buf) => buf,
            };
            self.ready.push_back((buf, part.load));
        }
        if !heads.is_empty() {
            self.sealed = Some(heads);
        }
    }
}
