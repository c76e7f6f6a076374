//! Object sets over blocks in memory, against a map of bytes.

mod early;

use crate::interleave::{Work, explore};
use crate::{
    BlockAccounting, Dirty, NewObject, ObjSet, Object, Policy, SyncCtx, Tx, Visit, Visitor, traverse_objset,
};
use futures_util::FutureExt;
use ondisk::{BlockPointer, ObjectType, ObjsetType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use units::{ObjectId, ObjsetId, Result, Txg};
use world::sync::Event;
use world::{Buf, Pending};
use zio::{BlockStore, Bookmark, MemStore, ReadClass, WriteSpec};

/// Frees at once what is killed: the owner of a set that has no snapshot.
#[derive(Debug)]
struct FreeAtOnce {
    store: Arc<MemStore>,
    txg: Txg,
    born: Mutex<i64>,
}

impl BlockAccounting for FreeAtOnce {
    fn born(&self, bp: &BlockPointer) {
        *self.born.lock().unwrap() += i64::from(!bp.is_embedded());
    }

    fn killed(&self, bp: &BlockPointer) {
        *self.born.lock().unwrap() -= i64::from(!bp.is_embedded());
        self.store.free(bp, self.txg);
    }
}

struct Bench {
    store: Arc<MemStore>,
    set: ObjSet,
    txg: Txg,
    balance: i64,
    seed: u64,
}

impl Bench {
    fn new(id: ObjsetId) -> Bench {
        let store = Arc::new(MemStore::new());
        let set = ObjSet::create(store.clone(), id, ObjsetType::Zvol, Policy::mos(), Txg(4));
        Bench { store, set, txg: Txg(4), balance: 0, seed: 42 }
    }

    fn tx(&self) -> Tx {
        Tx::syncing(self.txg)
    }

    fn sync(&mut self) {
        for pass in 1..=2 {
            let block_accounting =
                Arc::new(FreeAtOnce { store: self.store.clone(), txg: self.txg, born: Mutex::new(0) });
            let ctx = SyncCtx {
                txg: self.txg,
                pass,
                block_accounting: block_accounting.clone(),
                dirty: Dirty::default(),
            };
            run(self.set.sync(&ctx)).unwrap();
            self.balance += *block_accounting.born.lock().unwrap();
        }
        self.txg = self.txg.next();
        assert_eq!(
            self.balance,
            self.store.count() as i64,
            "each block that exists was born once and killed never"
        );
    }

    fn reopen(&mut self) {
        let root = self.set.root();
        self.set = run(ObjSet::open(self.store.clone(), self.set.id(), root, Policy::mos())).unwrap();
    }

    fn random(&mut self, n: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 33) % n
    }
}

/// Blocks in memory whose reads can be made to wait: with what they found when they were asked.
struct Slow {
    blocks: MemStore,
    gate: Mutex<Option<Arc<Event>>>,
}

impl BlockStore for Slow {
    fn cached(&self, _: &BlockPointer) -> Option<Buf> {
        None
    }

    fn read(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Pending<Result<Buf>> {
        let (found, gate) = (self.blocks.read(bp, at, class), self.gate.lock().unwrap().clone());
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.wait().await;
            }
            found.await
        })
    }

    fn write(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> Pending<Result<BlockPointer>> {
        self.blocks.write(data, old, spec)
    }

    fn free(&self, _: &BlockPointer, _: Txg) {}

    fn charged(&self, bp: &BlockPointer) -> u64 {
        self.blocks.charged(bp)
    }

    fn charge_max(&self, lsize: u64, copies: u8) -> u64 {
        self.blocks.charge_max(lsize, copies)
    }
}

/// Runs what never has to wait: memory answers at once.
fn run<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("blocks in memory answer at once")
}

fn make(bench: &Bench, block_size: u32) -> Object {
    run(bench.set.allocate(&bench.tx(), NewObject::new(ObjectType::ZVOL, block_size).with_indirect_shift(10)))
        .unwrap()
}

