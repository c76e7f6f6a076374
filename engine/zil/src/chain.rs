//! Reading a log: block after block from its header, and the records in each.
//!
//! ```text
//!   header ─▶ pointer 1 ─▶ block 1 ─▶ pointer 2 ─▶ block 2 ─▶ pointer 3 ─▶ not the block: the log ends
//!                          records                 records
//! ```
//!
//! The writer of a log allocates a block before it has anything to put into it, so the last pointer of an intact log
//! leads to whatever was on the device before. A block carries the log on only if
//!
//! - its checksum is right when its words are taken to be those of the pointer: so it was written for this pointer;
//! - and its next pointer has the same words but for the last, which counts blocks and is one more.
//!
//! So a chain cannot lead back to itself. Where a log that was never claimed ends is its end, whatever the reason. What was
//! *claimed* is a promise of an earlier import: the header says up to which block and record, [`Chain`] goes no further,
//! and a log that ends before that is damaged, which [`Chain::damage`] says.

use ondisk::{BlockPointer, LogRecordHeader, Plain, Reader, ZilChain, ZilHeader};
use std::ops::Range;
use units::{Checksum, Endian, Error, Kind, ObjectId, ObjsetId, Result, Txg};
use world::{Buf, Pending};
use zio::{Bookmark, Pipeline};

/// Where blocks of logs are read from.
pub trait Source: Send + Sync {
    /// The bytes on disk of a log block, or of a block that a log points to, past every cache.
    /// See [`Pipeline::read_log`] for `must_be_there` and for the errors.
    fn read_log(&self, bp: &BlockPointer, at: Bookmark, must_be_there: bool) -> Pending<Result<Buf>>;
}

impl Source for Pipeline {
    fn read_log(&self, bp: &BlockPointer, at: Bookmark, must_be_there: bool) -> Pending<Result<Buf>> {
        let (pipeline, bp) = (self.clone(), bp.clone());
        Box::pin(async move { Ok(Pipeline::read_log(&pipeline, &bp, at, must_be_there).await?.0) })
    }
}

/// How often a block that was claimed is read again when it is not what it was: the only device that has it, since nothing
/// had been promised, may give other bytes now and then. What a walk does not meet would not be replayed, nor freed.
const TRIES: u32 = 8;

/// The name of a log block.
pub fn bookmark(objset: ObjsetId, number: u64) -> Bookmark {
    Bookmark { objset, object: ObjectId(0), level: -2, blkid: number }
}

/// Walks a log. See the module.
pub struct Chain<'a> {
    source: &'a dyn Source,
    objset: ObjsetId,
    claimed: Option<Claimed>,
    next: BlockPointer,
    last: Position,
    end: Option<End>,
}

/// How far an earlier import has claimed the log.
#[derive(Clone, Copy, Debug)]
struct Claimed {
    block: u64,
    /// Old programs did not note it.
    record: Option<u64>,
}

/// A place in a log: numbers of the last block and record met so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub block: u64,
    pub record: u64,
}

/// Why a walk ended.
#[derive(Debug)]
pub enum End {
    /// The last pointer leads to a block that does not carry the log on. So do logs end that were not claimed.
    NotCarriedOn,
    /// All that was claimed was met.
    Claimed,
    /// A block that is proven to belong to the log holds what cannot be.
    Malformed(Error),
    /// A block could not be read: a device is gone.
    Unreadable(Error),
}

/// One pointer of the chain, and the block if it was written.
#[derive(Debug)]
pub struct Link {
    pub pointer: BlockPointer,
    /// Counts the blocks of a log, from 1.
    pub number: u64,
    /// None for a block that was allocated and, as far as can be told, never written.
    pub block: Option<Block>,
}

/// A block of a log.
#[derive(Debug)]
pub struct Block {
    data: Buf,
    endian: Endian,
    /// Heads are in clear, most else is ciphertext.
    pub is_encrypted: bool,
    records: Vec<(LogRecordHeader, Range<usize>)>,
    next: BlockPointer,
    problem: Option<Error>,
}

