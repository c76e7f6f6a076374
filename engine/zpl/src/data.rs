//! What is in a file: reading ranges, and telling data from holes.

use crate::file_system::node::Node;
use crate::refusal::Refusal;
use crate::stat::FileKind;
use futures_util::stream::{FuturesOrdered, StreamExt};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Error, Result};
use world::{Buf, IoBuf};

/// How many blocks of one read are asked for at once: enough for a disk that does many things at a time.
const AT_ONCE: usize = 16;

impl Node {
    fn regular(&self, doing: &str) -> Result<()> {
        match self.kind() {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err(self.refuse(Refusal::IsDirectory, doing)),
            _ => Err(self.place(Error::invalid(format!("{doing}: it is no file with data")))),
        }
    }

    /// Up to `len` bytes from `offset`: fewer at the end of the file, none behind it; holes are zeros.
    ///
    /// A block that cannot be read fails the whole range: ask for smaller ones to get around it.
    pub async fn read(&self, offset: u64, len: usize) -> Result<Buf> {
        let len = self.readable(offset, len)?;
        self.read_object(offset, len).await.map_err(|e| self.place(e))
    }

    /// As [`Node::read`] for a client whose file is open with `O_DIRECT`, or is not: it goes past the cache if `direct` of
    /// the dataset says so ([`dmu::Direct`]). Says too how many of the bytes were then read from devices.
    pub async fn read_as(&self, offset: u64, len: usize, is_direct: bool) -> Result<(Buf, u64)> {
        match self.file_system().object_set().direct().takes(is_direct, offset, len as u64) {
            true => self.read_past_cache(offset, len).await,
            false => Ok((self.read(offset, len).await?, 0)),
        }
    }

    /// Leaves nothing in the cache that was not there, and reads nothing ahead.
    async fn read_past_cache(&self, offset: u64, len: usize) -> Result<(Buf, u64)> {
        let (len, object, from_devices) = (self.readable(offset, len)?, self.object(), AtomicU64::new(0));
        let size = object.block_size();
        let read = gather(offset, len, size, |blkid| {
            let (from, to) = (offset.max(blkid * size), (offset + len as u64).min((blkid + 1) * size));
            let from_devices = &from_devices;
            async move {
                let (block, is_from_device) = object.read_block_past_cache(blkid).await?;
                from_devices.fetch_add(if is_from_device { to - from } else { 0 }, Ordering::Relaxed);
                Ok(block)
            }
        });
        let data = read.await.map_err(|e| self.place(e))?;
        Ok((data, from_devices.into_inner()))
    }

    /// How much of a range lies before the end of the file.
    fn readable(&self, offset: u64, len: usize) -> Result<usize> {
        self.regular("read")?;
        let left = self.size()?.saturating_sub(offset);
        Ok(len.min(usize::try_from(left).unwrap_or(usize::MAX)))
    }

    async fn read_object(&self, offset: u64, len: usize) -> Result<Buf> {
        let object = self.object();
        let shape = object.shape();
        let size = shape.block_size;
        let blocks = offset / size..(offset + len as u64).div_ceil(size);
        object.observe_read(self.prefetch_streams(), shape, offset..offset + len as u64);
        if blocks.end <= blocks.start + 1 {
            return object.read(offset, len).await;
        }
        gather(offset, len, size, |blkid| object.read_block(blkid)).await
    }

    /// Where data begins at or after `offset`; `None` when there is none up to the end of the file.
    pub async fn seek_data(&self, offset: u64) -> Result<Option<u64>> {
        self.seek(offset, true).await
    }

    /// Where a hole begins at or after `offset`: at the latest at the end of the file. `None` when that is before.
    pub async fn seek_hole(&self, offset: u64) -> Result<Option<u64>> {
        let end = self.size()?;
        Ok(self.seek(offset, false).await?.or_else(|| (offset < end).then_some(end)))
    }

    async fn seek(&self, offset: u64, data: bool) -> Result<Option<u64>> {
        self.regular("seek")?;
        let (end, object) = (self.size()?, self.object());
        let size = object.block_size();
        let mut at = offset;
        // Behind the last block that was ever written is nothing, however large the file says it is.
        let last = object.attrs().max_blkid;
        while at < end {
            let (is_data, next) = match at / size {
                block if block > last => (false, u64::MAX),
                block => object.extent(block).await.map_err(|e| self.place(e))?,
            };
            if is_data == data {
                return Ok(Some(at));
            }
            at = next.saturating_mul(size);
            // A file has as many runs as it has blocks, at the worst.
            world::breathe().await;
        }
        Ok(None)
    }
}

/// The bytes of a range from its blocks, which are of `size` bytes; [`AT_ONCE`] of them are asked for at once.
async fn gather<F: Future<Output = Result<Buf>>>(
    offset: u64,
    len: usize,
    size: u64,
    block: impl Fn(u64) -> F,
) -> Result<Buf> {
    let blocks = offset / size..(offset + len as u64).div_ceil(size);
    let within = (offset % size) as usize;
    if blocks.end == blocks.start + 1 {
        return Ok(block(blocks.start).await?.slice(within..within + len));
    }
    let mut out = IoBuf::scratch(len);
    let (mut next, mut done) = (blocks.start, 0);
    let mut under_way = FuturesOrdered::new();
    loop {
        while under_way.len() < AT_ONCE && next < blocks.end {
            under_way.push_back(block(next));
            next += 1;
        }
        let Some(block) = under_way.next().await else { return Ok(out.freeze()) };
        let block = block?;
        let within = if done == 0 { within } else { 0 };
        let n = (block.len() - within).min(len - done);
        out[done..done + n].copy_from_slice(&block[within..within + n]);
        done += n;
    }
}