#[test]
fn random_writes_and_frees_read_back_through_any_number_of_txgs() {
    for id in [ObjsetId::MOS, ObjsetId(54)] {
        let mut bench = Bench::new(id);
        let object = make(&bench, 512);
        let mut oracle = vec![0u8; 200_000];
        let mut object = object;
        for step in 0..1500 {
            let at = bench.random(oracle.len() as u64 - 1) as usize;
            let len = (bench.random(3000) as usize + 1).min(oracle.len() - at);
            match bench.random(10) {
                0..=5 => {
                    let byte = bench.random(255) as u8 + 1;
                    oracle[at..at + len].fill(byte);
                    run(object.write(&bench.tx(), at as u64, &vec![byte; len])).unwrap();
                }
                6 => {
                    let len = (len * 20).min(oracle.len() - at);
                    oracle[at..at + len].fill(0);
                    run(object.free_range(&bench.tx(), at as u64, len as u64)).unwrap();
                }
                7 => {
                    let got = run(object.read(at as u64, len)).unwrap();
                    assert_eq!(&got[..], &oracle[at..at + len], "step {step} at {at}");
                }
                8 => bench.sync(),
                _ if step % 5 == 0 => {
                    bench.sync();
                    bench.reopen();
                    object = run(bench.set.object(object.id())).unwrap();
                }
                _ => {}
            }
        }
        assert_eq!(&run(object.read(0, oracle.len())).unwrap()[..], &oracle[..]);
        assert_extents_cover_the_data(&object, &oracle);
        run(bench.set.free(&bench.tx(), object.id())).unwrap();
        bench.sync();
        assert!(run(bench.set.object(object.id())).is_err());
        assert!(
            bench.store.count() <= 8,
            "only the meta-dnode's own blocks are left: {}",
            bench.store.count()
        );
    }
}

fn assert_extents_cover_the_data(object: &Object, oracle: &[u8]) {
    let mut at = 0;
    while at < oracle.len() as u64 / 512 {
        let (is_data, end) = run(object.extent(at)).unwrap();
        assert!(end > at);
        let end = end.min(oracle.len() as u64 / 512);
        let zero = oracle[at as usize * 512..end as usize * 512].iter().all(|b| *b == 0);
        assert!(is_data || zero, "blocks {at}..{end} are called a hole");
        at = end;
    }
}

#[test]
fn holes_are_crossed_in_few_steps_however_long() {
    let mut bench = Bench::new(ObjsetId(54));
    let object = make(&bench, 512);
    let mut written = BTreeSet::new();
    for step in 0..200 {
        // Near ones, and such as only a higher tree leads to.
        let far = bench.random(49);
        let blkid = bench.random(1 << far);
        object.write_block(&bench.tx(), blkid, Buf::copy_from(&[1; 512])).unwrap();
        written.insert(blkid);
        let (mut at, mut steps, mut found) = (0, 0, BTreeSet::new());
        while at < u64::MAX {
            let (is_data, end) = run(object.extent(at)).unwrap();
            assert!(end > at);
            if is_data {
                found.extend(at..end);
            }
            (at, steps) = (end, steps + 1);
        }
        assert_eq!(found, written);
        // An indirect block has eight pointers here, and there are some twenty of them above a block.
        let bound = 8 * 20 * (written.len() + 1);
        assert!(steps <= bound, "{steps} steps over {} blocks, step {step}", written.len());
        if bench.random(3) == 0 {
            bench.sync();
        }
    }
}

#[test]
fn objects_are_found_again_after_they_were_synced_and_numbers_are_used_again_after_they_were_freed() {
    let mut bench = Bench::new(ObjsetId(7));
    let mut live = BTreeMap::new();
    for round in 0..30u64 {
        for i in 0..40 {
            let slots = [1, 1, 1, 2, 4][bench.random(5) as usize];
            let mut new = NewObject::new(ObjectType::UINT64_OTHER, 512);
            new.slots = slots;
            let object =
                run(bench.set.allocate(&bench.tx(), new.with_bonus(ObjectType::UINT64_OTHER, vec![i; 64])))
                    .unwrap();
            run(object.write(&bench.tx(), 0, &(round * 1000 + u64::from(i) + 1).to_le_bytes())).unwrap();
            assert!(
                live.insert(object.id(), (round * 1000 + u64::from(i) + 1, i)).is_none(),
                "a number is given once"
            );
        }
        let victims: Vec<ObjectId> = live.keys().copied().filter(|id| id.0 % 3 == round % 3).collect();
        for id in victims {
            live.remove(&id);
            run(bench.set.free(&bench.tx(), id)).unwrap();
        }
        bench.sync();
        if round % 4 == 0 {
            bench.reopen();
        }
        let ids = run(bench.set.object_ids(ObjectId(1), usize::MAX)).unwrap();
        assert_eq!(ids, live.keys().copied().collect::<Vec<_>>());
    }
    for (&id, &(value, bonus)) in &live {
        let object = run(bench.set.object(id)).unwrap();
        assert_eq!(run(object.read(0, 8)).unwrap()[..], value.to_le_bytes());
        assert_eq!(object.bonus()[..], [bonus; 64]);
    }
}