impl<'a> Chain<'a> {
    pub fn new(source: &'a dyn Source, objset: ObjsetId, header: &ZilHeader) -> Chain<'a> {
        let record = header.flags & ZilHeader::CLAIM_RECORD_SEQ_VALID != 0;
        let claimed = (header.claim_txg != Txg::NONE).then(|| Claimed {
            block: header.claim_block_seq,
            record: record.then_some(header.claim_record_seq),
        });
        let next = header.log.clone();
        Chain { source, objset, claimed, next, last: Position::default(), end: None }
    }

    /// The next pointer of the chain; none when it has ended.
    pub async fn next(&mut self) -> Option<Link> {
        if self.end.is_some() {
            return None;
        }
        let pointer = self.next.clone();
        let Some(plain) = pointer.as_plain() else { return self.finish(End::NotCarriedOn) };
        let number = number_of(plain);
        if self.claimed.is_some_and(|claimed| number > claimed.block) {
            return self.finish(End::Claimed);
        }
        self.last.block = number;
        let block = match self.is_complete() {
            // The last block that was claimed need not have been written.
            true => Err(End::Claimed),
            false => self.read(&pointer, plain, number).await,
        };
        let block = match block {
            Ok(block) => Some(self.accept(block)),
            Err(end) => {
                self.end = Some(end);
                None
            }
        };
        Some(Link { pointer, number, block })
    }

    fn finish(&mut self, end: End) -> Option<Link> {
        self.end = Some(end);
        None
    }

    async fn read(&self, pointer: &BlockPointer, plain: &Plain, number: u64) -> Result<Block, End> {
        let at = bookmark(self.objset, number);
        let must_be_there = self.claimed.is_some();
        let mut data = self.source.read_log(pointer, at, must_be_there).await;
        for _ in 0..TRIES {
            if !must_be_there || !matches!(&data, Err(e) if e.kind() == Kind::Checksum) {
                break;
            }
            data = self.source.read_log(pointer, at, must_be_there).await;
        }
        let data = data.map_err(|e| match e.kind() {
            Kind::Checksum => End::NotCarriedOn,
            _ => End::Unreadable(e),
        })?;
        let block = decode(plain, data).map_err(End::Malformed)?;
        let mut expected = plain.checksum;
        expected[3] = number.wrapping_add(1);
        match block.next.as_plain() {
            Some(next) if next.checksum == expected => Ok(block),
            _ => Err(End::NotCarriedOn),
        }
    }

    /// Takes the records in, up to the last that was claimed, and goes on to the next block.
    fn accept(&mut self, mut block: Block) -> Block {
        self.next = block.next.clone();
        let limit = self.claimed.and_then(|claimed| claimed.record).unwrap_or(u64::MAX);
        let mut kept = 0;
        for (header, _) in &block.records {
            if header.seq > limit {
                self.end = Some(End::Claimed);
                break;
            }
            if header.seq <= self.last.record {
                let problem = format!("record {} follows record {}", header.seq, self.last.record);
                block.problem = Some(Error::corrupt(problem));
                break;
            }
            self.last.record = header.seq;
            kept += 1;
        }
        block.records.truncate(kept);
        if self.end.is_none()
            && let Some(problem) = block.problem.take()
        {
            self.end = Some(End::Malformed(problem));
        }
        block
    }

    fn is_complete(&self) -> bool {
        self.claimed.is_some_and(|claimed| match claimed.record {
            Some(record) => self.last == Position { block: claimed.block, record },
            None => self.last.block >= claimed.block,
        })
    }

    /// The last block and record that were met.
    pub fn position(&self) -> Position {
        self.last
    }

    /// Why the walk ended; none while it goes on.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// What is wrong with a log that has been walked to its end: only what was claimed must be there.
    pub fn damage(&self) -> Option<Error> {
        let claimed = self.claimed?;
        if self.end.is_none() || self.is_complete() {
            return None;
        }
        let Position { block, record } = self.last;
        let upto = claimed.record.map_or(String::new(), |record| format!(" record {record}"));
        let what = format!(
            "the intent log ends at block {block} record {record}, but goes on to block {}{upto}",
            claimed.block
        );
        let error = Error::corrupt(what);
        Some(match &self.end {
            Some(End::Malformed(cause) | End::Unreadable(cause)) => error.because(cause.to_string()),
            _ => error,
        })
    }
}

impl std::fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain(of {}, at {:?}, ended {:?})", self.objset, self.last, self.end)
    }
}

impl Block {
    /// The records with their bytes, heads included.
    pub fn records(&self) -> impl Iterator<Item = (&LogRecordHeader, Reader<'_>)> {
        self.records.iter().map(|(header, range)| {
            let bytes = self.data.get(range.clone()).unwrap_or_default();
            (header, Reader::new(bytes, self.endian, "log record"))
        })
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// The number of the block a pointer leads to.
fn number_of(plain: &Plain) -> u64 {
    plain.checksum[3]
}

/// Takes a block apart. What is wrong with its records is noted: those before it count.
fn decode(plain: &Plain, data: Buf) -> Result<Block> {
    let is_new = plain.checksum_kind == Checksum::Zilog2;
    let size = ZilChain::SIZE;
    let short = || Error::corrupt(format!("a log block of {} bytes", data.len()));
    let chain_at = if is_new { 0 } else { data.len().checked_sub(size).ok_or_else(short)? };
    let bytes = data.get(chain_at..chain_at + size).ok_or_else(short)?;
    let chain = ZilChain::decode(&mut Reader::new(bytes, plain.endian, "log block"))?;
    let (from, limit) = if is_new { (size, data.len()) } else { (0, chain_at) };
    let end = usize::try_from(chain.used).ok().filter(|end| (from..=limit).contains(end));
    let end = end.ok_or_else(|| Error::corrupt(format!("a log block with {} bytes in use", chain.used)))?;
    let (records, problem) = records_in(&data, plain.endian, from..end);
    let is_encrypted = plain.crypt.is_some();
    Ok(Block { data, endian: plain.endian, is_encrypted, records, next: chain.next, problem })
}

fn records_in(
    data: &Buf,
    endian: Endian,
    range: Range<usize>,
) -> (Vec<(LogRecordHeader, Range<usize>)>, Option<Error>) {
    let (mut records, mut at) = (Vec::new(), range.start);
    while at < range.end {
        let mut r = Reader::new(data.get(at..range.end).unwrap_or_default(), endian, "log record");
        let header = match LogRecordHeader::decode(&mut r) {
            Ok(header) => header,
            Err(e) => return (records, Some(e)),
        };
        if header.length > (range.end - at) as u64 {
            let problem = format!("a record of {} bytes in {}", header.length, range.end - at);
            return (records, Some(Error::corrupt(problem)));
        }
        let end = at + header.length as usize;
        records.push((header, at..end));
        at = end;
    }
    (records, None)
}

#[cfg(test)]
mod tests;
