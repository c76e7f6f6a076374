//! Deadlists: the blocks that a dataset killed but its snapshots still need, sorted by which snapshot does.
//!
//! A block that is overwritten is free at once if it was born after the newest snapshot. Otherwise it goes on the
//! dataset's deadlist, under the snapshot after which it was born:
//!
//! ```text
//!   deadlist ZAP of a dataset      mintxg -> bpobj
//!        0 -> blocks born in (0, 40]      snapshots were taken in txg 40 and 70;
//!       40 -> blocks born in (40, 70]     a block born later than 70 is free when it dies
//! ```
//!
//! A snapshot takes the head's deadlist, and the head a copy of its ranges with nothing in them: as many as there are
//! earlier snapshots, as the format has it, so they are copied by blocks of the ZAP and not one by one.
//!
//! When a snapshot goes, the blocks that only it needed are exactly the lists of the next one's deadlist from its
//! predecessor's txg on, so they move to the pool's free list without being looked at.
//!
//! Pools before version 26 have one plain bpobj for everything.

use dmu::{NewObject, Object, Tx};
use ondisk::zap::ZapBlock;
use ondisk::{BlockPointer, DeadlistPhys, ObjectType, Space};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Endian, Error, ObjectId, Result, Txg};

use crate::bpobj::Bpobj;
use crate::core::{Core, versions};
use crate::ranges::{Map, Ranges};
use crate::space::{self, Delta};
use crate::zaps::{self, Table};

#[derive(Debug)]
pub enum Deadlist {
    Plain(Bpobj),
    Sorted(Sorted),
}

#[derive(Debug)]
pub struct Sorted {
    object: Object,
    table: Table,
    ranges: Arc<Ranges>,
}

impl Deadlist {
    pub async fn create(core: &Core, tx: &Tx) -> Result<Deadlist> {
        if core.version() < versions::DEADLISTS {
            return Ok(Deadlist::Plain(Bpobj::create(core, tx, 128 << 10).await?));
        }
        let new = NewObject::new(ObjectType::DEADLIST, 512)
            .with_bonus(ObjectType::DEADLIST_HDR, DeadlistPhys::default().to_bonus());
        let table = zaps::create_with(core.mos(), tx, new, zap::Options::default()).await?;
        core.ranges().forget(table.blocks().id());
        let sorted = Sorted::new(core, table.blocks().clone(), table);
        sorted.ranges.are(Map::default());
        Ok(Deadlist::Sorted(sorted))
    }

    pub async fn open(core: &Core, id: ObjectId) -> Result<Deadlist> {
        let object = core.mos().object(id).await?;
        if object.attrs().kind == ObjectType::BPOBJ {
            return Ok(Deadlist::Plain(Bpobj::open(core, id).await?));
        }
        Ok(Deadlist::Sorted(Sorted::new(core, object.clone(), zap::Zap::open(object))))
    }

    pub fn id(&self) -> ObjectId {
        match self {
            Deadlist::Plain(list) => list.id(),
            Deadlist::Sorted(sorted) => sorted.object.id(),
        }
    }

    /// Adds blocks that died.
    pub async fn insert(&self, core: &Core, tx: &Tx, bps: &[BlockPointer]) -> Result<()> {
        match self {
            Deadlist::Plain(list) => list.enqueue(core, tx, bps).await,
            Deadlist::Sorted(sorted) => sorted.insert(core, tx, bps).await,
        }
    }

    /// What all its blocks count for.
    pub async fn space(&self, core: &Core) -> Result<Delta> {
        match self {
            Deadlist::Plain(list) => list.space(core).await,
            Deadlist::Sorted(sorted) => sorted.space(),
        }
    }

    /// What the blocks born after `min` and up to `max` count for; both are keys, or 0 and the largest txg.
    pub async fn space_range(&self, core: &Core, min: Txg, max: Txg) -> Result<Delta> {
        let mut sum = Delta::default();
        match self {
            Deadlist::Plain(list) => {
                for bp in list.all(core).await? {
                    if bp.birth() > min && bp.birth() <= max {
                        sum += core.weigh(&bp);
                    }
                }
            }
            Deadlist::Sorted(sorted) => {
                if min > max {
                    let e = Error::corrupt(format!("deadlist: a range from txg {min} back to {max}"));
                    return Err(e.at(format!("object {}", self.id())));
                }
                for (_, list) in sorted.keys().await?.within(min..max) {
                    sum += Bpobj::open(core, *list).await?.space(core).await?;
                }
            }
        }
        Ok(sum)
    }

