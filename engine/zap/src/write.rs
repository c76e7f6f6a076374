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
use crate::key::{Key, Match, NAME_MAX, Needle};
use crate::leaf;
use crate::micro::{self, Micro, lowest_free_cd};
use crate::read::Opened;
use crate::value::Value;
use units::{Error, Kind, Result};
use world::{Buf, IoBuf};

/// The size of a fat ZAP's blocks when it was a micro ZAP before: 16 KiB.
const FAT_SHIFT: u32 = 14;

/// How an entry gets into a micro ZAP.
enum PutPlan {
    /// Block 0 becomes this; if it is larger than it was, the object's block grows first.
    Write(Micro<IoBuf>),
    /// It must become a fat ZAP first.
    Upgrade(Micro<Buf>),
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
            Opened::Micro(micro) => self.put_micro(tx, micro, key, value, mode).await,
            Opened::Fat(fat) => {
                let mut edit = fat.edit();
                let needle = Needle::new(&edit.header.rules, key, Match::Exact)?;
                edit.put(&needle, None, &value, mode).await?;
                edit.commit(tx)
            }
        }
    }

    async fn put_micro(
        &self,
        tx: &S::Tx,
        micro: Micro<Buf>,
        key: Key<'_>,
        value: Value,
        mode: Mode,
    ) -> Result<()> {
        let needle = Needle::new(&micro.rules(), key, Match::Exact)?;
        match plan_put(micro, &needle, &value, mode).map_err(|e| e.at(self.blocks.name()))? {
            PutPlan::Write(micro) => {
                if micro.size() != self.blocks.block_size() {
                    self.blocks.set_block_size(tx, micro.size()).await?;
                }
                self.blocks.write_block(tx, 0, micro.freeze())
            }
            PutPlan::Upgrade(micro) => {
                let mut edit = Edit::upgrade(&self.blocks, FAT_SHIFT, &micro).await?;
                edit.put(&needle, None, &value, mode).await?;
                self.blocks.set_block_size(tx, 1 << FAT_SHIFT).await?;
                edit.commit(tx)
            }
        }
    }

    async fn take_out(&self, tx: &S::Tx, key: Key<'_>, how: Match) -> Result<()> {
        match self.opened().await? {
            Opened::Micro(micro) => {
                let needle = Needle::new(&micro.rules(), key, how)?;
                let slot = micro.find(&needle).map_err(|e| e.at(self.blocks.name()))?;
                let Some(index) = slot.map(|s| s.index) else {
                    return Err(Error::new(Kind::NotFound, format!("remove {key}")).at(self.blocks.name()));
                };
                let mut micro = micro.into_mut();
                micro.clear(index);
                self.blocks.write_block(tx, 0, micro.freeze())
            }
            Opened::Fat(fat) => {
                let mut edit = fat.edit();
                let needle = Needle::new(&edit.header.rules, key, how)?;
                edit.remove(&needle).await?;
                edit.commit(tx)
            }
        }
    }
}

/// Decides how a micro ZAP takes an entry. Pure.
fn plan_put(micro: Micro<Buf>, needle: &Needle<'_>, value: &Value, mode: Mode) -> Result<PutPlan> {
    let old = micro.find(needle)?.map(|slot| slot.index);
    if old.is_some() && mode == Mode::Insert {
        return Err(Error::new(Kind::Exists, format!("insert {}", needle.key)));
    }
    let (Key::Name(name), Some(number)) = (needle.key, value.micro()) else {
        return Ok(PutPlan::Upgrade(micro));
    };
    if let Some(index) = old {
        let mut micro = micro.into_mut();
        micro.set(index, number);
        return Ok(PutPlan::Write(micro));
    }
    let taken = micro.cds_of(needle.hash)?;
    let is_full = micro.is_full();
    let size = micro.size() + if is_full { micro::SIZE_STEP } else { 0 };
    if name.len() > micro::NAME_MAX || size > micro::SIZE_MAX || is_crowded(taken.len()) {
        return Ok(PutPlan::Upgrade(micro));
    }
    let mut micro = if is_full { micro.grown(size) } else { micro.into_mut() };
    micro.add(name, lowest_free_cd(taken), number);
    Ok(PutPlan::Write(micro))
}

/// Entries of one hash must fit in one leaf: a micro ZAP with more of them could never become a fat one.
fn is_crowded(same_hash: usize) -> bool {
    let largest_entry = 1 + leaf::chunks_for(micro::NAME_MAX + 1) + leaf::chunks_for(8);
    (same_hash + 1) * largest_entry >= leaf::chunk_count(FAT_SHIFT)
}