#[test]
fn a_txg_that_syncs_does_not_disturb_what_the_next_one_has_written() {
    let mut bench = Bench::new(ObjsetId(7));
    let object = make(&bench, 512);
    run(object.write(&bench.tx(), 0, &[1; 1024])).unwrap();
    let next = Tx::syncing(bench.txg.next());
    run(object.write(&next, 100, &[2; 10])).unwrap();
    bench.sync();
    let got = run(object.read(90, 30)).unwrap();
    assert_eq!((&got[..10], &got[10..20], &got[20..]), (&[1; 10][..], &[2; 10][..], &[1; 10][..]));
    bench.reopen();
    let synced = run(bench.set.object(object.id())).unwrap();
    assert_eq!(run(synced.read(90, 30)).unwrap()[..], [1; 30], "only the first txg is on disk");
}

#[derive(Default)]
struct Collect(Mutex<Vec<(Bookmark, BlockPointer)>>);

impl Visitor for Collect {
    fn visit<'a>(
        &'a self,
        at: Bookmark,
        bp: &'a BlockPointer,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Visit>> + Send + 'a>> {
        self.0.lock().unwrap().push((at, bp.clone()));
        Box::pin(async { Ok(Visit::Descend) })
    }

    fn damaged(&self, at: Bookmark, error: units::Error) {
        panic!("{at}: {error}");
    }
}

#[test]
fn a_walk_meets_every_block_once_and_only_the_young_when_asked() {
    let mut bench = Bench::new(ObjsetId(9));
    let object = make(&bench, 512);
    for block in 0..100 {
        run(object.write(&bench.tx(), block * 512, &[7; 512])).unwrap();
    }
    bench.sync();
    let old = bench.txg.back(1);
    run(object.write(&bench.tx(), 50 * 512, &[8; 512])).unwrap();
    bench.sync();
    let walked = |since| {
        let store: Arc<dyn BlockStore> = bench.store.clone();
        let (id, root) = (bench.set.id(), bench.set.root());
        // What is read ahead is read by tasks.
        sim::run(1, sim::Config::default(), async move {
            let met = Collect::default();
            traverse_objset(&store, id, &root, since, &met).await.unwrap();
            met.0.into_inner().unwrap()
        })
    };
    assert_eq!(walked(Txg::NONE).len(), bench.store.count());
    let leaves: Vec<u64> = walked(old)
        .iter()
        .filter(|(at, _)| at.object == object.id() && at.level == 0)
        .map(|(at, _)| at.blkid)
        .collect();
    assert_eq!(leaves, [50]);
}

#[test]
fn a_block_written_before_the_sync_is_written_once_and_freed_when_it_is_changed_again() {
    let mut bench = Bench::new(ObjsetId(54));
    let object = {
        let new = NewObject::new(ObjectType::ZVOL, 4096);
        run(bench.set.allocate(&bench.tx(), new)).unwrap()
    };
    bench.sync();
    for round in 0..4u8 {
        let before = bench.store.count();
        let tx = bench.tx();
        let pointer_of = |blkid: u64| {
            let data = object.dirty_block(&tx, blkid)?;
            run(object.write_now(&tx, blkid, &data)).unwrap()
        };
        for blkid in 0..6 {
            object.write_block(&tx, blkid, Buf::copy_from(&[round + 1; 4096])).unwrap();
        }
        let stale = object.dirty_block(&tx, 1).unwrap();
        let pointers: Vec<_> = (0..6).map(|blkid| pointer_of(blkid).unwrap()).collect();
        assert_eq!(bench.store.count(), before + 6);
        assert_eq!(pointer_of(0).as_ref(), Some(&pointers[0]), "it is not written twice");
        // Each way of changing a block gives up what was written.
        object.write_block(&tx, 1, Buf::copy_from(&[9; 4096])).unwrap();
        run(object.patch_block(&tx, 2, 10, &[8; 10])).unwrap();
        object.free_blocks(&tx, 3..4).unwrap();
        assert_eq!(bench.store.count(), before + 3);
        assert_eq!(run(object.write_now(&tx, 1, &stale)).unwrap(), None, "somebody has changed it");
        object.write_block(&tx, 5, Buf::zeroed(4096)).unwrap();
        assert!(pointer_of(5).unwrap().is_hole());
        assert!(object.dirty_block(&tx, 77).is_none());
        bench.sync();
        let root = run(bench.set.dnode_phys(object.id())).unwrap().unwrap();
        assert_eq!(root.max_block_id, 5);
        assert_eq!(run(object.read_block(0)).unwrap()[..], [round + 1; 4096]);
        assert_eq!(run(object.read_block(1)).unwrap()[..], [9; 4096]);
        assert_eq!(run(object.read_block(2)).unwrap()[8..12], [round + 1, round + 1, 8, 8]);
        assert!(run(object.is_hole(3)).unwrap() && run(object.is_hole(5)).unwrap());
    }
    bench.reopen();
    let again = run(bench.set.object(object.id())).unwrap();
    assert_eq!(run(again.read_block(0)).unwrap()[..], [4; 4096]);
}

