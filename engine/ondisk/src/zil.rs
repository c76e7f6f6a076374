//! The intent log: its header in the object set, the head of each log block, and the head of each record.
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

/// What every record of the log begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecordHeader {
    pub kind: LogRecordKind,
    /// The request ignored case in names.
    pub ignores_case: bool,
    /// Bytes of the whole record, this header included: a multiple of 8.
    pub length: u64,
    /// The txg the change itself belongs to: replay skips records of txgs already synced.
    pub txg: Txg,
    pub seq: u64,
}

/// What a record of the log repeats (`TX_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LogRecordKind {
    Commit = 0,
    Create = 1,
    Mkdir = 2,
    MkXattrDir = 3,
    Symlink = 4,
    Remove = 5,
    Rmdir = 6,
    Link = 7,
    Rename = 8,
    Write = 9,
    Truncate = 10,
    SetAttr = 11,
    AclV0 = 12,
    Acl = 13,
    CreateAcl = 14,
    CreateAttr = 15,
    CreateAclAttr = 16,
    MkdirAcl = 17,
    MkdirAttr = 18,
    MkdirAclAttr = 19,
    /// A write whose block was written in place of the data, and only its pointer logged.
    Write2 = 20,
    SetSaXattr = 21,
    RenameExchange = 22,
    RenameWhiteout = 23,
    CloneRange = 24,
}

impl LogRecordKind {
    pub fn from_code(code: u64) -> Option<LogRecordKind> {
        use LogRecordKind::*;
        [
            Commit,
            Create,
            Mkdir,
            MkXattrDir,
            Symlink,
            Remove,
            Rmdir,
            Link,
            Rename,
            Write,
            Truncate,
            SetAttr,
            AclV0,
            Acl,
            CreateAcl,
            CreateAttr,
            CreateAclAttr,
            MkdirAcl,
            MkdirAttr,
            MkdirAclAttr,
            Write2,
            SetSaXattr,
            RenameExchange,
            RenameWhiteout,
            CloneRange,
        ]
        .into_iter()
        .find(|k| *k as u64 == code)
    }
}

const IGNORES_CASE: u64 = 1 << 63;

impl LogRecordHeader {
    pub const SIZE: usize = 32;

    pub fn decode(r: &mut Reader<'_>) -> Result<LogRecordHeader> {
        let code = r.u64()?;
        let kind = LogRecordKind::from_code(code & !IGNORES_CASE)
            .ok_or_else(|| r.corrupt(format_args!("unknown record type {code:#x}")))?;
        let length = r.u64()?;
        if length < LogRecordHeader::SIZE as u64 || !length.is_multiple_of(8) {
            return Err(r.corrupt(format_args!("a record of {length} bytes")));
        }
        let ignores_case = code & IGNORES_CASE != 0;
        Ok(LogRecordHeader { kind, ignores_case, length, txg: Txg(r.u64()?), seq: r.u64()? })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let case = if self.ignores_case { IGNORES_CASE } else { 0 };
        w.u64s(&[self.kind as u64 | case, self.length, self.txg.0, self.seq]);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::blkptr::tests::any_pointer;
    use crate::testing::{Numbers, assault, check_round_trip};
    use units::Endian;

    pub(crate) fn any_header(n: &mut Numbers) -> ZilHeader {
        ZilHeader {
            claim_txg: Txg(n.bits(64)),
            replay_seq: n.bits(64),
            log: any_pointer(n),
            claim_block_seq: n.bits(64),
            flags: n.bits(2),
            claim_record_seq: n.bits(64),
        }
    }

    fn any_chain(n: &mut Numbers) -> ZilChain {
        ZilChain { next: any_pointer(n), used: n.bits(32), trailer: Trailer::new([n.next(); 4]) }
    }

    #[test]
    fn headers_chains_and_records_survive_the_round_trip_in_both_orders() {
        let mut n = Numbers(10);
        for _ in 0..100 {
            check_round_trip(&any_header(&mut n), ZilHeader::SIZE, ZilHeader::encode, ZilHeader::decode);
            check_round_trip(&any_chain(&mut n), ZilChain::SIZE, ZilChain::encode, ZilChain::decode);
            let record = LogRecordHeader {
                kind: LogRecordKind::from_code(n.below(25)).unwrap(),
                ignores_case: n.flag(),
                length: 32 + 8 * n.bits(20),
                txg: Txg(n.bits(64)),
                seq: n.bits(64),
            };
            check_round_trip(&record, 32, LogRecordHeader::encode, LogRecordHeader::decode);
        }
        assert_eq!(LogRecordKind::from_code(25), None);
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let mut good = vec![0; ZilHeader::SIZE + ZilChain::SIZE];
        let mut w = Writer::new(&mut good, Endian::Little);
        any_header(&mut Numbers(11)).encode(&mut w);
        any_chain(&mut Numbers(12)).encode(&mut w);
        assault(&good, |bytes, endian| {
            let mut r = Reader::new(bytes, endian, "test");
            let _ = ZilHeader::decode(&mut r);
            let _ = ZilChain::decode(&mut r);
            let _ = LogRecordHeader::decode(&mut Reader::new(bytes, endian, "test"));
        });
    }
}
