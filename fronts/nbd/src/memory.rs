//! A volume in memory: for tests, and to measure this front without any disk.
//!
//! Blocks that were never written are holes. A block is shared with the replies that carry it, and replaced, never
//! changed, when it is written: a reader sees the old block or the new one.

use crate::volume::{Exports, Hold, Listed, Volume};
use flow::{Extent, Piece, Reading};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result};
use world::{Address, Buf, Pending};

pub struct MemoryVolume {
    size: u64,
    block_size: u32,
    read_only: bool,
    blocks: Mutex<Vec<Option<Buf>>>,
}

impl MemoryVolume {
    /// All hole.
    ///
    /// # Panics
    /// When the size is no multiple of the block size.
    pub fn new(size: u64, block_size: u32) -> MemoryVolume {
        assert!(size.is_multiple_of(u64::from(block_size)), "a volume is whole blocks");
        let count = (size / u64::from(block_size)) as usize;
        MemoryVolume { size, block_size, read_only: false, blocks: Mutex::new(vec![None; count]) }
    }

    #[must_use]
    pub fn as_read_only(mut self) -> MemoryVolume {
        self.read_only = true;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Buf>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of a range, block by block: index, offset within the block, length.
    fn parts(&self, offset: u64, len: u32) -> impl Iterator<Item = (usize, usize, usize)> {
        let block = u64::from(self.block_size);
        let end = offset + u64::from(len);
        let first = offset / block;
        (first..end.div_ceil(block)).map(move |index| {
            let from = offset.max(index * block);
            let to = end.min((index + 1) * block);
            (index as usize, (from - index * block) as usize, (to - from) as usize)
        })
    }

    fn store(&self, offset: u64, data: &Buf) {
        let mut blocks = self.lock();
        let mut done = 0;
        for (index, at, len) in self.parts(offset, data.len() as u32) {
            let part = data.slice(done..done + len);
            done += len;
            blocks[index] = Some(if len == self.block_size as usize {
                part
            } else {
                let old = blocks[index].take().unwrap_or_else(|| Buf::zeroed(self.block_size as usize));
                let mut block = old.into_mut();
                block[at..at + len].copy_from_slice(&part);
                block.freeze()
            });
        }
    }

    fn clear(&self, offset: u64, len: u32) {
        let whole = self.block_size as usize;
        for (index, at, part) in self.parts(offset, len).collect::<Vec<_>>() {
            if part == whole {
                self.lock()[index] = None;
            } else if self.lock()[index].is_some() {
                self.store(index as u64 * whole as u64 + at as u64, &Buf::zeroed(part));
            }
        }
    }
}

fn ready<T: Send + 'static>(value: T) -> Pending<T> {
    Box::pin(std::future::ready(value))
}

impl Volume for MemoryVolume {
    fn size(&self) -> u64 {
        self.size
    }

    fn block_size(&self) -> u32 {
        self.block_size
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn description(&self) -> String {
        "a volume in memory".into()
    }

    fn begin_read(&self, offset: u64, len: u32, pieces: &mut Vec<Piece>) -> Reading {
        let blocks = self.lock();
        pieces.extend(self.parts(offset, len).map(|(index, at, len)| match &blocks[index] {
            Some(block) => Piece::Data(block.slice(at..at + len)),
            None => Piece::Hole(len as u32),
        }));
        Reading::Done(Ok(()))
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Piece>>> {
        let mut pieces = Vec::new();
        self.begin_read(offset, len, &mut pieces);
        ready(Ok(pieces))
    }

    fn write(&self, mut offset: u64, parts: Vec<Buf>, _fua: bool) -> Pending<Result<()>> {
        for part in parts {
            self.store(offset, &part);
            offset += part.len() as u64;
        }
        ready(Ok(()))
    }

    fn zero(&self, offset: u64, len: u32, may_be_hole: bool, _fua: bool) -> Pending<Result<()>> {
        if may_be_hole {
            self.clear(offset, len);
        } else {
            self.store(offset, &Buf::zeroed(len as usize));
        }
        ready(Ok(()))
    }

    fn trim(&self, offset: u64, len: u32, _fua: bool) -> Pending<Result<()>> {
        self.clear(offset, len);
        ready(Ok(()))
    }

    fn flush(&self) -> Pending<Result<()>> {
        ready(Ok(()))
    }

    fn extents(&self, offset: u64, len: u32, max: usize) -> Pending<Result<Vec<Extent>>> {
        let blocks = self.lock();
        let mut extents: Vec<Extent> = Vec::new();
        for (index, _, len) in self.parts(offset, len) {
            let (len, hole) = (len as u64, blocks[index].is_none());
            let full = extents.len() == max;
            match extents.last_mut() {
                Some(last) if last.hole == hole => last.len += len,
                _ if full => break,
                _ => extents.push(Extent { len, hole }),
            }
        }
        ready(Ok(extents))
    }
}

impl fmt::Debug for MemoryVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryVolume({} bytes)", self.size)
    }
}

/// Volumes in memory, by name, with a count of who uses them.
#[derive(Debug, Default)]
pub struct MemoryExports {
    volumes: BTreeMap<String, Arc<dyn Volume>>,
    open: Arc<AtomicUsize>,
    refused: Mutex<Vec<String>>,
}

impl MemoryExports {
    #[must_use]
    pub fn with(mut self, name: &str, volume: impl Volume + 'static) -> MemoryExports {
        self.volumes.insert(name.to_string(), Arc::new(volume));
        self
    }

    /// The clients with which TLS could not be made, and why.
    pub fn refusals(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many connections use a volume.
    pub fn open_count(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Volume>> {
        let volume = self.volumes.get(name).cloned();
        volume.ok_or_else(|| Error::new(Kind::NotFound, format!("open NBD export '{name}'")))
    }
}

struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Exports for MemoryExports {
    fn list(&self) -> Pending<Result<Vec<Listed>>> {
        let listed = |(name, volume): (&String, &Arc<dyn Volume>)| Listed {
            name: name.clone(),
            description: volume.description(),
        };
        ready(Ok(self.volumes.iter().map(listed).collect()))
    }

    fn find(&self, name: &str) -> Pending<Result<Arc<dyn Volume>>> {
        ready(self.get(name))
    }

    fn open(&self, name: &str, _client: &Address) -> Pending<Result<(Arc<dyn Volume>, Hold)>> {
        ready(self.get(name).map(|volume| {
            self.open.fetch_add(1, Ordering::SeqCst);
            let hold: Hold = Box::new(Count(self.open.clone()));
            (volume, hold)
        }))
    }

    fn refused(&self, client: &Address, why: &Error) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{client}: {why}"));
    }
}
