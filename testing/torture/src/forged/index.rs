//! The structures of a pool: every block of metadata, and where the pointer to it is.

use ondisk::{BLKPTR_SIZE, BlockPointer, DNODE_CORE_SIZE, DNODE_SIZE, DnodePhys, ObjectType, ObjsetPhys};
use pool::Pool;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{Checksum, Endian, ObjsetId, Result};
use zio::{BlockStore, Bookmark, ReadClass};

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The root of an object set.
    Objset,
    /// Pointers.
    Indirect,
    Dnodes,
    /// Metadata of an object of this type.
    Leaf(ObjectType),
    /// A block of an intent log: sealed in itself.
    Log,
    /// The header of a gang: sealed in itself.
    Gang,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub what: What,
    pub bp: BlockPointer,
    /// Its logical bytes; of a log block or a gang header what is on the device.
    pub data: Arc<[u8]>,
    /// The block that holds the pointer to it, and at which byte. The root is pointed to by the uberblock.
    pub parent: Option<(usize, usize)>,
    /// How many blocks are above it.
    pub depth: usize,
}

#[derive(Debug, Default)]
pub struct Index {
    pub blocks: Vec<Block>,
    /// The blocks of one kind, in the pool's own object set and in others.
    pub kinds: BTreeMap<(What, bool), Vec<usize>>,
    /// Numbers of objects, to lead astray.
    pub objects: Vec<u64>,
}

/// More blocks of one kind find nothing more.
const OF_A_KIND_MAX: usize = 400;
const BLOCKS_MAX: usize = 20_000;

/// A pointer still to be followed.
#[derive(Clone)]
struct Lead {
    bp: BlockPointer,
    parent: Option<(usize, usize)>,
    /// Of the object that the block belongs to.
    kind: ObjectType,
    /// The block is the root of an object set.
    is_root: bool,
    in_mos: bool,
    /// Its number among the blocks of its level.
    blkid: u64,
}

impl Index {
    /// Walks the whole pool.
    pub async fn of(pool: &Pool) -> Result<Index> {
        let mut index = Index::default();
        let root = pool.uberblock().root;
        let kind = ObjectType::OBJSET;
        let first = Lead { bp: root, parent: None, kind, is_root: true, in_mos: true, blkid: 0 };
        let (mut leads, mut seen) = (vec![first], BTreeSet::new());
        while let Some(lead) = leads.pop() {
            let is_new = seen.insert(lead.bp.to_bytes(Endian::NATIVE));
            if lead.bp.is_hole() || !is_new || index.blocks.len() >= BLOCKS_MAX {
                continue;
            }
            index.follow(pool, lead, &mut leads).await?;
        }
        Ok(index)
    }

