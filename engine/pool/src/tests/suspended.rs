//! Pools whose devices fail: suspended, read, cleared, closed; and pools that panic.

use super::{BLOCK, Rig, VOLUME, cache, fill, make_volume, noise, read_all, verify};
use crate::Pool;
use sim::Fault;
use std::time::Duration;
use units::{Kind, Result};
use vdev::Layout;
use world::{Buf, timeout};
use zpl::{FileKind, NewFile};

const SIZE: u64 = 2 << 20;
const FULL: Fault = Fault {
    full: true,
    gone: false,
    read_errors_ppm: 0,
    write_errors_ppm: 0,
    flush_errors_ppm: 0,
    forgets: false,
    rot_ppm: 0,
    lost_writes_ppm: 0,
    misdirected_writes_ppm: 0,
    ignores_flushes: false,
    delay: Duration::ZERO,
};
const WRITES_FAIL: Fault = Fault { full: false, write_errors_ppm: 1_000_000, ..FULL };
const FLUSHES_FAIL: Fault = Fault { full: false, flush_errors_ppm: 1_000_000, forgets: true, ..FULL };
const SOON: Duration = Duration::from_secs(600);

impl Rig {
    fn hurt(&self, fault: Fault) {
        (0..self.count).for_each(|i| self.disks.get(self.path(i)).unwrap().set_fault(fault));
    }
}

/// A pool with a volume that holds `noise(2)`, which was flushed over `noise(1)`, which is on disk.
async fn prepared(rig: &Rig) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE).await;
    fill(&pool, VOLUME, 1).await;
    pool.sync().await.unwrap();
    fill(&pool, VOLUME, 2).await;
    pool
}

async fn suspend(pool: &Pool) {
    assert_eq!(pool.sync().await.unwrap_err().kind(), Kind::Io);
    assert!(pool.suspended().is_some());
}

async fn write(pool: &Pool, block: u64, seed: u64) -> Result<()> {
    let volume = pool.open_volume(VOLUME).await?;
    volume.write(block * BLOCK, Buf::copy_from(&noise(seed, BLOCK as usize))).await
}

/// When a sync failed, what it had begun to write was held only through the clients that were connected: when they
/// had gone, the next to come read from the devices what had been there before, though the new had been flushed.
#[test]
fn a_suspended_pool_never_answers_with_the_past() {
    for (layout, count) in [(Layout::Stripe, 1), (Layout::Mirror, 2), (Layout::Raidz { parity: 1 }, 3)] {
        for fault in [FULL, WRITES_FAIL, FLUSHES_FAIL] {
            let rig = Rig::new(layout, count, 96 << 20);
            let own = rig.clone();
            rig.run(1, async move {
                let pool = prepared(&own).await;
                pool.create_dataset("tank/f", crate::Content::FileSystem(Default::default()), Vec::new())
                    .await
                    .unwrap();
                fill(&pool, VOLUME, 1).await;
                pool.sync().await.unwrap();
                let fs = pool.open_file_system_for_writing("tank/f").await.unwrap();
                let root = fs.root().await.unwrap();
                _ = root.create(b"a", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
                root.lookup(b"a").await.unwrap().write(0, &noise(5, 300_000)).await.unwrap();
                fill(&pool, VOLUME, 2).await;
                drop((root, fs));
                own.hurt(fault);
                suspend(&pool).await;
                for _ in 0..3 {
                    pool.pipeline().cache().clear();
                    assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE as usize), "{fault:?}");
                    let fs = pool.open_file_system("tank/f").await.unwrap();
                    let file = fs.root().await.unwrap().lookup(b"a").await.unwrap();
                    let bytes = file.read(0, 300_000).await.unwrap();
                    assert!(bytes[..] == noise(5, 300_000)[..], "{fault:?}: the file");
                    world::sleep(Duration::from_secs(20)).await;
                }
                let snapshot = pool.snapshot(vec!["tank/v@s".into()], Vec::new()).await;
                assert!(snapshot.is_err() && pool.open_volume("tank/v@s").await.is_err());
                own.hurt(Fault::default());
                pool.clear(None).await.unwrap();
                assert_eq!(pool.suspended(), None);
                assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE as usize), "{fault:?}");
                pool.snapshot(vec!["tank/v@s".into()], Vec::new()).await.unwrap();
                assert!(read_all(&pool, "tank/v@s").await.unwrap() == noise(2, SIZE as usize));
                verify(&pool).await;
                pool.export().await.unwrap();
                drop(pool);
                let pool = own.open(false).await.unwrap();
                assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE as usize), "{fault:?}");
                verify(&pool).await;
                pool.export().await.unwrap();
            });
        }
    }
}

