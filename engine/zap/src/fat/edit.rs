//! One change of a fat ZAP, collected block by block and written at its end.

use super::read::{at_block, leaf_pointer, read_block, read_leaf};
use super::{Header, header::Place};
use crate::blocks::Blocks;
use crate::hash::Rules;
use crate::kept::Kept;
use crate::key::Needle;
use crate::le;
use crate::leaf::{self, Fit, Leaf};
use crate::micro::Micro;
use crate::value::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use units::{Error, Kind, Result};
use world::{Buf, IoBuf};

/// The header lies within this many bytes of block 0.
const HEADER_MAX: usize = 128;

/// The new content of every block that changes. Nothing is written before [`Edit::commit`].
#[derive(Debug)]
pub(crate) struct Edit<'s, S> {
    pub(super) store: &'s S,
    pub header: Header,
    block0: Buf,
    /// More of it changes than its header, or it is in the other byte order.
    rewrites_block0: bool,
    /// Blocks of the pointer table.
    tables: BTreeMap<u64, IoBuf>,
    leaves: BTreeMap<u64, Leaf<IoBuf>>,
    freed: Vec<Range<u64>>,
    /// What knows which leaves are sound, and of which version of the store.
    known: Option<(&'s Kept, u64)>,
}

/// What is left of a change when block 0 is written.
struct Rest<'s, S> {
    store: &'s S,
    tables: BTreeMap<u64, IoBuf>,
    leaves: BTreeMap<u64, Leaf<IoBuf>>,
    freed: Vec<Range<u64>>,
    known: Option<(&'s Kept, u64)>,
}

impl<S: Blocks> Rest<'_, S> {
    fn write(self, tx: &S::Tx) -> Result<()> {
        let sound: Vec<u64> = self.leaves.keys().copied().collect();
        let others: Vec<Range<u64>> =
            self.freed.iter().cloned().chain(self.tables.keys().map(|blkid| *blkid..*blkid + 1)).collect();
        let writes = 1 + self.freed.len() + self.tables.len() + self.leaves.len();
        for blocks in self.freed {
            self.store.free_blocks(tx, blocks)?;
        }
        for (blkid, bytes) in self.tables {
            self.store.write_block(tx, blkid, bytes.freeze())?;
        }
        for (blkid, leaf) in self.leaves {
            self.store.write_block(tx, blkid, leaf.freeze())?;
        }
        if let Some((kept, from)) = self.known {
            let to = from + writes as u64;
            if self.store.version() == to {
                kept.follow_leaves(from, to, &sound, &others);
            }
        }
        Ok(())
    }
}

/// What to do about a key that is there, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Insert,
    Upsert,
}

