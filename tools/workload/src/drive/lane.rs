//! One lane: a turn, a request, its answer, and again.

use super::gate::Gate;
use super::open::Span;
use crate::choose::Random;
use crate::describe::{Flush, Stream};
use crate::draw::{Ask, Cursor, Drawer};
use crate::pace::Pacer;
use crate::stamp;
use crate::tally::{Ended, Kind, Tally};
use futures_util::future::{Either, select};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::{Error, Kind as ErrorKind, Result};
use world::sync::Event;
use world::{Buf, Instant, IoBuf};

/// Different bytes to write where they are not verified.
const SAMPLES: usize = 4;
/// How many requests a lane makes before the other tasks of its loop run.
const PATIENCE: u32 = 64;
/// How often another place is drawn when the one that was is in use.
const TRIES: u32 = 64;
/// How long a lane that is ahead of its share waits.
const AHEAD: Duration = Duration::from_micros(100);

/// What all lanes of a run share.
#[derive(Debug)]
pub struct Common {
    pub begun: Instant,
    /// Set when the run is over, whatever the reason.
    pub over: Event,
    pub is_over: AtomicBool,
    pub failure: Mutex<Option<Error>>,
    pub lanes_left: AtomicUsize,
    pub all_left: Event,
    pub gate: Option<Gate>,
}

impl Common {
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.over.set();
    }

    fn fail(&self, e: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        self.end();
    }

    /// Waits until then; false when the run is over before.
    async fn wait_until(&self, due: Instant) -> bool {
        if world::now() >= due {
            return !self.is_over.load(Ordering::Relaxed);
        }
        let over = std::pin::pin!(self.over.wait());
        matches!(select(world::sleep_until(due), over).await, Either::Left(_))
    }
}

/// What the lanes of a stream share.
#[derive(Debug)]
pub struct Shared {
    pub common: Arc<Common>,
    pub stream: Stream,
    pub spans: Vec<Span>,
    pub cursors: Vec<Cursor>,
    pub pacer: Option<Mutex<Pacer>>,
    pub row: usize,
    pub tally: Arc<Tally>,
    pub deadline: Option<Instant>,
    pub moved: AtomicU64,
    pub lanes_left: AtomicUsize,
    pub samples: Vec<Buf>,
    pub seed: u64,
}

/// Noise for the writes of a stream.
pub fn samples(stream: &Stream, seed: u64) -> Vec<Buf> {
    if stream.verify || stream.read_percent >= 100.0 {
        return Vec::new();
    }
    let mut random = Random(seed);
    let sample = |_| {
        let mut buf = IoBuf::scratch(stream.write_sizes.longest() as usize);
        stamp::fill(&mut buf, random.next(), 0, 1, 0);
        buf.freeze()
    };
    (0..SAMPLES).map(sample).collect()
}

/// Works until the run or the stream is over. `store` is where it begins, `step` how many stores further each next
/// request goes.
pub async fn work(shared: Arc<Shared>, number: u64, store: usize, step: usize) {
    let lane = Lane::new(&shared, number, store, step);
    if let Err(e) = lane.run().await {
        shared.common.fail(e);
    }
    if shared.lanes_left.fetch_sub(1, Ordering::AcqRel) == 1 {
        if let Err(e) = last_flush(&shared).await {
            shared.common.fail(e);
        }
        if let Some(gate) = &shared.common.gate {
            gate.leave(shared.row);
        }
    }
    if shared.common.lanes_left.fetch_sub(1, Ordering::AcqRel) == 1 {
        shared.common.all_left.set();
    }
}

async fn last_flush(shared: &Shared) -> Result<()> {
    if shared.stream.flush == Flush::AtEnd {
        for span in &shared.spans {
            span.target.flush().await?;
        }
    }
    Ok(())
}

struct Lane<'a> {
    shared: &'a Shared,
    drawers: Vec<Drawer>,
    store: usize,
    step: usize,
    writes: u32,
    turns: u32,
}

