//! Repairing what reads and scrubs met: a bad block is written again only while its place is surely its own.
//!
//! ```text
//!   read  ─▶ zio::Sick ─┐
//!                       ├─▶ a batch ─▶ sync task: still in its tree? ─▶ zio::heal_block: all copies, all parity
//!   scrub ─▶ Scrubber ──┘                                                 └ no good copy: a data error (crate::errors)
//! ```
//!
//! The reader that met it may hold a pointer that was good some txgs ago. What is in the tree of the txg being synced is
//! no other block's, and stays so until that txg is done: no space freed in it is given out before. So both the
//! question and the writing happen **in syncing context**.
//!
//! A scan asks some txgs after it looked. What was overwritten by then may be in a snapshot that was taken before: `later`.

use crate::errors::block_bookmark;
use crate::pool::{Pool, lock};
use crate::walk::is_in_use;
use dsl::error_log::LoggedError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ondisk::BlockPointer;
use units::{HashSet, ObjsetId, Result, Txg};
use zio::{Bookmark, Loss};

/// Blocks repaired in one txg that reads have met.
const BATCH: usize = 64;
/// Batches that a pool which is being closed still sees to.
const LAST_BATCHES: usize = 16;
/// Blocks under repair at once, and their bytes: enough to keep devices busy, and a bound for memory.
const AT_ONCE: usize = 16;
const BYTES_AT_ONCE: u64 = 16 << 20;

impl Pool {
    /// Repairs what reads meet from now on.
    pub(crate) fn start_healer(&self) {
        let task = self.spawn(self.clone().heal_task());
        *lock(&self.0.healer) = Some(task);
    }

    pub(crate) async fn stop_healer(&self) {
        self.heal_the_last().await;
        self.0.pipeline.sick().close();
        let task = lock(&self.0.healer).take();
        if let Some(task) = task {
            task.await;
        }
    }

    async fn heal_task(self) {
        while let Some(batch) = self.0.pipeline.sick().take(BATCH).await {
            // A suspended pool takes no change; what its devices have when it goes on is another matter.
            while let Some(why) = self.suspended().filter(|_| !self.0.txgs.has_failed_for_good()) {
                if self.suspended_otherwise(&Some(why)).await.is_none() {
                    return;
                }
            }
            if let Err(e) = self.change("repair", |pool, _| async move { pool.look_after(batch).await }).await
            {
                if self.suspended().is_some() && !self.0.txgs.has_failed_for_good() {
                    continue;
                }
                self.0.note_problem(format!("what reads find bad is no longer repaired: {e}"));
                self.0.pipeline.sick().close();
            }
        }
    }

    /// What reads have met shortly before the pool is closed.
    async fn heal_the_last(&self) {
        for _ in 0..LAST_BATCHES {
            let batch = self.0.pipeline.sick().take_now(BATCH);
            if (batch.sick.is_empty() && batch.lost.is_empty()) || self.suspended().is_some() {
                return;
            }
            let looked = self.change("repair", |pool, _| async move { pool.look_after(batch).await }).await;
            if looked.is_err() {
                return;
            }
        }
    }

    /// Sees to a batch of what reads have met. In syncing context.
    async fn look_after(self, batch: zio::Batch) -> Result<()> {
        let sick = self.0.pipeline.sick();
        let lost = batch.lost;
        let (garbled, bad): (Vec<_>, Vec<_>) = lost.into_iter().partition(|lost| lost.loss == Loss::Garbled);
        for lost in garbled {
            // There is nothing to repair it with, so only its place matters.
            let is_in_use = is_in_use(&self, lost.at, &lost.bp).await.unwrap_or(true);
            if is_in_use {
                self.note_data_error(lost.at, lost.birth());
            }
            sick.settle(&[lost], !is_in_use);
        }
        let blocks = bad.iter().map(|lost| (lost.at, lost.bp.clone())).chain(batch.sick).collect();
        // What was bad was counted when it was met.
        let healed = self.heal_blocks(blocks, false, None).await;
        let is_lost: HashSet<Bookmark> = healed.lost.iter().map(|lost| lost.at).collect();
        let (lost, good): (Vec<_>, Vec<_>) = bad.into_iter().partition(|bad| is_lost.contains(&bad.at));
        self.note_lost(&healed);
        sick.settle(&lost, false);
        sick.settle(&good, true);
        Ok(())
    }