    /// Begins a new range: a snapshot was taken in `txg`.
    pub async fn add_key(&self, core: &Core, tx: &Tx, txg: Txg) -> Result<()> {
        let Deadlist::Sorted(sorted) = self else { return Ok(()) };
        let list = Bpobj::create_empty(core, tx).await?;
        sorted.set(tx, txg, list).await
    }

    /// Merges the range that begins at `txg` into the one before: that snapshot went.
    pub async fn remove_key(&self, core: &Core, tx: &Tx, txg: Txg) -> Result<()> {
        let Deadlist::Sorted(sorted) = self else { return Ok(()) };
        let keys = sorted.keys().await?;
        let missing =
            || Error::corrupt(format!("deadlist without key {txg}")).at(format!("object {}", self.id()));
        let list = keys.get(txg).ok_or_else(missing)?;
        let (before, into) = keys.within(..txg).last().ok_or_else(missing)?;
        sorted.append_list(core, tx, *before, *into, list).await?;
        sorted.unset(tx, txg).await
    }

    /// A new deadlist with nothing in it and the keys of this one below `max`.
    pub async fn clone_keys(&self, core: &Core, tx: &Tx, max: Txg) -> Result<Deadlist> {
        let Deadlist::Sorted(sorted) = self else { return Deadlist::create(core, tx).await };
        let keys = sorted.keys().await?;
        let count = keys.within(..max).len();
        let shared = match count {
            0 => None,
            _ => Bpobj::share_empty(core, tx, count as u64).await?,
        };
        if let Some(list) = shared {
            let differ = keys.iter().filter(|(txg, own)| *txg >= max || *own != list).count();
            let copied = match differ <= count / 2 {
                true => sorted.copy_table(core, tx, &keys).await?,
                false => None,
            };
            if let Some(copy) = copied {
                for (txg, own) in keys.iter() {
                    if *txg >= max {
                        copy.unset(tx, *txg).await?;
                    } else if *own != list {
                        copy.set(tx, *txg, list).await?;
                    }
                }
                return Ok(Deadlist::Sorted(copy));
            }
        }
        let new = Deadlist::create(core, tx).await?;
        let Deadlist::Sorted(into) = &new else { return Ok(new) };
        for (txg, _) in keys.within(..max).iter().copied() {
            match shared {
                Some(list) => into.set(tx, txg, list).await?,
                None => new.add_key(core, tx, txg).await?,
            }
        }
        Ok(new)
    }

    /// Moves the blocks of all ranges from `min` on into `to`, and answers what they count for; the ranges stay, empty.
    pub async fn move_to(&self, core: &Core, tx: &Tx, to: &Bpobj, min: Txg) -> Result<Delta> {
        let Deadlist::Sorted(sorted) = self else {
            return Err(Error::unsupported("destroying a snapshot in a pool older than version 26"));
        };
        let mut moved = Delta::default();
        for (txg, list) in sorted.keys().await?.within(min..) {
            moved += Bpobj::open(core, *list).await?.space(core).await?;
            to.enqueue_list(core, tx, *list).await?;
            // The range ended with the snapshot that went; its first key is the only one that may stay.
            sorted.unset(tx, *txg).await?;
        }
        sorted.add_space(tx, -moved)?;
        Ok(moved)
    }

    /// Takes over all blocks of another deadlist, and unmakes it.
    pub async fn merge(&self, core: &Core, tx: &Tx, other: Deadlist) -> Result<()> {
        let (Deadlist::Sorted(into), Deadlist::Sorted(from)) = (self, other) else {
            return Err(Error::unsupported("merging deadlists in a pool older than version 26"));
        };
        // Of a dataset with many snapshots both have as many ranges, and almost all of those that go are empty.
        let mut keys = (*into.keys().await?).clone();
        let (mut sum, mut empty) = (Delta::default(), 0);
        for &(txg, list) in from.keys().await?.iter() {
            if Some(list) == core.empty_bpobj() {
                empty += 1;
                continue;
            }
            let (key, own) = range_of(&keys, txg).ok_or_else(|| no_range(self.id(), txg))?;
            sum += Bpobj::open(core, list).await?.space(core).await?;
            if Some(own) == core.empty_bpobj() {
                keys.insert(key, list);
            }
            into.append_list(core, tx, key, own, list).await?;
            world::breathe().await;
        }
        if empty > 0 {
            Bpobj::release_empties(core, tx, empty).await?;
        }
        into.add_space(tx, sum)?;
        core.mos().free(tx, from.object.id()).await
    }

