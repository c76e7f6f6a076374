//! Every account compared with the blocks themselves: what a walk over all trees finds is the truth.

use super::Pool;
use crate::phys::DatasetPhys;
use dmu::{Visit, Visitor, traverse_objset};
use ondisk::BlockPointer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use units::{Error, ObjectId, ObjsetId, Result, Txg};
use zio::{BlockStore, Bookmark};

/// Blocks by address, with what each counts for and when it was born.
type Blocks = BTreeMap<u64, (u64, Txg)>;

#[derive(Default)]
struct Collector(Mutex<Blocks>);

impl Visitor for Collector {
    fn visit<'a>(
        &'a self,
        _: Bookmark,
        bp: &'a BlockPointer,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Visit>> + Send + 'a>> {
        if let Some(plain) = bp.as_plain() {
            let address = plain.dvas[0].offset.0;
            self.0.lock().unwrap().insert(address, (plain.dvas[0].asize.bytes(), plain.birth));
        }
        Box::pin(async { Ok(Visit::Descend) })
    }

    fn damaged(&self, at: Bookmark, error: Error) {
        panic!("damaged block {at}: {error}");
    }
}

async fn blocks_of(pool: &Pool, id: u64, root: &BlockPointer) -> Blocks {
    let store: Arc<dyn BlockStore> = pool.bench.store.clone();
    let found = Collector::default();
    traverse_objset(&store, ObjsetId(id), root, Txg::NONE, &found).await.unwrap();
    found.0.into_inner().unwrap()
}

fn sum<'a>(blocks: impl IntoIterator<Item = &'a (u64, Txg)>) -> u64 {
    blocks.into_iter().map(|(bytes, _)| bytes).sum()
}

/// A directory, its head and its snapshots, with their blocks.
struct Family {
    name: String,
    head: (DatasetPhys, Blocks),
    /// Oldest first.
    snapshots: Vec<(ObjectId, DatasetPhys, Blocks)>,
    origin: Blocks,
}

pub async fn audit(pool: &Pool) {
    let mut live = blocks_of(pool, 0, &pool.bench.mos.root()).await;
    for name in pool.dsl.descendants("p").await.unwrap() {
        let family = family(pool, name).await;
        check_family(pool, &family).await;
        live.extend(family.head.1.clone());
        family.snapshots.iter().for_each(|(_, _, blocks)| live.extend(blocks.clone()));
    }
    assert_eq!(live.len(), pool.bench.store.count(), "blocks that nothing refers to, or that are missing");
    assert_eq!(pool.dsl.freeing().await.unwrap(), 0, "nothing waits to be freed");
    check_features(pool).await;
}

async fn family(pool: &Pool, name: String) -> Family {
    let dsl = &pool.dsl;
    let found = dsl.find(&name).await.unwrap();
    let head = blocks_of(pool, found.id.0, &found.phys.bp).await;
    let mut snapshots = Vec::new();
    for (_, id) in dsl.snapshots(&name).await.unwrap() {
        let (_, phys) = dsl.core().dataset(id).await.unwrap();
        let blocks = blocks_of(pool, id.0, &phys.bp).await;
        snapshots.push((id, phys, blocks));
    }
    let (_, origin) = dsl.core().dataset(found.dir.origin).await.unwrap();
    let origin = blocks_of(pool, found.dir.origin.0, &origin.bp).await;
    Family { name, head: (found.phys, head), snapshots, origin }
}

