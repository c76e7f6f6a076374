//! Reading ahead: seeing that an object is read in order, and asking for the blocks that come next.
//!
//! A [`PrefetchStream`] remembers where each of a few readers left off. A read that begins where one ended extends that
//! stream; a read elsewhere starts a new stream in place of the one longest idle. [`PrefetchStream::observe`] is pure and
//! says which blocks to fetch; [`Object::observe_read`] fetches them.
//!
//! ```text
//!   blocks   │         │         │         │         │         │
//!   reads    ├─1─┤├─2─┤├─3─┤                  2 stays in the block of 1: it brings nothing nearer
//!                           ├─ as much as was read in order, in whole blocks, up to MAX_AHEAD
//! ```
//!
//! Invariant: a stream has never fetched more bytes in advance than were read of it in order. A request that arrives in
//! parts, as initiators cut large ones, looks like a reader in order, and so does now and then one of many at random:
//! where they stop, at most as much as they have read was fetched in vain.
//!
//! A caller that knows which objects will be opened says so to [`ObjSet::prefetch_dnodes`]. Nothing waits for what is
//! fetched in advance; [`aside`] makes a task only of what is not in the cache.

use crate::lock::lock;
use crate::object::Object;
use crate::objset::ObjSet;
use std::future::Future;
use std::ops::Range;
use std::sync::Mutex;
use std::task::{Context, Waker};
use units::ObjectId;

/// Readers told apart, as several clients or threads may read one object.
const MAX_STREAMS: usize = 8;
/// How far ahead, in bytes: enough to keep a disk array busy while one block is consumed (`zfetch_max_distance`).
const MAX_AHEAD: u64 = 8 << 20;

/// The readers of one object.
#[derive(Debug, Default)]
pub struct PrefetchStreams(Mutex<Vec<PrefetchStream>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PrefetchStream {
    /// The byte after the last one read.
    next: u64,
    /// Bytes read in order.
    run: u64,
    /// The block after the last one asked for in advance.
    fetched: u64,
}

impl PrefetchStream {
    /// Whether a read that begins at `offset` goes on where this stream is: at its end, in the block where that is, or in
    /// the block behind it.
    fn is_continued_at(&self, offset: u64, block_size: u64) -> bool {
        let (next, start) = (self.next.div_ceil(block_size), offset / block_size);
        next == start || next == start + 1
    }

    /// Takes note of a read of the bytes of `range`, which continues this stream; the answer is what blocks to fetch now.
    fn observe(&mut self, range: &Range<u64>, block_size: u64) -> Range<u64> {
        let (had, end) = (self.next.div_ceil(block_size), range.end.div_ceil(block_size));
        if end <= had {
            // In a block that was read before: it counts when it is in order, and brings no other block nearer.
            if range.start == self.next {
                self.run += range.end - range.start;
                self.next = range.end;
            }
            return end..end;
        }
        self.run += range.end - range.start;
        self.next = range.end;
        let window = self.run.min(MAX_AHEAD.max(2 * block_size)) / block_size;
        let start = self.fetched.max(end);
        // Ask in halves of the window, not block by block, so that neighbours reach the disk together.
        if start > end + window / 2 || start >= end + window {
            return start..start;
        }
        self.fetched = end + window;
        start..self.fetched
    }
}

impl PrefetchStreams {
    /// Which blocks to fetch after a read of the bytes of `range` of an object whose blocks have `block_size` bytes.
    pub fn observe(&self, range: Range<u64>, block_size: u64) -> Range<u64> {
        let mut prefetch_streams = lock(&self.0);
        if let Some(i) = prefetch_streams.iter().position(|s| s.is_continued_at(range.start, block_size)) {
            let mut stream = prefetch_streams.remove(i);
            let fetch = stream.observe(&range, block_size);
            prefetch_streams.push(stream);
            return fetch;
        }
        if prefetch_streams.len() >= MAX_STREAMS {
            prefetch_streams.remove(0);
        }
        let end = range.end.div_ceil(block_size);
        prefetch_streams.push(PrefetchStream { next: range.end, run: range.end - range.start, fetched: end });
        end..end
    }
}

impl Object {
    /// Tells the read-ahead of a read of the bytes of `range`, and starts fetching what will be wanted next.
    pub fn observe_read(&self, prefetch_streams: &PrefetchStreams, range: Range<u64>) {
        let (block_size, max_blkid) = self.shape();
        let fetch = prefetch_streams.observe(range, block_size);
        let fetch = fetch.start..fetch.end.min(max_blkid + 1);
        if !fetch.is_empty() {
            let object = self.clone();
            // Detached: nothing waits for a prefetch.
            drop(world::spawn(async move { object.prefetch_blocks(fetch).await }));
        }
    }
}

/// Does something that is not waited for: what need not wait itself here and now, the rest as a task.
pub fn aside(work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    // The task looks once more before it waits, so nothing need be told of this look.
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        drop(world::spawn(work));
    }
}

