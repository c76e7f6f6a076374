//! Records that carry data, or say where data is: writes and clones.

use crate::blkptr::{BLKPTR_SIZE, BlockPointer};
use crate::bytes::{Reader, Writer};
use crate::zil::{LogRecordHeader, LogRecordKind};
use units::{ObjectId, Result};

/// A write: with its data in the record, or beside it in a block of the pool.
///
/// ```text
///   32  object    40  offset    48  length    56  (no longer used)    64  pointer    192  data, if any
/// ```
///
/// A record that ends at 192 is *indirect*: its data are those of the block at `pointer`, all of it, and `offset`
/// and `length` say which part of it was written; a hole stands for zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Write<'a> {
    pub object: ObjectId,
    /// In bytes, as is `length`.
    pub offset: u64,
    pub length: u64,
    pub pointer: BlockPointer,
    /// `length` bytes, or none when the record is indirect.
    pub data: &'a [u8],
}

impl<'a> Write<'a> {
    /// Bytes of the record in front of the data: where its own fields end.
    pub const HEAD: usize = LogRecordHeader::SIZE + 32 + BLKPTR_SIZE;

    /// A write whose data are in the record.
    pub fn copied(object: ObjectId, offset: u64, data: &'a [u8]) -> Write<'a> {
        Write { object, offset, length: data.len() as u64, pointer: BlockPointer::HOLE, data }
    }

    /// Whether the data are at `pointer`.
    pub fn is_indirect(&self) -> bool {
        self.data.is_empty()
    }

    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Write<'a>> {
        let [object, offset, length, _] = r.u64s()?;
        let pointer = BlockPointer::decode(r)?;
        if offset.checked_add(length).is_none() {
            return Err(r.corrupt(format_args!("a write of {length} bytes at {offset}")));
        }
        let data = match usize::try_from(length) {
            _ if r.is_empty() => &[],
            Ok(length) => r.bytes(length)?,
            Err(_) => return Err(r.corrupt(format_args!("a write of {length} bytes"))),
        };
        Ok(Write { object: ObjectId(object), offset, length, pointer, data })
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        assert!(self.is_indirect() || self.data.len() as u64 == self.length, "all the data or none");
        w.u64s(&[self.object.0, self.offset, self.length, 0]);
        self.pointer.encode(w);
        w.bytes(self.data);
    }

    pub(super) fn length(&self) -> usize {
        Write::HEAD + self.data.len()
    }
}

/// Blocks of another file that this one took over.
///
/// ```text
///   32  object    40  offset    48  length    56  block size    64  how many pointers    72  pointers
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneRange {
    pub object: ObjectId,
    pub offset: u64,
    pub length: u64,
    pub block_size: u64,
    pub pointers: Vec<BlockPointer>,
}

impl CloneRange {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<CloneRange> {
        let [object, offset, length, block_size, count] = r.u64s()?;
        if count > (r.remaining() / BLKPTR_SIZE) as u64 {
            return Err(r.corrupt(format_args!("{count} pointers in {} bytes", r.remaining())));
        }
        let pointers = (0..count).map(|_| BlockPointer::decode(r)).collect::<Result<_>>()?;
        Ok(CloneRange { object: ObjectId(object), offset, length, block_size, pointers })
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        let count = self.pointers.len() as u64;
        w.u64s(&[self.object.0, self.offset, self.length, self.block_size, count]);
        self.pointers.iter().for_each(|p| p.encode(w));
    }

    pub(super) fn length(&self) -> usize {
        LogRecordHeader::SIZE + 40 + self.pointers.len() * BLKPTR_SIZE
    }
}

/// The pointers to blocks of data in a record, its head in front: those that claiming or freeing a log deals with.
///
/// They can be read without a key where the rest of the record is encrypted.
pub fn pointers(r: &mut Reader<'_>) -> Result<Vec<BlockPointer>> {
    let header = LogRecordHeader::decode(r)?;
    match header.kind() {
        Some(LogRecordKind::Write) => {
            r.skip(32)?;
            Ok(vec![BlockPointer::decode(r)?])
        }
        Some(LogRecordKind::CloneRange) => Ok(CloneRange::decode(r)?.pointers),
        _ => Ok(Vec::new()),
    }
}