async fn check_family(pool: &Pool, family: &Family) {
    let Family { name, head: (phys, blocks), snapshots, origin } = family;
    assert_eq!(phys.referenced, sum(blocks.values()), "referenced of {name}");
    let in_snapshots: BTreeSet<u64> =
        snapshots.iter().flat_map(|(_, _, b)| b.keys()).chain(origin.keys()).copied().collect();
    let own = blocks.iter().filter(|(at, _)| !in_snapshots.contains(at)).map(|(_, b)| b);
    let unique = sum(own);
    assert_eq!(phys.unique, unique, "unique of {name}");
    let mut prev = origin;
    for (i, (id, snapshot, held)) in snapshots.iter().enumerate() {
        assert_eq!(snapshot.referenced, sum(held.values()), "referenced of snapshot {id} of {name}");
        let next = snapshots.get(i + 1).map_or(blocks, |(_, _, b)| b);
        let alone = held.iter().filter(|(at, _)| !prev.contains_key(at) && !next.contains_key(at));
        if snapshot.num_children == 1 {
            assert_eq!(snapshot.unique, sum(alone.map(|(_, b)| b)), "unique of snapshot {id} of {name}");
        }
        prev = held;
    }
    check_dir(pool, family, unique).await;
}

async fn check_dir(pool: &Pool, family: &Family, unique: u64) {
    let Family { name, head: (phys, blocks), snapshots, origin } = family;
    let (_, dir) = pool.dsl.core().dir(phys.dir).await.unwrap();
    let breakdown = dir.space.breakdown.unwrap();
    assert_eq!(breakdown.iter().sum::<u64>(), dir.space.used, "parts of {name}");
    let head: Blocks =
        blocks.iter().filter(|(at, _)| !origin.contains_key(at)).map(|(k, v)| (*k, *v)).collect();
    assert_eq!(breakdown[0], sum(head.values()), "used by the head of {name}");
    let mut held = Blocks::new();
    for (_, _, blocks) in snapshots {
        held.extend(blocks.iter().filter(|(at, _)| !head.contains_key(at) && !origin.contains_key(at)));
    }
    assert_eq!(breakdown[1], sum(held.values()), "used by snapshots of {name}");
    let reserved = pool.dsl.head_space(phys.dir, phys).await.unwrap().refreservation;
    assert_eq!(breakdown[4], reserved.saturating_sub(unique), "refreservation of {name}");
    let (mut used, mut beyond) = (0, 0);
    for (child, id) in
        crate::zaps::numbers(&pool.dsl.core().table(dir.children).await.unwrap()).await.unwrap()
    {
        let (_, child_dir) = pool.dsl.core().dir(ObjectId(id)).await.unwrap();
        let space = child_dir.space;
        assert_eq!(child_dir.parent, phys.dir, "parent of {child}");
        used += space.used;
        beyond += space.reserved.max(space.used) - space.used;
    }
    assert_eq!((breakdown[2], breakdown[3]), (used, beyond), "used by children of {name}");
}

/// Counts of features that datasets record with themselves.
async fn check_features(pool: &Pool) {
    let core = pool.dsl.core();
    let (mut zapified, mut counts) = (0, BTreeMap::new());
    let mut from = ObjectId(1);
    loop {
        let ids = core.mos().object_ids(from, 100).await.unwrap();
        let Some(last) = ids.last() else { break };
        from = ObjectId(last.0 + 1);
        for id in ids {
            let object = core.mos().object(id).await.unwrap();
            let bonus = object.attrs().bonus_kind;
            let is_dsl = [ondisk::ObjectType::DSL_DATASET, ondisk::ObjectType::DSL_DIR].contains(&bonus);
            zapified += u64::from(is_dsl && crate::zaps::is_zapified(&object));
            if bonus == ondisk::ObjectType::DSL_DATASET {
                for feature in core.active_in(&object).await.unwrap() {
                    *counts.entry(feature).or_insert(0) += 1;
                }
            }
        }
    }
    let features = core.features();
    assert_eq!(features.count(ondisk::Feature::ExtensibleDataset.guid()).unwrap_or(0), zapified);
    for feature in crate::features::per_dataset().filter(|f| features.is_enabled(*f)) {
        let counted = features.count(feature.guid()).unwrap_or(0);
        assert_eq!(counted, counts.get(&feature).copied().unwrap_or(0), "{feature}");
    }
}
