//! A list of block pointers in an object: blocks that are dead to a dataset but not yet free.
//!
//! ```text
//!   object   pointer, pointer, pointer ...             128 bytes each, appended, taken off at the end
//!   bonus    pointers | bytes | compressed | uncompressed | list of lists | lists in it | of them freed
//!   list of lists (an object of its own): other bpobjs that belong to this one
//! ```
//!
//! The sums in the bonus cover the lists below. A whole list becomes part of another one by its number
//! ([`Bpobj::enqueue_list`]): that is how a destroyed snapshot's dead blocks move without being read.
//!
//! A list belongs to one other at most, so that lists are a tree. A damaged pool may say otherwise, and claim more entries
//! than its object has: a list met twice, entries beyond the object and entries that are holes are errors, so that no walk
//! takes more steps than there are blocks.
//!
//! Old pools have shorter bonuses, without sums (version 2) or without lists (before 26).

use dmu::{NewObject, Object, Tx};
use ondisk::mos::directory;
use ondisk::{BlockPointer, BpobjPhys, BpobjSize, Feature, ObjectType};
use std::collections::BTreeSet;
use units::{Endian, Error, ObjectId, Result};

use crate::core::{Core, versions};
use crate::space::{self, Delta};

const BLOCK: u32 = 128 << 10;
const POINTER: u64 = BlockPointer::SIZE as u64;
/// Pointers that are written before others may run.
const AT_ONCE: usize = 256;
/// Of an entry of the list of lists.
const NUMBER: u64 = 8;

fn change(header: &mut BpobjPhys, delta: Delta) {
    let space = &mut header.space;
    space.used = space.used.saturating_add_signed(delta.used);
    space.compressed = space.compressed.saturating_add_signed(delta.compressed);
    space.uncompressed = space.uncompressed.saturating_add_signed(delta.uncompressed);
}

/// `count` entries of `size` bytes must lie within the object.
fn check_entries(what: &str, count: u64, size: u64, object: &Object) -> Result<()> {
    let room = object.attrs().size_bound() / size;
    if count > room {
        return Err(Error::corrupt(format!("bpobj: {count} {what} where {room} fit"))
            .at(format!("object {}", object.id())));
    }
    Ok(())
}

/// A list is met for the first time.
fn meet(seen: &mut BTreeSet<ObjectId>, id: ObjectId) -> Result<()> {
    if seen.insert(id) {
        Ok(())
    } else {
        Err(Error::corrupt("bpobj: it is below itself").at(format!("object {id}")))
    }
}

#[derive(Clone, Debug)]
pub struct Bpobj {
    object: Object,
}

/// The pointer without what freeing does not need: it compresses better.
fn stripped(bp: &BlockPointer) -> BlockPointer {
    let mut bp = bp.clone();
    match &mut bp {
        BlockPointer::Plain(plain) => {
            plain.fill = 0;
            if !plain.dedup {
                plain.checksum = [0; 4];
            }
        }
        BlockPointer::Embedded(embedded) => embedded.payload.fill(0),
        BlockPointer::Hole(_) => {}
    }
    bp
}

impl Bpobj {
    pub async fn create(core: &Core, tx: &Tx, block: u32) -> Result<Bpobj> {
        let size = match core.version() {
            v if v < versions::BPOBJ_ACCOUNT => BpobjSize::Count,
            v if v < versions::DEADLISTS => BpobjSize::Accounting,
            _ if !core.features().is_active(Feature::Livelist) => BpobjSize::SubLists,
            _ => BpobjSize::Freed,
        };
        let bonus = BpobjPhys::new(size).to_bonus();
        let new = NewObject::new(ObjectType::BPOBJ, block).with_bonus(ObjectType::BPOBJ_HDR, bonus);
        Ok(Bpobj { object: core.mos().allocate(tx, new).await? })
    }

    pub async fn open(core: &Core, id: ObjectId) -> Result<Bpobj> {
        let object = core.mos().object(id).await?;
        if object.attrs().kind != ObjectType::BPOBJ || object.bonus().len() < 16 {
            return Err(Error::corrupt("bpobj of the wrong type").at(format!("object {id}")));
        }
        Ok(Bpobj { object })
    }

    /// A list for a deadlist entry that has nothing in it yet: one that all such entries share, where the pool can.
    pub async fn create_empty(core: &Core, tx: &Tx) -> Result<ObjectId> {
        match Bpobj::share_empty(core, tx, 1).await? {
            Some(shared) => Ok(shared),
            None => Ok(Bpobj::create(core, tx, BLOCK).await?.id()),
        }
    }

