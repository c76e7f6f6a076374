//! Content and length of files.

use super::Replay;
use crate::file_system::node::Node;
use crate::file_system::write::COST;
use crate::sa::Attr;
use ondisk::zil::{Truncate, Write};
use units::{Error, Result};
use world::Buf;

impl Replay {
    pub(super) async fn write(&self, write: &Write<'_>, block: Option<&Buf>) -> Result<()> {
        let file = self.node(write.object).await?;
        let Some(block) = block else { return file.write(write.offset, write.data).await };
        let size = block.len() as u64;
        if write.length > size || size == 0 {
            return Err(Error::corrupt(format!("a block of {size} bytes for {} bytes", write.length)));
        }
        // A write of a whole block is where it says; of a smaller one the block begins before.
        let start = if write.length < size { write.offset - write.offset % size } else { write.offset };
        let end = write.offset.saturating_add(write.length);
        if end > start.saturating_add(size) {
            let what = format!("{} bytes at {} of a block of {size}", write.length, write.offset);
            return Err(Error::corrupt(what));
        }
        self.tails().insert(write.object);
        file.put_block(start, block, end).await
    }

    pub(super) async fn truncate(&self, truncate: &Truncate) -> Result<()> {
        let Truncate { object, offset, length } = *truncate;
        let file = self.node(object).await?;
        if length == 0 {
            return file.truncate(offset).await;
        }
        file.punch_hole(offset, length).await?;
        file.lengthen(offset.saturating_add(length)).await
    }
}

impl Node {
    /// Puts a whole block in place, of which the file has what lies before `end`, or before its own if that is further.
    async fn put_block(&self, start: u64, block: &Buf, end: u64) -> Result<()> {
        let mut file = self.load().await?;
        let stop = start.checked_add(block.len() as u64);
        self.check_change(&file, 0, stop)?;
        let size = file.word(Attr::Size)?;
        let tx = self.file_system().begin(block.len() as u64 + COST).await?;
        self.grow_block(&tx, size, stop.unwrap_or(end)).await?;
        self.object().write(&tx, start, block).await.map_err(|e| self.place(e))?;
        if end > size {
            file.set(Attr::Size, &[end])?;
        }
        file.touch(true)?;
        file.store(&tx).await
    }

    /// The file reaches up to `end` at least.
    pub(super) async fn lengthen(&self, end: u64) -> Result<()> {
        let mut file = self.load().await?;
        self.check_change(&file, 0, Some(end))?;
        let size = file.word(Attr::Size)?;
        if end <= size {
            return Ok(());
        }
        let tx = self.file_system().begin(COST).await?;
        self.grow_block(&tx, size, end).await?;
        file.set(Attr::Size, &[end])?;
        file.store(&tx).await
    }

    /// What lies behind the end of the file in its last block becomes zeros.
    pub(super) async fn clear_tail(&self) -> Result<()> {
        let file = self.load().await?;
        let size = file.word(Attr::Size)?;
        let within = (size % self.object().block_size()) as usize;
        let block = self.object().read_block(size / self.object().block_size()).await;
        let is_clear = block.map_err(|e| self.place(e))?[within..].iter().all(|byte| *byte == 0);
        if is_clear {
            return Ok(());
        }
        let tx = self.file_system().begin(COST).await?;
        self.object().free_range(&tx, size, u64::MAX).await.map_err(|e| self.place(e))
    }
}