impl ObjSet {
    /// Starts fetching the dnodes of objects that will probably be opened soon.
    pub fn prefetch_dnodes(&self, ids: impl IntoIterator<Item = ObjectId>) {
        for blkid in self.closed_dnode_blocks(ids) {
            let meta = self.meta().clone();
            aside(async move { meta.prefetch_block(blkid).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1 << 10;

    /// A reader at random places: reproducible, and by no means in order.
    fn places(seed: u64) -> impl Iterator<Item = u64> {
        let mut x = seed | 1;
        std::iter::repeat_with(move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        })
    }

    #[test]
    fn reading_in_order_is_seen_and_reading_at_random_is_not() {
        for (block, request) in
            [(16 * K, 16 * K), (16 * K, 4 * K), (16 * K, 128 * K), (128 * K, 512), (1024 * K, 1024 * K)]
        {
            let streams = PrefetchStreams::default();
            let at = 10 * block;
            assert!(streams.observe(at..at + request, block).is_empty(), "one read is no streak");
            let (mut fetched, mut offset, mut in_time) = (0, at + request, false);
            while offset < at + 64 * MAX_AHEAD.min(4096 * request) {
                let fetch = streams.observe(offset..offset + request, block);
                offset += request;
                assert!(
                    fetch.is_empty() || fetched == 0 || fetch.start == fetched,
                    "each block is fetched once: {fetch:?} after {fetched}"
                );
                if !fetch.is_empty() {
                    fetched = fetch.end;
                }
                in_time |= fetched * block > offset;
                assert!(!in_time || (fetched + 1) * block > offset, "the reader is never caught up with");
                let ahead = (fetched * block).saturating_sub(offset.next_multiple_of(block));
                assert!(ahead <= MAX_AHEAD.max(2 * block) && ahead <= offset - at, "{ahead} bytes ahead");
            }
            assert!(in_time, "blocks of {block} read by {request} are fetched in advance");
        }
        let streams = PrefetchStreams::default();
        for at in [5000, 700, 91, 4400, 2] {
            assert!(streams.observe(at * 16 * K..(at + 1) * 16 * K, 16 * K).is_empty());
        }
    }

    /// Bytes fetched in advance and not asked for, for each byte that is, by requests of 1 MiB at random, aligned to
    /// `align`, that arrive in parts.
    fn in_vain(seed: u64, block: u64, part: u64, align: u64) -> f64 {
        let (streams, lun, requests) = (PrefetchStreams::default(), 8 << 30, 500);
        let mut in_vain = 0;
        for place in places(seed).take(requests) {
            let at = (place % (lun - 1024 * K)) / align * align;
            let end = (at + 1024 * K).div_ceil(block);
            for offset in (at..at + 1024 * K).step_by(part as usize) {
                let fetch = streams.observe(offset..offset + part, block);
                in_vain += fetch.filter(|blkid| *blkid >= end).count() as u64 * block;
            }
        }
        in_vain as f64 / (requests as u64 * 1024 * K) as f64
    }

    #[test]
    fn a_request_at_random_that_arrives_in_parts_fetches_nothing_else_from_a_large_block() {
        for seed in 1..20 {
            for part in [4 * K, 64 * K, 256 * K, 512 * K, 1024 * K] {
                let aligned = in_vain(seed, 1024 * K, part, 1024 * K);
                assert!(
                    aligned < 0.02,
                    "seed {seed}, parts of {part}: {aligned} bytes in vain for each asked for"
                );
                for block in [16 * K, 128 * K, 1024 * K] {
                    let anywhere = in_vain(seed, block, part, 4 * K);
                    assert!(anywhere <= 1.05, "seed {seed}, blocks of {block}, parts of {part}: {anywhere}");
                }
            }
        }
    }
}
