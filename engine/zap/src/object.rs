//! The blocks of an object: where ZAPs live in production.

use crate::{Blocks, Options, Zap};
use dmu::{NewObject, ObjSet, Object, Tx};
use std::ops::Range;
use units::Result;
use world::Buf;

impl Blocks for Object {
    type Tx = Tx;

    fn name(&self) -> String {
        format!("object {}", self.id())
    }

    fn block_size(&self) -> usize {
        Object::block_size(self) as usize
    }

    fn block_count(&self) -> u64 {
        self.attrs().max_blkid.saturating_add(1)
    }

    async fn read_block(&self, blkid: u64) -> Result<Buf> {
        Object::read_block(self, blkid).await
    }

    async fn read_versioned(&self, blkid: u64) -> Result<(Buf, u64)> {
        Object::read_versioned(self, blkid).await
    }

    fn version(&self) -> u64 {
        Object::version(self)
    }

    fn is_dirty_block(&self, blkid: u64, data: &Buf) -> bool {
        Object::is_dirty_block(self, blkid, data)
    }

    async fn patch_block(&self, tx: &Tx, blkid: u64, within: usize, part: &[u8]) -> Result<()> {
        Object::patch_block(self, tx, blkid, within, part).await
    }

    fn write_block(&self, tx: &Tx, blkid: u64, data: Buf) -> Result<()> {
        Object::write_block(self, tx, blkid, data)
    }

    async fn set_block_size(&self, tx: &Tx, size: usize) -> Result<()> {
        Object::set_block_size(self, tx, size as u32).await
    }

    fn free_blocks(&self, tx: &Tx, blocks: Range<u64>) -> Result<()> {
        Object::free_blocks(self, tx, blocks)
    }
}

impl Zap<Object> {
    /// Makes an object that is an empty ZAP. Its blocks should have 512 bytes if there are no flags, to grow from there.
    pub async fn create(set: &ObjSet, tx: &Tx, new: NewObject, options: Options) -> Result<Zap<Object>> {
        Zap::format(set.allocate(tx, new).await?, tx, options, world::random_u64())
    }

    /// Frees the object with all its entries.
    pub async fn destroy(self, set: &ObjSet, tx: &Tx) -> Result<()> {
        set.free(tx, self.blocks().id()).await
    }
}
