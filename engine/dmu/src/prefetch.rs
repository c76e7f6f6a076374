//! Reading ahead: seeing what readers of an object will want next, and asking for it.
//!
//! ```text
//!   read ─▶ Streams::observe (pure: `streams`) ─▶ blocks ─┬─ in memory, a hole, or not on disk yet: nothing to do
//!                                                         └─ else ─▶ BlockStore::read_ahead ─▶ the cache
//! ```
//!
//! [`Object::observe_read`] is told of every read, and costs some tens of nanoseconds where nothing is to be fetched. A
//! caller that knows which objects will be opened says so to [`ObjSet::prefetch_dnodes`]. Nothing waits for what is fetched
//! in advance; [`aside`] makes a task only of what is not in the cache.
//!
//! What may be fetched: of a dataset, what its properties `prefetch` and `primarycache` let be, since what may not stay
//! would only be read twice; of a pool, nothing while it is suspended or `zfs_prefetch_disable` is set
//! ([`zio::ReadAhead`]).
//!
//! Invariant: only what the stable tree points to is fetched. What a txg that is not synced yet wrote or freed is not looked
//! for: it is in memory, or its place is about to be another block's.

mod at_hand;
mod streams;

use crate::dirty_record::Found;
use crate::lock::lock;
use crate::object::Object;
use crate::objset::ObjSet;
use crate::policy::Caching;
use crate::tree::Tree;
use at_hand::AtHand;
use ondisk::BlockPointer;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use streams::{Fetch, Read, Streams};
use units::ObjectId;
use zio::{AheadLimits, Bookmark, ReadClass};

/// So many blocks are looked up before others get their turn: of 8K as much as is read with one operation.
const PIECE: u64 = 64;

/// The readers of one object. Takes no memory before the first read.
#[derive(Debug, Default)]
pub struct PrefetchStreams {
    streams: Mutex<Option<Box<Streams>>>,
    at_hand: AtHand,
}

/// What of an object a reader must know to be read ahead of: the size of its blocks, and the number of the last; of an
/// object whose end is looked up when it matters, [`Shape::UNENDING`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub block_size: u64,
    pub max_blkid: u64,
}

impl Shape {
    pub const UNENDING: u64 = u64::MAX;
}

impl PrefetchStreams {
    /// What is to be fetched after a read, and before that for what was read at hand beside it.
    fn observe(&self, bytes: Range<u64>, block_size: u64, limits: &AheadLimits) -> [Option<Fetch>; 2] {
        let before = self.at_hand.beside(&bytes);
        let mut streams = lock(&self.streams);
        let streams = streams.get_or_insert_default();
        let mut tell = |bytes| streams.observe(&Read::new(bytes, block_size), block_size, limits);
        let of_before = before.and_then(&mut tell);
        [of_before, tell(bytes)]
    }
}

impl Object {
    /// The size of the object's blocks, and the number of the last.
    pub fn shape(&self) -> Shape {
        let state = self.node.lock();
        Shape { block_size: u64::from(state.attrs.block_size), max_blkid: state.attrs.max_blkid }
    }

    /// As [`Object::observe_read`], of blocks that were [at hand](Object::block_at_hand).
    pub fn observe_at_hand(&self, streams: &PrefetchStreams, range: Range<u64>) {
        if !range.is_empty() {
            streams.at_hand.note(range);
        }
    }

    /// Tells the read-ahead of a read of the bytes of `range`, and starts fetching what will be wanted next.
    pub fn observe_read(&self, streams: &PrefetchStreams, shape: Shape, range: Range<u64>) {
        let shared = &self.node.shared;
        if shape.max_blkid == 0 || range.is_empty() || shared.ahead_takes() == Caching::None {
            return;
        }
        let limits = shared.ahead.limits();
        if limits.streams == 0 {
            return;
        }
        for fetch in streams.observe(range, shape.block_size, &limits).into_iter().flatten() {
            self.fetch(&fetch);
        }
    }