/// One that was slow to read a dnode must not bring the object back as it was before another caller changed and left it.
#[test]
fn an_object_that_changed_while_it_was_opened_is_seen_as_it_is_now() {
    let store = Arc::new(Slow { blocks: MemStore::new(), gate: Mutex::default() });
    let set = ObjSet::create(store.clone(), ObjsetId(54), ObjsetType::Zvol, Policy::mos(), Txg(4));
    let sync = |txg: u64| {
        let ctx = SyncCtx {
            txg: Txg(txg),
            pass: 1,
            block_accounting: Arc::new(crate::NoBlockAccounting),
            dirty: Dirty::default(),
        };
        run(set.sync(&ctx)).unwrap();
    };
    let write = |object: &Object, txg: u64, byte: u8| {
        object.write_block(&Tx::syncing(Txg(txg)), 0, Buf::copy_from(&[byte; 4096])).unwrap();
    };
    let object = run(set.allocate(&Tx::syncing(Txg(4)), NewObject::new(ObjectType::ZVOL, 4096))).unwrap();
    let id = object.id();
    write(&object, 4, 1);
    drop(object);
    sync(4);
    let mut slow = Box::pin(set.object(id));
    let gate = Arc::new(Event::default());
    *store.gate.lock().unwrap() = Some(gate.clone());
    assert!((&mut slow).now_or_never().is_none(), "it waits for the block of its dnode");
    *store.gate.lock().unwrap() = None;
    write(&run(set.object(id)).unwrap(), 5, 2);
    sync(5);
    gate.set();
    let object = run(slow).unwrap();
    assert_eq!(run(object.read_block(0)).unwrap()[..], [2; 4096]);
    // And one that is gone by now is not there.
    drop(object);
    *store.gate.lock().unwrap() = Some(Arc::default());
    let mut slow = Box::pin(set.object(id));
    let gate = store.gate.lock().unwrap().clone().unwrap();
    assert!((&mut slow).now_or_never().is_none());
    *store.gate.lock().unwrap() = None;
    run(set.free(&Tx::syncing(Txg(6)), id)).unwrap();
    sync(6);
    gate.set();
    assert_eq!(run(slow).unwrap_err().kind(), units::Kind::NotFound);
}

/// `statfs` tells it, and after a sync the pointer to the root block.
#[test]
fn objects_are_counted_as_soon_as_they_are_made_and_freed() {
    let mut bench = Bench::new(ObjsetId(54));
    let plain = || NewObject::new(ObjectType::PLAIN_FILE_CONTENTS, 512);
    let mut ids = Vec::new();
    for n in 1..=40 {
        ids.push(run(bench.set.allocate(&bench.tx(), plain())).unwrap().id());
        assert_eq!(bench.set.objects(), n);
    }
    bench.sync();
    assert_eq!(bench.set.root().fill(), 40);
    run(bench.set.free(&bench.tx(), ids[3])).unwrap();
    let new = run(bench.set.allocate(&bench.tx(), plain())).unwrap().id();
    run(bench.set.free(&bench.tx(), new)).unwrap();
    assert_eq!(bench.set.objects(), 39);
    bench.sync();
    bench.reopen();
    assert_eq!((bench.set.objects(), bench.set.root().fill()), (39, 39));
}

