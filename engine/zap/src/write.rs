//! Changing a ZAP, in either form, and from one into the other.
//!
//! ```text
//!   micro: in place ──full──▶ 512 bytes larger ──128 KiB, a long name, another kind of value──▶ fat, for good
//! ```
//!
//! What a micro ZAP has to do is decided by [`plan_put`], which is pure.

use crate::Zap;
use crate::blocks::Blocks;
use crate::fat::{Edit, Mode};
use crate::index::Index;
use crate::key::{Key, Match, NAME_MAX, Needle};
use crate::leaf;
use crate::micro::{self, Micro, lowest_free_cd};
use crate::read::{Names, Opened};
use crate::value::Value;
use ondisk::zap::MICRO_ENTRY_SIZE as SLOT;
use units::{Error, Kind, Result};

/// The size of a fat ZAP's blocks when it was a micro ZAP before: 16 KiB.
const FAT_SHIFT: u32 = 14;

/// How an entry gets into a micro ZAP.
#[derive(Debug)]
enum PutPlan {
    /// It is there, and gets another value.
    Set { slot: usize, value: u64 },
    /// It gets a slot that is free, or will be when the block has grown to this size.
    Add { slot: usize, entry: [u8; SLOT], size: usize },
    /// It must become a fat ZAP first.
    Upgrade,
}

impl<S: Blocks> Zap<S> {
    /// Adds an entry; an error if the key is there.
    pub async fn insert<'k>(
        &self,
        tx: &S::Tx,
        key: impl Into<Key<'k>> + Send,
        value: impl Into<Value> + Send,
    ) -> Result<()> {
        let _turn = self.turn.write().await;
        self.put(tx, key.into(), value.into(), Mode::Insert).await
    }

    /// Adds an entry or replaces its value.
    pub async fn update<'k>(
        &self,
        tx: &S::Tx,
        key: impl Into<Key<'k>> + Send,
        value: impl Into<Value> + Send,
    ) -> Result<()> {
        let _turn = self.turn.write().await;
        self.put(tx, key.into(), value.into(), Mode::Upsert).await
    }

    /// Adds to a counter that counts as 0 while it is not there, and removes it when it comes to 0.
    pub async fn increment<'k>(&self, tx: &S::Tx, key: impl Into<Key<'k>> + Send, delta: i64) -> Result<()> {
        let _turn = self.turn.write().await;
        let key = key.into();
        let old = self.find_u64(key).await?;
        match (old, old.unwrap_or(0).wrapping_add_signed(delta)) {
            (None, 0) => Ok(()),
            (Some(_), 0) => self.take_out(tx, key, Match::Exact).await,
            (_, sum) => self.put(tx, key, sum.into(), Mode::Upsert).await,
        }
    }

    /// Removes an entry; an error if the key is not there.
    pub async fn remove<'k>(&self, tx: &S::Tx, key: impl Into<Key<'k>> + Send) -> Result<()> {
        let _turn = self.turn.write().await;
        self.take_out(tx, key.into(), Match::Exact).await
    }

    /// Removes the entry that [`Zap::lookup_normalized`] would find.
    pub async fn remove_normalized(&self, tx: &S::Tx, name: &[u8], how: Match) -> Result<()> {
        let _turn = self.turn.write().await;
        self.take_out(tx, name.into(), how).await
    }

    async fn put(&self, tx: &S::Tx, key: Key<'_>, value: Value, mode: Mode) -> Result<()> {
        value.check()?;
        if matches!(key, Key::Name(name) if name.len() >= NAME_MAX) && !self.has_long_names {
            return Err(Error::invalid(format!("{key} is longer than {} bytes", NAME_MAX - 1)));
        }
        match self.opened().await? {
            Opened::Micro(names) => self.put_micro(tx, names, key, value, mode).await,
            Opened::Fat(fat) => {
                let mut edit = fat.edit(&self.kept);
                let needle = Needle::new(&edit.header.rules, key, Match::Exact)?;
                edit.put(&needle, None, &value, mode).await?;
                edit.commit(tx).await
            }
        }
    }

    async fn put_micro(
        &self,
        tx: &S::Tx,
        names: Names,
        key: Key<'_>,
        value: Value,
        mode: Mode,
    ) -> Result<()> {
        let needle = Needle::new(&names.micro.rules(), key, Match::Exact)?;
        let plan = {
            let index = self.kept.look(names.version, &names.micro);
            plan_put(&names.micro, index.as_deref(), &needle, &value, mode)
        };
        match plan.map_err(|e| e.at(self.blocks.name()))? {
            PutPlan::Set { slot, value } => {
                let version = self.let_go(tx, names)?;
                self.blocks.patch_block(tx, 0, micro::slot_at(slot), &value.to_le_bytes()).await?;
                self.changed(version, version + 1, |_| ());
            }
            PutPlan::Add { slot, entry, size } => {
                let from = self.let_go(tx, names)?;
                let mut version = from + 1;
                if size != self.blocks.block_size() {
                    self.blocks.set_block_size(tx, size).await?;
                    version += 1;
                }
                self.blocks.patch_block(tx, 0, micro::slot_at(slot), &entry).await?;
                self.changed(from, version, |index| {
                    index.grow(micro::slots_in(size));
                    index.add(slot, needle.hash);
                });
            }
            PutPlan::Upgrade => {
                let mut edit = Edit::upgrade(&self.blocks, FAT_SHIFT, &names.micro).await?;
                edit.put(&needle, None, &value, mode).await?;
                self.blocks.set_block_size(tx, 1 << FAT_SHIFT).await?;
                edit.commit_whole(tx)?;
                self.kept.forget();
            }
        }
        Ok(())
    }

    /// Lets go of the block, so that it can be changed in place, and returns its version. One of the other byte order is
    /// written back in ours first.
    fn let_go(&self, tx: &S::Tx, names: Names) -> Result<u64> {
        let Names { micro, version, is_foreign } = names;
        if !is_foreign {
            return Ok(version);
        }
        self.blocks.write_block(tx, 0, micro.into_bytes())?;
        self.changed(version, version + 1, |_| ());
        Ok(version + 1)
    }

    /// We have changed the block; the index follows if no other writer has.
    fn changed(&self, from: u64, to: u64, change: impl FnOnce(&mut Index)) {
        if self.blocks.version() == to {
            self.kept.follow(from, to, change);
        }
    }

    async fn take_out(&self, tx: &S::Tx, key: Key<'_>, how: Match) -> Result<()> {
        match self.opened().await? {
            Opened::Micro(names) => {
                let needle = Needle::new(&names.micro.rules(), key, how)?;
                let Some(slot) = self.find_in(&names, &needle)?.map(|s| s.index) else {
                    return Err(Error::new(Kind::NotFound, format!("remove {key}")).at(self.blocks.name()));
                };
                let version = self.let_go(tx, names)?;
                self.blocks.patch_block(tx, 0, micro::slot_at(slot), &micro::EMPTY_SLOT).await?;
                self.changed(version, version + 1, |index| index.remove(slot));
                Ok(())
            }
            Opened::Fat(fat) => {
                let mut edit = fat.edit(&self.kept);
                let needle = Needle::new(&edit.header.rules, key, how)?;
                edit.remove(&needle).await?;
                edit.commit(tx).await
            }
        }
    }
}