    /// Begins to fetch what is there of it.
    #[cold]
    fn fetch(&self, fetch: &Fetch) {
        let shared = &self.node.shared;
        if !shared.ahead.may_begin() {
            return;
        }
        let Shape { block_size, max_blkid } = self.shape();
        let (blocks, pointers) = (fetch.blocks(block_size, max_blkid), fetch.pointers(max_blkid));
        let from_end = matches!(fetch, Fetch::Run { from_end: true, .. });
        let with_data = shared.ahead_takes() == Caching::All;
        let object = self.clone();
        aside(async move {
            for range in blocks {
                match with_data {
                    true => object.prefetch_blocks(range, from_end).await,
                    false => object.prefetch_pointers(range).await,
                }
            }
            object.prefetch_pointers(pointers).await;
        });
    }

    /// Brings a block into the cache that will probably be asked for.
    pub async fn prefetch_block(&self, blkid: u64) {
        let is_metadata = self.node.lock().attrs.kind.is_metadata();
        if self.node.shared.ahead.may_begin() && self.node.shared.ahead_takes().takes(is_metadata) {
            self.prefetch_group(blkid..blkid + 1).await;
        }
    }

    async fn prefetch_blocks(&self, range: Range<u64>, from_end: bool) {
        let pieces = (range.end - range.start).div_ceil(PIECE);
        for i in 0..pieces {
            let start = range.start + PIECE * if from_end { pieces - 1 - i } else { i };
            self.prefetch_group(start..range.end.min(start + PIECE)).await;
            world::breathe().await;
        }
    }

    /// As [`Object::prefetch_block`] for a few of them: the tree is asked once for those under one indirect block, and the
    /// devices for neighbours together.
    async fn prefetch_group(&self, range: Range<u64>) {
        let shared = &self.node.shared;
        let mut from = range.start;
        while from < range.end {
            let (tree, blocks, end) = self.on_devices(from..range.end);
            if !blocks.is_empty() {
                // A caller that needs a block meets the error again, and reports it.
                let Ok(mut pointers) = tree.find_side_by_side(shared, self.node.id, from..end).await else {
                    return;
                };
                let wanted = blocks.into_iter().filter_map(|blkid| {
                    let bp =
                        std::mem::replace(pointers.get_mut((blkid - from) as usize)?, BlockPointer::HOLE);
                    let at = Bookmark { objset: shared.id, object: self.node.id, level: 0, blkid };
                    bp.as_plain().is_some().then_some((bp, at))
                });
                shared.store.read_ahead(wanted.collect());
            }
            from = end;
        }
    }

    /// Brings the indirect blocks into the cache that have the pointers to these.
    async fn prefetch_pointers(&self, range: Range<u64>) {
        let shared = &self.node.shared;
        let tree = self.node.lock().stable.clone();
        let mut from = range.start;
        while from < range.end && tree.levels > 1 {
            let blkid = from >> tree.fan_out_shift();
            let Ok(bp) = tree.find_as(shared, self.node.id, (1, blkid), ReadClass::Prefetch).await else {
                return;
            };
            if bp.as_plain().is_some() {
                let at = Bookmark { objset: shared.id, object: self.node.id, level: 1, blkid };
                shared.store.read_ahead(vec![(bp, at)]);
            }
            from = tree.end_of_group(from);
            world::breathe().await;
        }
    }

    /// Those of the range that are on devices as the tree has them, up to the end of the first indirect block, which is
    /// returned.
    fn on_devices(&self, range: Range<u64>) -> (Arc<Tree>, Vec<u64>, u64) {
        let state = self.node.lock();
        let tree = state.stable.clone();
        let end = tree.end_of_group(range.start).min(range.end);
        let dirty_records: Vec<_> = state.dirty_records_newest_first().collect();
        let is_clean = |blkid: &u64| dirty_records.iter().all(|of| matches!(of.find(*blkid), Found::NotHere));
        let blocks = (range.start..end).filter(is_clean).collect();
        (tree, blocks, end)
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
        if !self.meta().node.shared.ahead.may_begin() {
            return;
        }
        for blkid in self.closed_dnode_blocks(ids) {
            let meta = self.meta().clone();
            aside(async move { meta.prefetch_block(blkid).await });
        }
    }
}
