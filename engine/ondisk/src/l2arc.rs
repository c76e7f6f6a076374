//! What a cache device carries besides blocks, so that they are found again after an import: a header and a chain of logs.
//!
//! ```text
//!   device   | L0 | L1 | boot area | header | blocks, log, blocks, log, ...                | L2 | L3 |
//!            0                     4M       start ── hand ──▶ evict ──▶ end: around and around
//!
//!   header ── newest ──▶ log ─┐ previous of previous: two chains that interleave, so that a reader
//!          └─ one older ▶ log │ has the next one under way while it works on this one
//!                         ◀───┘
//!
//!   header   0 magic  8 version  16 pool  24 vdev  32 entries of a log  40 evict  48 flags  56 start  64 end
//!            72 two log pointers  200 bytes of logs  208 logs  216 time of trim  224 state of trim  232 zeros
//!            trailer: the last 40 bytes of the header, which is one sector of the device and at least 512 bytes
//!   log      0 magic  8 log pointer  72 zeros  128 entries, 1022 of 64 bytes                     64 KiB
//!   pointer  0 place  8 bytes of blocks  16 where they begin  24 properties  32 checksum          64 bytes
//!   entry    0 DVA  16 birth  24 properties  32 place  40 level of compression  48 zeros          64 bytes
//!
//!        63  60    57  56   55   48 47    40  39   38       32 31         16 15          0
//!   prop |   | state | enc | kind  | checks |pre |compression| sectors - 1  | sectors - 1 |   psize, lsize
//! ```
//!
//! Places are bytes from the very start of the device. Of a log pointer, psize is what the log takes on the device, and its
//! checksum covers all of that. A log is compressed by lz4, or not at all.
//!
//! Nothing here is needed for a pool to be whole: what does not fit together is left, and the pool is read instead.

use crate::bytes::{Reader, Writer, bits, place};
use crate::dva::Dva;
use units::{Checksum, Compression, Endian, Guid, Lsize, Psize, Result, SECTOR, Txg};

/// What a log holds, uncompressed.
pub const LOG_SIZE: usize = 64 << 10;
/// The most entries of a log.
pub const LOG_ENTRIES: usize = 1022;
const LOG_HEAD: usize = 128;
/// With a larger device more entries are put into a log: one for so many bytes.
const DEVICE_PER_ENTRY: u64 = 16 << 20;

/// How many entries each log of a device has whose space for blocks is `len` bytes long.
pub fn entries_for(len: u64) -> u64 {
    (len / DEVICE_PER_ENTRY).min(LOG_ENTRIES as u64)
}

/// What the trim of a device has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimState {
    /// Seconds since 1970.
    pub time: u64,
    pub state: u64,
}

/// See the module. The trailer is not part of it: its place depends on the size of the device's sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L2Header {
    pub version: u64,
    pub pool: Guid,
    pub vdev: Guid,
    /// How many entries each log has.
    pub log_entries: u64,
    /// Up to here blocks have been dropped to make room for new ones.
    pub evict: u64,
    pub flags: u64,
    /// Blocks and logs lie from here on.
    pub start: u64,
    /// They end here.
    pub end: u64,
    /// The newest log and the one before it.
    pub newest: [LogPointer; 2],
    /// What all logs take on the device, in bytes.
    pub logs_asize: u64,
    pub logs: u64,
    pub trim: TrimState,
}

impl L2Header {
    /// "ZFSCACHE".
    pub const MAGIC: u64 = 0x5a46_5343_4143_4845;
    pub const VERSION: u64 = 1;
    /// Without what a larger sector adds before the trailer.
    pub const SIZE: usize = 512;
    /// The device was never written to its end: nothing had to be dropped yet.
    pub const FIRST_SWEEP: u64 = 1;
    const FIELDS: usize = 232;

    /// The order of the machine that wrote it; `None` when there is no header.
    pub fn endian_of(bytes: &[u8]) -> Option<Endian> {
        order_of(bytes, L2Header::MAGIC)
    }

    pub fn is_first_sweep(&self) -> bool {
        self.flags & L2Header::FIRST_SWEEP != 0
    }