impl<'s, S: Blocks> Edit<'s, S> {
    pub(super) fn new(store: &'s S, header: Header, block0: Buf, rewrites_block0: bool) -> Edit<'s, S> {
        let (tables, leaves, freed) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Edit { store, header, block0, rewrites_block0, tables, leaves, freed, known: None }
    }

    /// What a handle remembers of the store at `version` need not be proven again.
    pub fn knowing(self, kept: &'s Kept, version: u64) -> Edit<'s, S> {
        Edit { known: Some((kept, version)), ..self }
    }

    /// A fat ZAP from nothing: a header whose pointers all lead to block 1, an empty leaf.
    pub fn format(store: &'s S, shift: u32, rules: Rules) -> Edit<'s, S> {
        let mut block0 = IoBuf::zeroed(1 << shift);
        for pointer in block0[1 << (shift - 1)..].chunks_exact_mut(8) {
            le::put_u64(pointer, 0, 1);
        }
        let mut edit = Edit::new(store, Header::new(shift, rules), block0.freeze(), true);
        edit.leaves.insert(1, Leaf::format(shift, &rules, 0, 0));
        edit
    }

    /// The fat form of a micro ZAP. Entries keep their cd, so cursors stay good.
    pub async fn upgrade(store: &'s S, shift: u32, micro: &Micro) -> Result<Edit<'s, S>> {
        let rules = micro.rules();
        let mut edit = Edit::format(store, shift, rules);
        let slots = micro.slots().map(|s| s.map(|s| (s.name.to_vec(), s.cd, s.value)));
        for slot in slots.collect::<Result<Vec<_>>>().map_err(|e| e.at(store.name()))? {
            let (name, cd, value) = slot;
            let needle = Needle::new(&rules, name.as_slice().into(), crate::key::Match::Exact)?;
            edit.put(&needle, Some(cd), &value.into(), Mode::Insert).await?;
        }
        Ok(edit)
    }

    /// Adds or replaces an entry. `cd` is given when an existing entry moves in.
    pub async fn put(
        &mut self,
        needle: &Needle<'_>,
        cd: Option<u32>,
        value: &Value,
        mode: Mode,
    ) -> Result<()> {
        if !leaf::could_hold(self.header.shift, needle, value) {
            return Err(Error::invalid(format!(
                "{} and its value do not fit a ZAP block of {} bytes",
                needle.key,
                self.header.block_size()
            )));
        }
        loop {
            let blkid = self.leaf_of(needle.hash).await?;
            let fit = self.put_in_leaf(blkid, needle, cd, value, mode);
            if fit.map_err(|e| at_block(e, self.store, blkid))? == Fit::Done {
                return self.grow_ahead(blkid).await;
            }
            self.split(blkid, needle.hash).await?;
        }
    }

    fn put_in_leaf(
        &mut self,
        blkid: u64,
        needle: &Needle<'_>,
        cd: Option<u32>,
        value: &Value,
        mode: Mode,
    ) -> Result<Fit> {
        let max_cd = self.header.rules.max_cd();
        let leaf = self.leaf_mut(blkid);
        if let Some(entry) = leaf.find(needle)? {
            return match mode {
                Mode::Insert => Err(Error::new(Kind::Exists, format!("insert {}", needle.key))),
                Mode::Upsert => Ok(leaf.update(&entry, value)),
            };
        }
        let cd = cd.map_or_else(|| leaf.lowest_free_cd(needle.hash), Ok)?;
        if cd >= max_cd {
            return Err(Error::new(Kind::NoSpace, format!("insert {}", needle.key)));
        }
        let fit = leaf.insert(needle, cd, value);
        if fit == Fit::Done {
            self.header.entries = self.header.entries.saturating_add(1);
        }
        Ok(fit)
    }

    pub async fn remove(&mut self, needle: &Needle<'_>) -> Result<()> {
        let blkid = self.leaf_of(needle.hash).await?;
        let leaf = self.leaf_mut(blkid);
        let Some(entry) = leaf.find(needle)? else {
            return Err(Error::new(Kind::NotFound, format!("remove {}", needle.key)));
        };
        leaf.remove(&entry);
        let is_empty = leaf.len() == 0;
        self.header.entries = self.header.entries.checked_sub(1).ok_or_else(|| {
            Error::corrupt("ZAP header: counts no entries, but there was one").at(self.store.name())
        })?;
        if is_empty { self.shrink(needle.hash).await } else { Ok(()) }
    }

    /// Writes every block of the change. Of block 0 it is the header alone as long as its pointers stay as they are.
    pub async fn commit(self, tx: &S::Tx) -> Result<()> {
        if self.rewrites_block0 {
            return self.commit_whole(tx);
        }
        let mut head = self.block0[..HEADER_MAX].to_vec();
        self.header.encode(&mut head);
        let store = self.store;
        let rest = self.without_block0();
        // First, and the rest follows at once: a caller that gives up waiting has changed nothing.
        store.patch_block(tx, 0, 0, &head).await?;
        rest.write(tx)
    }

    /// The same, with all of block 0.
    pub fn commit_whole(self, tx: &S::Tx) -> Result<()> {
        let mut block0 = self.block0.clone();
        self.header.encode(block0.make_mut());
        let store = self.store;
        let rest = self.without_block0();
        store.write_block(tx, 0, block0)?;
        rest.write(tx)
    }

    /// All but block 0, which is not held then.
    fn without_block0(self) -> Rest<'s, S> {
        let Edit { store, tables, leaves, freed, known, .. } = self;
        Rest { store, tables, leaves, freed, known }
    }

    /// Loads the leaf that a hash leads to for changing, and returns its block.
    pub(super) async fn leaf_of(&mut self, hash: u64) -> Result<u64> {
        let blkid = self.pointer(self.header.index_of(hash)).await?;
        if !self.leaves.contains_key(&blkid) {
            let leaf = read_leaf(self.store, &self.header, blkid, hash).await?;
            // What a device gives back is never known to be what was written.
            let is_sound = self.known.is_some_and(|(kept, version)| kept.is_sound(version, blkid))
                && self.store.is_dirty_block(blkid, leaf.bytes());
            let leaf = leaf.into_mut(&self.header.rules, is_sound);
            let leaf = leaf.map_err(|e| at_block(e, self.store, blkid))?;
            self.leaves.insert(blkid, leaf);
        }
        Ok(blkid)
    }

    /// A leaf that [`Edit::leaf_of`] has loaded.
    pub(super) fn leaf_mut(&mut self, blkid: u64) -> &mut Leaf<IoBuf> {
        self.leaves.get_mut(&blkid).expect("leaf_of has loaded it")
    }

    pub(super) fn add_leaf(&mut self, blkid: u64, leaf: Leaf<IoBuf>) {
        self.leaves.insert(blkid, leaf);
        self.header.leaves = self.header.leaves.saturating_add(1);
    }

    /// The block of the leaf at `index` of the table.
    pub(super) async fn pointer(&self, index: u64) -> Result<u64> {
        let Place { block, offset } = self.header.place_of(index);
        let raw = if block == 0 {
            le::u64_at(&self.block0, offset)
        } else if let Some(bytes) = self.tables.get(&block) {
            le::u64_at(bytes, offset)
        } else {
            le::u64_at(&read_block(self.store, &self.header, block).await?, offset)
        };
        leaf_pointer(raw, &self.header).map_err(|e| at_block(e, self.store, block))
    }

    /// Sets a pointer, also in the part of a growing table that was copied already.
    pub(super) async fn set_pointer(&mut self, index: u64, blkid: u64) -> Result<()> {
        let place = self.header.place_of(index);
        self.store_pointer(place, blkid).await?;
        let table = self.header.table;
        if table.next_first_block != 0 && place.block - table.first_block < table.blocks_copied {
            for index in [2 * index, 2 * index + 1] {
                self.store_pointer(self.header.place_in(table.next_first_block, index), blkid).await?;
            }
        }
        Ok(())
    }

    async fn store_pointer(&mut self, Place { block, offset }: Place, blkid: u64) -> Result<()> {
        if block == 0 {
            self.rewrites_block0 = true;
            le::put_u64(self.block0.make_mut(), offset, blkid);
            return Ok(());
        }
        if !self.tables.contains_key(&block) {
            let bytes = read_block(self.store, &self.header, block).await?;
            self.tables.insert(block, bytes.into_mut());
        }
        let bytes = self.tables.get_mut(&block).expect("it was inserted if it was missing");
        // A pointer of the other byte order beside it stays good: each is recognised by itself.
        le::put_u64(bytes, offset, blkid);
        Ok(())
    }

    /// The pointers of the embedded table, or of block `n` of the table.
    pub(super) async fn pointers(&self, n: u64) -> Result<Vec<u64>> {
        let block = if self.header.table.blocks == 0 { 0 } else { self.header.table.first_block + n };
        let read;
        let bytes: &[u8] = if block == 0 {
            &self.block0[self.header.block_size() / 2..]
        } else if let Some(bytes) = self.tables.get(&block) {
            bytes
        } else {
            read = read_block(self.store, &self.header, block).await?;
            &read
        };
        let pointers = bytes.chunks_exact(8).map(|raw| leaf_pointer(le::u64_at(raw, 0), &self.header));
        pointers.collect::<Result<_>>().map_err(|e| at_block(e, self.store, block))
    }

    pub(super) fn put_table(&mut self, blkid: u64, pointers: impl Iterator<Item = u64>) {
        let mut bytes = IoBuf::zeroed(self.header.block_size());
        for (place, pointer) in bytes.chunks_exact_mut(8).zip(pointers) {
            le::put_u64(place, 0, pointer);
        }
        self.tables.insert(blkid, bytes);
    }

    /// Gives blocks back, whatever the change did to them before.
    pub(super) fn free(&mut self, blocks: Range<u64>) {
        for blkid in blocks.clone() {
            self.tables.remove(&blkid);
            self.leaves.remove(&blkid);
        }
        self.freed.push(blocks);
    }
}
