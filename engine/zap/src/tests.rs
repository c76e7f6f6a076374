//! Tests of the whole: against a map as oracle, against damage, against ZAPs that OpenZFS wrote.

mod damage;
mod golden;
mod index;
mod objects;
mod oracle;
mod shape;

use crate::{Blocks, Normalization, Options, Zap, ZapFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use units::Result;
use world::Buf;

/// Runs a future that never waits: all blocks are in memory.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

/// Blocks in memory. Holes are what was never written or was freed.
#[derive(Debug)]
pub(crate) struct Memory(Mutex<State>);

#[derive(Clone, Debug)]
struct State {
    block_size: usize,
    blocks: BTreeMap<u64, Buf>,
    reads: u64,
    version: u64,
    /// What is on disk, and was read from there again.
    clean: BTreeSet<u64>,
}

impl Memory {
    pub fn new(block_size: usize) -> Memory {
        Memory(Mutex::new(State {
            block_size,
            blocks: BTreeMap::new(),
            reads: 0,
            version: 0,
            clean: BTreeSet::new(),
        }))
    }

    pub fn of(blocks: impl IntoIterator<Item = (u64, Buf)>) -> Memory {
        let blocks: BTreeMap<u64, Buf> = blocks.into_iter().collect();
        Memory(Mutex::new(State {
            block_size: blocks[&0].len(),
            blocks,
            reads: 0,
            version: 0,
            clean: BTreeSet::new(),
        }))
    }

    pub fn blocks(&self) -> BTreeMap<u64, Buf> {
        self.0.lock().unwrap().blocks.clone()
    }

    pub fn reads(&self) -> u64 {
        self.0.lock().unwrap().reads
    }

    /// Puts a block in its place, behind the back of the ZAP.
    pub fn replace(&self, blkid: u64, data: Buf) {
        let mut state = self.0.lock().unwrap();
        if blkid == 0 {
            state.block_size = data.len();
        }
        state.blocks.insert(blkid, data);
        state.version += 1;
    }

    /// The block was written to a device, which gives something else back.
    pub fn rot(&self, blkid: u64, change: impl FnOnce(&mut [u8])) {
        self.tamper(blkid, change);
        let mut state = self.0.lock().unwrap();
        state.version -= 1;
        state.clean.insert(blkid);
    }

    /// Changes a block behind the back of the ZAP.
    pub fn tamper(&self, blkid: u64, change: impl FnOnce(&mut [u8])) {
        let mut state = self.0.lock().unwrap();
        let mut block = state.blocks.remove(&blkid).unwrap().into_mut();
        change(&mut block);
        state.blocks.insert(blkid, block.freeze());
        state.version += 1;
    }
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        Memory(Mutex::new(self.0.lock().unwrap().clone()))
    }
}

impl Blocks for Memory {
    type Tx = ();

    fn name(&self) -> String {
        "object 7".into()
    }

    fn block_size(&self) -> usize {
        self.0.lock().unwrap().block_size
    }

    fn block_count(&self) -> u64 {
        self.0.lock().unwrap().blocks.last_key_value().map_or(1, |(last, _)| last + 1)
    }

    async fn read_block(&self, blkid: u64) -> Result<Buf> {
        let mut state = self.0.lock().unwrap();
        state.reads += 1;
        Ok(state.blocks.get(&blkid).cloned().unwrap_or_else(|| Buf::zeroed(state.block_size)))
    }

    async fn read_versioned(&self, blkid: u64) -> Result<(Buf, u64)> {
        Ok((self.read_block(blkid).await?, self.version()))
    }

    fn version(&self) -> u64 {
        self.0.lock().unwrap().version
    }

    fn write_block(&self, _: &(), blkid: u64, data: Buf) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        assert_eq!(data.len(), state.block_size, "a block is written whole");
        state.blocks.insert(blkid, data);
        state.clean.remove(&blkid);
        state.version += 1;
        Ok(())
    }

    fn is_dirty_block(&self, blkid: u64, data: &Buf) -> bool {
        let state = self.0.lock().unwrap();
        let is_newest = state.blocks.get(&blkid).is_some_and(|newest| newest.as_ptr() == data.as_ptr());
        is_newest && !state.clean.contains(&blkid)
    }

    async fn patch_block(&self, _: &(), blkid: u64, within: usize, part: &[u8]) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        let block = state.blocks.get_mut(&blkid).unwrap();
        block.make_mut()[within..within + part.len()].copy_from_slice(part);
        state.version += 1;
        Ok(())
    }

    async fn set_block_size(&self, _: &(), size: usize) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        assert!(state.blocks.keys().all(|b| *b == 0), "only block 0 is there");
        state.block_size = size;
        state.version += 1;
        state.blocks.values_mut().for_each(|block| block.resize(size));
        Ok(())
    }

    fn free_blocks(&self, _: &(), blocks: Range<u64>) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        state.blocks.retain(|b, _| !blocks.contains(b));
        state.version += 1;
        Ok(())
    }
}

/// Shared blocks.
impl<B: Blocks> Blocks for Arc<B> {
    type Tx = B::Tx;

    fn name(&self) -> String {
        B::name(self)
    }

    fn block_size(&self) -> usize {
        B::block_size(self)
    }

    fn block_count(&self) -> u64 {
        B::block_count(self)
    }

    async fn read_block(&self, blkid: u64) -> Result<Buf> {
        B::read_block(self, blkid).await
    }

    async fn read_versioned(&self, blkid: u64) -> Result<(Buf, u64)> {
        B::read_versioned(self, blkid).await
    }

    fn version(&self) -> u64 {
        B::version(self)
    }

    fn write_block(&self, tx: &B::Tx, blkid: u64, data: Buf) -> Result<()> {
        B::write_block(self, tx, blkid, data)
    }

    fn is_dirty_block(&self, blkid: u64, data: &Buf) -> bool {
        B::is_dirty_block(self, blkid, data)
    }

    async fn patch_block(&self, tx: &B::Tx, blkid: u64, within: usize, part: &[u8]) -> Result<()> {
        B::patch_block(self, tx, blkid, within, part).await
    }

    async fn set_block_size(&self, tx: &B::Tx, size: usize) -> Result<()> {
        B::set_block_size(self, tx, size).await
    }

    fn free_blocks(&self, tx: &B::Tx, blocks: Range<u64>) -> Result<()> {
        B::free_blocks(self, tx, blocks)
    }
}

const SALT: u64 = 0x5eed_0123_4567_89ab;

pub(crate) fn micro() -> Zap<Memory> {
    Zap::format(Memory::new(512), &(), Options::default(), SALT).unwrap()
}

pub(crate) fn fat(block_size: usize, flags: ZapFlags) -> Zap<Memory> {
    let options = Options { flags, normalization: Normalization::NONE };
    Zap::format(Memory::new(block_size), &(), options, SALT).unwrap()
}

/// A generator that gives the same numbers for the same seed (splitmix64).
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
