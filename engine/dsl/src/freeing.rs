//! What waits to be freed, and freeing it: the free list and the bptree.
//!
//! ```text
//!   destroyed snapshot ─ its dead blocks ─▶ free_bpobj ┐
//!                                                      ├─▶ Dsl::process_frees, some each txg ─▶ allocator
//!   destroyed dataset  ─ its root pointer ─▶ bptree ───┘
//! ```
//!
//! Both are charged to `$FREE` until they are gone. The bptree is an array of trees to be freed, first in, first out;
//! it exists, and the feature `async_destroy` is active, while there is something in it.

use dmu::{NewObject, Object, Tx};
use ondisk::mos::directory;
use ondisk::{BlockBookmark, BlockPointer, BptreeEntry, BptreePhys, Feature, ObjectType, Reader, Writer};
use units::{Endian, Error, ObjectId, Result, Txg};

use crate::dsl::Dsl;
use crate::space::Delta;
use crate::walk::{Bounds, free_tree};

const BLOCK: u32 = 128 << 10;
const ENTRY: u64 = BptreeEntry::SIZE as u64;

/// Cloned blocks are met so many times at most, on average.
const CLONES_MAX: u64 = 1024;

/// What a txg has left of what waits to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frees {
    Done,
    /// There may be more, which the next txg should see to soon.
    More,
}

impl Dsl {
    /// Queues a tree whose blocks, as far as born after `since`, belong to no dataset any more.
    pub(crate) async fn queue_tree(
        &self,
        tx: &Tx,
        root: &BlockPointer,
        since: Txg,
        space: Delta,
    ) -> Result<()> {
        let core = &self.core;
        let object = match core.directory().lookup_u64(directory::BPTREE).await? {
            Some(id) => core.mos().object(ObjectId(id)).await?,
            None => {
                let new = NewObject::new(ObjectType::UINT64_METADATA, BLOCK)
                    .with_bonus(ObjectType::UINT64_METADATA, vec![0; BptreePhys::SIZE]);
                let object = core.mos().allocate(tx, new).await?;
                core.directory().insert(tx, directory::BPTREE, object.id().0).await?;
                core.features().add(tx, Feature::AsyncDestroy, 1).await?;
                object
            }
        };
        let mut phys = header(&object)?;
        let entry = BptreeEntry { root: root.clone(), birth: since, resume: BlockBookmark::default() };
        write_entry(&object, tx, phys.end, &entry).await?;
        phys.end += 1;
        change(&mut phys, space);
        set_header(&object, tx, &phys)?;
        self.charge_free(tx, space).await
    }

    /// Whether something waits to be freed: then txgs should go on even without writes.
    pub async fn has_frees(&self) -> Result<bool> {
        if let Some(list) = &self.free_list
            && !list.is_empty()?
        {
            return Ok(true);
        }
        self.core.directory().contains(directory::BPTREE).await
    }

    /// Frees up to about `budget` blocks that wait for it. Called once in each txg, before the MOS is written.
    pub async fn process_frees(&self, tx: &Tx, budget: u64) -> Result<Frees> {
        let mut freed = 0;
        if let Some(list) = &self.free_list {
            let bps = list.take(&self.core, tx, budget as usize).await?;
            let mut space = Delta::default();
            for bp in &bps {
                space += self.core.weigh(bp);
                self.core.store().free(bp, tx.txg());
                world::breathe().await;
            }
            self.charge_free(tx, -space).await?;
            freed = bps.len() as u64;
        }
        while freed < budget {
            let Some(id) = self.core.directory().lookup_u64(directory::BPTREE).await? else { break };
            freed += self.process_tree(tx, ObjectId(id), budget - freed).await?;
        }
        Ok(if freed < budget { Frees::Done } else { Frees::More })
    }

    /// Of a walk that frees at most `blocks`.
    pub(crate) fn free_bounds(&self, blocks: u64) -> Bounds {
        let is_shared = self.features().is_active(Feature::BlockCloning);
        let times = if is_shared { CLONES_MAX } else { 1 };
        Bounds { blocks, bytes: self.pool_space().everything.saturating_mul(times) }
    }

    /// Frees blocks of the first tree in the queue. Counts at least one, so that empty trees come to an end as well.
    async fn process_tree(&self, tx: &Tx, id: ObjectId, budget: u64) -> Result<u64> {
        let object = self.core.mos().object(id).await?;
        let mut phys = header(&object)?;
        if phys.begin >= phys.end {
            self.core.directory().remove(tx, directory::BPTREE).await?;
            self.core.mos().free(tx, id).await?;
            self.core.features().add(tx, Feature::AsyncDestroy, -1).await?;
            return Ok(1);
        }
        let mut entry = read_entry(&object, phys.begin).await?;
        let store = self.core.store();
        let done =
            free_tree(store, tx.txg(), &entry.root, entry.birth, entry.resume, self.free_bounds(budget))
                .await?;
        change(&mut phys, -done.space);
        match done.resume {
            Some(resume) => {
                entry.resume = resume;
                write_entry(&object, tx, phys.begin, &entry).await?;
            }
            None => phys.begin += 1,
        }
        set_header(&object, tx, &phys)?;
        self.charge_free(tx, -done.space).await?;
        Ok(done.freed.max(1))
    }
}

fn change(phys: &mut BptreePhys, delta: Delta) {
    let space = &mut phys.space;
    space.used = space.used.saturating_add_signed(delta.used);
    space.compressed = space.compressed.saturating_add_signed(delta.compressed);
    space.uncompressed = space.uncompressed.saturating_add_signed(delta.uncompressed);
}

fn header(object: &Object) -> Result<BptreePhys> {
    let phys = BptreePhys::decode(&mut Reader::new(&object.bonus(), Endian::NATIVE, "bptree"))?;
    if phys.begin > phys.end || phys.end > object.attrs().size_bound() / ENTRY {
        return Err(Error::corrupt(format!("bptree: {phys:?}")).at(format!("object {}", object.id())));
    }
    Ok(phys)
}

fn set_header(object: &Object, tx: &Tx, phys: &BptreePhys) -> Result<()> {
    let mut bytes = vec![0; BptreePhys::SIZE];
    phys.encode(&mut Writer::native(&mut bytes));
    object.set_bonus(tx, bytes)
}

async fn read_entry(object: &Object, at: u64) -> Result<BptreeEntry> {
    let bytes = object.read(at * ENTRY, BptreeEntry::SIZE).await?;
    BptreeEntry::decode(&mut Reader::new(&bytes, Endian::NATIVE, "bptree entry"))
}

async fn write_entry(object: &Object, tx: &Tx, at: u64, entry: &BptreeEntry) -> Result<()> {
    let mut bytes = vec![0; BptreeEntry::SIZE];
    entry.encode(&mut Writer::native(&mut bytes));
    object.write(tx, at * ENTRY, &bytes).await
}