impl<'a> Lane<'a> {
    fn new(shared: &'a Shared, number: u64, store: usize, step: usize) -> Lane<'a> {
        // Only those that it will use: a lane on each of many stores has one.
        let mut random = Random(shared.seed ^ (number + 1).wrapping_mul(0xd6e8_feb8_6659_fd93));
        let used = if step == 0 { &shared.spans[store..=store] } else { &shared.spans[..] };
        let drawers = used.iter().map(|span| Drawer::new(&shared.stream, span.len, random.next())).collect();
        Lane { shared, drawers, store, step, writes: 0, turns: 0 }
    }

    async fn run(mut self) -> Result<()> {
        while let Some(due) = self.turn().await {
            let span = &self.shared.spans[self.store];
            let drawer = if self.step == 0 { 0 } else { self.store };
            let Some(ask) = self.draw(drawer).await else { break };
            if self.is_enough(ask.len) {
                self.release(span, &ask);
                break;
            }
            self.request(span, ask, due).await?;
            self.store = (self.store + self.step) % self.shared.spans.len();
            if !self.shared.stream.think.is_zero() {
                let next = world::now().after(self.shared.stream.think);
                if !self.shared.common.wait_until(next).await {
                    break;
                }
            }
        }
        Ok(())
    }

    /// When the next request is due, once that has come; `None` when there is none any more.
    async fn turn(&mut self) -> Option<Option<Instant>> {
        let common = &self.shared.common;
        self.turns += 1;
        if self.turns.is_multiple_of(PATIENCE) {
            world::yield_now().await;
        }
        let due = match &self.shared.pacer {
            None => None,
            Some(pacer) => {
                let due = pacer.lock().unwrap_or_else(PoisonError::into_inner).next_due();
                let due = common.begun.after(Duration::from_nanos(due));
                if !common.wait_until(due).await {
                    return None;
                }
                Some(due)
            }
        };
        while let Some(gate) = &common.gate
            && !gate.enter(self.shared.row)
        {
            if !common.wait_until(world::now().after(AHEAD)).await {
                return None;
            }
        }
        (!common.is_over.load(Ordering::Relaxed)).then_some(due)
    }

    async fn draw(&mut self, drawer: usize) -> Option<Ask> {
        let span = &self.shared.spans[self.store];
        let cursor = &self.shared.cursors[self.store];
        for tries in 1.. {
            let ask = self.drawers.get_mut(drawer)?.draw(cursor, span.len)?;
            let Some(written) = &span.written else { return Some(ask) };
            if written.take(span.first + ask.offset, u64::from(ask.len)) {
                return Some(ask);
            }
            if tries % TRIES == 0 {
                if self.shared.common.is_over.load(Ordering::Relaxed) {
                    return None;
                }
                world::yield_now().await;
            }
        }
        None
    }

    fn is_enough(&self, len: u32) -> bool {
        let Some(amount) = self.shared.stream.amount else { return false };
        self.shared.moved.fetch_add(u64::from(len), Ordering::Relaxed) >= amount
    }

    fn release(&self, span: &Span, ask: &Ask) {
        if let Some(written) = &span.written {
            written.release(span.first + ask.offset, u64::from(ask.len));
        }
    }

    async fn request(&mut self, span: &Span, ask: Ask, due: Option<Instant>) -> Result<()> {
        let offset = span.first + ask.offset;
        if ask.begins_again && span.is_cold {
            span.target.chill()?;
        }
        let data = if ask.read { None } else { Some(self.data(span, offset, ask.len)) };
        let begun = world::now();
        let tally = &self.shared.tally;
        tally.begin(begun);
        let outcome = match data {
            None => span.target.read(offset, ask.len).await,
            Some(data) => span.target.write(offset, data).await.map(|()| Vec::new()),
        };
        let end = world::now();
        let pieces = outcome.inspect_err(|_| tally.give_up(end))?;
        let kind = if ask.read { Kind::Read } else { Kind::Write };
        let due = due.unwrap_or(begun);
        tally.end(&Ended { kind, due, begun, end, bytes: u64::from(ask.len) });
        self.answered(span, &ask, &pieces)?;
        if !ask.read {
            self.writes += 1;
            if let Flush::Every(every) = self.shared.stream.flush
                && self.writes.is_multiple_of(every)
            {
                self.flush(span).await?;
            }
        }
        if self.shared.deadline.is_some_and(|deadline| end >= deadline) {
            // The other lanes of the stream see it as well.
            self.shared.moved.store(u64::MAX / 2, Ordering::Relaxed);
        }
        Ok(())
    }

    fn data(&self, span: &Span, offset: u64, len: u32) -> Buf {
        match &span.written {
            None => {
                let sample = self.turns as usize % self.shared.samples.len().max(1);
                self.shared.samples[sample].slice(0..len as usize)
            }
            Some(written) => {
                let mut buf = IoBuf::scratch(len as usize);
                written.fill(offset, &mut buf);
                buf.freeze()
            }
        }
    }

    /// Checks what was read, and notes what was written.
    fn answered(&self, span: &Span, ask: &Ask, pieces: &[Buf]) -> Result<()> {
        let offset = span.first + ask.offset;
        if ask.read {
            let got: usize = pieces.iter().map(|p| p.len()).sum();
            if got != ask.len as usize {
                let what = format!("read {got} bytes instead of {} at {offset:#x}", ask.len);
                return Err(Error::new(ErrorKind::Corrupt, what));
            }
        }
        let Some(written) = &span.written else { return Ok(()) };
        if ask.read {
            match pieces {
                [whole] => written.check(offset, whole)?,
                pieces => written
                    .check(offset, &pieces.iter().flat_map(|p| p.iter().copied()).collect::<Vec<u8>>())?,
            };
        } else {
            written.done(offset, u64::from(ask.len));
        }
        self.release(span, ask);
        Ok(())
    }

    async fn flush(&self, span: &Span) -> Result<()> {
        let begun = world::now();
        self.shared.tally.begin(begun);
        let flushed = span.target.flush().await;
        let end = world::now();
        flushed.inspect_err(|_| self.shared.tally.give_up(end))?;
        self.shared.tally.end(&Ended { kind: Kind::Flush, due: begun, begun, end, bytes: 0 });
        Ok(())
    }
}
