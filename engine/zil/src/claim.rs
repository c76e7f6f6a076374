//! Claiming a log: what a pool that is opened for writing does with it first of all.
//!
//! After a crash the blocks of a log that were allocated since the last txg are free as far as the space maps know, and
//! so are the blocks of data that records point to. In the first txg, before anything is allocated, their space is taken:
//!
//! ```text
//!   walk the chain;  each block, and each block that a record points to, born after the last txg: taken
//!                    what was written of them: written again on devices that do not have it
//!   header: claimed in this txg, up to this block and this record
//! ```
//!
//! Of what was not promised yet, one device of a mirror alone may have a block. Claimed it is promised, and that device may
//! be the next to leave: the log would end before what was claimed, and the space behind that never be freed.
//!
//! A record that points to a block which cannot be read ends the log: no client was told that it was done, for the one that
//! told would have waited for that block too. Once claimed, a log stays as it is until it is replayed, however many
//! imports that takes; and [`Chain`] never goes beyond what was claimed.

use crate::chain::{Chain, End, Position, Source, bookmark};
use ondisk::zil::pointers;
use ondisk::{BlockPointer, Dva, LogRecordHeader, LogRecordKind, Reader, ZilHeader};
use std::collections::BTreeSet;
use units::{Error, Kind, ObjectId, ObjsetId, Result, Txg};
use world::Pending;
use zio::{Bookmark, Pipeline};

/// What takes and gives back the space of blocks that are no part of any tree.
pub trait Claimer: Source {
    /// Takes the space of a block that was written after the last txg.
    fn claim(&self, bp: &BlockPointer, txg: Txg) -> Pending<Result<()>>;

    /// Writes a block that was read again wherever it is not. No device is blamed.
    ///
    /// # Errors
    /// When no copy is good any more; what cannot be written counts as an error of its device.
    fn spread(&self, bp: &BlockPointer, at: Bookmark) -> Pending<Result<()>>;
}

impl Claimer for Pipeline {
    fn claim(&self, bp: &BlockPointer, txg: Txg) -> Pending<Result<()>> {
        let (pipeline, bp) = (self.clone(), bp.clone());
        Box::pin(async move { Pipeline::claim(&pipeline, &bp, txg).await })
    }

    fn spread(&self, bp: &BlockPointer, at: Bookmark) -> Pending<Result<()>> {
        let (pipeline, bp) = (self.clone(), bp.clone());
        Box::pin(async move { pipeline.heal_block(&bp, at, false).await })
    }
}

/// What claiming found.
#[derive(Debug)]
pub struct Claim {
    /// What the header is from now on; the same as before when the log had been claimed before.
    pub header: ZilHeader,
    pub blocks: u64,
    pub records: u64,
    /// Why the log was cut short, when not only because it was not written any further.
    pub cut: Option<Error>,
}

/// Names the copies of a block that were met.
type Places = BTreeSet<(u32, u64)>;

/// Whether a block is met for the first time; what is in no place is not.
pub(crate) fn is_new(met: &mut Places, bp: &BlockPointer) -> bool {
    let place = |dva: &Dva| (dva.vdev.0, dva.offset.0);
    bp.as_plain().is_some_and(|plain| met.insert(place(&plain.dvas[0])))
}

/// Whether a block was put where it is in `txg` or later.
pub(crate) fn is_since(bp: &BlockPointer, txg: Txg) -> bool {
    bp.as_plain().is_some_and(|plain| plain.resolved_physical_birth() >= txg)
}

/// Claims a log in `first`, the first txg of this opening of the pool; nothing was allocated in it yet.
pub async fn claim(claimer: &dyn Claimer, objset: ObjsetId, header: &ZilHeader, first: Txg) -> Result<Claim> {
    assert!(header.claim_txg == Txg::NONE, "a log is claimed once");
    let mut chain = Chain::new(as_source(claimer), objset, header);
    let mut claiming = Claiming { claimer, objset, first, met: Places::new(), upto: Position::default() };
    let (mut blocks, mut records, mut cut) = (0, 0, None);
    'log: while let Some(link) = chain.next().await {
        if let Err(e) = claiming.block(&link.pointer).await {
            cut = Some(e);
            break;
        }
        if link.block.is_some() {
            claiming.spread(&link.pointer, bookmark(objset, link.number)).await;
        }
        claiming.upto.block = link.number;
        blocks += 1;
        for (head, reader) in link.block.iter().flat_map(|block| block.records()) {
            if let Err(e) = claiming.record(head, reader).await {
                // A block of data that was still on its way: this record and those after it were not acknowledged.
                cut = (e.kind() != Kind::Checksum).then_some(e);
                break 'log;
            }
            records += 1;
        }
    }
    if let Some(End::Malformed(e) | End::Unreadable(e)) = chain.end() {
        cut.get_or_insert_with(|| Error::new(e.kind(), e.to_string()));
    }
    let Position { block, record } = claiming.upto;
    let needed = if records > 0 || blocks > 1 { ZilHeader::REPLAY_NEEDED } else { 0 };
    let header = ZilHeader {
        claim_txg: first,
        claim_block_seq: block,
        claim_record_seq: record,
        flags: header.flags | needed | ZilHeader::CLAIM_RECORD_SEQ_VALID,
        ..header.clone()
    };
    Ok(Claim { header, blocks, records, cut })
}

fn as_source(claimer: &dyn Claimer) -> &dyn Source {
    claimer
}

struct Claiming<'a> {
    claimer: &'a dyn Claimer,
    objset: ObjsetId,
    first: Txg,
    met: Places,
    upto: Position,
}

impl Claiming<'_> {
    async fn block(&mut self, bp: &BlockPointer) -> Result<()> {
        if is_since(bp, self.first) && is_new(&mut self.met, bp) {
            self.claimer.claim(bp, self.first).await?;
        }
        Ok(())
    }

    /// It was read a moment ago: if it no longer can be, the log is as good as it was.
    async fn spread(&self, bp: &BlockPointer, at: Bookmark) {
        let _ = self.claimer.spread(bp, at).await;
    }

    async fn record(&mut self, head: &LogRecordHeader, mut reader: Reader<'_>) -> Result<()> {
        let is_clone = head.kind() == Some(LogRecordKind::CloneRange);
        for bp in pointers(&mut reader)? {
            if is_clone {
                // It belongs to another owner, in whose last txg it must be.
                if is_since(&bp, self.first) {
                    return Err(Error::corrupt(format!(
                        "record {} clones a block that is on its way",
                        head.seq
                    )));
                }
                continue;
            }
            if is_since(&bp, self.first) {
                let blkid = head.seq;
                let at = Bookmark { objset: self.objset, object: ObjectId(0), level: -2, blkid };
                self.claimer.read_log(&bp, at, false).await?;
                self.block(&bp).await?;
                self.spread(&bp, at).await;
            }
        }
        self.upto.record = head.seq;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