/// Decides how a micro ZAP takes an entry. Pure.
fn plan_put(
    micro: &Micro,
    index: Option<&Index>,
    needle: &Needle<'_>,
    value: &Value,
    mode: Mode,
) -> Result<PutPlan> {
    let old = micro.find(needle, index)?.map(|slot| slot.index);
    if old.is_some() && mode == Mode::Insert {
        return Err(Error::new(Kind::Exists, format!("insert {}", needle.key)));
    }
    let (Key::Name(name), Some(value)) = (needle.key, value.micro()) else { return Ok(PutPlan::Upgrade) };
    if let Some(slot) = old {
        return Ok(PutPlan::Set { slot, value });
    }
    let taken = micro.cds_of(needle.hash, index)?;
    let (slot, size) = match micro.free_slot(index) {
        Some(slot) => (slot, micro.size()),
        None => (micro.slot_count(), micro.size() + micro::SIZE_STEP),
    };
    if name.len() > micro::NAME_MAX || size > micro::SIZE_MAX || is_crowded(taken.len()) {
        return Ok(PutPlan::Upgrade);
    }
    Ok(PutPlan::Add { slot, entry: micro::slot_of(name, lowest_free_cd(taken), value), size })
}

/// Entries of one hash must fit in one leaf: a micro ZAP with more of them could never become a fat one.
fn is_crowded(same_hash: usize) -> bool {
    let largest_entry = 1 + leaf::chunks_for(micro::NAME_MAX + 1) + leaf::chunks_for(8);
    (same_hash + 1) * largest_entry >= leaf::chunk_count(FAT_SHIFT)
}