    /// Unmakes a deadlist; its blocks are not freed.
    pub async fn destroy(&self, core: &Core, tx: &Tx) -> Result<()> {
        match self {
            Deadlist::Plain(list) => Bpobj::destroy(core, tx, list.id()).await,
            Deadlist::Sorted(sorted) => {
                for (_, list) in sorted.keys().await?.iter() {
                    sorted.drop_list(core, tx, *list).await?;
                }
                core.mos().free(tx, sorted.object.id()).await
            }
        }
    }

    /// Every block on it.
    pub async fn all(&self, core: &Core) -> Result<Vec<BlockPointer>> {
        match self {
            Deadlist::Plain(list) => list.all(core).await,
            Deadlist::Sorted(sorted) => {
                let mut found = Vec::new();
                for (_, list) in sorted.keys().await?.iter() {
                    found.extend(Bpobj::open(core, *list).await?.all(core).await?);
                }
                Ok(found)
            }
        }
    }
}

fn no_range(id: ObjectId, txg: Txg) -> Error {
    Error::corrupt(format!("deadlist has no range for txg {txg}")).at(format!("object {id}"))
}

/// The range that `key` itself, or the greatest key before it, begins.
fn range_of(keys: &Map, key: Txg) -> Option<(Txg, ObjectId)> {
    keys.within(..=key).last().copied()
}

impl Sorted {
    fn new(core: &Core, object: Object, table: Table) -> Sorted {
        let ranges = core.ranges().of(object.id());
        Sorted { object, table, ranges }
    }

    /// A deadlist with a copy of this one's ZAP, block by block: of thousands of ranges nearly all share the empty list, and
    /// lead there in the copy already. `None` where that is not how it can be copied: a block in another byte order than
    /// the copy's pointers would say, or one that does not tell its order.
    async fn copy_table(&self, core: &Core, tx: &Tx, keys: &Map) -> Result<Option<Sorted>> {
        let attrs = self.object.attrs();
        let mut blocks = Vec::new();
        for blkid in 0..=attrs.max_blkid {
            let block = self.object.read_block(blkid).await?;
            if ZapBlock::of(&block, Endian::NATIVE).is_none() {
                return Ok(None);
            }
            blocks.push(block);
        }
        let new = NewObject::new(ObjectType::DEADLIST, attrs.block_size)
            .with_bonus(ObjectType::DEADLIST_HDR, DeadlistPhys::default().to_bonus());
        let object = core.mos().allocate(tx, new).await?;
        core.ranges().forget(object.id());
        for (blkid, block) in (0..).zip(blocks) {
            object.write_block(tx, blkid, block)?;
            world::breathe().await;
        }
        let copy = Sorted::new(core, object.clone(), zap::Zap::open(object));
        copy.ranges.are(keys.clone());
        Ok(Some(copy))
    }

    /// The ranges: where they begin, exclusive, and their lists.
    async fn keys(&self) -> Result<Arc<Map>> {
        self.ranges.get(self.read_keys()).await
    }

    async fn read_keys(&self) -> Result<Map> {
        let begin = |(name, list): (String, u64)| {
            let damaged = |_| Error::corrupt(format!("deadlist key '{name}'"));
            Ok((Txg(u64::from_str_radix(&name, 16).map_err(damaged)?), ObjectId(list)))
        };
        zaps::numbers(&self.table).await?.into_iter().map(begin).collect()
    }

    async fn set(&self, tx: &Tx, txg: Txg, list: ObjectId) -> Result<()> {
        let name = zap::int_name(txg.0);
        let write = self.table.update(tx, &name, list.0);
        self.ranges.change(write, |known| known.insert(txg, list)).await
    }

    async fn unset(&self, tx: &Tx, txg: Txg) -> Result<()> {
        let name = zap::int_name(txg.0);
        self.ranges.change(self.table.remove(tx, &name), |known| known.remove(txg)).await
    }

    fn space(&self) -> Result<Delta> {
        let Space { used, compressed, uncompressed } = DeadlistPhys::from_bonus(&self.object.bonus())?.space;
        Ok(Delta {
            used: space::signed(used),
            compressed: space::signed(compressed),
            uncompressed: space::signed(uncompressed),
        })
    }

    fn add_space(&self, tx: &Tx, delta: Delta) -> Result<()> {
        let mut sum = self.space()?;
        sum += delta;
        let [used, compressed, uncompressed] =
            [sum.used, sum.compressed, sum.uncompressed].map(|n| n.max(0) as u64);
        let phys = DeadlistPhys { space: Space { used, compressed, uncompressed } };
        self.object.set_bonus(tx, phys.to_bonus())
    }

