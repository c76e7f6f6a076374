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
//! When a snapshot goes, the blocks that only it needed are exactly the lists of the next one's deadlist from its
//! predecessor's txg on, so they move to the pool's free list without being looked at.
//!
//! Pools before version 26 have one plain bpobj for everything.

use dmu::{NewObject, Object, Tx};
use ondisk::{BlockPointer, DeadlistPhys, ObjectType, Space};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Error, ObjectId, Result, Txg};

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
        sorted.ranges.are(Map::new());
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
                for (_, list) in sorted.keys().await?.range(min..max) {
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
        let list = *keys.get(&txg).ok_or_else(missing)?;
        let (before, into) = keys.range(..txg).next_back().ok_or_else(missing)?;
        sorted.append_list(core, tx, *before, *into, list).await?;
        sorted.unset(tx, txg).await
    }

    /// A new deadlist with nothing in it and the keys of this one below `max`.
    pub async fn clone_keys(&self, core: &Core, tx: &Tx, max: Txg) -> Result<Deadlist> {
        let new = Deadlist::create(core, tx).await?;
        let (Deadlist::Sorted(sorted), Deadlist::Sorted(into)) = (self, &new) else { return Ok(new) };
        let keys: Vec<Txg> = sorted.keys().await?.range(..max).map(|(txg, _)| *txg).collect();
        if keys.is_empty() {
            return Ok(new);
        }
        let shared = Bpobj::share_empty(core, tx, keys.len() as u64).await?;
        for txg in keys {
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
        for (txg, list) in sorted.keys().await?.range(min..) {
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
        for (&txg, &list) in from.keys().await?.iter() {
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
                for list in sorted.keys().await?.values() {
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
                for list in sorted.keys().await?.values() {
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
    keys.range(..=key).next_back().map(|(txg, list)| (*txg, *list))
}

impl Sorted {
    fn new(core: &Core, object: Object, table: Table) -> Sorted {
        let ranges = core.ranges().of(object.id());
        Sorted { object, table, ranges }
    }

    /// The ranges: where they begin, exclusive, and their lists.
    async fn keys(&self) -> Result<Arc<Map>> {
        self.ranges.get(self.read_keys()).await
    }

    async fn read_keys(&self) -> Result<Map> {
        let mut keys = Map::new();
        for (name, list) in zaps::numbers(&self.table).await? {
            let damaged = |_| Error::corrupt(format!("deadlist key '{name}'"));
            keys.insert(Txg(u64::from_str_radix(&name, 16).map_err(damaged)?), ObjectId(list));
        }
        Ok(keys)
    }

    async fn set(&self, tx: &Tx, txg: Txg, list: ObjectId) -> Result<()> {
        let name = zap::int_name(txg.0);
        let write = self.table.update(tx, &name, list.0);
        self.ranges.change(write, |known| _ = known.insert(txg, list)).await
    }

    async fn unset(&self, tx: &Tx, txg: Txg) -> Result<()> {
        let name = zap::int_name(txg.0);
        self.ranges.change(self.table.remove(tx, &name), |known| _ = known.remove(&txg)).await
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
        self.object.set_bonus(tx, &phys.to_bonus())
    }

    async fn insert(&self, core: &Core, tx: &Tx, bps: &[BlockPointer]) -> Result<()> {
        if bps.is_empty() {
            return Ok(());
        }
        let keys = self.keys().await?;
        let mut by_key: BTreeMap<Txg, Vec<BlockPointer>> = BTreeMap::new();
        let mut sum = Delta::default();
        for bp in bps {
            // A range does not include the txg it begins with.
            let (key, _) =
                keys.range(..bp.birth()).next_back().ok_or_else(|| no_range(self.object.id(), bp.birth()))?;
            by_key.entry(*key).or_default().push(bp.clone());
            sum += core.weigh(bp);
            world::breathe().await;
        }
        for (key, bps) in by_key {
            let list = self.own_list(core, tx, key, keys[&key]).await?;
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
