//! A unit in memory: for tests, and to measure a transport without any disk.
//!
//! Blocks that were never written are holes. A block is shared with the answers that carry it, and replaced, never
//! changed, when it is written. It can be told to be full, slow or larger, as real ones become.

use crate::unit::LogicalUnit;
use flow::{Extent, Piece, Reading};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{Error, Kind, Result};
use world::{Buf, Pending};

pub struct MemoryUnit {
    size: AtomicU64,
    block_size: u32,
    /// What it says of itself; it stores blocks of the size that it began with.
    said_block: AtomicU32,
    read_only: bool,
    /// No block may be added.
    full: AtomicBool,
    /// Nanoseconds that each operation takes.
    delay: AtomicU64,
    blocks: Mutex<BTreeMap<u64, Buf>>,
}

impl MemoryUnit {
    /// All hole. Sizes are bytes.
    pub fn new(size: u64, block_size: u32) -> MemoryUnit {
        MemoryUnit {
            size: AtomicU64::new(size),
            block_size,
            said_block: AtomicU32::new(block_size),
            read_only: false,
            full: AtomicBool::new(false),
            delay: AtomicU64::new(0),
            blocks: Mutex::default(),
        }
    }

    #[must_use]
    pub fn as_read_only(mut self) -> MemoryUnit {
        self.read_only = true;
        self
    }

    pub fn resize(&self, size: u64) {
        self.size.store(size, SeqCst);
    }

    /// From now on it says that its blocks are of this size.
    pub fn set_block_size(&self, bytes: u32) {
        self.said_block.store(bytes, SeqCst);
    }

    pub fn set_full(&self, full: bool) {
        self.full.store(full, SeqCst);
    }

    /// From now on every operation takes so long.
    pub fn set_delay(&self, delay: Duration) {
        self.delay.store(delay.as_nanos() as u64, SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Buf>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of a range, block by block: index, offset within the block, length.
    fn parts(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> + use<> {
        let block = u64::from(self.block_size);
        let end = offset + len;
        (offset / block..end.div_ceil(block)).map(move |index| {
            let from = offset.max(index * block);
            let to = end.min((index + 1) * block);
            (index, (from - index * block) as usize, (to - from) as usize)
        })
    }

    fn look(&self, offset: u64, len: u64) -> Result<Vec<Piece>> {
        if offset + len > self.size() {
            return Err(Error::invalid("read past the end of a unit in memory"));
        }
        let blocks = self.lock();
        let piece = |(index, at, len): (u64, usize, usize)| match blocks.get(&index) {
            Some(block) => Piece::Data(block.slice(at..at + len)),
            None => Piece::Hole(len as u32),
        };
        Ok(self.parts(offset, len).map(piece).collect())
    }

    fn store(&self, offset: u64, data: &Buf) -> Result<()> {
        let mut blocks = self.lock();
        let mut done = 0;
        for (index, at, len) in self.parts(offset, data.len() as u64) {
            let old = blocks.remove(&index);
            if old.is_none() && self.full.load(SeqCst) {
                return Err(Error::new(Kind::NoSpace, "write to a unit in memory"));
            }
            let part = data.slice(done..done + len);
            done += len;
            let new = if len == self.block_size as usize {
                part
            } else {
                let old = old.unwrap_or_else(|| Buf::zeroed(self.block_size as usize));
                let mut block = old.into_mut();
                block[at..at + len].copy_from_slice(&part);
                block.freeze()
            };
            blocks.insert(index, new);
        }
        Ok(())
    }

    fn clear(&self, offset: u64, len: u64) -> Result<()> {
        for (index, at, part) in self.parts(offset, len) {
            if part == self.block_size as usize {
                self.lock().remove(&index);
            } else if self.lock().contains_key(&index) {
                self.store(index * u64::from(self.block_size) + at as u64, &Buf::zeroed(part))?;
            }
        }
        Ok(())
    }

    /// `result`, after the time that an operation takes.
    fn after<T: Send + 'static>(&self, result: T) -> Pending<T> {
        let delay = Duration::from_nanos(self.delay.load(SeqCst));
        if delay.is_zero() {
            return Box::pin(std::future::ready(result));
        }
        Box::pin(async move {
            world::sleep(delay).await;
            result
        })
    }
}

impl LogicalUnit for MemoryUnit {
    fn size(&self) -> u64 {
        self.size.load(SeqCst)
    }

    fn block_size(&self) -> u32 {
        self.said_block.load(SeqCst)
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn begin_read(&self, offset: u64, len: u32, pieces: &mut Vec<Piece>) -> Reading {
        if self.delay.load(SeqCst) > 0 {
            return Reading::Waits(self.read(offset, len));
        }
        Reading::Done(self.look(offset, len.into()).map(|found| pieces.extend(found)))
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Piece>>> {
        self.after(self.look(offset, len.into()))
    }

    fn write(&self, mut offset: u64, parts: Vec<Buf>, _durable: bool) -> Pending<Result<()>> {
        for part in parts {
            if let Err(e) = self.store(offset, &part) {
                return self.after(Err(e));
            }
            offset += part.len() as u64;
        }
        self.after(Ok(()))
    }

    fn zero(&self, offset: u64, len: u64, _durable: bool) -> Pending<Result<()>> {
        self.after(self.clear(offset, len))
    }

    fn flush(&self) -> Pending<Result<()>> {
        self.after(Ok(()))
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Pending<Result<Vec<Extent>>> {
        let blocks = self.lock();
        let mut extents: Vec<Extent> = Vec::new();
        for (index, _, len) in self.parts(offset, len) {
            let (len, hole) = (len as u64, !blocks.contains_key(&index));
            let full = extents.len() == max;
            match extents.last_mut() {
                Some(last) if last.hole == hole => last.len += len,
                _ if full => break,
                _ => extents.push(Extent { len, hole }),
            }
        }
        self.after(Ok(extents))
    }
}

impl fmt::Debug for MemoryUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryUnit({} bytes)", self.size())
    }
}