/// How many copies OpenZFS makes of what, for each value of `redundant_metadata`.
#[test]
fn metadata_has_the_copies_that_openzfs_gives_it() {
    use crate::RedundantMetadata as R;
    use ObjectType as T;
    let cases = [
        (T::PLAIN_FILE_CONTENTS, 0, [1, 1, 1, 1]),
        (T::PLAIN_FILE_CONTENTS, 1, [2, 1, 1, 1]),
        (T::PLAIN_FILE_CONTENTS, 2, [2, 2, 1, 1]),
        (T::DIRECTORY_CONTENTS, 0, [2, 2, 1, 1]),
        (T::DIRECTORY_CONTENTS, 1, [2, 2, 1, 1]),
        (T::SA, 0, [2, 2, 1, 1]),
        (T::DNODE, 0, [2, 2, 1, 1]),
        (T::DNODE, 1, [2, 2, 2, 1]),
        (T::OBJSET, 0, [2, 2, 2, 1]),
        (T::MASTER_NODE, 0, [2, 2, 2, 1]),
    ];
    for (kind, level, expected) in cases {
        let values = [R::All, R::Most, R::Some, R::None];
        for (redundant_metadata, copies) in values.into_iter().zip(expected) {
            let of = |copies| {
                let policy = Policy { copies, redundant_metadata, ..Policy::mos() };
                policy.choose(kind, level, 0, 0).copies
            };
            assert_eq!(of(1), copies, "{kind} at level {level}, {redundant_metadata:?}");
            assert_eq!((of(2), of(3)), (copies + 1, 3), "{kind} at level {level}, {redundant_metadata:?}");
        }
    }
}

/// A caller that keeps something of the data finds out whether it has changed.
#[test]
fn each_change_of_data_is_one_version_and_nothing_else_is() {
    let mut bench = Bench::new(ObjsetId(21));
    let object = run(bench.set.allocate(&bench.tx(), NewObject::new(ObjectType::UINT64_OTHER, 512))).unwrap();
    let mut version = object.version();
    let mut check = |object: &Object, more: u64, what: &str| {
        version += more;
        assert_eq!(object.version(), version, "{what}");
        assert_eq!(run(object.read_versioned(0)).unwrap().1, version, "{what}");
    };
    check(&object, 0, "new");
    object.write_block(&bench.tx(), 0, Buf::zeroed(512)).unwrap();
    check(&object, 1, "write");
    run(object.patch_block(&bench.tx(), 0, 5, b"patch")).unwrap();
    check(&object, 1, "patch what is dirty");
    bench.sync();
    check(&object, 0, "sync");
    run(object.patch_block(&bench.tx(), 0, 5, b"again")).unwrap();
    check(&object, 1, "patch what is on disk");
    run(object.set_block_size(&bench.tx(), 1024)).unwrap();
    check(&object, 1, "grow what is dirty");
    bench.sync();
    run(object.set_block_size(&bench.tx(), 4096)).unwrap();
    check(&object, 1, "grow what is on disk");
    object.set_bonus(&bench.tx(), *b"bonus").unwrap();
    check(&object, 0, "bonus");
    assert_eq!(run(object.read(5, 6)).unwrap()[..], *b"again\0");
    bench.sync();
    run(object.free_range(&bench.tx(), 0, u64::MAX)).unwrap();
    check(&object, 1, "free");
    run(object.set_block_size(&bench.tx(), 8192)).unwrap();
    check(&object, 1, "grow a hole");
    object.write_block(&Tx::syncing(bench.txg.next()), 0, Buf::zeroed(8192)).unwrap();
    check(&object, 1, "write in the next txg");
    object.write_block(&bench.tx(), 0, Buf::zeroed(8192)).unwrap();
    check(&object, 2, "write what is not read");
}

