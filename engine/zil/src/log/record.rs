//! Changes in memory, on their way into the log.
//!
//! ```text
//!   in memory     Bytes     buffers that the overlay or the client's request hold as well: nothing is copied
//!                 Block     one whole block of the overlay, of which a part was written; or, written early, its pointer
//!                 Record    names and attributes, encoded already
//!   in the log    Bytes     the data follow the record             ("copied", "need copy")
//!                 Pointer   the block was written, and is named     ("indirect")
//!                 Truncate
//! ```
//!
//! A record keeps what was written, not where: what the same block becomes later is another record's business. So what a
//! crash leaves of a write is all of it or nothing, record by record; and where data are several records, they are
//! divided between blocks of the object, as far as [`crate::divides_at`] allows.

use crate::settings::Settings;
use dmu::{Early, EarlyBlock, Object};
use ondisk::{BlockPointer, LogRecordHeader, LogRecordKind, Writer};
use std::collections::VecDeque;
use units::{ObjectId, Txg};
use world::Buf;

/// Bytes of a write record in front of its data.
pub(crate) const WRITE_HEAD: usize = LogRecordHeader::SIZE + 32 + BlockPointer::SIZE;
/// Where the head of a record has its number.
const NUMBER: usize = 24;
const TRUNCATE: usize = LogRecordHeader::SIZE + 24;

/// A change that no block of the log holds yet.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Counts the changes of one log, from 1.
    pub id: u64,
    pub txg: Txg,
    pub change: Change,
}

#[derive(Debug)]
pub(crate) enum Change {
    Bytes {
        object: ObjectId,
        /// Bytes in a block of the object.
        block_size: u64,
        offset: u64,
        data: Pieces,
    },
    /// `length` bytes at `offset`, all in `block`, which is block `blkid` as of this change.
    Block {
        object: Object,
        blkid: u64,
        block: EarlyBlock,
        offset: u64,
        length: u64,
    },
    Truncate {
        object: ObjectId,
        offset: u64,
        length: u64,
    },
    /// A record of any other kind, as it will stand in the log but for its number.
    Record {
        bytes: Box<[u8]>,
    },
}

impl Entry {
    /// The change as a record that has all its data with it, unless the block was written early.
    pub fn into_item(self) -> Item {
        let Entry { id, txg, change } = self;
        let body = match change {
            Change::Bytes { object, block_size, offset, data } => {
                Body::Bytes { object, block_size, offset, data }
            }
            Change::Block { object, blkid, block, offset, length } => match block.now() {
                Early::Data(block) => {
                    let block_size = block.len() as u64;
                    let from = (offset - blkid * block_size) as usize;
                    let data = Pieces::from(block.slice(from..from + length as usize));
                    Body::Bytes { object: object.id(), block_size, offset, data }
                }
                Early::Written(pointer) => Body::Pointer { object: object.id(), offset, length, pointer },
            },
            Change::Truncate { object, offset, length } => Body::Truncate { object, offset, length },
            Change::Record { bytes } => Body::Record { bytes },
        };
        Item { id, txg, body }
    }
}

/// Bytes in several buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    bufs: VecDeque<Buf>,
    len: usize,
}

impl Pieces {
    pub fn push(&mut self, buf: Buf) {
        self.len += buf.len();
        self.bufs.push_back(buf);
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The buffers; one that would keep much more memory alive than it shows is copied.
    pub fn into_small(self) -> impl Iterator<Item = Buf> {
        let small = |buf: Buf| if buf.capacity() < 2 * buf.len() { buf } else { Buf::copy_from(&buf) };
        self.bufs.into_iter().map(small)
    }

    pub fn bufs(&mut self) -> &[Buf] {
        self.bufs.make_contiguous()
    }

    /// Takes the first `n` bytes out.
    pub fn take_front(&mut self, n: usize) -> Pieces {
        let mut front = Pieces::default();
        while front.len < n {
            let first = self.bufs.pop_front().expect("no more is taken than there is");
            let wanted = n - front.len;
            if first.len() > wanted {
                self.bufs.push_front(first.slice(wanted..first.len()));
                front.push(first.slice(0..wanted));
            } else {
                front.push(first);
            }
        }
        self.len -= n;
        front
    }
}

impl From<Buf> for Pieces {
    fn from(buf: Buf) -> Pieces {
        let mut pieces = Pieces::default();
        pieces.push(buf);
        pieces
    }
}

/// A change as it will stand in the log.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub id: u64,
    pub txg: Txg,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Bytes { object: ObjectId, block_size: u64, offset: u64, data: Pieces },
    Pointer { object: ObjectId, offset: u64, length: u64, pointer: BlockPointer },
    Truncate { object: ObjectId, offset: u64, length: u64 },
    Record { bytes: Box<[u8]> },
}

impl Item {
    /// Bytes of the record: without its data, and of those.
    pub fn size(&self) -> (usize, usize) {
        match &self.body {
            Body::Bytes { data, .. } => (WRITE_HEAD, data.len().next_multiple_of(8)),
            Body::Pointer { .. } => (WRITE_HEAD, 0),
            Body::Truncate { .. } => (TRUNCATE, 0),
            Body::Record { bytes } => (bytes.len(), 0),
        }
    }

    pub fn total(&self) -> usize {
        let (head, data) = self.size();
        head + data
    }

    /// Data up to here are not divided.
    pub fn is_whole(&self, settings: &Settings) -> bool {
        let most = settings.max_copied.min(settings.max_block_size / 2);
        self.size().1 as u64 <= most.next_multiple_of(8)
    }

    /// Splits off the first `n` bytes of data as a record of their own.
    pub fn split(&mut self, n: usize) -> Item {
        let Body::Bytes { object, block_size, offset, data } = &mut self.body else {
            panic!("only data are divided");
        };
        let data = data.take_front(n);
        let first = Body::Bytes { object: *object, block_size: *block_size, offset: *offset, data };
        *offset += n as u64;
        // Until the rest is written too, nothing of this change counts as written.
        Item { id: self.id - 1, txg: self.txg, body: first }
    }

    pub fn encode(&self, w: &mut Writer<'_>, seq: u64) {
        let head = |kind: LogRecordKind| [kind as u64, self.total() as u64, self.txg.0, seq];
        match &self.body {
            Body::Bytes { object, offset, data, .. } => {
                w.u64s(&head(LogRecordKind::Write));
                w.u64s(&[object.0, *offset, data.len() as u64, 0]);
                BlockPointer::HOLE.encode(w);
                data.bufs.iter().for_each(|buf| w.bytes(buf));
                w.zeros(data.len().next_multiple_of(8) - data.len());
            }
            Body::Pointer { object, offset, length, pointer } => {
                w.u64s(&head(LogRecordKind::Write));
                w.u64s(&[object.0, *offset, *length, 0]);
                pointer.encode(w);
            }
            Body::Truncate { object, offset, length } => {
                w.u64s(&head(LogRecordKind::Truncate));
                w.u64s(&[object.0, *offset, *length]);
            }
            Body::Record { bytes } => {
                w.bytes(&bytes[..NUMBER]);
                w.u64(seq);
                w.bytes(&bytes[NUMBER + 8..]);
            }
        }
    }
}
