//! Blocks that are written before their sync and are in memory no more.

use super::*;
use crate::EarlyBlock;

/// Writes whole blocks as a direct write does: into the dirty record, then each to the store.
fn write_direct(object: &Object, tx: &Tx, first: u64, bytes: &[u8]) {
    let size = object.block_size();
    for (blkid, block) in (first..).zip(bytes.chunks(size as usize)) {
        object.write_block(tx, blkid, Buf::copy_from(block)).unwrap();
        let early = EarlyBlock::from(object.dirty_block(tx, blkid).unwrap());
        assert!(run(object.write_past_cache(tx, blkid, &early)));
        assert!(object.dirty_block(tx, blkid).is_none(), "it is in memory no more");
    }
}

#[test]
fn a_block_written_past_the_cache_is_there_once_and_freed_when_it_is_changed_again() {
    let mut bench = Bench::new(ObjsetId(54));
    let object = make(&bench, 4096);
    bench.sync();
    for round in 1..4u8 {
        let tx = bench.tx();
        let before = bench.store.count();
        write_direct(&object, &tx, 0, &[round; 6 * 4096]);
        assert_eq!(bench.store.count(), before + 6);
        // Each way of changing a block gives up what was written.
        object.write_block(&tx, 1, Buf::copy_from(&[9; 4096])).unwrap();
        run(object.patch_block(&tx, 2, 10, &[8; 10])).unwrap();
        object.free_blocks(&tx, 3..4).unwrap();
        write_direct(&object, &tx, 4, &[round + 10; 4096]);
        write_direct(&object, &tx, 5, &[0; 4096]);
        assert_eq!(bench.store.count(), before + 2);
        let check = |object: &Object| {
            assert_eq!(run(object.read_block(0)).unwrap()[..], [round; 4096]);
            assert_eq!(run(object.read_block(1)).unwrap()[..], [9; 4096]);
            assert_eq!(run(object.read_block(2)).unwrap()[8..12], [round, round, 8, 8]);
            assert!(run(object.is_hole(3)).unwrap() && run(object.is_hole(5)).unwrap());
            assert_eq!(run(object.read_block(4)).unwrap()[..], [round + 10; 4096]);
            assert_eq!(run(object.extent(4)).unwrap(), (true, 5));
        };
        check(&object);
        bench.sync();
        check(&object);
    }
    bench.reopen();
    let again = run(bench.set.object(object.id())).unwrap();
    assert_eq!(run(again.read_block(4)).unwrap()[..], [13; 4096]);
    // An object that goes in the txg takes with it what was written in advance.
    let tx = bench.tx();
    write_direct(&again, &tx, 0, &[7; 4 * 4096]);
    run(bench.set.free(&tx, again.id())).unwrap();
    drop(again);
    bench.sync();
}

/// Against a map of bytes; the bench counts that each block that exists was born once.
#[test]
fn direct_and_ordinary_writes_at_random_read_back_through_any_number_of_txgs() {
    for (id, size) in [(ObjsetId(54), 512), (ObjsetId(55), 1536)] {
        let mut bench = Bench::new(id);
        let mut object = make(&bench, size);
        let mut oracle = vec![0u8; 60 * size as usize];
        for step in 0..2000 {
            let blkid = bench.random(60);
            let count = 1 + bench.random(8.min(60 - blkid));
            let (from, to) = (blkid as usize * size as usize, (blkid + count) as usize * size as usize);
            let tx = bench.tx();
            match bench.random(12) {
                0..=4 => {
                    // Zeros become holes.
                    let fill = if bench.random(6) == 0 { 0 } else { step as u8 };
                    oracle[from..to].fill(fill);
                    write_direct(&object, &tx, blkid, &oracle[from..to]);
                }
                5..=7 => {
                    let at = from + bench.random(size.into()) as usize;
                    let len = 1 + bench.random((oracle.len() - at).min(3000) as u64) as usize;
                    oracle[at..at + len].fill(step as u8);
                    run(object.write(&tx, at as u64, &oracle[at..at + len])).unwrap();
                }
                8 => {
                    oracle[from..to].fill(0);
                    object.free_blocks(&tx, blkid..blkid + count).unwrap();
                }
                9 => {
                    oracle[from + 100..].fill(0);
                    run(object.free_range(&tx, from as u64 + 100, u64::MAX)).unwrap();
                }
                10 => bench.sync(),
                _ if step % 7 == 0 => {
                    bench.sync();
                    bench.reopen();
                    object = run(bench.set.object(object.id())).unwrap();
                }
                _ => {}
            }
            let (data, _) = run(object.read_block_past_cache(blkid)).unwrap();
            assert!(data[..] == oracle[from..from + size as usize], "{id:?} step {step}: block {blkid}");
            if step % 20 == 0 {
                let all = run(object.read(0, oracle.len())).unwrap();
                assert!(all[..] == oracle[..], "{id:?} step {step}");
            }
        }
        bench.sync();
    }
}

