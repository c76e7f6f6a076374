//! The writer: from records in memory to blocks on the devices.
//!
//! ```text
//!   gather      until the blocks under way leave room for one more, and those who are expected have come
//!   take        all records there are, in order
//!   resolve     what is logged by pointer is written: dmu, at its final place
//!   fill        the empty block at the end of the chain; allocate its successor, whose pointer it carries
//!   write ─▶ flush ─▶ done     on their own; the writer goes on with the next block
//! ```
//!
//! How many at once depends on what takes the time. A device serves one flush after the other, so while flushes are the
//! greater part, a second block could only wait for a second flush, and would take its waiters away from the next: then
//! one at a time, and the next has everybody who came meanwhile. Where writing is the greater part, or nothing has to be
//! flushed, one block is written while another is flushed.

use super::plan::{LEAST, encode, fill, room_of, size_for};
use super::record::{Body, Change, Entry, Item, Pieces};
use super::{Counters, Log, State};
use dmu::Tx;
use ondisk::{BlockPointer, Plain};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use units::{Txg, VdevId};
use world::sync::join_all_bounded;

/// How many batches are under way at once when flushes are cheap. More would only divide those who wait among more of them.
const IN_FLIGHT: usize = 2;
/// How many blocks of data are written in advance at once.
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
            if self.lock().blocks.is_empty() && !self.begin_chain().await {
                return;
            }
            self.gather().await;
            let Some(batch) = self.take() else { return };
            self.issue(batch).await;
        }
    }

    /// Makes the first block and waits until the header leads to it. Answers false when there is nothing more to do.
    async fn begin_chain(&self) -> bool {
        if self.is_idle() {
            return false;
        }
        let (tx, guid) = (self.0.txgs.begin_unthrottled(), [world::random_u64(), world::random_u64()]);
        let txg = tx.txg();
        let begun = match self.0.store.allocate_log(LEAST, txg).await {
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

    /// The writer stops when nobody waits for it, or for anybody any more.
    fn is_idle(&self) -> bool {
        let mut state = self.lock();
        let idle = state.wanted <= state.issued || state.is_closed || state.blocks.is_broken();
        if idle {
            state.is_writing = false;
            state.gathered = 0;
        }
        idle
    }

    /// Those who wait are sent to wait for their txg.
    fn give_up(&self) {
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
            let changed = self.0.changed.notified();
            {
                let state = self.lock();
                if state.is_closed || state.blocks.is_broken() {
                    return;
                }
                if state.blocks.in_flight() < state.in_flight_max() {
                    // Those who are expected were told only now that they may come.
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
                None => changed.await,
                Some(deadline) => {
                    futures_util::future::select(changed, world::sleep_until(deadline)).await;
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
            self.0.changed.notify_all();
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
        let mut items = VecDeque::new();
        let resolved =
            join_all_bounded(WRITES, entries.into_iter().filter(|e| e.txg > synced).map(|e| self.resolve(e)));
        for item in resolved.await {
            if let Body::Pointer { pointer, .. } = &item.body {
                touched.add(pointer);
            }
            items.push_back(item);
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
        while !items.is_empty() {
            let left = self.issue_block(&mut items, bytes, last_id, waiters, &touched).await;
            if left.is_err() {
                return self.0.changed.notify_all();
            }
        }
    }

    /// Turns a change into a record; what is to be logged by pointer is written first, if it still can be.
    async fn resolve(&self, entry: Entry) -> Item {
        let Entry { id, txg, change } = entry;
        let body = match change {
            Change::Bytes { object, block_size, offset, data } => {
                Body::Bytes { object, block_size, offset, data }
            }
            Change::Truncate { object, offset, length } => Body::Truncate { object, offset, length },
            Change::Record { bytes } => Body::Record { bytes },
            Change::Block { object, blkid, block, offset, length } => {
                let pointer = match self.0.txgs.join(txg) {
                    Some(tx) => object.write_now(&tx, blkid, &block).await.ok().flatten(),
                    // Its sync has begun: the data go into the log after all.
                    None => None,
                };
                match pointer {
                    Some(pointer) => {
                        Counters::add(&self.0.counters.indirect, 1);
                        Body::Pointer { object: object.id(), offset, length, pointer }
                    }
                    None => {
                        let block_size = block.len() as u64;
                        let from = (offset - blkid * block_size) as usize;
                        let data = Pieces::from(block.slice(from..from + length as usize));
                        Body::Bytes { object: object.id(), block_size, offset, data }
                    }
                }
            }
        };
        Item { id, txg, body }
    }

    /// Fills the empty block and sends it off; `Err` when the chain has come to an end.
    async fn issue_block(
        &self,
        items: &mut VecDeque<Item>,
        burst: u64,
        last_id: u64,
        waiters: usize,
        touched: &Touched,
    ) -> Result<(), ()> {
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
        let next = self.0.store.allocate_log(size, tx.txg()).await.ok().map(|mut next| {
            next.checksum = place.checksum;
            next.checksum[3] += 1;
            next
        });
        let pointer = next.clone().map_or(BlockPointer::HOLE, BlockPointer::Plain);
        let block = {
            let mut state = self.lock();
            if state.blocks.last().is_some_and(|last| last.checksum == place.checksum) {
                let waiters = if is_last { waiters } else { 0 };
                let block = encode(&filled, &place, &pointer, &mut state.seq);
                state.blocks.issue(tx.txg(), filled.newest, filled.complete, waiters, next.clone());
                Some(block)
            } else {
                None
            }
        };
        let Some(block) = block else {
            // A block before this one has failed, or the dataset has gone: the successor is not needed.
            if let Some(next) = next {
                self.0.store.free_log(&next, tx.txg());
            }
            return Err(());
        };
        drop(tx);
        Counters::add(&self.0.counters.blocks, 1);
        Counters::add(&self.0.counters.bytes, block.len() as u64);
        let is_urgent = !self.0.store.has_log_devices() || burst <= settings.slog_bulk;
        let mut touched = touched.clone();
        touched.add(&BlockPointer::Plain(place.clone()));
        world::spawn(self.clone().write_out(
            place,
            block,
            is_urgent,
            (!settings.no_cache_flush).then_some(touched),
        ));
        if next.is_some() { Ok(()) } else { Err(()) }
    }

    async fn write_out(self, place: Plain, block: world::Buf, is_urgent: bool, flush: Option<Touched>) {
        let began = world::now();
        let store = &self.0.store;
        let written = store.write_log(&place, block, is_urgent).await;
        let wrote = world::now();
        let result = match (written, flush) {
            (Ok(()), Some(Touched { everywhere: true, .. })) => store.flush_all().await,
            (Ok(()), Some(touched)) => store.flush(touched.vdevs.into_iter().collect()).await,
            (result, _) => result,
        };
        {
            let mut state = self.lock();
            let now = world::now();
            state.latency = now.since(began);
            state.flushing = now.since(wrote);
            let waiters = state.blocks.written(place.checksum[3], result.is_ok());
            if waiters > 0 {
                // They are likely to come back at once, and those who came meanwhile should not go without them.
                state.expected = state.gathered + waiters;
            }
            state.durable = state.durable.max(state.blocks.durable());
        }
        self.0.changed.notify_all();
    }
}

impl State {
    /// How many blocks may be under way when the next one is begun.
    fn in_flight_max(&self) -> usize {
        if self.flushing * 2 > self.latency { 1 } else { IN_FLIGHT }
    }
}
