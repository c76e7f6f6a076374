//! Changing what is in a file.
//!
//! A file has one block as long as it fits into one, as large as it needs; when it outgrows the record size its blocks
//! have that size, for good. What lies behind the end of a file in its last block is zeros.

use super::direct::Writing;
use super::log::Change;
use super::{COST, Loaded};
use crate::file_system::FileSystem;
use crate::file_system::accounts::owner_of;
use crate::file_system::node::Node;
use crate::flags;
use crate::quotas::Resource;
use crate::refusal::Refusal;
use crate::sa::Attr;
use crate::stat::FileKind;
use dmu::Tx;
use std::ops::Range;
use units::{Error, Result};
use world::Buf;

/// How much goes into one transaction.
const CHUNK: usize = 1 << 20;
/// The largest size of a file that all clients can express.
const SIZE_MAX: u64 = i64::MAX as u64;

impl FileSystem {
    /// Copies what is to be written at `offset` into buffers that end where records do: those of whole records are then the
    /// blocks themselves. It is the one copy that a write costs.
    pub fn parts(&self, offset: u64, bytes: &[u8]) -> Vec<Buf> {
        let record = self.settings().record_size.min(CHUNK as u64);
        let first = (record - offset % record).min(bytes.len() as u64) as usize;
        let (first, rest) = bytes.split_at(first);
        let first = (!first.is_empty()).then_some(first);
        first.into_iter().chain(rest.chunks(record as usize)).map(Buf::copy_from).collect()
    }
}

impl Node {
    pub(super) fn check_change(&self, loaded: &Loaded<'_>, forbidden: u64, end: Option<u64>) -> Result<()> {
        match self.kind() {
            FileKind::Regular => {}
            FileKind::Directory => return Err(self.refuse(Refusal::IsDirectory, "write")),
            _ => return Err(self.place(Error::invalid("write: it is no file with data"))),
        }
        if end.is_none_or(|end| end > SIZE_MAX) {
            return Err(self.refuse(Refusal::TooLarge, "write"));
        }
        self.check_flags(&loaded.attributes, forbidden | flags::READONLY, "write")
    }

    /// Refuses when the owner of the file may not take more.
    pub(super) async fn check_owner_quota(&self, loaded: &Loaded<'_>, doing: &str) -> Result<()> {
        let owner = owner_of(&loaded.attributes).map_err(|e| self.place(e))?;
        self.file_system().check_quota(owner, &[Resource::Space], doing).await
    }

    /// Makes the blocks of a file as large as one that reaches up to `end` wants them, if they can still change.
    pub(super) async fn grow_block(&self, tx: &Tx, size: u64, end: u64) -> Result<()> {
        let record = self.file_system().settings().record_size;
        let attrs = self.object().attrs();
        let block = u64::from(attrs.block_size);
        if attrs.max_blkid > 0 || size > block || end <= block {
            return Ok(());
        }
        // A file whose block is larger than records are now keeps to that, up to a power of two.
        let most = if block > record { block.next_power_of_two() } else { record };
        let wanted = end.min(most).next_multiple_of(512);
        if wanted > block { self.object().set_block_size(tx, wanted as u32).await } else { Ok(()) }
    }