    /// Lets it be known what a repair could not have, and what was lost and is good now.
    pub(crate) fn note_lost(&self, healed: &Healed) {
        for lost in &healed.lost {
            self.note_data_error(lost.at, lost.birth);
        }
        let good = |(at, birth): &(Bookmark, Txg)| LoggedError { at: block_bookmark(*at), birth: *birth };
        if self.data_error_count() > 0 {
            self.note_data_errors_gone(&healed.good.iter().map(good).collect::<Vec<_>>());
        }
    }

    /// Repairs those of the blocks that are still in use, and with `blame` counts what was bad. In syncing context.
    /// `later`: the set that has them now if theirs does not.
    pub(crate) async fn heal_blocks(
        &self,
        blocks: Vec<(Bookmark, BlockPointer)>,
        blame: bool,
        later: Option<ObjsetId>,
    ) -> Healed {
        let healed = || -> u64 { self.tree().leaves().iter().map(|l| l.stats.snapshot().healed).sum() };
        let before = healed();
        let (mut lost, mut good) = (Vec::new(), Vec::new());
        let mut under_way = FuturesUnordered::new();
        let mut bytes = 0;
        let mut take = |(size, at, birth, is_lost): (u64, Bookmark, Txg, bool)| {
            match is_lost {
                true => lost.push(Lost { at, birth }),
                false => good.push((at, birth)),
            }
            size
        };
        for (at, bp) in blocks {
            let at = match self.place_in_use(at, &bp, later).await {
                // What leads to it cannot be read: that it could be had does not help.
                Err(_) => {
                    take((0, at, birth_of(&bp), true));
                    continue;
                }
                Ok(None) => continue,
                Ok(Some(at)) => at,
            };
            while under_way.len() >= AT_ONCE || (bytes > 0 && bytes + bp.psize().0 > BYTES_AT_ONCE) {
                let Some(done) = under_way.next().await else { break };
                bytes -= take(done);
            }
            bytes += bp.psize().0;
            under_way.push(self.heal_one(at, bp, blame));
        }
        while let Some(done) = under_way.next().await {
            take(done);
        }
        Healed { bytes: healed() - before, lost, good }
    }

    /// Where a block is in use.
    async fn place_in_use(
        &self,
        at: Bookmark,
        bp: &BlockPointer,
        later: Option<ObjsetId>,
    ) -> Result<Option<Bookmark>> {
        if is_in_use(self, at, bp).await? {
            return Ok(Some(at));
        }
        let Some(objset) = later.filter(|later| *later != at.objset) else { return Ok(None) };
        let at = Bookmark { objset, ..at };
        Ok(is_in_use(self, at, bp).await?.then_some(at))
    }

    /// The block's size, name and birth, and whether it could not be had.
    async fn heal_one(&self, at: Bookmark, bp: BlockPointer, blame: bool) -> (u64, Bookmark, Txg, bool) {
        let is_lost = self.pipeline().heal_block(&bp, at, blame).await.is_err();
        (bp.psize().0, at, birth_of(&bp), is_lost)
    }
}

/// The physical birth of a block.
pub(crate) fn birth_of(bp: &BlockPointer) -> Txg {
    bp.as_plain().map_or(Txg::NONE, |plain| plain.resolved_physical_birth())
}

/// What became of a batch.
#[derive(Debug)]
pub(crate) struct Healed {
    /// Written again.
    pub bytes: u64,
    /// Blocks in use that could not be had from anywhere.
    pub lost: Vec<Lost>,
    /// Blocks in use that could, with their births.
    pub good: Vec<(Bookmark, Txg)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub at: Bookmark,
    pub birth: Txg,
}