/// Blocks in memory whose writes wait for a gate, and tell that they do.
struct Gated {
    blocks: Arc<MemStore>,
    begun: Arc<Event>,
    gate: Arc<Event>,
}

impl BlockStore for Gated {
    fn cached(&self, _: &BlockPointer) -> Option<Buf> {
        None
    }

    fn read(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Pending<Result<Buf>> {
        self.blocks.read(bp, at, class)
    }

    fn write(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> Pending<Result<BlockPointer>> {
        let (blocks, gate, old) = (self.blocks.clone(), self.gate.clone(), old.clone());
        self.begun.set();
        Box::pin(async move {
            gate.wait().await;
            blocks.write(data, &old, spec).await
        })
    }

    fn free(&self, bp: &BlockPointer, txg: Txg) {
        self.blocks.free(bp, txg);
    }

    fn charged(&self, bp: &BlockPointer) -> u64 {
        self.blocks.charged(bp)
    }

    fn charge_max(&self, lsize: u64, copies: u8) -> u64 {
        self.blocks.charge_max(lsize, copies)
    }
}

/// The block of a direct write is on its way when another write, a free or a commit of the log comes to it.
#[test]
fn what_changes_a_block_that_is_on_its_way_is_what_stays() {
    for change in 0..5 {
        sim::run(1, sim::Config::default(), async move {
            let (blocks, begun, gate) =
                (Arc::new(MemStore::new()), Arc::<Event>::default(), Arc::<Event>::default());
            let store = Arc::new(Gated { blocks: blocks.clone(), begun: begun.clone(), gate: gate.clone() });
            let set = ObjSet::create(store, ObjsetId(54), ObjsetType::Zfs, Policy::mos(), Txg(4));
            let tx = Tx::syncing(Txg(4));
            let object = set.allocate(&tx, NewObject::new(ObjectType::ZVOL, 4096)).await.unwrap();
            object.write_block(&tx, 3, Buf::copy_from(&[1; 4096])).unwrap();
            let early = EarlyBlock::from(object.dirty_block(&tx, 3).unwrap());
            let under_way = world::spawn({
                let (object, early) = (object.clone(), early.clone());
                async move { object.write_past_cache(&Tx::syncing(Txg(4)), 3, &early).await }
            });
            begun.wait().await;
            let named = object.dirty_block(&tx, 3).unwrap();
            let mut commit = None;
            match change {
                0 => object.write_block(&tx, 3, Buf::copy_from(&[2; 4096])).unwrap(),
                1 => object.patch_block(&tx, 3, 0, &[2; 4096]).await.unwrap(),
                2 => object.free_blocks(&tx, 3..4).unwrap(),
                3 => {
                    let object = object.clone();
                    let work =
                        async move { object.write_now(&Tx::syncing(Txg(4)), 3, &named).await.unwrap() };
                    commit = Some(world::spawn(work));
                }
                _ => drop(named),
            }
            world::sleep(std::time::Duration::from_millis(1)).await;
            gate.set();
            assert_eq!(under_way.await, change >= 3, "change {change}");
            if let Some(commit) = commit {
                commit.await;
            }
            assert!(matches!(early.now(), crate::Early::Written(_)), "its memory is given back");
            assert_eq!(blocks.count(), usize::from(change >= 3), "change {change}");
            let byte = [2, 2, 0, 1, 1][change];
            assert!(object.read_block(3).await.unwrap()[..] == [byte; 4096], "change {change}");
            for pass in 1..=2 {
                let block_accounting = Arc::new(crate::NoBlockAccounting);
                let ctx = SyncCtx { txg: Txg(4), pass, block_accounting, dirty: Dirty::default() };
                set.sync(&ctx).await.unwrap();
            }
            assert!(object.read_block(3).await.unwrap()[..] == [byte; 4096], "change {change}");
        });
    }
}
