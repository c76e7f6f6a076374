//! Reading ahead: blocks that nothing waits for yet, those that lie side by side with one operation.
//!
//! ```text
//!   begin ─▶ lead of each in the cache ─▶ runs ─┬─ on one device ─▶ one read ─▶ each verified, unpacked, landed
//!            (not in memory, nor asked for)     │                      └─ refused, or not the block: as any other read
//!                                               └─ else: of one block, as any other read
//! ```
//!
//! A reader in order has its blocks written in order, most often: what is done for each of small ones costs more than its
//! bytes. A run is on one device that stands alone, and has a bound ([`vdev::Top::together_max`]); a block that is longer is
//! a run by itself. Each is read into memory of its own. Mirrors and raidz choose devices block by block, and are asked so;
//! so is every device while cache devices may have the block, or requests are timed stage by stage.
//!
//! A pointer in hand may be older than the tree, or one copy of its block missing: so what is wrong here counts for nothing,
//! is not noted, and the block is not kept. A request that needs the block reads it, and says what it met.
//!
//! Invariant: a block that others wait for here lands, or is let go, whatever becomes of its neighbours.

use crate::inner::Inner;
use crate::pipeline::cache_kind;
use crate::read::{Proof, Verified, unpack_quietly};
use crate::second::{self, Missed};
use crate::store::Bookmark;
use arc::{Access, Loading, Request};
use ondisk::{BlockPointer, Plain};
use std::sync::Arc;
use vdev::{Care, Priority};
use world::Buf;

/// A block of which the lead was taken.
struct Wanted {
    bp: BlockPointer,
    at: Bookmark,
    missed: Missed,
    loading: Loading,
}

/// Blocks that are read one behind the other.
struct Run {
    blocks: Vec<Wanted>,
    /// How many bytes more may be read with them; `None` when even these are not read together.
    room: Option<u64>,
}

/// Starts reading those of `blocks` that are neither in memory nor being read.
pub(crate) fn begin(inner: &Arc<Inner>, blocks: Vec<(BlockPointer, Bookmark)>) {
    let mut wanted = blocks.into_iter().filter_map(|(bp, at)| lead(inner, bp, at));
    let Some(first) = wanted.next() else { return };
    let mut run = Run::of(inner, first);
    for next in wanted {
        match run.left_for(inner, &next) {
            Some(left) => {
                run.room = Some(left);
                run.blocks.push(next);
            }
            None => spawn(inner, std::mem::replace(&mut run, Run::of(inner, next))),
        }
    }
    spawn(inner, run);
}

impl Run {
    fn of(inner: &Inner, first: Wanted) -> Run {
        let room = || {
            let plain = plain_of(inner, &first.bp)?;
            let max = inner.top(&plain.dvas[0]).ok()?.together_max()?;
            Some(max.saturating_sub(plain.dvas[0].asize.bytes()))
        };
        Run { room: room(), blocks: vec![first] }
    }

    /// What is left of the room when `next` is read with it; `None` when it is not where the run ends, or too long.
    fn left_for(&self, inner: &Inner, next: &Wanted) -> Option<u64> {
        let room = self.room.filter(|room| *room > 0)?;
        let last = self.blocks.last()?.bp.as_plain()?.dvas[0];
        let dva = plain_of(inner, &next.bp)?.dvas[0];
        let is_behind = dva.vdev == last.vdev && dva.offset.0 == last.offset.0.checked_add(last.asize.0)?;
        if is_behind { room.checked_sub(dva.asize.bytes()) } else { None }
    }
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

fn spawn(inner: &Arc<Inner>, run: Run) {
    let inner = inner.clone();
    // Detached: nothing waits for what is read ahead.
    drop(world::spawn(async move { read(&inner, run).await }));
}

async fn read(inner: &Arc<Inner>, run: Run) {
    let together = if run.room.is_some() { read_together(inner, &run.blocks).await } else { None };
    let mut raws = together.unwrap_or_default().into_iter();
    let care = Care::hopeful(Priority::AsyncRead);
    for Wanted { bp, at, missed, loading } in run.blocks {
        let _ = match raws.next().and_then(|raw| proven(inner, raw, &bp)) {
            Some(raw) => loading.land(unpack_quietly(&bp, raw).await),
            None => loading.land_from(Box::pin(second::read(inner, &bp, at, &care, missed))).await,
        };
        world::breathe().await;
    }
}

/// The bytes of each block of the run, unverified; all of them, or none.
async fn read_together(inner: &Arc<Inner>, run: &[Wanted]) -> Option<Vec<Buf>> {
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

/// The bytes, if they are what their pointer says.
fn proven(inner: &Inner, raw: Buf, bp: &BlockPointer) -> Option<Verified> {
    Proof::of(bp.as_plain()?).holds(&inner.checksummer(), &raw).then_some(Verified(raw))
}
