//! The intent log: its header in the object set, the head of each log block, and the records.
//!
//! ```text
//!   ZilHeader ──log──> block ──next──> block ──next──> ...       each block names the next before that is written
//!
//!   new style (checksum zilog2)                 old style (zilog)
//!   | chain, 184 bytes | records ...      |     | records ...            | chain, 184 bytes |
//!
//!   chain    0 padding    8 next block pointer    136 bytes used    144 trailer (magic, checksum)
//!   record   0 type       8 length                 16 txg            24 sequence number        32 its own fields
//! ```
//!
//! A block belongs to the chain if the checksum words in the pointer to it are those of its trailer: the last of
//! them counts blocks, so that an old block in the same place is not taken for a new one.
//!
//! Records: [`LogRecord`] is one of them with its head, [`Record`] what it says. `record` lays out which fields follow
//! the head for each kind; what several kinds share has a file of its own: `write`, `create`, `attributes`, `acl`.

mod acl;
mod attributes;
mod create;
mod head;
mod record;
mod text;
mod write;

pub use acl::{Ace, LogAcl};
pub use attributes::{ExtendedAttributes, SetAttr, SetSaXattr};
pub use create::{Create, CreateKind, NewNode};
pub use head::{LogRecordHeader, LogRecordKind};
pub use record::{Acl, AclV0, Link, LogRecord, Record, Remove, Rename, RenameKind, Truncate};
pub use write::{CloneRange, Write, pointers};

use crate::blkptr::BlockPointer;
use crate::bytes::{Reader, Writer};
use crate::trailer::Trailer;
use units::{Result, Txg};

/// Where the log of an object set begins, and how far it was claimed and replayed.
///
/// ```text
///     0  claim txg           8  replayed up to record       16  block pointer to the first block
///   144  claimed up to block 152  flags                     160  claimed up to record   168  padding to 192
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZilHeader {
    /// The txg in which the blocks of an unreplayed log were marked allocated; 0 when there is no such log.
    pub claim_txg: Txg,
    pub replay_seq: u64,
    pub log: BlockPointer,
    pub claim_block_seq: u64,
    pub flags: u64,
    pub claim_record_seq: u64,
}

impl ZilHeader {
    pub const SIZE: usize = 192;
    /// In `flags`: set in memory by OpenZFS while a replay is due.
    pub const REPLAY_NEEDED: u64 = 1;
    /// In `flags`: `claim_record_seq` counts.
    pub const CLAIM_RECORD_SEQ_VALID: u64 = 2;

    pub fn decode(r: &mut Reader<'_>) -> Result<ZilHeader> {
        let header = ZilHeader {
            claim_txg: Txg(r.u64()?),
            replay_seq: r.u64()?,
            log: BlockPointer::decode(r)?,
            claim_block_seq: r.u64()?,
            flags: r.u64()?,
            claim_record_seq: r.u64()?,
        };
        r.skip(24)?;
        Ok(header)
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.claim_txg.0, self.replay_seq]);
        self.log.encode(w);
        w.u64s(&[self.claim_block_seq, self.flags, self.claim_record_seq]);
        w.zeros(24);
    }
}

/// Head (or, in the old style, tail) of a log block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZilChain {
    pub next: BlockPointer,
    /// Bytes of the block in use: with the chain in the new style, without it in the old.
    pub used: u64,
    pub trailer: Trailer,
}

impl ZilChain {
    pub const SIZE: usize = 184;

    pub fn decode(r: &mut Reader<'_>) -> Result<ZilChain> {
        r.skip(8)?;
        Ok(ZilChain { next: BlockPointer::decode(r)?, used: r.u64()?, trailer: Trailer::decode(r)? })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.zeros(8);
        self.next.encode(w);
        w.u64(self.used);
        self.trailer.encode(w);
    }
}

#[cfg(test)]
pub(crate) mod tests;