/// A file of one block that comes piece by piece is not copied for each of them.
#[test]
fn a_dirty_block_grows_where_it_is() {
    let mut bench = Bench::new(ObjsetId(21));
    let object = run(bench.set.allocate(&bench.tx(), NewObject::new(ObjectType::UINT64_OTHER, 512))).unwrap();
    object.write_block(&bench.tx(), 0, Buf::copy_from(&[7; 512])).unwrap();
    let mut places = std::collections::BTreeSet::new();
    for size in (1..=256).map(|n| n * 512) {
        run(object.set_block_size(&bench.tx(), size)).unwrap();
        run(object.patch_block(&bench.tx(), 0, size as usize - 512, &[7; 512])).unwrap();
        places.insert(object.dirty_block(&bench.tx(), 0).unwrap().as_ptr() as usize);
    }
    assert!(places.len() < 20, "{} places", places.len());
    let held = object.dirty_block(&bench.tx(), 0).unwrap();
    run(object.set_block_size(&bench.tx(), (128 << 10) + 512)).unwrap();
    assert_eq!(held.len(), 128 << 10, "who holds it keeps it as it was");
    let id = object.id();
    drop(object);
    bench.sync();
    bench.reopen();
    let object = run(bench.set.object(id)).unwrap();
    assert_eq!(object.block_size(), (128 << 10) + 512);
    let block = run(object.read_block(0)).unwrap();
    assert!(block[..128 << 10].iter().all(|b| *b == 7) && block[128 << 10..].iter().all(|b| *b == 0));
}

#[test]
fn what_was_never_synced_goes_with_the_last_who_knew_the_set() {
    let mut bench = Bench::new(ObjsetId(9));
    let object = make(&bench, 512);
    bench.sync();
    run(object.write(&bench.tx(), 0, &[7; 512])).unwrap();
    let store = bench.store.clone();
    drop((object, bench));
    assert_eq!(Arc::strong_count(&store), 1, "nothing of the set is left");
}

/// What was found free is not given to two, whatever else takes numbers meanwhile.
#[test]
fn numbers_are_given_out_once() {
    let mut bench = Bench::new(ObjsetId(21));
    let new = |slots| NewObject { slots, ..NewObject::new(ObjectType::UINT64_OTHER, 512) };
    let mut taken: BTreeMap<u64, u8> = BTreeMap::new();
    for step in 0..3000 {
        let slots = 1 + bench.random(3) as u8;
        let made = match bench.random(10) {
            0 => {
                // A caller that names the number: often one of those that come next.
                let near = taken.last_key_value().map_or(1, |(id, _)| *id) + bench.random(5);
                let id = ObjectId(near.saturating_sub(bench.random(40)).max(1));
                run(bench.set.claim_free(&bench.tx(), id, &new(slots))).ok()
            }
            1 => {
                let victim = bench.random(1 + taken.len() as u64) as usize;
                if let Some((&id, _)) = taken.iter().nth(victim) {
                    run(bench.set.free(&bench.tx(), ObjectId(id))).unwrap();
                    taken.remove(&id);
                    bench.sync();
                }
                None
            }
            2 if step % 7 == 0 => {
                bench.sync();
                None
            }
            _ => Some(run(bench.set.allocate(&bench.tx(), new(slots))).unwrap()),
        };
        if let Some(object) = made {
            let (id, slots) = (object.id().0, object.attrs().slots);
            let before = taken.range(..=id).next_back().map_or(0, |(id, slots)| id + u64::from(*slots));
            let behind = taken.range(id..).next().map_or(u64::MAX, |(id, _)| *id);
            assert!(before <= id && id + u64::from(slots) <= behind, "step {step}: {id:x} of {slots} slots");
            taken.insert(id, slots);
        }
    }
    bench.sync();
    bench.reopen();
    assert_eq!(run(bench.set.object_ids(ObjectId(1), 5000)).unwrap().len(), taken.len());
}

#[test]
fn a_block_is_dirty_until_it_is_synced() {
    let mut bench = Bench::new(ObjsetId(21));
    let object = run(bench.set.allocate(&bench.tx(), NewObject::new(ObjectType::UINT64_OTHER, 512))).unwrap();
    let other = Buf::copy_from(&[1; 512]);
    assert!(!object.is_dirty_block(0, &other));
    object.write_block(&bench.tx(), 0, Buf::copy_from(&[1; 512])).unwrap();
    let newest = run(object.read_block(0)).unwrap();
    assert!(object.is_dirty_block(0, &newest) && !object.is_dirty_block(0, &other));
    bench.sync();
    assert!(!object.is_dirty_block(0, &run(object.read_block(0)).unwrap()));
}

