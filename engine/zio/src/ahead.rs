//! Reading ahead: blocks that nothing waits for yet, those that lie side by side with one operation.
//!
//! ```text
//!   begin ─▶ lead of each in the cache ─▶ runs ─┬─ of several ─▶ one read ─▶ each verified, unpacked, landed
//!            (not in memory, nor asked for)     │                   └─ refused, or not the block: as a single one
//!                                               └─ of one ─────▶ as any other read
//! ```
//!
//! A reader in order has its blocks written in order, most often: of small ones, what is done for each costs more than its
//! bytes. A run is on one device that stands alone, and no longer than what the device's queue would put together anyway
//! (`zfs_vdev_aggregation_limit_non_rotating`). Mirrors and raidz choose devices block by block, and are asked so; so is
//! every device while cache devices may have the block, or requests are timed stage by stage.
//!
//! A pointer in hand may be older than the tree, or one copy of its block missing: so what is wrong here counts for nothing,
//! is not noted, and the block is not kept. A request that needs the block reads it, and says what it met.
//!
//! Invariant: a block that others wait for here lands, or is let go, whatever becomes of its neighbours.

use crate::inner::Inner;
use crate::pipeline::cache_kind;
use crate::read::{Verified, unpack_quietly, verifier};
use crate::second::{self, Missed};
use crate::store::Bookmark;
use arc::{Access, Loading, Request};
use ondisk::{BlockPointer, Plain};
use std::sync::Arc;
use vdev::{Care, Priority};
use world::{Buf, IoBuf};

/// A block of which the lead was taken.
struct Wanted {
    bp: BlockPointer,
    at: Bookmark,
    missed: Missed,
    loading: Loading,
}

/// Starts reading those of `blocks` that are neither in memory nor being read.
pub(crate) fn begin(inner: &Arc<Inner>, blocks: Vec<(BlockPointer, Bookmark)>) {
    let mut wanted = blocks.into_iter().filter_map(|(bp, at)| lead(inner, bp, at));
    let Some(first) = wanted.next() else { return };
    let mut run = vec![first];
    let mut room = room_behind(inner, &run[0]);
    for next in wanted {
        if let Some(left) = left_for(inner, room, &run[run.len() - 1], &next) {
            room = left;
            run.push(next);
            continue;
        }
        room = room_behind(inner, &next);
        spawn(inner, std::mem::replace(&mut run, vec![next]));
    }
    spawn(inner, run);
}

fn lead(inner: &Arc<Inner>, bp: BlockPointer, at: Bookmark) -> Option<Wanted> {
    let block = inner.cache_id(&bp)?;
    if inner.young.get(&block).is_some() {
        return None;
    }
    let kind = cache_kind(&bp);
    let origin = second::origin(inner, &bp, at.objset, kind);
    let loading =
        inner.cache.begin(Request { access: Access::Prefetch, origin, ..Request::demand(block, kind) })?;
    Some(Wanted { bp, at, missed: Missed { block, kind, origin, is_prefetch: true }, loading })
}

/// What may be read together with others.
fn plain_of<'a>(inner: &Inner, bp: &'a BlockPointer) -> Option<&'a Plain> {
    let is_usual = |plain: &Plain| {
        !plain.dvas[0].gang && plain.crypt.is_none() && !plain.checksum_kind.is_self_contained()
    };
    bp.as_plain().filter(|plain| is_usual(plain) && !inner.second.is_active() && !world::stages::is_timed())
}

/// How many bytes behind this block may be read with it.
fn room_behind(inner: &Inner, first: &Wanted) -> u64 {
    let room = || {
        let plain = plain_of(inner, &first.bp)?;
        let top = inner.top(&plain.dvas[0]).ok()?;
        top.together_max().checked_sub(plain.dvas[0].asize.bytes())
    };
    room().unwrap_or(0)
}

/// What is left of `room` when `next` is read with `last`; `None` when it is not where that ends, or too long.
fn left_for(inner: &Inner, room: u64, last: &Wanted, next: &Wanted) -> Option<u64> {
    if room == 0 {
        return None;
    }
    let (last, next) = (last.bp.as_plain()?.dvas[0], plain_of(inner, &next.bp)?);
    let dva = next.dvas[0];
    let is_behind = dva.vdev == last.vdev && dva.offset.0 == last.offset.0.checked_add(last.asize.0)?;
    if is_behind { room.checked_sub(dva.asize.bytes()) } else { None }
}

fn spawn(inner: &Arc<Inner>, run: Vec<Wanted>) {
    let inner = inner.clone();
    // Detached: nothing waits for what is read ahead.
    drop(world::spawn(async move { read(&inner, run).await }));
}

async fn read(inner: &Arc<Inner>, run: Vec<Wanted>) {
    let together = if run.len() > 1 { read_together(inner, &run).await } else { None };
    let care = Care::hopeful(Priority::AsyncRead);
    let mut place = 0;
    for Wanted { bp, at, missed, loading } in run {
        let raw = together.as_ref().and_then(|whole| part(inner, whole, place, &bp));
        place += bp.as_plain().map_or(0, |plain| plain.dvas[0].asize.bytes() as usize);
        let _ = match raw {
            Some(raw) => loading.land(unpack_quietly(&bp, raw).await.map(alone)),
            None => loading.land_from(Box::pin(second::read(inner, &bp, at, &care, missed))).await,
        };
        world::breathe().await;
    }
}

/// The block in memory of its own: as a slice it would keep that of its neighbours when they have left the cache, of which
/// no account is made. The copy is of what the processor has at hand.
fn alone(block: Buf) -> Buf {
    if block.capacity() < 2 * block.len() {
        return block;
    }
    let mut own = IoBuf::to_fill(block.len());
    own.copy_from_slice(&block);
    own.freeze()
}

/// All of the run, unverified.
async fn read_together(inner: &Arc<Inner>, run: &[Wanted]) -> Option<Buf> {
    let plains = || run.iter().filter_map(|wanted| wanted.bp.as_plain());
    let dva = plains().next()?.dvas[0];
    let top = inner.top(&dva).ok()?;
    let may_miss = plains().any(|plain| top.misses(plain.resolved_physical_birth()));
    // Where a block ends by its pointer is where the next one was found to begin; it must end there by its length too, since
    // without a checksum nothing else would tell.
    let is_whole = |plain: &Plain| top.psize_to_asize(plain.psize.0) == plain.dvas[0].asize.bytes();
    if may_miss || !plains().all(is_whole) {
        return None;
    }
    let psizes: Vec<usize> = plains().map(|plain| plain.psize.0 as usize).collect();
    top.read_together(dva.offset.bytes(), &psizes, Priority::AsyncRead).await
}

/// The bytes of one block among those of its run, if it is what its pointer says.
fn part(inner: &Inner, whole: &Buf, place: usize, bp: &BlockPointer) -> Option<Verified> {
    let plain = bp.as_plain()?;
    let end = place.checked_add(plain.psize.0 as usize)?;
    if end > whole.len() {
        return None;
    }
    let raw = whole.slice(place..end);
    verifier(inner, plain)(&raw).then_some(Verified(raw))
}