    /// The empty list that all share, for `count` more entries that refer to it; `None` in a pool that has no such list.
    pub async fn share_empty(core: &Core, tx: &Tx, count: u64) -> Result<Option<ObjectId>> {
        if !core.features().is_enabled(Feature::EmptyBpobj) {
            return Ok(None);
        }
        let shared = match core.empty_bpobj() {
            Some(id) => id,
            None => {
                let id = Bpobj::create(core, tx, BLOCK).await?.id();
                core.directory().insert(tx, directory::EMPTY_BPOBJ, id.0).await?;
                core.set_empty_bpobj(Some(id));
                id
            }
        };
        core.features().add(tx, Feature::EmptyBpobj, count.cast_signed()).await?;
        Ok(Some(shared))
    }

    /// One entry less refers to the shared empty list.
    pub async fn release_empty(core: &Core, tx: &Tx) -> Result<()> {
        Bpobj::release_empties(core, tx, 1).await
    }

    /// So many entries less refer to it.
    pub async fn release_empties(core: &Core, tx: &Tx, count: u64) -> Result<()> {
        core.features().add(tx, Feature::EmptyBpobj, -count.cast_signed()).await?;
        if !core.features().is_active(Feature::EmptyBpobj) {
            core.directory().remove(tx, directory::EMPTY_BPOBJ).await?;
            if let Some(id) = core.empty_bpobj() {
                core.mos().free(tx, id).await?;
            }
            core.set_empty_bpobj(None);
        }
        Ok(())
    }

    pub fn id(&self) -> ObjectId {
        self.object.id()
    }

    pub fn header(&self) -> Result<BpobjPhys> {
        let place = || format!("object {}", self.id());
        let header = BpobjPhys::from_bonus(&self.object.bonus()).map_err(|e| e.at(place()))?;
        check_entries("pointers", header.pointers, POINTER, &self.object)?;
        if header.sub_list_count > u64::MAX / NUMBER {
            let count = header.sub_list_count;
            return Err(Error::corrupt(format!("bpobj: a list of {count} lists")).at(place()));
        }
        Ok(header)
    }

    fn set_header(&self, tx: &Tx, header: &BpobjPhys) -> Result<()> {
        self.object.set_bonus(tx, header.to_bonus())
    }

    pub fn is_empty(&self) -> Result<bool> {
        let header = self.header()?;
        Ok(header.pointers == 0 && header.sub_list_count == 0)
    }

    /// Appends pointers; holes are none.
    pub async fn enqueue(&self, core: &Core, tx: &Tx, bps: &[BlockPointer]) -> Result<()> {
        if Some(self.id()) == core.empty_bpobj() {
            let e = Error::corrupt("bpobj: the list that stays empty, for all share it, is to be filled");
            return Err(e.at(format!("object {}", self.id())));
        }
        if bps.is_empty() {
            return Ok(());
        }
        let mut header = self.header()?;
        for bps in bps.chunks(AT_ONCE) {
            let bytes: Vec<u8> = bps.iter().flat_map(|bp| stripped(bp).to_bytes(Endian::NATIVE)).collect();
            self.object.write(tx, header.pointers * POINTER, &bytes).await?;
            header.pointers += bps.len() as u64;
            bps.iter().for_each(|bp| change(&mut header, core.weigh(bp)));
            world::breathe().await;
        }
        self.set_header(tx, &header)
    }

    /// Makes the list `id` part of this one. It must not be used otherwise afterwards.
    pub async fn enqueue_list(&self, core: &Core, tx: &Tx, id: ObjectId) -> Result<()> {
        if Some(id) == core.empty_bpobj() {
            return Bpobj::release_empty(core, tx).await;
        }
        let list = Bpobj::open(core, id).await?;
        if list.is_empty()? {
            return Bpobj::destroy(core, tx, id).await;
        }
        let space = list.space(core).await?;
        let mut header = self.header()?;
        let lists = self.lists(core, tx, &mut header).await?;
        lists.write(tx, header.sub_list_count * NUMBER, &id.0.to_ne_bytes()).await?;
        header.sub_list_count += 1;
        change(&mut header, space);
        self.set_header(tx, &header)
    }

    async fn lists(&self, core: &Core, tx: &Tx, header: &mut BpobjPhys) -> Result<Object> {
        if let Some(id) = header.sub_lists.some() {
            return core.mos().object(id).await;
        }
        let lists = core.mos().allocate(tx, NewObject::new(ObjectType::BPOBJ_SUBOBJ, BLOCK)).await?;
        header.sub_lists = lists.id();
        Ok(lists)
    }

    /// What all blocks of the list and of those below count for.
    pub async fn space(&self, core: &Core) -> Result<Delta> {
        let header = self.header()?;
        if header.size >= BpobjSize::Accounting {
            return Ok(Delta {
                used: space::signed(header.space.used),
                compressed: space::signed(header.space.compressed),
                uncompressed: space::signed(header.space.uncompressed),
            });
        }
        let mut sum = Delta::default();
        for bp in self.all(core).await? {
            sum += core.weigh(&bp);
        }
        Ok(sum)
    }

