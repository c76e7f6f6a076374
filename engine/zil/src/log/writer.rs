//! The writer: from records in memory to blocks on the devices.
//!
//! ```text
//!   gather      until the blocks under way leave room for one more, and the callers that are expected have come
//!   take        all records there are, in order
//!   resolve     what is logged by pointer is written: dmu, at its final place
//!   fill        the empty block at the end of the chain; allocate its successor, whose pointer it carries, and without
//!               which it is not written: no reader would take its records; again for what has no room in it
//!   settle      all blocks written at once ─▶ each device that was written flushed, once ─▶ waiters are released
//! ```
//!
//! What was taken together is one batch, however many blocks it needs: they are written at once, and one flush serves them
//! all. The order of the chain needs no more than that, for a reader stops at the first block that is not there, and
//! no waiter is told of a block before all that come before it are durable.
//!
//! How many batches at once depends on what takes the time. A device serves one flush after the other, so while flushes
//! are the greater part, a second batch could only wait for a second flush, and would take its waiters away from the next:
//! then one at a time, which the writer itself sees through, and the next has all that came meanwhile. Where writing
//! is the greater part, or nothing has to be flushed, one batch is written while another is flushed.

use super::plan::{LEAST, encode, fill, room_of, size_for};
use super::record::{Body, Change, Entry, Item};
use super::{Counters, Log, State};
use dmu::{Early, Tx};
use ondisk::{BlockPointer, Plain};
use probe::{Event, Op};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use units::{Error, Kind, Result, Txg, VdevId};
use world::stages::{carried, run_if};
use world::sync::join_all_bounded;
use world::{Instant, Pending};

/// How many batches are under way at once when flushes are cheap. More would only divide the waiters among more of them.
const IN_FLIGHT: usize = 2;
/// How many blocks of data are written in advance at once, and how many blocks of one batch.
const WRITES: usize = 32;
/// A wait for others shorter than this would not be one.
const GATHER_MIN: Duration = Duration::from_micros(5);

/// The records of one block or more.
struct Batch {
    entries: Vec<Entry>,
    /// All changes up to here are in this batch or were in others before.
    last_id: u64,
    waiters: usize,
    synced: Txg,
}

/// Blocks on their way to the devices, of one batch.
struct Round {
    began: Instant,
    waiters: usize,
    /// Of records.
    bytes: u64,
    /// In the order of the chain, by their numbers; the last is not yet under way.
    writes: VecDeque<(u64, Pending<Result<()>>)>,
    /// Those that have been written, well or badly.
    written: Vec<(u64, bool)>,
    touched: Touched,
    must_flush: bool,
}

/// What must be flushed.
#[derive(Clone, Default)]
struct Touched {
    vdevs: BTreeSet<VdevId>,
    /// A gang's parts may be anywhere.
    everywhere: bool,
}

impl Touched {
    fn add(&mut self, bp: &BlockPointer) {
        self.everywhere |= bp.is_gang();
        self.vdevs.extend(bp.as_plain().into_iter().flat_map(Plain::copies).map(|dva| dva.vdev));
    }
}

impl Log {
    pub(super) async fn write_blocks(self) {
        loop {
            if self.lock().blocks.is_empty() && !self.timed(self.begin_chain()).await {
                return;
            }
            self.gather().await;
            let Some(batch) = self.take() else { return };
            self.timed(self.issue(batch)).await;
        }
    }

    /// Does `work` for the commits that are timed, if there are any.
    async fn timed<T>(&self, work: impl Future<Output = T>) -> T {
        run_if(self.0.course.if_timed(), work).await
    }

    /// Takes a place for a block of the log. What is promised to the txgs under way is not touched for it: without a log
    /// a commit waits for a txg instead.
    async fn allocate(&self, size: u64, tx: &Tx) -> Result<Plain> {
        let is_apart = self.0.store.has_log_devices();
        if !is_apart && !tx.try_charge(self.0.objset.store().charge_max(size, 1)) {
            return Err(Error::new(Kind::NoSpace, "write a log"));
        }
        self.0.store.allocate_log(size, tx.txg()).await
    }

    /// Makes the first block and waits until the header leads to it. Answers false when there is nothing more to do.
    async fn begin_chain(&self) -> bool {
        if self.is_idle() {
            return false;
        }
        let (tx, guid) = (self.0.txgs.begin_unthrottled(), [world::random_u64(), world::random_u64()]);
        let txg = tx.txg();
        let begun = match self.allocate(LEAST, &tx).await {
            Ok(mut place) => {
                place.checksum = [guid[0], guid[1], self.0.objset.id().0, 1];
                self.begin_with(place, &tx)
            }
            Err(_) => false,
        };
        tx.dirtied(1);
        drop(tx);
        let begun = begun && self.0.txgs.wait_synced(txg).await.is_ok();
        if !begun {
            self.give_up();
        }
        begun
    }

