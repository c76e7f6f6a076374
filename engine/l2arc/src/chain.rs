//! Reading what a cache device carries: its header, and log by log what it held.
//!
//! ```text
//!   open_header ──▶ Header ──▶ Chain::new ── next ──▶ a log of entries ── next ──▶ ... ──▶ None
//! ```
//!
//! None of it is needed for anything, so none is believed: a header must carry its own checksum and name pool and device, a
//! log must pass the checksum that its pointer carries and lie where the ring still holds it. The chain ends at the first
//! log that does not, and where a log would come that was seen before.

use crate::ring::Ring;
use codec::checksum::{Checksummer, sealed};
use ondisk::Reader;
use ondisk::l2arc::{L2Header, LOG_SIZE, LogBlock, LogPointer};
use ondisk::label::DATA_OFFSET;
use std::sync::Arc;
use units::{Checksum, Compression, Endian, Error, Result};
use vdev::{Leaf, Priority};
use world::{Buf, Disk, IoBuf, Pending};

/// Where bytes come from: a leaf of a pool, or a device that a tool has opened. Offsets are from its very start.
pub trait Source: Send + Sync {
    fn read_at(&self, offset: u64, len: usize) -> Pending<Result<Buf>>;
}

impl Source for Arc<Leaf> {
    fn read_at(&self, offset: u64, len: usize) -> Pending<Result<Buf>> {
        let leaf = self.clone();
        Box::pin(async move { leaf.read_raw(offset, len, Priority::AsyncRead).await })
    }
}

impl Source for Arc<dyn Disk> {
    fn read_at(&self, offset: u64, len: usize) -> Pending<Result<Buf>> {
        let disk = self.clone();
        Box::pin(async move {
            let (buf, result) = disk.read(offset, IoBuf::scratch(len)).await;
            let failed = |e| Error::new(units::Kind::Io, "read").at(disk.path().display()).because(e);
            result.map(|()| buf.freeze()).map_err(failed)
        })
    }
}

/// The bytes of a header on a device of this `ashift`.
pub fn header_size(ashift: u32) -> usize {
    L2Header::SIZE.max(1 << ashift.min(16))
}

/// The header of a device, checked.
///
/// # Errors
/// `Io`; `Corrupt` when there is none, or its checksum or what it says is wrong.
pub async fn read_header(source: &dyn Source, ashift: u32) -> Result<L2Header> {
    decode_header(&source.read_at(DATA_OFFSET, header_size(ashift)).await?)
}

/// As [`read_header`], of its bytes.
pub fn decode_header(bytes: &[u8]) -> Result<L2Header> {
    let Some(endian) = L2Header::endian_of(bytes) else {
        return Err(Error::corrupt("cache device: it has no header"));
    };
    let verifier = sealed::label_verifier(DATA_OFFSET);
    if sealed::verify(Checksum::Label, bytes, verifier, false) != Some(endian) {
        return Err(Error::corrupt("cache device: the checksum of the header is wrong"));
    }
    L2Header::decode(&mut Reader::new(bytes, endian, "header of a cache device"))
}

/// A log from the bytes that its pointer leads to.
///
/// # Errors
/// `Checksum`, and `Corrupt` for what passes it and makes no sense.
pub fn decode_log(pointer: &LogPointer, bytes: &[u8], entries: u64) -> Result<LogBlock> {
    let proven =
        |endian| Checksummer::unsalted().compute(Checksum::Fletcher4, endian, bytes) == pointer.checksum;
    if !proven(Endian::NATIVE) && ![Endian::Little, Endian::Big].into_iter().any(proven) {
        return Err(Error::new(units::Kind::Checksum, "read log of a cache device"));
    }
    let mut whole = vec![0; LOG_SIZE];
    match pointer.compression() {
        Some(Compression::Off) => {
            let bytes =
                bytes.get(..LOG_SIZE).ok_or_else(|| Error::corrupt("log of a cache device: too short"))?;
            whole.copy_from_slice(bytes);
        }
        Some(compression) => codec::compress::decompress(compression, bytes, &mut whole)?,
        None => return Err(Error::corrupt("log of a cache device: its compression is unknown")),
    }
    let no_magic = || Error::corrupt("log of a cache device: it has no magic");
    let endian = LogBlock::endian_of(&whole).ok_or_else(no_magic)?;
    LogBlock::decode(&mut Reader::new(&whole, endian, "log of a cache device"), entries)
}

/// A walk from the newest log to the oldest that is held.
#[derive(Debug)]
pub struct Chain {
    ring: Ring,
    entries: u64,
    next: [LogPointer; 2],
    /// Bytes of logs that can still come: a chain that bites its tail comes to an end.
    left: u64,
}

impl Chain {
    pub fn new(header: &L2Header) -> Chain {
        let ring = Ring::of(header);
        Chain { ring, entries: header.log_entries, next: header.newest, left: ring.end - ring.start }
    }

    /// The next log and where it is; `None` at the end of the chain.
    ///
    /// # Errors
    /// Those of the device and of [`decode_log`]: the chain is at its end then, too.
    pub async fn next(&mut self, source: &dyn Source) -> Option<Result<(LogPointer, LogBlock)>> {
        let pointer = self.next[0];
        if pointer.is_none() || !self.ring.holds(&pointer) || pointer.asize() > self.left {
            return None;
        }
        self.left -= pointer.asize();
        self.next[0] = LogPointer::default();
        let bytes = match source.read_at(pointer.daddr, pointer.asize() as usize).await {
            Ok(bytes) => bytes,
            Err(e) => return Some(Err(e)),
        };
        let log = match decode_log(&pointer, &bytes, self.entries) {
            Ok(log) => log,
            Err(e) => return Some(Err(e)),
        };
        // Two chains interleave: what this log names comes after the next one.
        self.next = [self.next[1], log.previous];
        Some(Ok((pointer, log)))
    }
}

#[cfg(test)]
mod tests;