    /// Checks magic and version, and that what the header says of itself can be: a range of the device, with `evict` in it.
    pub fn decode(r: &mut Reader<'_>) -> Result<L2Header> {
        let magic = r.u64()?;
        if magic != L2Header::MAGIC {
            return Err(r.corrupt(format_args!("magic {magic:#x}")));
        }
        let header = L2Header {
            version: r.u64()?,
            pool: Guid(r.u64()?),
            vdev: Guid(r.u64()?),
            log_entries: r.u64()?,
            evict: r.u64()?,
            flags: r.u64()?,
            start: r.u64()?,
            end: r.u64()?,
            newest: [LogPointer::decode(r)?, LogPointer::decode(r)?],
            logs_asize: r.u64()?,
            logs: r.u64()?,
            trim: TrimState { time: r.u64()?, state: r.u64()? },
        };
        if header.version == 0 || header.version > L2Header::VERSION {
            return Err(r.corrupt(format_args!(
                "version {}, known is {}",
                header.version,
                L2Header::VERSION
            )));
        }
        if header.start >= header.end || !(header.start..=header.end).contains(&header.evict) {
            let L2Header { start, evict, end, .. } = header;
            return Err(r.corrupt(format_args!("start {start}, evict {evict}, end {end}")));
        }
        if header.log_entries > LOG_ENTRIES as u64 {
            return Err(r.corrupt(format_args!("{} entries in a log", header.log_entries)));
        }
        Ok(header)
    }

    /// Up to the trailer's earliest place; the rest is the caller's.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let from = w.position();
        for word in [L2Header::MAGIC, self.version, self.pool.0, self.vdev.0, self.log_entries] {
            w.u64(word);
        }
        w.u64s(&[self.evict, self.flags, self.start, self.end]);
        self.newest.iter().for_each(|pointer| pointer.encode(w));
        w.u64s(&[self.logs_asize, self.logs, self.trim.time, self.trim.state]);
        debug_assert_eq!(w.position() - from, L2Header::FIELDS, "the drawing says where the zeros begin");
    }
}

/// Where a log is. All zeros: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPointer {
    pub daddr: u64,
    /// What the blocks that it tells of take.
    pub payload_asize: u64,
    /// Where they begin: they and the log are one run, around the end of the device if need be.
    pub payload_start: u64,
    prop: u64,
    pub checksum: [u64; 4],
}

impl LogPointer {
    pub const SIZE: usize = 64;

    /// Of a log that takes `asize` bytes of the device, a multiple of a sector.
    pub fn new(daddr: u64, asize: u64, compression: Compression, checksum: [u64; 4]) -> LogPointer {
        let prop = place(sectors(LOG_SIZE as u64), 0, 16)
            | place(sectors(asize), 16, 16)
            | place(u64::from(compression.code()), 32, 7)
            | place(u64::from(Checksum::Fletcher4.code()), 40, 8);
        LogPointer { daddr, payload_asize: 0, payload_start: daddr, prop, checksum }
    }

    pub fn is_none(&self) -> bool {
        *self == LogPointer::default()
    }

    /// What the log takes on the device, in bytes.
    pub fn asize(&self) -> u64 {
        (bits(self.prop, 16, 16) + 1) * SECTOR
    }

    /// `None` for one that logs cannot have.
    pub fn compression(&self) -> Option<Compression> {
        let found = Compression::from_code(u8::try_from(bits(self.prop, 32, 7)).ok()?)?;
        matches!(found, Compression::Off | Compression::Lz4).then_some(found)
    }

    pub fn decode(r: &mut Reader<'_>) -> Result<LogPointer> {
        Ok(LogPointer {
            daddr: r.u64()?,
            payload_asize: r.u64()?,
            payload_start: r.u64()?,
            prop: r.u64()?,
            checksum: r.u64s()?,
        })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.daddr, self.payload_asize, self.payload_start, self.prop]);
        w.u64s(&self.checksum);
    }
}

/// What the owner of a block had thought of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryProp {
    pub lsize: Lsize,
    /// What the block takes here, without what fills its last sector.
    pub psize: Psize,
    pub compression: Compression,
    /// It was read ahead, and not asked for before it was written here.
    pub is_prefetch: bool,
    pub is_metadata: bool,
    /// It is as encrypted as it is in the pool.
    pub is_protected: bool,
    /// A code of the list it was on: see [`EntryProp::RECENT`].
    pub state: u8,
}

impl EntryProp {
    pub const RECENT: u8 = 1;
    pub const FREQUENT: u8 = 3;
    const KIND: u32 = 48;
    /// Codes of kinds of block. OpenZFS panics when it rebuilds an entry of another kind.
    const DATA: u64 = 1;
    const METADATA: u64 = 2;

