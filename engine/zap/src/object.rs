//! The blocks of an object: where ZAPs live in production.

use crate::Blocks;
use dmu::{Object, Tx};
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

    async fn read_block(&self, blkid: u64) -> Result<Buf> {
        Object::read_block(self, blkid).await
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