    /// Writes `bytes` at `offset`; on return they are in memory, in a txg that will be synced.
    ///
    /// More than a mebibyte goes in several transactions; an error means that the part before may be there.
    pub async fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_parts(offset, self.file_system().parts(offset, bytes), false).await
    }

    /// As [`Node::write`], and makes it durable with all that was changed of the file before (`O_DSYNC`, `O_SYNC`).
    pub async fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_parts(offset, self.file_system().parts(offset, bytes), true).await
    }

    /// As the two above, with what [`FileSystem::parts`] has made of the bytes.
    pub async fn write_parts(&self, offset: u64, parts: Vec<Buf>, durably: bool) -> Result<()> {
        let how = Writing { durably, ..Writing::default() };
        self.write_as(offset, parts, how).await.map(drop)
    }

    /// As [`Node::write_parts`]; what goes past the cache is on its devices before the answer. Says how many bytes that are:
    /// those of whole blocks.
    pub async fn write_as(&self, offset: u64, parts: Vec<Buf>, how: Writing) -> Result<u64> {
        let len = parts.iter().map(|part| part.len() as u64).sum();
        let is_direct = self.file_system().object_set().direct().takes(how.is_direct, offset, len);
        let (mut at, mut past_cache) = (offset, 0);
        let mut rest = &parts[..];
        while let Some(first) = rest.first() {
            let mut len = first.len();
            let more = rest[1..].iter().take_while(|part| {
                len += part.len();
                len <= CHUNK
            });
            let (part, behind) = rest.split_at(1 + more.count());
            let len = part.iter().map(|part| part.len() as u64).sum();
            past_cache += self.write_part(at, part, len, Writing { is_direct, ..how }).await?;
            at = at.saturating_add(len);
            rest = behind;
        }
        if how.durably {
            self.sync().await?
        } else {
            self.file_system().settle().await?
        }
        Ok(past_cache)
    }

    async fn write_part(&self, offset: u64, parts: &[Buf], len: u64, how: Writing) -> Result<u64> {
        let fs = self.file_system();
        let mut file = self.load().await?;
        let end = offset.checked_add(len);
        self.check_change(&file, flags::IMMUTABLE, end)?;
        let (size, end) = (file.word(Attr::Size)?, end.unwrap_or(SIZE_MAX));
        if offset < size {
            self.check_flags(&file.attributes, flags::APPENDONLY, "overwrite")?;
        }
        self.check_owner_quota(&file, "write").await?;
        let tx = fs.begin(len + COST).await?;
        self.grow_block(&tx, size, end).await?;
        self.fill(&tx, offset, parts).await.map_err(|e| self.place(e))?;
        if end > size {
            file.set(Attr::Size, &[end])?;
        }
        file.touch(true)?;
        file.store(&tx).await?;
        let early = match how.is_direct {
            true => self.whole_dirty_blocks(&tx, offset, end),
            false => self.blocks_behind(&tx, offset, end),
        };
        match file.word(Attr::Links)? {
            0 => tx.needs_no_record(),
            _ if early.is_empty() => tx.log_write(self.object(), offset, parts, size, how.durably),
            _ => tx.log_write_early(self.object(), offset, parts, &early, how.durably),
        }
        drop(file);
        match how.is_direct {
            _ if early.is_empty() => Ok(0),
            true => Ok(self.write_past_cache(tx, early).await),
            false => {
                self.write_behind(tx, early, &fs.writer()?.behind);
                Ok(0)
            }
        }
    }

    /// A part that is one block is kept as it is.
    async fn fill(&self, tx: &Tx, offset: u64, parts: &[Buf]) -> Result<()> {
        let block = self.object().block_size();
        let mut at = offset;
        for part in parts {
            if part.len() as u64 == block && at.is_multiple_of(block) {
                self.object().write_block(tx, at / block, part.clone())?;
            } else {
                self.object().write(tx, at, part).await?;
            }
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Notes in the log that a range of a file, loaded, became zeros; with `length` 0, that it ends there.
    fn log_truncate(&self, tx: &Change, file: &Loaded<'_>, offset: u64, length: u64) -> Result<()> {
        match file.word(Attr::Links)? {
            0 => tx.needs_no_record(),
            _ => tx.log_truncate(self.object().id(), offset, length),
        }
        Ok(())
    }

    /// Makes the file so long: what is behind is gone, what is new is a hole.
    pub async fn truncate(&self, size: u64) -> Result<()> {
        let mut file = self.load().await?;
        self.check_change(&file, flags::IMMUTABLE | flags::APPENDONLY, Some(size))?;
        let old = file.word(Attr::Size)?;
        let fs = self.file_system();
        let emptied = match size < old {
            true => self.free_ahead(self.whole_blocks(size, u64::MAX)).await?,
            false => 0,
        };
        let tx = if size < old { fs.begin_freeing().await? } else { fs.begin(COST).await? };
        tx.empties(emptied);
        if size < old {
            self.object().free_range(&tx, size, u64::MAX).await.map_err(|e| self.place(e))?;
        } else {
            self.grow_block(&tx, old, size).await?;
        }
        file.set(Attr::Size, &[size])?;
        file.touch(true)?;
        file.store(&tx).await?;
        self.log_truncate(&tx, &file, size, 0)?;
        drop((tx, file));
        self.file_system().settle().await
    }

    /// Makes a range read as zeros; whole blocks of it are freed. The size stays.
    pub async fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        let mut file = self.load().await?;
        self.check_change(&file, flags::IMMUTABLE | flags::APPENDONLY, offset.checked_add(len))?;
        let len = file.word(Attr::Size)?.saturating_sub(offset).min(len);
        if len == 0 {
            return Ok(());
        }
        let emptied = self.free_ahead(self.whole_blocks(offset, len)).await?;
        let tx = self.file_system().begin_freeing().await?;
        tx.empties(emptied);
        self.object().free_range(&tx, offset, len).await.map_err(|e| self.place(e))?;
        file.touch(true)?;
        file.store(&tx).await?;
        self.log_truncate(&tx, &file, offset, len)?;
        drop((tx, file));
        self.file_system().settle().await
    }

    /// The blocks that lie within a range, up to the last there is.
    fn whole_blocks(&self, offset: u64, len: u64) -> Range<u64> {
        let (size, attrs) = (self.object().block_size(), self.object().attrs());
        let end = (offset.saturating_add(len) / size).min(attrs.max_blkid.saturating_add(1));
        offset.div_ceil(size).min(end)..end
    }

    /// Frees what of `blocks` is more than one txg may free, in pieces, and waits until there is room for the rest, which
    /// is the caller's. Returns what that [empties](Tx::empties). The file's lock, if the file can be reached, is the
    /// caller's too; it has no transaction.
    ///
    /// A crash in the middle leaves a file that was being cut with holes at its end. Its new size was not acknowledged.
    pub(crate) async fn free_ahead(&self, blocks: Range<u64>) -> Result<u64> {
        let fs = self.file_system();
        let writer = fs.writer()?;
        let mut left = blocks;
        // A record is replayed in one txg, which has been opened for it; it was in one when it was made, or was a piece.
        while writer.replaying_in().is_none() {
            writer.txgs.wait_to_free().await?;
            let most = writer.txgs.piece_to_free();
            let piece = self.object().piece_to_free(left.clone(), most).await.map_err(|e| self.place(e))?;
            if piece.blocks.end >= left.end {
                return Ok(piece.indirect);
            }
            let tx = fs.begin_freeing().await?;
            tx.needs_no_record();
            tx.empties(piece.indirect);
            self.object().free_blocks(&tx, piece.blocks.clone()).map_err(|e| self.place(e))?;
            left.start = piece.blocks.end;
        }
        Ok(0)
    }

    /// As `fallocate`: nothing is set aside, for what is written goes to a new place anyway; the file may get longer.
    pub async fn allocate(&self, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        let mut file = self.load().await?;
        let end = offset.checked_add(len);
        self.check_change(&file, flags::IMMUTABLE, end)?;
        let (size, end) = (file.word(Attr::Size)?, end.unwrap_or(SIZE_MAX));
        if keep_size || end <= size {
            return Ok(());
        }
        let tx = self.file_system().begin(COST).await?;
        self.grow_block(&tx, size, end).await?;
        file.set(Attr::Size, &[end])?;
        file.touch(true)?;
        file.store(&tx).await?;
        self.log_truncate(&tx, &file, end, 0)?;
        drop((tx, file));
        self.file_system().settle().await
    }
}
