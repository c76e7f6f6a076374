//! Repairing what reads and scrubs met: a bad block is written again only while its place is surely its own.
//!
//! ```text
//!   read  ─▶ zio::Sick ─┐
//!                       ├─▶ a batch ─▶ sync task: still in its tree? ─▶ zio::heal_block: all copies, all parity
//!   scrub ─▶ Scrubber ──┘                                                 └ no good copy: a data error that is known
//! ```
//!
//! Whoever met it may hold a pointer that was good some txgs ago. What is in the tree of the txg being synced is
//! nobody else's, and stays so until that txg is done: no space freed in it is given out before. So both the
//! question and the writing happen **in syncing context**.

use crate::pool::{Pool, lock};
use crate::walk::is_in_use;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ondisk::BlockPointer;
use zio::Bookmark;

/// Blocks repaired in one txg that reads have met.
const BATCH: usize = 64;
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
        self.0.pipeline.sick().close();
        let task = lock(&self.0.healer).take();
        if let Some(task) = task {
            task.await;
        }
    }

    async fn heal_task(self) {
        while let Some(batch) = self.0.pipeline.sick().take(BATCH).await {
            let healed =
                self.change("repair", |pool, _| async move { Ok(pool.heal_blocks(batch).await) }).await;
            match healed {
                // Clients have met these errors; they are known from now on.
                Ok(healed) => healed.lost.into_iter().for_each(|lost| self.0.note_problem(lost)),
                Err(e) => {
                    self.0.note_problem(format!("what reads find bad is no longer repaired: {e}"));
                    self.0.pipeline.sick().close();
                }
            }
        }
    }

    /// Repairs those of the blocks that are still in use. In syncing context.
    pub(crate) async fn heal_blocks(&self, blocks: Vec<(Bookmark, BlockPointer)>) -> Healed {
        let healed = || -> u64 { self.tree().leaves().iter().map(|l| l.stats.snapshot().healed).sum() };
        let before = healed();
        let mut lost = Vec::new();
        let mut under_way = FuturesUnordered::new();
        let mut bytes = 0;
        for (at, bp) in blocks {
            match is_in_use(self, at, &bp).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(e) => {
                    lost.push(format!("whether block {at} is in use: {e}"));
                    continue;
                }
            }
            while under_way.len() >= AT_ONCE || (bytes > 0 && bytes + bp.psize().0 > BYTES_AT_ONCE) {
                let Some((size, failure)) = under_way.next().await else { break };
                bytes -= size;
                lost.extend(failure);
            }
            bytes += bp.psize().0;
            under_way.push(self.heal_one(at, bp));
        }
        while let Some((_, failure)) = under_way.next().await {
            lost.extend(failure);
        }
        Healed { bytes: healed() - before, lost }
    }

    /// The block's size, and what went wrong.
    async fn heal_one(&self, at: Bookmark, bp: BlockPointer) -> (u64, Option<String>) {
        let failure = match self.pipeline().heal_block(&bp, at).await {
            Ok(()) => None,
            Err(e) => Some(format!("{}: {e}", self.name_of_objset(at).await)),
        };
        (bp.psize().0, failure)
    }

    async fn name_of_objset(&self, at: Bookmark) -> String {
        if at.objset == units::ObjsetId::MOS {
            return "metadata of the pool".into();
        }
        let name = self.dsl().dataset_name(units::ObjectId(at.objset.0)).await;
        name.unwrap_or_else(|_| format!("object set {}", at.objset))
    }
}

/// What became of a batch.
#[derive(Debug)]
pub(crate) struct Healed {
    /// Written again.
    pub bytes: u64,
    /// Of blocks in use that could not be had from anywhere.
    pub lost: Vec<String>,
}