    fn decode(word: u64, r: &Reader<'_>) -> Result<EntryProp> {
        let code = bits(word, 32, 7) as u8;
        let Some(compression) = Compression::from_code(code) else {
            return Err(r.corrupt(format_args!("compression {code}")));
        };
        Ok(EntryProp {
            lsize: Lsize((bits(word, 0, 16) + 1) * SECTOR),
            psize: Psize((bits(word, 16, 16) + 1) * SECTOR),
            compression,
            is_prefetch: bits(word, 39, 1) == 1,
            is_metadata: bits(word, EntryProp::KIND, 8) == EntryProp::METADATA,
            is_protected: bits(word, 56, 1) == 1,
            state: bits(word, 57, 4) as u8,
        })
    }

    fn encode(&self) -> u64 {
        let kind = if self.is_metadata { EntryProp::METADATA } else { EntryProp::DATA };
        place(sectors(self.lsize.0), 0, 16)
            | place(sectors(self.psize.0), 16, 16)
            | place(u64::from(self.compression.code()), 32, 7)
            | place(u64::from(self.is_prefetch), 39, 1)
            | place(kind, EntryProp::KIND, 8)
            | place(u64::from(self.is_protected), 56, 1)
            | place(u64::from(self.state), 57, 4)
    }
}

/// One block on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The block's first place in the pool.
    pub dva: Dva,
    /// When it was put there.
    pub birth: Txg,
    pub prop: EntryProp,
    pub daddr: u64,
    pub level: u64,
}

impl LogEntry {
    pub const SIZE: usize = 64;

    pub fn decode(r: &mut Reader<'_>) -> Result<LogEntry> {
        let (dva, birth, word) = (Dva::decode(r)?, Txg(r.u64()?), r.u64()?);
        let entry =
            LogEntry { dva, birth, prop: EntryProp::decode(word, r)?, daddr: r.u64()?, level: r.u64()? };
        r.skip(16)?;
        Ok(entry)
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let end = w.position() + LogEntry::SIZE;
        self.dva.encode(w);
        w.u64s(&[self.birth.0, self.prop.encode(), self.daddr, self.level]);
        w.pad_to(end);
    }
}

/// A log, decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBlock {
    pub previous: LogPointer,
    pub entries: Vec<LogEntry>,
}

impl LogBlock {
    /// "LOGBLKHD".
    pub const MAGIC: u64 = 0x4c4f_4742_4c4b_4844;

    pub fn endian_of(bytes: &[u8]) -> Option<Endian> {
        order_of(bytes, LogBlock::MAGIC)
    }

    /// Reads `count` entries, which only the header knows. An entry that makes no sense is left out: the next one may.
    pub fn decode(r: &mut Reader<'_>, count: u64) -> Result<LogBlock> {
        let magic = r.u64()?;
        if magic != LogBlock::MAGIC {
            return Err(r.corrupt(format_args!("magic {magic:#x}")));
        }
        let previous = LogPointer::decode(r)?;
        r.skip(LOG_HEAD - 8 - LogPointer::SIZE)?;
        let count = count.min(LOG_ENTRIES as u64) as usize;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let mut entry = r.within(LogEntry::SIZE, "log entry")?;
            entries.extend(LogEntry::decode(&mut entry).ok());
        }
        Ok(LogBlock { previous, entries })
    }

    /// Fills [`LOG_SIZE`] bytes.
    pub fn encode(&self, w: &mut Writer<'_>) {
        assert!(self.entries.len() <= LOG_ENTRIES, "a log has room for {LOG_ENTRIES}");
        let from = w.position();
        w.u64(LogBlock::MAGIC);
        self.previous.encode(w);
        w.pad_to(from + LOG_HEAD);
        self.entries.iter().for_each(|entry| entry.encode(w));
        w.pad_to(from + LOG_SIZE);
    }
}

/// As the field of a size has it: one less, so that 16 bits hold 32 MiB.
fn sectors(bytes: u64) -> u64 {
    debug_assert!(bytes > 0 && bytes.is_multiple_of(SECTOR), "{bytes} bytes are no whole sectors");
    bytes / SECTOR - 1
}

fn order_of(bytes: &[u8], magic: u64) -> Option<Endian> {
    let found = *bytes.first_chunk::<8>()?;
    [Endian::Little, Endian::Big].into_iter().find(|endian| match endian {
        Endian::Little => u64::from_le_bytes(found) == magic,
        Endian::Big => u64::from_be_bytes(found) == magic,
    })
}

#[cfg(test)]
mod tests;
