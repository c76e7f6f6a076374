//! Reading ahead: seeing that an object is read in order, and asking for the blocks that come next.
//!
//! A [`PrefetchStream`] remembers where each of a few readers left off. A read that begins where one ended extends that
//! stream, and the window ahead of it doubles up to [`MAX_AHEAD`]; a read elsewhere starts a new stream in place of the one
//! longest idle. [`PrefetchStream::observe`] is pure and says which blocks to fetch; [`Object::observe_read`] fetches them.
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
    /// The block after the last one read.
    next: u64,
    /// The block after the last one asked for in advance.
    fetched: u64,
    /// How far ahead to be, in blocks.
    window: u64,
}

impl PrefetchStream {
    /// Takes note of a read of `blocks`; the answer is what to fetch now.
    fn observe(&mut self, blocks: &Range<u64>, max_window: u64) -> Range<u64> {
        self.next = blocks.end;
        self.window = (self.window * 2).clamp(2, max_window);
        let start = self.fetched.max(blocks.end);
        // Ask in halves of the window, not block by block, so that neighbours reach the disk together.
        if start > blocks.end + self.window / 2 {
            return start..start;
        }
        let end = blocks.end + self.window;
        self.fetched = end;
        start..end
    }
}

impl PrefetchStreams {
    /// Which blocks to fetch after a read of `blocks` of an object whose blocks have `block_size` bytes.
    pub fn observe(&self, blocks: Range<u64>, block_size: u64) -> Range<u64> {
        let max_window = (MAX_AHEAD / block_size).max(2);
        let mut prefetch_streams = lock(&self.0);
        if let Some(i) =
            prefetch_streams.iter().position(|s| s.next == blocks.start || s.next == blocks.start + 1)
        {
            let mut stream = prefetch_streams.remove(i);
            let fetch = stream.observe(&blocks, max_window);
            prefetch_streams.push(stream);
            return fetch;
        }
        if prefetch_streams.len() >= MAX_STREAMS {
            prefetch_streams.remove(0);
        }
        prefetch_streams.push(PrefetchStream { next: blocks.end, fetched: blocks.end, window: 0 });
        blocks.end..blocks.end
    }
}

impl Object {
    /// Tells the read-ahead of a read of `blocks`, and starts fetching what will be wanted next.
    pub fn observe_read(&self, prefetch_streams: &PrefetchStreams, blocks: Range<u64>) {
        let attrs = self.attrs();
        let fetch = prefetch_streams.observe(blocks, u64::from(attrs.block_size));
        for blkid in fetch.start..fetch.end.min(attrs.max_blkid + 1) {
            let object = self.clone();
            // Detached: nothing waits for a prefetch.
            drop(world::spawn(async move { object.prefetch_block(blkid).await }));
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

    #[test]
    fn reading_in_order_is_seen_and_reading_at_random_is_not() {
        let prefetch_streams = PrefetchStreams::default();
        assert!(prefetch_streams.observe(10..11, 16384).is_empty(), "one read is no streak");
        let second = prefetch_streams.observe(11..12, 16384);
        assert_eq!(second, 12..14);
        let mut fetched = second.end;
        for block in 12..200 {
            let fetch = prefetch_streams.observe(block..block + 1, 16384);
            assert!(
                fetch.is_empty() || fetch.start == fetched,
                "each block is fetched once: {fetch:?} after {fetched}"
            );
            fetched = fetched.max(fetch.end);
            assert!(fetched > block + 1, "the reader is never caught up with");
        }
        assert!(fetched - 200 <= MAX_AHEAD / 16384);
        for block in [5000, 700, 91, 4400, 2] {
            assert!(prefetch_streams.observe(block..block + 1, 16384).is_empty());
        }
    }
}