    async fn insert(&self, core: &Core, tx: &Tx, bps: &[BlockPointer]) -> Result<()> {
        if bps.is_empty() {
            return Ok(());
        }
        let keys = self.keys().await?;
        let mut by_key: BTreeMap<Txg, Vec<BlockPointer>> = BTreeMap::default();
        let mut sum = Delta::default();
        for bp in bps {
            // A range does not include the txg it begins with.
            let (key, _) =
                keys.within(..bp.birth()).last().ok_or_else(|| no_range(self.object.id(), bp.birth()))?;
            by_key.entry(*key).or_default().push(bp.clone());
            sum += core.weigh(bp);
            world::breathe().await;
        }
        for (key, bps) in by_key {
            let own = keys.get(key).ok_or_else(|| no_range(self.object.id(), key))?;
            let list = self.own_list(core, tx, key, own).await?;
            list.enqueue(core, tx, &bps).await?;
        }
        self.add_space(tx, sum)
    }

    /// The list of a range, made now if the range shared the empty one.
    async fn own_list(&self, core: &Core, tx: &Tx, key: Txg, list: ObjectId) -> Result<Bpobj> {
        if Some(list) != core.empty_bpobj() {
            return Bpobj::open(core, list).await;
        }
        let own = Bpobj::create(core, tx, 128 << 10).await?;
        Bpobj::release_empty(core, tx).await?;
        self.set(tx, key, own.id()).await?;
        Ok(own)
    }

    /// Adds a whole list to the range of `key`, whose list is `own`.
    async fn append_list(&self, core: &Core, tx: &Tx, key: Txg, own: ObjectId, list: ObjectId) -> Result<()> {
        if Some(own) != core.empty_bpobj() {
            return Bpobj::open(core, own).await?.enqueue_list(core, tx, list).await;
        }
        Bpobj::release_empty(core, tx).await?;
        self.set(tx, key, list).await
    }

    async fn drop_list(&self, core: &Core, tx: &Tx, list: ObjectId) -> Result<()> {
        if Some(list) == core.empty_bpobj() {
            Bpobj::release_empty(core, tx).await
        } else {
            Bpobj::destroy(core, tx, list).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Pool, in_world};

    /// What the ZAP itself has, whatever is remembered of it.
    async fn on_disk(deadlist: &Deadlist) -> Map {
        let Deadlist::Sorted(sorted) = deadlist else { panic!("a modern pool sorts") };
        assert_eq!(*sorted.keys().await.unwrap(), sorted.read_keys().await.unwrap());
        sorted.read_keys().await.unwrap()
    }

    #[test]
    fn a_copy_has_the_ranges_up_to_the_last_and_nothing_in_them() {
        // Of a micro ZAP, and of one that has become fat.
        for count in [1, 100, 2500] {
            in_world(async move {
                let mut pool = Pool::modern().await;
                let (core, tx) = (pool.dsl.core(), pool.tx());
                let from = Deadlist::create(core, &tx).await.unwrap();
                let empty = Bpobj::share_empty(core, &tx, count).await.unwrap().unwrap();
                let Deadlist::Sorted(sorted) = &from else { panic!("a modern pool sorts") };
                for n in 0..count {
                    sorted.set(&tx, Txg(10 * n), empty).await.unwrap();
                }
                // One in nine has a list of its own.
                for n in (0..count).step_by(9) {
                    sorted.own_list(core, &tx, Txg(10 * n), empty).await.unwrap();
                }
                let before = on_disk(&from).await;
                let mut copies = Vec::new();
                for last in [u64::MAX, 9 * count, count, 0] {
                    let copy = from.clone_keys(core, &tx, Txg(last)).await.unwrap();
                    // Where the last that led to it had gone there is a new one.
                    let empty = core.empty_bpobj().unwrap_or(empty);
                    let wanted: Map =
                        (0..count).map(|n| (Txg(10 * n), empty)).filter(|(txg, _)| txg.0 < last).collect();
                    assert_eq!(on_disk(&copy).await, wanted, "{count} ranges up to {last}");
                    assert_eq!(copy.space(core).await.unwrap(), Delta::default());
                    copies.push(copy);
                }
                assert_eq!(on_disk(&from).await, before, "it is as it was");
                assert!(before.iter().any(|(_, list)| *list != empty), "some have a list of their own");
                for deadlist in copies.iter().chain([&from]) {
                    deadlist.destroy(core, &tx).await.unwrap();
                }
                drop((copies, from));
                pool.sync().await;
                pool.audit().await;
            });
        }
    }
}
