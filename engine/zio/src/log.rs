//! Blocks of the intent log: a place first, the content later.
//!
//! ```text
//!   allocate ─▶ a pointer without a checksum, for the block before to name ─▶ write ─▶ flush ─▶ … ─▶ free
//! ```
//!
//! A log block is not like other blocks. What names it is written before its content is known, so it carries its checksum
//! within, bound to words that its pointer has. It is written once, in one copy, as far as it is in use, and read only
//! after a crash: so it does not go through the cache, and it is never a gang, for it must be found in one read.

use crate::pipeline::Pipeline;
use crate::store::BlockStore;
use futures_util::future::try_join_all;
use metaslab::{Class, Request};
use ondisk::{BlockPointer, ObjectType, Plain};
use std::sync::Arc;
use units::{Checksum, Compression, Endian, Lsize, Psize, Result, Txg, VdevId};
use vdev::{Priority, Top};
use world::{Buf, IoBuf, Pending, boxed};

/// What an intent log needs of a pool.
pub trait LogStore: Send + Sync + 'static {
    /// Takes a place of `size` bytes, in the open txg `txg` which the caller holds: on log devices if there are any.
    /// The pointer is that of a new-style log block, its checksum words still to be set.
    fn allocate_log(&self, size: u64, txg: Txg) -> Pending<Result<Plain>>;

    /// Writes the beginning of a log block: all that is in use. What is not `urgent` waits in the queue of a txg's writes.
    fn write_log(&self, at: &Plain, block: Buf, urgent: bool) -> Pending<Result<()>>;

    /// Gives a log block's space back in `txg`, which is not older than its birth.
    fn free_log(&self, at: &Plain, txg: Txg);

    /// Makes durable what was written to these vdevs.
    fn flush(&self, vdevs: Vec<VdevId>) -> Pending<Result<()>>;

    /// Makes durable what was written to any.
    fn flush_all(&self) -> Pending<Result<()>>;

    /// Whether there are devices for logs alone.
    fn has_log_devices(&self) -> bool;
}

impl LogStore for Pipeline {
    fn allocate_log(&self, size: u64, txg: Txg) -> Pending<Result<Plain>> {
        let inner = self.0.clone();
        boxed(|| async move {
            let request = Request::new(Class::Log, Psize(size), 1, txg);
            let dvas = inner.space()?.allocate(&request).await?;
            Ok(Plain {
                dvas,
                lsize: Lsize(size),
                psize: Psize(size),
                compression: Compression::Off,
                checksum_kind: Checksum::Zilog2,
                kind: ObjectType::INTENT_LOG,
                level: 0,
                birth: txg,
                physical_birth: Txg::NONE,
                fill: 0,
                checksum: [0; 4],
                endian: Endian::NATIVE,
                dedup: false,
                rewritten: false,
                crypt: None,
            })
        })
    }

    fn write_log(&self, at: &Plain, block: Buf, urgent: bool) -> Pending<Result<()>> {
        let (inner, dva, psize) = (self.0.clone(), at.dvas[0], at.psize.0 as usize);
        let priority = if urgent { Priority::SyncWrite } else { Priority::AsyncWrite };
        boxed(|| async move {
            // A raidz block of another length would lie elsewhere: readers know only the whole one.
            let is_spread = dva.asize.bytes() > psize as u64;
            let block = if is_spread && block.len() < psize { lengthened(&block, psize) } else { block };
            inner.top(&dva)?.write(dva.offset.bytes(), block, priority).await
        })
    }

    fn free_log(&self, at: &Plain, txg: Txg) {
        self.free(&BlockPointer::Plain(at.clone()), txg);
    }

    fn flush(&self, vdevs: Vec<VdevId>) -> Pending<Result<()>> {
        let tops = vdevs.into_iter().filter_map(|id| self.0.devices.top(id)).collect();
        Box::pin(flush_tops(tops))
    }

    fn flush_all(&self) -> Pending<Result<()>> {
        Box::pin(flush_tops(self.0.devices.tops()))
    }

    fn has_log_devices(&self) -> bool {
        self.0.space.as_ref().is_some_and(|space| space.has_class(Class::Log))
    }
}

async fn flush_tops(tops: Vec<Arc<Top>>) -> Result<()> {
    match &tops[..] {
        [top] => top.flush().await,
        _ => try_join_all(tops.iter().map(|top| top.flush())).await.map(drop),
    }
}

fn lengthened(block: &[u8], len: usize) -> Buf {
    let mut whole = IoBuf::zeroed(len);
    whole[..block.len()].copy_from_slice(block);
    whole.freeze()
}