    async fn follow(&mut self, pool: &Pool, lead: Lead, leads: &mut Vec<Lead>) -> Result<()> {
        let level = lead.bp.level();
        let what = match (lead.is_root, level, lead.kind) {
            (true, ..) => What::Objset,
            (_, 1.., _) => What::Indirect,
            (_, _, ObjectType::DNODE) => What::Dnodes,
            (_, _, kind) => What::Leaf(kind),
        };
        if let What::Leaf(kind) = what
            && (!kind.is_metadata() || lead.bp.is_encrypted())
        {
            return Ok(());
        }
        self.gang_headers(pool, &lead).await;
        let at = Bookmark::root(ObjsetId::MOS);
        let read = BlockStore::read(pool.pipeline(), &lead.bp, at, ReadClass::Scan).await;
        // What the pool itself cannot read is nothing to be forged.
        let (Ok(data), Endian::NATIVE) = (read, lead.bp.endian()) else { return Ok(()) };
        let number = self.add(what, &lead, Arc::from(&data[..]));
        match what {
            What::Objset => self.objset(pool, number, &data, &lead, leads).await,
            What::Indirect => {
                let entries = data.len() / BLKPTR_SIZE;
                for i in 0..entries {
                    let blkid = lead.blkid * entries as u64 + i as u64;
                    let child = Lead { blkid, ..lead.clone() };
                    lead_to(child, number, &data, i * BLKPTR_SIZE, leads);
                }
            }
            What::Dnodes => self.dnodes(number, &data, &lead, leads),
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, what: What, lead: &Lead, data: Arc<[u8]>) -> usize {
        let depth = lead.parent.map_or(0, |(above, _)| self.blocks[above].depth + 1);
        self.blocks.push(Block { what, bp: lead.bp.clone(), data, parent: lead.parent, depth });
        let number = self.blocks.len() - 1;
        let kind = self.kinds.entry((what, lead.in_mos)).or_default();
        if kind.len() < OF_A_KIND_MAX {
            kind.push(number);
        }
        number
    }

    async fn objset(&mut self, pool: &Pool, number: usize, data: &[u8], lead: &Lead, leads: &mut Vec<Lead>) {
        for at in [0, 1024, 1536, 2048].into_iter().filter(|at| at + DNODE_SIZE <= data.len()) {
            let first = Lead { blkid: u64::MAX, ..lead.clone() };
            self.dnode(number, data, at, &first, leads);
        }
        let Ok(phys) = ObjsetPhys::from_bytes(data, Endian::NATIVE) else { return };
        let mut next = phys.zil_header.log;
        while let Some(plain) = next.as_plain().cloned() {
            let at = Bookmark::root(ObjsetId::MOS);
            let is_log = [Checksum::Zilog, Checksum::Zilog2].contains(&plain.checksum_kind);
            let Ok(raw) = pool.pipeline().read_raw(&next, at).await else { return };
            if !is_log || self.blocks.len() >= BLOCKS_MAX {
                return;
            }
            let own = Lead { bp: next.clone(), parent: Some((number, 0)), ..lead.clone() };
            self.add(What::Log, &own, Arc::from(&raw.0[..]));
            let pointer = match plain.checksum_kind {
                Checksum::Zilog2 => raw.0.get(8..8 + BLKPTR_SIZE),
                _ => raw.0.len().checked_sub(184).and_then(|at| raw.0.get(at..at + BLKPTR_SIZE)),
            };
            let pointer = pointer.and_then(|bytes| BlockPointer::from_bytes(bytes, Endian::NATIVE).ok());
            next = pointer.unwrap_or(BlockPointer::HOLE);
        }
    }

    fn dnodes(&mut self, number: usize, data: &[u8], lead: &Lead, leads: &mut Vec<Lead>) {
        let mut at = 0;
        while at + DNODE_SIZE <= data.len() {
            at += self.dnode(number, data, at, lead, leads).max(1) * DNODE_SIZE;
        }
    }

    /// Answers how many slots it takes.
    fn dnode(&mut self, number: usize, data: &[u8], at: usize, lead: &Lead, leads: &mut Vec<Lead>) -> usize {
        let Ok(dnode) = DnodePhys::from_bytes(&data[at..], Endian::NATIVE) else { return 1 };
        if dnode.is_free() {
            return 1;
        }
        if lead.in_mos && lead.blkid != u64::MAX && self.objects.len() < 4096 {
            let per_block = (data.len() / DNODE_SIZE) as u64;
            self.objects.push(lead.blkid * per_block + (at / DNODE_SIZE) as u64);
        }
        let tail = at + DNODE_CORE_SIZE;
        let below = |kind, blkid| Lead { kind, blkid, is_root: false, ..lead.clone() };
        for i in 0..dnode.blkptrs.len() {
            lead_to(below(dnode.kind, i as u64), number, data, tail + i * BLKPTR_SIZE, leads);
        }
        if dnode.spill.is_some() {
            lead_to(below(ObjectType::SA, 0), number, data, at + dnode.size() - BLKPTR_SIZE, leads);
        }
        if dnode.bonus_kind == ObjectType::DSL_DATASET && dnode.bonus.len() >= 2 * BLKPTR_SIZE {
            let bonus = tail + dnode.blkptrs.len() * BLKPTR_SIZE;
            let root = Lead { is_root: true, in_mos: false, ..below(ObjectType::OBJSET, 0) };
            lead_to(root, number, data, bonus + BLKPTR_SIZE, leads);
        }
        dnode.slots()
    }

    /// The header of a block that is a gang.
    async fn gang_headers(&mut self, pool: &Pool, lead: &Lead) {
        let Some(dva) = lead.bp.as_plain().and_then(|p| p.copies().next().copied()).filter(|d| d.gang) else {
            return;
        };
        let Some(top) = pool.tree().top(dva.vdev) else { return };
        let any: vdev::Verify = Arc::new(|_: &[u8]| true);
        if let Ok(header) = top.read(dva.offset.bytes(), 512, any, vdev::Priority::SyncRead).await {
            self.add(What::Gang, lead, Arc::from(&header[..]));
        }
    }
}

/// The pointer at `at` of block `number` is to be followed; `lead` says the rest.
fn lead_to(lead: Lead, number: usize, data: &[u8], at: usize, leads: &mut Vec<Lead>) {
    let Some(bytes) = data.get(at..at + BLKPTR_SIZE) else { return };
    if let Ok(bp) = BlockPointer::from_bytes(bytes, Endian::NATIVE) {
        leads.push(Lead { bp, parent: Some((number, at)), ..lead });
    }
}
