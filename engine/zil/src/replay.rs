//! Replaying a log that was claimed, and doing away with it.
//!
//! ```text
//!   for each record:  a transaction ─▶ what it says is done ─▶ header.replay_seq = its number     both sync together
//!   at the end:       blocks freed, header cleared, in one txg
//! ```
//!
//! A crash in the midst loses whole txgs: the header on disk says up to which record the data on disk have them, and
//! the next import goes on from there. So that this holds, the header may never run ahead of the data: it is one value for
//! all txgs, and is only changed for a txg when the one before it has synced.
//!
//! Cloned blocks are copied: their content is written as if it had been in the record. So nothing has to count references
//! to blocks, but the blocks must be there until then. A log with clones is replayed before any other, and of the rest
//! of its records none frees what an earlier one has cloned.
//!
//! A record of a txg that was on disk when the log was claimed is not repeated. One whose object is gone is passed over
//! where its kind may be out of order. What else cannot be done is tried again after a txg, for what the first try
//! met may have been on its way out; then replay stops, and the log stays as it is: what it still holds was promised to
//! somebody, and only somebody can decide that it is to be lost.

use crate::chain::{Chain, Source};
use crate::claim::{is_new, is_since};
use dmu::{ObjSet, Tx};
use ondisk::zil::{CloneRange, Truncate, Write, pointers};
use ondisk::{BlockPointer, EmbeddedKind, LogRecord, LogRecordKind, Record, ZilHeader};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use txg::{Claim, Reach, Txgs};
use units::{Endian, Error, Kind, ObjectId, ObjsetId, Result, Txg};
use world::Buf;
use zio::{Bookmark, Verified};

/// What knows what records mean for a kind of dataset.
pub trait Replayer: Send + Sync {
    /// Does what `record` says, in `tx`; it is never a [`Record::CloneRange`]. `block` is the content of the block that an
    /// indirect write points to.
    fn replay<'a>(
        &'a self,
        tx: &'a Tx,
        record: &'a Record<'a>,
        block: Option<&'a Buf>,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;
}

/// The bytes of most records, with what hangs on them.
const RECORD_MAX: u64 = 256 << 10;

/// What a replay did.
#[derive(Debug, Default)]
pub struct Outcome {
    pub replayed: u64,
    /// Passed over: on disk already, or for an object that is gone.
    pub skipped: u64,
    /// Why it ended before the end of the log, and with which record.
    pub failed: Option<Error>,
}

/// Replays what is left of the log of `set`, which was claimed, and whose claim has synced.
///
/// No other task may change the set meanwhile.
pub async fn replay(
    source: &dyn Source,
    txgs: &Txgs,
    set: &ObjSet,
    replayer: &dyn Replayer,
) -> Result<Outcome> {
    let header = set.phys().zil_header;
    assert!(header.claim_txg != Txg::NONE, "what is replayed was claimed");
    let mut chain = Chain::new(source, set.id(), &header);
    let mut run = Run { source, txgs, set, replayer, header, outcome: Outcome::default(), last: Txg::NONE };
    // The claim is on disk; so is everything else when no txg before the open one is under way.
    txgs.sync().await?;
    'log: while let Some(link) = chain.next().await {
        let Some(block) = link.block else { continue };
        for (head, mut reader) in block.records() {
            let Err(e) = run.record(head.seq, head.txg, head.kind(), || LogRecord::decode(&mut reader)).await
            else {
                continue;
            };
            let kind = head.kind().map_or("unknown", LogRecordKind::name);
            run.outcome.failed = Some(e.at(format!("record {} ({kind})", head.seq)));
            break 'log;
        }
    }
    if run.outcome.failed.is_none() {
        run.outcome.failed = chain.damage();
    }
    txgs.sync().await?;
    Ok(run.outcome)
}

struct Run<'a> {
    source: &'a dyn Source,
    txgs: &'a Txgs,
    set: &'a ObjSet,
    replayer: &'a dyn Replayer,
    header: ZilHeader,
    outcome: Outcome,
    /// The txg that the header was changed in last.
    last: Txg,
}