/// A number was taken from the search, and its object registered later. When a neighbour was freed in between, the slots of
/// large dnodes were given out a second time.
#[test]
fn slots_are_given_out_once_whatever_is_freed_beside_them_meanwhile() {
    let large = |slots: u8| NewObject { slots, ..NewObject::new(ObjectType::ZVOL, 4096) };
    let make = || {
        let mut bench = Bench::new(ObjsetId(60));
        for _ in 0..6 {
            make(&bench, 4096);
        }
        bench.sync();
        for id in [3, 4, 6] {
            run(bench.set.free(&bench.tx(), ObjectId(id))).unwrap();
        }
        let made = Arc::new(Mutex::new(Vec::new()));
        let (set, open) = (bench.set.clone(), bench.txg.next());
        let allocate = |slots: [u8; 2]| {
            let (set, made) = (set.clone(), made.clone());
            let work: Work = Box::new(move || {
                for slots in slots {
                    let object = run(set.allocate(&Tx::syncing(open), large(slots))).unwrap();
                    made.lock().unwrap().push((object.id(), slots));
                }
            });
            work
        };
        let claim: Work = {
            let (set, made) = (set.clone(), made.clone());
            Box::new(move || {
                let id = ObjectId(9);
                match run(set.claim_free(&Tx::syncing(open), id, &large(3))) {
                    Ok(_) => made.lock().unwrap().push((id, 3)),
                    Err(e) => assert_eq!(e.kind(), units::Kind::Exists),
                }
            })
        };
        let (first, other) = (allocate([2, 3]), allocate([4, 2]));
        let bench = Arc::new(Mutex::new(bench));
        let syncing = bench.clone();
        let sync: Work = Box::new(move || syncing.lock().unwrap().sync());
        ((bench, made), vec![first, sync, other, claim])
    };
    explore(make, |(bench, made), held_up_at| {
        let mut made = made.lock().unwrap().clone();
        made.sort();
        let ends = |(id, slots): (ObjectId, u8)| id.0 + u64::from(slots);
        let overlap = made.windows(2).find(|two| ends(two[0]) > two[1].0.0);
        assert_eq!(overlap, None, "held up at {held_up_at}: {made:?}");
        let mut bench = bench.lock().unwrap();
        bench.sync();
        bench.reopen();
        for (id, slots) in made {
            assert_eq!(run(bench.set.object(id)).unwrap().node.attrs().slots, slots);
        }
    });
}

/// A meta-dnode that claims 2^40 blocks, of which one is there, kept the list of objects busy for hours.
#[test]
fn objects_are_listed_in_as_many_steps_as_there_are_blocks() {
    let mut bench = Bench::new(ObjsetId(54));
    let tx = bench.tx();
    let object = run(bench.set.allocate(&tx, NewObject::new(ObjectType::ZVOL, 4096))).unwrap();
    bench.sync();
    let tx = bench.tx();
    bench.set.meta_dnode().change(&tx, |attrs, _| attrs.max_blkid = 1 << 40).unwrap();
    bench.sync();
    bench.reopen();
    assert_eq!(bench.set.meta_dnode().attrs().max_blkid, 1 << 40);
    assert_eq!(run(bench.set.object_ids(ObjectId(1), 100)).unwrap(), [object.id()]);
    assert_eq!(run(bench.set.object_ids(object.id(), 1)).unwrap(), [object.id()]);
}

/// A dnode with more pointers than its bonus area leaves room for was written, and that panicked.
#[test]
fn a_bonus_that_does_not_fit_its_dnode_is_refused_before_it_is_written() {
    let mut bench = Bench::new(ObjsetId(54));
    let tx = bench.tx();
    let new = NewObject::new(ObjectType::ZVOL, 4096).with_bonus(ObjectType::UINT64_METADATA, vec![1; 320]);
    let object = run(bench.set.allocate(&tx, new)).unwrap();
    let e = object.change(&tx, |attrs, _| attrs.roots = 3).unwrap_err();
    assert!(e.to_string().contains("a bonus of 320 bytes where 64 fit"), "{e}");
    let e = object.set_spill(&tx, Some(Buf::zeroed(512))).unwrap_err();
    assert!(e.to_string().contains("a bonus of 320 bytes where 192 fit"), "{e}");
    object.set_bonus(&tx, [2; 192]).unwrap();
    object.set_spill(&tx, Some(Buf::zeroed(512))).unwrap();
    assert!(object.set_bonus(&tx, [2; 200]).is_err());
    bench.sync();
    assert_eq!(object.bonus().len(), 192);
}
