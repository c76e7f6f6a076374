//! Looking into a fat ZAP.

use super::{Edit, Header};
use crate::block;
use crate::blocks::Blocks;
use crate::cursor::Cursor;
use crate::hash::Rules;
use crate::kept::Kept;
use crate::key::{Needle, OwnedKey};
use crate::le;
use crate::leaf::{EntryChunk, Leaf};
use crate::value::{Entry, Found, Value};
use units::{Error, Result};
use world::Buf;

/// A fat ZAP as block 0 shows it.
#[derive(Debug)]
pub(crate) struct Fat<'s, S> {
    pub store: &'s S,
    block0: Buf,
    pub header: Header,
    /// Of the store.
    version: u64,
    /// In the store block 0 is in the other byte order.
    is_foreign: bool,
}

impl<'s, S: Blocks> Fat<'s, S> {
    pub fn open(store: &'s S, block0: Buf, version: u64, is_foreign: bool) -> Result<Fat<'s, S>> {
        let header = Header::decode(&block0).map_err(|e| e.at(store.name()))?;
        Ok(Fat { store, block0, header, version, is_foreign })
    }

    pub fn rules(&self) -> &Rules {
        &self.header.rules
    }

    /// Starts a change, by a handle that keeps this.
    pub fn edit(self, kept: &'s Kept) -> Edit<'s, S> {
        Edit::new(self.store, self.header, self.block0, self.is_foreign).knowing(kept, self.version)
    }

    pub async fn find(&self, needle: &Needle<'_>) -> Result<Option<Value>> {
        let (blkid, leaf) = self.leaf_of(needle.hash).await?;
        let value = leaf.find(needle).and_then(|entry| entry.map(|e| leaf.value_of(&e)).transpose());
        value.map_err(|e| at_block(e, self.store, blkid))
    }

    /// The value of the entry if it is a single integer; the outer `None` means that there is no such entry.
    pub async fn find_u64(&self, needle: &Needle<'_>) -> Result<Option<Option<u64>>> {
        let (blkid, leaf) = self.leaf_of(needle.hash).await?;
        let value = leaf.find(needle).and_then(|entry| entry.map(|e| leaf.u64_of(&e)).transpose());
        value.map_err(|e| at_block(e, self.store, blkid))
    }

    /// As [`Fat::find`], with the name as it is stored.
    pub async fn find_name(&self, needle: &Needle<'_>) -> Result<Option<Found>> {
        let (blkid, leaf) = self.leaf_of(needle.hash).await?;
        let found = || {
            let Some(entry) = leaf.find(needle)? else { return Ok(None) };
            let OwnedKey::Name(name) = leaf.key_of(&entry, self.rules())? else { return Ok(None) };
            let is_ambiguous = leaf.count_matches(needle)? > 1;
            Ok(Some(Found { name, value: leaf.value_of(&entry)?, is_ambiguous }))
        };
        found().map_err(|e| at_block(e, self.store, blkid))
    }

    /// The entries from `from` on of the leaf that it leads to, in listing order, each with the position behind it;
    /// and where the next leaf starts, if there is one.
    pub async fn list(&self, from: Cursor) -> Result<(Vec<(Cursor, Entry)>, Option<Cursor>)> {
        let (blkid, leaf) = self.leaf_of(from.hash).await?;
        let listed = || {
            let mut chunks: Vec<EntryChunk> = leaf.entries().collect::<Result<_>>()?;
            chunks.retain(|e| position(e) >= from);
            chunks.sort_by_key(position);
            let read = |e: &EntryChunk| {
                let entry = Entry { key: leaf.key_of(e, self.rules())?, value: leaf.value_of(e)? };
                Ok((position(e).behind(), entry))
            };
            chunks.iter().map(read).collect::<Result<Vec<_>>>()
        };
        let entries = listed().map_err(|e| at_block(e, self.store, blkid))?;
        Ok((entries, behind(&leaf)))
    }

    async fn leaf_of(&self, hash: u64) -> Result<(u64, Leaf<Buf>)> {
        let blkid = self.pointer_of(hash).await?;
        let leaf = read_leaf(self.store, &self.header, blkid, hash).await?;
        Ok((blkid, leaf))
    }

    /// The block of the leaf of a hash.
    pub async fn pointer_of(&self, hash: u64) -> Result<u64> {
        let place = self.header.place_of(self.header.index_of(hash));
        let raw = if place.block == 0 {
            le::u64_at(&self.block0, place.offset)
        } else {
            le::u64_at(&read_block(self.store, &self.header, place.block).await?, place.offset)
        };
        leaf_pointer(raw, &self.header).map_err(|e| at_block(e, self.store, place.block))
    }
}

/// Where the leaf behind this one starts, if there is one.
pub(crate) fn behind(leaf: &Leaf<Buf>) -> Option<Cursor> {
    after(leaf.prefix(), leaf.prefix_len()).map(|hash| Cursor { hash, cd: 0 })
}

pub(crate) fn position(entry: &EntryChunk) -> Cursor {
    Cursor { hash: entry.phys.hash, cd: entry.phys.differentiator }
}

/// The first hash that a prefix no longer covers; none behind the last prefix.
fn after(prefix: u64, len: u32) -> Option<u64> {
    let next = prefix + 1;
    if len == 0 || next >> len != 0 { None } else { Some(next << (64 - len)) }
}

pub(super) fn leaf_pointer(raw: u64, header: &Header) -> Result<u64> {
    block::pointer(raw, header.free_block)
        .ok_or_else(|| Error::corrupt(format!("ZAP pointer to block {raw:#x} of {}", header.free_block)))
}

pub(crate) async fn read_leaf<S: Blocks>(
    store: &S,
    header: &Header,
    blkid: u64,
    hash: u64,
) -> Result<Leaf<Buf>> {
    let bytes = read_block(store, header, blkid).await?;
    let leaf = Leaf::open(bytes, hash).map_err(|e| at_block(e, store, blkid))?;
    if leaf.prefix_len() > header.table_shift() {
        let fault =
            format!("ZAP leaf: prefix of {} bits, table of {}", leaf.prefix_len(), header.table.shift);
        return Err(at_block(Error::corrupt(fault), store, blkid));
    }
    Ok(leaf)
}

/// A block behind the header, which has the header's size.
pub(super) async fn read_block<S: Blocks>(store: &S, header: &Header, blkid: u64) -> Result<Buf> {
    let bytes = store.read_block(blkid).await?;
    if bytes.len() != header.block_size() {
        let fault = format!("ZAP block of {} bytes behind a header of {}", bytes.len(), header.block_size());
        return Err(at_block(Error::corrupt(fault), store, blkid));
    }
    Ok(bytes)
}

pub(crate) fn at_block<S: Blocks>(error: Error, store: &S, blkid: u64) -> Error {
    error.at(format!("{} block {blkid}", store.name()))
}