impl Run<'_> {
    async fn record<'r>(
        &mut self,
        seq: u64,
        txg: Txg,
        kind: Option<LogRecordKind>,
        decode: impl FnOnce() -> Result<LogRecord<'r>>,
    ) -> Result<()> {
        if seq <= self.header.replay_seq || txg < self.header.claim_txg {
            self.outcome.skipped += 1;
            return Ok(());
        }
        let record = decode()?.record;
        let is_unordered = kind.is_some_and(LogRecordKind::is_unordered);
        if let Some(object) = record.object().filter(|_| is_unordered)
            && self.is_gone(object).await?
        {
            self.outcome.skipped += 1;
            return Ok(());
        }
        let block = match &record {
            Record::Write(write) if write.is_indirect() => {
                let at = Bookmark { objset: self.set.id(), object: write.object, level: -2, blkid: seq };
                Some(read_block(self.source, &write.pointer, at).await?)
            }
            _ => None,
        };
        if self.whole(seq, &record, block.as_ref()).await.is_err() {
            self.txgs.sync().await?;
            self.whole(seq, &record, block.as_ref()).await?;
        }
        self.outcome.replayed += 1;
        Ok(())
    }

    /// Whether there is no such object, on disk or made by a record before.
    async fn is_gone(&self, object: ObjectId) -> Result<bool> {
        match self.set.object(object).await {
            Err(e) if e.kind() == Kind::NotFound => Ok(true),
            found => found.map(|_| false),
        }
    }

    async fn whole(&mut self, seq: u64, record: &Record<'_>, block: Option<&Buf>) -> Result<()> {
        match record {
            Record::CloneRange(clone) => self.copy(seq, clone).await,
            _ => self.apply(Some(seq), record, block).await,
        }
    }

    /// Block by block. The record counts as replayed with the last of them; until then all of it can be repeated.
    async fn copy(&mut self, seq: u64, clone: &CloneRange) -> Result<()> {
        let &CloneRange { object, offset, length, block_size, .. } = clone;
        let is_sound = block_size > 0
            && offset.checked_add(length).is_some()
            && clone.pointers.len() as u64 == length.div_ceil(block_size);
        if !is_sound {
            let count = clone.pointers.len();
            return Err(Error::corrupt(format!("{count} cloned blocks of {block_size} for {length} bytes")));
        }
        for (i, bp) in (0..).zip(&clone.pointers) {
            let at = i * block_size;
            let (offset, length) = (offset + at, block_size.min(length - at));
            let seq = (at + length == clone.length).then_some(seq);
            if bp.is_hole() {
                let truncate = Record::Truncate(Truncate { object, offset, length });
                self.apply(seq, &truncate, None).await?;
                continue;
            }
            let name = Bookmark { objset: self.set.id(), object, level: 0, blkid: offset / block_size };
            let block = read_block(self.source, bp, name).await?;
            if block.len() as u64 != block_size {
                let len = block.len();
                return Err(Error::corrupt(format!("a cloned block of {len} bytes instead of {block_size}")));
            }
            let write = Record::Write(Write::copied(object, offset, &block[..length as usize]));
            self.apply(seq, &write, None).await?;
        }
        Ok(())
    }

    async fn apply(&mut self, seq: Option<u64>, record: &Record<'_>, block: Option<&Buf>) -> Result<()> {
        let tx = self.begin().await?;
        self.replayer.replay(&tx, record, block).await?;
        if let Some(seq) = seq {
            self.set.update_phys(&tx, |phys| phys.zil_header.replay_seq = seq);
        }
        tx.dirtied(1);
        self.last = tx.txg();
        Ok(())
    }

    /// Joins the open txg. What is in the log was promised: where not even the space kept for frees is left, it goes on
    /// with what is kept for syncs.
    async fn join(&self) -> Result<Tx> {
        let devices = self.set.store().charge_max(RECORD_MAX, 3);
        match self.txgs.begin_for(Claim { memory: 0, devices, reach: Reach::Freeing }).await {
            Err(e) if e.kind() == Kind::NoSpace => Ok(self.txgs.begin_unthrottled()),
            joined => joined,
        }
    }

    /// Joins a txg such that every txg which the header was changed in before is this one, or has synced.
    async fn begin(&self) -> Result<Tx> {
        loop {
            let tx = self.join().await?;
            if self.last == Txg::NONE || tx.txg() == self.last || self.txgs.synced_txg() >= self.last {
                return Ok(tx);
            }
            drop(tx);
            self.txgs.wait_synced(self.last).await?;
        }
    }
}

/// The content of a block that a record points to.
pub async fn read_block(source: &dyn Source, bp: &BlockPointer, at: Bookmark) -> Result<Buf> {
    if let Some(embedded) = bp.as_embedded() {
        if embedded.etype != EmbeddedKind::Data {
            return Err(Error::corrupt("a pointer that holds no data").at(at));
        }
        return zio::unpack(bp, &Verified(Buf::copy_from(embedded.data()))).map_err(|e| e.at(at));
    }
    if bp.as_plain().is_none() {
        return Ok(Buf::zeroed(bp.lsize().0 as usize));
    }
    if bp.endian() != Endian::NATIVE && bp.kind().byteswap().is_some() {
        return Err(Error::unsupported("data of the other byte order in a log"));
    }
    let raw = source.read_log(bp, at, true).await?;
    zio::unpack(bp, &Verified(raw)).map_err(|e| e.at(at))
}

/// The blocks of a log that was claimed, or of one that holds nothing: those that are freed when it is done away with.
///
/// The blocks of data that records point to are among them if they were claimed with the log; older ones belong to
/// somebody else.
pub async fn blocks(source: &dyn Source, objset: ObjsetId, header: &ZilHeader) -> Vec<BlockPointer> {
    let mut chain = Chain::new(source, objset, header);
    let (mut met, mut blocks) = (BTreeSet::new(), Vec::new());
    while let Some(link) = chain.next().await {
        let records = link.block.iter().flat_map(|block| block.records());
        let claimed = header.claim_txg != Txg::NONE;
        let pointed = records.filter(|_| claimed).filter_map(|(_, mut reader)| pointers(&mut reader).ok());
        let pointed = pointed.flatten().filter(|bp| is_since(bp, header.claim_txg));
        for bp in pointed.chain([link.pointer.clone()]) {
            if is_new(&mut met, &bp) {
                blocks.push(bp);
            }
        }
    }
    blocks
}

/// Does away with the log of `set`, in `tx`: frees its blocks and clears its header.
///
/// Walks the log as it is on disk: no writer may be at work on it.
pub async fn destroy(source: &dyn Source, set: &ObjSet, tx: &Tx) {
    let header = set.phys().zil_header;
    for bp in blocks(source, set.id(), &header).await {
        set.store().free(&bp, tx.txg());
    }
    set.update_phys(tx, |phys| phys.zil_header = ZilHeader::default());
    tx.dirtied(1);
}