    async fn pointer(&self, at: u64) -> Result<BlockPointer> {
        let bytes = self.object.read(at * POINTER, BlockPointer::SIZE).await?;
        let bp = BlockPointer::from_bytes(&bytes, Endian::NATIVE);
        let bp = bp.and_then(|bp| if bp.is_hole() { Err(Error::corrupt("it is a hole")) } else { Ok(bp) });
        bp.map_err(|e| e.at(format!("entry {at} of bpobj {}", self.id())))
    }

    async fn list_at(&self, core: &Core, header: &BpobjPhys, at: u64) -> Result<Bpobj> {
        let lists = core.mos().object(header.sub_lists).await?;
        check_entries("lists", header.sub_list_count, NUMBER, &lists)?;
        let bytes = lists.read(at * NUMBER, NUMBER as usize).await?;
        let id = u64::from_ne_bytes(bytes[..].try_into().expect("eight bytes were read"));
        Bpobj::open(core, ObjectId(id)).await
    }

    /// Every pointer of the list and of those below.
    pub async fn all(&self, core: &Core) -> Result<Vec<BlockPointer>> {
        let mut found = Vec::new();
        let mut todo = vec![self.clone()];
        let mut seen = BTreeSet::new();
        while let Some(list) = todo.pop() {
            meet(&mut seen, list.id())?;
            let header = list.header()?;
            for at in 0..header.pointers {
                found.push(list.pointer(at).await?);
                world::breathe().await;
            }
            for at in 0..header.sub_list_count {
                todo.push(list.list_at(core, &header, at).await?);
            }
        }
        Ok(found)
    }

    /// Takes up to `limit` pointers off, the deepest lists' first, unmaking lists that become empty. What is taken is
    /// the caller's to free. Fewer than `limit` means that nothing is left.
    pub async fn take(&self, core: &Core, tx: &Tx, limit: usize) -> Result<Vec<BlockPointer>> {
        let mut taken = Vec::new();
        // The lists from this one down to the one being emptied.
        let mut path = vec![self.clone()];
        let mut above = BTreeSet::from([self.id()]);
        while taken.len() < limit {
            let list = path.last().expect("this list is never popped").clone();
            let header = list.header()?;
            if header.pointers > 0 {
                let n = header.pointers.min((limit - taken.len()) as u64);
                let bps = list.pop(tx, header, n).await?;
                let mut sum = Delta::default();
                bps.iter().for_each(|bp| sum += core.weigh(bp));
                for list in &path {
                    let mut header = list.header()?;
                    change(&mut header, -sum);
                    list.set_header(tx, &header)?;
                }
                taken.extend(bps);
            } else if header.sub_list_count > 0 {
                let below = list.list_at(core, &header, header.sub_list_count - 1).await?;
                meet(&mut above, below.id())?;
                path.push(below);
            } else if path.len() > 1 {
                path.pop();
                above.remove(&list.id());
                Bpobj::destroy(core, tx, list.id()).await?;
                path.last().expect("this list is never popped").drop_last_list(core, tx).await?;
            } else {
                break;
            }
        }
        Ok(taken)
    }

    async fn pop(&self, tx: &Tx, mut header: BpobjPhys, n: u64) -> Result<Vec<BlockPointer>> {
        let first = header.pointers - n;
        let mut bps = Vec::with_capacity(n as usize);
        for at in (first..header.pointers).rev() {
            bps.push(self.pointer(at).await?);
            world::breathe().await;
        }
        header.pointers = first;
        self.set_header(tx, &header)?;
        self.object.free_range(tx, first * POINTER, u64::MAX).await?;
        Ok(bps)
    }

    async fn drop_last_list(&self, core: &Core, tx: &Tx) -> Result<()> {
        let mut header = self.header()?;
        header.sub_list_count -= 1;
        if header.sub_list_count == 0 {
            core.mos().free(tx, header.sub_lists).await?;
            header.sub_lists = ObjectId(0);
        }
        self.set_header(tx, &header)
    }

    /// Unmakes a list and those below; the blocks they name are not freed.
    pub async fn destroy(core: &Core, tx: &Tx, id: ObjectId) -> Result<()> {
        let (mut todo, mut seen) = (vec![id], BTreeSet::new());
        while let Some(id) = todo.pop() {
            meet(&mut seen, id)?;
            let list = Bpobj::open(core, id).await?;
            let header = list.header()?;
            for at in 0..header.sub_list_count {
                todo.push(list.list_at(core, &header, at).await?.id());
            }
            if let Some(lists) = header.sub_lists.some() {
                core.mos().free(tx, lists).await?;
            }
            core.mos().free(tx, id).await?;
        }
        Ok(())
    }
}
