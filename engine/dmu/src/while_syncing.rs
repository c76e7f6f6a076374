//! What readers and writers find while a txg is written to slow devices.

use crate::{Dirty, NewObject, NoBlockAccounting, ObjSet, Object, Policy, SyncCtx};
use ondisk::{BlockPointer, ObjectType, ObjsetType};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use txg::{Claim, Txgs};
use units::{ObjsetId, Result, Txg};
use world::{Buf, Instant, Pending, boxed};
use zio::{BlockStore, Bookmark, MemStore, ReadClass, WriteSpec};

const BLOCK: u64 = 128 << 10;
const BLOCKS: u64 = 64;
/// What one write takes; the next begins when it is done.
const EACH: Duration = Duration::from_millis(10);

/// Blocks in memory, written one after the other.
#[derive(Default)]
struct OneByOne {
    blocks: MemStore,
    /// Nanoseconds, when the last one that was asked for will be there.
    busy_until: AtomicU64,
}

impl BlockStore for OneByOne {
    fn cached(&self, _: &BlockPointer) -> Option<Buf> {
        None
    }

    fn read(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Pending<Result<Buf>> {
        self.blocks.read(bp, at, class)
    }

    fn write(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> Pending<Result<BlockPointer>> {
        let begin = self.busy_until.load(Ordering::Relaxed).max(world::now().0);
        let end = Instant(begin).after(EACH);
        self.busy_until.store(end.0, Ordering::Relaxed);
        let written = self.blocks.write(data, old, spec);
        boxed(|| async move {
            world::sleep_until(end).await;
            written.await
        })
    }

    fn free(&self, _: &BlockPointer, _: Txg) {}

    fn charged(&self, bp: &BlockPointer) -> u64 {
        self.blocks.charged(bp)
    }

    fn charge_max(&self, lsize: u64, copies: u8) -> u64 {
        self.blocks.charge_max(lsize, copies)
    }
}

fn content(blkid: u64, version: u64) -> Vec<u8> {
    (blkid << 8 | version).to_le_bytes().repeat(BLOCK as usize / 8)
}

async fn sync(set: &ObjSet, txg: Txg, dirty: Dirty) {
    for pass in 1..=2 {
        let ctx = SyncCtx { txg, pass, block_accounting: Arc::new(NoBlockAccounting), dirty: dirty.clone() };
        set.sync(&ctx).await.unwrap();
    }
}

/// A set with an object whose blocks are dirty in the open txg.
async fn dirty_set(tunables: &Tunables) -> (ObjSet, Object, Txgs) {
    let store = Arc::new(OneByOne::default());
    let set = ObjSet::create(store, ObjsetId(54), ObjsetType::Zvol, Policy::mos(), Txg(4));
    let txgs = Txgs::new(Txg(3), tunables);
    let tx = txgs.begin().await.unwrap();
    let new = NewObject::new(ObjectType::ZVOL, BLOCK as u32).with_indirect_shift(10);
    let object = set.allocate(&tx, new).await.unwrap();
    for blkid in 0..BLOCKS {
        object.write_block(&tx, blkid, Buf::copy_from(&content(blkid, 1))).unwrap();
    }
    drop(tx);
    (set, object, txgs)
}

#[test]
fn what_has_landed_is_given_back_and_read_from_the_devices() {
    sim::run(1, sim::Config::default(), async {
        let (set, object, txgs) = dirty_set(&Tunables::default()).await;
        txgs.hasten();
        let txg = txgs.next_to_sync().await.unwrap();
        assert!(txgs.dirty_bytes() >= BLOCKS * BLOCK);
        let syncing = world::spawn({
            let (set, dirty) = (set.clone(), txgs.syncing(txg).dirty());
            async move { sync(&set, txg, dirty).await }
        });
        let mut before = txgs.dirty_bytes();
        let mut steps = 0;
        for round in 0..BLOCKS {
            world::sleep(EACH).await;
            let now = txgs.dirty_bytes();
            assert!(now <= before, "{before} bytes were dirty, and then {now}");
            steps += u64::from(now < before);
            before = now;
            for blkid in 0..BLOCKS {
                let version = if blkid < round { 2 } else { 1 };
                assert!(
                    object.read_block(blkid).await.unwrap()[..] == content(blkid, version),
                    "block {blkid}"
                );
                assert_eq!(object.extent(blkid).await.unwrap(), (true, blkid + 1));
            }
            assert!(object.is_hole(BLOCKS).await.unwrap());
            // The next txg goes on with the same blocks, in the order in which they land.
            let next = txgs.begin_unthrottled();
            object.write_block(&next, round, Buf::copy_from(&content(round, 2))).unwrap();
            before += BLOCK + if round == 0 { 1024 } else { 0 };
        }
        assert!(steps > BLOCKS / 2, "bytes went back in {steps} steps");
        syncing.await;
        txgs.done(txg);
        for blkid in 0..BLOCKS {
            assert!(object.read_block(blkid).await.unwrap()[..] == content(blkid, 2));
        }
    });
}

/// It waited for the whole txg: at 60 MiB/s and 128 MiB that is two seconds.
#[test]
fn a_writer_at_the_wall_goes_on_when_the_first_blocks_have_landed() {
    sim::run(1, sim::Config::default(), async {
        let tunables = Tunables::default();
        tunables.set(Tunable::DirtyDataMax, BLOCKS * BLOCK).unwrap();
        let (set, _object, txgs) = dirty_set(&tunables).await;
        let began = world::now();
        let writer = world::spawn({
            let txgs = txgs.clone();
            async move {
                let claim = Claim { memory: BLOCK, ..Claim::default() };
                txgs.begin_for(claim).await.unwrap().dirtied(BLOCK);
                world::now().since(began)
            }
        });
        let txg = txgs.next_to_sync().await.unwrap();
        sync(&set, txg, txgs.syncing(txg).dirty()).await;
        txgs.done(txg);
        let (took, whole) = (writer.await, world::now().since(began));
        assert!(took <= EACH * 4, "the writer waited {took:?} of {whole:?}");
        assert!(whole >= EACH * BLOCKS as u32);
    });
}