/// The chain that a failed commit had left was forgotten by the sync, and that it had failed with it: the next flush
/// waited for a block that no task was going to write.
#[test]
fn every_flush_after_a_failed_commit_is_answered() {
    for fault in [FULL, WRITES_FAIL, FLUSHES_FAIL] {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(2, async move {
            let pool = prepared(&own).await;
            pool.set_property("failmode", "continue").await.unwrap();
            write(&pool, 0, 3).await.unwrap();
            own.hurt(fault);
            let volume = pool.open_volume(VOLUME).await.unwrap();
            for _ in 0..3 {
                let flushed = timeout(SOON, volume.flush()).await.expect("a flush is answered");
                assert_eq!(flushed.unwrap_err().kind(), Kind::Io, "{fault:?}");
            }
            let written = timeout(SOON, write(&pool, 1, 3)).await.expect("a write is answered");
            assert!(written.is_err());
            own.hurt(Fault::default());
            pool.clear(None).await.unwrap();
            volume.flush().await.unwrap();
            write(&pool, 1, 4).await.unwrap();
            volume.flush().await.unwrap();
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn what_waits_for_a_suspended_pool_goes_on_when_it_is_cleared() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = prepared(&own).await;
        own.hurt(FULL);
        write(&pool, 0, 7).await.unwrap();
        let (flushing, writing) = (pool.clone(), pool.clone());
        let flush = world::spawn(async move {
            flushing.open_volume(VOLUME).await?.flush().await?;
            world::sleep(Duration::from_millis(1)).await;
            write(&writing, 1, 8).await
        });
        suspend(&pool).await;
        // Still no room: it says so, and nothing is lost by trying.
        let again = pool.clear(None).await.unwrap_err().to_string();
        assert!(again.contains("suspended again") && again.contains("out of space"), "{again}");
        let mut late = Box::pin(flush);
        assert!(timeout(SOON, &mut late).await.is_none(), "it waits");
        own.hurt(Fault::default());
        pool.clear(None).await.unwrap();
        late.await.unwrap();
        pool.open_volume(VOLUME).await.unwrap().flush().await.unwrap();
        let blocks = read_all(&pool, VOLUME).await.unwrap();
        assert!(blocks[..BLOCK as usize] == noise(7, BLOCK as usize));
        assert!(blocks[BLOCK as usize..2 * BLOCK as usize] == noise(8, BLOCK as usize));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// A disk that is unplugged loses its cache, also what the sync under way had written before.
#[test]
fn a_disk_that_was_unplugged_gets_once_more_what_it_lost() {
    for layout in [Layout::Stripe, Layout::Mirror] {
        for at in [1, 10, 40, 80] {
            let rig = Rig::new(layout, if layout == Layout::Mirror { 2 } else { 1 }, 96 << 20);
            let own = rig.clone();
            rig.run(at, async move {
                let pool = prepared(&own).await;
                fill(&pool, VOLUME, 3).await;
                let disks: Vec<_> = (0..own.count).map(|i| own.disks.get(own.path(i)).unwrap()).collect();
                let before = own.disks.writes();
                let unplugged = disks.clone();
                own.disks.watch(move |moment, number| {
                    if moment == sim::Moment::Write && number == before + at {
                        unplugged.iter().for_each(|disk| disk.unplug());
                    }
                });
                let synced = pool.sync().await;
                own.disks.unwatch();
                if synced.is_ok() {
                    // There was less to write than that.
                    disks.iter().for_each(|disk| disk.unplug());
                    write(&pool, 0, 3).await.unwrap();
                }
                suspend(&pool).await;
                assert!(pool.clear(None).await.is_err(), "it is not there yet");
                world::sleep(Duration::from_secs(100)).await;
                own.hurt(Fault::default());
                pool.clear(None).await.unwrap();
                fill(&pool, VOLUME, 4).await;
                pool.sync().await.unwrap();
                assert!(read_all(&pool, VOLUME).await.unwrap() == noise(4, SIZE as usize));
                verify(&pool).await;
                pool.export().await.unwrap();
                drop(pool);
                let pool = own.open(false).await.unwrap();
                verify(&pool).await;
                pool.export().await.unwrap();
            });
        }
    }
}

#[test]
fn a_suspended_pool_is_closed_as_it_is_on_disk_and_keeps_what_was_flushed() {
    for fault in [FULL, WRITES_FAIL, FLUSHES_FAIL, Fault { gone: true, full: false, ..FULL }] {
        for export in [false, true] {
            let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
            let own = rig.clone();
            rig.run(4, async move {
                let pool = prepared(&own).await;
                own.hurt(fault);
                let waiting = pool.clone();
                let flush = world::spawn(async move {
                    write(&waiting, 0, 9).await?;
                    waiting.open_volume(VOLUME).await?.flush().await
                });
                suspend(&pool).await;
                let close = async { if export { pool.export().await } else { pool.close().await } };
                assert!(timeout(SOON, close).await.expect("it ends").is_err());
                assert!(timeout(SOON, flush).await.expect("who waited is answered").is_err());
                drop(pool);
                own.hurt(Fault::default());
                let pool = own.open(false).await.unwrap();
                let (found, flushed) = (read_all(&pool, VOLUME).await.unwrap(), noise(2, SIZE as usize));
                assert!(found[BLOCK as usize..] == flushed[BLOCK as usize..], "{fault:?}");
                verify(&pool).await;
                pool.export().await.unwrap();
            });
        }
    }
}

/// A panic in the sync ended its task, and every waiter for a txg waited for ever, the end of the program among them.
#[test]
fn a_panic_suspends_its_own_pool_and_nothing_else() {
    let rig = Rig::new(Layout::Stripe, 2, 96 << 20);
    let own = rig.clone();
    rig.run(5, async move {
        let hit = own.create_on("hit", 0..1, cache(), |_| true).await;
        let well = own.create_on("well", 1..2, cache(), |_| true).await;
        make_volume(&hit, "hit/v", SIZE).await;
        make_volume(&well, "well/v", SIZE).await;
        fill(&hit, "hit/v", 1).await;
        let flush = {
            let volume = hit.open_volume("hit/v").await.unwrap();
            volume.write(0, Buf::copy_from(&noise(2, BLOCK as usize))).await.unwrap();
            volume
        };
        let changed = timeout(SOON, hit.change("stumble", |_, _| async { panic!("on purpose") }));
        let changed: Result<()> = changed.await.expect("it is answered");
        let e = changed.unwrap_err();
        let said = hit.report().suspended.unwrap();
        for words in ["on purpose", "tests/suspended.rs:"] {
            assert!(said.contains(words) && e.to_string().contains(words), "{said}; {e}");
        }
        let after = Buf::copy_from(&noise(3, BLOCK as usize));
        assert!(timeout(SOON, flush.write(0, after)).await.expect("it is answered").is_err());
        timeout(SOON, flush.flush()).await.expect("it is answered").ok();
        assert!(read_all(&hit, "hit/v").await.unwrap()[..BLOCK as usize] == noise(2, BLOCK as usize));
        let advice = hit.clear(None).await.unwrap_err().to_string();
        assert!(advice.contains("must be opened again"), "{advice}");
        fill(&well, "well/v", 3).await;
        verify(&well).await;
        assert!(timeout(SOON, hit.close()).await.expect("it ends").is_err());
        well.export().await.unwrap();
    });
}

#[test]
fn a_panic_in_a_task_that_nobody_awaits_is_noticed() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(6, async move {
        let pool = prepared(&own).await;
        let guarded = pool.guard(async {
            drop(world::spawn(async { panic!("alone") }));
            world::sleep(Duration::from_secs(1)).await;
            Ok(())
        });
        guarded.await.unwrap();
        let said = pool.suspended().unwrap();
        assert!(said.contains("alone"), "{said}");
        assert!(timeout(SOON, pool.close()).await.expect("it ends").is_err());
    });
}