    /// False when the log was closed meanwhile.
    fn begin_with(&self, place: Plain, tx: &Tx) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            self.0.store.free_log(&place, tx.txg());
            return false;
        }
        state.blocks.begin(place);
        true
    }

    /// The writer stops when no commit waits for it, nor it for one.
    fn is_idle(&self) -> bool {
        let (is_idle, has_ended) = {
            let mut state = self.lock();
            let has_ended = state.is_closed || state.blocks.is_broken();
            let is_idle = has_ended || state.wanted <= state.issued;
            if is_idle {
                state.is_writing = false;
                state.gathered = 0;
            }
            (is_idle, has_ended)
        };
        if has_ended {
            // A task may wait for the writer to end. Of an open log it is only commits that wait, and for what is under way.
            self.0.changed.notify_all();
        }
        is_idle
    }

    /// Sends all waiters to wait for their txg: nothing more can be written here.
    pub fn give_up(&self) {
        {
            let mut state = self.lock();
            state.blocks.break_off();
            state.is_writing = false;
            state.gathered = 0;
        }
        self.0.changed.notify_all();
    }

    async fn gather(&self) {
        let mut deadline = None;
        loop {
            let arrived = self.0.arrived.notified();
            {
                let state = self.lock();
                // Only a commit waits for others. Else the timer would be late, and wake the loop while the kernel writes.
                if state.is_closed || state.blocks.is_broken() || state.wanted <= state.issued {
                    return;
                }
                if state.rounds < state.rounds_max() {
                    // The callers that are expected were told only now that they may come.
                    let now = world::now();
                    let until = *deadline.get_or_insert_with(|| now.after(self.patience(&state)));
                    if state.gathered >= state.expected || now >= until {
                        return;
                    }
                } else {
                    deadline = None;
                }
            }
            match deadline {
                None => arrived.await,
                Some(deadline) => {
                    futures_util::future::select(arrived, world::sleep_until(deadline)).await;
                }
            }
        }
    }

    /// How long the next block may wait for others.
    fn patience(&self, state: &State) -> Duration {
        let percent = self.settings().commit_timeout_percent as u32;
        (state.latency * percent / 100).max(GATHER_MIN)
    }

    fn take(&self) -> Option<Batch> {
        if self.is_idle() {
            return None;
        }
        let mut state = self.lock();
        let waiters = std::mem::take(&mut state.gathered);
        state.issued = state.last_id.min(state.may_log());
        let count = state.pending.partition_point(|entry| entry.id <= state.issued);
        let entries = state.pending.drain(..count).collect();
        Some(Batch { entries, last_id: state.issued, waiters, synced: state.synced })
    }

    async fn issue(&self, batch: Batch) {
        let Batch { entries, last_id, waiters, synced } = batch;
        let mut touched = Touched::default();
        let mut items = self.resolve_all(entries.into_iter().filter(|e| e.txg > synced).collect()).await;
        for item in &items {
            if let Body::Pointer { pointer, .. } = &item.body {
                touched.add(pointer);
            }
        }
        let bytes: u64 = items.iter().map(|item| item.total() as u64).sum();
        Counters::add(&self.0.counters.records, items.len() as u64);
        if items.is_empty() {
            let mut state = self.lock();
            if state.blocks.cover(last_id) {
                state.durable = state.durable.max(last_id);
            }
            drop(state);
            self.0.changed.notify_all();
            return;
        }
        let mut round = Round {
            began: world::now(),
            waiters,
            bytes,
            writes: VecDeque::new(),
            written: Vec::new(),
            touched,
            must_flush: !self.settings().no_cache_flush,
        };
        self.lock().rounds += 1;
        while !items.is_empty() {
            if self.issue_block(&mut items, bytes, last_id, &mut round).await.is_err() {
                break;
            }
            if !items.is_empty() {
                round.go_on().await;
            }
        }
        let is_alone = self.lock().rounds_max() == 1;
        let settled = self.clone().settle(round);
        if is_alone { settled.await } else { drop(world::spawn(carried(settled))) }
    }

    /// Turns changes into records, in their order. Blocks that are to be logged by pointer are written at once.
    async fn resolve_all(&self, entries: Vec<Entry>) -> VecDeque<Item> {
        let points = |entry: &Entry| matches!(entry.change, Change::Block { .. });
        if entries.iter().any(points) {
            return join_all_bounded(WRITES, entries.into_iter().map(|e| self.resolve(e))).await.into();
        }
        entries.into_iter().map(Entry::into_item).collect()
    }

    /// Turns a change into a record; what is to be logged by pointer is written first, if it still can be.
    async fn resolve(&self, entry: Entry) -> Item {
        let pointer = match &entry.change {
            Change::Block { object, blkid, block, .. } => match (block.now(), self.0.txgs.join(entry.txg)) {
                (Early::Written(pointer), _) => Some(pointer),
                (Early::Data(data), Some(tx)) => object.write_now(&tx, *blkid, &data).await.ok().flatten(),
                // Its sync has begun: the data go into the log after all.
                (Early::Data(_), None) => None,
            },
            _ => None,
        };
        match (pointer, entry.change) {
            (Some(pointer), Change::Block { object, offset, length, .. }) => {
                Counters::add(&self.0.counters.indirect, 1);
                let body = Body::Pointer { object: object.id(), offset, length, pointer };
                Item { id: entry.id, txg: entry.txg, body }
            }
            (_, change) => Entry { change, ..entry }.into_item(),
        }
    }

    /// Fills the empty block and puts it into the round; `Err` when the chain has come to an end.
    async fn issue_block(
        &self,
        items: &mut VecDeque<Item>,
        burst: u64,
        last_id: u64,
        round: &mut Round,
    ) -> std::result::Result<(), ()> {
        let settings = self.settings();
        let place = self.lock().blocks.last().cloned().ok_or(())?;
        let mut filled = fill(items, room_of(place.psize.0), &settings);
        let is_last = items.is_empty();
        let size = if is_last {
            let mut state = self.lock();
            state.bursts.note(burst, &settings);
            state.bursts.predict(&settings)
        } else {
            size_for(items, &settings)
        };
        if is_last {
            filled.complete = last_id;
        }
        let tx = self.0.txgs.begin_unthrottled();
        let Ok(mut next) = self.allocate(size, &tx).await else {
            self.lock().blocks.break_off();
            return Err(());
        };
        next.checksum = place.checksum;
        next.checksum[3] += 1;
        let pointer = BlockPointer::Plain(next.clone());
        let block = {
            let mut state = self.lock();
            if state.blocks.last().is_some_and(|last| last.checksum == place.checksum) {
                let block = encode(&filled, &place, &pointer, &mut state.seq);
                state.blocks.issue(tx.txg(), filled.newest, filled.complete, next.clone());
                Some(block)
            } else {
                None
            }
        };
        let Some(block) = block else {
            // A block before this one has failed, or the dataset has gone: the successor is not needed.
            self.0.store.free_log(&next, tx.txg());
            return Err(());
        };
        drop(tx);
        Counters::add(&self.0.counters.blocks, 1);
        Counters::add(&self.0.counters.bytes, block.len() as u64);
        let is_urgent = !self.0.store.has_log_devices() || burst <= settings.slog_bulk;
        round.touched.add(&BlockPointer::Plain(place.clone()));
        round.writes.push_back((place.checksum[3], self.0.store.write_log(&place, block, is_urgent)));
        Ok(())
    }

    /// Sees a batch through, from the last of its writes to the answers.
    async fn settle(self, mut round: Round) {
        if round.writes.len() > 1 {
            round.start_last();
        }
        while !round.writes.is_empty() {
            round.finish_first().await;
        }
        let wrote = world::now();
        let store = &self.0.store;
        let touched = std::mem::take(&mut round.touched);
        let result = match touched {
            _ if !round.must_flush || !round.written.iter().any(|&(_, is_written)| is_written) => Ok(()),
            Touched { everywhere: true, .. } => store.flush_all().await,
            Touched { vdevs, .. } => store.flush(vdevs.into_iter().collect()).await,
        };
        {
            let mut state = self.lock();
            let now = world::now();
            state.rounds -= 1;
            if !round.written.is_empty() {
                (state.latency, state.flushing) = (now.since(round.began), now.since(wrote));
                let (bytes, writers, latency) = (round.bytes, round.waiters as u64, state.latency);
                let failed = result.is_err();
                let event = || Event { op: Op::Commit, bytes, writers, latency, failed, ..Event::default() };
                self.0.probe.tell(event);
            }
            for (number, is_written) in round.written {
                state.blocks.written(number, is_written && result.is_ok());
            }
            if round.waiters > 0 {
                // They are likely to come back at once, and callers that came meanwhile should not go without them.
                state.expected = state.gathered + round.waiters;
            }
            state.durable = state.durable.max(state.blocks.durable());
        }
        self.0.arrived.notify_all();
        self.0.changed.notify_all();
    }
}

impl Round {
    /// Lets the last block go on its way while more are made. A long batch is held up by its oldest block, so that what
    /// is in memory of it has a bound.
    async fn go_on(&mut self) {
        self.start_last();
        while self.writes.len() >= WRITES {
            self.finish_first().await;
        }
    }

    fn start_last(&mut self) {
        if let Some((number, write)) = self.writes.pop_back() {
            self.writes.push_back((number, Box::pin(world::spawn(carried(write)))));
        }
    }

    async fn finish_first(&mut self) {
        if let Some((number, write)) = self.writes.pop_front() {
            let is_written = write.await.is_ok();
            self.written.push((number, is_written));
        }
    }
}

impl State {
    /// How many batches may be under way when the next one is begun.
    fn rounds_max(&self) -> usize {
        if self.flushing * 2 > self.latency { 1 } else { IN_FLIGHT }
    }
}
